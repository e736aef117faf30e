//! Consumers over HTTP: what a worker is given, what it is told, what an operator sees and does.

use crate::client::Client;
use crate::process::processor_ms;
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use wellspring_patience::PATIENCE;

/// A wait that no slow machine exceeds.
const LONG_MS: u64 = 60_000;

/// A worker that counts its turns.
struct Worker {
    client: Client,
    name: &'static str,
    turn: u64,
}

impl Worker {
    fn new(server: &Server, name: &'static str) -> Worker {
        Worker { client: server.client(), name, turn: 0 }
    }

    /// The next turn, with further members of the request.
    fn next(&mut self, more: &Value) -> Value {
        self.turn += 1;
        self.again(more)
    }

    /// The same turn again.
    fn again(&mut self, more: &Value) -> Value {
        let mut body = json!({"worker": self.name, "turn": self.turn, "want": 16});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.client.post("/v1/consumers/c/next", &body).unwrap().expect(200)
    }

    /// Everything that is ready, as pairs of delivery and numbers of its events.
    fn take(&mut self, more: &Value) -> Vec<(String, Vec<u64>)> {
        numbers(&self.next(more))
    }
}

fn numbers(answer: &Value) -> Vec<(String, Vec<u64>)> {
    let deliveries = answer["deliveries"].as_array().unwrap();
    let number = |event: &Value| event["data"].as_u64().unwrap();
    let of = |delivery: &Value| {
        let events = delivery["events"].as_array().unwrap();
        let name = delivery["delivery"].as_str().unwrap().to_owned();
        (name, events.iter().map(number).collect())
    };
    deliveries.iter().map(of).collect()
}

fn append(client: &mut Client, tags: &[&str], number: u64) {
    let event = json!({"events": [{"type": "T", "tags": tags, "data": number}]});
    client.post("/v1/append", &event).unwrap().expect(200);
}

fn put(client: &mut Client, path: &str, body: &Value) -> crate::client::Answer {
    let headers = [("Content-Type", "application/json")];
    client.call("PUT", path, &headers, body.to_string().as_bytes()).unwrap()
}

/// Defines the consumer `c` with more members.
fn define(client: &mut Client, more: &Value) -> crate::client::Answer {
    let mut body = json!({"query": {"items": [{"types": ["T"]}]}});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    put(client, "/v1/consumers/c", &body)
}

fn status(client: &mut Client) -> Value {
    client.get("/v1/consumers/c").unwrap().expect(200)
}

fn keyed() -> Value {
    json!({"key": {"tag": "k"}})
}

#[test]
fn events_of_a_key_come_in_order_and_one_at_a_time() {
    let server = Server::start();
    let mut client = server.client();
    for (tags, number) in [(["k:a"], 1), (["k:b"], 2), (["k:a"], 3), (["k:a"], 4)] {
        append(&mut client, &tags, number);
    }
    let defined = define(&mut client, &keyed()).expect(201);
    assert_eq!((&defined["state"], &defined["lag"]), (&json!("running"), &json!(6)));
    let (mut one, mut two) = (Worker::new(&server, "one"), Worker::new(&server, "two"));
    let first = one.next(&json!({}));
    assert_eq!(first["deliveries"][0]["keys"], json!(["a"]));
    assert_eq!(first["deliveries"][0]["tries"], 1);
    let first = numbers(&first);
    assert_eq!(first.iter().map(|(_, n)| n[0]).collect::<Vec<_>>(), [1, 2]);
    assert!(two.take(&json!({})).is_empty(), "both keys are held");
    // Only its holder settles a delivery, whatever the other knows of it.
    let stolen = two.next(&json!({"done": [first[0].0]}));
    assert_eq!(stolen["refused"][0]["problem"], "delivery-lost");
    let next = one.next(&json!({"done": [first[0].0], "want": 1}));
    assert_eq!(numbers(&next)[0].1, [3]);
    // The answer was lost: the same turn again has the same deliveries and settles nothing.
    assert_eq!(one.again(&json!({"done": [first[0].0], "want": 1})), next);
    let last = one.take(&json!({"done": [numbers(&next)[0].0, first[1].0]}));
    assert_eq!(last.iter().map(|(_, n)| n[0]).collect::<Vec<_>>(), [4]);
    let late = one.next(&json!({"done": [first[1].0]}));
    assert_eq!(late["refused"][0]["delivery"], first[1].0.as_str());
    let body = json!({"worker": "one", "turn": 1});
    let problem = client.post("/v1/consumers/c/next", &body).unwrap().problem(409);
    assert_eq!((&problem["type"], &problem["turn"]), (&json!("/problems/turn-passed"), &json!(4)));
    let status = status(&mut client);
    assert_eq!((&status["open_keys"], &status["in_flight"]), (&json!(1), &json!(1)));
    assert_eq!(status["oldest"]["worker"], "one");
}

