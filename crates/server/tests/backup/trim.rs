//! The beginning of a log is removed over HTTP: what is left answers, what is gone is refused by
//! name, and who needs it holds it; then restarts, backups and restores.

use crate::backups::{SMALL, done, refused, shown};
use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use wellspring_patience::Patience;

const LOG: &str = "/v1/logs/telemetry";

/// Appends events 1 to `count`, each of 3 KB.
fn fill(client: &mut Client, count: u64) {
    client.call("PUT", LOG, &[], b"").unwrap().expect(201);
    let event = |n: u64| {
        let data = json!({"n": n, "fill": "x".repeat(3_000)});
        json!({"type": "Measured", "tags": [format!("n:{n}"), "all"], "data": data})
    };
    for n in 1..=count {
        client.post(&format!("{LOG}/append"), &json!({"events": [event(n)]})).unwrap().expect(200);
    }
}

fn trim(client: &mut Client, how: &str) -> Value {
    client.call("POST", &format!("{LOG}/trim?{how}"), &[], b"").unwrap().expect(200)
}

/// The first position of a trimmed log, at which it answers and before which it refuses.
fn check(client: &mut Client, head: u64) -> u64 {
    let document = client.get(LOG).unwrap().expect(200);
    let first = document["first"].as_u64().unwrap();
    assert_eq!(document["head"], head);
    let told = client.get(&format!("{LOG}/head")).unwrap().expect(200);
    assert_eq!(told, json!({"head": head, "first": first}));
    let left = head + 1 - first;
    let types = client.get(&format!("{LOG}/types")).unwrap().expect(200);
    assert_eq!(types["types"][0]["count"], left);
    let after = first - 1;
    let read = client.get(&format!("{LOG}/events?after={after}&limit=1000")).unwrap().expect(200);
    assert_eq!(read["events"].as_array().unwrap().len() as u64, left);
    let newest = client.get(&format!("{LOG}/events?order=desc&limit=3")).unwrap().expect(200);
    assert_eq!(newest["events"][0]["position"], head);
    let oldest = format!("{LOG}/events?order=desc&after={}&limit=1", first + 1);
    let oldest = client.get(&oldest).unwrap().expect(200);
    assert_eq!((&oldest["events"][0]["position"], &oldest["next"]), (&json!(first), &json!(first)));
    let mut problem = |method: &str, path: &str, accept: &str, body: &str| {
        let headers = [("Accept", accept), ("Content-Type", "application/json")];
        let answer = client.call(method, &format!("{LOG}{path}"), &headers, body.as_bytes());
        let told = answer.unwrap().problem(410);
        assert_eq!((&told["type"], &told["first"]), (&json!("/problems/trimmed"), &json!(first)));
    };
    let all = "*/*";
    problem("GET", "/events", all, "");
    problem("GET", &format!("/events?after={}", after - 1), all, "");
    problem("GET", "/events?tag=n:1", "application/x-ndjson", "");
    problem("GET", "/events", "text/event-stream", "");
    problem("GET", "/events?since=2020-01-01T00:00:00Z", all, "");
    problem("GET", "/events?order=desc&tag=n:1", all, "");
    problem("GET", "/events/1", all, "");
    problem("POST", "/query", all, r#"{"query":{}}"#);
    let project =
        json!({"projections": {"p": {"query": {"items": [{"tags": ["all"]}]}, "reduce": "count"}}});
    problem("POST", "/project", all, &project.to_string());
    let unless = |tag: &str, after: u64| {
        let query = json!({"items": [{"tags": [tag]}]});
        let condition = json!({"failIfEventsMatch": query, "after": after});
        json!({"events": [{"type": "Measured", "data": 1}], "condition": condition}).to_string()
    };
    // It was appended; nothing may be claimed from what is left.
    problem("POST", "/append", all, &unless("n:1", 0));
    // What is left is enough to refuse.
    let headers = [("Content-Type", "application/json")];
    let body = unless(&format!("n:{head}"), 0);
    let answer = client.call("POST", &format!("{LOG}/append"), &headers, body.as_bytes());
    assert_eq!(answer.unwrap().problem(409)["type"], "/problems/append-condition-failed");
    first
}

#[test]
fn a_trimmed_log_answers_from_its_first_position_on_and_refuses_what_needs_more() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    fill(&mut client, 300);
    let old = done(&["backup", "--url", &server.url(), "--to", shown(&place)]);
    assert!(old.contains("is finished: "), "{old}");
    let earlier = dir.path().join("earlier");
    done(&["backup", "--url", &server.url(), "--to", shown(&earlier)]);
    let planned = trim(&mut client, "before=100&dry_run=true");
    let first = planned["first"].as_u64().unwrap();
    assert!((70..=100).contains(&first) && planned["removed_events"] == first - 1, "{planned}");
    assert!(planned["removed_bytes"].as_u64().unwrap() > 200_000, "{planned}");
    assert_eq!(client.get(LOG).unwrap().expect(200)["first"], 1, "a dry run removes nothing");
    let trimmed = trim(&mut client, "before=100");
    assert_eq!((&trimmed["first"], &trimmed["removed_events"]), (&json!(first), &json!(first - 1)));
    assert_eq!(check(&mut client, 300), first);
    assert_eq!(trim(&mut client, "before=100")["removed_events"], 0, "again");
    // Of several, what all allow; nothing is that old.
    assert_eq!(trim(&mut client, "before=200&max_age_s=3600")["removed_events"], 0);
    let kept = trim(&mut client, "max_bytes=400000")["first"].as_u64().unwrap();
    assert!((160..=190).contains(&kept), "{kept}");
    let told = client.call("POST", &format!("{LOG}/trim"), &[], b"").unwrap().problem(422);
    assert_eq!(told["field"], "before");
    let history = client.get(LOG).unwrap().expect(200)["history"].clone();
    drop(client);
    let data = server.kill();
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    assert_eq!(check(&mut client, 300), kept);
    assert_eq!(client.get(LOG).unwrap().expect(200)["history"], history);
    // The tool: a dry run, then for good.
    let url = server.url();
    let words = ["log", "trim", "--url", &url, "telemetry", "--before", "250"];
    let said = done(&[&words[..], &["--dry-run"]].concat());
    assert!(said.contains("would remove ") && said.contains("would begin at 2"), "{said}");
    let said = done(&[&words[..], &["--yes"]].concat());
    assert!(said.contains("log telemetry begins at position 2"), "{said}");
    let first = check(&mut client, 300);
    assert!(first > 220, "{first}");
    let listed = done(&["log", "list", "--url", &url]);
    assert!(
        listed.contains("FIRST") && listed.contains(&format!("telemetry  {first}")),
        "{listed}"
    );
    // An export begins where the log does, and one that asks for more is refused.
    let out = dir.path().join("out.ndjson");
    let words = ["export", "--url", &url, "--log", "telemetry", "-o", shown(&out)];
    let said = done(&words);
    assert!(said.contains(&format!("before position {first} were removed")), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count() as u64, 301 - first);
    let said = refused(64, &[&words[..], &["--after", "9"]].concat());
    assert!(said.contains(&format!("ask for what comes after {}", first - 1)), "{said}");
    // The newest ones are all that are left, if there are fewer.
    let shown_events = done(&["tail", "--url", &url, "--log", "telemetry", "-n", "1000", "--json"]);
    assert_eq!(shown_events.matches("\"position\"").count() as u64, 301 - first);
    // The newest backup replaces the one from before the cut.
    let said = done(&["backup", "--url", &url, "--to", shown(&place), "--keep", "1"]);
    assert!(said.contains("is finished: "), "{said}");
    let list = done(&["backup", "list", "--from", shown(&place)]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(done(&["verify", "--from", shown(&place)]).contains("sound"));
    drop(client);
    drop(server);
    let verified = done(&["verify", "--data", shown(&data), "--log", "telemetry"]);
    assert!(verified.contains(&format!("{} events", 301 - first)), "{verified}");
    // A backup from before the cut mends what is left, and brings nothing back.
    let log = data.join("logs/telemetry");
    let segment = log.join(format!("{first:020}.seg"));
    let mut bytes = fs::read(&segment).unwrap();
    bytes[20_000] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let words = ["mend", "--data", shown(&data), "--log", "telemetry", "--from"];
    let said = done(&[&words[..], &[shown(&earlier)]].concat());
    assert!(said.contains("telemetry"), "{said}");
    // A damaged or lost floor is mended by a backup from after the cut.
    let floor = log.join("floor");
    fs::write(&floor, "history").unwrap();
    let from_before = refused(1, &[&words[..], &[shown(&earlier)]].concat());
    assert!(from_before.contains("it does not say where the log begins"), "{from_before}");
    for is_lost in [false, true] {
        if is_lost {
            fs::remove_file(&floor).unwrap();
        }
        let said = done(&[&words[..], &[shown(&place)]].concat());
        assert!(said.contains("mended floor"), "{said}");
    }
    let server = Server::start_in(&data, SMALL);
    assert_eq!(check(&mut server.client(), 300), first);
    drop(server);
    let other = dir.path().join("other");
    done(&["restore", "--from", shown(&place), "--data", shown(&other)]);
    let server = Server::start_in(&other, SMALL);
    let mut client = server.client();
    assert_eq!(check(&mut client, 300), first);
    assert_ne!(client.get(LOG).unwrap().expect(200)["history"], history);
    let cut = dir.path().join("cut");
    let position = [
        &["restore", "--from", shown(&place), "--data", shown(&cut)][..],
        &["--log", "telemetry", "--position"],
    ]
    .concat();
    let before = refused(64, &[&position[..], &["50"]].concat());
    assert!(before.contains(&format!("from position {first} on")), "{before}");
    done(&[&position[..], &["290"]].concat());
    let server = Server::start_in(&cut, SMALL);
    assert_eq!(check(&mut server.client(), 290), first);
}

#[test]
fn a_backup_goes_on_without_what_is_removed_while_it_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("backups");
    let server = Server::start_in(&dir.path().join("data"), SMALL);
    let mut client = server.client();
    fill(&mut client, 300);
    let url = server.url();
    let words = ["backup", "--url", &url, "--to", shown(&place), "--rate", "200000"];
    let first = std::thread::scope(|scope| {
        let backup = scope.spawn(|| done(&words));
        std::thread::sleep(Duration::from_millis(800));
        let first = trim(&mut client, "before=250")["first"].as_u64().unwrap();
        assert!(backup.join().unwrap().contains("is finished: "));
        first
    });
    let restored = dir.path().join("restored");
    done(&["restore", "--from", shown(&place), "--data", shown(&restored)]);
    let server = Server::start_in(&restored, SMALL);
    assert_eq!(check(&mut server.client(), 300), first);
}

