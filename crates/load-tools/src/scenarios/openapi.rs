//! A scenario from an API's description: OpenAPI 3.0 and 3.1 in JSON.

use super::auth;
use super::draft::{Draft, DraftBody, DraftStep, Text, literal};
use super::schema::{Document, plain_text};
use super::url;
use super::{ImportError, error};
use serde_json::Value;

const METHODS: [&str; 8] = ["get", "head", "options", "post", "put", "patch", "delete", "trace"];
/// Methods that change nothing (RFC 9110, section 9.2.1), and are sent unasked.
const SAFE: [&str; 3] = ["get", "head", "options"];
/// The most operations taken over: what a scenario may have.
const MOST: usize = 1_000;

/// Makes a scenario of an OpenAPI document: a step for each operation. What
/// changes data has weight 0, so that nothing is changed unasked.
///
/// # Errors
/// If it is no OpenAPI 3 document in JSON, or describes no operation.
pub fn openapi(text: &str) -> Result<String, ImportError> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('{') {
        return error(
            "expected an OpenAPI document in JSON. One in YAML must be converted first, e.g. with: yq -o=json . openapi.yaml > openapi.json",
        );
    }
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(why) => return error(format!("not an OpenAPI document: not JSON: {why}")),
    };
    match document.get("openapi").and_then(Value::as_str) {
        Some(version) if version.starts_with("3.") => {}
        Some(version) => {
            return error(format!("OpenAPI {version} is not known here; expected 3.0 or 3.1"));
        }
        None if document.get("swagger").is_some() => {
            return error(
                "this is OpenAPI 2 (Swagger); expected OpenAPI 3.0 or 3.1: convert it first",
            );
        }
        None => return error("not an OpenAPI document: the field \"openapi\" is missing"),
    }
    let Some(paths) = document.get("paths").and_then(Value::as_object) else {
        return error("the OpenAPI document describes no paths");
    };
    let refs = Document(&document);
    let title = document.pointer("/info/title").and_then(Value::as_str).unwrap_or("api");
    let mut draft = Draft { name: title.to_owned(), ..Draft::default() };
    let prefix = server(&document, &mut draft);
    draft.headers = credentials(&document, &mut draft);
    let mut left_out = 0;
    for (path, item) in paths {
        let Some(item) = refs.resolve(item) else { continue };
        for method in METHODS {
            let Some(operation) = item.get(method).filter(|operation| operation.is_object()) else {
                continue;
            };
            if draft.steps.len() >= MOST {
                left_out += 1;
                continue;
            }
            let mut maker = Maker { refs, item, operation, step: DraftStep::default() };
            maker.make(method, &format!("{prefix}{path}"));
            draft.steps.push(maker.step);
        }
    }
    if draft.steps.is_empty() {
        return error("the OpenAPI document describes no operation");
    }
    draft.notes.insert(0, "Made from an OpenAPI document; a start to be adapted.".into());
    draft
        .notes
        .push("Steps that change data have weight 0: give them a weight to send them.".into());
    draft
        .notes
        .push("Values without an example in the document are made up from its schemas.".into());
    if left_out > 0 {
        draft.notes.push(format!(
            "Left out: {left_out} more operations; a scenario has at most {MOST} steps."
        ));
    }
    Ok(draft.into_toml())
}

/// Takes over the first server; what its path adds to all paths.
fn server(document: &Value, draft: &mut Draft) -> String {
    let Some(server) = document.pointer("/servers/0") else { return String::new() };
    let mut address = server["url"].as_str().unwrap_or_default().to_owned();
    for (name, variable) in server["variables"].as_object().into_iter().flatten() {
        let value = variable["default"].as_str().unwrap_or_default();
        address = address.replace(&format!("{{{name}}}"), value);
    }
    let path = if address.contains("://") {
        match url::parse(&address) {
            Ok(parsed) => {
                draft.base = Some(parsed.origin);
                parsed.path
            }
            Err(why) => {
                draft.notes.push(format!("The server {address:?} was not taken over: {why}."));
                return String::new();
            }
        }
    } else {
        url::safe_path(&address)
    };
    path.split('?').next().unwrap_or_default().trim_end_matches('/').to_owned()
}

