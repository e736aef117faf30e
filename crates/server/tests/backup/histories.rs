//! The history of a log: who comes from another one is told so, by the server and by the tools; and
//! an export comes back as it was.

use crate::client::{Answer, Client};
use crate::program::{ProgramOutput, program, run as run_offline};
use crate::server::Server;
use serde_json::{Value, json};
use std::path::Path;

const OTHER: &str = "00000000000000ff";

fn append(client: &mut Client, path: &str, data: u64) {
    let events = json!({"events": [{"type": "T", "tags": ["a:1"], "data": data}]});
    client.post(path, &events).unwrap().expect(200);
}

fn history(client: &mut Client, log: &str) -> String {
    let answer = client.get(&format!("/v1/logs/{log}/head")).unwrap();
    answer.expect(200);
    answer.header("wellspring-history").expect("every answer about a log names it").to_owned()
}

fn call(
    client: &mut Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let json = [("Content-Type", "application/json")];
    let json = if body.is_empty() { &[][..] } else { &json };
    client.call(method, path, &[headers, json].concat(), body.as_bytes()).unwrap()
}

/// The ids of the first messages of a subscription.
fn ids(server: &Server, path: &str, last_id: &str, count: usize) -> Vec<String> {
    let mut client = server.client();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\nLast-Event-ID: {last_id}\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    let (status, headers) = client.head().unwrap();
    assert_eq!(status, 200, "{headers:?}");
    let mut ids = Vec::new();
    while ids.len() < count {
        let line = client.line().unwrap().expect("more messages");
        ids.extend(line.strip_prefix("id: ").map(str::to_owned));
    }
    ids
}

#[test]
fn every_answer_about_a_log_names_its_history_and_a_request_of_another_is_refused() {
    let server = Server::start();
    let mut client = server.client();
    append(&mut client, "/v1/append", 1);
    let known = history(&mut client, "main");
    assert!(known.len() == 16 && known.bytes().all(|byte| byte.is_ascii_hexdigit()), "{known}");
    assert_eq!(client.get("/v1/logs/main").unwrap().expect(200)["history"], known.as_str());
    let odd = call(&mut client, "GET", "/v1/head", &[("Wellspring-History", "x")], &Value::Null);
    assert_eq!(odd.problem(400)["field"], "Wellspring-History");
    let query = json!({"query": {"items": [{"tags": ["a:1"]}]}});
    let event = json!({"events": [{"type": "T", "tags": [], "data": 2}]});
    let projection =
        json!({"projections": {"p": {"query": {"items": [{"tags": ["a:1"]}]}, "reduce": "count"}}});
    for (method, path, body, done) in [
        ("GET", "/v1/events", &Value::Null, 200),
        ("GET", "/v1/events/1", &Value::Null, 200),
        ("GET", "/v1/types", &Value::Null, 200),
        ("GET", "/v1/logs/main", &Value::Null, 200),
        ("PUT", "/v1/logs/main", &Value::Null, 200),
        ("POST", "/v1/query", &query, 200),
        ("POST", "/v1/project", &projection, 200),
        ("POST", "/v1/append", &event, 200),
        ("DELETE", "/v1/logs/main?confirm=main", &Value::Null, 200),
    ] {
        let headers = [("Wellspring-History", OTHER)];
        let refused = call(&mut client, method, path, &headers, body);
        let problem = refused.problem(409);
        assert_eq!(problem["type"], "/problems/another-history", "{path}: {problem}");
        assert_eq!(problem["history"], known.as_str(), "{path}: {problem}");
        assert!(problem["head"].is_u64(), "{path}: {problem}");
        assert_eq!(refused.header("wellspring-history"), Some(known.as_str()), "{path}");
        let head = problem["head"].as_u64();
        let headers = [("Wellspring-History", known.as_str())];
        let answer = call(&mut client, method, path, &headers, body);
        assert_eq!(answer.status, done, "{path}: {}", answer.text());
        if path == "/v1/append" {
            assert_eq!(head, Some(1), "nothing was appended by what was refused");
        }
        if method != "DELETE" {
            assert_eq!(answer.header("wellspring-history"), Some(known.as_str()), "{path}");
        }
    }
    let made = call(&mut client, "PUT", "/v1/logs/new", &[], &Value::Null);
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header("wellspring-history"), Some(&*history(&mut client, "new")));
    let absent = client.get("/v1/logs/absent").unwrap();
    assert_eq!((absent.status, absent.header("wellspring-history")), (404, None));
    let document = client.get("/openapi.json").unwrap().expect(200);
    let parameters = document["paths"]["/v1/events"]["get"]["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|parameter| parameter["name"] == "Wellspring-History"));
    let answer = &document["paths"]["/v1/events"]["get"]["responses"]["200"];
    assert!(answer["headers"]["Wellspring-History"].is_object(), "{answer}");
}

