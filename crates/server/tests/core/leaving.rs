//! Expensive work whose client disconnects, or half-closes and waits. Processor time shows whether
//! work was cancelled or completed: a loaded machine changes how long either takes, but not how
//! much work it is.

use crate::bounded_work::dear_query;
use crate::client::Client;
use crate::conditions::{bodies_of_common_tags, post, query};
use crate::process::processor_ms;
use crate::server::Server;
use crate::tls_certificates::{Ground, TlsClient};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// One long read at a time, without a time limit of its own.
const FLAGS: [&str; 4] = ["--max-long-reads", "1", "--max-fold-ms", "600000"];
/// Processor time in ms of work long enough to distinguish completion from cancellation. A client
/// that may only have half-closed keeps its work for a second and a quarter.
const DEAR_MS: u64 = 6_000;
/// Timeout for any wait, on a slow machine.
const LONG: Duration = Duration::from_secs(300);

/// Appends until an expensive query takes at least [`DEAR_MS`]; returns what it takes.
fn fill(server: &Server, client: &mut Client<impl Read + Write>) -> u64 {
    for _ in 0..20 {
        for body in bodies_of_common_tags(100) {
            client.post("/v1/append", &body).unwrap().expect(200);
        }
        let before_ms = processor_ms(server);
        client.post("/v1/query", &dear_query()).unwrap().expect(200);
        let taken_ms = processor_ms(server) - before_ms;
        if taken_ms >= DEAR_MS {
            return taken_ms;
        }
    }
    panic!("a dear query is not dear");
}

/// Whether another long read is admitted.
fn has_permit(client: &mut Client<impl Read + Write>) -> bool {
    match client.post("/v1/query", &json!({"query": query(1, 60, 60)})).unwrap().status {
        200 => true,
        503 => false,
        other => panic!("{other}"),
    }
}

fn request(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// Sends an expensive query immediately followed by `following`, and waits until the server works
/// on it.
fn begin(server: &Server, client: &mut Client<impl Read + Write>, following: &[u8]) {
    // The previous permit is released a moment after its answer.
    std::thread::sleep(Duration::from_millis(500));
    let before_ms = processor_ms(server);
    client.send(&[&request("/v1/query", &dear_query()), following].concat()).unwrap();
    let begun = Instant::now();
    while processor_ms(server) < before_ms + 100 {
        assert!(begun.elapsed() < LONG, "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Has a client disconnect during its expensive work, and checks through `witness` that this
/// cancels it.
fn ends_the_work(
    how: &str,
    server: &Server,
    whole_ms: u64,
    witness: &mut Client<impl Read + Write>,
    leave: impl FnOnce(),
) {
    assert!(!has_permit(witness), "{how}: the work has the only permit");
    let before_ms = processor_ms(server);
    leave();
    let left = Instant::now();
    while !has_permit(witness) {
        assert!(left.elapsed() < LONG, "{how}: the permit never comes back");
        std::thread::sleep(Duration::from_millis(100));
    }
    let taken_ms = processor_ms(server) - before_ms;
    let after = left.elapsed();
    assert!(taken_ms < whole_ms / 2, "{how}: {taken_ms} of {whole_ms} ms went on, for {after:?}");
}

/// A client over TLS that has read everything that came with the handshake, so that its disconnect
/// is not a reset, and that waits long for answers.
fn over_tls(ground: &Ground, server: &Server) -> TlsClient {
    let mut client = ground.client(server);
    client.get("/health").unwrap().expect(200);
    let stream = client.into_stream();
    stream.sock.set_read_timeout(Some(LONG)).unwrap();
    Client::over(stream)
}

/// Sends a TLS close_notify.
fn say_goodbye(client: TlsClient) -> TlsClient {
    let mut stream = client.into_stream();
    stream.conn.send_close_notify();
    while stream.conn.wants_write() {
        stream.conn.write_tls(&mut stream.sock).unwrap();
    }
    Client::over(stream)
}

#[test]
fn over_tls_a_client_that_leaves_ends_its_dear_work() {
    let ground = Ground::new();
    let server = ground.start(&FLAGS);
    let mut witness = over_tls(&ground, &server);
    let whole_ms = fill(&server, &mut witness);
    let mut client = over_tls(&ground, &server);
    begin(&server, &mut client, b"");
    ends_the_work("goodbye", &server, whole_ms, &mut witness, || drop(say_goodbye(client)));
    let mut client = over_tls(&ground, &server);
    begin(&server, &mut client, b"");
    ends_the_work("reset", &server, whole_ms, &mut witness, || {
        let socket = client.into_stream().sock;
        rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
    });
    // TLS makes explicit what TCP does not: a client that sends close_notify and keeps its
    // connection waits for its answer.
    let mut client = over_tls(&ground, &server);
    begin(&server, &mut client, b"");
    assert_eq!(say_goodbye(client).answer().expect("it is awaited").status, 200);
}

#[test]
fn a_client_that_leaves_ends_its_dear_work_and_what_it_sent_behind_is_not_begun() {
    let server = Server::start_with(&FLAGS);
    let mut witness = server.client().patient();
    let whole_ms = fill(&server, &mut witness);
    let head = witness.get("/v1/head").unwrap().expect(200)["head"].clone();
    let behind = request("/v1/append", &json!({"events": [{"type": "T", "data": 1}]}));
    let mut client = server.client();
    begin(&server, &mut client, &behind);
    ends_the_work("sent at once", &server, whole_ms, &mut witness, || drop(client));
    let mut client = server.client();
    begin(&server, &mut client, b"");
    client.send(&behind).unwrap();
    ends_the_work("sent later", &server, whole_ms, &mut witness, || drop(client));
    assert_eq!(witness.get("/v1/head").unwrap().expect(200)["head"], head);
}

#[test]
fn a_client_that_shuts_its_side_and_waits_gets_its_answer() {
    let server = Server::start_with(&FLAGS);
    let mut client = server.client().patient();
    let whole_ms = fill(&server, &mut client);
    // Long work that completes within the second.
    let mut body = dear_query();
    let items = usize::try_from(256 * 60 / whole_ms).unwrap().max(1);
    body["query"]["items"].as_array_mut().unwrap().truncate(items);
    let before_ms = processor_ms(&server);
    post(&mut client, "/v1/query", &body).expect(200);
    let taken_ms = processor_ms(&server) - before_ms;
    assert!(taken_ms >= 20, "{taken_ms} ms");
    let status = || -> std::io::Result<u16> {
        std::thread::sleep(Duration::from_millis(500));
        let mut stream = TcpStream::connect(server.address)?;
        stream.write_all(&request("/v1/query", &body))?;
        stream.shutdown(Shutdown::Write)?;
        Ok(Client::from(stream).answer()?.status)
    };
    // A loaded machine may need more than a second, but not each time.
    let answers: Vec<_> = std::iter::repeat_with(status)
        .take(60)
        .map_while(|status| match status {
            Ok(200) => None,
            other => Some(other),
        })
        .collect();
    assert!(answers.len() < 60, "{answers:?}");
    // Once an answer has begun, its client has all the time it needs to read it.
    let head = client.get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream
        .write_all(b"GET /v1/events HTTP/1.1\r\nHost: l\r\nAccept: application/x-ndjson\r\n\r\n")
        .unwrap();
    stream.peek(&mut [0]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(2_500));
    let lines = Client::from(stream).patient().answer().expect("all of it").text();
    assert_eq!(lines.lines().count() as u64, head);
}
