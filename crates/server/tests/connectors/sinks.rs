//! Sinks with the real binary, delivering to a webhook receiver: settings from HTTP or the
//! configuration take effect, survive restarts, and are reported.

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::sinks_receiver::Receiver;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use wellspring_patience::Patience;

/// A request with JSON, or without a body for `null`.
pub fn ask(client: &mut Client, method: &str, path: &str, body: &Value) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    client.call(method, path, &[("Content-Type", "application/json")], text.as_bytes()).unwrap()
}

pub fn append(client: &mut Client, log: &str, event_type: &str, tag: &str, n: u64) -> u64 {
    let body = json!({"events": [{"type": event_type, "tags": [tag], "data": {"n": n}}]});
    let answer = ask(client, "POST", &format!("/v1/logs/{log}/append"), &body);
    answer.expect(200)["first"].as_u64().unwrap()
}

/// Waits until the sink or source at this path is as wanted; returns it.
#[track_caller]
pub fn until(client: &mut Client, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut patience = Patience::new();
    loop {
        let report = ask(client, "GET", path, &Value::Null).expect(200);
        if wanted(&report) {
            return report;
        }
        patience.pause(format_args!("{report}"));
    }
}

pub fn is(state: &str) -> impl Fn(&Value) -> bool + '_ {
    move |report| report["state"] == state
}

fn at(position: u64) -> impl Fn(&Value) -> bool {
    move |report| report["position"] == position && report["state"] == "running"
}

