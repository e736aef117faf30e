//! What the catalogue refuses: each invalid field and segment, named, with no effect.

use crate::catalogue_client::*;
use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

/// A server with one topic and two items: ten of the first, five of the second, which is priced in
/// yen.
fn begin() -> (Server, Client) {
    let server = Server::start();
    let mut client = server.client();
    let mut first = new_item("First", "2.00", 10);
    first["sku"] = json!("A-1");
    add(&mut client, &first);
    let mut second = new_item("Second", "300", 5);
    second["currency"] = json!("JPY");
    add(&mut client, &second);
    (server, client)
}

#[track_caller]
fn refused(answer: &Answer, status: u16, slug: &str, field: &str) {
    let expected = (status, slug.to_owned(), field.to_owned());
    assert_eq!(fault(answer), expected, "{}", answer.text());
}

/// Everything that might have changed.
fn dump(client: &mut Client) -> Vec<String> {
    let paths = [
        "/lookup",
        "/v1/catalogue/items?withdrawn=true",
        "/v1/catalogue/topics",
        "/v1/catalogue/orders?item=1",
        "/v1/head",
    ];
    paths.map(|path| client.get(path).unwrap().text()).into()
}

#[test]
fn bad_segments_are_named() {
    let (_server, mut client) = begin();
    let before = dump(&mut client);
    for id in
        ["0", "01", "00", "+1", "-1", "1.0", "a", "%31a", "99999999999", "4294967296", "1%00", "１"]
    {
        let id = if id.is_ascii() { id.to_owned() } else { "%EF%BC%91".to_owned() };
        for path in [
            format!("/lookup/{id}"),
            format!("/v1/catalogue/items/{id}"),
            format!("/v1/catalogue/items/{id}/prices"),
        ] {
            refused(&client.get(&path).unwrap(), 400, "bad-request", "item");
        }
        let posts = [
            format!("/order/{id}"),
            format!("/update/{id}/stock/add/1"),
            format!("/update/{id}/stock/deduct/1"),
            format!("/update/{id}/price/1"),
            format!("/v1/catalogue/items/{id}/stock"),
        ];
        for path in posts {
            let answer = client.call("POST", &path, JSON, br#"{"by":1}"#).unwrap();
            refused(&answer, 400, "bad-request", "item");
        }
        let answer =
            client.call("PATCH", &format!("/v1/catalogue/items/{id}"), JSON, br#"{"price":1}"#);
        refused(&answer.unwrap(), 400, "bad-request", "item");
        let answer =
            client.call("PATCH", &format!("/v1/catalogue/topics/{id}"), JSON, br#"{"name":"x"}"#);
        refused(&answer.unwrap(), 400, "bad-request", "topic");
    }
    for amount in ["0", "01", "-1", "+1", "1.5", "a", "1000000001", "99999999999999999999"] {
        for what in ["add", "deduct"] {
            let path = format!("/update/1/stock/{what}/{amount}");
            refused(&client.call("POST", &path, &[], b"").unwrap(), 400, "bad-request", "amount");
        }
    }
    for price in [
        "-1",
        "1.999",
        "1e3",
        "a",
        ".5",
        "1.",
        "1,5",
        "10000000000.01",
        "99999999999999999999999",
        "%2B1",
        "0x1",
        "NaN",
    ] {
        let path = format!("/update/1/price/{price}");
        refused(&client.call("POST", &path, &[], b"").unwrap(), 400, "bad-request", "price");
    }
    // Yen have no decimals.
    refused(
        &client.call("POST", "/update/2/price/1.5", &[], b"").unwrap(),
        400,
        "bad-request",
        "price",
    );
    for amount in ["a", "1.5", "%2B1", "-", "1%20", "0x1"] {
        let path = format!("/order/1?amount={amount}");
        refused(&client.call("POST", &path, &[], b"").unwrap(), 422, "invalid", "amount");
    }
    for order in ["1", "1-", "-1", "1-0", "0-1", "1-01", "a-b", "1-1-1", "1-99999999999", "1-1"] {
        let path = format!("/v1/catalogue/orders/{order}");
        refused(&client.get(&path).unwrap(), 404, "order-not-found", "order");
        refused(&client.call("DELETE", &path, &[], b"").unwrap(), 404, "order-not-found", "order");
    }
    let long = format!("/search/{}", "x".repeat(301));
    refused(&client.get(&long).unwrap(), 400, "bad-request", "word");
    assert_eq!(dump(&mut client), before);
}

#[test]
fn what_is_not_there_is_told() {
    let (_server, mut client) = begin();
    let nothing = json!({"ok": false, "result": null, "topics": []});
    for id in ["3", "999999999", "1000000000", "4294967295"] {
        assert_eq!(client.get(&format!("/lookup/{id}")).unwrap().expect(200), nothing, "{id}");
        for path in [
            format!("/v1/catalogue/items/{id}"),
            format!("/v1/catalogue/items/{id}/prices"),
            format!("/v1/catalogue/orders?item={id}"),
        ] {
            refused(&client.get(&path).unwrap(), 404, "item-not-found", "item");
        }
        for path in [
            format!("/order/{id}"),
            format!("/update/{id}/stock/add/1"),
            format!("/update/{id}/price/1"),
        ] {
            assert!(!is_done(&client.call("POST", &path, &[], b"").unwrap()), "{path}");
        }
        let id: u64 = id.parse().unwrap();
        refused(&order(&mut client, id, 1, None).unwrap(), 404, "item-not-found", "item");
        refused(&change(&mut client, id, &json!({"price": 1}), &[]), 404, "item-not-found", "item");
        refused(&restock(&mut client, id, 1), 404, "item-not-found", "item");
    }
    let answer = client.call("PATCH", "/v1/catalogue/topics/9", JSON, br#"{"name":"x"}"#).unwrap();
    refused(&answer, 404, "topic-not-found", "topic");
    let found = client.get("/search/neverland").unwrap().expect(200);
    assert_eq!(found, json!({"ok": true, "result": [], "topics": []}));
    for path in [
        "/lookup/",
        "/lookup/1/",
        "/search/",
        "/search",
        "/order",
        "/order/",
        "/update/1",
        "/update/1/stock",
        "/update/1/stock/steal/1",
    ] {
        let answer = client.get(path).unwrap();
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    for (method, path) in [
        ("GET", "/order/1"),
        ("POST", "/lookup"),
        ("PUT", "/lookup/1"),
        ("GET", "/update/1/price/1"),
        ("DELETE", "/v1/catalogue/items/1"),
    ] {
        assert_eq!(client.call(method, path, &[], b"").unwrap().status, 405, "{method} {path}");
    }
}

#[test]
fn bad_fields_are_named() {
    let (_server, mut client) = begin();
    let before = dump(&mut client);
    let new = |field: &str, value: Value| {
        let mut new = new_item("New", "1.00", 1);
        new[field] = value;
        new
    };
    let without = |field: &str| {
        let mut new = new_item("New", "1.00", 1);
        new.as_object_mut().unwrap().remove(field);
        new
    };
    let long = |bytes: usize| json!("x".repeat(bytes));
    let items = [
        (without("name"), "name"),
        (without("topic"), "topic"),
        (without("price"), "price"),
        (new("name", json!("")), "name"),
        (new("name", json!(" ")), "name"),
        (new("name", json!("a\nb")), "name"),
        (new("name", json!(7)), "name"),
        (new("name", Value::Null), "name"),
        (new("name", long(301)), "name"),
        (new("description", long(16_385)), "description"),
        (new("description", json!("a\u{0}")), "description"),
        (new("topic", json!(0)), "topic"),
        (new("topic", json!(-1)), "topic"),
        (new("topic", json!("")), "topic"),
        (new("topic", json!({})), "topic"),
        (new("topic", json!(4_294_967_296_u64)), "topic"),
        (new("price", json!(-1)), "price"),
        (new("price", json!("1.999")), "price"),
        (new("price", json!("1,50")), "price"),
        (new("price", json!("")), "price"),
        (new("price", json!(true)), "price"),
        (new("price", json!([1])), "price"),
        (new("price", json!(1e300)), "price"),
        (new("price", json!("10000000000.01")), "price"),
        (new("currency", json!("usd")), "currency"),
        (new("currency", json!("XXX")), "currency"),
        (new("currency", json!(840)), "currency"),
        (new("stock", json!(-1)), "stock"),
        (new("stock", json!(1.5)), "stock"),
        (new("stock", json!(1_000_000_001)), "stock"),
        (new("stock", json!("1")), "stock"),
        (new("sku", json!("")), "sku"),
        (new("sku", json!("a b")), "sku"),
        (new("sku", long(65)), "sku"),
        (new("id", json!(1)), "id"),
    ];
    for (body, field) in items {
        let answer = client.post("/v1/catalogue/items", &body).unwrap();
        assert!([400, 413, 422].contains(&answer.status), "{body}: {}", answer.text());
        assert_eq!(fault(&answer).2, field, "{body}: {}", answer.text());
    }
    refused(
        &client.post("/v1/catalogue/items", &new("topic", json!(9))).unwrap(),
        404,
        "topic-not-found",
        "topic",
    );
    refused(
        &client.post("/v1/catalogue/items", &new("sku", json!("A-1"))).unwrap(),
        409,
        "sku-taken",
        "sku",
    );
    let changes = [
        (json!({}), ""),
        (json!({"stock": 1}), "stock"),
        (json!({"sku": "B"}), "sku"),
        (json!({"currency": "EUR"}), "currency"),
        (json!({"withdrawn": 1}), "withdrawn"),
        (json!({"name": ""}), "name"),
        (json!({"description": "\u{7}"}), "description"),
        (json!({"topic": null}), "topic"),
        (json!({"price": "1.999"}), "price"),
        (json!({"price": -1}), "price"),
        (json!({"colour": "red"}), "colour"),
    ];
    for (body, field) in changes {
        refused(&change(&mut client, 1, &body, &[]), 422, "invalid", field);
    }
    refused(&change(&mut client, 1, &json!({"topic": 9}), &[]), 404, "topic-not-found", "topic");
    for etag in ["", "c1", "\"c\"", "W/\"c3\"", "\"c1\", \"c2\"", "\"c99999999999999999999\""] {
        refused(
            &change(&mut client, 1, &json!({"price": 1}), &[("If-Match", etag)]),
            400,
            "bad-request",
            "If-Match",
        );
    }
    refused(
        &change(&mut client, 1, &json!({"price": 1}), &[("If-Match", "\"c1\"")]),
        412,
        "item-changed",
        "If-Match",
    );
    for by in
        [json!(0), json!(1.5), json!("1"), json!(null), json!(1_000_000_001), json!(-1_000_000_001)]
    {
        let answer = client.post("/v1/catalogue/items/1/stock", &json!({"by": by})).unwrap();
        refused(&answer, 422, "invalid", "by");
    }
    refused(&client.post("/v1/catalogue/items/1/stock", &json!({})).unwrap(), 422, "invalid", "by");
    refused(&restock(&mut client, 1, -11), 409, "stock-too-low", "by");
    refused(&restock(&mut client, 1, 999_999_991), 422, "invalid", "by");
    let orders = [
        (json!({}), "item"),
        (json!({"amount": 1}), "item"),
        (json!({"item": 0}), "item"),
        (json!({"item": "1"}), "item"),
        (json!({"item": 4_294_967_296_u64}), "item"),
        (json!({"item": 1, "amount": 0}), "amount"),
        (json!({"item": 1, "amount": -1}), "amount"),
        (json!({"item": 1, "amount": 1.5}), "amount"),
        (json!({"item": 1, "amount": null}), "amount"),
        (json!({"item": 1, "amount": 1_000_000_001}), "amount"),
        (json!({"item": 1, "price": "1"}), "price"),
    ];
    for (body, field) in orders {
        refused(&client.post("/v1/catalogue/orders", &body).unwrap(), 422, "invalid", field);
    }
    refused(&order(&mut client, 1, 11, None).unwrap(), 409, "sold-out", "amount");
    let topics = [
        (json!({}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": 1}), "name"),
        (json!({"name": "x", "id": 7}), "id"),
    ];
    for (body, field) in topics {
        refused(&client.post("/v1/catalogue/topics", &body).unwrap(), 422, "invalid", field);
    }
    refused(
        &client.post("/v1/catalogue/topics", &json!({"name": "Things"})).unwrap(),
        409,
        "topic-taken",
        "name",
    );
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "after=-1",
        "topic=0",
        "in_stock=yes",
        "withdrawn=1",
        "neverland=1",
    ] {
        let field = query.split('=').next().unwrap();
        refused(
            &client.get(&format!("/v1/catalogue/items?{query}")).unwrap(),
            422,
            "invalid",
            field,
        );
    }
    for query in ["", "item=0", "item=x", "limit=5"] {
        let answer = client.get(&format!("/v1/catalogue/orders?{query}")).unwrap();
        refused(&answer, 422, "invalid", "item");
    }
    refused(&client.get("/v1/catalogue/orders?item=1&before=0").unwrap(), 422, "invalid", "before");
    assert_eq!(dump(&mut client), before);
}

#[test]
fn bodies_that_are_none_are_refused() {
    let (server, mut client) = begin();
    let before = dump(&mut client);
    let routes = [
        ("POST", "/v1/catalogue/items"),
        ("PATCH", "/v1/catalogue/items/1"),
        ("POST", "/v1/catalogue/items/1/stock"),
        ("POST", "/v1/catalogue/orders"),
        ("POST", "/v1/catalogue/topics"),
        ("PATCH", "/v1/catalogue/topics/1"),
    ];
    for (method, path) in routes {
        for (body, statuses) in [
            (&b""[..], [400, 422]),
            (b"{", [400, 400]),
            (b"[]", [422, 422]),
            (b"null", [422, 422]),
            (b"{\"name\":\"a\",\"name\":\"b\"}", [422, 422]),
            (b"{} {}", [400, 422]),
            (b"\xff", [400, 400]),
        ] {
            let answer = client.call(method, path, JSON, body).unwrap();
            let what =
                format!("{method} {path} {}: {}", String::from_utf8_lossy(body), answer.text());
            assert!(statuses.contains(&answer.status), "{what}");
            fault(&answer);
        }
        let text = [("Content-Type", "text/plain")];
        refused(
            &client.call(method, path, &text, b"{}").unwrap(),
            415,
            "unsupported-media-type",
            "",
        );
        let packed = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
        assert_eq!(fault(&client.call(method, path, &packed, b"{}").unwrap()).0, 415, "{path}");
        let large = format!("{{\"name\":\"{}\"}}", "x".repeat(200_000));
        let answer = client.call(method, path, JSON, large.as_bytes()).unwrap();
        assert_eq!(fault(&answer).0, 413, "{path}: {}", answer.text());
        client = Client::connect(server.address).unwrap();
    }
    let long = "k".repeat(256);
    for (key, status, slug) in [("", 422, "invalid"), (&long, 413, "too-large")] {
        let answer = order(&mut client, 1, 1, Some(key)).unwrap();
        refused(&answer, status, slug, "Idempotency-Key");
    }
    assert_eq!(dump(&mut client), before);
}
