//! Every route obeys its contract, and the documents match.

use super::access_tests::{ask, paths};
use super::{declared, every_route};
use crate::start::for_tests;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use tempfile::TempDir;
use wellspring_host::access::Needs;
use wellspring_host::http::ANY;
use wellspring_host::http::contract::{Accept, Presence, Query};
use wellspring_host::http::routes::{Route, Scope};
use wellspring_host::http::server::Server;
use wellspring_host::wire::param::{AnyParam, Values};

/// A server without accounts, and what keeps its folder.
fn open() -> (TempDir, Arc<Server>) {
    let dir = TempDir::new().expect("a folder");
    let open = for_tests(dir.path(), &["--dev-endpoints"]);
    open.host.node.create("other").expect("another log");
    (dir, open)
}

/// The routes for clients: those for nodes only are refused before anything is checked.
fn clients_routes() -> impl Iterator<Item = &'static Route> {
    every_route().filter(|route| route.needs != Needs::Node)
}

/// The first path of a route. No test here drops or empties a log: the requests are refused.
fn path_of(route: &Route) -> String {
    paths(route).remove(0).0
}

/// The known parameters of a route, if any.
fn params(route: &Route) -> Option<Vec<&'static dyn AnyParam>> {
    match route.contract.query {
        Query::Known(known) | Query::OfFastPath(known) => Some(known.iter().collect()),
        Query::Ignored => None,
    }
}

/// Queries with an invalid value for a parameter.
fn bad(param: &dyn AnyParam) -> Vec<String> {
    let name = param.name();
    let twice = format!("{name}=1&{name}=1");
    match param.values() {
        Values::Texts => Vec::new(),
        Values::Text(None) | Values::Json | Values::Matching(_) => vec![twice],
        Values::Text(Some(_)) | Values::Words { .. } => vec![twice, format!("{name}=neverland")],
        Values::Integer { least, most, .. } => {
            let mut all =
                vec![twice, format!("{name}=-1"), format!("{name}=x"), format!("{name}=")];
            all.extend(least.checked_sub(1).map(|less| format!("{name}={less}")));
            all.extend(most.checked_add(1).map(|more| format!("{name}={more}")));
            all
        }
    }
}

#[tokio::test]
async fn every_route_refuses_parameters_that_it_does_not_declare() {
    let (_dir, open) = open();
    for route in clients_routes() {
        let told = ask(&open, route.method, &(path_of(route) + "?neverland=1"), &[]).await;
        let what = format!("{} {}: {told:?}", route.method, route.path);
        let Some(params) = params(route) else {
            assert!(!told.body.contains("neverland"), "{what}");
            continue;
        };
        assert!(told.status == 422 && told.is_problem("invalid"), "{what}");
        assert!(told.body.contains("\"field\":\"neverland\""), "{what}");
        for param in params {
            assert!(told.body.contains(param.name()), "{what}");
        }
    }
}

