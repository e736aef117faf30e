//! Readers that run beside the one writer.

use super::history::mixed;
use super::journal::Entry;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wellspring_face_links::view::{
    Bucket, Code, Folded, Links, ListOrder, ListRequest, Lookup, Permutation, StatsRequest,
};
use wellspring_host::view::contract::View;
use wellspring_types::Event;

const EVENTS: u64 = 200_000;
const KEY: [u8; 16] = *b"0123456789abcdef";

/// The nth link's code: alternately automatic and not.
fn code(permutation: &Permutation, nth: u64) -> Code {
    match nth % 3 {
        0 => Code::from_number((1 << 50) + nth * 7_919).expect("a code"),
        _ => permutation.code(nth).expect("a code"),
    }
}

/// Creations, changes, deletions and clicks in a random-looking order.
fn events() -> Vec<Entry> {
    let permutation = Permutation::new(KEY);
    let key = format!("{{\"key\":\"{:032x}\"}}", u128::from_be_bytes(KEY));
    let mut events = vec![Event::json("LinksOpened", &["links"], &key)];
    let mut links = 0;
    for turn in 1..EVENTS {
        let chance = mixed(turn);
        let kind = if links < 10 { 0 } else { chance % 10 };
        let nth = if kind < 2 { links } else { (chance >> 8) % links };
        let code = code(&permutation, nth);
        let link = format!("link:{code}");
        events.push(match kind {
            0 | 1 => {
                links += 1;
                let number =
                    if nth % 3 == 0 { String::new() } else { format!(",\"number\":{nth}") };
                let data =
                    format!(r#"{{"url":"https://{code}.example/0","chosen":"alias"{number}}}"#);
                Event::json("LinkCreated", &[&link], &data)
            }
            2 | 3 => {
                let (on, tag) =
                    (chance >> 40 & 1 == 0, "t".repeat((chance >> 50) as usize % 60 + 1));
                let data = format!(
                    r#"{{"url":"https://{code}.example/{turn}","enabled":{on},"tags":["{tag}"]}}"#
                );
                Event::json("LinkChanged", &[&link], &data)
            }
            4 if chance >> 20 & 15 == 0 => Event::json("LinkDeleted", &[&link], "{}"),
            _ => {
                let data = format!(
                    r#"{{"visitor":"{chance:016x}","agent":"curl","referrer":"h{}.example"}}"#,
                    chance % 200
                );
                Event::json("LinkClicked", &[&format!("clicked:{code}")], &data)
            }
        });
    }
    let entry =
        |(at, event)| Entry { position: at as u64 + 1, at_us: at as u64 * 10_000_000, event };
    events.into_iter().enumerate().map(entry).collect()
}

/// The last values that a reader saw.
#[derive(Default)]
struct Memory {
    clicks: HashMap<Code, u64>,
    deleted: HashMap<Code, bool>,
    links: u64,
}

impl Memory {
    fn look(&mut self, folded: &Folded, code: Code) {
        let mut location = Vec::new();
        let found = folded.lookup(code, 0, &mut location);
        if found == Lookup::Found {
            let start = format!("https://{code}.example/");
            assert!(location.starts_with(start.as_bytes()), "{code}: {location:?}");
            assert!(location[start.len()..].iter().all(u8::is_ascii_digit));
        }
        assert_ne!(found, Lookup::Expired);
        match self.deleted.get_mut(&code) {
            Some(deleted) => {
                assert_ne!(found, Lookup::Unknown, "{code} is gone");
                assert!(!*deleted || found == Lookup::Deleted, "{code} is back");
                *deleted = found == Lookup::Deleted;
            }
            None if found != Lookup::Unknown => {
                self.deleted.insert(code, found == Lookup::Deleted);
            }
            None => {}
        }
    }

    fn ask(&mut self, folded: &Folded, code: Code) {
        let Some(details) = folded.details(code) else {
            assert!(!self.deleted.contains_key(&code), "{code} is gone");
            return;
        };
        assert!(details.url.starts_with(&format!("https://{code}.example/")));
        self.count(code, details.clicks);
        let request = StatsRequest { bucket: Bucket::Day, from_us: None, to_us: None };
        let stats = folded.stats(code, &request).expect("it has details");
        assert_eq!(stats.series.iter().map(|point| point.clicks).sum::<u64>(), stats.clicks);
        assert_eq!(stats.referrers.iter().map(|r| r.clicks).sum::<u64>(), stats.clicks);
        assert_eq!(stats.agents.iter().map(|(_, clicks)| clicks).sum::<u64>(), stats.clicks);
        self.count(code, stats.clicks);
    }

    fn count(&mut self, code: Code, clicks: u64) {
        let before = self.clicks.insert(code, clicks).unwrap_or(0);
        assert!(before <= clicks, "{code}: {before} clicks, then {clicks}");
    }

    fn list(&mut self, folded: &Folded, turn: u64) {
        let count = folded.count();
        assert!(count >= self.links);
        self.links = count;
        let order = if turn & 1 == 0 { ListOrder::Newest } else { ListOrder::Oldest };
        let after = Some(mixed(turn) % (count + 1));
        let page = folded.list(&ListRequest {
            after,
            order,
            limit: 20,
            scan_limit: 50,
            ..ListRequest::default()
        });
        for details in page.links {
            assert!(details.url.starts_with(&format!("https://{}.example/", details.code)));
            self.deleted.entry(details.code).or_insert(false);
            self.count(details.code, details.clicks);
        }
    }
}

#[test]
fn readers_see_what_there_is_while_it_grows() {
    let entries = events();
    let mut view = Links::new();
    let folded = Arc::clone(view.folded());
    let (done, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for reader in 0..3u64 {
            let (folded, done, looks) = (&folded, &done, &looks);
            scope.spawn(move || {
                let permutation = Permutation::new(KEY);
                let (mut memory, mut turn) = (Memory::default(), reader << 40);
                while !done.load(Ordering::Acquire) {
                    turn += 1;
                    let nth = mixed(turn) % (folded.count() + 20);
                    memory.look(folded, code(&permutation, nth));
                    match turn % 8 {
                        0 => memory.ask(folded, code(&permutation, nth)),
                        1 => memory.list(folded, turn >> 3),
                        _ => {}
                    }
                    looks.fetch_add(1, Ordering::Relaxed);
                    if turn.is_multiple_of(256) {
                        std::thread::sleep(std::time::Duration::from_micros(100));
                    }
                }
            });
        }
        entries.iter().for_each(|entry| view.apply(entry));
        done.store(true, Ordering::Release);
    });
    let looks = looks.into_inner();
    assert!(looks > 1_000, "only {looks} looks");
    let rebuilt = super::properties::folded(&entries);
    assert_eq!(super::questions::encoded(&rebuilt), super::questions::encoded(&view));
}

