//! The scenarios of the repository send what they say, to the byte.

use super::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn load(name: &str) -> Scenario {
    let options = Options { environment: |_| None, ..Options::default() };
    Scenario::load_with(&folder().join(name), &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs setup against a server that says what is asked for, and then collects
/// the requests of `users` for a while.
fn requests(
    scenario: &Scenario,
    answers: impl Fn(&str) -> (u16, &'static str),
) -> BTreeSet<String> {
    let mut setup = scenario.setup(1, clock);
    while let Some(request) = setup.next_request().unwrap() {
        let (status, body) = answers(&request.request.path);
        setup.answered(status, &[], body.as_bytes()).unwrap();
    }
    let source = scenario.source(&setup.finish(), clock).unwrap();
    let mut workload = source.workload(0, 1, 1);
    let mut seen = BTreeSet::new();
    for turn in 0..600 {
        let user = turn % 3;
        let request = next(&mut *workload, user);
        let asked = request.split(' ').nth(1).unwrap().lines().next().unwrap();
        let (status, body) = answers(asked);
        let judged = answer(&mut *workload, user, status, &[], body);
        assert_eq!(judged, Judgement::Success, "{request}\n{body}");
        seen.insert(request);
    }
    seen
}

#[test]
fn every_file_loads_and_says_how_to_run_it() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.ends_with(".toml"), "{name}");
        let text = std::fs::read_to_string(&path).unwrap();
        let run = format!(
            "wellspring bench scenario scenarios/{name} --url http://127.0.0.1:4000 --users "
        );
        assert!(text.starts_with("# ") && text.contains(&run), "{name} does not say how to run it");
        let scenario = load(&name);
        assert_eq!(scenario.name(), name.trim_end_matches(".toml"));
        assert_eq!(scenario.base(), Some("http://127.0.0.1:4000"));
        found.push(name);
    }
    found.sort();
    let all = ["catalogue", "crablet", "events", "graph", "ingest", "links"];
    assert_eq!(found, all.map(|name| format!("{name}.toml")));
}

#[test]
fn ingest_sends_seven_bytes_and_nothing_else() {
    let seen = requests(&load("ingest.toml"), |_| (202, "{\"ok\":true}"));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["POST /e\n\n{\"e\":1}"]);
}

