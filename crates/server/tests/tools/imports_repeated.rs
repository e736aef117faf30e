//! `wellspring import`, and `POST /v1/import`, of events whose id comes again.

use crate::program::{ProgramOutput, program};
use crate::server::Server;
use serde_json::{Value, json};
use std::path::PathBuf;

const LINES: [(&str, &str); 1] = [("Content-Type", "application/x-ndjson")];

fn id(number: u32) -> String {
    format!("018f5c3e-9b2a-7c11-8d3e-{number:012}")
}

fn line(number: u32, data: u32) -> String {
    format!("{{\"type\":\"T\",\"data\":{data},\"id\":\"{}\"}}\n", id(number))
}

fn head(server: &Server) -> u64 {
    server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap()
}

fn import(
    server: &Server,
    dir: &tempfile::TempDir,
    name: &str,
    text: &str,
    more: &[&str],
) -> ProgramOutput {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let url = server.url();
    let words = [&["import", path.to_str().unwrap(), "--url", &url], more].concat();
    ProgramOutput::of(program(&words).output().unwrap())
}

#[test]
fn an_event_that_comes_again_is_stored_once_and_counted() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let mut lines: Vec<String> = (1..=600).map(|number| line(number, number)).collect();
    lines.insert(500, line(4, 4));
    let text = lines.concat();
    for batch in ["1000", "7"] {
        let ran = import(&server, &dir, "a.ndjson", &text, &["--batch", batch]);
        assert!(ran.err.contains("1 repeated event dropped"), "{ran:?}");
        ran.done();
        assert_eq!(head(&server), 600);
    }
    // Of another file, and in front of what is new.
    let other = [line(7, 7), line(601, 601), line(8, 8)].concat();
    let ran = import(&server, &dir, "b.ndjson", &other, &[]);
    assert!(ran.err.contains("1 added, 2 repeated events dropped"), "{ran:?}");
    assert_eq!(head(&server), 601);
}

#[test]
fn an_id_with_another_content_stops_at_its_line_or_is_skipped_and_counted() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let text =
        [line(1, 1), line(2, 2), line(3, 3), "\n".to_owned(), line(2, 9), line(4, 4)].concat();
    let ran = import(&server, &dir, "a.ndjson", &text, &[]);
    assert!(ran.err.contains("--skip-invalid"), "{ran:?}");
    ran.failed(1, "a.ndjson, line 5: ");
    assert_eq!(head(&server), 3);
    let ran = import(&server, &dir, "a.ndjson", &text, &["--skip-invalid"]);
    assert!(ran.err.contains("1 invalid line skipped"), "{ran:?}");
    assert!(ran.err.contains("Skipped line 5: "), "{ran:?}");
    ran.done();
    assert_eq!(head(&server), 4);
}

#[test]
fn the_route_says_what_it_did_with_ids_that_come_again() {
    let server = Server::start();
    let post = |query: &str, body: &str| {
        let path = format!("/v1/import{query}");
        server.client().call("POST", &path, &LINES, body.as_bytes()).unwrap()
    };
    let start = [line(1, 1), line(2, 2), line(3, 3), line(2, 2)].concat();
    let all = [start.clone(), line(4, 4), line(1, 7), line(5, 5)].concat();
    let problem = post("", &all).problem(409);
    assert_eq!(problem["type"], "/problems/event-id-reused");
    assert_eq!((&problem["line"], &problem["durable_lines"]), (&json!(6), &json!(5)));
    assert!(problem["detail"].as_str().unwrap().contains("line 1 has its id"), "{problem}");
    let answer = post("?invalid=skip", &all).expect(200);
    let counts = ["lines", "added", "known", "skipped", "repeated"].map(|name| &answer[name]);
    assert_eq!(counts, [7, 1, 4, 1, 1].map(Value::from).each_ref());
    assert_eq!(answer["faults"][0]["line"], 6);
    let again = post("?label=x", &start).expect(200);
    assert_eq!((&again["added"], &again["repeated"]), (&json!(0), &json!(4)));
    assert_eq!(head(&server), 5);
}

#[test]
fn rows_have_ids_too() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let text = format!("id,n\n{},1\n{},2\n{},1\n{},3\nx,4\n", id(1), id(2), id(1), id(2));
    let csv = ["--type", "Row", "--id-column", "id"];
    import(&server, &dir, "a.csv", &text, &csv).failed(1, "a.csv, line 5: ");
    let ran = import(&server, &dir, "a.csv", &text, &[&csv[..], &["--skip-invalid"]].concat());
    assert!(ran.err.contains("1 repeated event dropped"), "{ran:?}");
    assert!(ran.err.contains("2 invalid lines skipped"), "{ran:?}");
    for line in ["Skipped line 5: ", "Skipped line 6: id: must be a UUID"] {
        assert!(ran.err.contains(line), "{ran:?}");
    }
    ran.done();
    assert_eq!(head(&server), 2);
}
