//! Bulk requests retried under their key: after a broken connection, after a refusal for the rate,
//! after the expiry they name. Each retry creates what is missing, nothing twice, and existing
//! links cost nothing.

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use std::net::{Shutdown, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, Patience};

fn lines(count: usize) -> Vec<String> {
    let line = |n| format!("{}\n", json!({"url": format!("http://example.com/bulk/{n}")}));
    (1..=count).map(line).collect()
}

/// Sends the head of a bulk of this many bytes and this part of its body, then hangs up.
fn send_part(server: &Server, key: Option<&str>, length: usize, part: &str) -> Vec<u8> {
    use std::io::{Read, Write};
    let key = key.map_or(String::new(), |key| format!("Idempotency-Key: {key}\r\n"));
    let head = format!(
        "POST /api/urls HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-ndjson\r\n\
         {key}Content-Length: {length}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(server.address).unwrap();
    // A client that gives up ends what it asked for, however slow the disk is.
    stream.set_read_timeout(Some(10 * PATIENCE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(part.as_bytes()).unwrap();
    // By the time the server notices the end it has read everything; it may answer or not.
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn count(client: &mut Client) -> usize {
    codes(client, "limit=1000").len()
}

#[test]
fn a_bulk_that_was_cut_off_is_made_whole_by_its_retry() {
    let server = Server::start();
    let mut client = server.client().patient();
    let key = [("Idempotency-Key", "k1")];
    let body = lines(600).concat();
    for cut in [400, 100, 599] {
        send_part(&server, Some("k1"), body.len(), &lines(cut).concat());
    }
    // The incomplete batch, which a retry could not reproduce, is not created; complete ones are,
    // once.
    assert_eq!(count(&mut client), 500);
    let made = bulk(&mut client, &body, &key).expect(201);
    assert_eq!(made["links"].as_array().unwrap().len(), 600, "{made}");
    assert_eq!(count(&mut client), 600);
    let again = bulk(&mut client, &body, &key).expect(201);
    assert_eq!(again["links"], made["links"]);
    assert_eq!(count(&mut client), 600);
}

#[test]
fn without_a_key_the_whole_lines_of_a_cut_bulk_are_made() {
    let server = Server::start();
    let mut client = server.client().patient();
    let part = lines(260).concat() + "{\"url\":\"http://exa";
    send_part(&server, None, part.len() + 100, &part);
    let (mut patience, mut made) = (Patience::new(), 0);
    while made < 260 {
        made = count(&mut client);
        patience.saw(made);
        patience.pause(format_args!("{made} of 260 lines are made"));
    }
    assert_eq!(made, 260);
}

/// Asserts a refusal for the rate; returns the seconds to wait.
#[track_caller]
fn too_many(answer: &Answer, durable: u64) -> u64 {
    let problem = refused(answer, (429, "too-many-links"));
    assert_eq!(problem["durable_lines"], durable, "{problem}");
    assert_eq!(problem["line"], durable + 1, "{problem}");
    let seconds = answer.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(problem["retry"], seconds, "{problem}");
    seconds
}

#[test]
fn a_bulk_over_the_rate_goes_on_where_it_stopped() {
    for (more, per_minute) in [(2, 60), (40, 600)] {
        let server = Server::start_with(&["--link-creates-per-minute", &per_minute.to_string()]);
        let mut client = server.client().patient();
        let body = lines(per_minute + more).concat();
        let key = [("Idempotency-Key", "k1")];
        // The bucket refills in the meantime: a few more lines may succeed.
        let begun = Instant::now();
        let first = bulk(&mut client, &body, &key);
        if first.status == 201 {
            let took = begun.elapsed();
            assert!(took > Duration::from_secs(2), "the rate does not refuse: {took:?}");
            println!("not tested: over this disk links are made as slowly as they may, {took:?}");
            continue;
        }
        let durable = first.json()["durable_lines"].as_u64().unwrap();
        assert!((per_minute as u64..(per_minute + more) as u64).contains(&durable), "{durable}");
        let mut wait_s = too_many(&first, durable);
        let mut attempts = 0;
        let made = loop {
            assert!(wait_s <= 4 && attempts < 3, "{wait_s} s, {attempts} attempts");
            sleep(Duration::from_secs(wait_s));
            let answer = bulk(&mut client, &body, &key);
            if answer.status == 201 {
                break answer.json();
            }
            wait_s = too_many(&answer, answer.json()["durable_lines"].as_u64().unwrap());
            attempts += 1;
        };
        assert_eq!(made["lines"], per_minute + more);
        assert_eq!(count(&mut client), per_minute + more);
        // Repeated retries are free.
        for _ in 0..3 {
            let again = bulk(&mut client, &body, &key).expect(201);
            assert_eq!(again["links"], made["links"]);
        }
        assert_eq!(count(&mut client), per_minute + more);
    }
}

#[test]
fn what_was_made_before_is_free() {
    let server = Server::start_with(&["--link-creates-per-minute", "2"]);
    let mut client = server.client();
    let keyed = |client: &mut Client, key: &str, body: &Value| {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        client.call("POST", "/api/urls", &headers, body.to_string().as_bytes()).unwrap()
    };
    let link = json!({"url": "http://example.com/once"});
    let first = keyed(&mut client, "a", &link);
    first.expect(201);
    let same = json!({"url": "http://example.com/same", "deterministic": true});
    for _ in 0..3 {
        assert_eq!(keyed(&mut client, "a", &link).body, first.body);
    }
    client.post("/api/urls", &same).unwrap().expect(201);
    refused(&keyed(&mut client, "b", &link), (429, "too-many-links"));
    assert_eq!(keyed(&mut client, "a", &link).body, first.body);
    assert_eq!(count(&mut client), 2);
}

#[test]
fn a_retry_after_its_link_has_expired_gets_the_first_answer() {
    let server = Server::start();
    let mut client = server.client();
    let soon = create(&mut client, &json!({"url": "http://example.com/a", "expires_in_s": 2}));
    let soon = soon["expires_at"].as_str().unwrap();
    let line = json!({"url": "http://example.com/b", "expires_at": soon}).to_string();
    let one = [("Content-Type", "application/json"), ("Idempotency-Key", "one")];
    let mut post = || client.call("POST", "/api/urls", &one, line.as_bytes()).unwrap();
    let first = post();
    first.expect(201);
    let many = [("Idempotency-Key", "many")];
    let body = lines(2).concat() + &line + "\n" + &lines(1).concat();
    let mut client = server.client();
    let bulked = bulk(&mut client, &body, &many).expect(201);
    sleep(Duration::from_millis(2_100));
    assert_eq!(post().body, first.body);
    assert_eq!(bulk(&mut client, &body, &many).expect(201)["links"], bulked["links"]);
    // New requests are checked against the current time.
    let problem = bulk(&mut client, &body, &[]).problem(422);
    assert_eq!((&problem["line"], &problem["durable_lines"]), (&json!(3), &json!(2)));
    assert_eq!(problem["field"], "expires_at");
}
