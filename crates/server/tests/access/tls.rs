//! TLS of the server, with a client that shares only the TLS library with it.

use crate::client::Client;
use crate::server::Server;
use crate::tls_certificates::{Authority, Ground, config, of_versions, over_tls, text};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, Patience};

fn event(data: impl Into<Value>) -> Value {
    json!({"events": [{"type": "T", "tags": [], "data": data.into()}]})
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Everything until the server closes, or what was read before a reset.
fn until_closed(stream: &mut impl io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// A value of `/metrics`.
fn figure(client: &mut Client<impl io::Read + io::Write>, name: &str) -> u64 {
    let page = client.get("/metrics").unwrap().text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

/// Waits until `is_so`.
fn soon(mut is_so: impl FnMut() -> bool) {
    let mut patience = Patience::new();
    while !is_so() {
        patience.pause("it never came to that");
    }
}

/// Runs `serve`, which must refuse to start; returns its error output.
fn refused(flags: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_wellspring"))
        .args(["serve", "--data", text(dir.path())])
        .env("WELLSPRING_LISTEN", "127.0.0.1:0")
        .args(flags)
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn http1_works_through_both_versions_of_tls() {
    let ground = Ground::new();
    let server = ground.start(&[]);
    for versions in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = of_versions(&ground.authority, None, &[versions]);
        let mut client = over_tls(server.address, config).unwrap();
        client.post("/v1/append", &event(1)).unwrap().expect(200);
        client.post("/e", &json!({"a": 1})).unwrap().expect(202);
        let made = client.post("/api/urls", &json!({"url": "http://example.com"})).unwrap();
        let short = made.expect(201)["short_url"].as_str().unwrap().to_owned();
        assert!(short.starts_with("https://test/"), "{short}");
        let code = short.rsplit('/').next().unwrap();
        assert_eq!(client.get(&format!("/{code}")).unwrap().status, 302);
        let own = json!({"url": format!("https://localhost:{}/x", server.address.port())});
        client.post("/api/urls", &own).unwrap().problem(400);
        // Many TLS records in both directions.
        let large = "x".repeat(1_000_000);
        client.post("/v1/append", &event(large.clone())).unwrap().expect(200);
        let back = client.get("/v1/events?order=desc&limit=1").unwrap().expect(200);
        assert_eq!(back["events"][0]["data"], large);
    }
    let mut client = ground.client(&server);
    assert!(
        figure(&mut client, "wellspring_tls_certificate_expiry_timestamp_seconds") > 1_000_000_000
    );
}

#[test]
fn a_subscription_is_live_through_tls() {
    let ground = Ground::new();
    let server = ground.start(&["--heartbeat-ms=200"]);
    let mut reader = ground.client(&server);
    reader
        .send(b"GET /v1/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
        .unwrap();
    assert_eq!(reader.head().unwrap().0, 200);
    let mut writer = ground.client(&server);
    for n in 0..20 {
        let marker = format!("mark-{n}-");
        writer.post("/v1/append", &event(marker.clone())).unwrap().expect(200);
        while !reader.line().unwrap().expect("a live stream").contains(&marker) {}
    }
}

#[test]
fn http2_is_chosen_by_alpn_and_serves_many_streams() {
    let ground = Ground::new();
    let server = ground.start(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config = config(&ground.authority, None);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, socket).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for n in 0..50 {
            let request = http::Request::post("https://localhost/v1/append")
                .header("content-type", "application/json")
                .body(())
                .unwrap();
            sender = sender.ready().await.unwrap();
            let (answer, mut body) = sender.send_request(request, false).unwrap();
            body.send_data(event(n).to_string().into(), true).unwrap();
            answers.push(answer);
        }
        for answer in answers {
            assert_eq!(answer.await.unwrap().status(), 200);
        }
    });
    assert_eq!(ground.client(&server).get("/v1/head").unwrap().expect(200)["head"], 50);
}

#[test]
fn a_client_without_tls_is_told_so_and_delays_no_other() {
    let ground = Ground::new();
    let server = ground.start(&[]);
    let mut client = ground.client(&server);
    // That of the request that found the server ready is counted after its answer.
    soon(|| figure(&mut client, "wellspring_tls_handshakes_failed_total") > 0);
    let before = figure(&mut client, "wellspring_tls_handshakes_failed_total");
    let answer = server.client().post("/v1/append", &event("x".repeat(200_000))).unwrap();
    assert!(answer.problem(400)["detail"].as_str().unwrap().contains("https://"));
    assert_eq!(answer.header("connection"), Some("close"));
    // Invalid bytes, invalid bytes that begin like TLS, a truncated hello, an alert, and nothing.
    let hello = [&[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3][..], &[7; 50]].concat();
    let rubbish: [&[u8]; 5] = [
        b"\0\xff\xfe",
        b"\x16\x03\x01\xff\xff rubbish",
        &hello,
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"",
    ];
    for bytes in rubbish {
        let mut stream = connect(&server);
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let said = until_closed(&mut stream);
        let expected: &[u8] = match bytes.first() {
            None => b"",
            Some(0x16) if bytes == hello => b"",
            Some(0x16) => b"\x15",
            Some(_) => b"HTTP/1.1 400 ",
        };
        assert!(said.starts_with(expected), "{bytes:?}: {said:?}");
        assert!(!expected.is_empty() || said.is_empty(), "{bytes:?}: {said:?}");
    }
    // The silent one does not count as a failure.
    soon(|| figure(&mut client, "wellspring_tls_handshakes_failed_total") == before + 5);
    client.post("/v1/append", &event(1)).unwrap().expect(200);
}

#[test]
fn a_handshake_that_does_not_end_is_a_connection_and_is_cut() {
    let ground = Ground::new();
    let timeouts = ["--header-timeout-ms=700", "--idle-timeout-ms=900", "--max-connections=16"];
    let server = ground.start(&timeouts);
    let started = Instant::now();
    let mut slow: Vec<TcpStream> = (0..16).map(|_| connect(&server)).collect();
    for (n, stream) in slow.iter_mut().enumerate() {
        stream.write_all(&[0x16, 3, 1, 0, 200][..n % 6]).unwrap();
    }
    // They occupy all slots; a further connection is closed immediately.
    soon(|| until_closed(&mut connect(&server)).is_empty());
    for mut stream in slow {
        assert_eq!(until_closed(&mut stream), b"");
    }
    assert!(started.elapsed() > Duration::from_millis(500), "{:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    let mut client = ground.client(&server);
    assert!(figure(&mut client, "wellspring_connections_refused_total") > 0);
    // Slow heads time out as without TLS, and idle connections end with close_notify.
    let mut head = ground.client(&server);
    head.send(b"GET /health HT").unwrap();
    assert_eq!(until_closed(&mut head.into_stream()), b"");
    let mut idle = ground.client(&server);
    idle.get("/health").unwrap().expect(200);
    let mut idle = idle.into_stream();
    assert_eq!(idle.read(&mut [0; 10]).expect("a goodbye of TLS"), 0);
}

#[test]
fn a_client_that_does_not_read_is_cut_through_tls() {
    let ground = Ground::new();
    let server = ground.start(&["--write-timeout-ms=600"]);
    let mut client = ground.client(&server);
    for _ in 0..24 {
        client.post("/v1/append", &event("y".repeat(1_000_000))).unwrap().expect(200);
    }
    let mut lazy = ground.client(&server);
    lazy.send(b"GET /v1/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    assert_eq!(lazy.head().unwrap().0, 200);
    soon(|| figure(&mut client, "wellspring_subscribers") == 1);
    soon(|| figure(&mut client, "wellspring_subscribers") == 0);
    soon(|| figure(&mut client, "wellspring_connections") == 1);
    drop(lazy);
}

#[test]
fn clients_certificates_are_asked_for_and_judged() {
    let ground = Ground::new();
    let dir = ground.dir.path();
    let (friends, strangers) = (Authority::new(dir, "friends"), Authority::new(dir, "strangers"));
    let (friend, stranger) = (friends.issue(dir, "friend"), strangers.issue(dir, "stranger"));
    for auth in ["required", "optional"] {
        let flags = ["--tls-client-ca", text(&friends.file), "--tls-client-auth", auth];
        let server = ground.start(if auth == "required" { &flags[..2] } else { &flags });
        for versions in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let ask = |shown| {
                let config = of_versions(&ground.authority, shown, &[versions]);
                // With TLS 1.3 the client's handshake completes before its certificate is checked.
                over_tls(server.address, config)?.get("/health")
            };
            assert_eq!(ask(Some(&friend)).unwrap().status, 200);
            let error = ask(Some(&stranger)).expect_err("nobody knows it").to_string();
            assert!(error.contains("UnknownCA") || error.contains("DecryptError"), "{error}");
            match auth {
                "optional" => assert_eq!(ask(None).unwrap().status, 200),
                _ => drop(ask(None).expect_err("one is required")),
            }
        }
    }
}

#[test]
fn new_files_are_taken_while_old_connections_stay() {
    let ground = Ground::new();
    let dir = ground.dir.path();
    let server = ground.start(&[]);
    let mut old = ground.client(&server);
    old.get("/health").unwrap().expect(200);
    let next = Authority::new(dir, "next");
    let asks = |authority: &Authority| {
        over_tls(server.address, config(authority, None))
            .is_ok_and(|mut client| client.get("/health").is_ok_and(|answer| answer.status == 200))
    };
    assert!(asks(&ground.authority) && !asks(&next));
    next.issue(dir, "next-server").replaces(&ground.pair);
    // Found without a signal.
    soon(|| asks(&next));
    assert!(!asks(&ground.authority));
    old.post("/v1/append", &event(1)).unwrap().expect(200);
    // Invalid ones are rejected, however often a reload is requested.
    let hang_up = || {
        let pid = server.pid().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    };
    std::fs::write(&ground.pair.certificate, "-----BEGIN CERTIFICATE-----\nbroken").unwrap();
    for _ in 0..3 {
        hang_up();
        std::thread::sleep(Duration::from_millis(100));
        assert!(asks(&next));
    }
    ground.authority.issue(dir, "again").replaces(&ground.pair);
    let told = Instant::now();
    hang_up();
    soon(|| asks(&ground.authority));
    assert!(told.elapsed() < Duration::from_secs(15));
    old.post("/v1/append", &event(2)).unwrap().expect(200);
}

#[test]
fn sigterm_lets_a_request_through_tls_end() {
    let ground = Ground::new();
    let mut server = ground.start(&[]);
    let body = event(1).to_string();
    let head =
        format!("POST /v1/append HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut busy = ground.client(&server);
    busy.send(head.as_bytes()).unwrap();
    busy.send(&body.as_bytes()[..5]).unwrap();
    let mut idle = ground.client(&server);
    idle.get("/health").unwrap().expect(200);
    // A handshake that never ends delays no other client.
    let mut silent = connect(&server);
    silent.write_all(&[0x16]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let started = Instant::now();
    std::thread::scope(|scope| {
        let stopped = scope.spawn(|| server.terminate());
        assert_eq!(idle.into_stream().read(&mut [0; 10]).expect("a goodbye of TLS"), 0);
        busy.send(&body.as_bytes()[5..]).unwrap();
        assert_eq!(busy.answer().unwrap().status, 200);
        assert_eq!(busy.into_stream().read(&mut [0; 10]).expect("a goodbye of TLS"), 0);
        assert!(stopped.join().unwrap().success());
    });
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[test]
fn what_cannot_be_served_is_refused_at_the_start() {
    let ground = Ground::new();
    let other = ground.authority.issue(ground.dir.path(), "other");
    let (certificate, key) = (text(&ground.pair.certificate), text(&ground.pair.key));
    let unlike = refused(&["--tls-cert", certificate, "--tls-key", text(&other.key)]);
    assert!(unlike.contains("other.key does not belong to the certificate"), "{unlike}");
    assert!(refused(&["--tls-cert", certificate]).contains("--tls-key"));
    let clients = [&ground.pair.flags()[..], &["--tls-client-ca", key]].concat();
    assert!(refused(&clients).contains("holds no certificate"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&ground.pair.key, mode).unwrap();
    let open = refused(&ground.pair.flags());
    assert!(open.contains("chmod 600") && open.contains("server.key"), "{open}");
    let public = refused(&["--listen", "0.0.0.0:0"]);
    assert!(public.contains("--tls-cert") && public.contains("--insecure"), "{public}");
}
