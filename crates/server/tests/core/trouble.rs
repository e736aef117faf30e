//! Failures are visible: each failure of the server writes a log line that says why, and
//! `/health/ready`, `/metrics` and `top` report it until it is over.

use crate::client::Client;
use crate::disk::SmallDisk;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use wellspring_patience::{PATIENCE, Patience};

fn event(bytes: usize) -> Value {
    json!({"events": [{"type": "T", "tags": ["t:1"], "data": "x".repeat(bytes)}]})
}

/// The answer of `/health/ready` once it has this status.
fn ready_becomes(server: &Server, status: u16) -> Value {
    let mut patience = Patience::new();
    loop {
        let answer = server.client().get("/health/ready").unwrap();
        if answer.status == status {
            return if status == 200 { answer.expect(200) } else { answer.problem(status) };
        }
        patience.pause(format_args!("never {status}: {answer:?}"));
    }
}

fn figure(client: &mut Client, line: &str) -> u64 {
    let page = client.get("/metrics").unwrap().text();
    let found = page.lines().find_map(|found| found.strip_prefix(line));
    found.unwrap_or_else(|| panic!("no {line}: {page}")).trim().parse().unwrap()
}

/// What `top` reports about the log main.
fn top(server: &Server) -> String {
    let args = ["top", "--once", "--interval", "100ms", "--url", &server.url()];
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring")).args(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().skip_while(|line| !line.starts_with("Log")).nth(1);
    row.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// The row from the state on, behind the name of the log.
fn state(server: &Server) -> String {
    let row = top(server);
    let behind = row.split_once(' ').map(|(_, behind)| behind.trim_start().to_owned());
    behind.unwrap_or_default()
}

fn segments(data: &Path, log: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(data.join("logs").join(log)).unwrap();
    let mut found: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "seg"));
    found.sort();
    found
}

/// A server over a log of several segments, one of which is damaged in its middle.
fn damaged(dir: &Path) -> (Server, String) {
    let flags = ["--segment-bytes", "65536"];
    let server = Server::start_in(dir, &flags);
    for _ in 0..40 {
        server.client().post("/v1/append", &event(5_000)).unwrap().expect(200);
    }
    let mut server = server;
    assert!(server.terminate().success());
    drop(server);
    let first = segments(dir, "main").swap_remove(0);
    let mut bytes = fs::read(&first).unwrap();
    let middle = 30_000;
    bytes[middle] ^= 1;
    fs::write(&first, bytes).unwrap();
    let name = first.file_name().unwrap().to_str().unwrap().to_owned();
    (Server::start_in(dir, &flags), name)
}

#[test]
fn damage_that_a_read_meets_is_in_the_log_and_makes_the_server_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let (server, file) = damaged(dir.path());
    let mut client = server.client();
    assert_eq!(figure(&mut client, "wellspring_log_damaged_segments{log=\"main\"}"), 0);
    assert_eq!(figure(&mut client, "wellspring_ready"), 1);
    assert!(state(&server).starts_with("ok "), "{}", top(&server));
    let problem = client.get("/v1/events").unwrap().problem(500);
    assert_eq!(problem["file"], *file, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("its checksum does not match"), "{detail}");
    let offset = format!("byte {}", problem["offset"]);
    let line = server.logged(&["a request failed", "corrupt", &file, &offset, "/v1/events"]);
    assert!(line.contains("ERROR") && line.contains("log=\"main\""), "{line}");
    server.logged(&["stored data is damaged", &file, "main"]);
    let ready = ready_becomes(&server, 503);
    assert_eq!(ready["type"], "/problems/damaged", "{ready}");
    assert_eq!((&ready["file"], &ready["offset"]), (&problem["file"], &problem["offset"]));
    let reason = &ready["reasons"][0];
    assert_eq!((&reason["log"], &reason["type"]), (&json!("main"), &ready["type"]));
    assert!(reason["detail"].as_str().unwrap().contains(&file), "{reason}");
    assert_eq!(figure(&mut client, "wellspring_log_damaged_segments{log=\"main\"}"), 1);
    assert_eq!(figure(&mut client, "wellspring_ready"), 0);
    assert!(state(&server).starts_with("DAMAGED"), "{}", top(&server));
    client.post("/v1/append", &event(10)).unwrap().expect(200);
    ready_becomes(&server, 503);
    let many = (0..50).map(|_| client.get("/v1/events").unwrap().problem(500)).count();
    let told = server.log().iter().filter(|line| line.contains("a request failed")).count();
    assert!(told < 5, "{told} lines for {many} answers");
}