#[test]
fn links_create_follow_and_look_with_the_weights_of_the_original() {
    let scenario = load("links.toml");
    assert_eq!(scenario.think_us(), (10_000, 50_000));
    let weights: Vec<u32> = scenario.steps.iter().map(|step| step.weight).collect();
    assert_eq!(weights, [1, 3, 10, 2]);
    let seen = requests(&scenario, |path| match path {
        "/api/urls" => (
            201,
            "{\"created_at\":\"2026-11-21T01:43:26.952770\",\"original_url\":\"http://example.com/test\",\"short_code\":\"Yci\"}",
        ),
        "/Yci" => (302, ""),
        _ => (200, "{\"status\":\"healthy\"}"),
    });
    let expected = [
        "GET /Yci\n\n",
        "GET /api/urls/Yci\n\n",
        "GET /health\n\n",
        "POST /api/urls\ncontent-type: application/json\n\n{\"url\":\"http://example.com/test\"}",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn links_need_201_and_a_code() {
    let source = load("links.toml").source(&SetupValues::default(), clock).unwrap();
    let mut workload = source.workload(0, 1, 1);
    let mut judge = |status, body| {
        while !next(&mut *workload, 0).starts_with("POST") {
            workload.lost(0);
        }
        answer(&mut *workload, 0, status, &[], body)
    };
    assert_eq!(judge(200, "{\"short_code\":\"a\"}"), Judgement::WrongStatus);
    assert!(matches!(judge(201, "{}"), Judgement::FailedCheck(_)));
    assert_eq!(judge(201, "{\"short_code\":\"a\"}"), Judgement::Success);
}

#[test]
fn catalogue_looks_searches_and_orders() {
    let seen = requests(&load("catalogue.toml"), |path| match path {
        path if path.starts_with("/order/") => (200, "false"),
        _ => (200, "{\"ok\":true,\"result\":[],\"topics\":[]}"),
    });
    for expected in [
        "GET /lookup\n\n",
        "GET /lookup/1\n\n",
        "GET /lookup/4\n\n",
        "GET /search/graduate\n\n",
        "POST /order/2?amount=1\n\n",
    ] {
        assert!(seen.contains(expected), "{expected} {seen:?}");
    }
    assert_eq!(seen.len(), 1 + 4 + 4 + 4);
}

#[test]
fn graph_logs_in_once_and_creates_numbered_nodes() {
    let scenario = load("graph.toml");
    let login = scenario.setup(1, clock).next_request().unwrap().unwrap().request;
    assert_eq!((login.method.as_str(), login.path.as_str()), ("POST", "/auth/token"));
    assert_eq!(login.body, b"{\"password\":\"password\",\"username\":\"admin\"}");
    let seen = requests(&scenario, |path| match path {
        "/auth/token" => (200, "{\"access_token\":\"J.W.T\",\"token_type\":\"Bearer\"}"),
        _ => (
            200,
            "{\"results\":[{\"columns\":[\"id\"],\"data\":[{\"row\":[0],\"meta\":[null]}]}],\"errors\":[]}",
        ),
    });
    assert_eq!(seen.len(), 600, "every node has a number of its own");
    let first = "POST /db/nornic/tx/commit\nauthorization: Bearer J.W.T\ncontent-type: application/json\n\n{\"statements\":[{\"statement\":\"CREATE (n:TestNode {id: $id, timestamp: $timestamp}) RETURN n.id as id\",\"parameters\":{\"id\":0,\"timestamp\":1795224656517796090}}]}";
    assert!(seen.contains(first), "{:?}", seen.first());
}

#[test]
fn a_cypher_error_is_a_failure_though_its_status_is_200() {
    let scenario = load("graph.toml");
    let mut setup = scenario.setup(1, clock);
    setup.next_request().unwrap();
    setup.answered(200, &[], b"{\"access_token\":\"T\"}").unwrap();
    let source = scenario.source(&setup.finish(), clock).unwrap();
    let mut workload = source.workload(0, 1, 1);
    next(&mut *workload, 0);
    let error = "{\"results\":[],\"errors\":[{\"code\":\"Neo.ClientError.Statement.SyntaxError\",\"message\":\"\"}]}";
    let Judgement::FailedCheck(check) = answer(&mut *workload, 0, 200, &[], error) else {
        panic!("a failed check")
    };
    assert_eq!(workload.check_text(check), "\"/errors\" has length 0");
}

#[test]
fn events_decide_with_the_condition_they_were_given() {
    let condition =
        "{\"failIfEventsMatch\":{\"items\":[{\"types\":[\"StudentEnrolled\"]}]},\"after\":17}";
    let seen = requests(&load("events.toml"), |path| match path {
        "/v1/project" => (
            200,
            "{\"states\":{\"enrolled\":3},\"position\":17,\"appendCondition\":{\"failIfEventsMatch\":{\"items\":[{\"types\":[\"StudentEnrolled\"]}]},\"after\":17}}",
        ),
        "/v1/append" => (200, "{\"first\":1,\"last\":1,\"head\":1,\"replayed\":false}"),
        _ => (200, "{\"events\":[],\"head\":1,\"next\":null}"),
    });
    let decided = seen.iter().filter(|request| request.contains("StudentEnrolled\",\"tags"));
    let mut count = 0;
    for request in decided {
        assert!(
            request.ends_with(&format!("\"data\":{{}}}}],\"condition\":{condition}}}")),
            "{request}"
        );
        count += 1;
    }
    assert!(count > 20);
    assert!(seen.contains("GET /v1/events?tag=course%3Afirst&limit=20&order=desc\n\n"), "{seen:?}");
    let new = "POST /v1/append\ncontent-type: application/json\n\n{\"events\":[{\"type\":\"CourseDefined\",\"tags\":[\"course:hocqtl5w2s-0\"],\"data\":{\"title\":\"Course 0\",\"places\":30}}],\"condition\":{\"failIfEventsMatch\":{\"items\":[{\"types\":[\"CourseDefined\"],\"tags\":[\"course:hocqtl5w2s-0\"]}]}}}";
    assert!(seen.contains(new), "{seen:?}");
    for request in seen.iter().filter(|request| request.starts_with("POST")) {
        let body = request.split("\n\n").nth(1).unwrap();
        let read: Result<serde_json::Value, _> = serde_json::from_str(body);
        assert!(read.is_ok(), "{body}");
    }
}

#[test]
fn crablet_puts_json_into_texts() {
    let seen = requests(&load("crablet.toml"), |path| match path {
        "/health" => (200, "{\"status\":\"healthy\"}"),
        "/append" => (200, "{\"durationInMicroseconds\":1354,\"appendConditionFailed\":false}"),
        "/read" => (200, "{\"durationInMicroseconds\":1354,\"numberOfMatchingEvents\":0}"),
        _ => (200, "{\"durationInMicroseconds\":554,\"states\":{\"c\":0},\"appendCondition\":{}}"),
    });
    let bodies = seen.iter().filter_map(|request| request.split("\n\n").nth(1));
    let mut kinds = BTreeSet::new();
    for body in bodies.filter(|body| !body.is_empty()) {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let data = [body.pointer("/events/data"), body.pointer("/events/0/data")];
        if let Some(data) = data.into_iter().flatten().next() {
            let inner: serde_json::Value = serde_json::from_str(data.as_str().unwrap()).unwrap();
            kinds.extend(inner.as_object().unwrap().keys().cloned());
        }
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["category", "course_id", "student_id", "year"]
    );
    assert!(seen.iter().any(|request| request.starts_with("POST /project\ncontent-type: application/json\n\n{\"projectors\":[{\"id\":\"c\",\"query\":{\"items\":[{\"types\":[\"StudentRegistered\"],\"tags\":[\"student:hocqtl5w2s-")));
}

#[test]
fn the_examples_of_the_documentation_load() {
    let path = folder().join("../docs/bench/scenarios.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut count = 0;
    for block in text.split("```toml\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let options = Options { environment: |_| None, ..Options::default() };
        let loaded = Scenario::parse(block, &path, &options);
        assert!(loaded.is_ok(), "{}\n{block}", loaded.unwrap_err());
        count += 1;
    }
    assert!(count >= 5, "{count} examples");
}
