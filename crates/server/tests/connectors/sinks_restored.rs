//! Sinks after their log has gone back: with everything else from a backup, or as a folder that was
//! put back. The same positions are other events then, and a receiver must not take them for those
//! that it has had.

use crate::disk::copy_folder;
use crate::program::told;
use crate::server::Server;
use crate::sinks::{append, ask, is, until};
use crate::sinks_receiver::Receiver;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const QUIET: &[&str] = &["--scrub-bytes-per-s", "0"];

fn done(words: &[&str]) {
    let (code, said) = told(words);
    assert_eq!(code, Some(0), "{words:?}: {said}");
}

fn keys(receiver: &Receiver) -> Vec<String> {
    let hooks = receiver.accepted();
    hooks.iter().map(|hook| hook.header("idempotency-key").to_owned()).collect()
}

/// Five events, which a sink delivers; what `keep` keeps; four more. Then `bring_back`, and a
/// server that appends other events to the same positions.
fn goes_back(keep: impl Fn(&Server, &Path), bring_back: impl Fn(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let receiver = Receiver::start();
    let server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    let sink = json!({"url": receiver.url(), "partition_by": "k"});
    ask(&mut client, "PUT", "/v1/sinks/told", &sink).expect(201);
    ask(&mut client, "PUT", "/v1/sinks/new", &sink).expect(201);
    ask(&mut client, "POST", "/v1/sinks/new/pause", &Value::Null).expect(200);
    for n in 1..=5 {
        append(&mut client, "main", "A", "k:1", n);
    }
    receiver.wait_for(5);
    // The cursor is saved within a second.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    keep(&server, dir.path());
    // This one has not delivered anything yet, so it has no cursor.
    ask(&mut client, "POST", "/v1/sinks/new/resume", &Value::Null).expect(200);
    for n in 6..=9 {
        append(&mut client, "main", "A", "k:1", n);
    }
    receiver.wait_for(18);
    drop(client);
    drop(server);
    let before = keys(&receiver);
    bring_back(dir.path());

    let mut server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    for n in 10..=15 {
        append(&mut client, "main", "A", "k:1", n);
    }
    for path in ["/v1/sinks/told", "/v1/sinks/new"] {
        ask(&mut client, "POST", &format!("{path}/resume"), &Value::Null).expect(200);
        let stopped = until(&mut client, path, is("stopped"));
        assert_eq!(stopped["stop_code"], "another-history", "{stopped}");
        ask(&mut client, "POST", &format!("{path}/reset"), &json!({"to": 5})).expect(200);
    }
    receiver.wait_for(30);
    let after = keys(&receiver).split_off(18);
    let repeated: Vec<_> = after.iter().filter(|key| before.contains(key)).collect();
    assert!(repeated.is_empty(), "the keys of other events: {repeated:?}");
    // A restart changes nothing about them.
    assert!(server.terminate().success());
    let server = Server::start_in(&data, QUIET);
    append(&mut server.client(), "main", "A", "k:1", 16);
    receiver.wait_for(32);
    let stem = |key: &String| key.rsplit_once('-').unwrap().0.to_owned();
    let known: Vec<_> = after.iter().map(stem).collect();
    assert!(keys(&receiver)[30..].iter().all(|key| known.contains(&stem(key))), "{known:?}");
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_restore_of_everything_stops_sinks_and_their_keys_are_new_then() {
    let keep = |server: &Server, dir: &Path| {
        done(&["backup", "--url", &server.url(), "--to", shown(&dir.join("place"))]);
    };
    goes_back(keep, |dir| {
        let data = dir.join("data");
        fs::rename(&data, dir.join("lost")).unwrap();
        done(&["restore", "--from", shown(&dir.join("place")), "--data", shown(&data)]);
    });
}

#[test]
fn a_folder_that_was_put_back_stops_sinks_and_their_keys_are_new_then() {
    // A copy of a running server's folder is as good as a snapshot here: nothing is written
    // meanwhile.
    let keep = |_: &Server, dir: &Path| copy_folder(&dir.join("data"), &dir.join("kept"));
    goes_back(keep, |dir| {
        let data = dir.join("data");
        fs::remove_dir_all(&data).unwrap();
        fs::rename(dir.join("kept"), &data).unwrap();
        done(&["restore", "--rolled-back", "--data", shown(&data)]);
    });
}
