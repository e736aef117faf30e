//! Personal data: what is sealed is in no byte of any file; an erasure reaches reads, restarts,
//! copies and restored backups; a crash leaves the state before or after; and what is missing is
//! never called erased.

use crate::backups::{done, refused, shown};
use crate::client::{Answer, Client};
use crate::server::Server;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::time::Duration;
use wellspring_patience::Patience;

const QUIET: &[&str] = &["--scrub-bytes-per-s", "0"];
const JSON: (&str, &str) = ("Content-Type", "application/json");
const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");
const ADA: &str = "student:8f14e45f";
const BOB: &str = "student:b0b";

fn send(client: &mut Client, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    client.call("POST", path, headers, body.as_bytes()).unwrap()
}

fn erase(client: &mut Client, subject: &str, more: &str) -> Value {
    let path = format!("/v1/subjects/{subject}?confirm={subject}{more}");
    client.call("DELETE", &path, &[], b"").unwrap().expect(202)
}

fn events(client: &mut Client, log: &str, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/v1/logs/{log}/events?{query}")).unwrap().expect(200);
    page["events"].as_array().unwrap().clone()
}

/// Every way to write a text that could be found in a file.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let mut all = vec![text.as_bytes().to_vec()];
    all.push(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
    all.push(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
    let each = |write: &dyn Fn(u8) -> String| -> Vec<u8> {
        text.bytes().map(write).collect::<String>().into_bytes()
    };
    all.push(each(&|byte| format!("\\u{byte:04x}")));
    all.push(each(&|byte| format!("%{byte:02X}")));
    all.push(each(&|byte| format!("{byte:02x}")));
    all.push(each(&|byte| format!("{byte:02X}")));
    for offset in 0..3 {
        let padded = [&b"xyz"[..offset], text.as_bytes()].concat();
        let coded = STANDARD_NO_PAD.encode(padded);
        // Without the groups that depend on what stands beside it.
        all.push(coded.as_bytes()[4.min(offset * 4)..coded.len() / 4 * 4 - 4].to_vec());
    }
    all
}

/// The files under a folder in which one of these texts is found.
fn found_in(folder: &Path, texts: &[Vec<u8>]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(found_in(&path, texts));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let holds = |text: &&Vec<u8>| bytes.windows(text.len()).any(|window| window == **text);
        if let Some(text) = texts.iter().find(holds) {
            found.push(format!("{}: {}", path.display(), String::from_utf8_lossy(text)));
        }
    }
    found
}

/// Stores canaries in every way that there is; returns what must be found nowhere.
fn store_canaries(client: &mut Client) -> Vec<Vec<u8>> {
    let mut secret = Vec::new();
    let canary = |n: u32| format!("canary-{n}-Zürich-{}", n * 7_919);
    let subject = ("Wellspring-Subject", ADA);
    let whole = json!({"events": [{"type": "A", "subject": ADA, "data": {"name": canary(1)}}]});
    send(client, "/v1/append", &[JSON, ("Idempotency-Key", "k-1")], &whole.to_string()).expect(200);
    let digest = Sha256::digest(whole.to_string());
    secret.push(digest[..16].to_vec());
    let personal = json!({"events": [{"type": "B", "tags": [BOB], "data": {"amount": 5},
        "personal": {ADA: {"iban": canary(2)}, BOB: {"iban": canary(3)}}}]});
    send(client, "/v1/append", &[JSON], &personal.to_string()).expect(200);
    let plain = json!({"events": [{"type": "C", "data": canary(4), "id": uuid(4)}]});
    send(client, "/v1/append", &[JSON, subject], &plain.to_string()).expect(200);
    let lines = json!({"type": "D", "data": canary(5)}).to_string() + "\n";
    let key = ("Idempotency-Key", "bulk");
    send(client, "/v1/append", &[NDJSON, subject, key], &lines).expect(200);
    secret.push(Sha256::digest(&lines)[..16].to_vec());
    let lines = json!({"type": "E", "data": canary(6)}).to_string() + "\n";
    send(client, "/v1/import", &[NDJSON, subject], &lines).expect(200);
    let bytes = STANDARD.encode(canary(7));
    let binary = json!({"events": [{"type": "F", "subject": ADA, "data_base64": bytes}]});
    send(client, "/v1/append", &[JSON], &binary.to_string()).expect(200);
    let path = format!("/e?type=G&subject={ADA}&ack=durable");
    send(client, &path, &[JSON], &json!(canary(8)).to_string()).expect(202);
    send(client, "/e?type=H&ack=durable", &[subject], &canary(9)).expect(202);
    // Over the lean loop, with a key that is known by now.
    let lean = json!({"events": [{"type": "I", "data": canary(10)}]}).to_string();
    send(client, "/v1/append", &[JSON, subject, ("Idempotency-Key", "lean")], &lean).expect(200);
    secret.push(Sha256::digest(&lean)[..16].to_vec());
    let link = |n: u32| json!({"url": format!("https://a.example/{}", canary(n)), "tags": [canary(n + 1)]});
    let (one, lines) = (link(11).to_string(), format!("{}\n{}", link(13), link(15)));
    let key = ("Idempotency-Key", "links");
    let code = send(client, "/api/urls", &[JSON, subject, key], &one).expect(201);
    secret.push(Sha256::digest(&one)[..16].to_vec());
    send(client, "/api/urls", &[NDJSON, subject, key], &lines).expect(201);
    secret.push(Sha256::digest(lines + "\n")[..16].to_vec());
    let path = format!("/api/urls/{}", code["short_code"].as_str().unwrap());
    client
        .call("PATCH", &path, &[JSON, subject], link(17).to_string().as_bytes())
        .unwrap()
        .expect(200);
    assert_eq!(client.get(&path[9..]).unwrap().status, 302);
    secret.extend((1..=18).flat_map(|n| encodings(&canary(n))));
    secret
}

