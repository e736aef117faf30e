//! Appends that settle a delivery: what they append is there once, whichever worker repeats them
//! and whatever crashes in between.

use crate::client::{Answer, Client};
use crate::closed::Closed;
use crate::disk::copy_folder;
use crate::server::Server;
use serde_json::{Value, json};
use std::path::Path;

/// A worker of the consumer `c`.
struct Worker {
    client: Client,
    name: &'static str,
    turn: u64,
}

/// What it was given.
#[derive(Debug, Clone, PartialEq)]
struct TakenDelivery {
    delivery: String,
    numbers: Vec<u64>,
}

impl Worker {
    fn new(server: &Server, name: &'static str) -> Worker {
        Worker { client: server.client(), name, turn: 0 }
    }

    fn take_and(&mut self, more: &Value) -> Vec<TakenDelivery> {
        self.turn += 1;
        let mut body = json!({"worker": self.name, "turn": self.turn, "want": 16});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = self.client.post("/v1/consumers/c/next", &body).unwrap().expect(200);
        assert_eq!(answer["refused"], json!([]), "{answer}");
        let number = |event: &Value| event["data"].as_u64().unwrap();
        let taken = |delivery: &Value| TakenDelivery {
            delivery: delivery["delivery"].as_str().unwrap().to_owned(),
            numbers: delivery["events"].as_array().unwrap().iter().map(number).collect(),
        };
        answer["deliveries"].as_array().unwrap().iter().map(taken).collect()
    }

    fn take(&mut self) -> Vec<TakenDelivery> {
        self.take_and(&json!({}))
    }

    fn settles(&self, taken: &TakenDelivery) -> Value {
        json!({"consumer": "c", "worker": self.name, "delivery": taken.delivery})
    }

    /// The body of an append that settles what it was given.
    fn result(&self, taken: &TakenDelivery, content: &str) -> Value {
        let events = json!([{"type": "Result", "tags": ["r"], "data": content}]);
        json!({"events": events, "settles": self.settles(taken)})
    }

    /// Appends to the log `other` what settles a delivery of a consumer of this log.
    fn append_elsewhere(&mut self, taken: &TakenDelivery, content: &str, log: &str) -> Answer {
        let mut body = self.result(taken, content);
        body["settles"]["log"] = log.into();
        self.client.post("/v1/logs/other/append", &body).unwrap()
    }

    fn append(&mut self, taken: &TakenDelivery, content: &str) -> Answer {
        let body = self.result(taken, content);
        self.client.post("/v1/append", &body).unwrap()
    }
}

fn add(client: &mut Client, key: &str, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let event = json!({"type": "T", "tags": [key], "data": number});
        client.post("/v1/append", &json!({"events": [event]})).unwrap().expect(200);
    }
}

fn put(client: &mut Client, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/json")];
    client.call("PUT", path, &headers, body.to_string().as_bytes()).unwrap()
}

/// Defines the consumer `c` of events `T` by key, with more members.
fn define(client: &mut Client, more: &Value) {
    let mut body = json!({"query": {"items": [{"types": ["T"]}]}, "key": {"tag": "k"}});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    put(client, "/v1/consumers/c", &body).expect(201);
}

/// The contents of all results in a log.
fn results(client: &mut Client, log: &str) -> Vec<String> {
    let path = format!("/v1/logs/{log}/events?type=Result");
    let events = client.get(&path).unwrap().expect(200)["events"].clone();
    let content = |event: &Value| event["data"].as_str().unwrap().to_owned();
    events.as_array().unwrap().iter().map(content).collect()
}

fn restarted(server: Server) -> Server {
    let data = server.kill();
    Server::start_in(Path::new(&data), &[])
}

#[test]
fn an_append_settles_a_delivery_and_a_repeat_is_told_so() {
    let server = Server::start();
    let mut client = server.client();
    add(&mut client, "k:a", 1..=2);
    define(&mut client, &json!({}));
    let mut worker = Worker::new(&server, "w");
    let one = worker.take().remove(0);
    let first = worker.append(&one, "done 1").expect(200);
    assert_eq!(first["replayed"], false);
    // The next turn sees it settled, although it has not said anything of it.
    let two = worker.take().remove(0);
    assert_eq!(two.numbers, [2]);
    let again = worker.append(&one, "done 1").expect(200);
    let members = |answer: &Value| (answer["first"].clone(), answer["last"].clone());
    assert_eq!((members(&again), &again["replayed"]), (members(&first), &json!(true)));
    let other = worker.append(&one, "something else").problem(409);
    assert_eq!(other["type"], "/problems/delivery-settled");
    assert_eq!((members(&other), &other["field"]), (members(&first), &json!("settles.delivery")));
    worker.take_and(&json!({"want": 0, "done": [two.delivery]}));
    // One that was settled without an append is lost: nothing is known of it.
    let lost = worker.append(&two, "done 2").problem(409);
    assert_eq!(lost["type"], "/problems/delivery-lost");
    assert_eq!(results(&mut client, "main"), ["done 1"]);
}

