//! The sequence of requests that the original's client sends: a login, then thousands of small
//! CREATEs, over HTTP/1.1 and HTTP/2; and who may write.

use crate::closed::{Closed, PASSWORD};
use crate::graph_client::*;
use base64::Engine as _;
use bytes::Bytes;
use h2::client::SendRequest;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const CREATE: &str = "CREATE (n:TestNode {id: $id, timestamp: $timestamp}) RETURN n.id as id";
const CLIENTS: usize = 99;

/// Nanoseconds that no float represents exactly, distinct for each id.
fn timestamp(id: u64) -> u64 {
    1_795_224_656_517_796_091 + id * 1_000_003
}

fn create(id: u64) -> Value {
    one(CREATE, json!({"id": id, "timestamp": timestamp(id)}))
}

/// Asserts that a CREATE was answered as Neo4j would.
#[track_caller]
fn created(content: &Value, id: u64) {
    let result = json!({"columns": ["id"], "data": [{"row": [id], "meta": [null]}]});
    assert_eq!(content["results"], json!([result]));
    assert_eq!(content["errors"], json!([]));
    assert!(content["lastBookmarks"][0].is_string(), "{content}");
}

/// Asserts that each id below `count` exists once, with its timestamp.
fn assert_all_are_there(client: &mut GraphClient, count: u64) {
    let counted = "MATCH (n:TestNode) RETURN count(n), count(DISTINCT n.id)";
    assert_eq!(client.run(counted, json!({})), [json!([count, count])]);
    let all = client.run("MATCH (n:TestNode) RETURN n.id, n.timestamp ORDER BY n.id", json!({}));
    for (id, row) in all.iter().enumerate() {
        assert_eq!(row, &json!([id, timestamp(id as u64)]));
    }
}

fn basic(name: &str, password: &str) -> String {
    let both = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
    format!("Basic {both}")
}

#[test]
fn what_it_creates_over_http1_is_there_once_and_to_the_nanosecond() {
    let closed = Closed::start();
    let token = closed.add("admin", &["writer:main"]);
    let bearer = format!("Bearer {token}");
    let address = closed.server.address;
    let alone = size(200, 50_000) as u64;
    let mut client = GraphClient::at(address).of("nornic").showing(&bearer);
    for id in 0..alone {
        let answer = client.ask("POST", "tx/commit", &create(id)).unwrap();
        created(&answer.expect(200), id);
    }
    assert_all_are_there(&mut client, alone);
    let next = AtomicU64::new(alone);
    let count = alone + size(1_980, 50_000) as u64;
    at_once(address, CLIENTS, |client, number| {
        // Hashing a password is slow, so few clients use one.
        let shown = if number == 0 { basic("admin", PASSWORD) } else { bearer.clone() };
        let fresh = GraphClient::at(address).of("nornic").showing(&shown);
        *client = fresh;
        loop {
            let id = next.fetch_add(1, Relaxed);
            if id >= count {
                return;
            }
            let answer = client.ask("POST", "tx/commit", &create(id)).unwrap();
            created(&answer.expect(200), id);
        }
    });
    assert_all_are_there(&mut client, count);
}

/// One request over HTTP/2; its status and content.
async fn ask(sender: &SendRequest<Bytes>, path: &str, bearer: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::post(format!("http://l{path}"))
        .header("content-type", "application/json")
        .header("authorization", bearer);
    let mut sender = sender.clone().ready().await.unwrap();
    let (answer, mut sending) = sender.send_request(request.body(()).unwrap(), false).unwrap();
    sending.send_data(body.to_string().into(), true).unwrap();
    let answer = answer.await.unwrap();
    let status = answer.status().as_u16();
    let mut content = Vec::new();
    let mut body = answer.into_body();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        content.extend_from_slice(&data);
    }
    (status, serde_json::from_slice(&content).unwrap())
}

#[test]
fn what_it_creates_over_99_streams_of_http2_is_there_as_well() {
    let closed = Closed::start();
    let bearer = format!("Bearer {}", closed.add("admin", &["writer"]));
    let count = size(1_980, 50_000) as u64;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(closed.server.address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (sender, connection) = h2::client::handshake(socket).await.unwrap();
        let connection = tokio::spawn(connection);
        let next = std::sync::Arc::new(AtomicU64::new(0));
        let streams: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (sender, bearer) = (sender.clone(), bearer.clone());
                let next = std::sync::Arc::clone(&next);
                tokio::spawn(async move {
                    loop {
                        let id = next.fetch_add(1, Relaxed);
                        if id >= count {
                            return;
                        }
                        let path = "/db/nornic/tx/commit";
                        let (status, content) = ask(&sender, path, &bearer, &create(id)).await;
                        assert_eq!(status, 200, "{content}");
                        created(&content, id);
                    }
                })
            })
            .collect();
        for stream in streams {
            stream.await.unwrap();
        }
        drop(sender);
        connection.await.unwrap().unwrap();
    });
    let mut client = GraphClient::at(closed.server.address).showing(&bearer);
    assert_all_are_there(&mut client, count);
}

