//! The lead moves, and is lost silently: one node leads, a former leader's actions have no effect,
//! and every client of a live node learns the outcome of its request.

use crate::race::race;
use crate::sent::{Outcome, SentAppend, check, keyed, numbered};
use crate::{JournalUnderTest, Nodes, OfferTrouble, OnTheWay, oracle};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wellspring_log::{Log, Options, Role};
use wellspring_types::{AppendCondition, Event, Query};

/// How often another node claims the lead during the work.
const ROUND: Duration = Duration::from_millis(50);

/// Rounds without a claim until something is appended: over a slow engine no leader would otherwise
/// append anything.
const LONG_ROUNDS: u32 = 20;

fn appended(nodes: &Nodes, node: usize, number: u64) -> Outcome {
    let appended = nodes.client(node).append(numbered(number)).unwrap();
    Outcome { number, position: Some(appended.first) }
}

/// Makes the nodes claim the lead in turn while `work` is done.
pub(super) fn while_the_lead_goes_round<T>(nodes: &Nodes, work: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for node in (0..nodes.count()).cycle() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                if let Some(log) = nodes.log(node) {
                    log.claim_lead();
                }
                let heads = nodes.heads();
                for _ in 0..LONG_ROUNDS {
                    std::thread::sleep(ROUND);
                    if nodes.heads() != heads || stop.load(Ordering::SeqCst) {
                        break;
                    }
                }
            }
        });
        let _stop = Stop(&stop);
        work()
    })
}

/// All nodes repeatedly claim at the same moment: one leads, the others know it, and epochs grow.
pub fn of_nodes_that_claim_at_once_one_leads(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &Options::default());
    let mut outcomes = vec![appended(&nodes, 0, 0)];
    let mut last_epoch = 0;
    for round in 1..=20 {
        let start = Barrier::new(nodes.count());
        std::thread::scope(|scope| {
            for node in 0..nodes.count() {
                let (nodes, start) = (&nodes, &start);
                scope.spawn(move || {
                    let log = nodes.log(node).unwrap();
                    start.wait();
                    log.claim_lead();
                });
            }
        });
        let mut epoch = 0;
        nodes.wait_until("one leads and the others know it", || {
            let Some((leader, log)) = nodes.leading() else { return false };
            let Role::Leading { epoch: its } = log.role() else { return false };
            epoch = its;
            epoch > last_epoch
                && (0..nodes.count()).filter(|node| *node != leader).all(|node| {
                    match nodes.log(node).unwrap().role() {
                        Role::Following { leader: Some(known) } => {
                            known.epoch == its && known.node == nodes.harness().name(leader)
                        }
                        _ => false,
                    }
                })
        });
        last_epoch = epoch;
        outcomes.push(appended(&nodes, round as usize % nodes.count(), round));
    }
    check(&nodes, &outcomes);
}

/// A leader is cut off; its offers arrive once another node leads, whether that has appended or
/// not: by position alone, such an offer might be the next batch.
pub fn what_a_leader_offers_after_another_leads_is_never_there(journal: &dyn JournalUnderTest) {
    for others in [0, 20] {
        let nodes = Nodes::open(journal, 1, &Options::default());
        let mut outcomes = vec![appended(&nodes, 0, 0)];
        let (old, log) = nodes.leader();
        nodes.link(old).cut_off();
        let sent: Vec<SentAppend> = (1..=20).map(|number| SentAppend::to(&log, number)).collect();
        let new = nodes.after(old);
        nodes.take_lead(new);
        outcomes.extend((0..others).map(|n| appended(&nodes, new, 21 + n)));
        nodes.link(old).heal(OnTheWay::Delivered);
        for outcome in sent.into_iter().map(SentAppend::outcome) {
            assert_eq!(outcome.position, None, "{outcome:?}: the claim came first");
        }
        check(&nodes, &outcomes);
        nodes.wait_until("the leader of the past knows who leads", || match log.role() {
            Role::Following { leader: Some(leader) } => leader.node == nodes.harness().name(new),
            _ => false,
        });
        outcomes.extend((1..=20).map(|number| appended(&nodes, old, number)));
        check(&nodes, &outcomes);
    }
}

/// A leader hears nothing any more while its offers arrive: before the next claim they count, and
/// its clients are told so, whether or not the leader has given up meanwhile.
pub fn what_arrived_before_the_next_claim_was_appended(journal: &dyn JournalUnderTest) {
    for gives_up in [false, true] {
        let nodes = Nodes::open(journal, 1, &Options::default());
        let mut outcomes = vec![appended(&nodes, 0, 0)];
        let (old, log) = nodes.leader();
        let new = nodes.after(old);
        let before = nodes.caught_up(new).head();
        nodes.link(old).deafen();
        let sent: Vec<SentAppend> = (1..=20).map(|number| SentAppend::to(&log, number)).collect();
        let follower = nodes.log(new).unwrap();
        nodes.wait_until("something has arrived, or was lost and the leader has given up", || {
            follower.head() > before || !log.role().leads()
        });
        if gives_up {
            nodes.wait_until("the leader gives up", || !log.role().leads());
        }
        nodes.take_lead(new);
        let arrived = follower.head() - before;
        outcomes.push(appended(&nodes, new, 21));
        nodes.link(old).heal(OnTheWay::Delivered);
        let told: Vec<Outcome> = sent.into_iter().map(SentAppend::outcome).collect();
        let counted = told.iter().filter(|outcome| outcome.position.is_some()).count();
        assert_eq!(counted as u64, arrived, "{told:?}");
        outcomes.extend(told);
        check(&nodes, &outcomes);
    }
}

