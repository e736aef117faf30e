//! Catalogue events appended by other writers: forbidden without the setting; with it, invalid
//! events change nothing, valid ones count, and orders continue.

use crate::catalogue_client::*;
use crate::client::Client;
use crate::done::StopSignal;
use crate::server::Server;
use serde_json::{Value, json};

/// The event types reserved for the catalogue.
const TYPES: [&str; 9] = [
    "CatalogueTopicAdded",
    "CatalogueTopicRenamed",
    "CatalogueItemAdded",
    "CatalogueItemChanged",
    "CatalogueItemPriced",
    "CatalogueStockChanged",
    "CatalogueOrderPlaced",
    "CatalogueOrderCancelled",
    "CatalogueOrderRefused",
];

fn event(event_type: &str, tags: &[&str], data: Value) -> Value {
    json!({"type": event_type, "tags": tags, "data": data})
}

fn append(client: &mut Client, events: &[Value]) {
    client.post("/v1/append", &json!({ "events": events })).unwrap().expect(200);
}

/// The catalogue's answers about its two items and its topics.
fn dump(client: &mut Client) -> Vec<String> {
    let paths = [
        "/lookup",
        "/lookup/1",
        "/lookup/2",
        "/lookup/3",
        "/v1/catalogue/topics",
        "/v1/catalogue/items?withdrawn=true",
        "/v1/catalogue/items/1",
        "/v1/catalogue/items/1/prices",
        "/v1/catalogue/orders?item=1",
        "/v1/catalogue/orders?item=2",
        "/v1/catalogue/orders/1-1",
    ];
    let ask = |path| {
        let answer = client.get(path).unwrap();
        format!("{path} {} {:?} {}", answer.status, answer.header("etag"), answer.text())
    };
    paths.map(ask).into()
}

/// Two items and two orders, one of them cancelled.
fn begin(client: &mut Client) {
    add(client, &new_item("First", "2.00", 10));
    add(client, &new_item("Second", "3.00", 10));
    order(client, 1, 2, None).unwrap().expect(201);
    order(client, 1, 3, None).unwrap().expect(201);
    cancel(client, "1-2").unwrap().expect(200);
}

