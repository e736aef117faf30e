//! Power loss at any moment, on a disk that randomly keeps or loses every unsynced sector:
//! acknowledged events survive, others exist completely or not at all, positions stay dense.

use crate::coins::Coins;
use crate::harness::histories;
use crate::oracle::{append, largest_query, read_all, small_segments};
use crate::{JournalUnderTest, Nodes};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Append, AppendError, Appended, Log, Options, Sync};
use wellspring_patience::PATIENCE;
use wellspring_types::{AppendCondition, Event, Position, QueryItem};

fn request(number: u64, coins: &mut Coins) -> Vec<Event> {
    let count = 1 + coins.below(5);
    // Runs of zero bytes resemble sectors that were never written.
    let filler = if coins.below(2) == 0 { "\0" } else { "x" };
    (0..count)
        .map(|i| {
            let data =
                format!("{number}/{i}/{count} {}", filler.repeat(coins.below(2500) as usize));
            Event::json("Numbered", &[&format!("request:{number}")], &data)
        })
        .collect()
}

/// Checks atomicity and density; returns the requests found and the last position.
fn requests_in(log: &Log) -> (Vec<u64>, Position) {
    let mut found = Vec::new();
    let mut last = 0;
    let mut open_request: Option<(u64, u64, u64)> = None;
    for (expected, seen) in (1..).zip(read_all(log)) {
        assert_eq!(seen.position, expected, "positions are dense");
        last = seen.position;
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
    (found, last)
}

/// Additional faults.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    /// Occasionally the disk is full, or there are no descriptors.
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

    fn check(self, outcome: &Outcome, nodes: &Nodes) {
        let passes = match outcome {
            Ok(_) => true,
            Err(AppendError::NotLeading { .. }) => nodes.harness().link(0).is_some(),
            Err(AppendError::StorageFull | AppendError::Unavailable { .. }) => {
                self == Trouble::FullAndBusy
            }
            Err(_) => false,
        };
        assert!(passes, "{outcome:?}");
    }
}

type Outcome = Result<Appended, AppendError>;

/// The outcomes by request number.
type ReportedOutcomes = Arc<Mutex<Vec<(u64, Outcome)>>>;

/// The conditions of the requests.
#[derive(Clone, Copy, PartialEq)]
enum Conditions {
    None,
    /// One request in ten has a condition of the largest valid size.
    Largest,
}

impl Conditions {
    /// Sends the request, possibly with a condition that no event violates, and possibly preceded
    /// by one with a condition that an acknowledged request violates.
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

/// The parameters of a history.
#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    sync: Sync,
    trouble: Trouble,
    conditions: Conditions,
}

impl Plan {
    fn plain(seed: u64) -> Plan {
        let (trouble, conditions) = (Trouble::Nothing, Conditions::None);
        Plan { seed, sync: Sync::Always, trouble, conditions }
    }
}

/// The known outcomes of one history.
struct History {
    plan: Plan,
    coins: Coins,
    number: u64,
    acknowledged: Vec<u64>,
    refused: Vec<u64>,
}

impl History {
    /// Four lives of all nodes, each ended by a power loss at any moment.
    fn run(journal: &dyn JournalUnderTest, plan: Plan) {
        let options = Options { sync: plan.sync, ..small_segments() };
        let nodes = Nodes::open(journal, plan.seed, &options);
        let (acknowledged, refused) = (Vec::new(), Vec::new());
        let coins = Coins(plan.seed);
        let mut history = History { plan, coins, number: 0, acknowledged, refused };
        for life in 0..4 {
            history.check(&nodes);
            history.live(&nodes);
            // The last two affect only the leader, if there is another node.
            let alone = (life >= 2 && nodes.count() > 1).then(|| nodes.leader().0);
            let gone = alone.map_or(0..nodes.count(), |leader| leader..leader + 1);
            gone.for_each(|node| nodes.kill(node));
            nodes.open_all();
        }
        history.check(&nodes);
    }

    /// Acknowledged or previously found requests exist, refused ones do not.
    fn check(&mut self, nodes: &Nodes) {
        let Plan { seed, sync, .. } = self.plan;
        for node in 0..nodes.count() {
            let log = nodes.caught_up(node);
            let (found, head) = requests_in(&log);
            if sync == Sync::Always {
                let lost = self.acknowledged.iter().find(|number| !found.contains(number));
                assert_eq!(lost, None, "seed {seed}: an acknowledged request is lost");
            }
            let there = self.refused.iter().find(|number| found.contains(number));
            assert_eq!(there, None, "seed {seed}: a refused request is there");
            self.acknowledged = found;
            if sync == Sync::Always {
                // Whatever was read once must also stay.
                nodes.was_acknowledged(head);
            }
        }
    }

