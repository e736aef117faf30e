//! The OpenAPI document of all faces.

use wellspring_face_operations::openapi;
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

#[test]
fn every_kind_of_problem_is_explained() {
    for kind in super::routes(true).kinds() {
        for text in [kind.meaning, kind.remedy] {
            assert!(text.ends_with('.') && text.len() > 10, "{}: {text}", kind.slug);
        }
    }
}