#[test]
fn only_its_holder_settles_a_delivery_and_a_conflict_leaves_it_held() {
    let server = Server::start();
    let mut client = server.client();
    add(&mut client, "k:a", 1..=1);
    define(&mut client, &json!({}));
    let (mut one, mut two) = (Worker::new(&server, "one"), Worker::new(&server, "two"));
    let held = one.take().remove(0);
    // The answer to a thief is the same with a condition that fails.
    for condition in [Value::Null, json!({})] {
        let mut body = two.result(&held, "stolen");
        body["condition"] = condition;
        let problem = client.post("/v1/append", &body).unwrap().problem(409);
        assert_eq!(problem["type"], "/problems/delivery-lost");
    }
    let mut body = one.result(&held, "mine");
    body["condition"] = json!({});
    let problem = client.post("/v1/append", &body).unwrap().problem(409);
    assert_eq!(problem["type"], "/problems/append-condition-failed");
    assert!(two.take().is_empty(), "it is held");
    one.append(&held, "mine").expect(200);
    assert_eq!(results(&mut client, "main"), ["mine"]);
}

#[test]
fn what_an_append_settled_does_not_come_again_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    add(&mut client, "k:a", 1..=8);
    add(&mut client, "k:b", 9..=9);
    define(&mut client, &json!({"run": 3}));
    let mut worker = Worker::new(&server, "w");
    let taken = worker.take();
    assert_eq!((&*taken[0].numbers, &*taken[1].numbers), (&[1, 2, 3][..], &[9][..]));
    worker.append(&taken[0], "1 to 3").expect(200);
    let run = worker.take().remove(0);
    assert_eq!(run.numbers, [4, 5, 6]);
    worker.append(&run, "4 to 6").expect(200);
    worker.append(&taken[1], "9").expect(200);
    let server = restarted(server);
    // The repeat of an append whose answer was lost.
    let mut worker = Worker::new(&server, "w");
    assert_eq!(worker.append(&run, "4 to 6").expect(200)["replayed"], true);
    let other = worker.append(&run, "other").problem(409);
    assert_eq!(other["type"], "/problems/delivery-settled");
    let mut rest = Vec::new();
    loop {
        let taken = worker.take();
        if taken.is_empty() {
            break;
        }
        for taken in taken {
            worker.append(&taken, &format!("{:?}", taken.numbers)).expect(200);
            rest.extend(taken.numbers);
        }
    }
    assert_eq!(rest, [7, 8]);
}

/// The checkpoint says that the log was scanned up to the middle of a run. What is before is looked
/// up when its key is. What is behind comes when the log is scanned on, by this restart or by a
/// later one that begins with a checkpoint of this one.
#[test]
fn a_run_does_not_come_again_of_which_a_checkpoint_knows_a_part() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    add(&mut client, "k:a", 1..=1);
    define(&mut client, &json!({"run": 3}));
    let (mut one, mut two) = (Worker::new(&server, "one"), Worker::new(&server, "two"));
    let first = one.take().remove(0);
    add(&mut client, "k:a", 2..=2);
    add(&mut client, "k:b", 9..=9);
    assert_eq!(two.take()[0].numbers, [9], "2 is scanned");
    one.take_and(&json!({"want": 0, "durable": true}));
    add(&mut client, "k:a", 3..=3);
    assert_eq!(two.take(), [], "3 is scanned");
    one.append(&first, "1").expect(200);
    let run = one.take().remove(0);
    assert_eq!(run.numbers, [2, 3]);
    one.append(&run, "2 and 3").expect(200);
    let mut server = restarted(server);
    for _ in 0..2 {
        let mut again = Worker::new(&server, "again");
        // What is looked up is enough: the log is not scanned on.
        assert_eq!(again.take_and(&json!({"want": 1}))[0].numbers, [9]);
        again.take_and(&json!({"want": 0, "durable": true}));
        server = restarted(server);
    }
    let mut again = Worker::new(&server, "again");
    assert_eq!(again.take()[0].numbers, [9]);
    assert_eq!(again.take(), [], "3 is scanned");
}

