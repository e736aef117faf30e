//! Concurrent orders of many clients: no item is sold beyond its stock, none is lost, and reads
//! always add up.

use crate::catalogue_client::*;
use crate::client::Client;
use crate::done::StopSignal;
use crate::numbered::Coins;
use crate::server::Server;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const CLIENTS: usize = 64;

/// Orders one of an item through one interface or the other; returns whether it was in stock.
fn buys_one(client: &mut Client, number: usize, id: u64) -> bool {
    if number.is_multiple_of(2) {
        return is_done(&buy(client, id, 1, None).unwrap());
    }
    let answer = order(client, id, 1, None).unwrap();
    if answer.status == 201 {
        return true;
    }
    assert_eq!(fault(&answer), (409, "sold-out".to_owned(), "amount".to_owned()));
    false
}

/// Reads the first item until `done` is set: stock and sold always add up to `sum`, and no answer
/// shows less than an earlier one. Returns the number of reads.
fn look(server: &Server, done: &StopSignal, is_lean: bool, sum: u64) -> usize {
    let mut client = server.client();
    if !is_lean {
        // From here on the general stack serves the connection.
        client.get("/v1/head").unwrap().expect(200);
    }
    let (mut looks, mut sold) = (0, 0);
    while !done.is_set() {
        let item = item(&mut client, 1);
        assert_eq!(number(&item, "stock") + number(&item, "sold"), sum, "{item}");
        assert!(number(&item, "sold") >= sold, "it goes back: {item} after {sold}");
        sold = number(&item, "sold");
        let entry = client.get("/lookup/1").unwrap().expect(200);
        assert!(number(&entry["result"], "stock") <= sum - sold, "it goes back: {entry}");
        looks += 1;
    }
    looks
}

#[test]
fn of_a_thousand_in_stock_a_thousand_are_sold_and_every_look_adds_up() {
    for lean in crate::server::BOTH_LOOPS {
        let server = Server::start_with(&lean);
        add(&mut server.client(), &new_item("Rare", "19.90", 1_000));
        let times = size(50, 10_000);
        let done = StopSignal::default();
        std::thread::scope(|scope| {
            let enough = done.at_the_end();
            let (server, done) = (&server, &done);
            let readers: Vec<_> = (0..4)
                .map(|at| scope.spawn(move || look(server, done, at % 2 == 0, 1_000)))
                .collect();
            let sold = at_once(server.address, CLIENTS, |client, number| {
                (0..times).filter(|_| buys_one(client, number, 1)).count()
            });
            assert_eq!(sold.iter().sum::<usize>(), 1_000, "{sold:?}");
            drop(enough);
            for reader in readers {
                assert!(reader.join().unwrap() > 0, "it looked");
            }
        });
        let mut client = server.client();
        let left = item(&mut client, 1);
        assert_eq!((number(&left, "stock"), number(&left, "sold")), (0, 1_000));
        let orders = orders(&mut client, 1);
        let expected: Vec<String> = (1..=1_000).rev().map(|n| format!("1-{n}")).collect();
        assert!(orders.iter().map(|order| order["order"].as_str().unwrap()).eq(expected));
        assert_eq!(events_of(&mut client, "CatalogueOrderPlaced"), 1_000);
        assert!(!buys_one(&mut client, 0, 1) && !buys_one(&mut client, 1, 1));
    }
}

/// What was added and taken, as requested and as answered.
#[derive(Default)]
struct StockMoves {
    asked: AtomicU64,
    answered: AtomicU64,
}

/// Adds and takes until `done` is set.
fn move_stock(server: &Server, done: &StopSignal, [into, out]: &[StockMoves; 2]) {
    let (mut client, mut coins) = (server.client().patient(), Coins::new(3));
    while !done.is_set() {
        let by = 1 + coins.below(9);
        if coins.below(3) > 0 {
            into.asked.fetch_add(by, SeqCst);
            restock(&mut client, 1, by as i64).expect(200);
            into.answered.fetch_add(by, SeqCst);
            continue;
        }
        out.asked.fetch_add(by, SeqCst);
        let answer = restock(&mut client, 1, -(by as i64));
        if answer.status == 200 {
            out.answered.fetch_add(by, SeqCst);
        } else {
            assert_eq!(fault(&answer), (409, "stock-too-low".to_owned(), "by".to_owned()));
            out.asked.fetch_sub(by, SeqCst);
        }
    }
}

/// Orders, and now and then cancels; gives how many it has in the end.
fn order_and_cancel(client: &mut Client, number_of_client: usize, times: usize) -> u64 {
    let mut coins = Coins::new(number_of_client as u64);
    let mut mine: Vec<(String, u64)> = Vec::new();
    for _ in 0..times {
        let at = coins.below(3) as usize;
        if at == 0 && !mine.is_empty() {
            let (id, amount) = mine.swap_remove(coins.below(mine.len() as u64) as usize);
            // Twice comes to the same as once.
            for _ in 0..2 {
                let cancelled = cancel(client, &id).unwrap().expect(200);
                assert_eq!(
                    (&cancelled["state"], &cancelled["amount"]),
                    (&json!("cancelled"), &json!(amount))
                );
            }
            continue;
        }
        let amount = 1 + coins.below(4);
        let answer = order(client, 1, amount, None).unwrap();
        if answer.status == 409 {
            assert_eq!(fault(&answer).1, "sold-out");
            continue;
        }
        let placed = answer.expect(201);
        mine.push((placed["order"].as_str().unwrap().to_owned(), amount));
    }
    mine.iter().map(|(_, amount)| amount).sum()
}

