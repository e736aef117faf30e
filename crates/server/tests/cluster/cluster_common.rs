//! What nodes share: accounts, logs, and copies of the same bytes.

use crate::client::{Answer, Client};
use crate::closed::{PASSWORD, token};
use crate::nodes::{RAFT, TestEngine, append_somewhere, event, position_of, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

wellspring_test_support::over_each_engine! {
    a_token_of_one_node_counts_on_all_and_one_that_is_revoked_has_fallen_on_all
    a_log_made_or_dropped_on_a_follower_is_so_on_all
    a_copy_that_was_deleted_comes_back_equal
}

/// Sends a request with a token or key to a node whose accounts are at least at this position.
fn ask_at(client: &mut Client, bearer: &str, at: &str, method: &str, path: &str) -> Answer {
    let authorization = format!("Bearer {bearer}");
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Wellspring-Min-System-Position", at),
        ("Content-Type", "application/json"),
    ];
    client.call(method, path, &headers, b"").unwrap()
}

/// The position of the log `system` that an answer about accounts depends on.
fn position(answer: &Answer) -> String {
    let position = answer.header("wellspring-position");
    position.unwrap_or_else(|| panic!("no position: {answer:?}")).to_owned()
}

fn a_token_of_one_node_counts_on_all_and_one_that_is_revoked_has_fallen_on_all(engine: TestEngine) {
    let nodes = engine.nodes(&[]);
    let mut clients: Vec<Client> = (0..3).map(|node| nodes.client(node)).collect();
    let first = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
    clients[2].post("/v1/accounts", &first).unwrap().expect(201);
    let root = token(&mut clients[2], "root");
    for round in 0..12 {
        let (made_at, ended_at) = (round % 3, (round + 1 + round / 3 % 2) % 3);
        // A token of a login.
        let login = json!({"username": "root", "password": PASSWORD});
        let made = clients[made_at].post("/auth/token", &login).unwrap();
        let at = position(&made);
        let token = made.expect(200)["access_token"].as_str().unwrap().to_owned();
        // A key of an account.
        let authorization = format!("Bearer {root}");
        let headers =
            [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
        let body = json!({"role": "reader"}).to_string();
        let key = clients[made_at].call("POST", "/v1/keys", &headers, body.as_bytes()).unwrap();
        let key_at = position(&key);
        let key = key.expect(201);
        let (id, secret) = (key["id"].as_str().unwrap(), key["secret"].as_str().unwrap());
        for client in &mut clients {
            ask_at(client, &token, &at, "GET", "/auth/me").expect(200);
            ask_at(client, secret, &key_at, "GET", "/v1/head").expect(200);
        }
        let path = format!("/v1/keys/{id}");
        let ended = ask_at(&mut clients[ended_at], &root, &key_at, "DELETE", &path);
        assert!(ended.status < 300, "{ended:?}");
        let key_at = position(&ended);
        let ended = ask_at(&mut clients[ended_at], &token, &at, "POST", "/auth/logout");
        assert!(ended.status < 300, "{ended:?}");
        let at = position(&ended);
        for client in &mut clients {
            ask_at(client, secret, &key_at, "GET", "/v1/head").problem(401);
            ask_at(client, &token, &at, "GET", "/auth/me").problem(401);
        }
    }
}

fn a_log_made_or_dropped_on_a_follower_is_so_on_all(engine: TestEngine) {
    let nodes = engine.nodes(&[]);
    let followers = nodes.followers();
    for life in 1..=3 {
        let (here, there) = (followers[life % 2], followers[(life + 1) % 2]);
        let made = nodes.client(here).call("PUT", "/v1/logs/other", &[], b"").unwrap();
        assert!(made.status < 300, "{made:?}");
        let head = |node: usize| nodes.client(node).get("/v1/logs/other/head").unwrap();
        // Immediately on the node that received the request, and soon on all: the old log does not
        // reappear.
        assert_eq!(head(here).expect(200)["head"], 0, "life {life}");
        for node in 0..3 {
            until("the log is there", || head(node).status == 200);
            assert_eq!(head(node).expect(200)["head"], 0, "node {node}, life {life}");
        }
        let appended = nodes.client(there).post("/v1/logs/other/append", &event(life)).unwrap();
        assert_eq!(position_of(&appended), 1, "{appended:?}");
        for node in 0..3 {
            let path = "/v1/logs/other/events?consistency=linearizable";
            let events = nodes.client(node).get(path).unwrap().expect(200);
            assert_eq!(events["events"][0]["data"], life, "{events}");
        }
        nodes.client(there).call("DELETE", "/v1/logs/other", &[], b"").unwrap().problem(422);
        let path = "/v1/logs/other?confirm=other";
        let dropped = nodes.client(there).call("DELETE", path, &[], b"").unwrap();
        assert!(dropped.status < 300, "{dropped:?}");
        head(there).problem(404);
        (0..3).for_each(|node| until("the log is gone", || head(node).status == 404));
    }
}

/// First position, time in µs, place, records.
type Batch = (u64, u64, u64, Vec<u8>);

/// The batches of a log's segments, by file: origin, time and content. Omitted from headers are
/// checksums with each file's own salt, and how a node wrote the batch.
fn batches(log: &Path) -> BTreeMap<String, Vec<Batch>> {
    let u32_at =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at =
        |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(log).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        if !bytes.starts_with(b"WSSEGMNT") {
            continue;
        }
        let (mut at, mut batches) = (64, Vec::new());
        while at + 64 <= bytes.len() && u32_at(&bytes, at) == 0xb5a7_c4d1 {
            let end = at + 64 + u32_at(&bytes, at + 20) as usize;
            let (first, recorded) = (u64_at(&bytes, at + 8), u64_at(&bytes, at + 40));
            let place = u64_at(&bytes, at + 56);
            batches.push((first, recorded, place, bytes[at + 64..end].to_vec()));
            at = end;
        }
        files.insert(name, batches);
    }
    files
}