#[test]
fn a_part_that_was_settled_before_is_not_in_the_append() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    add(&mut client, "k:a", 1..=3);
    define(&mut client, &json!({"run": 3}));
    let mut worker = Worker::new(&server, "w");
    let run = worker.take().remove(0);
    assert_eq!(run.numbers, [1, 2, 3]);
    let part = json!([{"delivery": run.delivery, "upto": 1}]);
    worker.take_and(&json!({"want": 0, "durable": true, "done": part}));
    worker.append(&run, "2 and 3").expect(200);
    let server = restarted(server);
    let mut worker = Worker::new(&server, "w");
    assert_eq!(worker.take(), []);
}

#[test]
fn a_delivery_can_be_settled_by_an_append_to_another_log() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    add(&mut client, "k:a", 1..=2);
    define(&mut client, &json!({}));
    client.call("PUT", "/v1/logs/other", &[], b"").unwrap().expect(201);
    let mut worker = Worker::new(&server, "w");
    let one = worker.take().remove(0);
    let missing = worker.append_elsewhere(&one, "1", "other").problem(404);
    assert_eq!(missing["type"], "/problems/consumer-not-found");
    let missing = worker.append_elsewhere(&one, "1", "nowhere").problem(404);
    assert_eq!(
        (&missing["type"], &missing["field"]),
        (&json!("/problems/log-not-found"), &json!("settles.log"))
    );
    assert_eq!(worker.append_elsewhere(&one, "1", "main").expect(200)["replayed"], false);
    assert_eq!(worker.take()[0].numbers, [2]);
    // A crash forgets that 1 is settled; the other log does not.
    let server = restarted(server);
    let mut worker = Worker::new(&server, "w");
    let one = worker.take().remove(0);
    assert_eq!(one.numbers, [1]);
    let known = worker.append_elsewhere(&one, "1 again", "main").problem(409);
    assert_eq!(known["type"], "/problems/delivery-settled");
    let two = worker.take().remove(0);
    assert_eq!(two.numbers, [2]);
    assert_eq!(worker.append_elsewhere(&two, "2", "main").expect(200)["replayed"], false);
    assert_eq!(results(&mut server.client(), "other"), ["1", "2"]);
    // The name of the same log may be given.
    add(&mut server.client(), "k:a", 3..=3);
    let three = worker.take().remove(0);
    let mut body = worker.result(&three, "3");
    body["settles"]["log"] = "main".into();
    worker.client.post("/v1/append", &body).unwrap().expect(200);
    assert!(worker.take().is_empty());
}

/// The consumer's log is put back, and that of the results is not. Where an event was that they
/// know is another one then.
#[test]
fn another_event_at_the_position_of_a_settled_one_is_not_taken_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let (log, kept) = (dir.path().join("logs/main"), dir.path().join("kept"));
    let mut server = Server::start_in(dir.path(), &[]);
    define(&mut server.client(), &json!({}));
    server.client().call("PUT", "/v1/logs/other", &[], b"").unwrap().expect(201);
    assert!(server.terminate().success());
    copy_folder(&log, &kept);
    for number in 1..=2 {
        let server = Server::start_in(dir.path(), &[]);
        add(&mut server.client(), "k:a", [number]);
        let mut worker = Worker::new(&server, "w");
        let taken = worker.take().remove(0);
        assert_eq!(taken.numbers, [number]);
        let settled = worker.append_elsewhere(&taken, &number.to_string(), "main").expect(200);
        assert_eq!((&settled["first"], &settled["replayed"]), (&json!(number), &json!(false)));
        server.kill();
        std::fs::remove_dir_all(&log).unwrap();
        copy_folder(&kept, &log);
    }
}

/// Another log has no place that a restart searches: which events a run had is not found again.
#[test]
fn a_run_is_settled_in_its_own_log_alone() {
    let server = Server::start();
    let mut client = server.client();
    add(&mut client, "k:a", 1..=1);
    define(&mut client, &json!({"run": 2}));
    client.call("PUT", "/v1/logs/other", &[], b"").unwrap().expect(201);
    let mut worker = Worker::new(&server, "w");
    let one = worker.take().remove(0);
    let mut body = worker.result(&one, "1");
    body["settles"]["log"] = "main".into();
    let problem = client.post("/v1/logs/other/append", &body).unwrap().problem(422);
    assert_eq!(problem["field"], "settles.log");
    worker.append(&one, "1").expect(200);
}

