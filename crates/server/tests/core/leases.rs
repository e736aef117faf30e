//! Leases whose clients leave.

use crate::server::Server;
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// A waiting request outlives its client by up to a second. What it was granted in that second
/// would keep all others out for its whole time.
#[test]
fn a_waiter_that_has_left_is_granted_nothing() {
    let server = Server::start();
    let mut client = server.client();
    let asked = json!({"ttl_ms": 60_000});
    let held = client.post("/v1/leases/mail", &asked).unwrap().expect(201);
    let mut leaves = TcpStream::connect(server.address).unwrap();
    let body = r#"{"ttl_ms":60000,"wait_ms":60000}"#;
    let head =
        "POST /v1/leases/mail HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    write!(leaves, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    // It is the first in line.
    std::thread::sleep(Duration::from_millis(300));
    let mut stays = server.client();
    let next = std::thread::spawn(move || {
        let asked = json!({"ttl_ms": 60_000, "wait_ms": 30_000});
        stays.post("/v1/leases/mail", &asked).unwrap()
    });
    std::thread::sleep(Duration::from_millis(200));
    drop(leaves);
    std::thread::sleep(Duration::from_millis(300));
    let release = format!("/v1/leases/mail?token={}", held["token"]);
    client.call("DELETE", &release, &[], b"").unwrap().expect(200);
    next.join().unwrap().expect(201);
}
