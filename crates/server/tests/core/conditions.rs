//! The cost of a condition: its size is limited on arrival, its time is charged to its client.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

pub fn post(client: &mut Client, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/json")];
    client.call("POST", path, &headers, body.to_string().as_bytes()).expect("an answer")
}

/// A query of this many items, each with this many types and tags, all distinct.
pub fn query(items: usize, types: usize, tags: usize) -> Value {
    let item = |i: usize| {
        let of = |name: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{name}:{i}:{n}")).collect()
        };
        json!({"types": of("T", types), "tags": of("t", tags)})
    };
    json!({"items": (0..items).map(item).collect::<Vec<_>>()})
}

fn append_if(query: &Value) -> Value {
    json!({
        "events": [{"type": "T", "tags": ["a:1"], "data": 1}],
        "condition": {"failIfEventsMatch": query},
    })
}

/// Appends of 1,000 events each. Any two of three tags often occur together, all three never:
/// intersecting them takes long.
pub fn bodies_of_common_tags(appends: usize) -> impl Iterator<Item = Value> {
    let pairs = [["a", "b"], ["b", "c"], ["a", "c"]];
    (0..appends).map(move |chunk| {
        let event = |i: usize| json!({"type": "T", "tags": pairs[(chunk + i) % 3], "data": 1});
        json!({"events": (0..1000).map(event).collect::<Vec<_>>()})
    })
}

/// An append whose condition has those three tags in 256 distinct items. Nothing matches.
fn dear_append() -> Value {
    let item = |i: usize| json!({"types": ["T", format!("X{i}")], "tags": ["a", "b", "c"]});
    append_if(&json!({"items": (0..256).map(item).collect::<Vec<_>>()}))
}