    /// Sends requests and records their outcomes until the power loss.
    fn live(&mut self, nodes: &Nodes) {
        let (leader, log) = nodes.leader();
        let told = ReportedOutcomes::default();
        let crash_after = self.coins.below(60);
        for step in 0..60 {
            self.number += 1;
            let (number, told) = (self.number, Arc::clone(&told));
            let append =
                self.plan.conditions.add(number, &self.acknowledged, &log, &mut self.coins);
            log.submit(
                append,
                Box::new(move |outcome| {
                    told.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
                }),
            );
            if self.coins.below(8) == 0 {
                let disk = nodes.harness().disk(leader);
                let outcome = append_and_wait(&log, request_of_no_number(&mut self.coins), || {
                    // Slow is not full, and only a disk of the test itself has been filled.
                    if let Some(disk) = &disk {
                        disk.set_faults(Faults::default());
                    }
                });
                self.plan.trouble.check(&outcome, nodes);
                if self.plan.trouble != Trouble::Nothing {
                    let disk = disk.expect("a disk that fills up");
                    self.plan.trouble.stir(&disk, &mut self.coins);
                }
            }
            if step == crash_after {
                break;
            }
        }
        if nodes.count() > 1 && self.plan.trouble != Trouble::Nothing {
            // The power loss may hit another node.
            let disk = nodes.harness().disk(leader).expect("a disk that fills up");
            disk.set_faults(Faults::default());
        }
        // Everything answered before the crash must survive it; the crash comes at any moment
        // after.
        let told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
        for (number, outcome) in told {
            self.plan.trouble.check(&outcome, nodes);
            match outcome {
                Ok(appended) => {
                    self.acknowledged.push(number);
                    if self.plan.sync == Sync::Always {
                        nodes.was_acknowledged(appended.last);
                    }
                }
                Err(_) => self.refused.push(number),
            }
        }
    }
}

fn request_of_no_number(coins: &mut Coins) -> Append {
    append(&request(u64::MAX >> 1, coins))
}

/// Appends and waits for the outcome. A journal with several writers cannot refuse a batch for lack
/// of room once the others have it: it answers when there is room, so room is made after a while.
fn append_and_wait(log: &Log, append: Append, make_room: impl FnOnce()) -> Outcome {
    let (tell, told) = channel();
    log.submit(append, Box::new(move |outcome| drop(tell.send(outcome))));
    told.recv_timeout(Duration::from_millis(50)).unwrap_or_else(|_| {
        make_room();
        told.recv_timeout(PATIENCE).expect("an answer")
    })
}

/// Requests of every size, with power losses.
pub fn nothing_acknowledged_is_lost_and_nothing_is_half_there(journal: &dyn JournalUnderTest) {
    for seed in 0..histories(journal, 250) {
        History::run(journal, Plan::plain(seed));
    }
}

/// Includes requests with conditions that take long to judge.
pub fn with_conditions_of_the_largest_size_among_ordinary_requests_nothing_acknowledged_is_lost(
    journal: &dyn JournalUnderTest,
) {
    for seed in 0..histories(journal, 30) {
        History::run(journal, Plan { conditions: Conditions::Largest, ..Plan::plain(seed) });
    }
}

/// The same with an occasionally full disk or lack of descriptors.
pub fn with_the_disk_full_among_conditions_of_the_largest_size_nothing_acknowledged_is_lost(
    journal: &dyn JournalUnderTest,
) {
    for seed in 0..histories(journal, 30) {
        let (trouble, conditions) = (Trouble::FullAndBusy, Conditions::Largest);
        History::run(journal, Plan { trouble, conditions, ..Plan::plain(seed) });
    }
}

/// Barriers later than the answers: requests are whole, positions dense.
pub fn with_delayed_barriers_a_prefix_survives(journal: &dyn JournalUnderTest) {
    for seed in 0..histories(journal, 250) {
        let sync = Sync::Interval(Duration::from_millis(1));
        History::run(journal, Plan { sync, ..Plan::plain(seed) });
    }
}

/// With an occasionally full disk or lack of descriptors.
pub fn with_the_disk_full_and_descriptors_gone_now_and_then_nothing_acknowledged_is_lost(
    journal: &dyn JournalUnderTest,
) {
    for seed in 0..histories(journal, 250) {
        History::run(journal, Plan { trouble: Trouble::FullAndBusy, ..Plan::plain(seed) });
    }
}