fn uuid(n: u32) -> String {
    format!("018f5c3e-9b2a-7c11-8d3e-{n:012}")
}

#[test]
fn what_is_sealed_is_in_no_byte_of_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let keys = dir.path().join("key-backups");
    let flags =
        [QUIET, &["--subject-key-backup-to", shown(&keys), "--log-level", "debug"]].concat();
    let server = Server::start_in(&data, &flags);
    let mut client = server.client();
    let secret = store_canaries(&mut client);
    let clear = json!({"events": [{"type": "Clear", "data": "clear-canary"}]}).to_string();
    send(&mut client, "/v1/append", &[JSON], &clear).expect(200);
    let told = events(&mut client, "main", &format!("tag={ADA}"));
    assert!(told.len() >= 13, "{told:?}");
    for event in &told {
        let is_binary = event["data_base64"] != Value::Null;
        assert!(is_binary || event.to_string().contains("canary-"), "{event}");
    }
    done(&["backup", "--url", &server.url(), "--to", shown(&place)]);
    let check = |server: &Server, client: &mut Client| {
        assert!(!found_in(&data, &[b"clear-canary".to_vec()]).is_empty(), "the search is blind");
        for folder in [&data, &place] {
            assert_eq!(found_in(folder, &secret), [""; 0]);
        }
        let told = client.get("/metrics").unwrap().text() + &server.log().join("\n");
        assert!(!told.contains("canary-"), "{told}");
    };
    check(&server, &mut client);
    let store = fs::read(data.join("keys/store")).unwrap();
    assert_eq!(erase(&mut client, ADA, "")["state"], "complete");
    check(&server, &mut client);
    // The backup of the keys has nothing of the old one, nor has an export or a backup made after.
    assert_eq!(fs::read_dir(&keys).unwrap().count(), 1);
    let newest = fs::read_dir(&keys).unwrap().next().unwrap().unwrap().path();
    // Where format.md has a wrapped key in the first slot.
    let wrapped = [store[4096 + 76..4096 + 124].to_vec()];
    assert_ne!(wrapped[0], [0; 48]);
    assert_eq!(found_in(dir.path(), &wrapped), [""; 0]);
    assert_ne!(fs::read(newest).unwrap(), store);
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    let file = out.join("all.ndjson");
    done(&["export", "--url", &server.url(), "-o", shown(&file)]);
    let again = dir.path().join("again");
    done(&["backup", "--url", &server.url(), "--to", shown(&again)]);
    let of_ada: Vec<_> = secret.iter().filter(|text| !is_of_bob(text)).cloned().collect();
    for folder in [&out, &again] {
        assert_eq!(found_in(folder, &of_ada), [""; 0]);
    }
    assert!(!found_in(&out, &encodings("canary-3-")).is_empty(), "bob is there");
    drop(client);
    drop(server);
    done(&["verify", "--data", shown(&data), "--log", "main"]);
    assert_eq!(found_in(&data, &secret), [""; 0]);
}

/// Canary 3 is the only one of another subject.
fn is_of_bob(text: &[u8]) -> bool {
    encodings("canary-3-Zürich-23757").iter().any(|coded| coded == text)
}

