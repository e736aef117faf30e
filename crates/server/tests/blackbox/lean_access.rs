//! Ingest with accounts: the lean loop lets in who may, and nobody a moment longer.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ADMIN: &str = "correct horse";

/// A server with an admin, and a token of his.
fn closed(flags: &[&str]) -> (Server, String, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let password = format!("WELLSPRING_ADMIN_PASSWORD={ADMIN}");
    let server = Server::start_under(&["env", &password], dir.path(), flags);
    let log_in = json!({"username": "admin", "password": ADMIN});
    let told = server.client().post("/auth/token", &log_in).unwrap().expect(200);
    (server, told["access_token"].as_str().unwrap().to_owned(), dir)
}

fn call(client: &mut Client, line: &str, token: &str, body: &Value) -> Answer {
    let (method, path) = line.split_once(' ').unwrap();
    let authorization = format!("Bearer {token}");
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.call(method, path, &headers, body.as_bytes()).unwrap()
}

/// The id and the secret of a new key of the admin.
fn key(server: &Server, token: &str, grant: Value) -> (String, String) {
    let made = call(&mut server.client(), "POST /v1/keys", token, &grant).expect(201);
    let text = |member: &str| made[member].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

fn events(server: &Server, token: &str, log: &str) -> u64 {
    // What was accepted is stored within milliseconds.
    std::thread::sleep(Duration::from_millis(300));
    let path = format!("GET /v1/logs/{log}/head");
    call(&mut server.client(), &path, token, &Value::Null).expect(200)["head"].as_u64().unwrap()
}

#[test]
fn a_revoked_key_takes_nothing_in_from_the_next_request_on() {
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let (server, admin, _dir) = closed(&[lean]);
        let (id, secret) = key(&server, &admin, json!({"role": "writer"}));
        let mut client = server.client();
        for n in 0..100 {
            call(&mut client, "POST /e", &secret, &json!({ "n": n })).expect(202);
        }
        let deleted =
            call(&mut server.client(), &format!("DELETE /v1/keys/{id}"), &admin, &Value::Null);
        assert!(deleted.status < 300, "{}", deleted.text());
        for n in 0..10 {
            call(&mut client, "POST /e", &secret, &json!({ "n": n })).problem(401);
        }
        // The connection goes on, for who may.
        call(&mut client, "POST /e", &admin, &json!({})).expect(202);
        assert_eq!(events(&server, &admin, "main"), 101, "{lean}");
    }
}

#[test]
fn a_grant_for_one_log_is_for_no_other() {
    let (server, admin, _dir) = closed(&[]);
    for log in ["orders", "clicks"] {
        let made = call(&mut server.client(), &format!("PUT /v1/logs/{log}"), &admin, &Value::Null);
        assert!(made.status < 300);
    }
    let (_, writer) = key(&server, &admin, json!({"role": "writer", "log": "orders"}));
    let (_, reader) = key(&server, &admin, json!({"role": "reader"}));
    let mut client = server.client();
    for _ in 0..3 {
        // On one connection, in turns: a head remembered for one log lets nobody into another.
        call(&mut client, "POST /v1/logs/orders/e", &writer, &json!({})).expect(202);
        call(&mut client, "POST /v1/logs/clicks/e", &writer, &json!({})).problem(403);
        call(&mut client, "POST /e", &writer, &json!({})).problem(403);
        call(&mut client, "POST /v1/logs/absent/e", &writer, &json!({})).problem(403);
        call(&mut client, "POST /v1/logs/orders/e", &reader, &json!({})).problem(403);
        call(&mut client, "POST /v1/logs/system/e", &admin, &json!({})).problem(403);
        client = server.client();
    }
    assert_eq!(events(&server, &admin, "orders"), 3);
    assert_eq!(events(&server, &admin, "clicks") + events(&server, &admin, "main"), 0);
}

#[test]
fn many_heads_in_one_packet_are_each_asked_for_their_own_credentials() {
    let (server, admin, _dir) = closed(&[]);
    let (_, good) = key(&server, &admin, json!({"role": "writer"}));
    let bad = format!("{}x", &good[..good.len() - 1]);
    let request = |key: &str| {
        format!("POST /e HTTP/1.1\r\nHost: l\r\nX-API-Key: {key}\r\nContent-Length: 2\r\n\r\n{{}}")
    };
    let none = "POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 2\r\n\r\n{}".to_owned();
    let all = [request(&good), request(&good), request(&bad), request(&good), none, request(&good)]
        .concat();
    let mut client = server.client();
    client.send(all.as_bytes()).unwrap();
    let told: Vec<u16> = (0..6).map(|_| client.answer().unwrap().status).collect();
    assert_eq!(told, [202, 202, 401, 202, 401, 202]);
    assert_eq!(events(&server, &admin, "main"), 4);
}

#[test]
fn accounts_made_while_connections_are_open_close_them_to_strangers() {
    let server = Server::start();
    let mut stranger = server.client();
    let event = |client: &mut Client| client.call("POST", "/e", &[], b"{}").unwrap();
    for _ in 0..10 {
        event(&mut stranger).expect(202);
    }
    let root = json!({"name": "root", "password": ADMIN, "roles": ["admin"]});
    server.client().post("/v1/accounts", &root).unwrap().expect(201);
    for _ in 0..10 {
        event(&mut stranger).problem(401);
    }
    // Redirects stay public, on the same connection.
    assert_eq!(stranger.get("/Unknown").unwrap().status, 404);
}

#[test]
fn a_token_ends_in_the_middle_of_a_connection() {
    let (server, _, _dir) = closed(&[]);
    let log_in = json!({"username": "admin", "password": ADMIN, "expires_in_s": 1});
    let told = server.client().post("/auth/token", &log_in).unwrap().expect(200);
    let token = told["access_token"].as_str().unwrap();
    let (start, mut client) = (Instant::now(), server.client());
    // The clocks of others are allowed 30 s.
    let statuses: Vec<u16> = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(500));
        call(&mut client, "POST /e", token, &json!({})).status
    })
    .take_while(|&status| status == 202 && start.elapsed() < Duration::from_secs(60))
    .collect();
    let (lived, said) = (start.elapsed(), statuses.len());
    assert!(
        (Duration::from_secs(29)..Duration::from_secs(34)).contains(&lived),
        "{lived:?}, {said}"
    );
    call(&mut client, "POST /e", token, &json!({})).problem(401);
}