/// What `wellspring verify` reports about the log main.
fn verify(data: &Path) -> String {
    let args = ["verify", "--data", data.to_str().unwrap()];
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring")).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn damage_found_at_the_start_names_file_and_offset_as_verify_does_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let (server, file) = damaged(dir.path());
    server.client().get("/v1/events").unwrap().problem(500);
    let offset = ready_becomes(&server, 503)["offset"].to_string();
    drop(server);
    let place = format!("{file} is damaged at byte {offset}: ");
    let verified = verify(dir.path());
    assert!(verified.contains(&place), "{place}: {verified}");
    // The same file as the only segment, which a start therefore reads.
    for entry in fs::read_dir(dir.path().join("logs/main")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with(&file) && !path.ends_with("lock") {
            fs::remove_file(path).unwrap();
        }
    }
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", dir.path().to_str().unwrap()];
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring")).args(serve).output().unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    let folder = dir.path().join("logs/main");
    let remedy = format!("wellspring verify --data {} --log main", dir.path().display());
    for part in [&place, folder.to_str().unwrap(), &remedy, "backup"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn damage_that_only_a_stream_meets_is_seen_too() {
    let dir = tempfile::tempdir().unwrap();
    let (server, file) = damaged(dir.path());
    let headers = [("Accept", "application/x-ndjson")];
    let _ = server.client().call("GET", "/v1/events", &headers, b"");
    server.logged(&["stored data is damaged", &file, "main"]);
    assert_eq!(ready_becomes(&server, 503)["type"], "/problems/damaged");
}

#[test]
fn a_damaged_index_costs_a_reader_nothing_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--segment-bytes", "65536"];
    let mut server = Server::start_in(dir.path(), &flags);
    for _ in 0..40 {
        server.client().post("/v1/append", &event(5_000)).unwrap().expect(200);
    }
    assert!(server.terminate().success());
    drop(server);
    let index = segments(dir.path(), "main").swap_remove(0).with_extension("idx");
    let mut bytes = fs::read(&index).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&index, bytes).unwrap();
    let server = Server::start_in(dir.path(), &flags);
    let mut client = server.client();
    for query in ["?tag=t:1&limit=1000", "?type=T&tag=t:1&order=desc&limit=1000"] {
        let page = client.get(&format!("/v1/events{query}")).unwrap().expect(200);
        assert!(!page["events"].as_array().unwrap().is_empty());
    }
    let name = index.file_name().unwrap().to_str().unwrap();
    server.logged(&["a damaged index was rebuilt", "main", name]);
    assert_eq!(figure(&mut client, "wellspring_log_indexes_mended_total{log=\"main\"}"), 1);
    assert_eq!(figure(&mut client, "wellspring_log_damaged_segments{log=\"main\"}"), 0);
    ready_becomes(&server, 200);
}

#[test]
fn a_disk_that_is_full_for_appends_is_told_until_there_is_room() {
    for lean in BOTH_LOOPS {
        let dir = tempfile::tempdir().unwrap();
        let Some(disk) = SmallDisk::start(dir.path(), &lean) else {
            println!("not tested: this system lets nobody mount a small disk");
            return;
        };
        let mut client = disk.server.client();
        client.post("/v1/append", &event(10)).unwrap().expect(200);
        disk.fill();
        let deadline = Instant::now() + PATIENCE;
        while client.post("/v1/append", &event(200_000)).unwrap().status != 503 {
            assert!(Instant::now() < deadline, "the disk is never full");
        }
        let ready = ready_becomes(&disk.server, 503);
        assert_eq!(ready["type"], "/problems/storage-full", "{ready}");
        assert_eq!(ready["reasons"][0]["log"], "main", "{ready}");
        let line = disk.server.logged(&["a request failed", "storage-full", "/v1/append"]);
        assert!(line.contains("log=\"main\""), "{line}");
        disk.server.logged(&["the device is full: appends are refused", "main"]);
        assert_eq!(figure(&mut client, "wellspring_log_storage_full{log=\"main\"}"), 1);
        assert!(state(&disk.server).starts_with("DISK FULL"), "{}", top(&disk.server));
        fs::remove_file(disk.filler()).unwrap();
        // Without an append: the server notices by itself.
        ready_becomes(&disk.server, 200);
        assert_eq!(figure(&mut client, "wellspring_log_storage_full{log=\"main\"}"), 0);
        disk.server.logged(&["the device has free space again", "main"]);
        client.post("/v1/append", &event(200_000)).unwrap().expect(200);
    }
}

#[test]
fn refused_ingest_leaves_a_line_from_both_loops() {
    for lean in BOTH_LOOPS {
        let dir = tempfile::tempdir().unwrap();
        let Some(disk) = SmallDisk::start(dir.path(), &lean) else {
            println!("not tested: this system lets nobody mount a small disk");
            return;
        };
        let mut client = disk.server.client();
        disk.fill();
        let body = format!("\"{}\"", "x".repeat(100_000));
        let deadline = Instant::now() + PATIENCE;
        while client.call("POST", "/e", &[], body.as_bytes()).unwrap().status != 503 {
            assert!(Instant::now() < deadline, "the disk is never full");
        }
        let line = disk.server.logged(&["a request failed", "storage-full", "/e"]);
        assert!(line.contains("log=\"main\""), "{line}");
        assert_eq!(ready_becomes(&disk.server, 503)["type"], "/problems/storage-full");
        fs::remove_file(disk.filler()).unwrap();
        ready_becomes(&disk.server, 200);
    }
}

#[test]
fn too_many_connections_leave_a_line() {
    let server = Server::start_with(&["--max-connections", "16"]);
    let mut held = Vec::new();
    for _ in 0..40 {
        if let Ok(mut client) = Client::connect(server.address) {
            let _ = client.get("/health");
            held.push(client);
        }
    }
    server.logged(&["a request failed", "too-many-connections"]);
}

#[test]
fn a_server_whose_main_log_was_deleted_is_not_ready_until_there_is_one() {
    let server = Server::start();
    let mut client = server.client();
    let delete = client.call("DELETE", "/v1/logs/main?confirm=main", &[], b"").unwrap();
    delete.expect(200);
    let ready = ready_becomes(&server, 503);
    assert_eq!(ready["type"], "/problems/main-deleted", "{ready}");
    assert!(ready["detail"].as_str().unwrap().contains("PUT /v1/logs/main"), "{ready}");
    client.call("PUT", "/v1/logs/main", &[], b"").unwrap().expect(201);
    ready_becomes(&server, 200);
}
