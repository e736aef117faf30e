//! The limits of the catalogue's answers and amounts: bulks line by line, lists, the largest of
//! everything, `HEAD`.

use crate::catalogue_client::*;
use crate::client::Client;
use crate::server::Server;
use serde_json::{Value, json};

#[test]
fn a_bad_line_of_a_bulk_is_named_and_what_stands_before_it_is_there() {
    let server = Server::start();
    let mut client = begin(&server);
    let line = |sku: &str, price: &str| {
        let mut item = new_item(&format!("Item {sku}"), price, 1);
        item["sku"] = json!(sku);
        item.to_string()
    };
    // Whole batches, and part of one.
    let good: Vec<String> = (1..=300).map(|n| line(&format!("G-{n}"), "1.00")).collect();
    let mut no_sku: Value = serde_json::from_str(&line("x", "1")).unwrap();
    no_sku.as_object_mut().unwrap().remove("sku");
    let mut other_currency: Value = serde_json::from_str(&line("A-1", "1")).unwrap();
    other_currency["currency"] = json!("EUR");
    let mut no_topic: Value = serde_json::from_str(&line("new", "1")).unwrap();
    no_topic["topic"] = json!(99);
    let bad_lines = [
        (line("B", "1.999"), 422, "price"),
        (no_sku.to_string(), 422, "sku"),
        (other_currency.to_string(), 422, "currency"),
        (no_topic.to_string(), 404, "topic"),
        ("{".to_owned(), 422, ""),
        ("\u{fffd}".to_owned(), 422, ""),
        (format!("{{\"name\":\"{}\"}}", "x".repeat(140_000)), 413, ""),
    ];
    for (at, (bad, status, field)) in bad_lines.iter().enumerate() {
        let before = 300 - 40 * at;
        let lines =
            [&good[..before], std::slice::from_ref(bad), &good[before..]].concat().join("\n");
        let answer = put(&mut client, &lines);
        let problem = answer.problem(*status);
        assert_eq!(problem["line"], before + 1, "{problem}");
        assert_eq!(
            problem["durable_lines"].to_string().trim_matches('"'),
            before.to_string(),
            "{problem}"
        );
        assert!(field.is_empty() || problem["field"] == *field, "{problem}");
        assert!(answer.header("wellspring-position").is_some());
        client = Client::connect(server.address).unwrap();
    }
    let done = put(&mut client, &good.join("\n")).expect(200);
    assert_eq!(done, json!({"lines": 300, "added": 0, "changed": 0, "unchanged": 300}));
    let changed = [line("G-1", "2.00"), String::new(), line("G-301", "1.00")].join("\r\n");
    let done = put(&mut client, &changed).expect(200);
    assert_eq!(done, json!({"lines": 3, "added": 1, "changed": 1, "unchanged": 0}));
    assert_eq!(
        put(&mut client, "").expect(200),
        json!({"lines": 0, "added": 0, "changed": 0, "unchanged": 0})
    );
}

#[test]
fn an_answer_without_pages_has_a_limit() {
    let server = Server::start();
    let mut client = server.client().patient();
    stock_up(&mut client, 10_000, 1);
    let all = client.get("/lookup").unwrap().expect(200);
    assert_eq!(all["result"].as_array().unwrap().len(), 10_000);
    add(&mut client, &new_item("One more", "1", 1));
    let topics: Value = client.get("/v1/catalogue/topics").unwrap().expect(200);
    assert_eq!(topics["topics"].as_array().unwrap().len(), 8);
    for path in ["/lookup", "/lookup?consistency=local", "/search/t", "/search/%54"] {
        let problem = client.get(path).unwrap().problem(413);
        assert_eq!(problem["limit"], 10_000, "{path}: {problem}");
    }
    let few = client.get("/search/3").unwrap().expect(200);
    assert!(few["result"].as_array().unwrap().len() > 1_000);
    let (mut seen, mut path) = (0, "/v1/catalogue/items?limit=1000".to_owned());
    loop {
        let page = client.get(&path).unwrap().expect(200);
        seen += page["items"].as_array().unwrap().len();
        let Some(next) = page["next"].as_u64() else { break };
        path = format!("/v1/catalogue/items?limit=1000&after={next}");
    }
    assert_eq!(seen, 10_001);
}

#[test]
fn head_gives_the_headers_of_get() {
    let server = Server::start();
    let mut client = begin(&server);
    for path in [
        "/lookup",
        "/lookup/1",
        "/lookup/7",
        "/search/thing",
        "/v1/catalogue/items/1",
        "/v1/catalogue/items",
    ] {
        let got = client.get(path).unwrap();
        let head = crate::shortener::head_of(&mut client, path).unwrap();
        assert_eq!(head.status, got.status, "{path}");
        for name in
            ["content-type", "content-length", "etag", "cache-control", "wellspring-position"]
        {
            assert_eq!(head.header(name), got.header(name), "{path}: {name}");
        }
        let etag = got.header("etag").unwrap_or("\"none\"");
        client
            .send(
                format!("HEAD {path} HTTP/1.1\r\nHost: test\r\nIf-None-Match: {etag}\r\n\r\n")
                    .as_bytes(),
            )
            .unwrap();
        let status = if got.header("etag").is_some() { 304 } else { 200 };
        assert_eq!(client.head().unwrap().0, status, "{path}");
    }
    assert_eq!(client.get("/lookup/1").unwrap().status, 200, "the connection goes on");
}

#[test]
fn the_largest_of_everything_is_exact() {
    let server = Server::start();
    let mut client = server.client();
    let id = add(&mut client, &new_item("Dear", "10000000000.00", 1_000_000_000));
    let entry = client.get("/lookup/1").unwrap().text();
    assert!(entry.contains(r#""stock":1000000000,"price":10000000000,"#), "{entry}");
    for _ in 0..3 {
        let placed = order(&mut client, id, 1_000_000_000, None).unwrap().expect(201);
        assert_eq!(placed["total"], "10000000000000000000.00");
        assert!(!is_done(&buy(&mut client, id, 1, None).unwrap()));
        restock(&mut client, id, 1_000_000_000).expect(200);
    }
    let left = item(&mut client, id);
    assert_eq!((number(&left, "stock"), number(&left, "sold")), (1_000_000_000, 3_000_000_000));
    // The stock would exceed its maximum.
    let answer = cancel(&mut client, "1-1").unwrap();
    assert_eq!(fault(&answer), (422, "invalid".to_owned(), "order".to_owned()));
    assert!(!is_done(&client.call("POST", "/update/1/stock/add/1", &[], b"").unwrap()));
    assert!(!is_done(
        &client.call("POST", "/order/1?amount=99999999999999999999", &[], b"").unwrap()
    ));
}

/// A client of a server with one topic and one item.
fn begin(server: &Server) -> Client {
    let mut client = server.client();
    let mut first = new_item("First", "2.00", 10);
    first["sku"] = json!("A-1");
    add(&mut client, &first);
    client
}
