//! Workers that crash, are late and repeat themselves on a server that is killed again and again: a
//! judge reads the log afterwards. Of each key the results are in the order of the key's events,
//! each event that asks for a result has exactly one, and in the end everything is settled.
//!
//! `WELLSPRING_TEST_CRASH_CYCLES` sets the number of cycles (default 12), for each of the two.

use crate::client::{Answer, Client};
use crate::disk::load_for;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

const WORKERS: usize = 4;
const KEYS: u64 = 12;
/// Longest silence of a worker.
const HOLD_MS: u64 = 400;
/// Of so many events one is only acknowledged, and has no result.
const ACKNOWLEDGED_OF: u64 = 5;

/// Which events ask for a result.
fn has_result(number: u64) -> bool {
    !number.is_multiple_of(ACKNOWLEDGED_OF)
}

/// Where results go, and how many events a delivery may have.
#[derive(Clone, Copy)]
struct HistoryTerms {
    results: &'static str,
    run: u64,
}

/// Random numbers (Knuth's).
struct Coins(u64);

impl Coins {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }

    /// A key: the first ones are far more frequent.
    fn key(&mut self) -> u64 {
        let most = 1 + self.below(KEYS);
        self.below(most)
    }
}

/// Appends events until the server is killed.
fn produce(address: SocketAddr, cycle: u64) -> io::Result<()> {
    let (mut client, mut coins) = (Client::connect(address)?, Coins(cycle));
    for number in 0.. {
        let events: Vec<Value> = (0..1 + coins.below(4))
            .map(|at| {
                let tag = format!("k:{}", coins.key());
                json!({"type": "T", "tags": [tag], "data": cycle * 1_000_000 + number * 4 + at})
            })
            .collect();
        client.post("/v1/append", &json!({"events": events}))?.expect(200);
        std::thread::sleep(std::time::Duration::from_millis(coins.below(4)));
    }
    Ok(())
}

/// A worker of the consumer `c`, from its start to a crash of its own.
struct Worker {
    address: SocketAddr,
    client: Client,
    terms: HistoryTerms,
    name: String,
    turn: u64,
    coins: Coins,
}

/// What it says in its next turn.
#[derive(Default)]
struct Report {
    done: Vec<Value>,
    failed: Vec<Value>,
}

/// A delivery with its key and its events.
struct TakenDelivery {
    id: Value,
    key: String,
    /// Positions and numbers.
    events: Vec<(u64, u64)>,
}

impl Worker {
    fn start(
        address: SocketAddr,
        terms: HistoryTerms,
        name: String,
        seed: u64,
    ) -> io::Result<Worker> {
        let client = Client::connect(address)?;
        Ok(Worker { address, client, terms, name, turn: 0, coins: Coins(seed) })
    }

    /// Works until it crashes, or until nothing is left to do if it is `careful`. Returns how many
    /// appends have settled.
    fn work(&mut self, is_careful: bool) -> io::Result<u64> {
        let (mut report, mut settled) = (Report::default(), 0);
        loop {
            let taken = self.next(&std::mem::take(&mut report), is_careful)?;
            if taken.is_empty() && is_careful {
                return Ok(settled);
            }
            for delivery in taken {
                if !is_careful && self.coins.below(60) == 0 {
                    return Ok(settled);
                }
                settled += u64::from(self.handle(&delivery, &mut report)?);
            }
        }
    }

    fn next(&mut self, report: &Report, is_careful: bool) -> io::Result<Vec<TakenDelivery>> {
        self.turn += 1;
        let wait_ms = if is_careful { 3 * HOLD_MS } else { 50 };
        let body = json!({"worker": self.name, "turn": self.turn, "want": 3, "wait_ms": wait_ms,
            "done": report.done, "failed": report.failed,
            "durable": is_careful || self.coins.below(8) == 0});
        let mut answer = self.client.post("/v1/consumers/c/next", &body)?.expect(200);
        if self.coins.below(10) == 0 {
            let again = self.client.post("/v1/consumers/c/next", &body)?;
            // Lost meanwhile, or the consumer was opened anew: what there is now counts.
            answer = again.expect(200);
        }
        let event =
            |event: &Value| (event["position"].as_u64().unwrap(), event["data"].as_u64().unwrap());
        let taken = |delivery: &Value| TakenDelivery {
            id: delivery["delivery"].clone(),
            key: delivery["keys"][0].as_str().unwrap().to_owned(),
            events: delivery["events"].as_array().unwrap().iter().map(event).collect(),
        };
        Ok(answer["deliveries"].as_array().unwrap().iter().map(taken).collect())
    }

