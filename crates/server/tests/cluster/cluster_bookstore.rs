//! The bookstore on three machines (`docs/catalogue.md`): its commands are typed as the page shows
//! them. Then 64 buyers buy all that is in stock, while the lead moves, the node that orders is
//! killed and another one hears nothing.

use crate::catalogue_client::{buy, is_done, item, number};
use crate::client::Client;
use crate::done::StopSignal;
use crate::following::flags_of;
use crate::nodes::{NAMES, Nodes, RAFT, until};
use crate::program::run;
use crate::transcript::{NODES, ask_at, commands, compare, is_shown, words};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use wellspring_patience::PATIENCE;

const BUYERS: usize = 64;
const STOCK: u64 = 1_000;
/// Sold on the page.
const BEFORE: u64 = 2;
const LINEARIZABLE: &str = "/v1/catalogue/items/1?consistency=linearizable&wait_ms=300";

/// Types the commands of the page that are sent to several nodes.
fn type_the_page(nodes: &Nodes) {
    let is_ours = |command: &str| {
        command.contains("cluster") || NODES.iter().any(|node| command.contains(node))
    };
    let typed = commands("catalogue.md").into_iter().filter(|step| is_ours(&step.command));
    let typed: Vec<_> = typed.collect();
    assert!(typed.len() >= 12, "{} commands", typed.len());
    for step in &typed {
        let named = NODES.iter().position(|name| step.command.contains(name));
        if step.command.starts_with("curl ") {
            let node = named.expect("a node");
            let at = (NODES[node], nodes.address(node));
            compare(step, &ask_at(at, &step.command, ("$", "$")));
            continue;
        }
        let mut typed = words(&step.command);
        match typed[1].as_str() {
            // They run: with these flags.
            "serve" => {
                let node = NAMES.iter().position(|name| typed.contains(&(*name).to_owned()));
                let node = node.expect("a node");
                let mut flags = flags_of(NAMES[node], RAFT, Path::new("cluster.key"));
                flags.extend(["--listen".to_owned(), format!("127.0.0.1:400{}", node + 1)]);
                flags.extend(["--data".to_owned(), format!("./{}", NAMES[node])]);
                let mut shown = typed.split_off(2);
                shown.sort_unstable();
                flags.sort_unstable();
                assert_eq!(shown, flags, "{}", step.command);
            }
            _ if typed.contains(&"key".to_owned()) => {}
            _ => {
                for (node, name) in NODES.iter().enumerate() {
                    let address = nodes.address(node).to_string();
                    typed.iter_mut().for_each(|word| *word = word.replace(name, &address));
                }
                let words: Vec<&str> = typed[1..].iter().map(String::as_str).collect();
                let told = run(&words).done();
                assert!(
                    is_shown(&step.shown.concat(), told.trim_end()) || step.shown.is_empty(),
                    "{told}"
                );
            }
        }
    }
}

/// What has come of the orders so far.
#[derive(Default)]
struct Sales {
    sold: AtomicU64,
    /// So many may be sold by now: something is left to sell at each fault.
    allowed: AtomicU64,
    /// Answers that say nothing definite, and connections that were lost.
    unclear: AtomicU64,
}

impl Sales {
    fn sold(&self) -> u64 {
        self.sold.load(SeqCst)
    }

    /// Has buyers go on while something happens; returns once they have bought so many.
    fn sell<T>(&self, many: u64, meanwhile: impl FnOnce() -> T) -> T {
        let allowed = self.allowed.fetch_add(many, SeqCst) + many;
        until("buyers go on", || self.sold() + many > allowed);
        let happened = meanwhile();
        until("as many are sold", || self.sold() >= allowed);
        happened
    }
}