#[test]
fn with_restocks_and_cancels_in_between_every_look_adds_up() {
    const FIRST: u64 = 50;
    let server = Server::start();
    add(&mut server.client(), &new_item("Moving", "1", FIRST));
    let done = StopSignal::default();
    let moved = <[StockMoves; 2]>::default();
    let had = std::thread::scope(|scope| {
        let enough = done.at_the_end();
        let (server, done, moved) = (&server, &done, &moved);
        scope.spawn(move || move_stock(server, done, moved));
        for _ in 0..3 {
            scope.spawn(move || {
                let mut client = server.client();
                let [into, out] = moved;
                while !done.is_set() {
                    let before = [&into.answered, &out.answered].map(|count| count.load(SeqCst));
                    let item = item(&mut client, 1);
                    let after = [&into.asked, &out.asked].map(|count| count.load(SeqCst));
                    let sum = number(&item, "stock") + number(&item, "sold");
                    let may_be =
                        (FIRST + before[0]).saturating_sub(after[1])..=FIRST + after[0] - before[1];
                    assert!(may_be.contains(&sum), "{sum} is not within {may_be:?}: {item}");
                }
            });
        }
        let had = at_once(server.address, CLIENTS, |client, number| {
            order_and_cancel(client, number, size(40, 2_000))
        });
        drop(enough);
        had.iter().sum::<u64>()
    });
    let mut client = server.client();
    let left = item(&mut client, 1);
    let [into, out] = moved.each_ref().map(|moved| moved.answered.load(SeqCst));
    assert_eq!(number(&left, "sold"), had, "{left}");
    assert_eq!(number(&left, "stock") + had, FIRST + into - out, "{left}");
    let standing = orders(&mut client, 1).into_iter().filter(|order| order["state"] == "placed");
    assert_eq!(standing.map(|order| number(&order, "amount")).sum::<u64>(), had);
}

#[test]
fn orders_of_one_hot_item_and_of_many_all_succeed() {
    let server = Server::start();
    let items = 50;
    stock_up(&mut server.client(), items, 1_000_000);
    let times = size(60, 2_000);
    for hot in [true, false] {
        let ordered = at_once(server.address, CLIENTS, |client, number| {
            let mut coins = Coins::new(number as u64);
            for _ in 0..times {
                let id = if hot { 1 } else { 1 + coins.below(items as u64) };
                match number % 2 {
                    0 => assert!(is_done(&buy(client, id, 2, None).unwrap())),
                    _ => drop(order(client, id, 2, None).unwrap().expect(201)),
                }
            }
        });
        assert_eq!(ordered.len(), CLIENTS);
    }
    let mut client = server.client();
    let sold = (1..=items as u64).map(|id| number(&item(&mut client, id), "sold"));
    assert_eq!(sold.sum::<u64>(), (2 * 2 * CLIENTS * times) as u64);
}

#[test]
fn one_sku_and_one_topic_are_added_once_however_many_ask_at_once() {
    let server = Server::start();
    for round in 0..size(20, 400) {
        let mut new = new_item(&format!("Round {round}"), "1", 0);
        new["sku"] = json!(format!("S-{round}"));
        new["topic"] = json!(format!("T {round}"));
        let statuses = at_once(server.address, 8, |client, _| {
            client.post("/v1/catalogue/items", &new).unwrap().status
        });
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [201, 409].contains(status)), "{statuses:?}");
    }
    let topics = server.client().get("/v1/catalogue/topics?limit=1000").unwrap().expect(200);
    let topics = topics["topics"].as_array().unwrap();
    assert_eq!(topics.len(), size(20, 400));
    assert!(topics.iter().all(|topic| topic["items"] == 1), "{topics:?}");
}

#[test]
fn of_many_changes_of_the_same_version_one_succeeds() {
    let server = Server::start();
    let mut client = server.client();
    let id = add(&mut client, &new_item("Seen", "1.00", 0));
    for round in 0..size(30, 500) {
        let path = format!("/v1/catalogue/items/{id}");
        let seen = client.get(&path).unwrap();
        let etag = seen.header("etag").expect("an entity tag").to_owned();
        let statuses = at_once(server.address, 6, |client, number| {
            let changes = json!({"price": format!("{}.{number:02}", round + 2)});
            change(client, id, &changes, &[("If-Match", &etag)]).status
        });
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [200, 412].contains(status)), "{statuses:?}");
    }
    let prices = client.get(&format!("/v1/catalogue/items/{id}/prices")).unwrap().expect(200);
    assert_eq!(prices["prices"].as_array().unwrap().len(), 1 + size(30, 500));
}