#[test]
fn a_delivery_can_have_several_events_and_be_settled_in_part() {
    let server = Server::start();
    let mut client = server.client();
    for number in 1..=10 {
        append(&mut client, &["k:a"], number);
    }
    define(&mut client, &json!({"key": "all", "run": 4})).expect(201);
    let mut worker = Worker::new(&server, "w");
    let run = worker.take(&json!({"want": 1}));
    assert_eq!(run[0].1, [1, 2, 3, 4]);
    let wrong = worker.next(&json!({"done": [{"delivery": run[0].0, "upto": 9}]}));
    assert_eq!(wrong["refused"][0]["problem"], "not-in-delivery");
    worker.next(&json!({"done": [{"delivery": run[0].0, "upto": 2}]}));
    let rest = worker.take(&json!({"failed": [{"delivery": run[0].0, "retry_ms": 0}], "want": 1}));
    assert_eq!(rest[0].1, [3, 4, 5, 6]);
    let rest = worker.take(&json!({"done": [rest[0].0], "want": 1}));
    // Eight positions of a key are known at a time.
    assert_eq!(rest[0].1, [7, 8]);
}

#[test]
fn a_waiting_pull_gets_what_is_appended_and_pulls_are_served_in_order() {
    let server = Server::start();
    let mut client = server.client();
    define(&mut client, &json!({})).expect(201);
    let wait = json!({"want": 1, "wait_ms": LONG_MS});
    let mut pulls = Vec::new();
    for name in ["one", "two", "three"] {
        let (mut worker, wait) = (Worker::new(&server, name), wait.clone());
        pulls.push(std::thread::spawn(move || (Instant::now(), worker.take(&wait))));
        std::thread::sleep(Duration::from_millis(200));
    }
    for number in 1..=3 {
        append(&mut client, &[], number);
    }
    for (number, pull) in (1..).zip(pulls) {
        assert_eq!(pull.join().unwrap().1[0].1, [number]);
    }
}

