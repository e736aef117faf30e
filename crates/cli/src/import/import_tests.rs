//! Tests of error messages of an import. The rest is tested against the real
//! server (`tests/tools/imports.rs`).

use super::run::run_to;
use super::*;
use crate::exit::Code;
use clap::Parser;
use wellspring_client::test_server::{Reply, TestServer};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ImportArgs,
}

fn import(server: &TestServer, file: &std::path::Path, more: &[&str]) -> Result<(), Failure> {
    shown(server, file, more).map(drop)
}

/// What an import shows on standard output.
fn shown(server: &TestServer, file: &std::path::Path, more: &[&str]) -> Result<String, Failure> {
    let file = file.to_str().unwrap();
    let line = [&["x", file, "--url", server.url()], more].concat();
    let mut out = Vec::new();
    run_to(&Line::try_parse_from(line).unwrap().args, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn exit_codes_tell_what_kind_of_trouble() {
    let server = TestServer::start(|_, _| Reply::json(200, "{}"));
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
    assert_eq!(import(&server, &file, &[]).unwrap_err().code, Code::Usage);
    let none = ["--type", "T", "--tag", "b"];
    assert_eq!(import(&server, &file, &none).unwrap_err().code, Code::Usage);
    let file = write("b.csv", "a,a\n1,2\n");
    assert_eq!(import(&server, &file, &["--type", "T"]).unwrap_err().code, Code::Data);
    let gone = dir.path().join("gone.csv");
    assert_eq!(import(&server, &gone, &[]).unwrap_err().code, Code::NoInput);
    let no_log = TestServer::start(|_, _| Reply::json(404, ""));
    let file = write("b.ndjson", "{\"type\":\"T\",\"data\":1}\n");
    assert_eq!(import(&no_log, &file, &[]).unwrap_err().code, Code::Usage);
    let sample = "{\"type\":\"T\",\"tags\":[],\"data\":1}\n";
    assert_eq!(shown(&no_log, &file, &["--dry-run"]), Ok(sample.to_owned()));
    let closed = TestServer::start(|_, _| Reply::json(401, "{}"));
    assert_eq!(import(&closed, &file, &[]).unwrap_err().code, Code::Denied);
    let broken = dir.path().join("c.ndjson.gz");
    std::fs::write(&broken, b"\x1f\x8bno gzip").unwrap();
    assert_eq!(import(&server, &broken, &[]).unwrap_err().code, Code::Data);
}

#[test]
fn lines_that_are_not_settled_come_again_before_those_that_follow() {
    use std::sync::{Arc, Mutex};
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let server = TestServer::start(move |request, earlier| {
        if request.method == "GET" {
            return Reply::json(200, "{}");
        }
        let body = String::from_utf8(request.body.clone()).unwrap();
        let lines = body.lines().count();
        seen.lock().unwrap().push((request.path.clone(), body));
        // All but the last three of the first part.
        let settled = if earlier == 1 { lines - 3 } else { lines };
        Reply::json(200, &format!("{{\"lines\":{settled},\"added\":{settled},\"next\":\"t\"}}"))
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    let all: String = (0..90_000).map(|i| format!("{{\"type\":\"T\",\"tags\":[\"some:tag\",\"another:tag\",\"a:third\"],\"data\":{{\"number\":{i},\"text\":\"of some length, so that two parts are made of it\"}}}}\n")).collect();
    std::fs::write(&file, &all).unwrap();
    import(&server, &file, &[]).unwrap();
    let bodies = bodies.lock().unwrap();
    assert_eq!(bodies.len(), 2);
    assert!(bodies[0].0.ends_with("?batch=1000&recorded_at=keep&more=true"), "{}", bodies[0].0);
    assert!(bodies[1].0.ends_with("?batch=1000&recorded_at=keep&continues=t"), "{}", bodies[1].0);
    let end =
        bodies[0].1.len() - bodies[0].1.lines().rev().take(3).map(|l| l.len() + 1).sum::<usize>();
    assert_eq!(bodies[0].1[..end].to_owned() + &bodies[1].1, all);
}