/// The routes that the lean loop answers without a look at the log.
#[test]
fn fast_routes_refuse_another_history_too_and_the_cached_catalogue_names_its_own() {
    let server = Server::start();
    let mut client = server.client();
    append(&mut client, "/v1/append", 1);
    let known = history(&mut client, "main");
    let link = json!({"url": "https://example.com/", "alias": "abc"});
    client.post("/api/urls", &link).unwrap().expect(201);
    let (own, other) = ([("Wellspring-History", known.as_str())], [("Wellspring-History", OTHER)]);
    for (method, path, body, done) in [
        ("POST", "/e", &json!({"a": 1}), 202),
        ("POST", "/e?ack=durable", &json!({"a": 2}), 202),
        ("GET", "/lookup", &Value::Null, 200),
    ] {
        let problem = call(&mut client, method, path, &other, body).problem(409);
        assert_eq!(problem["type"], "/problems/another-history", "{path}: {problem}");
        for headers in [&own[..], &[]] {
            let answer = call(&mut client, method, path, headers, body);
            assert_eq!(answer.status, done, "{path} {headers:?}: {}", answer.text());
            if path == "/lookup" {
                assert_eq!(
                    answer.header("wellspring-history"),
                    Some(known.as_str()),
                    "{headers:?}"
                );
            }
        }
    }
    // What anybody may ask tells nobody of the log.
    for (path, done) in [("/abc", 302), ("/e", 200)] {
        let answer = call(&mut client, "GET", path, &other, &Value::Null);
        assert_eq!((answer.status, answer.header("wellspring-history")), (done, None), "{path}");
        assert_eq!(answer.header("wellspring-position"), None, "{path}");
    }
    let ingested = client.get("/v1/ingest?consistency=linearizable").unwrap().expect(200);
    // Four by POST /e, one click.
    assert_eq!(ingested["accepted"]["events"], 5, "nothing of what was refused: {ingested}");
}

#[test]
fn to_resume_ahead_of_the_head_is_refused_and_a_condition_may_name_it() {
    let server = Server::start();
    let mut client = server.client();
    append(&mut client, "/v1/append", 1);
    let known = history(&mut client, "main");
    let query = json!({"query": {"items": [{"tags": ["a:1"]}]}, "after": 9});
    let projection = json!({"after": 9, "projections": {"p": {"query": {"items": [{"tags": ["a:1"]}]}, "reduce": "count"}}});
    for (method, path, accept, body) in [
        ("GET", "/v1/events?after=9", "application/json", &Value::Null),
        ("GET", "/v1/events?after=9", "application/x-ndjson", &Value::Null),
        ("GET", "/v1/events?after=9", "text/event-stream", &Value::Null),
        ("POST", "/v1/query", "application/json", &query),
        ("POST", "/v1/project", "application/json", &projection),
    ] {
        let refused = call(&mut client, method, path, &[("Accept", accept)], body);
        let problem = refused.problem(409);
        assert_eq!(problem["type"], "/problems/another-history", "{path} {accept}: {problem}");
        assert_eq!(
            (&problem["head"], &problem["history"]),
            (&json!(1), &json!(known)),
            "{path} {accept}"
        );
    }
    // Backwards, it is a bound.
    client.get("/v1/events?after=9&order=desc").unwrap().expect(200);
    let ahead = json!({
        "events": [{"type": "T", "tags": ["a:1"], "data": 2}],
        "condition": {"failIfEventsMatch": {"items": [{"tags": ["a:1"]}]}, "after": 9}
    });
    client.post("/v1/append", &ahead).unwrap().expect(200);
}

