//! Requests repeated under their key: executed once and answered the same, whatever has happened
//! since.

use crate::catalogue_client::*;
use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use wellspring_patience::PATIENCE;

fn keyed(client: &mut Client, key: &str, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    client.call("POST", path, &headers, body.to_string().as_bytes()).unwrap()
}

#[track_caller]
fn is_reused(answer: &Answer) {
    assert_eq!(fault(answer).1, "idempotency-key-reused", "{}", answer.text());
    assert_eq!(answer.status, 422);
}

#[test]
fn what_was_done_under_a_key_is_done_once_and_told_again_after_a_crash() {
    const ITEMS: &str = "/v1/catalogue/items";
    const ORDERS: &str = "/v1/catalogue/orders";
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    let new = new_item("Keyed", "2.00", 10);
    let one = json!({"item": 1, "amount": 2});
    let more = json!({"item": 1, "amount": 99});
    let made = keyed(&mut client, "item", ITEMS, &new).expect(201);
    let placed = keyed(&mut client, "order", ORDERS, &one).expect(201);
    let refused = keyed(&mut client, "refused", ORDERS, &more);
    assert_eq!(fault(&refused).1, "sold-out");
    assert!(is_done(&buy(&mut client, 1, 1, Some("buy")).unwrap()));
    assert!(!is_done(&buy(&mut client, 1, 99, Some("none")).unwrap()));
    keyed(&mut client, "stock", "/v1/catalogue/items/1/stock", &json!({"by": 200})).expect(200);
    cancel(&mut client, "1-2").unwrap().expect(200);
    let before = item(&mut client, 1);
    assert_eq!((number(&before, "stock"), number(&before, "sold")), (208, 2));
    server.kill();

    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    for _ in 0..2 {
        let again = keyed(&mut client, "item", ITEMS, &new);
        assert_eq!(again.header("location"), Some("/v1/catalogue/items/1"));
        assert_eq!(again.expect(200)["id"], made["id"]);
        let again = keyed(&mut client, "order", ORDERS, &one);
        assert_eq!(again.header("location"), Some("/v1/catalogue/orders/1-1"));
        assert_eq!(again.expect(200), placed);
        // There is enough in stock by now, and still the answer is the old one.
        let again = keyed(&mut client, "refused", ORDERS, &more);
        assert_eq!(again.problem(409), refused.problem(409));
        assert!(!is_done(&buy(&mut client, 1, 99, Some("none")).unwrap()));
        assert!(is_done(&buy(&mut client, 1, 1, Some("buy")).unwrap()), "though it is cancelled");
        keyed(&mut client, "stock", "/v1/catalogue/items/1/stock", &json!({"by": 200})).expect(200);
    }
    assert_eq!(item(&mut client, 1), before);
    // A different request under a used key is refused.
    is_reused(&keyed(&mut client, "order", ORDERS, &more));
    is_reused(&keyed(&mut client, "item", ITEMS, &new_item("Other", "2.00", 10)));
    is_reused(&keyed(&mut client, "stock", "/v1/catalogue/items/1/stock", &json!({"by": 1})));
    is_reused(&keyed(&mut client, "stock", ORDERS, &one));
    is_reused(&buy(&mut client, 1, 2, Some("buy")).unwrap());
    is_reused(&buy(&mut client, 1, 2, Some("order")).unwrap());
    assert_eq!(item(&mut client, 1), before);
    assert!(is_done(&buy(&mut client, 1, 99, Some("another")).unwrap()));
}

#[test]
fn of_many_attempts_at_once_under_one_key_one_orders() {
    let server = Server::start();
    add(&mut server.client(), &new_item("Keyed", "2.00", 1_000_000));
    let rounds = size(30, 1_000);
    let ids = at_once(server.address, 8, |client, _| {
        let order = |round: usize| {
            let answer = order(client, 1, 1, Some(&format!("round {round}"))).unwrap();
            assert!([200, 201].contains(&answer.status), "{}", answer.text());
            (answer.status == 201, answer.json()["order"].as_str().unwrap().to_owned())
        };
        (0..rounds).map(order).collect::<Vec<_>>()
    });
    for round in 0..rounds {
        let of_round: Vec<_> = ids.iter().map(|ids| &ids[round]).collect();
        assert!(of_round.iter().all(|(_, id)| *id == of_round[0].1), "{of_round:?}");
        assert_eq!(of_round.iter().filter(|(is_new, _)| *is_new).count(), 1, "{of_round:?}");
    }
    assert_eq!(number(&item(&mut server.client(), 1), "sold"), rounds as u64);
}

#[test]
fn of_a_bulk_that_breaks_off_the_whole_lines_are_there_and_it_can_come_again() {
    let server = Server::start();
    let line = |n: usize| {
        let mut item = new_item(&format!("Item {n}"), "1.00", 1);
        item["sku"] = json!(format!("S-{n}"));
        format!("{item}\n")
    };
    let lines: String = (1..=700).map(line).collect();
    let sent = &lines[..lines.len() / 2];
    let head = format!(
        "POST /v1/catalogue/items HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-ndjson\r\n\
         Content-Length: {}\r\n\r\n",
        lines.len()
    );
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let mut client = server.client();
    let there = client.get("/v1/catalogue/items?limit=1000&consistency=local").unwrap().expect(200);
    let there = there["items"].as_array().unwrap();
    let whole = sent.matches('\n').count();
    assert!(there.len() <= whole, "{} of {whole}", there.len());
    let skus = there.iter().map(|item| item["sku"].as_str().unwrap().to_owned());
    assert!(skus.eq((1..=there.len()).map(|n| format!("S-{n}"))), "a prefix, each once");
    let done = put(&mut client, &lines).expect(200);
    assert_eq!(number(&done, "added") + there.len() as u64, 700, "{done}");
    assert_eq!(number(&done, "unchanged"), there.len() as u64);
}
