//! A scenario from a browser's recording: HTTP Archive (HAR) 1.2, as described at
//! <http://www.softwareishard.com/blog/har-12-spec/>.

use super::auth;
use super::draft::{Draft, DraftBody, DraftStep, Text, literal};
use super::url::{self, Url};
use super::{ImportError, error};
use serde_json::Value;
use std::collections::BTreeMap;

/// What to take over from a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarOptions {
    /// Also scripts, styles, pictures and fonts.
    pub static_assets: bool,
}

/// The most requests taken over: what a flow may have.
const MOST: usize = 1_000;
/// The longest body taken over, in bytes.
const MOST_BODY_BYTES: usize = 256 * 1024;

/// Endings of files that pages are made of.
const STATIC: [&str; 22] = [
    "js", "mjs", "css", "map", "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "bmp",
    "woff", "woff2", "ttf", "otf", "eot", "mp4", "webm", "mp3", "wasm",
];
/// What browsers call them.
const STATIC_KINDS: [&str; 6] = ["script", "stylesheet", "image", "font", "media", "manifest"];

/// Makes a scenario of a recording: one flow with its requests in their order.
/// The server asked most often becomes the base; requests to others are left out.
/// Cookies and credentials are not taken over: variables stand in their place.
///
/// # Errors
/// If it is no HAR file, or nothing in it can be taken over.
pub fn har(text: &str, options: &HarOptions) -> Result<String, ImportError> {
    let document: Value = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(document) => document,
        Err(why) => return error(format!("not a HAR file: not JSON: {why}")),
    };
    let Some(entries) = document.pointer("/log/entries").and_then(Value::as_array) else {
        return error("not a HAR file: the list log.entries is missing");
    };
    let mut notes = Notes::default();
    let requests: Vec<(&Value, Url)> =
        entries.iter().filter_map(|entry| wanted(entry, *options, &mut notes)).collect();
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, url) in &requests {
        *hosts.entry(&url.origin).or_default() += 1;
    }
    // The first of the most frequent, as the map is in order.
    let most = hosts.values().copied().max().unwrap_or(0);
    let Some((base, _)) = hosts.iter().find(|(_, count)| **count == most) else {
        return error(
            "nothing in the recording can be taken over: no HTTP requests, or static files only",
        );
    };
    let base = (*base).to_owned();
    let mut draft = Draft {
        name: "recording".into(),
        base: Some(base.clone()),
        flow: Some("session".into()),
        ..Draft::default()
    };
    for (host, count) in hosts.iter().filter(|(host, _)| **host != base) {
        notes.other_hosts.push(format!("{host} ({count})"));
    }
    let mine = requests.iter().filter(|(_, url)| url.origin == base);
    for (entry, url) in mine.clone().take(MOST) {
        let step = step(entry, url, &mut draft);
        draft.steps.push(step);
    }
    let more = mine.count().saturating_sub(MOST);
    draft.notes = notes.sentences(more);
    Ok(draft.into_toml())
}

#[derive(Default)]
struct Notes {
    static_assets: usize,
    not_http: usize,
    other_hosts: Vec<String>,
}

impl Notes {
    fn sentences(self, more: usize) -> Vec<String> {
        let mut all = vec![
            "Made from a browser's recording (HAR); a start to be adapted.".to_owned(),
            "Cookies and credentials were not taken over: fill in the variables, or use [login]. Bodies were: look for secrets in them.".to_owned(),
            "All requests of the session run in their order, one user after the other's answer; the step ends at the first failure.".to_owned(),
        ];
        if self.static_assets > 0 {
            all.push(format!(
                "Left out: {} for scripts, styles, pictures and fonts.",
                requests(self.static_assets)
            ));
        }
        if !self.other_hosts.is_empty() {
            all.push(format!(
                "Left out: requests to other servers: {}.",
                self.other_hosts.join(", ")
            ));
        }
        if self.not_http > 0 {
            all.push(format!("Left out: {} with a URL that is not HTTP.", requests(self.not_http)));
        }
        if more > 0 {
            all.push(format!("Left out: the last {}; a flow has at most {MOST}.", requests(more)));
        }
        all
    }
}

fn requests(n: usize) -> String {
    format!("{n} {}", if n == 1 { "request" } else { "requests" })
}