#[test]
fn a_subscription_resumes_by_position_with_and_without_its_history() {
    let server = Server::start();
    let mut client = server.client();
    (1..=4).for_each(|n| append(&mut client, "/v1/append", n));
    let known = history(&mut client, "main");
    let expected = [3, 4].map(|n| format!("{n}@{known}"));
    for last in ["2".to_owned(), format!("2@{known}")] {
        assert_eq!(ids(&server, "/v1/events", &last, 2), expected, "{last}");
        assert_eq!(ids(&server, "/v1/events?after=3", &last, 2), expected, "{last}");
    }
    let stream = ("Accept", "text/event-stream");
    let other = format!("2@{OTHER}");
    let headers = [stream, ("Last-Event-ID", other.as_str())];
    let refused = call(&mut client, "GET", "/v1/events", &headers, &Value::Null).problem(409);
    assert_eq!(
        (&refused["type"], &refused["head"]),
        (&json!("/problems/another-history"), &json!(4))
    );
    for odd in ["x", "2@", "2@4f", "-1"] {
        let headers = [stream, ("Last-Event-ID", odd)];
        let refused = call(&mut client, "GET", "/v1/events", &headers, &Value::Null);
        assert_eq!(refused.problem(422)["field"], "Last-Event-ID", "{odd}");
    }
}

