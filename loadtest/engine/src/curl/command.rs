//! A scenario from `curl` command lines, as typed or copied from a browser.

use super::auth;
use super::draft::{Draft, DraftStep, literal};
use super::glob;
use super::options::{self, CurlOption, Meaning};
use super::shell::{self, Command};
use super::url;
use super::{ImportError, error};
use crate::invalid::Invalid;
use base64::Engine as _;

/// Makes a scenario of one or several `curl` commands: each becomes a step of the
/// same weight. `read_file` gives the bytes of a file named with `@`.
///
/// # Errors
/// If there is no `curl` command, a quotation is not closed, or there is no URL.
pub fn scenario(
    text: &str,
    read_file: &dyn Fn(&str) -> Result<Vec<u8>, Invalid>,
) -> Result<String, ImportError> {
    if text.contains("^\"") && text.contains("curl") {
        return error(
            "this is a command for Windows' cmd; in the browser choose \"Copy as cURL (bash)\"",
        );
    }
    let commands = match shell::split(text) {
        Ok(commands) => commands,
        Err(why) => return error(why),
    };
    let mut draft = Draft { name: "curl".into(), ..Draft::default() };
    for command in commands {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let Some(at) = words.iter().position(|word| is_curl(word)) else {
            draft.notes.push(format!("Left out: {:?} is not a curl command.", words.join(" ")));
            continue;
        };
        let rest = words.get(at + 1..).unwrap_or_default();
        // `--next` begins another request in the same command.
        for part in rest.split(|word| *word == "--next" || *word == "-:") {
            let mut call = Call::default();
            call.read(part);
            call.add_to(&mut draft, &command, read_file)?;
        }
    }
    if draft.steps.is_empty() {
        return error("expected a command like: curl http://127.0.0.1:4000/health");
    }
    draft.notes.insert(0, "Made from a curl command line; a start to be adapted.".into());
    Ok(draft.into_toml())
}

fn is_curl(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == "curl" || name.eq_ignore_ascii_case("curl.exe")
}

/// What one call of `curl` asks for.
#[derive(Default)]
struct Call {
    urls: Vec<String>,
    method: Option<String>,
    headers: Vec<String>,
    data: Vec<(Meaning, String)>,
    user: Option<String>,
    bearer: Option<String>,
    cookies: Vec<String>,
    get: bool,
    /// Braces and brackets of URLs are themselves.
    no_globs: bool,
    head: bool,
    upload: Option<String>,
    notes: Vec<String>,
}

impl Call {
    fn read(&mut self, words: &[&str]) {
        let mut left = words.iter().copied();
        let mut only_urls = false;
        while let Some(word) = left.next() {
            if word == "--" {
                only_urls = true;
            } else if let Some(name) = word.strip_prefix("--").filter(|_| !only_urls) {
                match options::long(name) {
                    Some(option) => {
                        let value = if option.takes { left.next().unwrap_or("") } else { "" };
                        self.option(option, value);
                    }
                    None => self.notes.push(format!("Left out: --{name} is not known here.")),
                }
            } else if let Some(letters) =
                word.strip_prefix('-').filter(|rest| !only_urls && !rest.is_empty())
            {
                self.letters(letters, &mut left);
            } else {
                self.urls.push(word.to_owned());
            }
        }
    }

    /// The URLs, with their globs expanded as curl does.
    fn expanded(&mut self) -> Vec<String> {
        let urls = std::mem::take(&mut self.urls);
        if self.no_globs {
            return urls;
        }
        let expand = |url: String| match glob::expand(&url) {
            Some(several) => several,
            None => {
                self.notes.push(format!(
                    "{url} has a range or list that was not carried over: at most {} requests are made of one URL.",
                    glob::MOST
                ));
                vec![url]
            }
        };
        urls.into_iter().flat_map(expand).collect()
    }