/// The process of a leader is suspended beyond its timeout. Another node takes the lead, and the
/// first one's pending requests are discarded or answered.
pub fn a_leader_that_was_paused_appends_nothing_afterwards(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &Options::default());
    let mut outcomes = vec![appended(&nodes, 0, 0)];
    for round in 1..=3 {
        let (old, log) = nodes.leader();
        nodes.leave_alone();
        nodes.link(old).pause();
        outcomes.extend(std::thread::scope(|scope| {
            // Clients of the process are suspended with it.
            let client = |number| {
                let log = &log;
                scope.spawn(move || SentAppend::to(log, number).outcome())
            };
            let clients: Vec<_> = (round * 100..round * 100 + 20).map(client).collect();
            let resume = Resume(&nodes, old);
            let mut new = old;
            nodes.wait_until("another leads", || {
                new = nodes.leading().map_or(old, |(leader, _)| leader);
                new != old
            });
            // Not at any other node: it may still refer its client to the first.
            let mut outcomes = vec![appended(&nodes, new, round * 100 + 50)];
            drop(resume);
            outcomes.extend(clients.into_iter().map(|client| client.join().unwrap()));
            outcomes
        }));
        check(&nodes, &outcomes);
    }
}

/// Resumes a paused process, even if the test fails meanwhile.
struct Resume<'a>(&'a Nodes, usize);

impl Drop for Resume<'_> {
    fn drop(&mut self) {
        self.0.link(self.1).heal(OnTheWay::Lost);
    }
}

/// Offers are lost, duplicated or reordered: each request is appended once, or its client is told
/// that it was not.
pub fn of_offers_lost_doubled_and_late_each_counts_once_or_never(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &Options::default());
    let mut outcomes = append_by_many(&nodes, 0);
    set_trouble(&nodes, OfferTrouble { lost: 250, doubled: 250, late: 250 });
    outcomes.extend(append_by_many(&nodes, 1000));
    outcomes.extend(while_the_lead_goes_round(&nodes, || append_by_many(&nodes, 2000)));
    set_trouble(&nodes, OfferTrouble::default());
    outcomes.push(appended(&nodes, 0, 3000));
    check(&nodes, &outcomes);
}

fn set_trouble(nodes: &Nodes, trouble: OfferTrouble) {
    (0..nodes.count()).for_each(|node| nodes.link(node).trouble(trouble));
}

/// Requests of eight concurrent clients without retries: each is sent to one node, and its outcome
/// is recorded.
fn append_by_many(nodes: &Nodes, from: u64) -> Vec<Outcome> {
    let next = AtomicU64::new(from);
    std::thread::scope(|scope| {
        let client = |n: usize| {
            let next = &next;
            move || {
                let one = |_| {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let (_, log) = match n % 2 {
                        0 => nodes.leader(),
                        _ => (0, nodes.log(nodes.next_node()).unwrap()),
                    };
                    SentAppend::to(&log, number).outcome()
                };
                (0..40).map(one).collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(client(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// A keyed request answered by one leader gets the same answer from the next, and from the one
/// after a crash.
pub fn a_retry_is_recognised_by_the_next_leader(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &oracle::small_segments());
    let firsts: Vec<u64> =
        (0..20).map(|number| nodes.append(keyed(number)).unwrap().first).collect();
    for round in 0..3 {
        let old = nodes.leader().0;
        let new = nodes.after(old);
        if round == 2 {
            nodes.kill(old);
        }
        nodes.take_lead(new);
        for (number, first) in (0..).zip(&firsts) {
            let again = nodes.client(new).append(keyed(number)).unwrap();
            assert_eq!((again.first, again.replayed), (*first, true), "request {number}");
        }
    }
    assert_eq!(nodes.reader().head(), 20);
}

/// 200 keys and 8 contenders at three nodes, with a new claim every 50 ms: each key has one winner,
/// and every contender gets an answer.
pub fn one_wins_each_key_while_the_lead_goes_round(journal: &dyn JournalUnderTest) {
    let nodes = Nodes::open(journal, 1, &Options::default());
    let before = epoch_of(&nodes.leader().1);
    let changes = || epoch_of(&nodes.leader().1) - before;
    let mut keys = 0;
    while_the_lead_goes_round(&nodes, || {
        // As many as it takes: fast engines are done with a few before the lead has moved.
        while keys == 0 || (changes() <= 2 && keys < 20_000) {
            race(&nodes, keys..keys + 200, |key| {
                let tag = format!("key:{key}");
                let condition = AppendCondition::not_exists(Query::item(&[], &[&tag]));
                (Event::json("TagOnly", &[&tag], "1"), condition)
            });
            keys += 200;
        }
    });
    assert!(nodes.readers().iter().all(|log| log.head() == keys as u64));
    assert!(changes() > 2, "the lead has changed {} times", changes());
}

fn epoch_of(log: &Log) -> u64 {
    log.stats().epoch
}