/// Buys one at a time until nothing is left, each at any node that answers; returns how many.
fn buy_all(nodes: &[SocketAddr], buyer: usize, sales: &Sales) -> u64 {
    let mut bought = 0;
    loop {
        let key = format!("{buyer}-{bought}");
        let deadline = Instant::now() + PATIENCE;
        let is_bought = (buyer..).find_map(|at| {
            assert!(Instant::now() < deadline, "{key} has no answer");
            let answer = Client::connect(nodes[at % nodes.len()])
                .and_then(|mut client| buy(&mut client, 1, 1, Some(&key)));
            match answer {
                Ok(answer) if !matches!(answer.status, 500 | 503) => Some(is_done(&answer)),
                _ => {
                    sales.unclear.fetch_add(1, SeqCst);
                    thread::sleep(Duration::from_millis(20));
                    None
                }
            }
        });
        if is_bought != Some(true) {
            return bought;
        }
        bought += 1;
        sales.sold.fetch_add(1, SeqCst);
        while sales.sold() >= sales.allowed.load(SeqCst) {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Looks at a node until `done` is set: stock and sales add up, and a linearizable answer has every
/// order that was answered. Returns how many of these there were.
fn look(address: SocketAddr, sales: &Sales, done: &StopSignal) -> u64 {
    let mut confirmed = 0;
    while !done.is_set() {
        let answered = BEFORE + sales.sold();
        for (path, at_least) in [("/v1/catalogue/items/1", 0), (LINEARIZABLE, answered)] {
            let answer = Client::connect(address).and_then(|mut client| client.get(path));
            let Ok(answer) = answer else { continue };
            if answer.status == 200 {
                let item = answer.json();
                assert_eq!(number(&item, "stock") + number(&item, "sold"), STOCK + BEFORE);
                assert!(number(&item, "sold") >= at_least, "{answered} were answered: {item}");
                confirmed += u64::from(at_least > 0);
            } else {
                assert_eq!(answer.status, 503, "{}", answer.text());
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    confirmed
}

#[test]
fn the_bookstore_sells_what_it_has_while_nodes_die_and_are_cut_off() {
    let mut nodes = Nodes::start(RAFT.to_owned(), &[]);
    type_the_page(&nodes);
    let addresses = [0, 1, 2].map(|node| nodes.address(node));
    let (sales, done) = (Sales::default(), StopSignal::default());
    thread::scope(|scope| {
        let ends = done.at_the_end();
        let (sales, done, addresses) = (&sales, &done, &addresses);
        let looks = addresses.map(|address| scope.spawn(move || look(address, sales, done)));
        let buyers: Vec<_> = (0..BUYERS)
            .map(|buyer| scope.spawn(move || buy_all(addresses, buyer, sales)))
            .collect();
        for to in ["c", "b"] {
            let url = nodes.node(0).url();
            let pin = ["cluster", "transfer", "--log", "main", "--to", to, "--url", &url];
            sales.sell(100, || run(&pin).done());
        }
        let to = nodes.followers()[0];
        let url = nodes.node(to).url();
        let transfer = ["cluster", "transfer", "--to", NAMES[to], "--url", &url];
        sales.sell(100, || run(&transfer).done());
        assert_eq!(sales.unclear.load(SeqCst), 0, "a request failed");
        let orderer = nodes.leader();
        sales.sell(200, || nodes.kill(orderer));
        nodes.start_again(orderer);
        let follower = nodes.followers()[0];
        sales.sell(200, || nodes.node(follower).signal("STOP"));
        nodes.node(follower).signal("CONT");
        sales.sell(100, || cut_off(&nodes));
        sales.allowed.store(u64::MAX, SeqCst);
        let bought: u64 = buyers.into_iter().map(|buyer| buyer.join().unwrap()).sum();
        assert_eq!(bought, STOCK);
        drop(ends);
        for looked in looks {
            assert!(looked.join().unwrap() > 10, "it looked");
        }
    });
    for (node, name) in NAMES.iter().enumerate() {
        let mut client = nodes.client(node);
        let left = client.get(&LINEARIZABLE.replace("300", "30000")).unwrap().expect(200);
        let left = [number(&left, "stock"), number(&left, "sold")];
        assert_eq!(left, [0, STOCK + BEFORE], "at {name}");
    }
}

/// A node that hears no other one answers from what it has, refuses the rest, and heals.
fn cut_off(nodes: &Nodes) {
    let alone = nodes.followers()[0];
    let others: Vec<usize> = (0..NAMES.len()).filter(|&node| node != alone).collect();
    others.iter().for_each(|&node| nodes.node(node).signal("STOP"));
    let mut client = nodes.client(alone);
    let cached = item(&mut client, 1);
    assert_eq!(number(&cached, "stock") + number(&cached, "sold"), STOCK + BEFORE, "{cached}");
    let refused = client.get(LINEARIZABLE).unwrap().problem(503);
    assert_eq!(refused["type"], "/problems/not-confirmed", "{refused}");
    others.iter().for_each(|&node| nodes.node(node).signal("CONT"));
    until("it hears the others", || {
        client.get(LINEARIZABLE).is_ok_and(|answer| answer.status == 200)
    });
}