#[test]
fn a_history_outlives_a_restart_and_a_copy_and_not_a_deletion() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let mut server = Server::start_in(&data, &[]);
    let mut client = server.client();
    append(&mut client, "/v1/append", 1);
    let known = history(&mut client, "main");
    call(&mut client, "PUT", "/v1/logs/other", &[], &Value::Null);
    let other = history(&mut client, "other");
    assert_ne!(known, other);
    let deleted = call(&mut client, "DELETE", "/v1/logs/other?confirm=other", &[], &Value::Null);
    deleted.expect(200);
    call(&mut client, "PUT", "/v1/logs/other", &[], &Value::Null);
    let again = history(&mut client, "other");
    assert_ne!(other, again, "a log made anew has another history");
    assert!(server.terminate().success());
    drop(server);
    copy_folder(&data, &copy);
    for folder in [&data, &copy] {
        let server = Server::start_in(folder, &[]);
        let mut client = server.client();
        assert_eq!(history(&mut client, "main"), known);
        assert_eq!(history(&mut client, "other"), again);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn run(server: &Server, words: &[&str]) -> ProgramOutput {
    let url = server.url();
    let mut command = program(&[words, &["--url", &url]].concat());
    ProgramOutput::of(command.env_remove("HOME").env_remove("XDG_STATE_HOME").output().unwrap())
}

/// Events that an export could lose something of.
fn delicate_events() -> Value {
    let id = |last: u8| format!("0189e9b1-9b2a-7c11-8d3e-0123456789a{last}");
    json!([
        {"type": "T\"é", "tags": ["z", "source:/s", "a:1", "subject:x"], "data": {"n": 1}, "id": id(1),
         "metadata": {"ce_id": "A-1", "time": "yesterday", "recorded_at": "long ago", "k": "v\n"}},
        {"type": "T", "tags": ["source:", "subject:"], "data": null,
         "metadata": {"ce_id": id(2)}},
        {"type": "T", "tags": [], "data_base64": "AP8=", "id": id(3)},
        {"type": "T", "tags": [], "data_base64": ""},
        {"type": "T", "tags": [], "data": "text", "metadata": {"ce_id": ""}},
    ])
}

/// The lines of an export without what belongs to the log: position and history.
fn lines_of_any_log(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let line = |line: &str| {
        let (line, history) = line.rsplit_once(",\"history\":\"").expect("it is the last member");
        assert_eq!(history.len(), 16 + 2, "{history}");
        line.split_once(',').unwrap().1.to_owned()
    };
    text.lines().map(line).collect()
}

#[test]
fn an_export_comes_back_as_it_was_in_another_log() {
    let (server, target) = (Server::start(), Server::start());
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut client = server.client();
    // As it is written, with a line break between tokens, which NDJSON cannot hold.
    let spaced = b"{\"events\":[{\"type\":\"T\",\"tags\":[\"a:1\"],\"data\":{ \"n\" : 1.50,\n \"e\":\"\\u00e9\" ,\"n\":1e5 }}]}";
    let json = [("Content-Type", "application/json")];
    client.call("POST", "/v1/append", &json, spaced).unwrap().expect(200);
    client.post("/v1/append", &json!({"events": delicate_events()})).unwrap().expect(200);
    run(&server, &["export", "-o", &path("first.ndjson")]).done();
    let expected = lines_of_any_log(dir.path().join("first.ndjson").as_path());
    let spaced = r#""data":{ "n" : 1.50,  "e":"\u00e9" ,"n":1e5 }"#;
    assert!(expected[0].contains(spaced), "{}", expected[0]);
    for (format, log) in [("ndjson", "lines"), ("cloudevents", "cloud")] {
        let file = path(&format!("out.{format}"));
        run(&server, &["export", "-o", &file]).done();
        run(&target, &["log", "create", log]).done();
        let imported = run(&target, &["import", &file, "--log", log]);
        assert!(imported.err.contains("Imported 6 events: 6 added"), "{imported:?}");
        imported.done();
        let back = path(&format!("{log}.ndjson"));
        run(&target, &["export", "-o", &back, "--log", log]).done();
        assert_eq!(lines_of_any_log(Path::new(&back)), expected, "{format}");
        // The same content, whatever is to become of the times.
        for how in ["keep", "metadata", "drop"] {
            let again = run(&target, &["import", &file, "--log", log, "--recorded-at", how]);
            assert!(again.err.contains("0 added, 6 known"), "{how}: {again:?}");
        }
    }
}

#[test]
fn into_a_log_with_later_events_times_become_metadata_and_the_tool_says_so() {
    let (server, target) = (Server::start(), Server::start());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson").to_str().unwrap().to_owned();
    let mut client = server.client();
    append(&mut client, "/v1/append", 1);
    append(&mut client, "/v1/append", 2);
    run(&server, &["export", "-o", &file]).done();
    let mut client = target.client();
    append(&mut client, "/v1/append", 3);
    let kept = run(&target, &["import", &file, "--recorded-at", "keep"]);
    assert_eq!(kept.code, Some(65), "{kept:?}");
    assert!(kept.err.contains("line 1: recorded_at is before"), "{kept:?}");
    assert!(kept.err.contains("--recorded-at metadata"), "{kept:?}");
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 1, "nothing was added");
    let imported = run(&target, &["import", &file]);
    assert!(imported.err.contains("line 1: recorded_at is before"), "{imported:?}");
    assert!(imported.err.contains("times become metadata"), "{imported:?}");
    assert!(imported.err.contains("2 added"), "{imported:?}");
    imported.done();
    let event = client.get("/v1/events/2").unwrap().expect(200);
    let text = std::fs::read_to_string(&file).unwrap();
    let original: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(event["metadata"]["recorded_at"], original["recorded_at"]);
    let over_http = [("Content-Type", "application/x-ndjson")];
    let path = "/v1/import?recorded_at=keep&label=x";
    let refused = client.call("POST", path, &over_http, text.as_bytes()).unwrap().problem(422);
    assert_eq!(
        (&refused["type"], &refused["field"], &refused["line"]),
        (&json!("/problems/invalid"), &json!("recorded_at"), &json!(1))
    );
}