    /// Whether an append has settled it.
    fn handle(&mut self, delivery: &TakenDelivery, report: &mut Report) -> io::Result<bool> {
        if self.coins.below(20) == 0 {
            report.failed.push(json!({"delivery": delivery.id, "retry_ms": 0}));
            return Ok(false);
        }
        let acknowledged = delivery.events.iter().take_while(|(_, number)| !has_result(*number));
        let acknowledged = acknowledged.count();
        if acknowledged == delivery.events.len() {
            report.done.push(delivery.id.clone());
            return Ok(false);
        }
        let mut wanted = delivery.events.clone();
        let mut is_whole = true;
        if acknowledged > 0 && self.coins.below(2) == 0 {
            let (up_to, _) = wanted[acknowledged - 1];
            let part = vec![json!({"delivery": delivery.id, "upto": up_to})];
            self.turn += 1;
            let body = json!({"worker": self.name, "turn": self.turn, "want": 0, "done": part});
            self.client.post("/v1/consumers/c/next", &body)?.expect(200);
            is_whole = false;
        }
        wanted.retain(|(_, number)| has_result(*number));
        let wanted: Vec<u64> = wanted.into_iter().map(|(position, _)| position).collect();
        let body = self.append(delivery, &wanted)?;
        let Some(body) = body else { return Ok(false) };
        // The repeat of an append that settled the rest of a delivery is told that it is lost.
        if is_whole && self.coins.below(6) == 0 {
            assert_eq!(self.post(&body)?.expect(200)["replayed"], true);
            let other = self.post(&self.result(delivery, &wanted, 1 << 21))?;
            assert_eq!(other.problem(409)["type"], "/problems/delivery-settled");
        }
        Ok(true)
    }

    /// Its body, if it has settled the delivery.
    fn append(&mut self, delivery: &TakenDelivery, of: &[u64]) -> io::Result<Option<Value>> {
        let attempt = self.coins.below(1 << 20);
        let mut body = self.result(delivery, of, attempt);
        if self.coins.below(10) == 0 {
            // Its condition fails always.
            body["condition"] = json!({});
            self.post(&body)?;
            body["condition"] = Value::Null;
        }
        if self.coins.below(10) == 0 {
            // Another attempt of the same worker is on its way.
            let mut other = Client::connect(self.address)?;
            let text = self.result(delivery, of, attempt + 1).to_string();
            let path = format!("/v1/logs/{}/append", self.terms.results);
            let length = text.len();
            let head = "Host: test\r\nContent-Type: application/json";
            let request =
                format!("POST {path} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n{text}");
            other.send(request.as_bytes())?;
        }
        let answer = self.post(&body)?;
        Ok((answer.status == 200).then_some(body))
    }

    fn result(&self, delivery: &TakenDelivery, of: &[u64], attempt: u64) -> Value {
        let data = json!({"of": of, "by": self.name, "attempt": attempt});
        let tag = format!("k:{}", delivery.key);
        let settles = json!({"consumer": "c", "worker": self.name, "delivery": delivery.id,
            "log": "main"});
        json!({"events": [{"type": "Result", "tags": [tag], "data": data}], "settles": settles})
    }

    fn post(&mut self, body: &Value) -> io::Result<Answer> {
        let answer = self.client.post(&format!("/v1/logs/{}/append", self.terms.results), body)?;
        if answer.status != 200 {
            let problem = answer.problem(409);
            let slug = problem["type"].as_str().unwrap().strip_prefix("/problems/").unwrap();
            let known =
                ["delivery-lost", "delivery-settled", "delivery-staged", "append-condition-failed"];
            assert!(known.contains(&slug), "{problem}");
        }
        Ok(answer)
    }
}