#[test]
fn two_workers_with_different_results_add_one() {
    let server = Server::start();
    let mut client = server.client();
    add(&mut client, "k:a", 1..=1);
    define(&mut client, &json!({"hold_ms": 1_000, "max_hold_ms": 1_000}));
    let mut one = Worker::new(&server, "one");
    let held = one.take().remove(0);
    let mut two = Worker::new(&server, "two");
    let taken_over = two.take_and(&json!({"wait_ms": 60_000})).remove(0);
    let late = one.append(&held, "one").problem(409);
    assert_eq!(late["type"], "/problems/delivery-lost");
    two.append(&taken_over, "two").expect(200);
    // By now the first one finds what became of the event.
    let late = one.append(&held, "one").problem(409);
    assert_eq!(late["type"], "/problems/delivery-settled");
    assert_eq!(one.append(&held, "two").expect(200)["replayed"], true);
    assert_eq!(results(&mut client, "main"), ["two"]);
}

#[test]
fn what_contradicts_settles_is_refused() {
    let server = Server::start();
    let mut client = server.client();
    add(&mut client, "k:a", 1..=1);
    define(&mut client, &json!({}));
    let mut worker = Worker::new(&server, "w");
    let held = worker.take().remove(0);
    let body = worker.result(&held, "x");
    let with = |member: &str, value: Value| {
        let mut body = body.clone();
        body[member] = value;
        body
    };
    let without = |member: &str| {
        let mut body = body.clone();
        body["settles"].as_object_mut().unwrap().remove(member);
        body
    };
    for (body, field) in [
        (with("ack", json!("accepted")), "ack"),
        (with("fence", json!({"lease": "l", "token": 1})), "fence"),
        (without("consumer"), "settles.consumer"),
        (without("worker"), "settles.worker"),
        (without("delivery"), "settles.delivery"),
        (with("settles", json!({"upto": 1})), "settles.upto"),
        (with("settles", json!({"delivery": "1.2"})), "settles.delivery"),
    ] {
        let problem = client.post("/v1/append", &body).unwrap().problem(422);
        assert_eq!(problem["field"], field, "{problem}");
    }
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "k")];
    let text = body.to_string();
    let problem = client.call("POST", "/v1/append", &headers, text.as_bytes()).unwrap();
    assert_eq!(problem.problem(422)["field"], "Idempotency-Key");
    client.post("/append", &body).unwrap().problem(422);
    let forged = json!({"consumer": "c", "worker": "w", "delivery": "1.ffff.1.1"});
    let problem = client.post("/v1/append", &with("settles", forged)).unwrap().problem(409);
    assert_eq!(problem["type"], "/problems/delivery-lost");
    let unknown = json!({"consumer": "d", "worker": "w", "delivery": held.delivery});
    client.post("/v1/append", &with("settles", unknown)).unwrap().problem(404);
    client.post("/v1/append", &with("ack", json!("durable"))).unwrap().expect(200);
}

/// The worker of another account is another worker, and a role on the appended log is none on the
/// consumer's.
#[test]
fn a_delivery_belongs_to_its_account_and_its_log() {
    let closed = Closed::start();
    let root = closed.root.clone();
    closed.ask(&root, "PUT", "/v1/logs/other", &Value::Null).expect(201);
    let ann = closed.add("ann", &["writer:main"]);
    let bob = closed.add("bob", &["writer:main"]);
    let cyd = closed.add("cyd", &["writer:other"]);
    let query = json!({"query": {"items": [{"types": ["T"]}]}});
    closed.ask(&root, "PUT", "/v1/consumers/c", &query).expect(201);
    let event = json!({"events": [{"type": "T", "data": 1}]});
    closed.ask(&ann, "POST", "/v1/append", &event).expect(200);
    let turn = json!({"worker": "w", "turn": 1});
    let taken = closed.ask(&ann, "POST", "/v1/consumers/c/next", &turn).expect(200);
    let delivery = taken["deliveries"][0]["delivery"].clone();
    let settles = json!({"consumer": "c", "worker": "w", "delivery": delivery, "log": "main"});
    let body = json!({"events": [{"type": "Result", "data": "x"}], "settles": settles});
    let problem = closed.ask(&bob, "POST", "/v1/append", &body).problem(409);
    assert_eq!(problem["type"], "/problems/delivery-lost");
    let problem = closed.ask(&cyd, "POST", "/v1/logs/other/append", &body).problem(403);
    assert!(problem["detail"].as_str().unwrap().contains("main"), "{problem}");
    closed.ask(&ann, "POST", "/v1/append", &body).expect(200);
}
