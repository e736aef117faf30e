//! The device below a running server: what it was told to make durable, and the server's answers
//! once a write or a barrier has failed. A library between the server and its C library records
//! barriers and makes them fail (`barriers.c`); it is built with the C compiler that the linker
//! needs anyway.

use crate::disk::{library, on_disk};
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A server over `data` with the library preloaded; `tools` holds the files that control it.
pub fn start(data: &Path, tools: &Path) -> Server {
    let set = |name: &str, path: PathBuf| format!("{name}={}", path.display());
    let preload = set("LD_PRELOAD", library(tools));
    let told = set("BARRIERS_TOLD", tools.join("told"));
    let fail_barriers = set("FAIL_BARRIERS", tools.join("fail-barriers"));
    let fail_writes = set("FAIL_WRITES", tools.join("fail-writes"));
    let command = ["env", &preload, &told, &fail_barriers, &fail_writes];
    Server::start_under(&command, data, &[])
}

fn event(n: u64) -> Value {
    json!({"events": [{"type": "T", "tags": ["a:1"], "data": n}]})
}

#[test]
fn a_log_that_cannot_be_created_leaves_nothing() {
    let (data, tools) = (on_disk(), tempfile::tempdir().unwrap());
    let server = start(data.path(), tools.path());
    let mut client = server.client();
    let create =
        |client: &mut crate::client::Client| client.call("PUT", "/v1/logs/new", &[], b"").unwrap();
    std::fs::write(tools.path().join("fail-barriers"), "").unwrap();
    create(&mut client).problem(500);
    assert!(!data.path().join("logs/new").exists());
    std::fs::remove_file(tools.path().join("fail-barriers")).unwrap();
    assert_eq!(create(&mut client).status, 201);
}

/// After a failure that leaves an append in doubt: the behaviour that `docs/operations.md`
/// describes.
fn fails(switch: &str) {
    let (data, tools) = (on_disk(), tempfile::tempdir().unwrap());
    let server = start(data.path(), tools.path());
    let mut client = server.client();
    client.post("/v1/append", &event(1)).unwrap().expect(200);
    std::fs::write(tools.path().join(switch), "").unwrap();
    let problem = client.post("/v1/append", &event(2)).unwrap().problem(500);
    assert_eq!(problem["type"], "/problems/outcome-unknown", "{problem}");
    // It does not repair itself either: only recovery decides about the append.
    std::fs::remove_file(tools.path().join(switch)).unwrap();
    for _ in 0..3 {
        let problem = client.post("/v1/append", &event(3)).unwrap().problem(503);
        assert_eq!(problem["type"], "/problems/log-closed", "{problem}");
    }
    let condition = json!({"events": event(4)["events"], "condition": {"failIfEventsMatch":
        {"items": [{"tags": ["b:1"]}]}}});
    let problem = client.post("/v1/append", &condition).unwrap().problem(503);
    assert_eq!(problem["type"], "/problems/log-closed", "{problem}");
    let page = client.get("/v1/events").unwrap().expect(200);
    assert_eq!(page["events"].as_array().unwrap().len(), 1, "reads go on without it: {page}");
    let found = client.get("/v1/events?tag=a:1").unwrap().expect(200);
    assert_eq!((&found["head"], &found["events"][0]["data"]), (&json!(1), &json!(1)));
    assert_eq!(client.get("/health").unwrap().status, 200);
    let ready = client.get("/health/ready").unwrap().problem(503);
    assert_eq!(ready["type"], "/problems/log-closed", "{ready}");
    let detail = ready["detail"].as_str().unwrap();
    assert!(detail.starts_with("main accepts no appends: "), "{detail}");
    server.kill();
    let server = start(data.path(), tools.path());
    let head = server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
    assert!((1..=2).contains(&head), "recovery decides: {head}");
    let appended = server.client().post("/v1/append", &event(5)).unwrap().expect(200);
    assert_eq!(appended["first"], head + 1);
}

#[test]
fn after_a_failed_barrier_reads_go_on_and_appends_and_readiness_are_refused() {
    fails("fail-barriers");
}

#[test]
fn after_a_failed_write_reads_go_on_and_appends_and_readiness_are_refused() {
    fails("fail-writes");
}

#[test]
fn every_folder_on_the_way_to_the_first_event_is_made_durable() {
    let (outside, tools) = (on_disk(), tempfile::tempdir().unwrap());
    let outside = outside.path().canonicalize().unwrap();
    let data = outside.join("srv/wellspring/data");
    let server = start(&data, tools.path());
    server.client().post("/v1/append", &event(1)).unwrap().expect(200);
    server.client().call("PUT", "/v1/logs/orders", &[], b"").unwrap().expect(201);
    let append = server.client().post("/v1/logs/orders/append", &event(1)).unwrap();
    append.expect(200);
    let told = std::fs::read_to_string(tools.path().join("told")).unwrap();
    let told: BTreeSet<&Path> = told.lines().map(Path::new).collect();
    for log in ["main", "system", "orders"] {
        let mut made: &Path = &data.join("logs").join(log);
        while made != outside {
            made = made.parent().unwrap();
            assert!(told.contains(made), "the entries of {} are in {told:?}", made.display());
        }
    }
}

#[test]
fn files_are_their_owners_alone_whatever_the_folder_was_before() {
    fn modes(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            found.push((path.clone(), path.metadata().unwrap().permissions().mode() & 0o777));
            if path.is_dir() {
                modes(&path, found);
            }
        }
    }
    let dir = on_disk();
    let data = dir.path().join("data");
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir(&data).unwrap();
    set(&data, 0o755);
    let check = |flags: &[&str]| {
        let umask = ["sh", "-c", "umask 022 && exec \"$0\" \"$@\""];
        let mut server = Server::start_under(&umask, &data, flags);
        let mut client = server.client();
        let large = json!({"events": [{"type": "T", "data": "x".repeat(300_000)}]});
        for _ in 0..8 {
            client.post("/v1/append", &large).unwrap().expect(200);
        }
        client.call("PUT", "/v1/logs/orders", &[], b"").unwrap();
        client.post("/v1/logs/orders/append", &event(1)).unwrap().expect(200);
        let link = client.post("/api/urls", &json!({"url": "https://example.com/"})).unwrap();
        assert!(link.status == 200 || link.status == 201, "{}", link.text());
        assert!(server.terminate().success());
        let mut found = Vec::new();
        modes(&data, &mut found);
        assert!(
            found.iter().filter(|(path, _)| path.to_string_lossy().ends_with(".idx")).count() > 1
        );
        for (path, mode) in &found {
            let most = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(*mode & !most, 0, "{} is {mode:o}", path.display());
        }
        found
    };
    let found = check(&["--segment-bytes", "1048576"]);
    // As an earlier version left them, under a common umask.
    for (path, _) in &found {
        let is_of_a_log = path.parent().unwrap().ends_with("main") || path.is_dir();
        if is_of_a_log && !path.starts_with(data.join("logs/system")) {
            set(path, if path.is_dir() { 0o755 } else { 0o644 });
        }
    }
    let umask = ["sh", "-c", "umask 022 && exec \"$0\" \"$@\""];
    let mut server = Server::start_under(&umask, &data, &[]);
    assert!(server.terminate().success());
    for name in ["logs", "logs/main", "logs/orders"] {
        let mode = data.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{name}: no one else can reach what lies in it");
    }
}