    /// Several letters in one word; a value may follow its letter directly.
    fn letters<'w>(&mut self, letters: &'w str, left: &mut impl Iterator<Item = &'w str>) {
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            match options::short(letter) {
                Some(option) if option.takes => {
                    let value = if rest.is_empty() { left.next().unwrap_or("") } else { rest };
                    return self.option(option, value);
                }
                Some(option) => self.option(option, ""),
                None => {
                    return self.notes.push(format!("Left out: -{letter} is not known here."));
                }
            }
        }
    }

    fn option(&mut self, option: &CurlOption, value: &str) {
        let value = value.to_owned();
        match option.meaning {
            Meaning::Method => self.method = Some(value),
            Meaning::Header => self.headers.push(value),
            Meaning::Data
            | Meaning::DataRaw
            | Meaning::DataBinary
            | Meaning::DataUrlencode
            | Meaning::Json
            | Meaning::Form => self.data.push((option.meaning, value)),
            Meaning::User => self.user = Some(value),
            Meaning::Bearer => self.bearer = Some(value),
            Meaning::Cookie => self.cookies.push(value),
            Meaning::UserAgent => self.headers.push(format!("user-agent: {value}")),
            Meaning::Referer => self.headers.push(format!("referer: {value}")),
            Meaning::Get => self.get = true,
            Meaning::Head => self.head = true,
            Meaning::Upload => self.upload = Some(value),
            Meaning::NoGlobs => self.no_globs = true,
            Meaning::Url => self.urls.push(value),
            Meaning::Told(text) if !self.notes.iter().any(|there| there == text) => {
                self.notes.push(text.to_owned());
            }
            Meaning::Next | Meaning::Ignored | Meaning::Told(_) => {}
        }
    }

    fn add_to(
        mut self,
        draft: &mut Draft,
        command: &Command,
        read_file: &dyn Fn(&str) -> Result<Vec<u8>, Invalid>,
    ) -> Result<(), ImportError> {
        if self.urls.is_empty() {
            return error(
                "a curl command without a URL; expected e.g. curl http://127.0.0.1:4000/",
            );
        }
        let body = self.body(read_file);
        for text in self.expanded() {
            let parsed = match url::parse(&text) {
                Ok(parsed) => parsed,
                Err(why) => return error(format!("the URL {text:?}: {why}")),
            };
            if draft.base.as_ref().is_some_and(|base| *base != parsed.origin) {
                draft.notes.push(format!(
                    "Left out: {text}; all requests go to one server, {}.",
                    draft.base.as_deref().unwrap_or_default()
                ));
                continue;
            }
            draft.base = Some(parsed.origin);
            let method = self.method(&body);
            let mut step = DraftStep {
                notes: self.notes.iter().chain(&command.notes).cloned().collect(),
                path: literal(&parsed.path).0,
                method,
                ..DraftStep::default()
            };
            self.put_headers(&mut step, draft, &body, parsed.user.as_deref());
            if let Some(query) = body.query.as_ref().filter(|query| !query.is_empty()) {
                step.path.push(if step.path.contains('?') { '&' } else { '?' });
                let query = url::safe_path(&format!("/{}", query.replace('#', "%23")));
                step.path.push_str(&literal(&query[1..]).0);
            }
            if let Some(text) = &body.text {
                step.body = Some(text.clone());
            }
            draft.steps.push(step);
        }
        Ok(())
    }

    fn method(&mut self, body: &Body) -> String {
        let implied = match (self.head, self.upload.is_some(), body.is_given && !self.get) {
            (true, _, _) => "HEAD",
            (_, true, _) => "PUT",
            (_, _, true) => "POST",
            _ => "GET",
        };
        match self.method.as_deref().map(crate::scenario::parts::method) {
            Some(Ok(method)) => method,
            Some(Err(why)) => {
                self.notes.push(format!("Left out: {why}."));
                implied.to_owned()
            }
            None => implied.to_owned(),
        }
    }

    fn put_headers(
        &self,
        step: &mut DraftStep,
        draft: &mut Draft,
        body: &Body,
        user: Option<&str>,
    ) {
        if let Some(content_type) = body.content_type.filter(|_| body.query.is_none()) {
            step.header("content-type", literal(content_type), true);
            if content_type == "application/json" {
                step.header("accept", literal("application/json"), true);
            }
        }
        if let Some(user) = self.user.as_deref().or(user) {
            let encoded = base64::engine::general_purpose::STANDARD.encode(user);
            put_secret(step, draft, "authorization", &format!("Basic {encoded}"));
        }
        if let Some(token) = &self.bearer {
            put_secret(step, draft, "authorization", &format!("Bearer {token}"));
        }
        let (pairs, files): (Vec<_>, Vec<_>) =
            self.cookies.iter().map(String::as_str).partition(|cookie| cookie.contains('='));
        if !pairs.is_empty() {
            put_secret(step, draft, "cookie", &pairs.join("; "));
        }
        for file in files {
            step.notes.push(format!("Left out: the file of cookies {file:?}."));
        }
        for header in &self.headers {
            match header.split_once(':') {
                Some((name, value)) if value.trim().is_empty() => {
                    // `Name:` takes a header away that curl would send.
                    step.headers.retain(|(there, _)| !there.eq_ignore_ascii_case(name.trim()));
                }
                Some((name, value)) => put_header(step, draft, name.trim(), value.trim()),
                None if header.starts_with('@') => {
                    step.notes.push(format!("Left out: the file of headers {:?}.", &header[1..]));
                }
                None => step.notes.push(format!("Left out: the header {header:?} has no value.")),
            }
        }
    }

    /// The body, or what `-G` puts into the query.
    fn body(&mut self, read_file: &dyn Fn(&str) -> Result<Vec<u8>, Invalid>) -> Body {
        let mut body = Body { is_given: !self.data.is_empty(), ..Body::default() };
        let mut parts: Vec<String> = Vec::new();
        let mut json = String::new();
        let mut is_json = false;
        for (meaning, value) in std::mem::take(&mut self.data) {
            match meaning {
                Meaning::Form => {
                    let text = "Left out: forms with parts (-F, multipart/form-data) cannot be written here; give the whole body as body_file, with its content type.";
                    if !self.notes.iter().any(|there| there == text) {
                        self.notes.push(text.to_owned());
                    }
                }
                Meaning::DataRaw => parts.push(value),
                Meaning::DataUrlencode => parts.extend(self.urlencoded(&value, read_file)),
                Meaning::Json => {
                    is_json = true;
                    json.push_str(&self.with_file(&value, false, read_file).unwrap_or_default());
                }
                _ => parts.extend(self.with_file(&value, meaning == Meaning::Data, read_file)),
            }
        }
        if let Some(file) = &self.upload {
            let text = format!("@{file}");
            body.text = self.with_file(&text, false, read_file);
            body.is_given = true;
            return body;
        }
        if is_json {
            body.content_type = Some("application/json");
            body.text = Some(json);
        } else if !parts.is_empty() {
            body.content_type = Some("application/x-www-form-urlencoded");
            body.text = Some(parts.join("&"));
        }
        if self.get {
            body.query = body.text.take();
        }
        body
    }

    /// The value, or the text of the file it names with `@`.
    fn with_file(
        &mut self,
        value: &str,
        strip_lines: bool,
        read_file: &dyn Fn(&str) -> Result<Vec<u8>, Invalid>,
    ) -> Option<String> {
        let Some(file) = value.strip_prefix('@') else { return Some(value.to_owned()) };
        let text = read_file(file)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| Invalid::new("it is not text")));
        match text {
            Ok(text) if strip_lines => Some(text.replace(['\r', '\n'], "")),
            Ok(text) => Some(text),
            Err(why) => {
                self.notes.push(format!(
                    "Left out: the body is the file {file:?} ({why}). Put it beside this scenario and write body_file = …"
                ));
                None
            }
        }
    }

    /// `--data-urlencode`: `text`, `=text`, `name=text`, `@file` or `name@file`.
    fn urlencoded(
        &mut self,
        value: &str,
        read_file: &dyn Fn(&str) -> Result<Vec<u8>, Invalid>,
    ) -> Option<String> {
        let (name, text) = match value.find(['=', '@']) {
            Some(at) if value[at..].starts_with('=') => (&value[..at], value[at + 1..].to_owned()),
            Some(at) => (&value[..at], self.with_file(&value[at..], false, read_file)?),
            None => ("", value.to_owned()),
        };
        let mut encoded = String::new();
        if !name.is_empty() {
            encoded.push_str(name);
            encoded.push('=');
        }
        crate::scenario::template::percent(&text, &mut encoded, true);
        Some(encoded)
    }
}

#[derive(Default)]
struct Body {
    is_given: bool,
    text: Option<String>,
    content_type: Option<&'static str>,
    query: Option<String>,
}

fn put_header(step: &mut DraftStep, draft: &mut Draft, name: &str, value: &str) {
    if name.eq_ignore_ascii_case("accept-encoding") {
        step.notes.push("Left out: accept-encoding; answers are asked for uncompressed.".into());
    } else if auth::is_secret_header(&name.to_ascii_lowercase()) {
        put_secret(step, draft, name, value);
    } else {
        step.header(name, literal(value), true);
    }
}

/// A secret goes into a variable, where it can be seen and replaced.
fn put_secret(step: &mut DraftStep, draft: &mut Draft, name: &str, value: &str) {
    let note = "A secret from the command line: take care where this file goes, or write { env = \"NAME\" }.";
    let text = draft.var(&auth::var_name(name), value, note);
    match crate::scenario::parts::header_value(value) {
        Ok(()) => step.header(name, text, true),
        Err(why) => step.notes.push(format!("Left out: the header {name:?}: {why}.")),
    }
}