/// The results are in a log of their own; what settled a delivery is removed there.
#[test]
fn a_delivery_is_settled_once_whatever_is_removed_of_its_results() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(&dir.path().join("data"), SMALL);
    let mut client = server.client();
    client.call("PUT", LOG, &[], b"").unwrap().expect(201);
    let definition = r#"{"query":{"items":[{"types":["Order"]}]},"from":"beginning"}"#;
    let headers = [("Content-Type", "application/json")];
    let answer = client.call("PUT", "/v1/consumers/c", &headers, definition.as_bytes());
    answer.unwrap().expect(201);
    let order = json!({"events": [{"type": "Order", "data": 1}]});
    client.post("/v1/append", &order).unwrap().expect(200);
    let next = |client: &mut Client, worker: &str| {
        let body = json!({"worker": worker, "turn": 1, "want": 9, "wait_ms": 0});
        client.post("/v1/consumers/c/next", &body).unwrap().expect(200)["deliveries"].clone()
    };
    let delivery = next(&mut client, "w")[0]["delivery"].clone();
    let settles = json!({"consumer": "c", "worker": "w", "delivery": delivery, "log": "main"});
    let result = json!({"events": [{"type": "Paid", "data": 1}], "settles": settles});
    client.post(&format!("{LOG}/append"), &result).unwrap().expect(200);
    for _ in 0..60 {
        let event = json!({"type": "T", "data": "x".repeat(8_000)});
        client.post(&format!("{LOG}/append"), &json!({"events": [event]})).unwrap().expect(200);
    }
    assert!(trim(&mut client, "before=40")["first"].as_u64().unwrap() > 20);
    drop(client);
    let data = server.kill();
    let server = Server::start_in(&data, SMALL);
    assert_eq!(next(&mut server.client(), "v"), json!([]), "it is settled");
}

