//! Abuse by a few hundred connections. Clients that hold connections, send slowly or send bodies
//! that are too large or too deep are cut off or refused; memory stays within its bound and other
//! clients are served. `bench/run-abuse.sh` does the same with thousands of connections and
//! measures it.

use crate::account::metric;
use crate::client::Client;
use crate::server::Server;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, Patience};

/// Memory in MiB by which the server of a test may grow.
const BOUND_MIB: u64 = 96;

fn resident_mib(server: &Server) -> u64 {
    let text = server.client().get("/metrics").expect("an answer").text();
    metric(&text, "process_resident_memory_bytes") >> 20
}

fn refused(server: &Server, reason: &str) -> u64 {
    let text = server.client().get("/metrics").expect("an answer").text();
    metric(&text, &format!("wellspring_refused_total{{reason=\"{reason}\"}}"))
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Everything received until the server closes; a reset counts as closing.
fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server did not close: {error}"),
    }
    all
}

/// An honest client is served by both stacks.
#[track_caller]
fn is_served(server: &Server) {
    let mut client = server.client();
    let begun = Instant::now();
    assert_eq!(client.post("/e", &json!(1)).unwrap().status, 202);
    let event = json!({"events": [{"type": "T", "tags": [], "data": 1}]});
    client.post("/v1/append", &event).unwrap().expect(200);
    client.get("/v1/head").unwrap().expect(200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn idle_connections_cost_little_and_are_ended() {
    let server = Server::start_with(&["--idle-timeout-ms", "3000"]);
    let before = resident_mib(&server);
    let mut held: Vec<Client> = (0..400).map(|_| server.client()).collect();
    // Every other one moves to the general stack and stays open.
    for client in held.iter_mut().step_by(2) {
        client.get("/v1/head").unwrap().expect(200);
    }
    is_served(&server);
    let grown = resident_mib(&server).saturating_sub(before);
    // 400 × 32 KiB, plus what an ordinary request needs.
    assert!(grown <= 13 + 16, "{grown} MiB for 400 connections");
    let mut patience = Patience::new();
    let open =
        || metric(&server.client().get("/metrics").unwrap().text(), "wellspring_connections");
    while open() > 1 {
        patience.pause(format_args!("{} are still open", open()));
    }
}

#[test]
fn slow_heads_and_slow_bodies_are_cut_on_either_stack() {
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let server =
            Server::start_with(&[lean, "--header-timeout-ms", "1000", "--body-timeout-ms", "1500"]);
        let begins: [&[u8]; 4] = [
            b"POST /e HTTP/1.1\r\nHost: t\r\nX-Slow: ",
            b"GET /v1/head HTTP/1.1\r\nHost: t\r\nX-Slow: ",
            b"POST /e HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n[",
            b"POST /v1/append HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n[",
        ];
        let mut slow: Vec<TcpStream> = Vec::new();
        for begin in begins {
            for _ in 0..40 {
                let mut stream = connect(&server);
                stream.write_all(begin).unwrap();
                slow.push(stream);
            }
        }
        let (begun, mut cut) = (Instant::now(), vec![false; slow.len()]);
        while begun.elapsed() < Duration::from_secs(15) && cut.contains(&false) {
            for (stream, cut) in slow.iter_mut().zip(&mut cut) {
                // A byte now and then does not keep a connection alive.
                *cut |= stream.write_all(b"y").is_err();
            }
            is_served(&server);
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(!cut.contains(&false), "{lean}: {cut:?}");
        for stream in &mut slow {
            let told = String::from_utf8_lossy(&until_closed(stream)).into_owned();
            assert!(told.is_empty() || told.starts_with("HTTP/1.1 408 "), "{told}");
        }
        // The rest of a body after its answer is not taken for a head either.
        assert!(refused(&server, "slow_heads") >= 80, "{lean}");
        assert_eq!(refused(&server, "slow_bodies"), 80, "{lean}");
    }
}

#[test]
fn heads_beyond_the_limit_and_deep_json_are_refused_and_cost_no_memory() {
    let server = Server::start();
    is_served(&server);
    let before = resident_mib(&server);
    let fields: String = (0..60).map(|n| format!("X-{n}: {}\r\n", "y".repeat(1_400))).collect();
    for line in ["GET /v1/head HTTP/1.1", "POST /e HTTP/1.1", "GET /Yci HTTP/1.1"] {
        for _ in 0..60 {
            let mut stream = connect(&server);
            let head = format!("{line}\r\nHost: t\r\n{fields}\r\n");
            let sent = stream.write_all(head.as_bytes());
            let told = String::from_utf8_lossy(&until_closed(&mut stream)).into_owned();
            assert!(told.starts_with("HTTP/1.1 431 ") || sent.is_err(), "{line}: {told:?}");
        }
    }
    let deep = "[".repeat(1_000_000);
    let in_event = format!("{{\"events\":[{{\"type\":\"T\",\"tags\":[],\"data\":{deep}");
    let json = [("Content-Type", "application/json")];
    for path in [
        "/e",
        "/v1/append",
        "/v1/project",
        "/v1/query",
        "/api/urls",
        "/append",
        "/read",
        "/project",
    ] {
        for body in [&deep, &in_event] {
            let mut client = server.client();
            let answer = client.call("POST", path, &json, body.as_bytes()).expect("an answer");
            assert!([200, 400, 413, 422].contains(&answer.status), "{path}: {}", answer.status);
            // The dialect of /append answers 200 in all cases.
            assert!(answer.status != 200 || path == "/append", "{path}");
        }
    }
    is_served(&server);
    let grown = resident_mib(&server).saturating_sub(before);
    assert!(grown <= BOUND_MIB, "{grown} MiB");
}

#[test]
fn unread_answers_stay_within_the_memory_of_bodies() {
    let server = Server::start_with(&["--body-memory-bytes", "67108864", "--max-long-reads", "2"]);
    let mut client = server.client();
    let event = json!({"type": "T", "tags": [], "data": "x".repeat(50_000)});
    let events = json!({ "events": vec![event; 120] });
    for _ in 0..2 {
        client.post("/v1/append", &events).unwrap().expect(200);
    }
    let before = resident_mib(&server);
    // A page is 12 MB; a socket buffers part of it, the server the rest.
    let mut greedy = Vec::new();
    let mut refused_at = None;
    while refused_at.is_none() && greedy.len() < 60 {
        let mut stream = connect(&server);
        stream.write_all(b"GET /v1/events?limit=1000 HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        if &status == b"HTTP/1.1 503" {
            refused_at = Some(greedy.len());
        } else {
            assert_eq!(&status, b"HTTP/1.1 200");
            greedy.push(stream);
        }
    }
    let held = refused_at.expect("nothing was refused");
    assert!((4..=5).contains(&held), "{held} answers found room");
    assert!(refused(&server, "body_memory") >= 1);
    std::thread::sleep(Duration::from_millis(300));
    let grown = resident_mib(&server).saturating_sub(before);
    // 64 MiB of answers, two pages in progress, and what the allocator retains.
    assert!(grown <= 64 + BOUND_MIB, "{grown} MiB for {held} answers");
    let metrics = client.get("/metrics").unwrap().text();
    assert!(metric(&metrics, "wellspring_body_bytes") <= 64 << 20);
    is_served(&server);
    // A client that reads gets everything, and the memory is released.
    for mut stream in greedy {
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = until_closed(&mut stream);
        assert!(answer.len() > 12_000_000 && answer.ends_with(b"}"), "{}", answer.len());
    }
    let mut patience = Patience::new();
    loop {
        let metrics = client.get("/metrics").unwrap().text();
        if metric(&metrics, "wellspring_body_bytes") == 0 {
            break;
        }
        patience.pause("memory was not given back");
    }
}