#[test]
fn an_erasure_reaches_everything_and_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let (data, place) = (dir.path().join("data"), dir.path().join("backups"));
    let server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    client.call("PUT", "/v1/logs/orders", &[], b"").unwrap().expect(201);
    for log in ["main", "orders"] {
        let path = format!("/v1/logs/{log}/append");
        let body = json!({"events": [
            {"type": "Ordered", "tags": [ADA], "data": {"sum": 5}, "personal": {ADA: 1, BOB: [2]}},
            {"type": "Named", "subject": ADA, "data": {"name": "Ada"}, "id": uuid(1)},
            {"type": "Clear", "tags": [ADA], "data": {"clear": true}},
        ]});
        send(&mut client, &path, &[JSON], &body.to_string()).expect(200);
    }
    done(&["backup", "--url", &server.url(), "--to", shown(&place)]);
    let old_store = fs::read(data.join("keys/store")).unwrap();
    let found = client.get(&format!("/v1/subjects/{ADA}")).unwrap().expect(200);
    assert_eq!(found["state"], "live");
    let row = json!({"log": "main", "events": 3, "sealed": 2, "clear": 1, "first": 1, "last": 3});
    assert_eq!(found["logs"][0], row);
    let exported = done(&["subject", "export", "--url", &server.url(), ADA]);
    let is_event = |line: &&str| line.starts_with("{\"log\":");
    let exported_events = exported.lines().filter(is_event).count();
    assert_eq!((exported_events, exported.matches("Ada").count()), (6, 2), "{exported}");
    assert!(exported.contains("6 events have the tag student:8f14e45f"), "{exported}");
    // A projection reads what is sealed, and what stays.
    let name = json!({"projections": {"n": {"query": {"items": [{"tags": [ADA]}]},
        "reduce": {"last": "/name"}}, "s": {"query": {"items": []}, "reduce": {"sum": "/sum"}}}});
    let states = |client: &mut Client| {
        client.post("/v1/project", &name).unwrap().expect(200)["states"].clone()
    };
    let before = states(&mut client);
    assert!(before.to_string().contains("Ada"), "{before}");
    let erasure = erase(&mut client, ADA, "");
    assert_eq!(
        erasure["logs"],
        json!([{"log": "main", "subjects": 1}, {"log": "orders", "subjects": 1}])
    );
    let id = erasure["erasure"].as_str().unwrap().to_owned();
    let check = |client: &mut Client| {
        for log in ["main", "orders"] {
            let told = events(client, log, "limit=3");
            assert_eq!(
                (&told[0]["data"], &told[0]["personal"]),
                (&json!({"sum": 5}), &json!({ADA: null, BOB: [2]}))
            );
            assert_eq!((&told[1]["data"], &told[1]["subject"]), (&Value::Null, &json!(ADA)));
            assert_eq!((&told[0]["erased"], &told[1]["erased"]), (&json!([ADA]), &json!([ADA])));
            assert_eq!(told[2]["data"], json!({"clear": true}), "it was stored clear");
            let last = events(client, log, &format!("tag={ADA}&type=SubjectErased"));
            assert_eq!(last[0]["data"]["erasure"], json!(id));
        }
        let after = states(client);
        assert!(!after.to_string().contains("Ada") && after["s"] == before["s"], "{after}");
        let found = client.get(&format!("/v1/subjects/{ADA}")).unwrap().expect(200);
        assert_eq!(found["state"], "erased");
        let again = send(
            client,
            "/v1/append",
            &[JSON, ("Wellspring-Subject", ADA)],
            r#"{"events":[{"type":"X","data":1}]}"#,
        );
        assert_eq!(again.problem(409)["type"], "/problems/subject-erased");
        let proof = client.get(&format!("/v1/erasures/{id}")).unwrap().expect(200);
        assert_eq!(
            (&proof["state"], proof["keys"].as_array().unwrap().len()),
            (&json!("complete"), 1)
        );
    };
    check(&mut client);
    // Clients cannot say it.
    let forged = send(
        &mut client,
        "/v1/append",
        &[JSON],
        r#"{"events":[{"type":"SubjectErased","data":1}]}"#,
    );
    assert_eq!(forged.problem(422)["field"], "events[0].type");
    let unknown = client.call("DELETE", "/v1/subjects/a:b?confirm=a:b", &[], b"").unwrap();
    assert_eq!(unknown.problem(404)["type"], "/problems/subject-unknown");
    drop(client);
    let data = server.kill();
    let server = Server::start_in(&data, QUIET);
    check(&mut server.client());
    // A root of its own makes earlier copies worthless.
    let rotated = done(&["keys", "rotate", "--yes", "--url", &server.url()]);
    assert!(rotated.contains(r#""generations":{"2":1}"#), "{rotated}");
    let new_store = dir.path().join("keys.wsk");
    done(&["keys", "backup", "--url", &server.url(), shown(&new_store)]);
    check(&mut server.client());
    drop(server);
    let said = stopped(&data, &old_store);
    assert!(said.contains("generation 1") && said.contains("newest backup of the keys"), "{said}");
    fs::copy(&new_store, data.join("keys/store")).unwrap();
    // A backup from before, with the newest keys: still erased.
    let other = dir.path().join("restored");
    done(&["restore", "--from", shown(&place), "--data", shown(&other)]);
    fs::create_dir(other.join("keys")).unwrap();
    for name in ["store", "root"] {
        fs::copy(data.join("keys").join(name), other.join("keys").join(name)).unwrap();
    }
    let server = Server::start_in(&other, QUIET);
    let mut client = server.client();
    let told = events(&mut client, "main", "limit=3");
    assert_eq!((&told[1]["erased"], &told[0]["personal"][BOB]), (&json!([ADA]), &json!([2])));
    drop(client);
    drop(server);
    // Without keys nothing is called erased.
    fs::remove_dir_all(other.join("keys")).unwrap();
    let server = Server::start_in(&other, QUIET);
    let told = events(&mut server.client(), "main", "limit=3");
    assert_eq!((&told[1]["erased"], &told[1]["unavailable"]), (&Value::Null, &json!([ADA])));
    let keys = server.client().get("/v1/subject-keys").unwrap().expect(200);
    assert!(keys["unavailable_parts"].as_u64().unwrap() > 0, "{keys}");
    let ready = server.client().get("/health/ready").unwrap().expect(200);
    assert_eq!(ready["warnings"][0]["type"], "/problems/key-unavailable", "{ready}");
}

/// Puts this store in place and starts a server, which has to refuse; returns what it said.
fn stopped(data: &Path, store: &[u8]) -> String {
    fs::write(data.join("keys/store"), store).unwrap();
    refused(1, &["serve", "--data", shown(data), "--listen", "127.0.0.1:0"])
}

#[test]
fn an_old_store_of_keys_brings_nobody_back() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    let body = json!({"events": [{"type": "N", "data": "x", "personal": {ADA: 1, BOB: 2}}]});
    client.post("/v1/append", &body).unwrap().expect(200);
    let old_store = fs::read(data.join("keys/store")).unwrap();
    erase(&mut client, ADA, "");
    drop(client);
    let data = server.kill();
    // Under the same root it would open everything, but the log system knows.
    fs::write(data.join("keys/store"), old_store).unwrap();
    let server = Server::start_in(&data, QUIET);
    let told = events(&mut server.client(), "main", "limit=1");
    assert_eq!(told[0]["personal"], json!({ADA: null, BOB: 2}));
    assert_eq!(told[0]["erased"], json!([ADA]));
    drop(server);
    fs::remove_file(data.join("keys/root")).unwrap();
    let said = refused(1, &["serve", "--data", shown(&data), "--listen", "127.0.0.1:0"]);
    assert!(said.contains("put the root back"), "{said}");
}

