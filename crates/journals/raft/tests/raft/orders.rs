//! What the engine promises: one order, and no loss of what it has placed.

use crate::group::{Group, Reach};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use wellspring_journal_raft::RaftLog;
use wellspring_log::shared::{Arrival, AskId, OfferId, OfferOutcome, Place, SharedLog as _};

const PATIENCE: Duration = Duration::from_millis(100);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The next arrival, or `None` after a while.
fn arrival(log: &mut RaftLog, most: Duration) -> Option<Arrival> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let begun = Instant::now();
    loop {
        match log.next(&waker).unwrap() {
            Arrival::Nothing => {
                let left = most.checked_sub(begun.elapsed())?;
                std::thread::park_timeout(left);
            }
            arrival => return Some(arrival),
        }
    }
}

/// Offers an entry until it is placed.
pub fn put(log: &mut RaftLog, entry: &[u8], next: &mut u64) -> Place {
    let begun = Instant::now();
    loop {
        *next += 1;
        let mine = OfferId(*next);
        log.offer(mine, Place(0), entry.into());
        loop {
            match arrival(log, Duration::from_secs(10)).expect("an outcome") {
                Arrival::Offer { id, outcome: OfferOutcome::Placed(place) } if id == mine => {
                    return place;
                }
                Arrival::Offer { id, .. } if id == mine => break,
                _ => {}
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is placed");
    }
}

/// Everything from the beginning up to a place.
pub fn all_up_to(log: &mut RaftLog, last: Place) -> Vec<(Place, Vec<u8>)> {
    log.follow(Place(0));
    let mut all = Vec::new();
    while all.last().is_none_or(|(place, _)| *place < last) {
        if let Arrival::Entry { place, entry } =
            arrival(log, Duration::from_secs(10)).expect("an entry")
        {
            all.push((place, entry.to_vec()));
        }
    }
    all
}

#[test]
fn all_nodes_see_one_order_and_nothing_placed_is_lost_when_orderers_die() {
    let group = Group::new(3, 5, PATIENCE);
    let mut placed = BTreeMap::new();
    let mut next = 0;
    for round in 0..6u8 {
        let orderer = group.orderer();
        for number in 0..3 {
            for log in ["a", "b"] {
                let mut log_of = group.connect(number, log);
                log_of.follow(Place(0));
                let entry = [round, number as u8, log.as_bytes()[0]];
                let place = put(&mut log_of, &entry, &mut next);
                assert!(placed.insert((log, place), entry.to_vec()).is_none());
            }
        }
        if round % 2 == 0 {
            group.kill(orderer);
            // The others order without it.
            let other = (orderer + 1) % 3;
            let mut log = group.connect(other, "a");
            let entry = [round, 9, b'a'];
            let place = put(&mut log, &entry, &mut next);
            placed.insert(("a", place), entry.to_vec());
            group.start(orderer);
        } else {
            group.set_reach(orderer, Reach::Nothing);
            let mut log = group.connect((orderer + 1) % 3, "b");
            let entry = [round, 8, b'b'];
            let place = put(&mut log, &entry, &mut next);
            placed.insert(("b", place), entry.to_vec());
            group.set_reach(orderer, Reach::All);
        }
    }
    for log in ["a", "b"] {
        let mine = placed.iter().filter(|((of, _), _)| *of == log);
        let mine: Vec<(Place, Vec<u8>)> =
            mine.map(|((_, place), entry)| (*place, entry.clone())).collect();
        let last = mine.last().unwrap().0;
        let first_order = all_up_to(&mut group.connect(0, log), last);
        for entry in &mine {
            assert!(first_order.contains(entry), "{log}: {entry:?} was placed");
        }
        for number in 1..3 {
            assert_eq!(all_up_to(&mut group.connect(number, log), last), first_order);
        }
    }
}

#[test]
fn who_is_killed_catches_up_whether_it_orders_or_not() {
    let group = Group::new(3, 8, PATIENCE);
    let mut next = 0;
    for round in 0..12u8 {
        let number = usize::from(round % 3);
        group.orderer();
        group.kill(number);
        group.start(number);
        let mut mine = group.connect(number, "a");
        mine.follow(Place(0));
        let mut other = group.connect((number + 1) % 3, "a");
        other.follow(Place(0));
        let place = put(&mut other, &[round], &mut next);
        let all = all_up_to(&mut mine, place);
        assert_eq!(all.last().unwrap().1, [round], "{:?}", group.running(number).report());
    }
}

/// The answer to a question for the end.
fn end(log: &mut RaftLog, id: u64) -> Option<Place> {
    log.ask_end(AskId(id));
    loop {
        match arrival(log, Duration::from_secs(10)).expect("an answer") {
            Arrival::End { id: AskId(told), end } if told == id => return end,
            _ => {}
        }
    }
}

#[test]
fn after_a_restart_of_all_no_end_is_before_what_was_placed() {
    for nodes in [1, 3] {
        let group = Group::new(nodes, 9, PATIENCE);
        let mut next = 0;
        let mut log = group.connect(group.orderer(), "a");
        log.follow(Place(0));
        let placed = (0..20).map(|n| put(&mut log, &[n], &mut next)).max().unwrap();
        drop(log);
        (0..nodes).for_each(|number| group.kill(number));
        (0..nodes).for_each(|number| group.start(number));
        let mut logs: Vec<RaftLog> = (0..nodes).map(|n| group.connect(n, "a")).collect();
        let begun = Instant::now();
        let mut has_answered = false;
        for id in 0.. {
            for log in &mut logs {
                if let Some(end) = end(log, id) {
                    assert_eq!(end, placed, "{nodes} nodes");
                    has_answered = true;
                }
            }
            if has_answered && id > 20 {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "nobody answers");
        }
    }
}

#[test]
fn a_minority_places_and_confirms_nothing_and_says_so() {
    let group = Group::new(3, 6, PATIENCE);
    let orderer = group.orderer();
    let mut next = 0;
    let mut log = group.connect(orderer, "a");
    log.follow(Place(0));
    let place = put(&mut log, b"x", &mut next);
    log.ask_end(AskId(1));
    let told = |log: &mut RaftLog| loop {
        match arrival(log, Duration::from_secs(10)).expect("an answer") {
            Arrival::Entry { .. } => {}
            other => return other,
        }
    };
    assert_eq!(told(&mut log), Arrival::End { id: AskId(1), end: Some(place) });
    // Of another log, which is empty.
    let mut other = group.connect((orderer + 1) % 3, "b");
    other.follow(Place(0));
    other.ask_end(AskId(2));
    assert_eq!(told(&mut other), Arrival::End { id: AskId(2), end: Some(Place(0)) });
    group.set_reach(orderer, Reach::Nothing);
    log.ask_end(AskId(3));
    log.offer(OfferId(100), place, b"y"[..].into());
    let mut both = [told(&mut log), told(&mut log)];
    both.sort_by_key(|arrival| matches!(arrival, Arrival::Offer { .. }));
    assert_eq!(both[0], Arrival::End { id: AskId(3), end: None });
    let Arrival::Offer { id: OfferId(100), outcome } = both[1] else { panic!("{both:?}") };
    assert_eq!(outcome, OfferOutcome::Unknown, "it may be committed once the node is back");
}

#[test]
fn a_node_that_is_heard_and_hears_nothing_gives_way_to_another_that_orders() {
    let group = Group::new(3, 11, PATIENCE);
    let deaf = group.orderer();
    group.set_reach(deaf, Reach::Deaf);
    let other = (deaf + 1) % 3;
    let mut log = group.connect(other, "a");
    log.follow(Place(0));
    let mut next = 0;
    let place = put(&mut log, b"x", &mut next);
    assert_ne!(group.orderer(), deaf);
    assert_eq!(group.running(deaf).report().orderer, None);
    group.set_reach(deaf, Reach::All);
    assert_eq!(all_up_to(&mut group.connect(deaf, "a"), place).last().unwrap().1, b"x");
}

/// Has a node order, which asks for it until it does.
fn have_order(group: &Group, number: usize) {
    let begun = Instant::now();
    while group.orderer() != number {
        group.running(number).take_over();
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not order");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ordering_is_handed_over_and_no_outcome_is_in_doubt() {
    for nodes in [1, 2, 3, 5] {
        // Outcomes are in doubt after four times as long.
        let group = Group::new(nodes, 12, PATIENCE * 5);
        let mut log = group.connect(0, "a");
        log.follow(Place(0));
        let (mut placed, mut offered) = (0, 0);
        for round in 0..2 * nodes + 2 {
            for _ in 0..5 {
                offered += 1;
                log.offer(OfferId(offered), Place(0), offered.to_le_bytes()[..].into());
            }
            have_order(&group, round % nodes);
            while placed < offered {
                match arrival(&mut log, Duration::from_secs(10)).expect("an outcome") {
                    Arrival::Offer { outcome: OfferOutcome::Placed(_), .. } => placed += 1,
                    Arrival::Offer { id, outcome: OfferOutcome::Refused } => {
                        log.offer(id, Place(0), id.0.to_le_bytes()[..].into());
                    }
                    Arrival::Offer { id, outcome: OfferOutcome::Unknown } => {
                        // Five need a silence, in which another node may stand.
                        assert!(nodes > 3, "{nodes} nodes, round {round}: an outcome is in doubt");
                        log.offer(id, Place(0), id.0.to_le_bytes()[..].into());
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_node_whose_disk_is_full_takes_no_part_until_there_is_room() {
    static LARGE: [u8; 60_000] = [7; 60_000];
    let group = Group::new(3, 13, PATIENCE);
    let full = group.orderer();
    let mut next = 0;
    let mut log = group.connect((full + 1) % 3, "a");
    log.follow(Place(0));
    put(&mut log, &LARGE, &mut next);
    group.set_room(full, Some(100_000));
    let lacks_room = |number: usize| group.running(number).report().lacks_room;
    while !lacks_room(full) {
        put(&mut log, &LARGE, &mut next);
    }
    let place = put(&mut log, b"another node orders", &mut next);
    assert_ne!(group.orderer(), full);
    // No majority has room.
    let other = group.orderer();
    let third = 3 - full - other;
    group.set_room(third, Some(0));
    while !lacks_room(third) {
        next += 1;
        log.offer(OfferId(next), Place(0), LARGE[..].into());
        std::thread::sleep(Duration::from_millis(5));
    }
    [full, third].into_iter().for_each(|number| group.set_room(number, None));
    let last = put(&mut log, b"there is room again", &mut next);
    assert!(last > place);
    for number in 0..3 {
        let all = all_up_to(&mut group.connect(number, "a"), last);
        assert_eq!(all.last().unwrap().1, b"there is room again");
        assert!(!lacks_room(number));
        assert_eq!(group.running(number).report().stopped, None);
    }
}

#[test]
fn a_frame_costs_a_barrier_a_node() {
    let group = Group::new(3, 7, PATIENCE);
    let orderer = group.running(group.orderer());
    let mut log = group.connect(group.orderer(), "a");
    log.follow(Place(0));
    let before = orderer.report();
    for n in 0..200u64 {
        log.offer(OfferId(n), Place(0), n.to_le_bytes()[..].into());
    }
    let mut outcomes = 0;
    while outcomes < 200 {
        let arrival = arrival(&mut log, Duration::from_secs(10)).expect("an outcome");
        if let Arrival::Offer { outcome, .. } = arrival {
            assert!(matches!(outcome, OfferOutcome::Placed(_)), "{outcome:?}");
            outcomes += 1;
        }
    }
    let after = orderer.report();
    let (frames, entries) = (after.frames - before.frames, after.last.index - before.last.index);
    assert_eq!(frames, entries, "a frame is an entry");
    assert!(frames < 60, "{frames} frames for 200 offers: what waits goes together");
}
