//! Imports from end to end, against a server that remembers keys.

use super::*;
use crate::cli::exit::Code;
use crate::cli::test_server::{Reply, TestServer};
use clap::Parser;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ImportArgs,
}

/// Bodies by key, and their keys in order.
type Kept = Arc<Mutex<(HashMap<String, Vec<u8>>, Vec<String>)>>;

fn server() -> (TestServer, Kept) {
    let kept = Kept::default();
    let memory = Arc::clone(&kept);
    let server = TestServer::start(move |request, _| {
        if request.method == "GET" {
            return Reply::json(200, "{\"head\":0}");
        }
        let mut kept = memory.lock().unwrap();
        let key = request.header("idempotency-key").to_owned();
        let replayed = match kept.0.get(&key) {
            Some(body) if *body == request.body => true,
            Some(_) => {
                return Reply::json(422, r#"{"type":"/problems/idempotency-key-reused"}"#);
            }
            None => false,
        };
        if !replayed {
            kept.0.insert(key.clone(), request.body.clone());
            kept.1.push(key);
        }
        Reply::json(200, &format!("{{\"first\":1,\"last\":1,\"head\":1,\"replayed\":{replayed}}}"))
    });
    (server, kept)
}

fn import(server: &TestServer, file: &std::path::Path, more: &[&str]) -> Result<(), Failure> {
    let file = file.to_str().unwrap();
    let line = [&["x", file, "--url", server.url()], more].concat();
    run(&Line::try_parse_from(line).unwrap().args)
}

fn lines(count: usize) -> String {
    (0..count).map(|i| format!("{{\"type\":\"T\",\"data\":{i}}}\n")).collect()
}

#[test]
fn a_second_run_adds_nothing_and_a_grown_file_is_noticed() {
    let (server, kept) = server();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    std::fs::write(&file, lines(2500)).unwrap();
    import(&server, &file, &[]).unwrap();
    import(&server, &file, &[]).unwrap();
    assert_eq!(kept.lock().unwrap().1.len(), 3);
    std::fs::write(&file, lines(2600)).unwrap();
    let failure = import(&server, &file, &[]).unwrap_err();
    assert_eq!(failure.code, Code::Data);
    assert!(failure.message.contains("lines 2001–2600"), "{}", failure.message);
    import(&server, &file, &["--import-id", "again"]).unwrap();
    assert_eq!(kept.lock().unwrap().1.len(), 6);
}

#[test]
fn order_is_the_files_and_nothing_is_lost() {
    let (server, kept) = server();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    std::fs::write(&file, lines(95)).unwrap();
    import(&server, &file, &["--batch", "10"]).unwrap();
    let kept = kept.lock().unwrap();
    let mut numbers = Vec::new();
    for key in &kept.1 {
        let body: serde_json::Value = serde_json::from_slice(&kept.0[key]).unwrap();
        numbers
            .extend(body["events"].as_array().unwrap().iter().map(|e| e["data"].as_u64().unwrap()));
    }
    assert_eq!(numbers, (0..95).collect::<Vec<_>>());
}

#[test]
fn a_bad_line_stops_the_import_and_a_mended_one_lets_it_go_on() {
    let (server, kept) = server();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    let good = lines(30);
    let bad = good.replace("{\"type\":\"T\",\"data\":25}", "{\"type\":\"\",\"data\":25}");
    std::fs::write(&file, bad).unwrap();
    let failure = import(&server, &file, &["--batch", "10"]).unwrap_err();
    assert_eq!(failure.code, Code::Data);
    assert!(failure.message.contains("line 26: type: must not be empty"), "{}", failure.message);
    assert_eq!(kept.lock().unwrap().1.len(), 2);
    std::fs::write(&file, good).unwrap();
    import(&server, &file, &["--batch", "10"]).unwrap();
    assert_eq!(kept.lock().unwrap().1.len(), 3);
}

#[test]
fn bad_lines_can_be_passed_over() {
    let (server, kept) = server();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.csv");
    std::fs::write(&file, "a,b\n1,2\nx\n3,4\n").unwrap();
    let csv = ["--type", "Row", "--tag", "a", "--skip-invalid"];
    import(&server, &file, &csv).unwrap();
    let kept = kept.lock().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&kept.0[&kept.1[0]]),
        r#"{"events":[{"type":"Row","tags":["a:1"],"data":{"a":1,"b":2}},{"type":"Row","tags":["a:3"],"data":{"a":3,"b":4}}]}"#
    );
}

#[test]
fn many_connections_send_everything_and_stop_together() {
    let (server, kept) = server();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    std::fs::write(&file, lines(1000)).unwrap();
    import(&server, &file, &["--batch", "10", "--connections", "4"]).unwrap();
    assert_eq!(kept.lock().unwrap().1.len(), 100);
    let refusing = TestServer::start(|request, _| match request.method.as_str() {
        "GET" => Reply::json(200, "{}"),
        _ => Reply::json(422, r#"{"detail":"no"}"#),
    });
    let failure = import(&refusing, &file, &["--batch", "10", "--connections", "4"]).unwrap_err();
    assert_eq!(failure.code, Code::Data);
}

#[test]
fn exit_codes_tell_what_kind_of_trouble() {
    let (server, _) = server();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    };
    let file = write("a.json", "{}");
    assert_eq!(import(&server, &file, &[]).unwrap_err().code, Code::Usage);
    let file = write("a.ndjson", "{}");
    assert_eq!(import(&server, &file, &["--type", "T"]).unwrap_err().code, Code::Usage);
    assert_eq!(import(&server, &file, &["--dry-run"]).unwrap_err().code, Code::Data);
    let file = write("a.csv", "a\n1\n");
    assert_eq!(import(&server, &file, &[]).unwrap_err().code, Code::Data);
    let gone = dir.path().join("gone.csv");
    assert_eq!(import(&server, &gone, &[]).unwrap_err().code, Code::NoInput);
    let no_log = TestServer::start(|_, _| Reply::json(404, ""));
    let file = write("b.ndjson", &lines(1));
    assert_eq!(import(&no_log, &file, &[]).unwrap_err().code, Code::Usage);
    assert_eq!(import(&no_log, &file, &["--dry-run"]), Ok(()));
}
