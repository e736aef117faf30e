//! The server is stopped under the load of users of a link shortener.
//!
//! Every link whose 201 was received leads to its URL afterwards. With SIGTERM every answered click
//! is counted; with `kill -9` only the newest clicks of each connection may be missing, those
//! answered within the loss window before the kill. The clicks of each user are distinguished by
//! their referrer.
//!
//! `WELLSPRING_TEST_CRASH_CYCLES` sets the number of cycles (default 12), for each of the two.

use crate::client::Client;
use crate::crash_cycles::slowest_barrier;
use crate::crash_cycles::{cycles, flags};
use crate::disk::load_for;
use crate::done::StopSignal;
use crate::links_load::{Connections, KnownLinks, Ledger, Link, use_until_cut};
use crate::numbered::read_after;
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time from an answer to a `kill -9` that loses its click. Documented are 2 ms plus a
/// flush; the rest is for a loaded machine.
const WINDOW: Duration = Duration::from_millis(250);
const USERS: usize = 6;
/// Cycles on one folder.
const FOLDER_CYCLES: usize = 4;

/// What must exist after a restart, and what may.
#[derive(Default)]
struct Book {
    made: Vec<Arc<Link>>,
    wanted: HashSet<String>,
    /// Clicks of each code in the log.
    clicks: HashMap<String, u64>,
    position: u64,
}

/// The losses of a stop.
#[derive(Debug, Default)]
struct Toll {
    answered: usize,
    missing: usize,
    /// From the answer of a missing click to the stop.
    longest: Duration,
    /// Lookups of links while it ran.
    looks: u64,
}

impl Book {
    /// Runs users for a while, until `stop` has stopped the server.
    fn load<T>(
        &self,
        address: SocketAddr,
        cycle: usize,
        stop: impl FnOnce() -> T,
    ) -> (Vec<Ledger>, T) {
        let count = |code: &str| self.clicks.get(code).copied().unwrap_or(0);
        let links = self.made.iter();
        let links =
            links.map(|link| Link::new(link.code.clone(), link.url.clone(), count(&link.code)));
        let known = KnownLinks::of(links.collect());
        std::thread::scope(|scope| {
            let known = &known;
            let users: Vec<_> = (0..USERS)
                .map(|at| {
                    let ways = if at % 2 == 0 { Connections::Two } else { Connections::One };
                    let (name, seed) = (format!("c{cycle}u{at}"), (cycle * 100 + at) as u64);
                    scope.spawn(move || use_until_cut(address, known, &name, ways, seed))
                })
                .collect();
            // Between the first request and some hundred flushes.
            load_for(5 + (cycle as u64 * 61) % 240);
            let stopped = stop();
            (users.into_iter().map(|user| user.join().expect("a user")).collect(), stopped)
        })
    }

    /// Reads the log after a restart and compares it with what the users know: the clicks of each
    /// user are there in order up to some point, and so is each link it was answered.
    fn reckon(&mut self, client: &mut Client, ledgers: &[Ledger], stopped: Instant) -> Toll {
        let mut of_users: HashMap<String, Vec<String>> = HashMap::new();
        for event in read_after(client, self.position) {
            self.position = event["position"].as_u64().unwrap();
            if event["type"] == "LinkClicked" {
                let code = event["tags"][0].as_str().unwrap().strip_prefix("clicked:").unwrap();
                let referrer = event["data"]["referrer"].as_str().unwrap();
                of_users.entry(referrer.to_owned()).or_default().push(code.to_owned());
                *self.clicks.entry(code.to_owned()).or_default() += 1;
            }
        }
        let mut toll = Toll::default();
        for ledger in ledgers {
            let there = of_users.remove(&ledger.referrer).unwrap_or_default();
            let sent: Vec<&str> = ledger.followed.iter().map(|f| f.code.as_str()).collect();
            let same = there.iter().zip(&sent).take_while(|(is, sent)| is == sent).count();
            assert!(
                same == there.len(),
                "{} ({:?}): click {same} of {} there is another than of the {} sent",
                ledger.referrer,
                ledger.connections,
                there.len(),
                sent.len()
            );
            toll.answered += ledger.followed.iter().filter(|f| f.answered.is_some()).count();
            for answered in ledger.followed[same..].iter().filter_map(|f| f.answered) {
                toll.missing += 1;
                toll.longest = toll.longest.max(stopped.saturating_duration_since(answered));
            }
            toll.looks += ledger.looks;
            self.made.extend(ledger.made.iter().cloned());
            self.wanted.extend(ledger.wanted.iter().cloned());
        }
        assert!(of_users.is_empty(), "clicks of nobody: {of_users:?}");
        toll
    }