#[tokio::test]
async fn every_route_refuses_bad_values_and_names_the_parameter() {
    let (_dir, open) = open();
    for route in every_route() {
        for param in params(route).unwrap_or_default() {
            for bad in bad(param) {
                let told =
                    ask(&open, route.method, &format!("{}?{bad}", path_of(route)), &[]).await;
                let what = format!("{} {}?{bad}: {told:?}", route.method, route.path);
                assert!(told.status == 422 && told.is_problem("invalid"), "{what}");
                let field = format!("\"field\":\"{}\"", param.name());
                assert!(told.body.contains(&field), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn every_route_gives_what_it_offers_and_nothing_else() {
    let (_dir, open) = open();
    for route in clients_routes().filter(|route| route.contract.accept == Accept::Obeyed) {
        if route.contract.offered().is_empty() {
            continue;
        }
        let told = ask(&open, route.method, &path_of(route), &[("accept", "image/png")]).await;
        let what = format!("{} {}: {told:?}", route.method, route.path);
        assert!(told.status == 406 && told.is_problem("not-acceptable"), "{what}");
        for media in route.contract.offered() {
            assert!(told.body.contains(media), "{what}");
        }
    }
}

#[tokio::test]
async fn every_route_takes_the_media_types_that_it_declares_and_no_others() {
    let (_dir, open) = open();
    for route in clients_routes() {
        let Some(takes) = &route.contract.takes else { continue };
        for &(media, _) in takes.media {
            let media = if media == ANY { "application/octet-stream" } else { media };
            let told = ask(&open, route.method, &path_of(route), &[("content-type", media)]).await;
            assert_ne!(told.status, 415, "{} {} {media}: {told:?}", route.method, route.path);
        }
        let takes_any = takes.media.iter().any(|(media, _)| *media == ANY);
        // An empty body has no type that could be wrong.
        if takes_any || takes.presence == Presence::Optional {
            continue;
        }
        let told =
            ask(&open, route.method, &path_of(route), &[("content-type", "image/png")]).await;
        let what = format!("{} {}: {told:?}", route.method, route.path);
        // A link without a body gets "a URL is required", as clients of shorteners expect; and a
        // caller without an account has no keys, whatever is sent.
        let refused = ["unsupported-media-type", "url-required", "no-accounts"];
        assert!(refused.iter().any(|slug| told.is_problem(slug)), "{what}");
    }
}

#[test]
fn what_is_declared_is_of_one_piece() {
    for route in every_route() {
        let what = format!("{} {}", route.method, route.path);
        let segments = route.contract.segments.into_iter().flatten();
        let segments: Vec<_> = segments.map(|segment| format!("{{{}}}", segment.name())).collect();
        // The router reads the name of a log in the path of another protocol.
        let is_read = |part: &&str| route.scope != Scope::Named || *part != "{log}";
        let in_path = route.path.split('/').filter(is_read).filter(|part| part.starts_with('{'));
        let in_path = in_path.map(|part| part.split_inclusive('}').next().expect("a name"));
        assert_eq!(segments, in_path.collect::<Vec<_>>(), "{what}");
        let params = params(route).unwrap_or_default();
        let names: BTreeSet<_> = params.iter().map(|param| param.name()).collect();
        assert_eq!(names.len(), params.len(), "{what}: each name once");
        for param in params {
            if let Values::Words { default } = param.values() {
                assert!(param.words().contains(&default), "{what}: {default}");
            }
            assert!(param.what().ends_with('.'), "{what}: {} is a sentence", param.name());
        }
        assert!(!route.contract.gives.is_empty(), "{what} gives something");
    }
}

/// The table of routes in `docs/api.md`.
fn table() -> String {
    let mut out = "| route | needs | parameters | answers |\n|---|---|---|---|\n".to_owned();
    for route in declared().iter().flat_map(|face| &face.routes) {
        let names = match params(route) {
            None => "any, passed over".to_owned(),
            Some(params) => {
                let names = params.iter().map(|param| format!("`{}`", param.name()));
                names.collect::<Vec<_>>().join(" ")
            }
        };
        let gives = route.contract.gives.iter().map(|gives| gives.status.to_string());
        let dev = if route.scope == Scope::Dev { " (`--dev-endpoints`)" } else { "" };
        let needs =
            if route.needs == Needs::Public { "nothing".into() } else { route.needs.to_string() };
        writeln!(
            out,
            "| `{} {}`{dev} | {needs} | {names} | {} |",
            route.method,
            route.path,
            gives.collect::<Vec<_>>().join(" ")
        )
        .expect("a string takes it");
    }
    out
}

#[test]
fn the_table_of_routes_in_the_documentation_is_that_of_the_server() {
    let page = include_str!("../../../../docs/api.md");
    let table = table();
    let lines: BTreeSet<&str> = page.lines().collect();
    let missing: Vec<&str> = table.lines().filter(|line| !lines.contains(line)).collect();
    assert!(page.contains(&table), "docs/api.md lacks {missing:#?}; the whole table:\n\n{table}");
}
