//! Accepted events and their outcome: in every sample, under load, and at rest against the log
//! itself and the answers that clients got. Also what `POST /e` stores: type, tags and data as
//! given.

use crate::account::{Account, Amount, count_of};
use crate::client::Client;
use crate::done::StopSignal;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Events that clients sent and that were answered with 202.
#[derive(Default)]
struct Clients {
    sent: AtomicU64,
    answered: AtomicU64,
    /// Those of them sent through `POST /v1/append`.
    appended: AtomicU64,
    done: StopSignal,
}

impl Clients {
    /// Pushes with `POST /e` in one of several ways until `done` is set.
    fn push(&self, server: &Server, way: usize) {
        let mut client = server.client();
        for n in 0u64.. {
            if self.done.is_set() {
                return;
            }
            let lines = if way == 0 { n % 4 + 1 } else { 1 };
            let body: Vec<String> = (0..lines).map(|line| format!("[{n},{line}]")).collect();
            let media = if way == 0 { "application/x-ndjson" } else { "application/json" };
            let path = ["/e", "/e", "/e?tag=way:2", "/e?ack=durable"][way];
            self.sent.fetch_add(lines, SeqCst);
            let headers = [("Content-Type", media)];
            let answer = client.call("POST", path, &headers, body.join("\n").as_bytes()).unwrap();
            answer.expect(202);
            self.answered.fetch_add(lines, SeqCst);
            if way == 1 && n % 512 == 511 {
                client.get("/health").unwrap().expect(200);
            }
        }
    }

    /// Appends with `"ack":"accepted"`; the log may be overloaded at times.
    fn append(&self, server: &Server) {
        let mut client = server.client();
        let event = json!({"type": "Appended", "tags": [], "data": "x".repeat(300)});
        let body = json!({"events": [event, event], "ack": "accepted"});
        while !self.done.is_set() {
            self.sent.fetch_add(2, SeqCst);
            let answer = client.post("/v1/append", &body).unwrap();
            if answer.status == 202 {
                self.answered.fetch_add(2, SeqCst);
                self.appended.fetch_add(2, SeqCst);
            } else {
                answer.problem(503);
            }
        }
    }

    /// Samples one of the two sources and checks each sample; returns how many showed events in
    /// flight.
    fn sample(&self, server: &Server, most_staged_bytes: u64, source: Source) -> u64 {
        let (mut client, mut other) = (server.client(), server.client());
        let (mut last, mut in_flight) = (Account::default(), 0);
        while !self.done.is_set() {
            let answered = self.answered.load(SeqCst);
            let account = match source {
                Source::Metrics => Account::scrape(&mut client, "main"),
                Source::Document => {
                    let (account, most) = Account::ask(&mut client, "main");
                    let possible = account.lost_possible.bytes;
                    assert!(possible <= most + most_staged_bytes, "{possible} of {most}");
                    account
                }
            };
            let sent = self.sent.load(SeqCst);
            let accepted = account.accepted.events;
            assert!(answered <= accepted, "{answered} were answered, {accepted} accepted");
            assert!(accepted <= sent, "{sent} were sent, {accepted} accepted");
            let head = other.get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
            assert!(account.stored.events <= head, "{account:?}, and {head} are there");
            account.check_after(&last);
            last = account;
            in_flight += u64::from(account.lost_possible.events > 0);
        }
        in_flight
    }
}

#[derive(Clone, Copy)]
enum Source {
    Document,
    Metrics,
}

#[test]
fn every_sample_adds_up_and_at_rest_the_account_is_the_log() {
    const STAGED: u64 = 1 << 20;
    for lean in BOTH_LOOPS {
        let flags = ["--staged-bytes", "1048576", "--ingest-partition-bytes", "4194304"];
        let server = Server::start_with(&[&flags[..], &lean].concat());
        let clients = Clients::default();
        let in_flight: u64 = std::thread::scope(|scope| {
            let (server, clients) = (&server, &clients);
            let enough = clients.done.at_the_end();
            (0..4).for_each(|way| drop(scope.spawn(move || clients.push(server, way))));
            scope.spawn(|| clients.append(server));
            let samplers = [Source::Document, Source::Metrics]
                .map(|source| scope.spawn(move || clients.sample(server, STAGED, source)));
            std::thread::sleep(Duration::from_millis(700));
            drop(enough);
            samplers.into_iter().map(|sampler| sampler.join().unwrap()).sum()
        });
        assert!(in_flight > 0, "some samples were taken while events were in flight");
        let account = Account::at_rest(&server, "main");
        assert_eq!(account.accepted, account.stored);
        assert_eq!((account.shed, account.dropped), Default::default());
        let (answered, appended) = (clients.answered.load(SeqCst), clients.appended.load(SeqCst));
        assert_eq!(account.accepted.events, answered);
        assert_eq!(count_of(&server, "main", "Appended"), appended);
        assert_eq!(count_of(&server, "main", "Ingested"), answered - appended);
        assert!(appended > 0 && answered > 500, "{appended} of {answered}");
        let scraped = Account::scrape(&mut server.client(), "main");
        assert_eq!((scraped.accepted, scraped.stored), (account.accepted, account.stored));
    }
}