/// Behind a proxy a request may outlive its client, which has asked again.
#[test]
fn the_same_turn_again_takes_the_place_of_one_that_waits() {
    let server = Server::start();
    let mut client = server.client();
    define(&mut client, &json!({})).expect(201);
    let wait = json!({"worker": "w", "turn": 1, "wait_ms": LONG_MS});
    let pulls: Vec<_> = (0..2)
        .map(|_| {
            let (mut client, wait) = (server.client(), wait.clone());
            std::thread::sleep(Duration::from_millis(200));
            std::thread::spawn(move || client.post("/v1/consumers/c/next", &wait).unwrap())
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    append(&mut client, &[], 1);
    let answers: Vec<_> = pulls.into_iter().map(|pull| pull.join().unwrap()).collect();
    assert_eq!(answers[0].problem(409)["type"], "/problems/turn-passed");
    assert_eq!(numbers(&answers[1].expect(200))[0].1, [1]);
}

/// What a pull took for a client that has left would be kept from all others for `hold_ms`.
#[test]
fn a_pull_whose_client_has_left_is_given_nothing() {
    let server = Server::start();
    let mut client = server.client();
    define(&mut client, &json!({"hold_ms": 86_400_000})).expect(201);
    let mut leaves = TcpStream::connect(server.address).unwrap();
    let body = r#"{"worker":"gone","turn":1,"wait_ms":60000}"#;
    let head = "POST /v1/consumers/c/next HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\n";
    write!(leaves, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut stays = Worker::new(&server, "stays");
    let next = std::thread::spawn(move || stays.take(&json!({"wait_ms": LONG_MS})));
    std::thread::sleep(Duration::from_millis(200));
    drop(leaves);
    std::thread::sleep(Duration::from_millis(300));
    append(&mut client, &[], 1);
    assert_eq!(next.join().unwrap()[0].1, [1]);
}

#[test]
fn a_silent_worker_loses_what_it_holds_and_a_sign_of_life_keeps_it() {
    let server = Server::start();
    let mut client = server.client();
    append(&mut client, &[], 1);
    define(&mut client, &json!({"hold_ms": 3_000})).expect(201);
    let (mut one, mut two) = (Worker::new(&server, "one"), Worker::new(&server, "two"));
    let held = one.take(&json!({}));
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(300));
        let body = json!({"worker": "one"});
        let extended = client.post("/v1/consumers/c/extend", &body).unwrap().expect(200);
        assert_eq!(extended["held"], 1, "a machine that sleeps for 2.7 s fails this");
    }
    std::thread::sleep(Duration::from_millis(3_100));
    let seen = status(&mut client);
    assert_eq!((&seen["workers"], &seen["in_flight"]), (&json!(0), &json!(0)), "it is gone");
    let again = two.next(&json!({"wait_ms": LONG_MS}));
    assert_eq!(again["deliveries"][0]["tries"], 2);
    // The first pull in line watches the clock, without any other request.
    let third = Worker::new(&server, "three").next(&json!({"wait_ms": LONG_MS}));
    assert_eq!(third["deliveries"][0]["tries"], 3);
    let late = one.next(&json!({"done": [held[0].0]}));
    assert_eq!(late["refused"][0]["problem"], "delivery-lost");
    let figures = client.get("/metrics").unwrap().text();
    let labels = r#"{log="main",consumer="c"}"#;
    for figure in ["expired_total", "late_total", "in_flight", "workers"] {
        let line = format!("wellspring_consumer_{figure}{labels} ");
        assert!(figures.contains(&line), "{line}: {figures}");
    }
}

#[test]
fn what_fails_is_tried_again_and_parked_with_its_reason() {
    let server = Server::start();
    let mut client = server.client();
    for (key, number) in [("k:a", 1), ("k:a", 2), ("k:b", 3)] {
        append(&mut client, &[key], number);
    }
    let terms = json!({"key": {"tag": "k"}, "max_tries": 2, "backoff_ms": [0, 0]});
    define(&mut client, &terms).expect(201);
    let mut worker = Worker::new(&server, "w");
    let taken = worker.take(&json!({}));
    let failed = |delivery: &str, reason: &str| json!({"delivery": delivery, "reason": reason});
    let again = worker.next(&json!({"failed": [failed(&taken[0].0, "first")], "wait_ms": LONG_MS}));
    assert_eq!((numbers(&again)[0].1[0], &again["deliveries"][0]["tries"]), (1, &json!(2)));
    worker.next(&json!({"failed": [failed(&numbers(&again)[0].0, "SMTP\n451")], "durable": true}));
    let open = |client: &mut Client, query: &str| {
        let path = format!("/v1/consumers/c/open{query}");
        client.get(&path).unwrap().expect(200)["open"].clone()
    };
    let mut parked = open(&mut client, "?state=parked");
    // Its reason follows its checkpoint.
    let begun = Instant::now();
    while parked[0]["reason"].is_null() && begun.elapsed() < Duration::from_secs(30) {
        parked = open(&mut client, "?state=parked");
    }
    assert_eq!(parked[0]["reason"], "SMTP\n451", "{parked}");
    assert_eq!((&parked[0]["key"], &parked[0]["position"]), (&json!("a"), &json!(1)));
    assert!(worker.take(&json!({})).is_empty(), "2 waits behind 1");
    assert_eq!(open(&mut client, "").as_array().unwrap().len(), 2);
    let replayed = client.post("/v1/consumers/c/replay", &json!({"keys": ["a"]})).unwrap();
    assert_eq!(replayed.expect(200)["replayed"], 1);
    let one = worker.next(&json!({}));
    assert_eq!((numbers(&one)[0].1[0], &one["deliveries"][0]["tries"]), (1, &json!(1)));
    worker.next(&json!({"park": [failed(&numbers(&one)[0].0, "by hand")], "durable": true}));
    let skipped = client.post("/v1/consumers/c/skip", &json!({"positions": [1]})).unwrap();
    assert_eq!(skipped.expect(200)["skipped"], 1);
    assert_eq!(worker.take(&json!({}))[0].1, [2]);
    for wrong in [json!({}), json!({"all": false}), json!({"all": true, "keys": []})] {
        client.post("/v1/consumers/c/replay", &wrong).unwrap().problem(422);
    }
}

#[test]
fn operators_pause_resume_move_change_and_delete() {
    let server = Server::start();
    let mut client = server.client();
    for number in 1..=4 {
        append(&mut client, &["k:a"], number);
    }
    define(&mut client, &json!({"key": {"tag": "k"}, "from": 2})).expect(201);
    let post = |client: &mut Client, what: &str, body: &Value| {
        client.post(&format!("/v1/consumers/c/{what}"), body).unwrap()
    };
    let mut worker = Worker::new(&server, "w");
    let held = worker.take(&json!({}));
    assert_eq!(held[0].1, [3]);
    assert_eq!(post(&mut client, "pause", &json!({})).expect(200)["state"], "paused");
    let paused = worker.next(&json!({"done": [held[0].0]}));
    assert_eq!((&paused["state"], &paused["refused"]), (&json!("paused"), &json!([])));
    assert!(numbers(&paused).is_empty());
    assert_eq!(post(&mut client, "resume", &json!({})).expect(200)["state"], "running");
    let four = worker.take(&json!({}));
    assert_eq!(four[0].1, [4]);
    // Another key would give the open key another order.
    let problem = define(&mut client, &json!({"key": "all"})).problem(409);
    assert_eq!(
        (&problem["type"], &problem["field"]),
        (&json!("/problems/consumer-busy"), &json!("key"))
    );
    // Other terms can change; what is held is lost, and told.
    let changed = define(&mut client, &json!({"key": {"tag": "k"}, "run": 2})).expect(200);
    assert_eq!(changed["definition"]["run"], 2);
    let lost = worker.next(&json!({"done": [four[0].0]}));
    assert_eq!(lost["refused"][0]["problem"], "delivery-lost");
    let four = numbers(&lost);
    assert_eq!(four[0].1, [4]);
    worker.next(&json!({"done": [four[0].0]}));
    define(&mut client, &json!({"key": "all"})).expect(200);
    let moved = post(&mut client, "reset", &json!({"to": "beginning"})).expect(200);
    assert_eq!((&moved["generation"], &moved["scanned"]), (&json!(2), &json!(0)));
    assert_eq!(worker.take(&json!({}))[0].1, [1]);
    let problem = post(&mut client, "reset", &json!({"to": 9_999})).problem(409);
    assert_eq!(problem["type"], "/problems/another-history");
    let listed = client.get("/v1/consumers").unwrap().expect(200);
    assert_eq!(listed["consumers"][0]["name"], "c");
    client.call("DELETE", "/v1/consumers/c", &[], b"").unwrap().expect(200);
    client.get("/v1/consumers/c").unwrap().problem(404);
    assert_eq!(client.get("/v1/consumers").unwrap().expect(200)["consumers"], json!([]));
    // One of the same name is another one: it has another id, and so other effect keys.
    define(&mut client, &json!({"from": "now"})).expect(201);
    append(&mut client, &[], 5);
    assert_eq!(worker.take(&json!({"wait_ms": LONG_MS}))[0].1, [5]);
}

#[test]
fn bad_requests_are_told_what_is_wrong() {
    let server = Server::start();
    let mut client = server.client();
    let query = json!({"items": []});
    for (body, field) in [
        (json!({}), "query"),
        (json!({"query": query, "hold_ms": 1}), "hold_ms"),
        (json!({"query": query, "key": "other"}), "key"),
        (json!({"query": query, "backoff_ms": [5]}), "backoff_ms"),
        (json!({"query": query, "from": "yesterday"}), "from"),
        (json!({"query": query, "tries": 1}), "tries"),
    ] {
        let problem = put(&mut client, "/v1/consumers/c", &body).problem(422);
        assert_eq!(problem["field"], field, "{problem}");
    }
    put(&mut client, "/v1/consumers/C", &json!({"query": query})).problem(422);
    put(&mut client, "/v1/logs/none/consumers/c", &json!({"query": query})).problem(404);
    define(&mut client, &json!({})).expect(201);
    for (body, field) in [
        (json!({"turn": 1}), "worker"),
        (json!({"worker": "w", "turn": 1, "want": 9_999}), "want"),
        (json!({"worker": "w", "turn": 1, "done": ["1"]}), "done[0]"),
        (json!({"worker": "w", "turn": 1, "failed": [{}]}), "failed[0].delivery"),
    ] {
        let problem = client.post("/v1/consumers/c/next", &body).unwrap().problem(422);
        assert_eq!(problem["field"], field, "{problem}");
    }
    for number in 1..64 {
        let body = json!({"query": query});
        put(&mut client, &format!("/v1/consumers/c{number}"), &body).expect(201);
    }
    let problem = put(&mut client, "/v1/consumers/more", &json!({"query": query})).problem(409);
    assert_eq!(problem["type"], "/problems/too-many-consumers");
}

fn restarted(server: Server) -> Server {
    let data = server.kill();
    Server::start_in(Path::new(&data), &[])
}

#[test]
fn what_is_saved_survives_a_crash_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    for number in 1..=6 {
        append(&mut client, &[&format!("k:{}", number % 2)], number);
    }
    let terms = json!({"key": {"tag": "k"}, "max_tries": 1, "backoff_ms": [0, 0]});
    define(&mut client, &terms).expect(201);
    let mut worker = Worker::new(&server, "w");
    let taken = worker.take(&json!({}));
    assert_eq!((taken[0].1[0], taken[1].1[0]), (1, 2));
    // 1 is settled for good, 2 is parked: 2, 4 and 6 have one key.
    worker.next(&json!({"want": 0, "durable": true, "done": [taken[0].0],
        "failed": [{"delivery": taken[1].0, "reason": "no"}]}));
    let server = restarted(server);
    let mut worker = Worker::new(&server, "again");
    let three = worker.take(&json!({}));
    assert_eq!((three.len(), &*three[0].1), (1, &[3][..]), "1 is settled, 2 is parked");
    let status = status(&mut server.client());
    assert_eq!((&status["parked"], &status["generation"]), (&json!(1), &json!(1)));
    // What is settled in memory alone comes again after a crash, in order.
    worker.next(&json!({"want": 0, "done": [three[0].0]}));
    let server = restarted(server);
    let mut worker = Worker::new(&server, "third");
    let three = worker.take(&json!({}));
    assert_eq!(three[0].1, [3]);
    assert_eq!(worker.take(&json!({"done": [three[0].0]}))[0].1, [5]);
    let mut client = server.client();
    let replayed = client.post("/v1/consumers/c/replay", &json!({"all": true})).unwrap();
    assert_eq!(replayed.expect(200)["replayed"], 1);
    assert_eq!(worker.take(&json!({"wait_ms": LONG_MS}))[0].1, [2]);
}