#[test]
fn the_tools_say_where_they_are_and_end_in_another_history() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson").to_str().unwrap().to_owned();
    let mut client = server.client();
    (1..=3).for_each(|n| append(&mut client, "/v1/append", n));
    let known = history(&mut client, "main");
    let exported = run(&server, &["export", "-o", &file, "--tag", "a:1"]);
    let cursor = format!("3@{known}");
    assert!(exported.err.contains(&format!("--after {cursor}")), "{exported:?}");
    append(&mut client, "/v1/append", 4);
    let rest = run(&server, &["export", "--after", &cursor]);
    assert!(rest.out.starts_with("{\"position\":4,"), "{rest:?}");
    assert!(rest.out.contains(&format!(",\"history\":\"{known}\"}}")), "{rest:?}");
    let other = format!("3@{OTHER}");
    for words in [
        &["export", "--after", &other][..],
        &["tail", "--after", &other],
        &["tail", "-f", "--after", &other],
        &["tail", "--after", "9"],
        &["tail", "-f", "--after", "9"],
        &["export", "--after", "9"],
    ] {
        let ended = run(&server, words);
        assert_eq!(ended.code, Some(1), "{words:?}: {ended:?}");
        assert!(ended.err.contains(&format!("--after 4@{known}")), "{words:?}: {ended:?}");
        assert_eq!(ended.out, "", "{words:?}");
    }
    let odd = run(&server, &["tail", "--after", "3@x"]);
    assert_eq!(odd.code, Some(64), "{odd:?}");
}

#[test]
fn a_folder_that_a_disk_snapshot_has_put_back_can_be_given_other_histories() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(dir.path(), &[]);
    append(&mut server.client(), "/v1/append", 1);
    let known = history(&mut server.client(), "main");
    let data = dir.path().display().to_string();
    let renew = ["restore", "--rolled-back", "--data", &data];
    run_offline(&renew).failed(1, "stop it first");
    server.terminate();
    let told = run_offline(&renew).done();
    assert!(told.contains("main: up to position 1; history "), "{told}");
    assert!(told.contains(&format!("before {known}")) && told.contains("system: "), "{told}");
    run_offline(&["restore", "--rolled-back", "--data", &data, "--from", "b"]).failed(64, "--from");
    run_offline(&["restore", "--rolled-back", "--data", &data, "--log", "none"]).failed(64, "none");
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    let now = history(&mut client, "main");
    assert!(now != known && told.contains(&now), "{told}");
    let headers = [("Wellspring-History", known.as_str())];
    call(&mut client, "GET", "/v1/events?after=1", &headers, &Value::Null).problem(409);
    assert_eq!(client.get("/v1/events/1").unwrap().expect(200)["type"], "T");
}

#[test]
fn an_entity_tag_of_another_history_is_another_tag() {
    let server = Server::start();
    let mut client = server.client();
    let main = "/v1/logs/main?confirm=main";
    let add = |client: &mut Client, name: &str, stock: u64| {
        let item = json!({"name": name, "topic": "t", "price": "1.00", "stock": stock});
        client.post("/v1/catalogue/items", &item).unwrap().expect(201);
    };
    let paths = ["/v1/catalogue/items/1", "/lookup/1", "/lookup"];
    let tags = |client: &mut Client| {
        paths.map(|path| client.get(path).unwrap().header("etag").expect("a tag").to_owned())
    };
    add(&mut client, "one", 5);
    let before = tags(&mut client);
    for (path, tag) in paths.iter().zip(&before) {
        let known = [("If-None-Match", tag.as_str())];
        assert_eq!(call(&mut client, "GET", path, &known, &Value::Null).status, 304, "{path}");
    }
    call(&mut client, "DELETE", main, &[], &Value::Null).expect(200);
    call(&mut client, "PUT", "/v1/logs/main", &[], &Value::Null).expect(201);
    add(&mut client, "two", 0);
    let after = tags(&mut client);
    for ((path, before), after) in paths.iter().zip(&before).zip(&after) {
        assert_ne!(before, after);
        let position = |tag: &str| tag.split('@').next().unwrap().to_owned();
        assert_eq!(position(before), position(after), "the positions are the same");
        let known = [("If-None-Match", before.as_str())];
        let answer = call(&mut client, "GET", path, &known, &Value::Null);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.text().contains("two"), "{path}: {}", answer.text());
    }
    let price = json!({"price": "9.99"});
    for (tag, status) in [(&before[0], 412), (&after[0], 200)] {
        let known = [("If-Match", tag.as_str())];
        let changed = call(&mut client, "PATCH", paths[0], &known, &price);
        assert_eq!(changed.status, status, "{tag}: {}", changed.text());
    }
}
