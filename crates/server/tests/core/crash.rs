//! `kill -9` of the real server under load, again and again: every acknowledged durable event is
//! stored, in place and unchanged; every other request is stored as a whole or not at all;
//! positions stay dense.
//!
//! `WELLSPRING_TEST_CRASH_CYCLES` sets the number of cycles (default 24).

use crate::client::Client;
use crate::disk::load_for;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

const WRITERS: usize = 6;

/// What a client knows of one request it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestOutcome {
    /// Acknowledged as durable, at this position.
    Durable { first: u64 },
    /// Refused: must not be stored.
    Refused,
    /// No answer: may be stored, as a whole.
    Unknown,
}

#[derive(Debug, Default)]
struct Ledger {
    requests: HashMap<String, (usize, RequestOutcome)>,
}

fn events_of(name: &str, count: usize) -> Vec<Value> {
    (0..count)
        .map(|i| {
            let data = json!({"request": name, "i": i, "of": count, "fill": "x".repeat(i * 700)});
            json!({"type": "Numbered", "tags": [format!("request:{name}"), "all"], "data": data})
        })
        .collect()
}

/// Sends until the connection breaks.
fn write_until_killed(address: SocketAddr, cycle: usize, writer: usize) -> Ledger {
    let mut ledger = Ledger::default();
    let Ok(mut client) = Client::connect(address) else { return ledger };
    for i in 0.. {
        let name = format!("{cycle}-{writer}-{i}");
        let count = (i + writer) % 4 + 1;
        let mut body = json!({"events": events_of(&name, count)});
        let must_fail = i % 7 == 6;
        if must_fail {
            // An earlier event of this writer exists.
            let tag = format!("request:{cycle}-{writer}-{}", i - 1);
            body["condition"] = json!({"failIfEventsMatch": {"items": [{"tags": [tag]}]}});
        }
        let (known, goes_on) = match client.post("/v1/append", &body) {
            Ok(answer) if answer.status == 200 => {
                assert!(!must_fail, "a condition that must fail did not");
                (RequestOutcome::Durable { first: answer.json()["first"].as_u64().unwrap() }, true)
            }
            Ok(answer) if answer.status == 409 => {
                assert!(must_fail);
                (RequestOutcome::Refused, true)
            }
            Ok(answer) => panic!("{answer:?}"),
            Err(_) => (RequestOutcome::Unknown, false),
        };
        ledger.requests.insert(name, (count, known));
        if !goes_on {
            break;
        }
    }
    ledger
}

fn read_back(client: &mut Client) -> Vec<Value> {
    let headers = [("Accept", "application/x-ndjson")];
    let answer = client.call("GET", "/v1/events", &headers, b"").unwrap();
    assert_eq!(answer.status, 200);
    let text = answer.text();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn check(events: &[Value], ledgers: &[Ledger]) {
    for (expected, event) in (1u64..).zip(events) {
        assert_eq!(event["position"], expected, "positions are dense");
    }
    let mut at = 0;
    let mut found: HashMap<String, (u64, usize)> = HashMap::new();
    while at < events.len() {
        let first = &events[at];
        let name = first["data"]["request"].as_str().unwrap().to_owned();
        let count = first["data"]["of"].as_u64().unwrap() as usize;
        let expected = events_of(&name, count);
        assert!(at + count <= events.len(), "{name} is there in part");
        for (there, sent) in events[at..].iter().zip(&expected) {
            for member in ["type", "tags", "data"] {
                assert_eq!(there[member], sent[member], "{name} has changed");
            }
        }
        let again = found.insert(name.clone(), (first["position"].as_u64().unwrap(), count));
        assert!(again.is_none(), "{name} is there twice");
        at += count;
    }
    for (name, (count, known)) in ledgers.iter().flat_map(|ledger| &ledger.requests) {
        match (known, found.get(name)) {
            (RequestOutcome::Durable { first }, place) => {
                assert_eq!(place, Some(&(*first, *count)), "{name} was acknowledged");
            }
            (RequestOutcome::Refused, place) => assert_eq!(place, None, "{name} was refused"),
            (RequestOutcome::Unknown, _) => {}
        }
    }
}

fn run_cycle(dir: &Path, cycle: usize, ledgers: &mut Vec<Ledger>) {
    let server = Server::start_in(dir, &[]);
    check(&read_back(&mut server.client()), ledgers);
    let address = server.address;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| std::thread::spawn(move || write_until_killed(address, cycle, writer)))
        .collect();
    // Anywhere between the first request and a few hundred group commits.
    load_for(5 + (cycle as u64 * 37) % 150);
    server.kill();
    ledgers.extend(writers.into_iter().map(|writer| writer.join().unwrap()));
}

#[test]
fn killed_under_load_again_and_again_nothing_acknowledged_is_lost() {
    let cycles = std::env::var("WELLSPRING_TEST_CRASH_CYCLES");
    let cycles = cycles.map_or(24, |text| text.parse().expect("a number of cycles"));
    let mut durable = 0;
    // A new folder now and then: every cycle reads everything back.
    for first in (0..cycles).step_by(20) {
        durable += run_folder(first..cycles.min(first + 20));
    }
    assert!(durable > cycles, "the load reached the server: {durable} in {cycles} cycles");
}

/// Runs these cycles on one folder; returns the number of acknowledged requests.
fn run_folder(cycles: std::ops::Range<usize>) -> usize {
    let dir = crate::disk::on_disk();
    let mut ledgers = Vec::new();
    for cycle in cycles {
        run_cycle(dir.path(), cycle, &mut ledgers);
    }
    let server = Server::start_in(dir.path(), &[]);
    check(&read_back(&mut server.client()), &ledgers);
    let requests = ledgers.iter().flat_map(|ledger| ledger.requests.values());
    requests.filter(|(_, known)| matches!(known, RequestOutcome::Durable { .. })).count()
}