/// Without workers no request opens a consumer, and its figures are needed most.
#[test]
fn figures_are_there_after_a_start_without_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    append(&mut client, &[], 1);
    define(&mut client, &json!({})).expect(201);
    let server = restarted(server);
    let mut client = server.client();
    let lag = r#"wellspring_consumer_lag_events{log="main",consumer="c"} "#;
    let begun = Instant::now();
    loop {
        let figures = client.get("/metrics").unwrap().text();
        if figures.contains(lag) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{figures}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server that is asked to stop saves everything first.
#[test]
fn a_regular_stop_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    append(&mut client, &[], 1);
    append(&mut client, &[], 2);
    define(&mut client, &json!({})).expect(201);
    let mut worker = Worker::new(&server, "w");
    let taken = worker.take(&json!({"want": 1}));
    worker.next(&json!({"want": 0, "done": [taken[0].0]}));
    drop((client, worker));
    assert!(server.terminate().success());
    let server = Server::start_in(dir.path(), &[]);
    let mut worker = Worker::new(&server, "w");
    assert_eq!(worker.take(&json!({}))[0].1, [2]);
}

/// What consumers write is not delivered, by a consumer of everything either, and an idle one
/// writes nothing.
#[test]
fn idle_consumers_write_nothing_and_use_no_processor() {
    let server = Server::start();
    let mut client = server.client();
    append(&mut client, &[], 1);
    let everything = json!({"query": {"items": []}});
    for number in 0..64 {
        put(&mut client, &format!("/v1/consumers/c{number}"), &everything).expect(201);
    }
    let mut clients: Vec<Client> = (0..64).map(|_| server.client()).collect();
    for (number, client) in (0..).zip(&mut clients) {
        let path = format!("/v1/consumers/c{number}/next");
        let body = json!({"worker": "w", "turn": 1});
        let answer = client.post(&path, &body).unwrap().expect(200);
        assert_eq!(numbers(&answer)[0].1, [1]);
        let done = json!([answer["deliveries"][0]["delivery"]]);
        let body = json!({"worker": "w", "turn": 2, "want": 0, "done": done, "durable": true});
        client.post(&path, &body).unwrap().expect(200);
    }
    let pulls: Vec<_> = (0..64)
        .zip(clients)
        .map(|(number, mut client)| {
            std::thread::spawn(move || {
                let body = json!({"worker": "w", "turn": 3, "wait_ms": 6_000});
                let path = format!("/v1/consumers/c{number}/next");
                numbers(&client.post(&path, &body).unwrap().expect(200))
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(1_500));
    let head = client.get("/v1/head").unwrap().expect(200)["head"].clone();
    let before_ms = processor_ms(&server);
    std::thread::sleep(Duration::from_secs(3));
    let used_ms = processor_ms(&server) - before_ms;
    assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], head);
    // A tick a second, whatever its machine.
    assert!(used_ms < 300, "{used_ms} ms in 3 s");
    for pull in pulls {
        assert!(pull.join().unwrap().is_empty());
    }
}
