//! Requests of catalogue clients: the bookstore's routes and the JSON interface.

use crate::client::{Answer, Client};
use crate::program::program_path;
use crate::server::Server;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Barrier;

/// The server accepts events of the catalogue from any writer.
pub const ACCEPTS: &str = "--catalogue-accept-events";

/// The size for CI, or the size in the issue if `WELLSPRING_CATALOGUE_FULL` is set.
pub fn size(of_ci: usize, full: usize) -> usize {
    if std::env::var_os("WELLSPRING_CATALOGUE_FULL").is_some() { full } else { of_ci }
}

/// A new item without a SKU.
pub fn new_item(name: &str, price: &str, stock: u64) -> Value {
    json!({"name": name, "topic": "Things", "price": price, "stock": stock})
}

/// Adds an item; returns its number.
#[track_caller]
pub fn add(client: &mut Client, new: &Value) -> u64 {
    let added = client.post("/v1/catalogue/items", new).unwrap().expect(201);
    added["id"].as_u64().expect("a number")
}

/// Adds this many items, each with this stock.
#[track_caller]
pub fn stock_up(client: &mut Client, items: usize, stock: u64) {
    let line = |n: usize| {
        let mut item = new_item(&format!("Item {n}"), "9.90", stock);
        item["sku"] = json!(format!("SKU-{n}"));
        item["topic"] = json!(format!("Topic {}", n % 7));
        format!("{item}\n")
    };
    let lines: String = (1..=items).map(line).collect();
    let done = put(client, &lines).expect(200);
    assert_eq!(done["added"], items, "{done}");
}

/// Sends items, one per line.
pub fn put(client: &mut Client, lines: &str) -> Answer {
    let headers = [("Content-Type", "application/x-ndjson")];
    client.call("POST", "/v1/catalogue/items", &headers, lines.as_bytes()).unwrap()
}

/// An item.
#[track_caller]
pub fn item(client: &mut Client, id: u64) -> Value {
    client.get(&format!("/v1/catalogue/items/{id}")).unwrap().expect(200)
}

pub fn change(client: &mut Client, id: u64, changes: &Value, headers: &[(&str, &str)]) -> Answer {
    let headers = [&[("Content-Type", "application/json")], headers].concat();
    let path = format!("/v1/catalogue/items/{id}");
    client.call("PATCH", &path, &headers, changes.to_string().as_bytes()).unwrap()
}

/// Adds to the stock of an item, or takes from it.
pub fn restock(client: &mut Client, id: u64, by: i64) -> Answer {
    client.post(&format!("/v1/catalogue/items/{id}/stock"), &json!({"by": by})).unwrap()
}

/// Orders through the JSON interface.
pub fn order(client: &mut Client, id: u64, amount: u64, key: Option<&str>) -> io::Result<Answer> {
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(key.map(|key| ("Idempotency-Key", key)));
    let body = json!({"item": id, "amount": amount}).to_string();
    client.call("POST", "/v1/catalogue/orders", &headers, body.as_bytes())
}

/// Orders as the bookstore's clients do.
pub fn buy(client: &mut Client, id: u64, amount: u64, key: Option<&str>) -> io::Result<Answer> {
    let key = key.map(|key| ("Idempotency-Key", key));
    let headers: Vec<_> = key.into_iter().collect();
    client.call("POST", &format!("/order/{id}?amount={amount}"), &headers, b"")
}

pub fn cancel(client: &mut Client, order: &str) -> io::Result<Answer> {
    client.call("DELETE", &format!("/v1/catalogue/orders/{order}"), &[], b"")
}

/// The bookstore's answer to an order or an update.
#[track_caller]
pub fn is_done(answer: &Answer) -> bool {
    match answer.expect(200) {
        Value::Bool(done) => done,
        other => panic!("{other}"),
    }
}

/// An integer member of an answer.
#[track_caller]
pub fn number(of: &Value, member: &str) -> u64 {
    of[member].as_u64().unwrap_or_else(|| panic!("{member} of {of}"))
}

/// The problem in an answer: its status, the last part of its type, and its field.
#[track_caller]
pub fn fault(answer: &Answer) -> (u16, String, String) {
    let problem = answer.problem(answer.status);
    let slug = problem["type"].as_str().unwrap().trim_start_matches("/problems/").to_owned();
    (answer.status, slug, problem["field"].as_str().unwrap_or_default().to_owned())
}

/// Every order of an item, newest first.
pub fn orders(client: &mut Client, id: u64) -> Vec<Value> {
    let mut orders = Vec::new();
    let mut path = format!("/v1/catalogue/orders?item={id}&limit=1000");
    loop {
        let page = client.get(&path).unwrap().expect(200);
        orders.extend(page["orders"].as_array().unwrap().iter().cloned());
        match page["next"].as_u64() {
            Some(next) => path = format!("/v1/catalogue/orders?item={id}&limit=1000&before={next}"),
            None => return orders,
        }
    }
}

/// How many events of a type are in the log.
pub fn events_of(client: &mut Client, event_type: &str) -> usize {
    let headers = [("Accept", "application/x-ndjson")];
    let answer = client.call("GET", &format!("/v1/events?type={event_type}"), &headers, b"");
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200);
    answer.text().lines().count()
}

/// Runs clients concurrently, each on a connection of its own; returns their results.
pub fn at_once<T: Send>(
    address: SocketAddr,
    clients: usize,
    work: impl Fn(&mut Client, usize) -> T + Sync,
) -> Vec<T> {
    let start = Barrier::new(clients);
    std::thread::scope(|scope| {
        let (start, work) = (&start, &work);
        let run = |number: usize| {
            let mut client = Client::connect(address).expect("the server accepts").patient();
            start.wait();
            work(&mut client, number)
        };
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Runs a tool of the program.
pub fn tool(server: &Server, words: &[&str]) {
    let ran = Command::new(program_path())
        .args(words)
        .args(["--url", &server.url()])
        .env_remove("WELLSPRING_URL")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
