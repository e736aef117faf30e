//! Ingest with accounts: the lean loop admits authorized clients, and no client a moment longer.

use crate::client::{Answer, Client};
use crate::closed::{Closed, PASSWORD, ask};
use crate::server::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wellspring_patience::until;

fn ingest(client: &mut Client, bearer: &str, path: &str) -> Answer {
    ask(client, bearer, "POST", path, &json!({"n": 1}))
}

/// The number of stored events, once there are as many as were accepted.
fn events(closed: &Closed, log: &str, accepted: u64) -> u64 {
    let path = format!("/v1/logs/{log}/head");
    let stored = || closed.get(&closed.root, &path).expect(200)["head"].as_u64().unwrap();
    until(format_args!("{accepted} events of {log} are stored"), || stored() >= accepted);
    stored()
}

#[test]
fn a_revoked_key_takes_nothing_in_from_the_next_request_on() {
    for lean in ["--lean-loop=true", "--lean-loop=false"] {
        let closed = Closed::start_with(&[lean]);
        let (id, secret) = closed.key(&closed.root, &json!({"role": "writer"}));
        let mut client = closed.client();
        for _ in 0..100 {
            ingest(&mut client, &secret, "/e").expect(202);
        }
        let path = format!("/v1/keys/{id}");
        assert_eq!(closed.ask(&closed.root, "DELETE", &path, &Value::Null).status, 204);
        for _ in 0..10 {
            ingest(&mut client, &secret, "/e").problem(401);
        }
        // The connection stays usable for authorized clients.
        ingest(&mut client, &closed.root, "/e").expect(202);
        assert_eq!(events(&closed, "main", 101), 101, "{lean}");
    }
}

#[test]
fn appends_are_admitted_like_events_and_no_request_longer() {
    let closed = Closed::start();
    assert_eq!(closed.ask(&closed.root, "PUT", "/v1/logs/orders", &Value::Null).status, 201);
    let (id, writer) = closed.key(&closed.root, &json!({"role": "writer", "log": "orders"}));
    let (_, reader) = closed.key(&closed.root, &json!({"role": "reader"}));
    let body = json!({"events": [{"type": "T", "data": 1}]});
    let append = |client: &mut Client, bearer: &str, log: &str| {
        ask(client, bearer, "POST", &format!("/v1/logs/{log}/append"), &body)
    };
    let mut client = closed.client();
    for _ in 0..10 {
        append(&mut client, &writer, "orders").expect(200);
    }
    for (bearer, log) in [(&writer, "main"), (&writer, "absent"), (&reader, "orders")] {
        let mut client = closed.client();
        append(&mut client, &closed.root, "orders").expect(200);
        append(&mut client, bearer, log).problem(403);
    }
    append(&mut closed.client(), &closed.root, "system").problem(403);
    assert_eq!(
        closed.ask(&closed.root, "DELETE", &format!("/v1/keys/{id}"), &Value::Null).status,
        204
    );
    append(&mut client, &writer, "orders").problem(401);
    assert_eq!(events(&closed, "orders", 13), 13);
    assert_eq!(events(&closed, "main", 0), 0);
}

#[test]
fn a_grant_for_one_log_is_for_no_other() {
    let closed = Closed::start();
    for log in ["orders", "clicks"] {
        let path = format!("/v1/logs/{log}");
        assert_eq!(closed.ask(&closed.root, "PUT", &path, &Value::Null).status, 201);
    }
    let (_, writer) = closed.key(&closed.root, &json!({"role": "writer", "log": "orders"}));
    let (_, reader) = closed.key(&closed.root, &json!({"role": "reader"}));
    let mut client = closed.client();
    for _ in 0..3 {
        // Alternating on one connection: a head remembered for one log grants no access to another.
        ingest(&mut client, &writer, "/v1/logs/orders/e").expect(202);
        ingest(&mut client, &writer, "/v1/logs/clicks/e").problem(403);
        ingest(&mut client, &writer, "/e").problem(403);
        ingest(&mut client, &writer, "/v1/logs/absent/e").problem(403);
        ingest(&mut client, &reader, "/v1/logs/orders/e").problem(403);
        ingest(&mut client, &closed.root, "/v1/logs/system/e").problem(403);
        client = closed.client();
    }
    assert_eq!(events(&closed, "orders", 3), 3);
    assert_eq!(events(&closed, "clicks", 0) + events(&closed, "main", 0), 0);
}

#[test]
fn many_heads_in_one_packet_are_each_asked_for_their_own_credentials() {
    let closed = Closed::start();
    let (_, good) = closed.key(&closed.root, &json!({"role": "writer"}));
    let bad = format!("{}x", &good[..good.len() - 1]);
    let request = |key: &str| {
        format!("POST /e HTTP/1.1\r\nHost: l\r\nX-API-Key: {key}\r\nContent-Length: 2\r\n\r\n{{}}")
    };
    let none = "POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 2\r\n\r\n{}".to_owned();
    let all = [request(&good), request(&good), request(&bad), request(&good), none, request(&good)]
        .concat();
    let mut client = closed.client();
    client.send(all.as_bytes()).unwrap();
    let told: Vec<u16> = (0..6).map(|_| client.answer().unwrap().status).collect();
    assert_eq!(told, [202, 202, 401, 202, 401, 202]);
    assert_eq!(events(&closed, "main", 4), 4);
}

#[test]
fn accounts_made_while_connections_are_open_close_them_to_strangers() {
    let server = Server::start();
    let mut stranger = server.client();
    let event = |client: &mut Client| client.call("POST", "/e", &[], b"{}").unwrap();
    for _ in 0..10 {
        event(&mut stranger).expect(202);
    }
    let root = json!({"name": "root", "password": PASSWORD, "roles": ["admin"]});
    server.client().post("/v1/accounts", &root).unwrap().expect(201);
    for _ in 0..10 {
        event(&mut stranger).problem(401);
    }
    // Redirects stay public, on the same connection.
    assert_eq!(stranger.get("/Unknown").unwrap().status, 404);
}

#[test]
fn a_token_ends_in_the_middle_of_a_connection() {
    let closed = Closed::start();
    let log_in = json!({"username": "root", "password": PASSWORD, "expires_in_s": 1});
    let told = closed.client().post("/auth/token", &log_in).unwrap().expect(200);
    let token = told["access_token"].as_str().unwrap();
    let (start, mut client) = (Instant::now(), closed.client());
    // Clocks of others may differ by 30 s.
    let statuses: Vec<u16> = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(500));
        ingest(&mut client, token, "/e").status
    })
    .take_while(|&status| status == 202 && start.elapsed() < Duration::from_secs(60))
    .collect();
    let (lived, said) = (start.elapsed(), statuses.len());
    assert!(
        (Duration::from_secs(29)..Duration::from_secs(34)).contains(&lived),
        "{lived:?}, {said}"
    );
    ingest(&mut client, token, "/e").problem(401);
}