/// The error code; also checks the status and Neo4j's envelope.
#[track_caller]
fn refused(answer: &crate::client::Answer, status: u16, code_of_neo4j: &str) {
    let content = answer.expect(status);
    assert_eq!(code(&content).as_deref(), Some(code_of_neo4j), "{content}");
    assert_eq!(content["results"], json!([]), "{content}");
    assert!(content["errors"][0]["message"].is_string());
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[test]
fn missing_and_wrong_credentials_are_answered_as_by_neo4j() {
    const UNAUTHORIZED: &str = "Neo.ClientError.Security.Unauthorized";
    let closed = Closed::start();
    let token = closed.add("ann", &["writer"]);
    let client = || GraphClient::at(closed.server.address);
    let routes = [
        ("GET", ""),
        ("POST", "tx/commit"),
        ("POST", "tx"),
        ("POST", "tx/1"),
        ("POST", "tx/1/commit"),
        ("DELETE", "tx/1"),
    ];
    for (method, path) in routes {
        for shown in [None, Some("Bearer wrong".to_owned()), Some(format!("Bearer {token}x"))] {
            let mut client = client();
            if let Some(shown) = &shown {
                client = client.showing(shown);
            }
            let path = if path.is_empty() { "/db/neo4j" } else { &format!("/db/neo4j/{path}") };
            let mut headers = vec![("Content-Type", "application/json")];
            headers.extend(shown.as_deref().map(|shown| ("Authorization", shown)));
            let body = if method == "POST" { "{\"statements\":[]}" } else { "" };
            let answer = client.client.call(method, path, &headers, body.as_bytes()).unwrap();
            refused(&answer, 401, UNAUTHORIZED);
            let asks = answer.header("www-authenticate").expect("how to show who one is");
            assert!(asks.contains("Bearer") || asks.contains("Basic"), "{asks}");
        }
    }
    let wrong = client().showing(&basic("ann", "wrong wrong")).ask("POST", "tx/commit", &json!({}));
    refused(&wrong.unwrap(), 401, UNAUTHORIZED);
    let malformed = client().showing("Nonsense").ask("POST", "tx/commit", &json!({})).unwrap();
    refused(&malformed, 400, "Neo.ClientError.Request.InvalidFormat");
    let right = client().showing(&basic("ann", PASSWORD)).try_run("RETURN 1", json!({}));
    assert_eq!(right, Ok(vec![json!([1])]));
}

const WRITING: [&str; 9] = [
    "CREATE (:N)",
    "MERGE (:N {k: 1})",
    "MATCH (n) SET n.k = 2",
    "MATCH (n) REMOVE n.k",
    "MATCH (n) DETACH DELETE n",
    "FOREACH (x IN [1, 2] | CREATE (:N {k: x}))",
    "CREATE INDEX FOR (n:N) ON (n.k)",
    "CREATE CONSTRAINT FOR (n:N) REQUIRE n.k IS UNIQUE",
    "UNWIND [1] AS x CALL { CREATE (:N) } RETURN x",
];

#[test]
fn a_reader_reads_and_does_not_write_whatever_the_route() {
    const FORBIDDEN: &str = "Neo.ClientError.Security.Forbidden";
    let closed = Closed::start();
    let reader = format!("Bearer {}", closed.add("ann", &["reader"]));
    let root = format!("Bearer {}", closed.root);
    let mut admin = GraphClient::at(closed.server.address).showing(&root);
    admin.run("CREATE (:N {k: 1})", json!({}));
    let mut client = GraphClient::at(closed.server.address).showing(&reader);
    let read = "MATCH (n:N) RETURN collect(n.k)";
    assert_eq!(client.value(read), json!([1]));
    let open = client.begin(read, json!({}));
    for writing in WRITING {
        let first_reads = all(&[(read, json!({})), (writing, json!({}))]);
        for body in [one(writing, json!({})), first_reads] {
            for path in ["tx/commit", "tx", &open.path, &format!("{}/commit", open.path)] {
                refused(&client.ask("POST", path, &body).unwrap(), 403, FORBIDDEN);
            }
        }
    }
    assert_eq!(client.go_on(&open, read, json!({})), Ok(vec![json!([[1]])]));
    assert_eq!(client.commit(&open), Ok(()));
    assert_eq!(admin.value(read), json!([1]));
}

#[test]
fn a_role_for_one_log_is_none_for_another() {
    let closed = Closed::start();
    closed.ask(&closed.root, "PUT", "/v1/logs/other", &json!({})).expect(201);
    let writer = format!("Bearer {}", closed.add("ann", &["writer:main"]));
    let half = format!("Bearer {}", closed.add("bob", &["writer:main", "reader:other"]));
    let status = |shown: &str, database: &str, statement: &str| {
        let mut client = GraphClient::at(closed.server.address).showing(shown).of(database);
        client.ask("POST", "tx/commit", &one(statement, json!({}))).unwrap().status
    };
    let both = |shown: &str, database: &str| {
        [status(shown, database, "MATCH (n) RETURN n"), status(shown, database, "CREATE (:N)")]
    };
    for database in ["main", "neo4j", "nornic"] {
        assert_eq!((both(&writer, database), both(&half, database)), ([200; 2], [200; 2]));
    }
    assert_eq!((both(&writer, "other"), both(&half, "other")), ([403; 2], [200, 403]));
}

#[test]
fn a_transaction_ends_with_its_account_even_if_the_name_is_used_again() {
    let closed = Closed::start();
    let address = closed.server.address;
    let shown = |token: &str| GraphClient::at(address).showing(&format!("Bearer {token}"));
    let first = closed.add("ann", &["writer"]);
    let open = shown(&first).begin("CREATE (:N)", json!({}));
    // The same account with another credential continues it.
    let body = json!({"username": "ann", "password": PASSWORD});
    let again = closed.client().post("/auth/token", &body).unwrap().expect(200);
    let again = again["access_token"].as_str().unwrap().to_owned();
    shown(&again).go_on(&open, "CREATE (:N)", json!({})).unwrap();
    let deleted = closed.ask(&closed.root, "DELETE", "/v1/accounts/ann", &Value::Null);
    assert_eq!(deleted.status, 204);
    let refused = shown(&first).ask("POST", &open.path, &json!({})).unwrap();
    assert_eq!(refused.status, 401);
    let second = closed.add("ann", &["writer"]);
    assert_eq!(shown(&second).roll_back(&open), Err(NOT_FOUND.to_owned()));
    assert_eq!(shown(&second).commit(&open), Err(NOT_FOUND.to_owned()));
    assert_eq!(shown(&closed.root).value("MATCH (n) RETURN count(n)"), json!(0));
}

#[test]
fn an_account_that_may_not_read_any_more_cannot_go_on_with_its_transactions() {
    let closed = Closed::start();
    let writer = closed.add("ann", &["writer"]);
    let address = closed.server.address;
    let mut client = GraphClient::at(address).showing(&format!("Bearer {writer}"));
    let open = client.begin("CREATE (:N)", json!({}));
    let change = |body: Value, status| {
        closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &body).expect(status);
    };
    change(json!({"roles": ["writer:elsewhere"]}), 200);
    for path in [open.path.clone(), format!("{}/commit", open.path)] {
        assert_eq!(client.ask("POST", &path, &json!({})).unwrap().status, 403, "{path}");
    }
    change(json!({"roles": ["writer"], "enabled": false}), 200);
    assert_eq!(client.ask("POST", &open.path, &json!({})).unwrap().status, 401);
}

