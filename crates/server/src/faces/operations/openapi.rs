//! The OpenAPI 3.1 document, made from the route table.

use crate::access::Needs;
use crate::http::routes::{Entry, Route, Routes, Scope};
use crate::http::{Answer, Host, Request, Response};
use crate::wire::problem;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// What the bodies and answers look like, by name.
const SCHEMAS: &str = include_str!("schemas.json");

/// Schemas of bodies that may be left out.
const OPTIONAL_BODIES: [&str; 3] = ["Logout", "RotateSecret", "KeyRotation"];

/// `GET /openapi.json`.
pub(crate) async fn document(host: Arc<Host>, _request: Box<Request>) -> Answer {
    static DOCUMENTS: [OnceLock<Bytes>; 2] = [OnceLock::new(), OnceLock::new()];
    let dev = host.config.dev_endpoints;
    let bytes =
        DOCUMENTS[usize::from(dev)].get_or_init(|| build(&host.routes, dev).to_string().into());
    Ok(Response::json(200, bytes.clone()))
}

fn build(routes: &Routes, dev: bool) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let served = |entry: &&Entry| dev || entry.route.scope != Scope::Dev;
    for Entry { face, route } in routes.iter().filter(served) {
        let mut add = |path: &str| {
            let methods = paths.entry(path).or_insert_with(|| json!({}));
            methods[route.method.to_lowercase()] = operation(face.name, route, path);
        };
        add(route.path);
        if route.scope == Scope::Log {
            add(&route.path.replacen("/v1/", "/v1/logs/{log}/", 1));
        }
    }
    let mut schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    let slugs: Vec<String> = problem::ALL.iter().map(|k| format!("/problems/{}", k.slug)).collect();
    schemas["Problem"]["properties"]["type"]["enum"] = json!(slugs);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Wellspring",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "An event store with dynamic consistency boundaries. /v1/x is short for /v1/logs/main/x."
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security_schemes()},
    })
}

fn operation(face: &str, route: &Route, path: &str) -> Value {
    let mut operation = json!({
        "summary": route.what,
        "operationId": operation_id(route.method, path),
        "responses": {
            success(route): answer(route),
            "default": {
                "description": "A problem (RFC 9457)",
                "content": {"application/problem+json": {"schema": reference("Problem")}}
            }
        }
    });
    let parameters = parameters(face, route, path);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if !route.takes.is_empty() {
        let mut content = json!({"application/json": {"schema": reference(route.takes)}});
        match route.path {
            "/v1/append" => {
                content["application/x-ndjson"] = json!({"schema": reference("EventToAppend")})
            }
            "/v1/import" => {
                content = json!({"application/x-ndjson": {"schema": reference("EventToAppend")}})
            }
            "/auth/token" => {
                content["application/x-www-form-urlencoded"] =
                    json!({"schema": reference("LoginForm")})
            }
            "/api/urls" => {
                content["application/x-ndjson"] = json!({"schema": reference("LinkToCreate")})
            }
            _ => {}
        }
        if route.gives == "Taken" {
            content["application/x-ndjson"] = json!({"schema": {}});
            content["application/octet-stream"] = json!({"schema": {}});
        }
        let required = !OPTIONAL_BODIES.contains(&route.takes);
        operation["requestBody"] = json!({"required": required, "content": content});
    }
    if route.needs != Needs::Public {
        // None at all while there are no accounts.
        operation["security"] = json!([{"bearer": []}, {"apiKey": []}, {"basic": []}, {}]);
        operation["x-wellspring-needs"] = json!(route.needs.to_string());
    }
    operation
}

/// How credentials are sent.
fn security_schemes() -> Value {
    json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "A token of POST /auth/token, or an API key."},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "basic": {"type": "http", "scheme": "basic"}
    })
}

/// The status of an answer that is not a problem.
fn success(route: &Route) -> &'static str {
    match (route.method, route.path) {
        ("POST", "/api/urls" | "/v1/accounts" | "/v1/keys" | "/v1/keys/{id}/rotate") => "201",
        ("DELETE", "/api/urls/{code}" | "/v1/keys/{id}" | "/v1/accounts/{name}") => "204",
        ("PUT", "/v1/accounts/{name}/password") => "204",
        (_, "/{code}") => "302",
        _ if route.gives == "Taken" => "202",
        _ => "200",
    }
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method.to_lowercase(), |id, word| format!("{id}_{word}"))
}