#[test]
fn an_erasure_waits_its_grace_can_be_cancelled_and_survives_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(&dir.path().join("data"), QUIET);
    let mut client = server.client();
    let body = json!({"events": [{"type": "N", "data": "x", "personal": {ADA: 1, BOB: 2}}]});
    client.post("/v1/append", &body).unwrap().expect(200);
    let shown_to = |client: &mut Client| {
        let event = &events(client, "main", "limit=1")[0];
        assert_eq!(
            event["withheld"] == json!(true),
            event["personal"][ADA] == Value::Null && event["erased"] == Value::Null
        );
        event["personal"].clone()
    };
    let waiting = erase(&mut client, ADA, "&grace_s=3600");
    assert_eq!(waiting["state"], "waiting");
    assert_eq!(waiting["keys"].as_array().unwrap().len(), 1);
    let path = format!("/v1/erasures/{}/cancel", waiting["erasure"].as_str().unwrap());
    assert_eq!(shown_to(&mut client), json!({ADA: null, BOB: 2}));
    drop(client);
    let data = server.kill();
    let server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    assert_eq!(shown_to(&mut client), json!({ADA: null, BOB: 2}), "it is withdrawn still");
    let list = client.get("/v1/erasures").unwrap().expect(200);
    assert_eq!(list["erasures"][0]["subjects"], json!([ADA]));
    assert_eq!(send(&mut client, &path, &[], "").expect(200)["state"], "cancelled");
    assert_eq!(send(&mut client, &path, &[], "").expect(200)["state"], "cancelled", "again");
    assert_eq!(shown_to(&mut client), json!({ADA: 1, BOB: 2}));
    client.post("/v1/append", &body).unwrap().expect(200);
    let due = erase(&mut client, ADA, "&grace_s=1");
    let path = format!("/v1/erasures/{}", due["erasure"].as_str().unwrap());
    drop(client);
    let data = server.kill();
    let server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    let mut patience = Patience::new();
    while client.get(&path).unwrap().expect(200)["state"] != "complete" {
        patience.pause("the erasure is carried out");
    }
    let late = send(&mut client, &format!("{path}/cancel"), &[], "").problem(409);
    assert_eq!(late["type"], "/problems/erasure-begun");
    assert_eq!(shown_to(&mut client), json!({ADA: null, BOB: 2}));
}