/// Events that are invalid after [`begin`].
fn nonsense() -> Vec<Value> {
    let new = json!({"item": 3, "name": "Third", "topic": 1, "price_minor": 1, "currency": "USD", "stock": 1});
    let with = |member: &str, value: Value| {
        let mut new = new.clone();
        new[member] = value;
        new
    };
    let third = |data: Value| event("CatalogueItemAdded", &["item:3", "topic:1"], data);
    let of_first = |event_type: &str, data: Value| event(event_type, &["item:1"], data);
    let mut all = vec![
        // Numbers far ahead, already used, or not the event's own.
        event("CatalogueItemAdded", &["item:4000000000"], with("item", json!(4_000_000_000_u64))),
        event("CatalogueItemAdded", &["item:5"], with("item", json!(5))),
        event("CatalogueItemAdded", &["item:1"], with("item", json!(1))),
        event("CatalogueItemAdded", &["item:0"], with("item", json!(0))),
        event("CatalogueItemAdded", &["item:4"], new.clone()),
        event("CatalogueItemAdded", &[], new.clone()),
        event("CatalogueItemAdded", &["item:03"], new.clone()),
        event("CatalogueItemAdded", &["item:+3"], new.clone()),
        // Invalid values for an item.
        third(with("topic", json!(9))),
        third(with("name", json!(""))),
        third(with("name", json!("a\u{7}"))),
        third(with("name", json!("x".repeat(301)))),
        third(with("description", json!("x".repeat(20_000)))),
        third(with("price_minor", json!(-1))),
        third(with("price_minor", json!(1.5))),
        third(with("price_minor", json!(1_000_000_000_001_u64))),
        third(with("currency", json!("EURO"))),
        third(with("stock", json!(-1))),
        third(with("stock", json!(1_000_000_001))),
        third(with("sku", json!("a b"))),
        third(with("colour", json!("red"))),
        third(json!({"item": 3})),
        third(json!("item")),
        third(json!(null)),
        // Topics.
        event("CatalogueTopicAdded", &["topic:3"], json!({"topic": 3, "name": "Ahead"})),
        event("CatalogueTopicAdded", &["topic:2"], json!({"topic": 2, "name": "Things"})),
        event("CatalogueTopicAdded", &["topic:2"], json!({"topic": 2, "name": " "})),
        event("CatalogueTopicRenamed", &["topic:9"], json!({"topic": 9, "name": "Nobody"})),
        event("CatalogueTopicRenamed", &["topic:1"], json!({"topic": 1, "name": "Things"})),
        // Stock and prices.
        of_first("CatalogueStockChanged", json!({"item": 1, "by": -9})),
        of_first("CatalogueStockChanged", json!({"item": 1, "by": i64::MIN})),
        of_first("CatalogueStockChanged", json!({"item": 1, "by": i64::MAX})),
        of_first("CatalogueStockChanged", json!({"item": 1, "by": 1_000_000_000})),
        of_first("CatalogueStockChanged", json!({"item": 1, "by": "1"})),
        of_first("CatalogueStockChanged", json!({"item": 2, "by": 1})),
        event("CatalogueStockChanged", &["item:9"], json!({"item": 9, "by": 1})),
        of_first("CatalogueItemPriced", json!({"item": 1, "price_minor": -1})),
        of_first("CatalogueItemPriced", json!({"item": 1, "price_minor": 2_000_000_000_000_u64})),
        of_first("CatalogueItemChanged", json!({"item": 1, "name": "\n"})),
        of_first("CatalogueItemChanged", json!({"item": 1, "topic": 77})),
        of_first("CatalogueItemChanged", json!({"item": 1, "price": 3})),
    ];
    // Orders beyond the stock, out of order, or with a cancellation that does not match.
    let placed = |order: u64, amount: i64| json!({"item": 1, "order": order, "amount": amount, "price_minor": 200});
    let cancelled = |order: u64, amount: i64| json!({"item": 1, "order": order, "amount": amount});
    all.extend(
        [(3, 9), (4, 1), (2, 1), (0, 1), (3, 0), (3, -1)]
            .map(|(o, a)| of_first("CatalogueOrderPlaced", placed(o, a))),
    );
    all.extend(
        [(1, 3), (2, 3), (3, 1), (0, 0), (1, -2)]
            .map(|(o, a)| of_first("CatalogueOrderCancelled", cancelled(o, a))),
    );
    let refused = of_first("CatalogueOrderRefused", json!({"item": 1, "amount": 1, "stock": 0}));
    all.push(refused);
    // Types that only share a prefix are not reserved.
    all.push(event("CatalogueSomething", &["item:1"], json!({"item": 1})));
    all
}

#[test]
fn events_of_the_catalogue_are_refused_without_the_setting() {
    let server = Server::start();
    let mut client = server.client();
    begin(&mut client);
    let before = dump(&mut client);
    for event_type in TYPES {
        let events = json!({"events": [event("Other", &[], json!(1)), event(event_type, &["item:1"], json!({"item": 1}))]});
        let answer = client.post("/v1/append", &events).unwrap();
        assert_eq!(fault(&answer), (422, "invalid".to_owned(), "events[1].type".to_owned()));
        assert!(answer.text().contains(ACCEPTS), "{}", answer.text());
        assert_eq!(
            client.call("POST", &format!("/e?type={event_type}"), &[], b"{}").unwrap().status,
            422
        );
        let line = event(event_type, &["item:1"], json!({"item": 1})).to_string();
        let headers = [("Content-Type", "application/x-ndjson")];
        assert_eq!(
            client.call("POST", "/v1/import", &headers, line.as_bytes()).unwrap().status,
            422
        );
    }
    assert_eq!(dump(&mut client), before);
    // Other logs have no catalogue.
    client.call("PUT", "/v1/logs/other", &[], b"").unwrap().expect(201);
    let events =
        json!({"events": [event(TYPES[0], &[], json!({"topic": 1, "name": "Elsewhere"}))]});
    client.post("/v1/logs/other/append", &events).unwrap().expect(200);
}