    /// Checks the links themselves: all answered ones exist with their targets; others only if
    /// requested; and each has the clicks that are in the log.
    fn check(&self, client: &mut Client) {
        let listed: Vec<Value> = listed(client, "limit=1000&order=asc");
        let urls: HashMap<String, String> = listed
            .iter()
            .map(|link| (code_of(link), link["original_url"].as_str().unwrap().to_owned()))
            .collect();
        assert_eq!(urls.len(), listed.len(), "a code is repeated");
        let distinct: HashSet<&String> = urls.values().collect();
        assert_eq!(distinct.len(), urls.len(), "a link was made twice");
        assert!(distinct.iter().all(|url| self.wanted.contains(*url)), "a link of nobody");
        for link in &self.made {
            assert_eq!(urls.get(&link.code), Some(&link.url), "{} was answered", link.code);
            leads_to(&head_of(client, &format!("/{}", link.code)).unwrap(), &link.url);
        }
        for link in &listed {
            let in_log = self.clicks.get(&code_of(link)).copied().unwrap_or(0);
            assert_eq!(link["clicks"], json!(in_log), "{link}");
            assert_eq!(link, &details(client, &code_of(link)));
        }
    }
}

/// Runs `cycle` repeatedly, now and then on a new folder. Returns the sum of the losses.
fn run(mut cycle: impl FnMut(&Path, &mut Book, usize) -> Toll) -> Toll {
    let (mut dir, mut book) = (tempfile::tempdir().unwrap(), Book::default());
    let mut all = Toll::default();
    for number in 0..cycles() {
        if number.is_multiple_of(FOLDER_CYCLES) {
            (dir, book) = (tempfile::tempdir().unwrap(), Book::default());
        }
        let toll = cycle(dir.path(), &mut book, number);
        all.answered += toll.answered;
        all.missing += toll.missing;
        all.looks += toll.looks;
        all.longest = all.longest.max(toll.longest);
    }
    println!("in {} cycles: {all:?}", cycles());
    let enough = cycles() * 20;
    assert!(all.answered > enough && all.looks > 0, "the load reached the server: {all:?}");
    all
}

#[test]
fn sigterm_at_any_moment_loses_no_link_and_no_click() {
    let all = run(|dir, book, cycle| {
        let mut server = Server::start_in(dir, &flags(cycle));
        let address = server.address;
        let (ledgers, status) = book.load(address, cycle, || server.terminate());
        assert!(status.success(), "{status}");
        let again = Server::start_in(dir, &flags(cycle + 1));
        let mut client = again.client().patient();
        let toll = book.reckon(&mut client, &ledgers, Instant::now());
        book.check(&mut client);
        toll
    });
    assert_eq!(all.missing, 0, "{all:?}");
}

#[test]
fn kill_9_loses_no_link_and_only_the_newest_clicks_within_the_window() {
    run(|dir, book, cycle| {
        let server = Server::start_in(dir, &flags(cycle));
        let (address, done) = (server.address, StopSignal::default());
        let (ledgers, killed, barrier) = std::thread::scope(|scope| {
            let enough = done.at_the_end();
            let yardstick = scope.spawn(|| slowest_barrier(dir, &done));
            let (ledgers, killed) = book.load(address, cycle, || {
                let killed = Instant::now();
                server.kill();
                killed
            });
            drop(enough);
            (ledgers, killed, yardstick.join().unwrap())
        });
        let again = Server::start_in(dir, &flags(cycle + 1));
        let mut client = again.client().patient();
        let toll = book.reckon(&mut client, &ledgers, killed);
        book.check(&mut client);
        // A barrier may be in progress when a click arrives, followed by its own.
        let window = WINDOW + 2 * barrier;
        assert!(toll.longest <= window, "cycle {cycle}: {toll:?}; {window:?} is too long already");
        toll
    });
}