#[test]
fn a_rule_removes_the_beginning_by_itself_and_waits_for_who_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(&dir.path().join("data"), SMALL);
    let mut client = server.client();
    fill(&mut client, 200);
    let set = |client: &mut Client, rule: &str| {
        let headers = [("Content-Type", "application/json")];
        let path = format!("{LOG}/retention");
        client.call("PUT", &path, &headers, rule.as_bytes()).unwrap()
    };
    let none = client.get(&format!("{LOG}/retention")).unwrap().expect(200);
    assert_eq!(none, json!({"first": 1, "held_by": []}));
    assert_eq!(set(&mut client, r#"{"max_bytes":0}"#).problem(422)["field"], "max_bytes");
    let told = set(&mut client, r#"{"max_age_s":86400,"max_bytes":300000}"#).expect(200);
    assert_eq!((&told["first"], &told["max_age_s"]), (&json!(1), &json!(86_400)), "nothing is old");
    let told = set(&mut client, r#"{"max_bytes":300000}"#).expect(200);
    let first = told["first"].as_u64().unwrap();
    assert!((100..=125).contains(&first), "{told}");
    // What comes later makes more go, but for a consumer that has not read it.
    let definition = r#"{"query":{"items":[{"tags":["all"]}]},"from":"beginning"}"#;
    let headers = [("Content-Type", "application/json")];
    let path = format!("{LOG}/consumers/c");
    client.call("PUT", &path, &headers, definition.as_bytes()).unwrap().expect(201);
    let event = json!({"type": "Measured", "tags": ["all"], "data": "x".repeat(3_000)});
    for _ in 0..100 {
        client.post(&format!("{LOG}/append"), &json!({"events": [event]})).unwrap().expect(200);
    }
    let held = client.get(&format!("{LOG}/retention")).unwrap().expect(200);
    let consumer = json!([{"kind": "consumer", "name": "c", "position": first}]);
    assert_eq!((&held["first"], &held["held_by"]), (&json!(first), &consumer));
    client.call("DELETE", &path, &[], b"").unwrap().expect(200);
    let mut patience = Patience::new();
    while client.get(LOG).unwrap().expect(200)["first"].as_u64().unwrap() < first + 90 {
        patience.pause("the rule removes nothing");
    }
    // Without the rule, another log of that name keeps everything.
    client.call("DELETE", &format!("{LOG}?confirm=telemetry"), &[], b"").unwrap().expect(200);
    client.call("PUT", LOG, &[], b"").unwrap().expect(201);
    assert_eq!(client.get(&format!("{LOG}/retention")).unwrap().expect(200), none);
    assert_eq!(set(&mut client, "{}").expect(200), none);
}

#[test]
fn who_needs_the_beginning_holds_it_and_survives_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(&dir.path().join("data"), SMALL);
    let mut client = server.client();
    fill(&mut client, 300);
    let define = |client: &mut Client, name: &str| {
        let definition = json!({"query": {"items": [{"tags": ["all"]}]}, "from": "beginning"});
        let path = format!("{LOG}/consumers/{name}");
        let headers = [("Content-Type", "application/json")];
        let body = definition.to_string();
        let answer = client.call("PUT", &path, &headers, body.as_bytes()).unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
    };
    define(&mut client, "done");
    define(&mut client, "behind");
    let mut turn = 0;
    let mut settled: Vec<String> = Vec::new();
    let mut delivered = 0;
    while delivered < 300 {
        turn += 1;
        let body = json!({"worker": "w", "turn": turn, "want": 64, "done": settled});
        let answer = client.post(&format!("{LOG}/consumers/done/next"), &body).unwrap().expect(200);
        let deliveries = answer["deliveries"].as_array().unwrap();
        settled = deliveries.iter().map(|d| d["delivery"].as_str().unwrap().to_owned()).collect();
        delivered += deliveries.len();
    }
    let body = json!({"worker": "w", "turn": turn + 1, "want": 0, "done": settled});
    client.post(&format!("{LOG}/consumers/done/next"), &body).unwrap().expect(200);
    let how = "before=200";
    let planned = trim(&mut client, &format!("{how}&dry_run=true"));
    let held = json!([{"kind": "consumer", "name": "behind", "position": 1}]);
    assert_eq!(planned["held_by"], held, "{planned}");
    let told = client.call("POST", &format!("{LOG}/trim?{how}"), &[], b"").unwrap().problem(409);
    assert_eq!((&told["type"], &told["held_by"]), (&json!("/problems/trim-held"), &held));
    assert_eq!(client.get(LOG).unwrap().expect(200)["first"], 1);
    let trimmed = trim(&mut client, &format!("{how}&force=true"));
    assert!(trimmed["first"].as_u64().unwrap() > 150, "{trimmed}");
    drop(client);
    // Both are there after a restart: the one goes on, the other is told until it is placed.
    let data = server.kill();
    let server = Server::start_in(&data, SMALL);
    let mut client = server.client();
    let body = json!({"worker": "v", "turn": 1, "want": 64});
    let next = |client: &mut Client, name: &str| {
        client.post(&format!("{LOG}/consumers/{name}/next"), &body).unwrap()
    };
    assert_eq!(next(&mut client, "done").expect(200)["deliveries"], json!([]));
    let told = next(&mut client, "behind").problem(410);
    assert_eq!(told["type"], "/problems/trimmed", "{told}");
    let event = json!({"events": [{"type": "Measured", "tags": ["all"], "data": 7}]});
    client.post(&format!("{LOG}/append"), &event).unwrap().expect(200);
    let body = json!({"worker": "v", "turn": 2, "want": 64});
    let answer = client.post(&format!("{LOG}/consumers/done/next"), &body).unwrap().expect(200);
    assert_eq!(answer["deliveries"].as_array().unwrap().len(), 1, "{answer}");
    // `force` does not remove events that a view folds.
    let link = json!({"url": "http://example.com/x", "alias": "mine"});
    client.post("/api/urls", &link).unwrap().expect(201);
    for n in 0..100 {
        let event = json!({"type": "T", "data": "x".repeat(3_000 + n)});
        client.post("/v1/append", &json!({"events": [event]})).unwrap().expect(200);
    }
    let told = client.call("POST", "/v1/trim?before=90&force=true", &[], b"").unwrap().problem(409);
    assert_eq!(told["held_by"][0]["kind"], "view", "{told}");
    // And those of the server's own log.
    let told = client.call("POST", "/v1/logs/system/trim?before=9", &[], b"").unwrap();
    assert_eq!(told.status, 403, "{}", told.text());
}