/// All events of a log, as the text and document of a JSON page.
fn page(client: &mut Client, log: &str) -> (String, Value) {
    let answer = client.get(&format!("/v1/logs/{log}/events")).unwrap();
    assert_eq!(answer.status, 200);
    (answer.text(), answer.json())
}

#[test]
fn what_is_stored_is_what_was_sent() {
    const OPAQUE: &[u8] = b"\x00\xff not JSON {";
    // Content type, body, and what is stored: JSON text, or bytes in base64.
    type Case<'a> = (Option<&'a str>, &'a [u8], Result<&'a str, &'a str>);
    let cases: [Case<'_>; 10] = [
        (None, br#"{"e":1}"#, Ok(r#"{"e":1}"#)),
        (
            Some("application/json"),
            br#"{"b" : 1,"a":2, "b":3.10}"#,
            Ok(r#"{"b" : 1,"a":2, "b":3.10}"#),
        ),
        (Some("application/json"), b" 9007199254740993 \n", Ok("9007199254740993")),
        (Some("application/vnd.x+json"), br#""\u00e9\/""#, Ok(r#""\u00e9\/""#)),
        (Some("application/x-www-form-urlencoded"), b"[1 , 2]", Ok("[1 , 2]")),
        (Some("application/x-www-form-urlencoded"), b"a=b", Err("YT1i")),
        (None, OPAQUE, Err("AP8gbm90IEpTT04gew==")),
        (Some("text/plain; charset=utf-8"), b"hello", Err("aGVsbG8=")),
        (Some("application/octet-stream"), b"{}", Err("e30=")),
        (Some("image/png"), OPAQUE, Err("AP8gbm90IEpTT04gew==")),
    ];
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&[&["--ingest-type", "Clicked"], &lean[..]].concat());
        let mut client = server.client();
        for (media, body, _) in cases {
            let headers: Vec<_> = media.iter().map(|media| ("Content-Type", *media)).collect();
            let path = "/e?tag=a%3A1&tag=b&ack=durable";
            assert_eq!(client.call("POST", path, &headers, body).unwrap().status, 202);
        }
        let (text, document) = page(&mut client, "main");
        for (event, (_, body, stored)) in document["events"].as_array().unwrap().iter().zip(cases) {
            assert_eq!((&event["type"], &event["tags"]), (&json!("Clicked"), &json!(["a:1", "b"])));
            match stored {
                Ok(json) => assert!(text.contains(&format!("\"data\":{json}")), "{json}: {text}"),
                Err(base64) => assert_eq!(event["data_base64"], base64, "{body:?}"),
            }
        }
        assert_eq!(document["events"].as_array().unwrap().len(), cases.len());
        let ndjson = [("Content-Type", "application/x-ndjson")];
        let body = b"{\"n\" : 1}\n\n 2 \r\n\"three\"";
        assert_eq!(
            client.call("POST", "/e?type=N&ack=durable", &ndjson, body).unwrap().status,
            202
        );
        assert_eq!(count_of(&server, "main", "N"), 3);
        let (text, _) = page(&mut client, "main");
        assert!(
            text.contains("\"data\":{\"n\" : 1}") && text.contains("\"data\":\"three\""),
            "{text}"
        );
        // A record is 32 bytes plus its type, tags and data.
        let (before, _) = Account::ask(&mut client, "main");
        client.call("POST", "/e?type=Ab&tag=xyz&ack=durable", &[], b"[1]").unwrap().expect(202);
        let (after, _) = Account::ask(&mut client, "main");
        assert_eq!(after.accepted.bytes - before.accepted.bytes, 32 + 2 + (1 + 3) + 3);
        assert_eq!(after.accepted, after.stored, "ack=durable has been stored");
    }
}

#[test]
fn what_is_refused_is_in_no_account_and_in_no_log() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        let json = [("Content-Type", "application/json")];
        let ndjson = [("Content-Type", "application/x-ndjson")];
        let key = [("Idempotency-Key", "k")];
        let large = vec![b'x'; (1 << 20) + 1];
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [u8], u16);
        let cases: [Case<'_>; 11] = [
            ("/e", &json, b"{\"e\":}", 400),
            ("/e", &json, b"{} {}", 400),
            ("/e", &json, b"", 422),
            ("/e", &ndjson, b"{}\n{}\n{", 422),
            ("/e", &ndjson, b"\n\n", 422),
            ("/e", &[], &large, 413),
            ("/e?ack=maybe", &[], b"1", 422),
            ("/e?type=", &[], b"1", 422),
            ("/e?colour=red", &[], b"1", 422),
            ("/e", &key, b"1", 422),
            ("/v1/logs/nowhere/e", &[], b"1", 404),
        ];
        for (path, headers, body, status) in cases {
            let answer = client.call("POST", path, headers, body).unwrap();
            answer.problem(status);
            if answer.header("connection").is_some_and(|value| value == "close") {
                client = server.client();
            }
        }
        let exact = vec![b'x'; 1 << 20];
        client.call("POST", "/e?ack=durable", &[], &exact).unwrap().expect(202);
        let (account, _) = Account::ask(&mut client, "main");
        assert_eq!(account.accepted.events, 1);
        assert_eq!(client.get("/v1/head").unwrap().expect(200)["head"], 1);
    }
}

