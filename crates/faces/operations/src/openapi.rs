//! The OpenAPI 3.1 document, made only from the routes and their contracts: it knows none by name.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use wellspring_host::access::Needs;
use wellspring_host::http::contract::{AnswerContract, HISTORY, MIN_POSITION, Media, Presence};
use wellspring_host::http::declared_problems::REDIRECTED;
use wellspring_host::http::routes::{Entry, Route, Routes, Scope};
use wellspring_host::http::{Answer, Host, Request, Response, SVG};
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{Kind, Retry};

/// The schemas of bodies and answers, by name.
const SCHEMAS: &str = include_str!("schemas.json");

/// `GET /openapi.json`.
pub(crate) async fn document(host: Arc<Host>, _request: Box<Request>) -> Answer {
    static DOCUMENTS: [OnceLock<Bytes>; 2] = [OnceLock::new(), OnceLock::new()];
    let dev = host.config.dev_endpoints;
    let bytes =
        DOCUMENTS[usize::from(dev)].get_or_init(|| build(&host.routes, dev).to_string().into());
    Ok(Response::json(200, bytes.clone()))
}

/// The document of these routes; `dev` includes those that need `--dev-endpoints`.
pub fn build(routes: &Routes, dev: bool) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut problems = Problems::default();
    let served = |entry: &&Entry| dev || entry.route.scope != Scope::Dev;
    for Entry { face, route } in routes.iter().filter(served) {
        let mut add = |path: &str| {
            let methods = paths.entry(path).or_insert_with(|| json!({}));
            methods[route.method.to_lowercase()] = operation(face.name, route, path, &mut problems);
        };
        add(route.path);
        if route.scope == Scope::Log {
            add(&route.path.replacen("/v1/", "/v1/logs/{log}/", 1));
        }
    }
    let mut schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    schemas["Problem"]["properties"]["type"]["enum"] = json!(types(routes.kinds()));
    let components = json!({
        "schemas": schemas, "responses": problems.responses, "securitySchemes": security_schemes(),
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Wellspring",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "An event store with dynamic consistency boundaries. /v1/x is short for /v1/logs/main/x."
        },
        "paths": paths,
        "components": components,
    })
}

fn operation(face: &str, route: &Route, path: &str, problems: &mut Problems) -> Value {
    let mut responses = Map::new();
    for gives in route.contract.gives {
        responses.insert(gives.status.to_string(), answer(route, gives));
    }
    for kinds in route.problems().chunk_by(|a, b| a.status == b.status) {
        responses.insert(kinds[0].status.to_string(), problems.reference(kinds));
    }
    // Answers before a request is parsed: it arrived too slowly, or over too many connections.
    if route.is_for_leader() {
        let told = "Another node leads; send the request to `Location` (--follower-writes \
                    redirect)";
        responses.insert(REDIRECTED.to_string(), json!({"description": told}));
    }
    responses.insert("default".to_owned(), problems.any());
    let mut operation = json!({
        "tags": [face],
        "summary": route.what,
        "operationId": operation_id(route.method, path),
        "responses": responses,
    });
    let parameters = parameters(route, path);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(takes) = &route.contract.takes {
        let required = takes.presence == Presence::Required;
        operation["requestBody"] = json!({"required": required, "content": content(takes.media)});
    }
    if route.needs != Needs::Public {
        operation["security"] = match route.needs {
            Needs::Node => json!([{"node": []}]),
            // None at all while there are no accounts.
            _ => json!([{"bearer": []}, {"apiKey": []}, {"basic": []}, {}]),
        };
        operation["x-wellspring-needs"] = json!(route.needs.to_string());
    }
    operation
}

/// The problem responses, each set of types once, as many routes share them.
#[derive(Default)]
struct Problems {
    /// By name, as components.
    responses: Map<String, Value>,
    /// The sets in order of appearance.
    sets: Vec<Vec<&'static str>>,
}