fn events(client: &mut Client, log: &str, event_type: &str) -> Vec<Value> {
    let headers = [("Accept", "application/x-ndjson")];
    let path = format!("/v1/logs/{log}/events?type={event_type}");
    let answer = client.call("GET", &path, &headers, b"").unwrap();
    assert_eq!(answer.status, 200);
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// By key: positions of events that ask for a result, and those that results name, in order.
fn judged(client: &mut Client, terms: HistoryTerms) -> BTreeMap<String, (Vec<u64>, Vec<u64>)> {
    let mut keys: BTreeMap<String, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    let key = |event: &Value| event["tags"][0].as_str().unwrap().to_owned();
    for event in events(client, "main", "T") {
        if has_result(event["data"].as_u64().unwrap()) {
            keys.entry(key(&event)).or_default().0.push(event["position"].as_u64().unwrap());
        }
    }
    for result in events(client, terms.results, "Result") {
        let of = result["data"]["of"].as_array().unwrap().iter();
        keys.entry(key(&result)).or_default().1.extend(of.map(|of| of.as_u64().unwrap()));
    }
    keys
}

fn cycle(dir: &Path, terms: HistoryTerms, cycle: u64) -> u64 {
    let server = Server::start_in(dir, &[]);
    for (key, (events, results)) in judged(&mut server.client(), terms) {
        assert!(events.starts_with(&results), "{key}: {results:?} are no prefix of {events:?}");
    }
    let address = server.address;
    let producer = std::thread::spawn(move || produce(address, cycle));
    let works = |worker: usize| {
        move || {
            let mut settled = 0;
            for life in 0.. {
                let name = format!("{cycle}-{worker}-{life}");
                let seed = cycle << 20 | (worker as u64) << 10 | life;
                let begun = Worker::start(address, terms, name, seed);
                let Ok(more) = begun.and_then(|mut worker| worker.work(false)) else { break };
                settled += more;
            }
            settled
        }
    };
    let workers: Vec<_> = (0..WORKERS).map(|worker| std::thread::spawn(works(worker))).collect();
    // A short life often ends between a checkpoint and the end of what it cuts.
    let long_ms = 200 + (cycle * 137) % 500;
    load_for(if cycle.is_multiple_of(2) { long_ms } else { 5 + (cycle * 37) % 60 });
    server.kill();
    assert!(producer.join().unwrap().is_err(), "it ends with the server");
    workers.into_iter().map(|worker| worker.join().unwrap()).sum()
}

fn run(terms: HistoryTerms) {
    let cycles = std::env::var("WELLSPRING_TEST_CRASH_CYCLES");
    let cycles = cycles.map_or(12, |text| text.parse().expect("a number of cycles"));
    let dir = crate::disk::on_disk();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    let headers = [("Content-Type", "application/json")];
    let path = format!("/v1/logs/{}", terms.results);
    client.call("PUT", &path, &[], b"").unwrap();
    let definition = json!({"query": {"items": [{"types": ["T"]}]}, "key": {"tag": "k"},
        "run": terms.run, "hold_ms": HOLD_MS, "max_tries": 255, "backoff_ms": [0, 0]});
    let definition = definition.to_string();
    client.call("PUT", "/v1/consumers/c", &headers, definition.as_bytes()).unwrap().expect(201);
    server.kill();
    let settled: u64 = (0..cycles).map(|number| cycle(dir.path(), terms, number)).sum();
    let server = Server::start_in(dir.path(), &[]);
    let mut last = Worker::start(server.address, terms, "last".to_owned(), 1).unwrap();
    let rest = last.work(true).unwrap();
    for (key, (events, results)) in judged(&mut server.client(), terms) {
        assert_eq!(results, events, "{key}");
    }
    let status = server.client().get("/v1/consumers/c").unwrap().expect(200);
    assert_eq!(status["open_keys"], 0, "{status}");
    // Those of short lives settle little.
    assert!(settled > 0, "{settled} were settled in {cycles} cycles, and {rest} in the end");
}

#[test]
fn of_each_event_there_is_one_result_in_the_order_of_its_key() {
    run(HistoryTerms { results: "main", run: 4 });
}

#[test]
fn the_same_in_another_log() {
    run(HistoryTerms { results: "results", run: 1 });
}