fn parameters(face: &str, route: &Route, path: &str) -> Vec<Value> {
    let in_path =
        path.split('/').filter_map(|s| s.strip_prefix('{')?.split_once('}')).map(|(name, _)| {
            let schema = match name {
                "position" => json!({"type": "integer"}),
                "code" => json!({"type": "string", "pattern": "^[A-Za-z0-9]{1,10}$"}),
                _ => json!({"type": "string"}),
            };
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        });
    let in_query = route.params.iter().map(|&name| {
        let schema = match name {
            "tag" if face == "links" => json!({"type": "string"}),
            "type" | "tag" => json!({"type": "array", "items": {"type": "string"}}),
            "revoked" => json!({"enum": ["hide", "show"]}),
            "after"
                if ["/v1/types", "/v1/tags", "/v1/accounts", "/v1/keys"].contains(&route.path) =>
            {
                json!({"type": "string"})
            }
            "invalid" => json!({"enum": ["stop", "skip"]}),
            "more" => json!({"enum": ["false", "true"]}),
            "batch" => json!({"type": "integer", "minimum": 1, "maximum": 1000}),
            "after" | "limit" | "wait_ms" | "token" => json!({"type": "integer", "minimum": 0}),
            "order" => json!({"enum": ["asc", "desc"]}),
            "bucket" => json!({"enum": ["hour", "day"]}),
            "from" | "to" => json!({"type": "string", "format": "date-time"}),
            "size" if face == "links" => {
                json!({"type": "integer", "minimum": 16, "maximum": 4096})
            }
            "consistency" if face == "links" => {
                json!({"enum": ["local", "linearizable", "cached"]})
            }
            "consistency" => json!({"enum": ["local", "linearizable"]}),
            _ => json!({"type": "string"}),
        };
        json!({"name": name, "in": "query", "schema": schema})
    });
    let header = |name: &str, what: &str| json!({"name": name, "in": "header", "description": what, "schema": {"type": "string"}});
    let mut all: Vec<Value> = in_path.chain(in_query).collect();
    if route.params.contains(&"consistency") {
        all.push(header(
            "Wellspring-Min-Position",
            "Wait until the log has reached this position.",
        ));
    }
    match (route.method, route.path) {
        ("POST", "/v1/append" | "/api/urls") => {
            all.push(header("Idempotency-Key", "A retry with it gets the first answer."))
        }
        (_, "/v1/events") => all.push(header("Last-Event-ID", "Where a subscription resumes.")),
        _ => {}
    }
    all
}

fn answer(route: &Route) -> Value {
    let header =
        json!({"schema": {"type": "integer"}, "description": "The position the answer reflects"});
    let mut answer = json!({"description": route.what});
    if route.scope != Scope::Node {
        answer["headers"] = json!({"Wellspring-Position": header});
    }
    match route.path {
        "/{code}" => {
            answer["headers"]["Location"] = json!({"schema": {"type": "string", "format": "uri"}})
        }
        "/{code}.qr" => {
            answer["content"] = json!({"image/svg+xml": {"schema": {"type": "string"}}})
        }
        _ => {}
    }
    if route.gives.is_empty() {
        return answer;
    }
    answer["content"] = json!({"application/json": {"schema": reference(route.gives)}});
    if route.gives == "Events" {
        answer["content"]["application/x-ndjson"] = json!({"schema": reference("Event")});
        answer["content"]["text/event-stream"] = json!({"schema": {"type": "string"}});
    }
    answer
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_resolves_and_every_route_is_there() {
        let routes = crate::faces::routes(true);
        let document = build(&routes, true);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name}");
        }
        for Entry { route, .. } in routes.iter() {
            let operation = &document["paths"][route.path][route.method.to_lowercase()];
            assert!(operation.is_object(), "{} {}", route.method, route.path);
            let is_public = operation["security"].is_null();
            assert_eq!(is_public, route.needs == Needs::Public, "{} {}", route.method, route.path);
        }
        assert!(document["paths"]["/v1/logs/{log}/append"]["post"].is_object());
        assert!(build(&routes, false)["paths"].get("/cleanup").is_none());
    }
}