/// Headers for the security schemes, with variables to fill in.
fn credentials(document: &Value, draft: &mut Draft) -> Vec<(String, Text)> {
    let refs = Document(document);
    let schemes = document.pointer("/components/securitySchemes").and_then(Value::as_object);
    let mut headers: Vec<(String, Text)> = Vec::new();
    for (name, scheme) in schemes.into_iter().flatten() {
        let Some(scheme) = refs.resolve(scheme) else { continue };
        let field = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let header = match (field("type"), field("in")) {
            ("http" | "oauth2" | "openIdConnect", _) => "authorization".to_owned(),
            ("apiKey", "header") => field("name").to_ascii_lowercase(),
            ("apiKey", place) => {
                draft.notes.push(format!(
                    "Left out: the key {:?} in the {place} ({name}).",
                    field("name")
                ));
                continue;
            }
            (kind, _) => {
                draft
                    .notes
                    .push(format!("Left out: the security scheme {name:?} of type {kind:?}."));
                continue;
            }
        };
        let Ok(header) = wellspring_load::scenario::parts::header_name(&header) else { continue };
        if headers.iter().any(|(there, _)| *there == header) {
            continue;
        }
        let form = match field("scheme").to_ascii_lowercase().as_str() {
            "basic" => "e.g. \"Basic dXNlcjpwYXNz\"",
            _ if header == "authorization" => "e.g. \"Bearer …\"",
            _ => "the key",
        };
        let note =
            format!("For {name:?}: {form}. The header {header:?} is left out while this is empty.");
        let value = draft.var(&auth::var_name(&header), "", &note);
        headers.push((header, value));
    }
    headers
}

struct Maker<'d> {
    refs: Document<'d>,
    item: &'d Value,
    operation: &'d Value,
    step: DraftStep,
}

impl<'d> Maker<'d> {
    fn make(&mut self, method: &str, path: &str) {
        self.step.method = method.to_ascii_uppercase();
        let id = self.operation.get("operationId").and_then(Value::as_str);
        self.step.name = id.map_or_else(|| format!("{} {path}", self.step.method), str::to_owned);
        if let Some(summary) = self.operation.get("summary").and_then(Value::as_str) {
            self.step.notes.push(summary.to_owned());
        }
        if self.operation.get("deprecated") == Some(&Value::Bool(true)) {
            self.step.notes.push("Deprecated.".into());
        }
        if !SAFE.contains(&method) {
            self.step.weight = Some(0);
        }
        let path = self.parameters(path);
        self.step.path = path;
        self.body();
        self.statuses();
    }