fn make(client: &mut Client, log: &str) {
    let answer = client.call("PUT", &format!("/v1/logs/{log}"), &[], b"").unwrap();
    assert!([200, 201].contains(&answer.status), "{answer:?}");
}

fn drop_log(client: &mut Client, log: &str) {
    let path = format!("/v1/logs/{log}?confirm={log}");
    let answer = client.call("DELETE", &path, &[], b"").unwrap();
    assert!([200, 204].contains(&answer.status), "{answer:?}");
}

#[test]
fn a_log_created_again_has_an_account_of_its_own() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&[&["--dev-endpoints"], &lean[..]].concat());
        let mut admin = server.client();
        // Several, so that every serving thread holds part of the old log.
        let mut pushers: Vec<Client> = (0..6).map(|_| server.client()).collect();
        let mut push = |path: &str| -> Vec<u16> {
            let push = |client: &mut Client| client.call("POST", path, &[], b"1").unwrap().status;
            pushers.iter_mut().map(push).collect()
        };
        let events = |account: Account| (account.accepted.events, account.stored.events);
        make(&mut admin, "x");
        for round in 0..3 {
            assert_eq!(push("/v1/logs/x/e"), [202; 6], "round {round}");
            assert_eq!(push("/v1/logs/x/e?ack=durable"), [202; 6], "round {round}");
            assert_eq!(push("/e"), [202; 6]);
            assert_eq!(events(Account::at_rest(&server, "x")), (12, 12));
            drop_log(&mut admin, "x");
            assert_eq!(push("/v1/logs/x/e"), [404; 6], "there is no such log any more");
            make(&mut admin, "x");
            let (account, _) = Account::ask(&mut admin, "x");
            assert_eq!(account.accepted, Amount::default());
            assert_eq!(count_of(&server, "x", "Ingested"), 0);
        }
        assert_eq!(events(Account::at_rest(&server, "main")), (18, 18), "another log's");
        assert_eq!(admin.call("POST", "/cleanup", &[], b"").unwrap().status, 200);
        assert_eq!(events(Account::at_rest(&server, "main")), (0, 0));
        assert_eq!(push("/e"), [202; 6]);
        assert_eq!(events(Account::at_rest(&server, "main")), (6, 6));
        assert_eq!(count_of(&server, "main", "Ingested"), 6);
    }
}

/// Pushes to a log that is repeatedly dropped and created; returns how many were accepted.
fn push_through(server: &Server, path: &str, done: &StopSignal) -> u64 {
    let mut client = server.client().patient();
    let mut taken = 0;
    while !done.is_set() {
        let answer = client.call("POST", path, &[], b"1").expect("an answer");
        match answer.status {
            202 => taken += 1,
            // Dropped at the moment, or being closed.
            404 => drop(answer.problem(404)),
            503 => drop(answer.problem(503)),
            // Closed while the request waited.
            500 if path.contains("durable") && answer.text().contains("outcome-unknown") => {}
            status => panic!("{status}: {}", answer.text()),
        }
    }
    taken
}

#[test]
fn logs_emptied_and_dropped_under_load_leave_no_request_without_an_answer() {
    for lean in BOTH_LOOPS {
        let server = Server::start_with(&[&["--dev-endpoints"], &lean[..]].concat());
        let mut admin = server.client().patient();
        make(&mut admin, "x");
        let done = StopSignal::default();
        std::thread::scope(|scope| {
            let (server, done) = (&server, &done);
            let enough = done.at_the_end();
            let paths = ["/v1/logs/x/e", "/v1/logs/x/e?ack=durable", "/e?tag=t", "/e?ack=durable"];
            let pushers = paths.map(|path| scope.spawn(|| push_through(server, path, done)));
            for _ in 0..10 {
                std::thread::sleep(Duration::from_millis(15));
                drop_log(&mut admin, "x");
                assert_eq!(admin.call("POST", "/cleanup", &[], b"").unwrap().status, 200);
                make(&mut admin, "x");
            }
            std::thread::sleep(Duration::from_millis(15));
            drop(enough);
            for pusher in pushers {
                assert!(pusher.join().unwrap() > 0, "some were taken");
            }
        });
        for log in ["x", "main"] {
            let account = Account::at_rest(&server, log);
            assert_eq!(account.accepted, account.stored);
            assert_eq!(account.stored.events, count_of(&server, log, "Ingested"));
        }
    }
}
