//! The server is killed again and again on one folder while clients order. Each order that was
//! answered is stored once; each that was not is retried under its key until it is answered, and is
//! stored once.
//!
//! `WELLSPRING_TEST_CRASH_CYCLES` sets the number of cycles (default 12).

use crate::catalogue_client::*;
use crate::client::Client;
use crate::crash_cycles::cycles;
use crate::disk::load_for;
use crate::numbered::Coins;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;

const CLIENTS: usize = 8;
const ITEMS: u64 = 5;
const STOCK: u64 = 1_000_000;
/// Few of this item are in stock: most of its orders are refused.
const RARE: u64 = 1;
const RARE_STOCK: u64 = 40;

/// An order of a client, and its answer.
#[derive(Debug, Clone)]
struct WantedOrder {
    key: String,
    item: u64,
    amount: u64,
    /// Whether it uses the bookstore's interface.
    is_bought: bool,
    told: Option<OrderAnswer>,
    /// Whether a cancellation was requested, and answered.
    cancel: Option<bool>,
}

/// The answer to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OrderAnswer {
    /// Placed; through the JSON interface with its id and time.
    Placed(Option<(String, String)>),
    SoldOut,
}

/// A final answer, or the end of the connection: a stopping server may refuse.
fn answered(answer: io::Result<crate::client::Answer>) -> io::Result<crate::client::Answer> {
    let answer = answer?;
    match answer.status {
        500 | 503 => Err(io::ErrorKind::ConnectionAborted.into()),
        _ => Ok(answer),
    }
}

impl WantedOrder {
    fn ask(&self, client: &mut Client) -> io::Result<OrderAnswer> {
        if self.is_bought {
            let answer = answered(buy(client, self.item, self.amount, Some(&self.key)))?;
            return Ok(if is_done(&answer) {
                OrderAnswer::Placed(None)
            } else {
                OrderAnswer::SoldOut
            });
        }
        let answer = answered(order(client, self.item, self.amount, Some(&self.key)))?;
        if answer.status == 409 {
            assert_eq!(fault(&answer).1, "sold-out");
            return Ok(OrderAnswer::SoldOut);
        }
        assert!([200, 201].contains(&answer.status), "{}", answer.text());
        let placed = answer.json();
        assert_eq!((number(&placed, "item"), number(&placed, "amount")), (self.item, self.amount));
        let text = |name: &str| placed[name].as_str().unwrap().to_owned();
        Ok(OrderAnswer::Placed(Some((text("order"), text("placed_at")))))
    }
}

/// A client with everything that it ever wanted.
#[derive(Debug, Default)]
struct Buyer {
    name: usize,
    wanted: Vec<WantedOrder>,
}

impl Buyer {
    /// Asks again for what was not answered, then goes on until the connection is cut.
    fn buy_until_cut(&mut self, address: SocketAddr, cycle: usize) {
        let Ok(client) = Client::connect(address) else { return };
        let mut client = client.patient();
        let mut coins = Coins::new((cycle * 100 + self.name) as u64);
        while self.step(&mut client, &mut coins).is_ok() {}
    }

    fn settle(&mut self, client: &mut Client) -> io::Result<()> {
        for wanted in &mut self.wanted {
            if wanted.told.is_none() {
                wanted.told = Some(wanted.ask(client)?);
            }
            if let (Some(false), Some(OrderAnswer::Placed(Some((id, _))))) =
                (wanted.cancel, &wanted.told)
            {
                answered(cancel(client, id))?.expect(200);
                wanted.cancel = Some(true);
            }
        }
        Ok(())
    }