    /// Fills path, query and headers; the finished path.
    fn parameters(&mut self, path: &str) -> String {
        let mut filled: Vec<(String, String)> = Vec::new();
        let mut query: Vec<String> = Vec::new();
        let mut optional: Vec<&str> = Vec::new();
        for parameter in self.all_parameters() {
            let field = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, place) = (field("name"), field("in"));
            let required = parameter.get("required") == Some(&Value::Bool(true));
            let example = self.refs.example(parameter);
            if place != "path" && !required && example.is_none() {
                optional.push(name);
                continue;
            }
            match place {
                "path" => filled.push((name.to_owned(), self.value(parameter, example))),
                "query" => query.extend(self.query(name, parameter, example)),
                "header" => {
                    let value = self.value(parameter, example);
                    let ours = ["accept", "content-type", "authorization"];
                    if !ours.contains(&&*name.to_ascii_lowercase()) {
                        self.step.header(name, Text(value), true);
                    }
                }
                _ => {
                    self.step.notes.push(format!("Left out: the parameter {name:?} in a {place}."))
                }
            }
        }
        if !optional.is_empty() {
            self.step.notes.push(format!("Not sent, as not required: {}.", optional.join(", ")));
        }
        let mut path = fill_path(path, &filled, &mut self.step.notes);
        if !query.is_empty() {
            path.push('?');
            path.push_str(&query.join("&"));
        }
        path
    }

    /// Parameters of the operation and of its path; the operation's own go first.
    fn all_parameters(&self) -> Vec<&'d Value> {
        let mut all: Vec<&Value> = Vec::new();
        for holder in [self.operation, self.item] {
            let list = holder.get("parameters").and_then(Value::as_array);
            for parameter in list.into_iter().flatten().filter_map(|one| self.refs.resolve(one)) {
                let same = |there: &&Value| {
                    there.get("name") == parameter.get("name")
                        && there.get("in") == parameter.get("in")
                };
                if !all.iter().any(same) {
                    all.push(parameter);
                }
            }
        }
        all
    }

    fn value(&self, parameter: &'d Value, example: Option<&'d Value>) -> String {
        match (example, parameter.get("schema")) {
            (Some(example), _) => plain_text(example),
            (None, Some(schema)) => self.refs.plain(schema),
            (None, None) => "text".into(),
        }
    }

    fn query(&self, name: &str, parameter: &'d Value, example: Option<&'d Value>) -> Vec<String> {
        let mut key = String::new();
        wellspring_load::scenario::template::percent(name, &mut key, false);
        let explode = parameter.get("explode") != Some(&Value::Bool(false));
        let values = match example {
            Some(Value::Array(items)) if explode => items.iter().map(plain_text).collect(),
            _ => vec![self.value(parameter, example)],
        };
        values.into_iter().map(|value| format!("{key}={}", safe_value(&value))).collect()
    }

    fn body(&mut self) {
        let body = self.operation.get("requestBody").and_then(|body| self.refs.resolve(body));
        let Some(content) = body.and_then(|body| body.get("content")).and_then(Value::as_object)
        else {
            return;
        };
        let is_json = |kind: &str| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind == "application/json" || kind.ends_with("+json")
        };
        let json = content.iter().find(|(kind, _)| is_json(kind));
        let Some((kind, media)) = json.or_else(|| content.iter().next()) else { return };
        self.step.header("content-type", literal(kind), true);
        let example = self.refs.example(media);
        if json.is_some() {
            let text = match (example, media.get("schema")) {
                (Some(example), _) => literal(&example.to_string()).0,
                (None, Some(schema)) => self.refs.json(schema),
                (None, None) => "{}".into(),
            };
            self.step.body = DraftBody::Json(Text(text));
        } else if let Some(Value::String(text)) = example {
            self.step.body = DraftBody::Plain(text.clone());
        } else {
            self.step.notes.push(format!(
                "Left out: the body of type {kind:?}; write it as `body` or `body_file`."
            ));
        }
    }

    fn statuses(&mut self) {
        let responses = self.operation.get("responses").and_then(Value::as_object);
        for status in responses.into_iter().flatten().map(|(status, _)| status) {
            let number = status.parse::<u16>().ok().filter(|n| (200..400).contains(n));
            match status.as_str() {
                "2XX" | "2xx" => self.step.statuses.push("\"2xx\"".into()),
                "3XX" | "3xx" => self.step.statuses.push("\"3xx\"".into()),
                _ => self.step.statuses.extend(number.map(|n| n.to_string())),
            }
        }
    }
}

/// The path with values in place of `{name}`.
fn fill_path(path: &str, values: &[(String, String)], notes: &mut Vec<String>) -> String {
    let mut filled = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('{') {
        let Some(end) = rest[at..].find('}') else { break };
        filled.push_str(&url::safe_path(&rest[..at])[usize::from(!rest[..at].starts_with('/'))..]);
        let name = &rest[at + 1..at + end];
        match values.iter().find(|(there, _)| there == name) {
            Some((_, value)) if !value.is_empty() => filled.push_str(&safe_value(value)),
            _ => {
                notes.push(format!("The path's {name:?} is not described; \"1\" is sent."));
                filled.push('1');
            }
        }
        rest = &rest[at + end + 1..];
    }
    let tail = url::safe_path(rest);
    let made_up_slash = !rest.starts_with('/') && !filled.is_empty();
    filled.push_str(&tail[usize::from(made_up_slash)..]);
    if !filled.starts_with('/') {
        filled.insert(0, '/');
    }
    filled
}

/// A value percent-encoded but for its placeholders, which encode themselves.
fn safe_value(value: &str) -> String {
    let mut safe = String::new();
    let pieces = wellspring_load::scenario::template::cut(
        value,
        wellspring_load::scenario::template::Place::Path,
    );
    for piece in pieces.unwrap_or_default() {
        match piece {
            wellspring_load::scenario::template::Piece::Text(text) => {
                wellspring_load::scenario::template::percent(&text, &mut safe, false);
            }
            wellspring_load::scenario::template::Piece::Placeholder(name, _) => {
                safe.push_str(&format!("{{{{{name}}}}}"));
            }
        }
    }
    safe
}