/// The entry and its URL, if it is to be taken over.
fn wanted<'e>(
    entry: &'e Value,
    options: HarOptions,
    notes: &mut Notes,
) -> Option<(&'e Value, Url)> {
    let text = entry.pointer("/request/url")?.as_str()?;
    let is_http = text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    let Some(url) = url::parse(text).ok().filter(|_| is_http) else {
        notes.not_http += 1;
        return None;
    };
    let file = url.path.split('?').next().unwrap_or_default();
    let ending = file.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    let by_name = ending.is_some_and(|(_, end)| STATIC.contains(&&*end.to_ascii_lowercase()));
    let kind = entry.get("_resourceType").and_then(Value::as_str).unwrap_or_default();
    if !options.static_assets && (by_name || STATIC_KINDS.contains(&kind)) {
        notes.static_assets += 1;
        return None;
    }
    Some((entry, url))
}

fn step(entry: &Value, url: &Url, draft: &mut Draft) -> DraftStep {
    let request = &entry["request"];
    let mut step = DraftStep { path: redacted_path(&url.path, draft).0, ..DraftStep::default() };
    step.method =
        match wellspring_load::scenario::parts::method(request["method"].as_str().unwrap_or("GET"))
        {
            Ok(method) => method,
            Err(why) => {
                step.notes.push(format!("{why}; GET is sent."));
                "GET".into()
            }
        };
    step.name = format!("{} {}", step.method, url.path.split('?').next().unwrap_or_default());
    let headers = request["headers"].as_array().map_or(&[][..], Vec::as_slice);
    for header in headers {
        let (Some(name), Some(value)) = (header["name"].as_str(), header["value"].as_str()) else {
            continue;
        };
        take_header(&mut step, draft, &name.to_ascii_lowercase(), value);
    }
    take_body(&mut step, &request["postData"]);
    let status = entry.pointer("/response/status").and_then(Value::as_u64).unwrap_or(0);
    if (200..400).contains(&status) && status != 304 {
        step.statuses.push(status.to_string());
    }
    step
}

fn take_header(step: &mut DraftStep, draft: &mut Draft, name: &str, value: &str) {
    let browsers_own = name.starts_with(':')
        || name.starts_with("sec-")
        || [
            "accept-encoding",
            "if-none-match",
            "if-modified-since",
            "priority",
            "pragma",
            "cache-control",
            "upgrade-insecure-requests",
            "dnt",
            "te",
        ]
        .contains(&name);
    if browsers_own {
        return;
    }
    if auth::is_secret_header(name) {
        let note =
            format!("Was not taken over. The header {name:?} is left out while this is empty.");
        let text = draft.var(&auth::var_name(name), "", &note);
        step.header(name, text, false);
    } else {
        step.header(name, literal(value), false);
    }
}

fn take_body(step: &mut DraftStep, data: &Value) {
    let text = data["text"].as_str().unwrap_or_default();
    let params = data["params"].as_array().map_or(&[][..], Vec::as_slice);
    let mime = data["mimeType"].as_str().unwrap_or_default();
    let mut body = text.to_owned();
    if text.is_empty() && mime.starts_with("application/x-www-form-urlencoded") {
        let encoded = params.iter().filter_map(|param| {
            let mut pair = String::new();
            wellspring_load::scenario::template::percent(param["name"].as_str()?, &mut pair, true);
            pair.push('=');
            wellspring_load::scenario::template::percent(
                param["value"].as_str().unwrap_or(""),
                &mut pair,
                true,
            );
            Some(pair)
        });
        body = encoded.collect::<Vec<_>>().join("&");
    } else if text.is_empty() && !params.is_empty() {
        step.notes
            .push(format!("Left out: the body, a form of type {mime:?}; give it as body_file."));
    }
    if body.len() > MOST_BODY_BYTES {
        step.notes.push(format!("Left out: the body, {} bytes; give it as body_file.", body.len()));
    } else if !body.is_empty() {
        if !mime.is_empty() && !step.headers.iter().any(|(name, _)| name == "content-type") {
            step.header("content-type", literal(mime), false);
        }
        step.body = DraftBody::Plain(body);
    }
}

/// The path with variables in place of secrets in the query.
fn redacted_path(path: &str, draft: &mut Draft) -> Text {
    let Some((path, query)) = path.split_once('?') else { return literal(path) };
    let mut pairs = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((name, value)) if auth::is_secret_parameter(name) && !value.is_empty() => {
                let note = format!("Was not taken over: the parameter {name:?} of a query.");
                let text = draft.var(&auth::var_name(name), "", &note);
                pairs.push(format!("{}={}", literal(name).0, text.0));
            }
            _ => pairs.push(literal(pair).0),
        }
    }
    Text(format!("{}?{}", literal(path).0, pairs.join("&")))
}
