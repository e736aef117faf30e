//! The OpenAPI document of all faces.

use serde_json::{Value, json};
use wellspring_face_operations::{openapi, problem_page};
use wellspring_host::access::Needs;

#[test]
fn every_reference_resolves_and_every_route_is_there() {
    let routes = super::routes(true);
    let document = openapi::build(&routes, true);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    let answers = document["components"]["responses"].as_object().unwrap();
    for reference in text.split("#/components/responses/").skip(1) {
        assert!(answers.contains_key(reference.split('"').next().unwrap()), "{reference:.40}");
    }
    for entry in routes.iter() {
        let route = entry.route;
        let operation = &document["paths"][route.path][route.method.to_lowercase()];
        assert!(operation.is_object(), "{} {}", route.method, route.path);
        let is_public = operation["security"].is_null();
        assert_eq!(is_public, route.needs == Needs::Public, "{} {}", route.method, route.path);
    }
    assert!(document["paths"]["/v1/logs/{log}/append"]["post"].is_object());
    assert!(openapi::build(&routes, false)["paths"].get("/cleanup").is_none());
}

/// Faults of `value` against the members of a schema that the schemas of problems use.
fn faults(schemas: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().expect("a name");
        return faults(schemas, &schemas[name], value, place);
    }
    let mut found = Vec::new();
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some(other) => panic!("{place}: the type {other} is not checked here"),
        None => true,
    };
    let named = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    if !fits || !named {
        found.push(format!("{place} is {value}, against {schema}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().expect("a name")).is_none() {
            found.push(format!("{place} lacks {name}"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(member) = value.get(name) {
            found.extend(faults(schemas, schema, member, &format!("{place}.{name}")));
        }
    }
    found
}

#[test]
fn every_kind_of_problem_is_explained_with_an_example_that_validates() {
    let routes = super::routes(true);
    let document = openapi::build(&routes, true);
    let schemas = &document["components"]["schemas"];
    for kind in routes.kinds() {
        for text in [kind.meaning, kind.remedy] {
            assert!(text.ends_with('.') && text.len() > 10, "{}: {text}", kind.slug);
        }
        let page: Value = serde_json::from_slice(&problem_page::page_json(kind)).expect("JSON");
        let found = faults(schemas, &schemas["ProblemType"], &page, kind.slug);
        assert!(found.is_empty(), "{found:?}");
        let example = &page["example"];
        assert_eq!((&example["type"], &example["title"]), (&page["type"], &page["title"]));
        assert!(example["detail"].as_str().is_some_and(|detail| detail.len() > 5), "{example}");
    }
}

#[test]
fn an_example_against_the_schema_is_found() {
    let routes = super::routes(true);
    let document = openapi::build(&routes, true);
    let schemas = &document["components"]["schemas"];
    let bad = json!({"type": "/problems/unheard-of", "title": 1, "status": 400, "retry": "no"});
    let found = faults(schemas, &schemas["Problem"], &bad, "bad");
    assert_eq!(found.len(), 3, "type, title and the missing detail: {found:?}");
}

#[test]
fn the_page_of_problem_types_in_the_manual_is_that_of_the_server() {
    let page = include_str!("../../../../docs/problems.md");
    let made = problem_page::manual(super::routes(true).kinds());
    assert!(page == made, "docs/problems.md is to be:\n\n{made}");
}