#[test]
fn an_erasure_that_another_has_overtaken_completes_with_it() {
    let server = Server::start_with(QUIET);
    let mut client = server.client();
    let body = json!({"events": [{"type": "N", "data": "x", "personal": {ADA: 1, BOB: 2}}]});
    client.post("/v1/append", &body).unwrap().expect(200);
    let later = erase(&mut client, ADA, "&grace_s=86400");
    let both = json!({"subjects": [ADA, BOB], "grace_s": 86_400});
    let both = client.post("/v1/erasures", &both).unwrap().expect(202);
    assert_eq!(erase(&mut client, ADA, "&grace_s=86401")["erasure"], later["erasure"]);
    let now = erase(&mut client, ADA, "");
    assert_eq!(now["state"], "complete");
    assert_ne!(now["erasure"], later["erasure"]);
    let path = |erasure: &Value| format!("/v1/erasures/{}", erasure["erasure"].as_str().unwrap());
    let late = send(&mut client, &format!("{}/cancel", path(&later)), &[], "").problem(409);
    assert_eq!(late["type"], "/problems/erasure-begun");
    assert_eq!(client.get(&path(&later)).unwrap().expect(200)["state"], "complete");
    // What one of several has not lost is given back.
    assert_eq!(client.get(&path(&both)).unwrap().expect(200)["state"], "waiting");
    send(&mut client, &format!("{}/cancel", path(&both)), &[], "").expect(200);
    let all = events(&mut client, "main", "limit=9");
    assert_eq!(all[0]["personal"], json!({ADA: null, BOB: 2}));
    assert_eq!(all.iter().filter(|event| event["type"] == "SubjectErased").count(), 1);
    assert_eq!(client.get("/v1/erasures").unwrap().expect(200)["erasures"], json!([]));
}

#[test]
fn many_are_erased_whatever_a_crash_cuts_short() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(&dir.path().join("data"), QUIET);
    for round in 0..4u64 {
        let mut client = server.client();
        let name = |n: u64| format!("user:{round}-{n}");
        let event = |n: u64| json!({"type": "N", "subject": name(n), "data": {"n": n}});
        let all: Vec<Value> = (0..300).map(event).collect();
        client.post("/v1/append", &json!({"events": all})).unwrap().expect(200);
        let subjects: Vec<String> = (0..299).map(name).collect();
        let body = json!({"subjects": subjects, "grace_s": 0}).to_string();
        // The answer may be lost with the server.
        let url = server.url();
        let asking = std::thread::spawn(move || {
            let address = url.strip_prefix("http://").unwrap().parse().unwrap();
            let mut client = Client::connect(address).unwrap();
            client.call("POST", "/v1/erasures", &[JSON], body.as_bytes()).ok();
        });
        std::thread::sleep(Duration::from_millis(3 + round * 6));
        drop(client);
        let data = server.kill();
        asking.join().unwrap();
        server = Server::start_in(&data, QUIET);
        let mut client = server.client();
        let mut patience = Patience::new();
        while client.get("/v1/erasures").unwrap().expect(200)["erasures"] != json!([]) {
            patience.pause("what has begun ends");
        }
        let before = told_before(&mut client, round);
        let told = events(&mut client, "main", &format!("type=N&after={before}&limit=300"));
        let erased = told.iter().filter(|event| event["erased"] != Value::Null).count();
        assert!(erased == 0 || erased == 299, "all or none: {erased}");
        assert_eq!(told[299]["data"], json!({"n": 299}), "another one stays");
    }
}

/// The position before the first event of a round.
fn told_before(client: &mut Client, round: u64) -> u64 {
    events(client, "main", &format!("tag=user:{round}-0&limit=1"))[0]["position"].as_u64().unwrap()
        - 1
}

