//! The fast paths of all faces: their needs, and the equality of both stacks.

use crate::start;
use std::sync::Arc;
use wellspring_face_links::view::Code;
use wellspring_host::access::Needs;
use wellspring_host::fast::{FastRoute, ServingThread, Stack};
use wellspring_host::http::Content;
use wellspring_host::lean::both_stacks::{BothStacks, SentRequest};
use wellspring_host::view::State;
use wellspring_host::wire::problem;

#[test]
#[allow(clippy::disallowed_methods)] // it waits
fn both_stacks_say_the_same_of_every_fast_path() {
    let dir = tempfile::tempdir().unwrap();
    let server = start::for_tests(dir.path(), &[]);
    let host = &server.host;
    // Until its view is ready, the general stack answers redirects.
    while host.node.views().iter().any(|(.., progress)| progress.state != State::Live) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let mut stacks = BothStacks::new(host, &[]);
    let sent = |method, target, more: &[(&'static str, &'static str)], content| SentRequest {
        method,
        target,
        headers: more.to_vec(),
        content,
    };
    let json = ("Content-Type", "application/json");
    for (status, sent) in [
        (404, sent("GET", "/never", &[], "")),
        (404, sent("GET", "/never2", &[], "")),
        (400, sent("POST", "/e", &[json], "{")),
        (422, sent("POST", "/e?colour=red", &[], "{}")),
        (422, sent("POST", "/e", &[("Idempotency-Key", "k")], "{}")),
        (415, sent("POST", "/e", &[("Content-Encoding", "gzip")], "{}")),
        (404, sent("POST", "/v1/logs/other/e", &[], "{}")),
        (200, sent("GET", "/lookup", &[], "")),
        (304, sent("GET", "/lookup", &[("If-None-Match", "\"c1\", *")], "")),
        (200, sent("GET", "/lookup/7", &[], "")),
        (200, sent("GET", "/lookup/999999999", &[("Wellspring-Min-Position", "0")], "")),
        (200, sent("GET", "/search/word", &[], "")),
        (404, sent("GET", "/v1/catalogue/items/7", &[], "")),
        // Last, because views follow the log: a position would differ between the two answers.
        (202, sent("POST", "/e", &[], "{}")),
        (202, sent("POST", "/e?type=T&tag=t&ack=accepted", &[json], "{}")),
    ] {
        let (lean, general) = stacks.ask(&sent);
        assert_eq!(lean, general, "{} {}", sent.method, sent.target);
        assert_eq!(lean.0, status, "{} {}: {}", sent.method, sent.target, lean.2);
    }
}

#[test]
fn every_fast_path_needs_what_its_route_needs() {
    let dir = tempfile::tempdir().unwrap();
    let server = start::for_tests(dir.path(), &[]);
    let host = &server.host;
    let thread = ServingThread::new(Stack::Lean, Arc::new(|| {}));
    for mut path in host.faces.fast_paths().iter().map(|make| make(&thread)) {
        let FastRoute { method, path: pattern } = path.route();
        let name = host.routes.name_of(method, pattern);
        assert_eq!(name.path, Some(pattern), "no face declares {method} {pattern}");
        let route = host.routes.at(name.index).route;
        let target = pattern.replace("{code}", "abc").replace("{item}", "7").replace("{word}", "a");
        let claim = path.claim(method, &target).expect("its own route");
        assert_eq!(claim.role.map_or(Needs::Public, Needs::Role), route.needs, "{pattern}");
        let problem = || problem::NOT_FOUND.because("nothing");
        let by_face = (host.routes.at(name.index).face.render)(problem());
        let Content::Full(by_face) = by_face.content else { panic!("a stream of problems") };
        assert_eq!(path.render(problem()).to_json(), by_face, "{pattern}");
    }
}

#[test]
fn reserved_words_are_no_links_in_any_mix_of_cases() {
    let dir = tempfile::tempdir().unwrap();
    let server = start::for_tests(dir.path(), &[]);
    let thread = ServingThread::new(Stack::Lean, Arc::new(|| {}));
    let paths = server.host.faces.fast_paths();
    let mut paths = paths.iter().map(|make| make(&thread));
    let redirects = paths.find(|path| path.route().path == "/{code}").unwrap();
    for word in super::reserved_words().filter(|word| Code::parse(word.as_bytes()).is_some()) {
        let upper = word.to_ascii_uppercase();
        assert!(!redirects.accepts(word.as_bytes()), "{word}");
        assert!(!redirects.accepts(upper.as_bytes()), "{upper}");
    }
    for code in ["Yci", "0123456789", "healthy", "h", "HEALTHZ", "zzzzzzzzzz"] {
        assert!(!super::is_reserved(code), "{code}");
        assert!(redirects.accepts(code.as_bytes()), "{code}");
    }
}
