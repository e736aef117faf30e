//! Permissions by role: a reader reads, a writer orders and cancels, an operator changes the
//! catalogue.

use crate::catalogue_client::*;
use crate::closed::{Closed, PASSWORD, ask};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

#[test]
fn a_reader_looks_a_writer_orders_and_an_operator_changes() {
    let closed = Closed::start();
    let new = new_item("Guarded", "2.00", 100);
    closed.ask(&closed.root, "POST", "/v1/catalogue/items", &new).expect(201);
    closed.ask(&closed.root, "POST", "/v1/catalogue/orders", &json!({"item": 1})).expect(201);
    let accounts = [
        ("nobody", vec![], 0),
        ("elsewhere", vec!["operator:other"], 0),
        ("reader", vec!["reader"], 1),
        ("writer", vec!["writer:main"], 2),
        ("operator", vec!["operator"], 3),
    ];
    let looks = [
        "/lookup",
        "/lookup/1",
        "/search/thing",
        "/v1/catalogue/topics",
        "/v1/catalogue/items",
        "/v1/catalogue/items/1",
        "/v1/catalogue/items/1/prices",
        "/v1/catalogue/orders?item=1",
        "/v1/catalogue/orders/1-1",
    ]
    .map(|path| ("GET", path, Value::Null, 1));
    let orders = [
        ("POST", "/order/1", Value::Null, 2),
        ("POST", "/v1/catalogue/orders", json!({"item": 1}), 2),
        ("DELETE", "/v1/catalogue/orders/1-1", Value::Null, 2),
    ];
    let changes = [
        ("POST", "/update/1/stock/add/1", Value::Null, 3),
        ("POST", "/update/1/stock/deduct/1", Value::Null, 3),
        ("POST", "/update/1/price/2.00", Value::Null, 3),
        ("PATCH", "/v1/catalogue/topics/1", json!({"name": "Things"}), 3),
        ("PATCH", "/v1/catalogue/items/1", json!({"name": "Guarded"}), 3),
        ("POST", "/v1/catalogue/items/1/stock", json!({"by": 1}), 3),
    ];
    for (name, roles, may) in accounts {
        let token = closed.add(name, &roles);
        // One connection, over the lean loop as long as that serves it.
        let mut client = closed.client();
        for (method, path, body, needs) in looks.iter().chain(&orders).chain(&changes) {
            let answer = ask(&mut client, &token, method, path, body);
            let what = format!("{method} {path} as {name}: {}", answer.text());
            if may >= *needs {
                assert!([200, 201].contains(&answer.status), "{what}");
            } else {
                assert_eq!(fault(&answer).0, 403, "{what}");
            }
        }
    }
    let mut client = closed.client();
    for (method, path, ..) in looks.iter().chain(&orders).chain(&changes) {
        let answer = client.call(method, path, &[], b"").unwrap();
        assert_eq!(fault(&answer).0, 401, "{method} {path}");
    }
    // An entity tag reveals nothing.
    let known = [("If-None-Match", "*")];
    assert_eq!(client.call("GET", "/lookup/1", &known, b"").unwrap().status, 401);
    // A password works as well as a token.
    let basic = format!("Basic {}", STANDARD.encode(format!("reader:{PASSWORD}")));
    let headers = [("Authorization", basic.as_str())];
    assert_eq!(client.call("GET", "/lookup/1", &headers, b"").unwrap().status, 200);
}

#[test]
fn a_key_is_its_accounts_own() {
    let closed = Closed::start();
    closed
        .ask(&closed.root, "POST", "/v1/catalogue/items", &new_item("Keyed", "2.00", 100))
        .expect(201);
    let (ann, bob) = (closed.add("ann", &["writer"]), closed.add("bob", &["writer"]));
    let order = |token: &str, amount: u64| {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", "same"),
        ];
        let body = json!({"item": 1, "amount": amount}).to_string();
        closed.client().call("POST", "/v1/catalogue/orders", &headers, body.as_bytes()).unwrap()
    };
    let first = order(&ann, 1).expect(201);
    assert_eq!(order(&ann, 1).expect(200), first);
    assert_eq!(order(&bob, 1).expect(201)["order"], "1-2");
    assert_eq!(fault(&order(&ann, 2)), (422, "idempotency-key-reused".to_owned(), String::new()));
}