#[test]
fn a_retry_is_known_although_nothing_equal_is_stored() {
    let server = Server::start_with(QUIET);
    let mut client = server.client();
    let key = ("Idempotency-Key", "once");
    let body =
        |name: &str| json!({"events": [{"type": "N", "subject": ADA, "data": name}]}).to_string();
    for replayed in [false, true] {
        let answer = send(&mut client, "/v1/append", &[JSON, key], &body("Ada")).expect(200);
        assert_eq!((&answer["first"], &answer["replayed"]), (&json!(1), &json!(replayed)));
    }
    let other = send(&mut client, "/v1/append", &[JSON, key], &body("Eve")).problem(422);
    assert_eq!(other["type"], "/problems/idempotency-key-reused");
    let named = |name: &str| {
        json!({"events": [{"type": "N", "subject": ADA, "data": name, "id": uuid(7)}]}).to_string()
    };
    for replayed in [false, true] {
        let answer = send(&mut client, "/v1/append", &[JSON], &named("Ada")).expect(200);
        assert_eq!((&answer["first"], &answer["replayed"]), (&json!(2), &json!(replayed)));
    }
    let other = send(&mut client, "/v1/append", &[JSON], &named("Eve")).problem(409);
    assert_eq!(other["type"], "/problems/event-id-reused");
    // Equal events differ where they are stored; an import knows them again all the same.
    let lines: String = (0..50)
        .map(|n| {
            json!({"type": "L", "tags": [format!("l:{}", n % 5)], "subject": ADA, "data": n % 3})
                .to_string()
                + "\n"
        })
        .collect();
    for added in [50, 0] {
        let answer = send(&mut client, "/v1/import", &[NDJSON], &lines).expect(200);
        assert_eq!((&answer["added"], &answer["known"]), (&json!(added), &json!(50 - added)));
        assert_eq!(answer["sealed"], 50);
    }
    // What was exported comes back sealed; what was erased stays so.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.ndjson");
    let export = |name: &str| {
        done(&["export", "--url", &server.url(), "--log", name, "-o", shown(&file)]);
        let copy = format!("copy-{name}");
        done(&["log", "create", "--url", &server.url(), &copy]);
        done(&["import", "--url", &server.url(), "--log", &copy, shown(&file)]);
        copy
    };
    let copy = export("main");
    let found = client.get(&format!("/v1/subjects/{ADA}")).unwrap().expect(200);
    assert_eq!((&found["logs"][0]["sealed"], &found["logs"][0]["clear"]), (&json!(52), &json!(0)));
    assert_eq!(found["logs"].as_array().unwrap().len(), 2, "{copy}: {found}");
    // What was stored clear is sealed in a copy, by the tags that name the subjects.
    let clear = json!({"events": [{"type": "K", "tags": [ADA], "data": 1}, {"type": "K", "tags": [ADA, BOB], "data": 2}]});
    let named = "/v1/logs/named";
    client.call("PUT", named, &[], b"").unwrap().expect(201);
    client.post(&format!("{named}/append"), &clear).unwrap().expect(200);
    done(&["export", "--url", &server.url(), "--log", "named", "-o", shown(&file)]);
    done(&["log", "create", "--url", &server.url(), "resealed"]);
    for ids in [&[][..], &["--ids", "uuid5", "--again", "b"]] {
        let words =
            ["import", "--url", &server.url(), "--log", "resealed", "--subject-from", "student"];
        let said = done(&[&words[..], ids, &[shown(&file)]].concat());
        assert!(said.contains("; 1 sealed for a data subject"), "{said}");
    }
    done(&["log", "create", "--url", &server.url(), "clear"]);
    let words = ["import", "--url", &server.url(), "--log", "clear", "--subject-from", "nobody"];
    let said = done(&[&words[..], &[shown(&file)]].concat());
    assert!(said.contains("NOTHING is sealed"), "{said}");
    let sealed = events(&mut client, "resealed", "");
    let subjects: Vec<&Value> = sealed.iter().map(|event| &event["subject"]).collect();
    assert_eq!(subjects, [&json!(ADA), &Value::Null, &json!(ADA), &Value::Null]);
    assert_eq!(sealed[0]["data"], 1);
    erase(&mut client, ADA, "");
    let again = export(&copy);
    assert_eq!(events(&mut client, &again, "limit=1")[0]["data"], Value::Null);
}