/// One link changes constantly, so its place in memory is freed and reused.
#[test]
fn a_reader_never_sees_two_records_at_once() {
    // Every host repeats one letter, so a torn read is visible.
    let host = |n: u64| {
        let letter = char::from(b'a' + (n % 26) as u8);
        letter.to_string().repeat(8 + (n % 40) as usize)
    };
    let change = |position: u64| {
        let url = format!("http://{}.example", host(position));
        let (kind, data) = match position {
            1 => ("LinkCreated", format!(r#"{{"url":"{url}","chosen":"alias"}}"#)),
            _ => ("LinkChanged", format!(r#"{{"url":"{url}"}}"#)),
        };
        Entry { position, at_us: position, event: Event::json(kind, &["link:abc"], &data) }
    };
    let mut view = Links::new();
    view.apply(&change(1));
    let folded = Arc::clone(view.folded());
    let done = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&done);
    let reader = std::thread::spawn(move || {
        let code = Code::parse(b"abc").expect("a code");
        let mut looks = 0u64;
        while !ended.load(Ordering::Relaxed) || looks == 0 {
            let mut location = Vec::new();
            assert_eq!(folded.lookup(code, 0, &mut location), Lookup::Found);
            let host = &location[7..location.len() - 8];
            assert!(host.iter().all(|letter| *letter == host[0]), "{location:?}");
            let details = folded.details(code).expect("it is there");
            let host = &details.url.as_bytes()[7..details.url.len() - 8];
            assert!(host.iter().all(|letter| *letter == host[0]), "{}", details.url);
            looks += 1;
        }
    });
    (2..60_000).for_each(|position| view.apply(&change(position)));
    done.store(true, Ordering::Relaxed);
    reader.join().expect("every look was at one record");
}