fn a_copy_that_was_deleted_comes_back_equal(engine: TestEngine) {
    let mut nodes = engine.nodes(&["--segment-bytes", "65536"]);
    let all: Vec<_> = (0..3).map(|node| nodes.address(node)).collect();
    let append = |from: usize, to: usize, up: &[usize]| -> u64 {
        let up: Vec<_> = up.iter().map(|&node| all[node]).collect();
        let text = "x".repeat(700);
        let body = |n: usize| event(json!([n, text]));
        let appended = |n| append_somewhere(&up, n, &format!("k{n}"), &body(n));
        (from..to).fold(0, |_, n| appended(n))
    };
    append(0, 200, &[0, 1, 2]);
    let gone = nodes.followers()[0];
    let left: Vec<usize> = (0..3).filter(|&node| node != gone).collect();
    nodes.stop(gone);
    // What a node has promised to the others is no copy.
    let copies = if nodes.journal == RAFT { "logs" } else { "" };
    std::fs::remove_dir_all(nodes.data(gone).join(copies)).unwrap();
    append(200, 300, &left);
    nodes.start_again(gone);
    let head = append(300, 320, &[gone]);
    let events = nodes.events(gone, head);
    assert_eq!(events.len(), 320);
    let shown: Vec<Vec<Value>> = left.iter().map(|&node| nodes.events(node, head)).collect();
    assert!(shown.iter().all(|other| *other == events));
    (0..3).for_each(|node| nodes.stop(node));
    let folder = |node: usize, log: &str| batches(&nodes.data(node).join("logs").join(log));
    for log in ["main", "system"] {
        let expected = folder(gone, log);
        let whole: usize = expected.values().map(Vec::len).sum();
        assert!(whole > 0 && (log == "system" || expected.len() > 2), "{:?}", expected.keys());
        for &node in &left {
            // A node that is down at the end misses what the others record about it in `system`.
            let other = folder(node, log);
            for (file, ours) in &expected {
                let theirs = other.get(file).unwrap_or_else(|| panic!("{log}: no {file}"));
                let common = ours.len().min(theirs.len());
                assert!(log == "system" || ours.len() == theirs.len(), "{log}: {file}");
                assert!(ours[..common] == theirs[..common], "{log}: {file} of {node} differs");
            }
        }
    }
}