#[test]
fn nonsense_of_others_changes_nothing_and_orders_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[ACCEPTS]);
    let mut client = server.client();
    begin(&mut client);
    let before = dump(&mut client);
    for event in nonsense() {
        append(&mut client, std::slice::from_ref(&event));
        let after = client.get("/v1/catalogue/items/1?consistency=local").unwrap();
        assert_eq!(after.status, 200);
        let now = dump(&mut client);
        assert!(
            now == before,
            "{event}\n{}",
            now.iter().zip(&before).find(|(a, b)| a != b).unwrap().0
        );
        // Whatever was appended, the next order is decided as if it had not been.
        assert!(!is_done(&buy(&mut client, 1, 9, None).unwrap()), "{event}");
    }
    let placed = order(&mut client, 1, 8, None).unwrap().expect(201);
    assert_eq!(placed["order"], "1-3");
    assert_eq!(add(&mut client, &new_item("Third", "1", 0)), 3);
    let after = dump(&mut client);
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    assert_eq!(dump(&mut server.client()), after, "folded anew");
}

#[test]
fn what_others_append_counts_if_it_makes_sense() {
    let server = Server::start_with(&[ACCEPTS]);
    let mut client = server.client();
    begin(&mut client);
    append(
        &mut client,
        &[
            event("CatalogueStockChanged", &["item:1"], json!({"item": 1, "by": 5})),
            event(
                "CatalogueOrderPlaced",
                &["item:1"],
                json!({"item": 1, "order": 3, "amount": 13, "price_minor": 5}),
            ),
            event(
                "CatalogueItemPriced",
                &["item:1", "why:sale"],
                json!({"item": 1, "price_minor": 150}),
            ),
            event(
                "CatalogueItemAdded",
                &["item:3"],
                json!({"item": 3, "name": "Third", "topic": 1, "price_minor": 1, "currency": "EUR", "stock": 1}),
            ),
        ],
    );
    let first = client.get("/v1/catalogue/items/1?consistency=local").unwrap().expect(200);
    assert_eq!(
        (number(&first, "stock"), number(&first, "sold"), &first["price"]),
        (0, 15, &json!("1.50"))
    );
    assert!(!is_done(&buy(&mut client, 1, 1, None).unwrap()));
    assert_eq!(add(&mut client, &new_item("Fourth", "1", 0)), 4);
    assert_eq!(cancel(&mut client, "1-3").unwrap().expect(200)["amount"], 13);
}

/// While others append valid and invalid events, each order is answered and every read adds up.
#[test]
fn orders_go_on_while_others_append_anything() {
    let server = Server::start_with(&[ACCEPTS]);
    let mut client = server.client().patient();
    begin(&mut client);
    restock(&mut client, 1, 1_000_000).expect(200);
    // Whether these are valid depends on the stock.
    let depends = ["CatalogueStockChanged", "CatalogueOrderPlaced", "CatalogueOrderCancelled"];
    let mut always_nonsense = nonsense();
    always_nonsense.retain(|event| !depends.iter().any(|one| event["type"] == *one));
    let (done, times) = (StopSignal::default(), size(100, 5_000));
    std::thread::scope(|scope| {
        let enough = done.at_the_end();
        let (server, done, always_nonsense) = (&server, &done, &always_nonsense);
        scope.spawn(move || {
            let mut client = server.client().patient();
            while !done.is_set() {
                append(&mut client, always_nonsense);
                append(
                    &mut client,
                    &[event("CatalogueStockChanged", &["item:2"], json!({"item": 2, "by": 1}))],
                );
            }
        });
        scope.spawn(move || {
            let mut client = server.client().patient();
            while !done.is_set() {
                let first = item(&mut client, 1);
                assert_eq!(number(&first, "stock") + number(&first, "sold"), 1_000_010, "{first}");
            }
        });
        at_once(server.address, 16, |client, number| {
            for turn in 0..times {
                let id = 1 + ((turn + number) % 2) as u64;
                let answer = buy(client, id, 1, None).unwrap();
                assert!(is_done(&answer) || id == 2, "{}", answer.text());
            }
        });
        drop(enough);
    });
    let first = client.get("/v1/catalogue/items/1?consistency=local").unwrap().expect(200);
    assert_eq!(number(&first, "sold"), 2 + (16 * times / 2) as u64);
}