    fn step(&mut self, client: &mut Client, coins: &mut Coins) -> io::Result<()> {
        self.settle(client)?;
        if coins.below(5) == 0 && !self.wanted.is_empty() {
            // What was answered once is answered the same again.
            let at = coins.below(self.wanted.len() as u64) as usize;
            let again = self.wanted[at].ask(client)?;
            assert_eq!(Some(&again), self.wanted[at].told.as_ref(), "{:?}", self.wanted[at]);
            if matches!(again, OrderAnswer::Placed(Some(_))) && self.wanted[at].cancel.is_none() {
                self.wanted[at].cancel = Some(false);
            }
            return Ok(());
        }
        self.wanted.push(WantedOrder {
            key: format!("buyer-{}-{}", self.name, self.wanted.len()),
            item: 1 + coins.below(ITEMS),
            amount: 1 + coins.below(3),
            is_bought: coins.below(2) == 0,
            told: None,
            cancel: None,
        });
        self.settle(client)
    }
}

/// Checks everything that the buyers know. All that they wanted has been answered.
fn check(client: &mut Client, buyers: &[Buyer]) {
    let wanted: Vec<&WantedOrder> = buyers.iter().flat_map(|buyer| &buyer.wanted).collect();
    let mut found: HashMap<String, Value> = HashMap::new();
    for id in 1..=ITEMS {
        let of_item = orders(client, id);
        let standing = of_item.iter().filter(|order| order["state"] == "placed");
        let sold: u64 = standing.map(|order| number(order, "amount")).sum();
        let now = item(client, id);
        assert_eq!(number(&now, "sold"), sold, "{now}");
        let first = if id == RARE { RARE_STOCK } else { STOCK };
        assert_eq!(number(&now, "stock"), first - sold, "{now}");
        let placed = wanted.iter().filter(|wanted| wanted.item == id);
        let placed = placed.filter(|wanted| matches!(wanted.told, Some(OrderAnswer::Placed(_))));
        let placed: Vec<u64> = placed.map(|wanted| wanted.amount).collect();
        assert_eq!(of_item.len(), placed.len(), "orders of item {id}: each once");
        let amounts: u64 = of_item.iter().map(|order| number(order, "amount")).sum();
        assert_eq!(amounts, placed.iter().sum::<u64>());
        found.extend(
            of_item.into_iter().map(|order| (order["order"].as_str().unwrap().to_owned(), order)),
        );
    }
    let mut ids = HashSet::new();
    for wanted in wanted {
        let Some(OrderAnswer::Placed(Some((id, placed_at)))) = &wanted.told else { continue };
        assert!(ids.insert(id), "{id} was told twice: {wanted:?}");
        let order = found.get(id).unwrap_or_else(|| panic!("{id} is lost: {wanted:?}"));
        let state = if wanted.cancel == Some(true) { "cancelled" } else { "placed" };
        let expected = (json!(wanted.amount), json!(state), json!(placed_at));
        let is = (order["amount"].clone(), order["state"].clone(), order["placed_at"].clone());
        assert_eq!(is, expected, "{wanted:?}");
    }
}

#[test]
fn kill_9_loses_no_order_that_was_answered_and_makes_none_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut buyers: Vec<Buyer> =
        (0..CLIENTS).map(|name| Buyer { name, wanted: Vec::new() }).collect();
    {
        let server = Server::start_in(dir.path(), &[]);
        let mut client = server.client();
        add(&mut client, &new_item("Rare", "5.00", RARE_STOCK));
        for _ in 1..ITEMS {
            add(&mut client, &new_item("Plenty", "5.00", STOCK));
        }
        server.kill();
    }
    for cycle in 0..cycles() {
        let server = Server::start_in(dir.path(), &[]);
        let address = server.address;
        std::thread::scope(|scope| {
            for buyer in &mut buyers {
                scope.spawn(move || buyer.buy_until_cut(address, cycle));
            }
            load_for(30 + (cycle as u64 * 61) % 240);
            server.kill();
        });
        let again = Server::start_in(dir.path(), &[]);
        let mut client = again.client().patient();
        buyers.iter_mut().for_each(|buyer| buyer.settle(&mut client).expect("it answers"));
        check(&mut client, &buyers);
        again.kill();
    }
    let wanted: usize = buyers.iter().map(|buyer| buyer.wanted.len()).sum();
    println!("{wanted} orders in {} cycles", cycles());
    assert!(wanted > cycles() * 20, "the load reached the server: {wanted}");
}