#[test]
fn every_match_is_delivered_once_in_order_and_a_restart_goes_on() {
    let receiver = Receiver::start();
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    for n in 1..=20 {
        append(&mut client, "main", if n % 2 == 0 { "B" } else { "A" }, "k:1", n);
    }
    let sink = json!({
        "url": receiver.url(), "partition_by": "k", "query": {"items": [{"types": ["A"]}]}
    });
    assert_eq!(ask(&mut client, "PUT", "/v1/sinks/a", &sink).expect(201)["state"], "starting");
    let odd: Vec<u64> = (1..=20).filter(|n| n % 2 == 1).collect();
    assert_eq!(receiver.wait_for(10), odd);
    let report = until(&mut client, "/v1/sinks/a", at(20));
    assert_eq!((&report["events"], &report["lag"]), (&json!(10), &json!(0)), "{report}");
    let hook = &receiver.accepted()[0];
    assert_eq!(hook.body, r#"{"n":1}"#);
    assert_eq!(hook.header("wellspring-type"), "A");
    assert_eq!(hook.header("wellspring-tags"), r#"["k:1"]"#);
    assert!(hook.header("idempotency-key").ends_with("-1"), "{hook:?}");
    // Repeating it changes nothing; the answer is then 200.
    assert_eq!(ask(&mut client, "PUT", "/v1/sinks/a", &sink).status, 200);
    assert!(server.terminate().success());
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    append(&mut client, "main", "A", "k:1", 21);
    let mut expected = odd;
    expected.push(21);
    assert_eq!(receiver.wait_for(11), expected, "nothing twice after an orderly end");
}

#[test]
fn a_person_pauses_resumes_skips_resets_and_deletes() {
    let receiver = Receiver::scripted(|hook| {
        if hook.body.contains("\"n\":3") {
            (400, "never this one".to_owned())
        } else {
            (200, String::new())
        }
    });
    let server = Server::start();
    let mut client = server.client();
    let sink = json!({"url": receiver.url(), "partition_by": "k", "max_tries": 2, "from": "now"});
    append(&mut client, "main", "A", "k:1", 1);
    ask(&mut client, "PUT", "/v1/sinks/a", &sink).expect(201);
    let paused = ask(&mut client, "POST", "/v1/sinks/a/pause", &Value::Null).expect(200);
    assert_eq!(paused["state"], "paused");
    append(&mut client, "main", "A", "k:1", 2);
    std::thread::sleep(Duration::from_millis(600));
    assert!(receiver.positions().is_empty(), "it is paused, and began behind what was there");
    ask(&mut client, "POST", "/v1/sinks/a/resume", &Value::Null).expect(200);
    assert_eq!(receiver.wait_for(1), [2]);
    append(&mut client, "main", "A", "k:1", 3);
    append(&mut client, "main", "A", "k:1", 4);
    let stopped = until(&mut client, "/v1/sinks/a", is("stopped"));
    assert_eq!((&stopped["stop_code"], &stopped["stopped_at"]), (&json!("rejected"), &json!(3)));
    assert!(stopped["reason"].as_str().unwrap().contains("never this one"), "{stopped}");
    assert_eq!(receiver.positions(), [2], "the order of a key is kept");
    let future = ask(&mut client, "POST", "/v1/sinks/a/skip", &json!({"position": 5})).problem(422);
    assert_eq!(future["field"], "position", "an event that nobody has seen is not skipped");
    ask(&mut client, "POST", "/v1/sinks/a/skip", &json!({"position": 3})).expect(200);
    assert_eq!(receiver.wait_for(2), [2, 4]);
    ask(&mut client, "POST", "/v1/sinks/a/skip", &json!({"position": 3})).expect(200);
    let reset = ask(&mut client, "POST", "/v1/sinks/a/reset", &json!({"to": 1})).expect(200);
    assert_eq!((&reset["state"], &reset["position"]), (&json!("starting"), &json!(1)), "{reset}");
    assert_eq!(receiver.wait_for(3)[2], 2, "it begins behind position 1 again");
    let ahead = ask(&mut client, "POST", "/v1/sinks/a/reset", &json!({"to": 99})).problem(422);
    assert_eq!(ahead["field"], "to");
    assert_eq!(ask(&mut client, "DELETE", "/v1/sinks/a", &Value::Null).status, 204);
    let gone = ask(&mut client, "GET", "/v1/sinks/a", &Value::Null).problem(404);
    assert_eq!(gone["type"], "/problems/sink-not-found");
    let none = ask(&mut client, "GET", "/v1/sinks", &Value::Null).expect(200);
    assert_eq!(none, json!({"sinks": []}));
}

#[test]
fn a_receiver_that_is_away_holds_nothing_up_and_gets_everything_later() {
    let receiver = Receiver::start();
    let address = receiver.address;
    let url = receiver.url();
    drop(receiver);
    let server = Server::start();
    let mut client = server.client();
    ask(&mut client, "PUT", "/v1/sinks/a", &json!({"url": url, "partition_by": "k"})).expect(201);
    for n in 1..=200 {
        append(&mut client, "main", "A", "k:1", n);
        let answer = ask(&mut client, "POST", "/e?tag=k:1", &json!({"n": n}));
        assert_eq!(answer.status, 202);
    }
    let receiver = Receiver::at(address, |_| (200, String::new()));
    let mut positions = receiver.wait_for(400);
    let arrived = positions.clone();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(positions, (1..=400).collect::<Vec<_>>());
    assert_eq!(arrived, positions, "one key, one order");
}

#[test]
fn what_is_refused_too_often_goes_to_the_dead_letter_log_once() {
    let receiver = Receiver::scripted(|hook| {
        if hook.body.contains("\"n\":2}") { (422, "no".to_owned()) } else { (200, String::new()) }
    });
    let server = Server::start();
    let mut client = server.client();
    let sink = json!({"url": receiver.url(), "max_tries": 3, "dead_letter_log": "dead"});
    let missing = ask(&mut client, "PUT", "/v1/sinks/a", &sink).problem(422);
    assert_eq!(missing["field"], "dead_letter_log");
    ask(&mut client, "PUT", "/v1/logs/dead", &Value::Null).expect(201);
    ask(&mut client, "PUT", "/v1/sinks/a", &sink).expect(201);
    for n in 1..=3 {
        append(&mut client, "main", "A", "k:1", n);
    }
    until(&mut client, "/v1/sinks/a", at(3));
    let report = until(&mut client, "/v1/sinks/a", |report| report["set_aside"] == 1);
    assert_eq!(report["retries"], 2, "{report}");
    ask(&mut client, "POST", "/v1/sinks/a/reset", &json!({"to": "beginning"})).expect(200);
    receiver.wait_for(4);
    until(&mut client, "/v1/sinks/a", at(3));
    let dead = ask(&mut client, "GET", "/v1/logs/dead/events", &Value::Null).expect(200);
    let letters = dead["events"].as_array().unwrap();
    assert_eq!(letters.len(), 1, "{dead}");
    assert_eq!(letters[0]["data"]["position"], 2);
    assert_eq!(letters[0]["data"]["status"], 422);
}

#[test]
fn a_log_that_was_made_again_stops_its_sink_until_a_person_decides() {
    let receiver = Receiver::start();
    let server = Server::start();
    let mut client = server.client();
    ask(&mut client, "PUT", "/v1/logs/a", &Value::Null).expect(201);
    ask(&mut client, "PUT", "/v1/sinks/a", &json!({"log": "a", "url": receiver.url()})).expect(201);
    for n in 1..=3 {
        append(&mut client, "a", "A", "k:1", n);
    }
    receiver.wait_for(3);
    // The cursor is saved within a second.
    std::thread::sleep(Duration::from_millis(1_500));
    let dropped = ask(&mut client, "DELETE", "/v1/logs/a?confirm=a", &Value::Null);
    assert!(dropped.status < 300, "{}", dropped.text());
    ask(&mut client, "PUT", "/v1/logs/a", &Value::Null).expect(201);
    append(&mut client, "a", "A", "k:1", 4);
    let resumed = ask(&mut client, "POST", "/v1/sinks/a/resume", &Value::Null);
    assert_eq!(resumed.status, 200);
    let stopped = until(&mut client, "/v1/sinks/a", is("stopped"));
    assert_eq!(stopped["stop_code"], "another-history", "{stopped}");
    assert_eq!(receiver.positions().len(), 3);
    ask(&mut client, "POST", "/v1/sinks/a/reset", &json!({"to": "beginning"})).expect(200);
    assert_eq!(receiver.wait_for(4)[3], 1);
}

fn with_sink(dir: &Path, url: Option<&str>) -> String {
    let path = dir.join("w.toml");
    let text = match url {
        Some(url) => format!("[[sink]]\nname = \"a\"\nurl = \"{url}\"\npartition_by = \"k\"\n"),
        None => String::new(),
    };
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn the_configuration_defines_sinks_and_one_that_comes_back_goes_on() {
    let receiver = Receiver::start();
    let (dir, settings) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |url: Option<&str>, n: u64, look: &dyn Fn(&mut Client)| {
        let config = with_sink(settings.path(), url);
        let mut server = Server::start_in(dir.path(), &["--config", &config]);
        let mut client = server.client();
        append(&mut client, "main", "A", "k:1", n);
        look(&mut client);
        assert!(server.terminate().success());
    };
    run(Some(&receiver.url()), 1, &|client| {
        receiver.wait_for(1);
        let report = until(client, "/v1/sinks/a", at(1));
        assert_eq!(report["defined_by"], "configuration");
        let other = json!({"url": "http://127.0.0.1:1/"});
        let refused = ask(client, "PUT", "/v1/sinks/a", &other).problem(409);
        assert_eq!(refused["type"], "/problems/connector-configured");
        ask(client, "DELETE", "/v1/sinks/a", &Value::Null).problem(409);
    });
    run(None, 2, &|client| {
        until(client, "/v1/sinks/a", is("inactive"));
    });
    run(Some(&receiver.url()), 3, &|client| {
        assert_eq!(receiver.wait_for(3), [1, 2, 3], "nothing twice, nothing left out");
        until(client, "/v1/sinks/a", at(3));
    });
}

#[test]
fn settings_of_sinks_that_are_wrong_stop_the_start_with_their_field() {
    let refused = |flags: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_wellspring"))
            .args(["serve", "--print-config"])
            .args(flags)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.toml");
    std::fs::write(&path, "[[sink]]\nname = \"a\"\nurl = \"http://x\"\nin_fligth = 3\n").unwrap();
    let told = refused(&["--config", path.to_str().unwrap()]);
    assert!(told.contains("[[sink]] \"a\"") && told.contains("in_fligth"), "{told}");
    let told = refused(&["--sink", r#"[{"name":"a","url":"gopher://x"}]"#]);
    assert!(told.contains("[[sink]] \"a\": url"), "{told}");
    let told = refused(&["--sink", "{"]);
    assert!(told.contains("JSON array"), "{told}");
}

#[test]
fn fields_at_fault_are_named() {
    let server = Server::start();
    let mut client = server.client();
    for (body, field) in [
        (json!({}), "brokers"),
        (json!({"url": "http://x", "log": "nowhere"}), "log"),
        (json!({"url": "http://x", "from": 7}), "from"),
        (json!({"url": "http://x", "headers": {"Host": "y"}}), "headers.Host"),
        (json!({"url": "http://x", "secret": "../../etc/passwd"}), "secret"),
    ] {
        let refused = ask(&mut client, "PUT", "/v1/sinks/a", &body).problem(422);
        assert_eq!(refused["field"], field, "{body}: {refused}");
    }
    let name = ask(&mut client, "PUT", "/v1/sinks/A_b", &json!({"url": "http://x"})).problem(422);
    assert_eq!(name["field"], "name");
    let secret = json!({"url": "http://127.0.0.1:9/", "secret": "sign"});
    ask(&mut client, "PUT", "/v1/sinks/a", &secret).expect(201);
    let stopped = until(&mut client, "/v1/sinks/a", is("stopped"));
    assert!(stopped["reason"].as_str().unwrap().contains("--secrets"), "{stopped}");
}

#[test]
fn secrets_sign_and_authorize_and_are_seen_nowhere_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let secrets = tempfile::tempdir().unwrap();
    for (name, text) in [("sign", "canary-signing-key"), ("token", "Bearer canary-token")] {
        let path = secrets.path().join(name);
        std::fs::write(&path, format!("{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    // Its answer repeats the request, as some receivers do.
    let receiver = Receiver::scripted(|hook| {
        if hook.body.contains("\"n\":2}") {
            (400, format!("bad: {}", hook.header("authorization")))
        } else {
            (200, String::new())
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--secrets", secrets.path().to_str().unwrap(), "--log-level", "trace"];
    let server = Server::start_in(dir.path(), &flags);
    let mut client = server.client();
    let sink = json!({
        "url": receiver.url(), "secret": "sign", "secret_headers": {"Authorization": "token"},
        "max_tries": 1, "partition_by": "k"
    });
    ask(&mut client, "PUT", "/v1/sinks/a", &sink).expect(201);
    append(&mut client, "main", "A", "k:1", 1);
    receiver.wait_for(1);
    let hook = &receiver.accepted()[0];
    assert_eq!(hook.header("authorization"), "Bearer canary-token");
    assert!(hook.header("webhook-signature").starts_with("v1,"), "{hook:?}");
    append(&mut client, "main", "A", "k:1", 2);
    let stopped = until(&mut client, "/v1/sinks/a", is("stopped"));
    let mut seen = vec![stopped.to_string(), server.log().join("\n")];
    for path in ["/v1/sinks", "/metrics", "/v1/logs/system/events", "/openapi.json"] {
        seen.push(ask(&mut client, "GET", path, &Value::Null).text());
    }
    server.kill();
    for entry in walk(dir.path()) {
        seen.push(String::from_utf8_lossy(&std::fs::read(entry).unwrap()).into_owned());
    }
    for text in seen {
        for secret in ["canary-signing-key", "canary-token"] {
            assert!(!text.contains(secret), "{secret} is in {}", &text[..text.len().min(2_000)]);
        }
    }
}

fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_killed_server_has_delivered_what_it_acknowledged_at_least_once_and_each_key_in_order() {
    let receiver = Receiver::start();
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for cycle in 0..crate::crash_cycles::cycles().min(6) {
        let server = Server::start_in(dir.path(), &[]);
        let mut client = server.client();
        if cycle == 0 {
            let sink = json!({"url": receiver.url(), "partition_by": "k"});
            ask(&mut client, "PUT", "/v1/sinks/a", &sink).expect(201);
        }
        let until = Instant::now() + Duration::from_millis(300 + 170 * cycle as u64);
        let mut n = 0;
        while Instant::now() < until {
            n += 1;
            acknowledged.push(append(&mut client, "main", "A", &format!("k:{}", n % 3), n));
        }
        server.kill();
    }
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    let head = *acknowledged.last().unwrap();
    until(&mut client, "/v1/sinks/a", |report| report["position"].as_u64() >= Some(head));
    let accepted = receiver.accepted();
    let mut firsts: std::collections::BTreeMap<String, Vec<u64>> = Default::default();
    let mut known = std::collections::BTreeSet::new();
    for hook in &accepted {
        if known.insert(hook.position()) {
            let key = hook.header("wellspring-tags").to_owned();
            firsts.entry(key).or_default().push(hook.position());
        }
    }
    assert!(acknowledged.iter().all(|position| known.contains(position)), "nothing is left out");
    for (key, positions) in firsts {
        assert!(positions.is_sorted(), "{key}: {positions:?}");
    }
}

#[test]
fn a_sink_begins_with_a_time() {
    let receiver = Receiver::start();
    let server = Server::start();
    let mut client = server.client();
    let lines = ["2026-01-01", "2026-01-02", "2026-01-02", "2026-01-03"].map(|day| {
        let at = format!("{day}T00:00:00Z");
        json!({"type": "A", "data": day, "recorded_at": at}).to_string()
    });
    let headers = [("Content-Type", "application/x-ndjson")];
    let path = "/v1/import?recorded_at=keep";
    client.call("POST", path, &headers, lines.join("\n").as_bytes()).unwrap().expect(200);
    let sink = |from: &str| json!({"url": receiver.url(), "from": from});
    let future = ask(&mut client, "PUT", "/v1/sinks/a", &sink("9999-01-01")).problem(422);
    assert_eq!(future["field"], "from", "{future}");
    ask(&mut client, "PUT", "/v1/sinks/a", &sink("2026-01-02")).expect(201);
    let sorted = |count: usize| {
        let mut positions = receiver.wait_for(count);
        positions.sort_unstable();
        positions
    };
    assert_eq!(sorted(3), [2, 3, 4]);
    let to = json!({"to": "2026-01-02T00:00:00.000001Z"});
    ask(&mut client, "POST", "/v1/sinks/a/reset", &to).expect(200);
    assert_eq!(sorted(4), [2, 3, 4, 4]);
}

/// What a sink needs after a crash is the event of its saved cursor, not what it has delivered.
#[test]
fn a_cut_leaves_what_a_sink_needs_after_a_crash_and_a_new_one_begins_with_the_rest() {
    let receiver = Receiver::start();
    let dir = tempfile::tempdir().unwrap();
    let small = ["--segment-bytes", "65536"];
    let server = Server::start_in(dir.path(), &small);
    let mut client = server.client();
    ask(&mut client, "PUT", "/v1/logs/l", &Value::Null).expect(201);
    let sink = json!({"url": receiver.url(), "partition_by": "k", "log": "l"});
    ask(&mut client, "PUT", "/v1/sinks/a", &sink).expect(201);
    for n in 1..=80 {
        let data = json!({"n": n, "fill": "x".repeat(4_000)});
        let body = json!({"events": [{"type": "A", "tags": ["k:1"], "data": data}]});
        ask(&mut client, "POST", "/v1/logs/l/append", &body).expect(200);
    }
    until(&mut client, "/v1/sinks/a", at(80));
    // Refused, or as much as the saved cursor allows.
    let mut patience = Patience::new();
    while ask(&mut client, "POST", "/v1/logs/l/trim?before=80", &Value::Null).status != 200 {
        patience.pause("the cursor is not saved");
    }
    drop(client);
    let data = server.kill();
    let server = Server::start_in(&data, &small);
    let mut client = server.client();
    append(&mut client, "l", "A", "k:1", 81);
    until(&mut client, "/v1/sinks/a", at(81));
    let first =
        ask(&mut client, "GET", "/v1/logs/l/head", &Value::Null).expect(200)["first"].clone();
    assert!(first.as_u64().unwrap() > 50, "{first}");
    let other = Receiver::start();
    let sink = json!({"url": other.url(), "partition_by": "k", "log": "l"});
    ask(&mut client, "PUT", "/v1/sinks/b", &sink).expect(201);
    until(&mut client, "/v1/sinks/b", at(81));
    assert_eq!(other.wait_for(82 - first.as_u64().unwrap() as usize)[0], first.as_u64().unwrap());
}
