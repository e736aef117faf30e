//! Power loss at any moment, on a disk that keeps or loses every unsynced sector
//! by the toss of a coin: acknowledged events stay, others are wholly there or
//! wholly absent, positions stay dense.

use crate::oracle::{append, largest_query, open, read_all, small_segments};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Append, AppendError, Appended, Log, Sync};
use wellspring_types::{AppendCondition, Event, QueryItem};

struct Coins(u64);

impl Coins {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn request(number: u64, coins: &mut Coins) -> Vec<Event> {
    let count = 1 + coins.below(5);
    // Runs of zero bytes look like sectors that were never written.
    let filler = if coins.below(2) == 0 { "\0" } else { "x" };
    (0..count)
        .map(|i| {
            let data =
                format!("{number}/{i}/{count} {}", filler.repeat(coins.below(2500) as usize));
            Event::json("Numbered", &[&format!("request:{number}")], &data)
        })
        .collect()
}

/// Checks atomicity and density; returns the requests found.
fn requests_in(log: &Log) -> Vec<u64> {
    let mut found = Vec::new();
    let mut open_request: Option<(u64, u64, u64)> = None;
    for (expected, seen) in (1..).zip(read_all(log)) {
        assert_eq!(seen.position, expected, "positions are dense");
        let text = String::from_utf8(seen.event.data).unwrap();
        let mut parts = text.split(' ').next().unwrap().split('/').map(|n| n.parse().unwrap());
        let mut part = || -> u64 { parts.next().unwrap() };
        let (number, i, count) = (part(), part(), part());
        match open_request {
            None => assert_eq!(i, 0),
            Some((of, next, total)) => assert_eq!((number, i, count), (of, next, total)),
        }
        open_request = (i + 1 < count).then_some((number, i + 1, count));
        if i + 1 == count {
            found.push(number);
        }
    }
    assert_eq!(open_request, None, "a request is wholly there or wholly absent");
    found
}

/// What goes wrong besides the power.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    /// Now and then the disk is full, or there are no descriptors.
    FullAndBusy,
}

impl Trouble {
    fn stir(self, storage: &SimulatedStorage, coins: &mut Coins) {
        if self == Trouble::Nothing {
            return;
        }
        let used = storage.contents().values().map(|bytes| bytes.len() as u64).sum();
        let faults = match coins.below(6) {
            0 => Faults { capacity_bytes: Some(used), ..Faults::default() },
            1 => Faults { descriptors: Some(storage.open_files()), ..Faults::default() },
            2..=4 => Faults::default(),
            _ => return,
        };
        storage.set_faults(faults);
    }

    fn check(self, outcome: &Result<Appended, AppendError>) {
        let passes = match outcome {
            Ok(_) => true,
            Err(AppendError::StorageFull | AppendError::Unavailable { .. }) => {
                self == Trouble::FullAndBusy
            }
            Err(_) => false,
        };
        assert!(passes, "{outcome:?}");
    }
}

/// Which conditions are among the requests.
#[derive(Clone, Copy, PartialEq)]
enum Conditions {
    None,
    /// One request in ten has one of the largest legal size.
    Largest,
}

impl Conditions {
    /// The request, perhaps with a condition that nothing offends. Before it, perhaps, one with a
    /// condition that an acknowledged request offends.
    fn add(self, number: u64, acknowledged: &[u64], log: &Log, coins: &mut Coins) -> Append {
        let append = append(&request(number, coins));
        if self == Conditions::None || coins.below(10) > 0 {
            return append;
        }
        let condition = |number: u64| {
            let first = QueryItem::new(&[], &[&format!("request:{number}")]);
            let near = |n: usize| format!("request:{}", n as u64 % (number + 50));
            let query = largest_query(first, |n| {
                format!("{}{}", near(n), if n % 3 == 0 { "" } else { "+" })
            });
            AppendCondition::not_exists(query)
        };
        if !acknowledged.is_empty() && coins.below(2) == 0 {
            let offended = acknowledged[coins.below(acknowledged.len() as u64) as usize];
            let refused = Append { condition: Some(condition(offended)), ..append.clone() };
            let outcome = log.append(refused);
            assert!(outcome.is_err(), "request {offended} stands against {outcome:?}");
        }
        Append { condition: Some(condition(number)), ..append }
    }
}

fn cycle(seed: u64, sync: Sync, trouble: Trouble, conditions: Conditions) {
    let mut coins = Coins(seed);
    let mut storage = SimulatedStorage::new(seed);
    let mut number = 0;
    let mut acknowledged: Vec<u64> = Vec::new();
    for _ in 0..4 {
        let options = || wellspring_log::Options { sync, ..small_segments() };
        let log = open(&storage, options()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let found = requests_in(&log);
        if sync == Sync::Always {
            for number in &acknowledged {
                assert!(found.contains(number), "seed {seed}: acknowledged {number} is lost");
            }
        }
        acknowledged = found;
        let answered = Arc::new(Mutex::new(Vec::new()));
        let crash_after = coins.below(60);
        for step in 0..60 {
            number += 1;
            let answered = Arc::clone(&answered);
            let this = number;
            log.submit(
                conditions.add(number, &acknowledged, &log, &mut coins),
                Box::new(move |outcome| {
                    trouble.check(&outcome);
                    if outcome.is_ok() {
                        answered.lock().unwrap().push(this);
                    }
                }),
            );
            if coins.below(8) == 0 {
                trouble.check(&log.append(append(&request(u64::MAX >> 1, &mut coins))));
                trouble.stir(&storage, &mut coins);
            }
            if step == crash_after {
                break;
            }
        }
        // What is answered before the crash must survive it; the crash comes at any moment after.
        acknowledged.extend(answered.lock().unwrap().iter());
        storage = storage.crash();
        log.close();
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    for seed in 0..250 {
        cycle(seed, Sync::Always, Trouble::Nothing, Conditions::None);
    }
}

#[test]
fn with_conditions_of_the_largest_size_among_ordinary_requests_nothing_acknowledged_is_lost() {
    for seed in 0..30 {
        cycle(seed, Sync::Always, Trouble::Nothing, Conditions::Largest);
        cycle(seed, Sync::Always, Trouble::FullAndBusy, Conditions::Largest);
    }
}

#[test]
fn with_delayed_barriers_a_prefix_survives() {
    for seed in 0..250 {
        cycle(seed, Sync::Interval(Duration::from_millis(1)), Trouble::Nothing, Conditions::None);
    }
}

#[test]
fn with_the_disk_full_and_descriptors_gone_now_and_then_nothing_acknowledged_is_lost() {
    for seed in 0..250 {
        cycle(seed, Sync::Always, Trouble::FullAndBusy, Conditions::None);
    }
}
