//! Ingest byte for byte, through the lean loop and through the general stack.

use crate::client::said;
use crate::client::{Answer, Client};
use crate::server::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, until};

const PLAIN: &[u8] = b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\n{\"e\":1}";
const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 11\r\nConnection: keep-alive\r\n\r\n{\"ok\":true}";

/// A server with or without the lean loop.
fn server(lean: bool, flags: &[&str]) -> Server {
    let lean = format!("--lean-loop={lean}");
    Server::start_with(&[&[lean.as_str()], flags].concat())
}

/// Both servers.
fn both() -> [Server; 2] {
    [server(true, &[]), server(false, &[])]
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The stored events, read until there are `count`.
fn events(server: &Server, count: usize) -> Vec<serde_json::Value> {
    let deadline = Instant::now() + PATIENCE;
    let mut client = server.client();
    loop {
        let page = client.get("/v1/events?limit=1000").unwrap().expect(200);
        let events = page["events"].as_array().unwrap().clone();
        if events.len() >= count || Instant::now() > deadline {
            assert_eq!(events.len(), count, "events stored");
            return events;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn accepted(answer: &Answer) {
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(answer.text(), r#"{"ok":true}"#);
}

/// Reads until the server closes. A reset counts as closing.
fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return all,
            Ok(got) => all.extend_from_slice(&buffer[..got]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return all,
            Err(error) => panic!("the server did not close: {error}"),
        }
    }
}

#[test]
fn the_answer_is_one_read_of_exactly_these_bytes() {
    let server = server(true, &[]);
    let mut stream = connect(&server);
    for _ in 0..100 {
        stream.write_all(PLAIN).unwrap();
        let mut buffer = [0; 1024];
        let got = stream.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..got], ACCEPTED, "{}", String::from_utf8_lossy(&buffer[..got]));
    }
    events(&server, 100);
}

#[test]
fn ten_pipelined_requests_get_ten_answers_and_are_stored_in_order() {
    for server in both() {
        let mut client = server.client();
        let request = |i: usize| {
            format!(
                "POST /e?ack=durable HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\n{{\"e\":{i}}}"
            )
        };
        client.send((0..10).map(request).collect::<String>().as_bytes()).unwrap();
        (0..10).for_each(|_| accepted(&client.answer().unwrap()));
        let stored: Vec<_> =
            events(&server, 10).iter().map(|e| e["data"]["e"].as_u64().unwrap()).collect();
        assert_eq!(stored, (0..10).collect::<Vec<_>>());
    }
}

#[test]
fn a_request_split_at_every_byte_is_one_request() {
    for server in both() {
        let mut client = server.client();
        for at in 1..PLAIN.len() {
            client.send(&PLAIN[..at]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
            client.send(&PLAIN[at..]).unwrap();
            accepted(&client.answer().unwrap());
        }
        for byte in PLAIN {
            client.send(&[*byte]).unwrap();
            std::thread::sleep(Duration::from_micros(200));
        }
        accepted(&client.answer().unwrap());
        events(&server, PLAIN.len());
    }
}

#[test]
fn a_large_body_is_one_request_however_it_comes() {
    for server in both() {
        let mut client = server.client();
        let body = format!("{{\"fill\":\"{}\"}}", "x".repeat(100_000));
        let head = format!("POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: {}\r\n\r\n", body.len());
        client.send(&[head.as_bytes(), body.as_bytes(), PLAIN].concat()).unwrap();
        (0..2).for_each(|_| accepted(&client.answer().unwrap()));
        let mut chunked =
            b"POST /e HTTP/1.1\r\nHost: l\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in body.as_bytes().chunks(777) {
            chunked.extend_from_slice(format!("{:x};n=v\r\n", chunk.len()).as_bytes());
            chunked.extend_from_slice(chunk);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\n\r\n");
        for part in chunked.chunks(40_000) {
            client.send(part).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        accepted(&client.answer().unwrap());
        let stored = events(&server, 3);
        assert_eq!(stored[0]["data"], stored[2]["data"]);
        assert_eq!(stored[0]["data"]["fill"].as_str().unwrap().len(), 100_000);
        // By the thread that has read it, perhaps after its answer.
        let mut client = server.client();
        let is_given_back = || {
            let metrics = client.get("/metrics").unwrap().text();
            metrics.contains("\nwellspring_body_bytes 0\n")
        };
        until("its memory is given back", is_given_back);
    }
}

#[test]
fn rubbish_is_answered_with_400_and_a_close() {
    for (lean, server) in [true, false].map(|lean| (lean, server(lean, &[]))) {
        for rubbish in [
            &b"rubbish\r\n\r\n"[..],
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: x\r\n\r\n",
            b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            b"POST /e HTTP/1.1\r\nHost: l\r\nA: b\r\n c\r\n\r\n",
        ] {
            let mut stream = connect(&server);
            stream.write_all(rubbish).unwrap();
            let text = String::from_utf8(until_closed(&mut stream)).unwrap();
            assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text:?}");
            assert!(!lean || text.contains("\"type\":\"/problems/bad-request\""), "{text:?}");
            assert!(text.to_lowercase().contains("connection: close"), "{text:?}");
        }
    }
}

#[test]
fn refusals_name_what_is_wrong_and_leave_the_connection_open() {
    for server in both() {
        let mut client = server.client();
        let large = "x".repeat(1 << 20);
        let wrong = [
            ("/e", ("Idempotency-Key", "k"), "1", 422, Some("Idempotency-Key")),
            ("/e", ("Content-Encoding", "gzip"), "1", 415, None),
            ("/e", ("Content-Type", "application/json"), "{", 400, None),
            ("/e?colour=red", ("X", "y"), "1", 422, Some("colour")),
            ("/v1/logs/nowhere/e", ("X", "y"), "1", 404, None),
            ("/e", ("X", "y"), &format!("{large}{}", "y".repeat(2_000)), 413, None),
        ];
        for (path, header, body, status, field) in wrong {
            let answer = client.call("POST", path, &[header], body.as_bytes()).unwrap();
            let problem = answer.problem(status);
            assert!(field.is_none() || problem["field"] == field.unwrap(), "{problem}");
        }
        accepted(&client.call("POST", "/e", &[("Content-Encoding", "identity")], b"1").unwrap());
        events(&server, 1);
    }
}

#[test]
fn a_body_far_beyond_its_limit_is_refused_and_the_answer_can_be_read() {
    for server in both() {
        let mut client = server.client();
        let body = vec![b'x'; 4 << 20];
        client.call("POST", "/e", &[], &body).unwrap().problem(413);
        events(&server, 0);
    }
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_once() {
    for server in both() {
        let mut client = server.client();
        client
            .send(
                b"POST /e HTTP/1.1\r\nHost: l\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n",
            )
            .unwrap();
        assert_eq!(client.head().unwrap().0, 100);
        client.send(b"{\"e\":1}").unwrap();
        accepted(&client.answer().unwrap());
        events(&server, 1);
    }
    let server = server(true, &[]);
    let mut client = server.client();
    client.call("POST", "/e", &[("Expect", "tea")], b"1").unwrap().problem(417);
    assert!(client.line().unwrap().is_none(), "whether the body comes cannot be known");
}

#[test]
fn close_is_honoured_and_half_closed_clients_get_their_answers() {
    for server in both() {
        let mut stream = connect(&server);
        let last =
            b"POST /e HTTP/1.1\r\nHost: l\r\nConnection: close\r\nContent-Length: 1\r\n\r\n2";
        stream.write_all(&[PLAIN, last, PLAIN].concat()).unwrap();
        let text = String::from_utf8(until_closed(&mut stream)).unwrap();
        assert_eq!(text.matches("202 Accepted").count(), 2, "{text}");
        assert!(text.to_lowercase().contains("connection: close"), "{text}");

        let mut stream = connect(&server);
        stream.write_all(&PLAIN.repeat(3)).unwrap();
        stream
            .write_all(b"POST /e?ack=durable HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n\r\n3")
            .unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let text = String::from_utf8(until_closed(&mut stream)).unwrap();
        assert_eq!(text.matches("202 Accepted").count(), 4, "{text}");
        events(&server, 6);
    }
}

#[test]
fn anything_else_is_handed_over_and_answered_in_order() {
    for server in both() {
        for step in [usize::MAX, 1, 7] {
            let mut client = server.client();
            let mut bytes = PLAIN.to_vec();
            bytes.extend_from_slice(b"GET /health HTTP/1.1\r\nHost: l\r\n\r\n");
            bytes.extend_from_slice(PLAIN);
            bytes.extend_from_slice(b"GET /e HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n");
            for piece in bytes.chunks(step.min(bytes.len())) {
                client.send(piece).unwrap();
            }
            accepted(&client.answer().unwrap());
            assert_eq!(client.answer().unwrap().expect(200)["status"], "healthy");
            accepted(&client.answer().unwrap());
            assert_eq!(client.answer().unwrap().expect(200)["status"], "UP");
            assert!(client.line().unwrap().is_none());
        }
        events(&server, 6);
    }
}

#[test]
fn what_is_sent_before_and_after_a_hand_over_is_stored_in_order() {
    let server = server(true, &[]);
    let threads: Vec<_> = (0..4)
        .map(|connection| {
            let address = server.address;
            std::thread::spawn(move || {
                let mut client = Client::connect(address).unwrap();
                let mut bytes = Vec::new();
                for i in 0..200 {
                    let body = format!("{{\"c\":{connection},\"i\":{i}}}");
                    let head = "POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: ";
                    bytes.extend_from_slice(
                        format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes(),
                    );
                    if i == 100 {
                        bytes.extend_from_slice(b"GET /health HTTP/1.1\r\nHost: l\r\n\r\n");
                    }
                }
                client.send(&bytes).unwrap();
                (0..201).for_each(|_| drop(client.answer().unwrap()));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut next = [0; 4];
    for event in events(&server, 800) {
        let (c, i) = (event["data"]["c"].as_u64().unwrap(), event["data"]["i"].as_u64().unwrap());
        assert_eq!(i, next[c as usize], "of connection {c}");
        next[c as usize] += 1;
    }
}

#[test]
fn http_2_is_handed_over_at_its_first_line() {
    for server in both() {
        let mut stream = connect(&server);
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        for piece in [&preface[..3], &preface[3..], &settings] {
            stream.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut frame = [0; 9];
        stream.read_exact(&mut frame).unwrap();
        assert_eq!(frame[3..5], [4, 0], "a SETTINGS frame");
    }
}

#[test]
fn a_client_that_does_not_read_is_not_read_either_and_loses_nothing() {
    for server in both() {
        let mut stream = connect(&server);
        stream.set_nonblocking(true).unwrap();
        let batch = PLAIN.repeat(100);
        let (mut sent, mut quiet_since) = (0, Instant::now());
        // Until nothing has moved for a while: the server has stopped reading.
        while quiet_since.elapsed() < Duration::from_millis(500) {
            match stream.write(&batch[sent % PLAIN.len()..]) {
                Ok(more) => (sent, quiet_since) = (sent + more, Instant::now()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            assert!(sent < 256 << 20, "the server reads without end");
        }
        // Another client is served as usual.
        accepted(&server.client().call("POST", "/e", &[], b"1").unwrap());
        stream.set_nonblocking(false).unwrap();
        let rest = PLAIN.len() - sent % PLAIN.len();
        let mut writer = stream.try_clone().unwrap();
        let finish = std::thread::spawn(move || {
            writer.write_all(&PLAIN[PLAIN.len() - rest..]).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let answers = until_closed(&mut stream);
        finish.join().unwrap();
        let text = String::from_utf8(answers).unwrap();
        assert_eq!(text.matches("202 Accepted").count(), (sent + rest) / PLAIN.len());
    }
}

#[test]
fn header_bombs_are_refused_and_do_no_harm() {
    let server = server(true, &[]);
    let many: String = (0..65).map(|i| format!("X-{i}: y\r\n")).collect();
    let long = format!("X: {}\r\n", "y".repeat(70_000));
    for headers in [many, long] {
        let mut stream = connect(&server);
        stream.write_all(format!("POST /e HTTP/1.1\r\n{headers}").as_bytes()).unwrap();
        stream.write_all(b"\r\n").unwrap();
        let text = String::from_utf8(until_closed(&mut stream)).unwrap();
        assert!(text.starts_with("HTTP/1.1 431 "), "{text:?}");
    }
    let mut stream = connect(&server);
    stream.write_all(format!("POST /e?{} HTTP/1.1\r\n", "y".repeat(20_000)).as_bytes()).unwrap();
    let text = String::from_utf8(until_closed(&mut stream)).unwrap();
    assert!(text.starts_with("HTTP/1.1 414 "), "{text:?}");
    let mut stream = connect(&server);
    let endless = "X: y\r\n".repeat(1_000);
    let mut sent = stream.write_all(b"POST /e HTTP/1.1\r\n");
    for _ in 0..1_000 {
        sent = sent.and_then(|()| stream.write_all(endless.as_bytes()));
    }
    assert!(sent.is_err() || !until_closed(&mut stream).is_empty());
    accepted(&server.client().call("POST", "/e", &[], b"1").unwrap());
}

fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(limit.maximum.is_none_or(|most| most >= 3_000), "too few descriptors are allowed");
}

#[test]
fn too_many_connections_are_told_so_and_forgotten() {
    for lean in [true, false] {
        let server = server(lean, &["--max-connections=16", "--threads=1"]);
        // The server may not have noticed yet that the readiness check has disconnected.
        std::thread::sleep(Duration::from_millis(200));
        let mut held: Vec<Client> = (0..16).map(|_| server.client()).collect();
        for client in &mut held {
            accepted(&client.call("POST", "/e", &[], b"1").unwrap());
        }
        assert_eq!(server.client().answer().unwrap().status, 503);
        held.pop();
        let deadline = Instant::now() + PATIENCE;
        while server.client().call("POST", "/e", &[], b"1").map_or(0, |a| a.status) != 202 {
            assert!(Instant::now() < deadline, "a place that became free is not given again");
        }
    }
}

#[test]
fn bodies_take_no_more_memory_than_they_may() {
    let server = server(true, &["--body-memory-bytes=300000", "--threads=1"]);
    let head =
        b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Type: text/x\r\nContent-Length: 180000\r\n\r\n";
    let mut first = server.client();
    first.send(&[&head[..], &[b'x'; 150_000]].concat()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let mut second = server.client();
    second.send(&[&head[..], &[b'x'; 180_000], PLAIN].concat()).unwrap();
    let refused = second.answer().unwrap();
    refused.problem(503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    accepted(&second.answer().unwrap());
    first.send(&[b'x'; 30_000]).unwrap();
    accepted(&first.answer().unwrap());
    events(&server, 2);
}

#[test]
fn a_stopping_server_answers_what_was_sent_and_keeps_it() {
    for lean in [true, false] {
        let mut server = server(lean, &[]);
        let address = server.address;
        let mut idle = connect(&server);
        idle.write_all(PLAIN).unwrap();
        idle.read_exact(&mut [0; 100]).unwrap();
        let writers: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut client = Client::connect(address).unwrap();
                    let mut accepted = 0;
                    while let Ok(answer) = client.call("POST", "/e", &[], b"{\"e\":1}") {
                        if answer.status != 202 {
                            assert_eq!(answer.status, 503);
                            break;
                        }
                        accepted += 1;
                    }
                    accepted
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(150));
        let asked = Instant::now();
        assert!(server.terminate().success());
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        let accepted: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        let again = Server::start_in(&server.dir, &[]);
        let head = again.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
        assert!(accepted > 0);
        assert_eq!(head, accepted + 1, "lean: {lean}");
    }
}

#[test]
fn a_request_in_the_middle_has_time_when_the_server_stops() {
    let mut server = server(true, &["--threads=1"]);
    let mut client = server.client();
    client.send(&PLAIN[..30]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let rest = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        client.send(&PLAIN[30..]).unwrap();
        let answer = client.answer().unwrap();
        accepted(&answer);
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.line().unwrap().is_none());
    });
    assert!(server.terminate().success());
    rest.join().unwrap();
    events(&Server::start_in(&server.dir, &[]), 1);
}

#[test]
fn both_ways_to_take_an_event_in_say_the_same() {
    let [lean, general] = both().map(|server| {
        let ask = |target: &str, headers: &[(&str, &str)], body: &[u8]| {
            // A connection each: effects of one answer must not hide another's.
            said(&server.client().call("POST", target, headers, body).unwrap())
        };
        let json = ("Content-Type", "application/json");
        [
            ask("/e", &[], b"1"),
            ask("/v1/e?ack=durable&type=T", &[json], b"{}"),
            ask("/v1/logs/main/e", &[], b"\xff"),
            ask("/e", &[json], b"{"),
            ask("/e", &[], b""),
            ask("/e?colour=red", &[], b"1"),
            ask("/e", &[("Idempotency-Key", "k")], b"1"),
            ask("/e", &[("Content-Encoding", "gzip")], b"1"),
            ask("/v1/logs/other/e", &[], b"1"),
            ask("/v1/logs/other/e?ack=durable&ack=durable", &[], b"1"),
            ask("/v1/logs/system/e?bogus=1", &[], b"1"),
            ask("/v1/logs/a%62/e?type=%zz", &[], b"1"),
            ask("/v1/logs/a%zz/e?bogus=1", &[], b"1"),
            ask("/e", &[], &vec![b' '; (1 << 20) + 2_000]),
        ]
    });
    let statuses = lean.each_ref().map(|said| said.0);
    assert_eq!(statuses, [202, 202, 202, 400, 422, 422, 422, 415, 404, 404, 403, 404, 400, 413]);
    for (lean, general) in lean.iter().zip(&general) {
        assert_eq!(lean, general);
    }
}

#[test]
fn answers_are_counted_for_their_route() {
    for server in both() {
        let mut client = server.client();
        for _ in 0..5 {
            accepted(&client.call("POST", "/e", &[], b"1").unwrap());
        }
        client.call("POST", "/e", &[("Idempotency-Key", "k")], b"1").unwrap().problem(422);
        let metrics = client.get("/metrics").unwrap().text();
        for (status, count) in [(202, 5), (422, 1)] {
            let name = "wellspring_requests_total{route=\"POST /e\",status=";
            let line = format!("{name}\"{status}\"}} {count}");
            assert!(metrics.lines().any(|l| l == line), "{line}\n{metrics}");
        }
    }
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    #[test]
    fn slow_clients_are_ended_while_others_are_served() {
        let timeouts =
            ["--header-timeout-ms=400", "--body-timeout-ms=400", "--idle-timeout-ms=700"];
        let server = server(true, &timeouts);
        let begun: [&[u8]; 4] = [b"", b"POST /e HT", &PLAIN[..40], &PLAIN[..50]];
        let mut slow: Vec<TcpStream> = (0..200).map(|_| connect(&server)).collect();
        for (i, stream) in slow.iter_mut().enumerate() {
            stream.write_all(begun[i % 4]).unwrap();
        }
        let (started, mut client, mut slowest) = (Instant::now(), server.client(), Duration::ZERO);
        while started.elapsed() < Duration::from_millis(1_500) {
            let asked = Instant::now();
            accepted(&client.call("POST", "/e", &[], b"1").unwrap());
            slowest = slowest.max(asked.elapsed());
            // A byte now and then does not extend the timeout.
            if let [_, head, ..] = &mut slow[..] {
                let _ = head.write_all(b"T");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(slowest < Duration::from_millis(500), "{slowest:?}");
        for (i, mut stream) in slow.into_iter().enumerate() {
            let text = String::from_utf8(until_closed(&mut stream)).unwrap();
            let expected = ["", "HTTP/1.1 4", "HTTP/1.1 408 ", "HTTP/1.1 408 "][i % 4];
            assert!(text.starts_with(expected), "{i}: {text:?}");
            assert!(i % 4 != 0 || text.is_empty(), "an idle client is not told anything: {text:?}");
        }
    }

    #[test]
    fn two_thousand_idle_connections_cost_the_others_nothing() {
        raise_descriptor_limit();
        let server = server(true, &["--threads=1"]);
        let idle: Vec<TcpStream> = (0..2_000)
            .map(|i| {
                let mut stream = connect(&server);
                // A third has been served before, a third is in the middle of a request.
                stream.write_all([&b""[..], PLAIN, &PLAIN[..30]][i % 3]).unwrap();
                stream
            })
            .collect();
        let mut client = server.client();
        let mut times: Vec<Duration> = (0..200)
            .map(|_| {
                let asked = Instant::now();
                accepted(&client.call("POST", "/e", &[], b"1").unwrap());
                asked.elapsed()
            })
            .collect();
        times.sort();
        assert!(times[100] < Duration::from_millis(20), "median {:?}", times[100]);
        let metrics = server.client().get("/metrics").unwrap().text();
        let open = metrics.lines().find_map(|line| line.strip_prefix("wellspring_connections "));
        assert_eq!(open, Some("2002"));
        drop(idle);
    }
}