#[test]
fn what_a_transaction_wrote_is_committed_by_nobody_who_may_not_write() {
    let closed = Closed::start();
    let writer = closed.add("ann", &["writer"]);
    // A token of the same account with fewer roles.
    let narrow = json!({"username": "ann", "password": PASSWORD, "roles": ["reader"]});
    let narrow = closed.client().post("/auth/token", &narrow).unwrap().expect(200);
    let narrow = narrow["access_token"].as_str().unwrap().to_owned();
    let mut client = GraphClient::at(closed.server.address).showing(&format!("Bearer {writer}"));
    let [first, second] = [(); 2].map(|()| client.begin("CREATE (:N)", json!({})));
    let commit = |bearer: &str, open: &Open| {
        let mut client =
            GraphClient::at(closed.server.address).showing(&format!("Bearer {bearer}"));
        client.commit(open)
    };
    const FORBIDDEN: &str = "Neo.ClientError.Security.Forbidden";
    assert_eq!(commit(&narrow, &first), Err(FORBIDDEN.to_owned()));
    // The account has become a reader in the meantime.
    let change = json!({"roles": ["reader"]});
    closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &change).expect(200);
    assert_eq!(commit(&writer, &second), Err(FORBIDDEN.to_owned()));
    let root = format!("Bearer {}", closed.root);
    let mut admin = GraphClient::at(closed.server.address).showing(&root);
    assert_eq!(admin.value("MATCH (n) RETURN count(n)"), json!(0));
}
