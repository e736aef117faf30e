//! A log whose last files are gone leaves no damage. An index, a snapshot of a view or a backup
//! that knows more tells: the server does not start, so that it gives no position twice, and the
//! tools say what is missing and bring it back.

use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SMALL: &[&str] = &["--segment-bytes", "65536", "--scrub-bytes-per-s", "0"];
/// More events than justify a snapshot of a view when the server stops.
const EVENTS: u64 = 10_500;

fn tool(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wellspring")).args(words).output().unwrap()
}

/// Runs a tool; returns its exit code and everything that it said.
fn told(words: &[&str]) -> (Option<i32>, String) {
    let output = tool(words);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout) + &text(output.stderr))
}

/// The files of the log main with this suffix, in order.
fn files(data: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("logs/main")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == suffix)).collect();
    found.sort();
    found
}

fn append(server: &Server, count: u64) {
    let mut client = server.client();
    for _ in 0..count / 500 {
        let event = json!({"type": "T", "tags": ["a:1"], "data": "x".repeat(60)});
        let events = vec![event; 500];
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
}

fn head(server: &Server) -> Value {
    server.client().get("/v1/head").unwrap().expect(200)["head"].clone()
}

#[test]
fn a_log_that_has_lost_its_last_segments_does_not_start_and_a_backup_brings_them_back() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let (data_word, place_word) = (data.to_str().unwrap(), place.to_str().unwrap());
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, EVENTS);
    let (code, said) = told(&["backup", "--url", &server.url(), "--to", place_word]);
    assert_eq!(code, Some(0), "{said}");
    assert!(server.terminate().success());
    drop(server);
    assert!(data.join("logs/main/views/links.snapshot").exists());
    let both = ["verify", "--backup", place_word, "--data", data_word];
    let (code, said) = told(&both);
    assert_eq!(code, Some(0), "{said}");
    let (segments, indexes) = (files(&data, "seg"), files(&data, "idx"));
    assert!(segments.len() > 8 && !indexes.is_empty(), "{segments:?}");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data_word];
    let verify = ["verify", "--data", data_word];
    // An index covers more than there is.
    let aside = dir.path().join("aside");
    fs::create_dir(&aside).unwrap();
    let take = |paths: &[PathBuf]| {
        for path in paths {
            fs::rename(path, aside.join(path.file_name().unwrap())).unwrap();
        }
    };
    take(&segments[segments.len() - 1..]);
    for words in [&serve[..], &verify] {
        let (code, said) = told(words);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("segments after it are missing"), "{said}");
    }
    // No index is left: a snapshot of a view knows.
    take(&segments[segments.len() - 3..segments.len() - 1]);
    take(&indexes);
    let (code, said) = told(&serve);
    assert_eq!(code, Some(1), "{said}");
    for part in ["it had 10500 events", "links.snapshot", "wellspring mend"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = told(&verify);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it had 10500 events") && said.contains("NOT SOUND"), "{said}");
    // No snapshot either: only the backup knows.
    fs::remove_dir_all(data.join("logs/main/views")).unwrap();
    let (code, said) = told(&verify);
    assert_eq!(code, Some(0), "nothing tells: {said}");
    let (code, said) = told(&both);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("has events up to 10500"), "{said}");
    let mend = ["mend", "--from", place_word, "--data", data_word, "--log", "main"];
    let (code, said) = told(&mend);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("sound: every event is present"), "{said}");
    let (code, said) = told(&both);
    assert_eq!(code, Some(0), "{said}");
    let server = Server::start_alone(None, &[], &data, SMALL);
    assert_eq!(head(&server), json!(EVENTS));
}

/// With delayed barriers a power loss takes the end, as the operator accepts: the server says so
/// and goes on. A log of another history is not compared.
#[test]
fn what_may_be_lost_by_the_settings_is_said_and_no_reason_against_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let place_word = place.to_str().unwrap();
    let mut server = Server::start_alone(None, &[], &data, SMALL);
    append(&server, EVENTS);
    let (code, said) = told(&["backup", "--url", &server.url(), "--to", place_word]);
    assert_eq!(code, Some(0), "{said}");
    assert!(server.terminate().success());
    drop(server);
    let (segments, indexes) = (files(&data, "seg"), files(&data, "idx"));
    for path in segments[segments.len() - 2..].iter().chain(&indexes) {
        fs::remove_file(path).unwrap();
    }
    let delayed = [SMALL, &["--sync", "interval=100"]].concat();
    let server = Server::start_alone(None, &[], &data, &delayed);
    server.logged(&["the log has lost its last events", "links.snapshot"]);
    assert!(head(&server).as_u64().unwrap() < EVENTS);
    drop(server);
    let other = dir.path().join("other");
    let (code, said) = told(&["restore", "--from", place_word, "--data", other.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    let both = ["verify", "--backup", place_word, "--data", other.to_str().unwrap()];
    let (code, said) = told(&both);
    assert_eq!(code, Some(0), "{said}");
}