#[test]
fn what_cannot_be_sealed_is_refused_by_name() {
    let server = Server::start_with(QUIET);
    let mut client = server.client();
    let subject = ("Wellspring-Subject", ADA);
    let refused_at = |client: &mut Client, event: Value| {
        let body = json!({"events": [event]}).to_string();
        send(client, "/v1/append", &[JSON], &body).problem(422)["field"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (event, field) in [
        (json!({"type": "N", "data": 1, "subject": "ada@example.com"}), "events[0].subject"),
        (json!({"type": "N", "data": 1, "subject": "user:ada@example.com"}), "events[0].subject"),
        (json!({"type": "N", "data": 1, "subject": "user:+49 170 1234567"}), "events[0].subject"),
        (json!({"type": "N", "data": 1, "subject": "ada"}), "events[0].subject"),
        (json!({"type": "N", "data": 1, "personal": {"ada": 1}}), "events[0].personal.ada"),
        (
            json!({"type": "N", "data": 1, "subject": ADA, "personal": {BOB: 1}}),
            "events[0].personal",
        ),
        (json!({"type": "N", "data": 1, "subject": 7}), "events[0].subject"),
        (json!({"type": "N", "data": 1, "subject": ""}), "events[0].subject"),
    ] {
        assert_eq!(refused_at(&mut client, event), field);
    }
    let many: serde_json::Map<_, _> = (0..9).map(|n| (format!("u:{n}"), json!(n))).collect();
    refused_at(&mut client, json!({"type": "N", "data": 1, "personal": many}));
    // Routes that store what cannot be sealed.
    for (path, body) in
        [("/db/main/tx/commit", r#"{"statements":[]}"#), ("/v1/leases/a", r#"{"ttl_ms":1000}"#)]
    {
        // Some faces word problems in their own way.
        let told = send(&mut client, path, &[JSON, subject], body);
        assert_eq!(told.status, 422, "{path}: {}", told.text());
        assert!(told.text().contains("cannot be sealed for a data subject"), "{}", told.text());
    }
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 0);
    let twice = [subject, ("Wellspring-Subject", BOB), JSON];
    send(&mut client, "/v1/append", &twice, r#"{"events":[{"type":"A","data":1}]}"#).problem(400);
    assert_eq!(client.get("/v1/subject-keys").unwrap().expect(200)["live"], 0);
}

#[test]
fn what_races_an_erasure_is_before_it_or_refused() {
    let server = Server::start_with(QUIET);
    let subject = |n: u64| format!("racer:{n}");
    for round in 0..12 {
        let name = subject(round);
        let one = json!({"events": [{"type": "R", "subject": name, "data": 1}]}).to_string();
        send(&mut server.client(), "/v1/append", &[JSON], &one).expect(200);
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let mut client = server.client();
                let lines =
                    json!({"type": "R", "subject": name, "data": writer}).to_string() + "\n";
                let one = one.clone();
                std::thread::spawn(move || {
                    let mut last = 0;
                    loop {
                        // The lean loop, and a bulk.
                        let answer = match writer % 2 {
                            0 => send(&mut client, "/v1/append", &[JSON], &one),
                            _ => send(&mut client, "/v1/append", &[NDJSON], &lines.repeat(20)),
                        };
                        if answer.status != 200 {
                            assert_eq!(answer.problem(409)["type"], "/problems/subject-erased");
                            return last;
                        }
                        last = answer.json()["last"].as_u64().unwrap();
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(5 + round * 3));
        let mut client = server.client();
        assert_eq!(erase(&mut client, &name, "")["state"], "complete");
        let last = writers.into_iter().map(|writer| writer.join().unwrap()).max().unwrap();
        let told = events(&mut client, "main", &format!("tag={name}&type=SubjectErased"));
        let told = told[0]["position"].as_u64().unwrap();
        assert!(last < told, "acknowledged at {last}, after the erasure at {told}");
        let after = format!("tag={name}&after={}", told);
        assert!(events(&mut client, "main", &after).is_empty());
    }
}

#[test]
fn an_erasure_is_not_complete_without_its_keys() {
    let dir = tempfile::tempdir().unwrap();
    let (data, aside) = (dir.path().join("data"), dir.path().join("aside"));
    let server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    let body = json!({"events": [{"type": "N", "data": "x", "personal": {ADA: 1, BOB: 2}}]});
    client.post("/v1/append", &body).unwrap().expect(200);
    let due = erase(&mut client, ADA, "&grace_s=1");
    let path = format!("/v1/erasures/{}", due["erasure"].as_str().unwrap());
    drop(client);
    let data = server.kill();
    fs::rename(data.join("keys"), &aside).unwrap();
    let server = Server::start_in(&data, QUIET);
    std::thread::sleep(Duration::from_millis(2_500));
    let mut client = server.client();
    assert_eq!(client.get(&path).unwrap().expect(200)["state"], "waiting");
    let bob = client.get(&format!("/v1/subjects/{BOB}")).unwrap().expect(200);
    assert_eq!((&bob["state"], &bob["logs"][0]["sealed"]), (&json!("unavailable"), &json!(1)));
    let told = client.call("DELETE", &format!("/v1/subjects/{BOB}?confirm={BOB}"), &[], b"");
    assert!(told.unwrap().problem(404)["detail"].as_str().unwrap().contains("another store"));
    drop(client);
    let data = server.kill();
    fs::rename(&aside, data.join("keys")).unwrap();
    let server = Server::start_in(&data, QUIET);
    let mut client = server.client();
    let mut patience = Patience::new();
    while client.get(&path).unwrap().expect(200)["state"] != "complete" {
        patience.pause("the erasure is carried out");
    }
    assert_eq!(events(&mut client, "main", "limit=1")[0]["personal"], json!({ADA: null, BOB: 2}));
}

#[test]
fn a_stop_backs_keys_up_and_a_store_that_was_cut_short_replaces_no_backup() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copies) = (dir.path().join("data"), dir.path().join("copies"));
    let flags = [QUIET, &["--subject-key-backup-to", shown(&copies)]].concat();
    let mut server = Server::start_in(&data, &flags);
    for subject in [ADA, BOB] {
        let body = json!({"events": [{"type": "N", "data": "x", "subject": subject}]});
        server.client().post("/v1/append", &body).unwrap().expect(200);
    }
    assert!(server.terminate().success());
    let store = data.join("keys/store");
    let whole = fs::read(&store).unwrap();
    let newest = || {
        let mut all: Vec<_> =
            fs::read_dir(&copies).unwrap().map(|copy| copy.unwrap().path()).collect();
        all.sort();
        fs::read(all.last().unwrap()).unwrap()
    };
    assert_eq!(newest(), whole);
    fs::write(&store, &whole[..whole.len() - 256]).unwrap();
    let server = Server::start_in(&data, &flags);
    let mut patience = Patience::new();
    while !server.log().iter().any(|line| line.contains("it has lost keys")) {
        patience.pause("the server compares the store with its backup");
    }
    let erasure = erase(&mut server.client(), ADA, "");
    assert_eq!((&erasure["state"], newest()), (&json!("begun"), whole), "{erasure}");
    let keys = server.client().get("/v1/subject-keys").unwrap().expect(200);
    assert!(keys["backup_failure"].as_str().unwrap().contains("it has lost keys"), "{keys}");
}

#[test]
fn the_tools_know_of_data_subjects() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("events.ndjson");
    let server = Server::start_with(QUIET);
    let url = server.url();
    // A key that is drawn for a request that is refused is none.
    let sealed = json!({"type": "N", "data": 1, "subject": "student:new"});
    let body = json!({"events": [sealed, {"type": "", "data": 1}]});
    server.client().post("/v1/append", &body).unwrap().problem(422);
    let live = || server.client().get("/v1/subject-keys").unwrap().expect(200)["live"].clone();
    assert_eq!(live(), 0);
    done(&["append", "--url", &url, "--type", "N", "--data", "\"a\"", "--subject", ADA]);
    assert_ne!(live(), 0);
    let told = events(&mut server.client(), "main", "limit=1");
    assert_eq!((&told[0]["data"], &told[0]["subject"]), (&json!("a"), &json!(ADA)));
    // A dry run counts what would be sealed, and what is missing.
    let lines = [
        json!({"type": "N", "data": 1, "tags": [BOB]}),
        json!({"type": "N", "data": null, "subject": ADA, "withheld": true}),
        json!({"type": "N", "data": 1}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&file, lines.join("\n")).unwrap();
    let import = ["import", shown(&file), "--url", &url, "--subject-from", "student"];
    let said = done(&[&import[..], &["--dry-run"]].concat());
    assert!(said.contains("1 sealed for a data subject") && said.contains("1 event is"), "{said}");
    let said = refused(65, &import);
    assert!(said.contains("line 2: withheld says") && !said.contains("Correct"), "{said}");
    // Several are erased at once; what is sealed for them then is refused by their names.
    done(&["append", "--url", &url, "--type", "N", "--subject", BOB]);
    done(&["subject", "erase", ADA, BOB, "--yes", "--url", &url]);
    fs::write(&file, &lines[0]).unwrap();
    let said = refused(1, &[&import[..], &["--again", "x"]].concat());
    assert!(said.contains(&format!("{BOB} is erased")) && !said.contains("Correct"), "{said}");
    // A copy in the clear is not mended by importing it once more.
    let clear = json!({"type": "N", "data": 2, "tags": ["student:3"]});
    fs::write(&file, clear.to_string()).unwrap();
    done(&["import", shown(&file), "--url", &url]);
    let said = refused(1, &import);
    assert!(said.contains("import into a new log, and delete this one"), "{said}");
}

#[test]
fn a_root_of_another_server_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folders = ["a", "b"].map(|name| dir.path().join(name));
    for data in &folders {
        let server = Server::start_in(data, QUIET);
        let body = json!({"events": [{"type": "N", "subject": ADA, "data": "x"}]});
        server.client().post("/v1/append", &body).unwrap().expect(200);
    }
    fs::copy(folders[1].join("keys/root"), folders[0].join("keys/root")).unwrap();
    let words = ["serve", "--data", shown(&folders[0]), "--listen", "127.0.0.1:0"];
    let said = refused(1, &words);
    assert!(said.contains("generation 1 is not the one that wrapped the keys"), "{said}");
}

#[test]
fn a_slow_bulk_delays_no_erasure() {
    let server = Server::start_with(QUIET);
    let line = json!({"type": "S", "subject": ADA, "data": 1}).to_string() + "\n";
    send(&mut server.client(), "/v1/append", &[NDJSON], &line).expect(200);
    let mut begun: Vec<Client> = Vec::new();
    for path in ["/v1/append", "/v1/import"] {
        let mut client = server.client();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{line}\r\n",
            line.len()
        );
        client.send(head.as_bytes()).unwrap();
        begun.push(client);
    }
    std::thread::sleep(Duration::from_millis(300));
    let done = erase(&mut server.client(), ADA, "");
    assert_eq!(done["state"], "complete", "nothing is waited for");
    for mut client in begun {
        client.send(b"0\r\n\r\n").unwrap();
        assert_eq!(client.answer().unwrap().problem(409)["type"], "/problems/subject-erased");
    }
    let left = events(&mut server.client(), "main", "type=S");
    assert_eq!(left.len(), 1, "what was not acknowledged is not stored");
}