impl Problems {
    /// A reference to the response with these types, which have one status.
    fn reference(&mut self, kinds: &[&'static Kind]) -> Value {
        let slugs: Vec<&str> = kinds.iter().map(|kind| kind.slug).collect();
        let known = self.sets.iter().position(|set| *set == slugs);
        let place = known.unwrap_or(self.sets.len());
        let name = format!("Problem{}-{place}", kinds[0].status);
        if known.is_none() {
            let titles: Vec<&str> = kinds.iter().map(|kind| kind.title).collect();
            let schema = json!({
                "$ref": "#/components/schemas/Problem",
                "properties": {"type": {"enum": types(kinds)}, "status": {"const": kinds[0].status}},
            });
            let mut response = problem_response(&titles.join(". "), &schema);
            let waits = |kind: &&Kind| {
                matches!(kind.retry, Retry::Seconds(_)) || matches!(kind.status, 429 | 503)
            };
            if kinds.iter().any(waits) {
                response["headers"]["Retry-After"] = json!({
                    "description": "Seconds after which a retry may help.", "schema": {"type": "integer"}
                });
            }
            self.responses.insert(name.clone(), response);
            self.sets.push(slugs);
        }
        json!({"$ref": format!("#/components/responses/{name}")})
    }

    /// A reference to the response with any type.
    fn any(&mut self) -> Value {
        let any = || problem_response("A problem (RFC 9457)", &reference("Problem"));
        self.responses.entry("Problem").or_insert_with(any);
        json!({"$ref": "#/components/responses/Problem"})
    }
}

fn problem_response(what: &str, schema: &Value) -> Value {
    json!({"description": what, "content": {"application/problem+json": {"schema": schema}}})
}

/// The URIs of problem types.
fn types(kinds: &[&Kind]) -> Vec<String> {
    kinds.iter().map(|kind| format!("/problems/{}", kind.slug)).collect()
}

/// How credentials are sent.
fn security_schemes() -> Value {
    json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "A token of POST /auth/token, or an API key."},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "basic": {"type": "http", "scheme": "basic"},
        "node": {"type": "apiKey", "in": "header", "name": "Wellspring-Node", "description": "Signed with the cluster key; only other nodes send it."}
    })
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method.to_lowercase(), |id, word| format!("{id}_{word}"))
}

fn parameters(route: &Route, path: &str) -> Vec<Value> {
    let contract = &route.contract;
    let parameter = |name: &str, place: &str, what: &str, schema: Value| json!({"name": name, "in": place, "description": what, "schema": schema});
    let mut all = Vec::new();
    let mut in_path = |name: &str, what: &str, schema: Value| {
        let mut segment = parameter(name, "path", what, schema);
        segment["required"] = json!(true);
        all.push(segment);
    };
    if path.starts_with("/v1/logs/{log}/") {
        in_path("log", "Name of the log.", json!({"type": "string"}));
    }
    for segment in contract.segments.into_iter().flatten() {
        in_path(segment.name(), segment.what(), schema(segment.values(), &[]));
    }
    for param in contract.known().iter() {
        let schema = schema(param.values(), &param.words());
        all.push(parameter(param.name(), "query", param.what(), schema));
    }
    let waits = !contract.known().shared.is_empty() && route.scope != Scope::Node;
    for header in contract
        .headers
        .iter()
        .copied()
        .chain(waits.then_some(&MIN_POSITION))
        .chain(route.is_about_a_log().then_some(&HISTORY))
    {
        all.push(parameter(header.name, "header", header.what, schema(header.values, &[])));
    }
    all
}

/// Values as JSON Schema.
fn schema(values: Values, words: &[&str]) -> Value {
    match values {
        Values::Text(None) => json!({"type": "string"}),
        Values::Text(Some(format)) => json!({"type": "string", "format": format}),
        Values::Matching(pattern) => json!({"type": "string", "pattern": pattern}),
        Values::Json => json!({"type": "string", "contentMediaType": "application/json"}),
        Values::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Values::Words { default } => json!({"enum": words, "default": default}),
        Values::Integer { least, most, default } => {
            let mut schema = json!({"type": "integer", "minimum": least});
            if most < u64::MAX {
                schema["maximum"] = json!(most);
            }
            if let Some(default) = default {
                schema["default"] = json!(default);
            }
            schema
        }
    }
}

fn answer(route: &Route, gives: &AnswerContract) -> Value {
    let mut answer = json!({"description": route.what});
    let mut header = |name: &str, what: &str, schema: Value| {
        answer["headers"][name] = json!({"description": what, "schema": schema});
    };
    if route.scope != Scope::Node {
        let what = "The position the answer reflects";
        header("Wellspring-Position", what, json!({"type": "integer"}));
        let what = "The history of the log";
        header("Wellspring-History", what, json!({"type": "string"}));
    }
    for given in gives.headers {
        header(given.name, given.what, schema(given.values, &[]));
    }
    if !gives.media.is_empty() {
        answer["content"] = content(gives.media);
    }
    answer
}

/// Media types with their schemas.
fn content(media: Media) -> Value {
    let of = |&(media, name): &(&str, &str)| {
        let is_text = media.starts_with("text/") || media == SVG;
        let schema = match name {
            "" if is_text => json!({"type": "string"}),
            "" => json!({}),
            name => reference(name),
        };
        (media.to_owned(), json!({"schema": schema}))
    };
    Value::Object(media.iter().map(of).collect())
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