#[test]
fn a_query_of_too_many_terms_is_refused_wherever_it_is_asked() {
    let server = Server::start();
    let mut client = server.client();
    let too_many = query(16, 256, 64);
    let cases = [
        ("/v1/append", append_if(&too_many), "condition.failIfEventsMatch.items"),
        ("/v1/query", json!({"query": too_many}), "query.items"),
    ];
    for (path, body, field) in cases {
        let problem = post(&mut client, path, &body).problem(422);
        assert_eq!((&problem["field"], &problem["limit"]), (&json!(field), &json!(4096)));
        assert!(problem["detail"].as_str().unwrap().contains("several queries"), "{problem}");
    }
    // The largest legal conditions: many items, large items, and 256 items of whatever fits.
    for (items, types, tags) in [(256, 12, 4), (12, 256, 64), (64, 0, 64), (1, 256, 64)] {
        let legal = query(items, types, tags);
        let answer = post(&mut client, "/v1/append", &append_if(&legal));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = post(&mut client, "/v1/query", &json!({"query": legal}));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[test]
fn a_dear_condition_is_judged_and_charged_to_its_client_and_others_append() {
    let proxy = ["--trusted-proxies", "127.0.0.1", "--read-ms-per-second-per-address", "1"];
    let server = Server::start_with(&proxy);
    let mut client = server.client();
    let mut call = |from: &str, body: &Value| {
        let headers = [("X-Forwarded-For", from), ("Content-Type", "application/json")];
        client.call("POST", "/v1/append", &headers, body.to_string().as_bytes()).expect("an answer")
    };
    for body in bodies_of_common_tags(20) {
        assert_eq!(call("192.0.2.9", &body).status, 200);
    }
    let dear = append_if(&json!({"items": [{"tags": ["a", "b", "c"]}]}));
    let plain = json!({"events": [{"type": "T", "tags": ["d"], "data": 1}]});
    let mut taken = 0;
    let refused = loop {
        let answer = call("192.0.2.1", &dear);
        match answer.status {
            200 => taken += 1,
            _ => break answer,
        }
        assert!(taken < 10_000, "never refused");
    };
    let problem = refused.problem(429);
    assert_eq!(problem["type"], "/problems/reads-too-costly", "{problem}");
    assert!(taken > 0, "the first is judged");
    assert_eq!(call("192.0.2.1", &plain).status, 200, "an append without a condition is taken");
    assert_eq!(call("192.0.2.2", &dear).status, 200, "others are judged");
}

#[test]
fn a_dear_condition_ends_at_its_deadline_and_gives_its_permit_back() {
    let server = Server::start_with(&["--max-fold-ms", "20", "--max-long-reads", "1"]);
    let mut client = server.client().patient();
    for body in bodies_of_common_tags(60) {
        client.post("/v1/append", &body).unwrap().expect(200);
    }
    let legal = append_if(&query(1, 128, 64));
    for _ in 0..3 {
        let problem = client.post("/v1/append", &dear_append()).unwrap().problem(503);
        assert_eq!(problem["type"], "/problems/too-costly", "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("exceeded its time limit; narrow the query"), "{detail}");
        // Checked under a permit too, and one is free.
        client.post("/v1/append", &legal).unwrap().expect(200);
    }
    let head = client.get("/v1/head").unwrap().expect(200);
    assert_eq!(head["head"], 60_003, "what was not judged was not appended");
}

/// How a client abandons a request.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    ByReset,
    WithItsConnection,
    /// Over HTTP/1.1.
    ByClosing,
}

/// Sends an append over HTTP/2 and abandons it once `under_way` returns.
async fn send_and_leave(server: &Server, body: &Value, under_way: impl FnOnce(), how: Leaving) {
    if matches!(how, Leaving::ByClosing) {
        let mut socket = std::net::TcpStream::connect(server.address).unwrap();
        let body = body.to_string();
        let head = format!(
            "POST /v1/append HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all((head + &body).as_bytes()).unwrap();
        // Before another takes the one permit.
        std::thread::sleep(Duration::from_millis(100));
        return under_way();
    }
    let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (sender, connection) = h2::client::handshake(socket).await.unwrap();
    let connection = tokio::spawn(connection);
    let request =
        http::Request::post("http://l/v1/append").header("content-type", "application/json");
    let mut sender = sender.ready().await.unwrap();
    let (answer, mut sending) = sender.send_request(request.body(()).unwrap(), false).unwrap();
    sending.send_data(body.to_string().into(), true).unwrap();
    // This thread drives the connection.
    tokio::time::sleep(Duration::from_millis(20)).await;
    under_way();
    match how {
        Leaving::ByReset => drop((answer, sending)),
        Leaving::WithItsConnection => connection.abort(),
        Leaving::ByClosing => unreachable!("over HTTP/1.1"),
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// A thread of a server.
pub struct Thread {
    pub name: String,
    /// Processor time in ns.
    pub run_ns: u64,
    pub niceness: i64,
}

/// The threads of a server by id. Those that do not serve end after an idle time.
pub fn threads(server: &Server) -> BTreeMap<u64, Thread> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap() {
        let read = |name| std::fs::read_to_string(task.as_ref().unwrap().path().join(name));
        // A thread may end in the meantime.
        let (Ok(name), Ok(times), Ok(stat)) = (read("comm"), read("schedstat"), read("stat"))
        else {
            continue;
        };
        let id = stat.split(' ').next().unwrap().parse().unwrap();
        let run_ns = times.split(' ').next().unwrap().parse().unwrap();
        let niceness =
            stat.rsplit_once(')').unwrap().1.split(' ').nth(17).unwrap().parse().unwrap();
        threads.insert(id, Thread { name: name.trim().to_owned(), run_ns, niceness });
    }
    threads
}

/// Processor time in ns that `ask` takes: of threads that serve, and of the others.
#[cfg(target_os = "linux")]
fn serving_and_elsewhere_ns(server: &Server, ask: impl FnOnce()) -> (u64, u64) {
    let before = threads(server);
    ask();
    let after = threads(server);
    // Per thread, so that one that has ended subtracts nothing from the others' sum.
    let spent_ns = |is_one: fn(&str) -> bool| -> u64 {
        let known_ns = |id| before.get(id).map_or(0, |thread| thread.run_ns);
        let ones = after.iter().filter(|(_, thread)| is_one(&thread.name));
        ones.map(|(id, thread)| thread.run_ns - known_ns(id)).sum()
    };
    let serving_ns = spent_ns(|name| name == "http-0" || name.starts_with("lean"));
    (serving_ns, spent_ns(|name| name == "http-0-blocking"))
}

#[cfg(target_os = "linux")]
#[test]
fn the_largest_queries_and_conditions_take_the_time_of_threads_that_do_not_serve() {
    let server = Server::start_with(&["--threads", "1"]);
    let mut client = server.client().patient();
    let largest = query(256, 1, 15);
    let projections = json!({"projections": {
        "n": {"query": largest, "reduce": "count"},
    }});
    let asked = [
        ("/v1/append", append_if(&largest)),
        ("/append", append_if(&largest)),
        ("/v1/query", json!({"query": largest})),
        ("/read", json!({"query": largest})),
        ("/v1/project", projections),
        ("/project", json!({"projectors": [{"id": "n", "query": largest}]})),
    ];
    for (path, body) in asked {
        // Five to fifteen times as much elsewhere. Other load on the machine adds to either, so the
        // best of a few tries counts: if the work were done here, no try would pass.
        let mut tries = std::iter::repeat_with(|| {
            serving_and_elsewhere_ns(&server, || {
                for _ in 0..20 {
                    client.post(path, &body).unwrap().expect(200);
                }
            })
        });
        let mut seen = Vec::new();
        let is_elsewhere = tries.by_ref().take(4).any(|(serving_ns, elsewhere_ns)| {
            seen.push((serving_ns, elsewhere_ns));
            serving_ns * 2 < elsewhere_ns
        });
        assert!(is_elsewhere, "{path}: ns serving and elsewhere: {seen:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_serve_come_first_however_nice_the_server_is() {
    for nice in ["0", "10", "19"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start_under(&["nice", "-n", nice], dir.path(), &["--threads", "1"]);
        post(&mut server.client(), "/v1/query", &json!({"query": query(256, 1, 15)})).expect(200);
        let threads = threads(&server);
        let niceness = |name: &str| {
            let thread = threads.values().find(|thread| thread.name == name);
            thread.unwrap_or_else(|| panic!("no thread {name}")).niceness
        };
        let serving = niceness("http-0");
        assert!(serving >= nice.parse().unwrap(), "{serving}");
        // 19 is the maximum.
        assert_eq!(niceness("http-0-blocking"), (serving + 5).min(19), "beside {serving}");
    }
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    #[test]
    fn a_client_that_leaves_ends_its_dear_condition() {
        let server = Server::start_with(&["--max-fold-ms", "600000", "--max-long-reads", "1"]);
        let mut client = server.client().patient();
        let mut appended = 0;
        // An HTTP/1.1 client has a second, in case it has only half-closed: the work must take
        // several, however fast the machine is.
        let whole = loop {
            for body in bodies_of_common_tags(200) {
                client.post("/v1/append", &body).unwrap().expect(200);
                appended += 1_000;
            }
            let begun = Instant::now();
            client.post("/v1/append", &dear_append()).unwrap().expect(200);
            appended += 1;
            let whole = begun.elapsed();
            if whole > Duration::from_secs(4) {
                break whole;
            }
            assert!(appended < 2_000_000, "{whole:?} is too short for this test");
        };
        // Checked under the one permit too; never appended, because its condition fails.
        let offended = json!({"events": [{"type": "T", "data": 1}],
            "condition": {"failIfEventsMatch": query(1, 128, 60), "failIfExists": {"items": []}}});
        let mut is_free = || match client.post("/v1/append", &offended).unwrap().status {
            409 => true,
            503 => false,
            other => panic!("{other}"),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for how in [Leaving::ByReset, Leaving::WithItsConnection, Leaving::ByClosing] {
            assert!(is_free());
            // Its permit is released a moment after its answer.
            std::thread::sleep(Duration::from_millis(300));
            let begun = Instant::now();
            let until_busy = || {
                while is_free() {
                    assert!(begun.elapsed() < whole, "{how:?}: it never began");
                }
            };
            runtime.block_on(send_and_leave(&server, &dear_append(), until_busy, how));
            let left = begun.elapsed();
            while !is_free() {
                let so_far = begun.elapsed();
                assert!(
                    so_far < left + whole / 2,
                    "{how:?}: {so_far:?} and it goes on; {whole:?} whole"
                );
            }
        }
        let head = server.client().get("/v1/head").unwrap().expect(200);
        assert_eq!(head["head"], appended, "what nobody waited for was not appended");
    }
}
