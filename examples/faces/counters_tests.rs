//! What the face promises, over a data folder and without sockets.

use super::CounterFace;
use wellspring_server::embed::{EmbeddedFace, InProcess};

fn open(data: &std::path::Path) -> InProcess {
    InProcess::open(data, vec![EmbeddedFace::of::<CounterFace>()]).expect("a server")
}

#[test]
fn what_is_added_is_there_after_a_restart_and_nothing_falls_below_zero() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = open(dir.path());
    let answer = |status, json: &str| (status, json.to_owned());
    assert_eq!(server.ask("GET", "/counters/apples", ""), answer(200, r#"{"total":0}"#));
    assert_eq!(
        server.ask("POST", "/counters/apples", r#"{"by":3}"#),
        answer(200, r#"{"total":3}"#)
    );
    assert_eq!(server.ask("POST", "/counters/pears", r#"{"by":1}"#), answer(200, r#"{"total":1}"#));
    let (status, problem) = server.ask("POST", "/counters/apples", r#"{"by":-4}"#);
    assert!(status == 422 && problem.contains("below zero"), "{problem}");
    drop(server);
    let server = open(dir.path());
    assert_eq!(server.ask("GET", "/counters/apples", ""), answer(200, r#"{"total":3}"#));
}

#[test]
fn rubbish_is_refused_and_the_events_are_the_faces_own() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = open(dir.path());
    for content in ["", "3", "{}", r#"{"by":"3"}"#, r#"{"by":1,"of":2}"#] {
        let (status, problem) = server.ask("POST", "/counters/apples", content);
        assert!(status == 422 && problem.contains(r#""field":"by""#), "{content}: {problem}");
    }
    let event = r#"{"events":[{"type":"CounterAdded","tags":["counter:apples"],"data":{"by":9}}]}"#;
    let (status, problem) = server.ask("POST", "/v1/append", event);
    assert!(status == 422 && problem.contains("POST /counters/{name}"), "{problem}");
    assert!(server.ask("GET", "/openapi.json", "").1.contains("/counters/{name}"));
    assert_eq!(server.ask("PUT", "/counters/apples", "").0, 405);
}
