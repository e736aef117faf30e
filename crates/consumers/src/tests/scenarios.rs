//! Promises that are easier to read as a story than in a random history.

use crate::{
    Backoff, Checkpoint, Consumer, Definition, DefinitionFault, Delivery, DeliveryRefusal,
    FailureRule, KeyName, KeyedEvent, LookUpVerdict, OpenKey, OrderKey, ParkedSelection, RunState,
    ScanFrom, ScanNeed, ScanVerdict, SettledRun, TurnVerdict,
};
use std::collections::HashSet;
use wellspring_types::Position;

fn definition() -> Definition {
    Definition {
        key: OrderKey::Tag("k".into()),
        hold_us: 100,
        max_hold_us: 1_000,
        max_in_flight: 100,
        run: 1,
        max_tries: 2,
        backoff: Backoff { first_us: 10, most_us: 50 },
        on_failure: FailureRule::ParkKey,
        max_open_keys: 100,
    }
}

fn events(log: &[Vec<String>], after: Position, up_to: Position) -> Vec<KeyedEvent<'_>> {
    let events = (after + 1..=up_to).map(|position| {
        let keys = log[position as usize - 1].iter().map(String::as_str);
        KeyedEvent { position, keys: keys.collect() }
    });
    events.collect()
}

/// A consumer of a log that is a list of keys, with one worker.
struct Story {
    log: Vec<Vec<String>>,
    consumer: Consumer,
    turn: u64,
}

impl Story {
    fn new(definition: Definition, log: &[&str]) -> Story {
        let keys = |event: &str| event.split_whitespace().map(str::to_owned).collect();
        let log = log.iter().map(|event| keys(event)).collect();
        let mut story = Story { log, consumer: Consumer::new(definition, 1, 0), turn: 0 };
        story.save();
        story
    }

    fn save(&mut self) -> Checkpoint {
        let head = self.log.len() as Position;
        let built = self.consumer.checkpoint(head).expect("no other one");
        self.consumer.checkpoint_recorded(built.generation);
        built
    }

    /// Reads everything that the consumer wants.
    fn read(&mut self) {
        let up_to = self.log.len() as Position;
        while let ScanNeed::From(from) = self.consumer.scan_need(usize::MAX) {
            if from.after == up_to {
                break;
            }
            self.consumer.scanned(from, &events(&self.log, from.after, up_to), up_to);
        }
        for look_up in self.consumer.wanted_look_ups(usize::MAX, usize::MAX) {
            let KeyName::Value(value) = &look_up.key else { continue };
            let mut events = events(&self.log, look_up.after, look_up.up_to);
            events.retain(|event| event.keys.contains(&&**value));
            let some = events.len().min(look_up.limit);
            self.consumer.found(&look_up, &events[..some], some == events.len());
        }
    }

    fn take(&mut self, want: usize, now: u64) -> Vec<Delivery> {
        self.read();
        self.turn += 1;
        assert_eq!(self.consumer.begin_turn("w", self.turn, now), TurnVerdict::New);
        let call = self.consumer.latest_call("w").expect("it has begun a turn");
        self.consumer.take("w", call, want, now, || 7).expect("its turn")
    }

    fn positions(&mut self, want: usize, now: u64) -> Vec<Position> {
        self.take(want, now).into_iter().flat_map(|delivery| delivery.positions).collect()
    }
}

#[test]
fn one_stuck_key_holds_up_no_other_and_a_hot_one_takes_turns() {
    let log: Vec<String> = (0..2_000)
        .map(|at: u32| match at {
            0 => "stuck".to_owned(),
            at if at % 2 == 0 => "hot".to_owned(),
            at if at % 7 == 0 => "stuck".to_owned(),
            at => format!("cold {}", at),
        })
        .collect();
    let log: Vec<&str> =
        log.iter().map(|keys| keys.strip_prefix("cold ").unwrap_or(keys)).collect();
    let mut story = Story::new(definition(), &log);
    let stuck = story.take(1, 0);
    assert_eq!(stuck[0].positions, [1]);
    let mut settled = 0;
    while let [delivery] = &story.take(1, 0)[..] {
        assert_ne!(&*delivery.keys[0], "stuck");
        story.consumer.settle("w", delivery.id, None).expect("held");
        settled += 1;
        assert!(story.consumer.status().open_keys <= 100);
    }
    assert_eq!(settled, log.iter().filter(|key| **key != "stuck").count());
    assert_eq!(story.consumer.status().open_keys, 1);
}

#[test]
fn keys_take_turns() {
    let mut story = Story::new(definition(), &["a", "a", "a", "b", "c"]);
    let mut order = Vec::new();
    while let [delivery] = &story.take(1, 0)[..] {
        order.extend(delivery.positions.iter().copied());
        story.consumer.settle("w", delivery.id, None).expect("held");
    }
    assert_eq!(order, [1, 4, 5, 2, 3]);
}

#[test]
fn an_event_of_several_keys_waits_for_all_of_them() {
    let mut story = Story::new(definition(), &["a", "b", "a b", "a", "b"]);
    let first = story.take(9, 0);
    assert_eq!(first.len(), 2);
    story.consumer.settle("w", first[0].id, None).expect("held");
    assert_eq!(story.positions(9, 0), [], "the transfer waits for b");
    story.consumer.settle("w", first[1].id, None).expect("held");
    let transfer = story.take(9, 0);
    assert_eq!((&transfer[0].positions[..], transfer[0].keys.len()), (&[3][..], 2));
    assert_eq!(story.positions(9, 0), [], "both keys are held");
    story.consumer.settle("w", transfer[0].id, None).expect("held");
    assert_eq!(story.positions(9, 0), [4, 5]);
}

#[test]
fn what_an_earlier_append_has_settled_of_a_run_is_settled_and_the_rest_comes_again() {
    let run = Definition { run: 3, ..definition() };
    let mut story = Story::new(run, &["a", "a", "a"]);
    let run = story.take(1, 0).remove(0);
    assert_eq!(run.positions, [1, 2, 3]);
    assert_eq!(story.consumer.peek_held("w", run.id), Some(vec![1, 2, 3]));
    assert_eq!(story.consumer.peek_held("another", run.id), None);
    story.consumer.begin_settling("w", run.id, None, 0).expect("held");
    assert_eq!(story.consumer.peek_held("w", run.id), Some(vec![1, 2, 3]), "also while staged");
    story.consumer.set_back(run.id);
    story.consumer.settle_found("w", run.id, 2).expect("held");
    assert_eq!(story.consumer.peek_held("w", run.id), None);
    let rest = story.take(1, 0).remove(0);
    assert_eq!((&*rest.positions, rest.tries), (&[3][..], 1));
    story.consumer.settle_found("w", rest.id, 2).expect("held");
    let rest = story.take(1, 0).remove(0);
    assert_eq!((&*rest.positions, rest.tries), (&[3][..], 1), "nothing of it was settled");
    story.consumer.settle_found("w", rest.id, 9).expect("held");
    assert_eq!(story.consumer.open_key_count(), 0);
}

#[test]
fn a_settled_run_is_saved_and_needed_from_its_first_event_on_until_it_is_scanned() {
    let open = |next| OpenKey { key: KeyName::Value("a".into()), next, tries: 0, is_parked: false };
    let mut story = Story::new(definition(), &["a"]);
    story.read();
    let saved = Checkpoint { is_full: true, ..story.save() };
    assert_eq!(saved.open, [open(1)]);
    let mut consumer = Consumer::restore(definition(), &[saved], 5).expect("a chain");
    let [look_up] = &consumer.wanted_look_ups(9, 9)[..] else { panic!("one look-up") };
    consumer.leave_out(vec![SettledRun { key: "a".into(), first: 1, last: 3 }]);
    assert_eq!(consumer.found(look_up, &[], true), LookUpVerdict::Closed);
    assert_eq!((consumer.open_key_count(), consumer.needed_after()), (0, 0));
    assert_eq!(consumer.checkpoint(5).expect("no other one").open, [open(1)]);
    consumer.checkpoint_recorded(1);
    consumer.scanned(ScanFrom { generation: 1, after: 1 }, &[], 4);
    let saved = consumer.checkpoint(5).expect("no other one");
    assert!(saved.is_full && saved.open.is_empty(), "{saved:?}");
    assert_eq!(consumer.needed_after(), 1, "where settlements are looked up");
}

#[test]
fn a_run_is_of_one_key_and_settles_in_parts() {
    let run = Definition { run: 3, ..definition() };
    let mut story = Story::new(run, &["a", "a", "a", "a b", "a"]);
    let run = story.take(1, 0).remove(0);
    assert_eq!(run.positions, [1, 2, 3], "as far as they were scanned");
    assert_eq!(story.consumer.settle("w", run.id, Some(9)), Err(DeliveryRefusal::NotInDelivery));
    story.consumer.settle("w", run.id, Some(1)).expect("held");
    story.consumer.give_back("w", run.id).expect("the rest is held");
    let run = story.take(1, 0).remove(0);
    assert_eq!((&run.positions[..], run.tries), (&[2, 3][..], 1));
    story.consumer.settle("w", run.id, None).expect("held");
    assert_eq!(story.positions(1, 0), [4], "an event of two keys is alone");
}

#[test]
fn retries_are_paced_and_the_last_one_parks_the_key() {
    let mut story = Story::new(definition(), &["a", "a", "b"]);
    let first = story.take(1, 0).remove(0);
    story.consumer.fail("w", first.id, None, 0).expect("held");
    assert_eq!(story.positions(1, 0), [3], "b goes on");
    assert_eq!(story.consumer.next_due(), Some(10));
    assert_eq!(story.positions(1, 9), []);
    let again = story.take(1, 10).remove(0);
    assert_eq!((&again.positions[..], again.tries), (&[1][..], 2));
    story.consumer.fail("w", again.id, None, 10).expect("held");
    assert!(story.consumer.is_checkpoint_urgent());
    assert!(story.save().open.iter().any(|open| open.is_parked && open.next == 1));
    assert_eq!(story.positions(9, 99), [], "later events of the key wait");
    assert_eq!(story.consumer.skip(ParkedSelection::Keys(&HashSet::from(["a"]))), 1);
    assert_eq!(story.positions(9, 99), [2]);
}

#[test]
fn an_event_parked_alone_comes_back_without_order() {
    let alone = Definition { on_failure: FailureRule::ParkEvent, ..definition() };
    let mut story = Story::new(alone, &["a", "a", "a"]);
    let first = story.take(1, 0).remove(0);
    story.consumer.park("w", first.id).expect("held");
    assert_eq!(story.positions(9, 0), [], "not before it is durable");
    story.save();
    assert_eq!(story.positions(9, 0), [2]);
    assert_eq!(story.consumer.replay(ParkedSelection::Positions(&HashSet::from([1]))), 1);
    story.save();
    let [look_up] = &story.consumer.wanted_look_ups(9, 9)[..] else { panic!("one look-up") };
    let event = KeyedEvent { position: 1, keys: vec!["a"] };
    assert_eq!(story.consumer.found(look_up, &[event], true), LookUpVerdict::Located);
    let again = story.take(9, 0).remove(0);
    assert_eq!((&again.positions[..], again.keys.len(), again.tries), (&[1][..], 0, 1));
}

#[test]
fn where_keys_are_full_an_event_is_parked_with_its_key() {
    let alone = Definition { on_failure: FailureRule::ParkEvent, max_open_keys: 1, ..definition() };
    let mut story = Story::new(alone, &["a", "a"]);
    let first = story.take(1, 0).remove(0);
    assert_eq!(story.consumer.scan_need(9), ScanNeed::Full);
    story.consumer.park("w", first.id).expect("held");
    story.save();
    assert_eq!((story.consumer.status().open_keys, story.consumer.status().parked), (1, 1));
}

#[test]
fn a_failure_may_stop_the_consumer() {
    let stop = Definition { on_failure: FailureRule::Stop, max_tries: 1, ..definition() };
    let mut story = Story::new(stop, &["a", "b"]);
    let first = story.take(1, 0).remove(0);
    story.consumer.fail("w", first.id, None, 0).expect("held");
    assert_eq!(story.consumer.status().state, RunState::Stopped);
    assert_eq!(story.consumer.scan_need(9), ScanNeed::Idle);
    assert_eq!(story.positions(9, 0), []);
    story.consumer.resume();
    assert_eq!(story.positions(9, 0), [2, 1]);
}

#[test]
fn scanning_is_cut_at_the_bound_of_open_keys() {
    let few = Definition { max_open_keys: 2, ..definition() };
    let mut story = Story::new(few, &["a", "b", "", "c d e"]);
    let from = ScanFrom { generation: 1, after: 0 };
    let events = events(&story.log, 0, 4);
    let mut consumer = Consumer::new(story.consumer.definition().clone(), 1, 0);
    assert_eq!(consumer.scanned(from, &events, 4), ScanVerdict::Cut(2));
    assert_eq!(consumer.scanned(from, &events, 4), ScanVerdict::Stale);
    assert_eq!(consumer.scan_need(9), ScanNeed::Full);
    for (open, taken) in [(2, vec![1, 2]), (1, vec![3]), (3, vec![4])] {
        let given = story.take(9, 0);
        let positions: Vec<Position> = given.iter().map(|delivery| delivery.positions[0]).collect();
        assert_eq!((story.consumer.status().open_keys, positions), (open, taken));
        for delivery in given {
            story.consumer.settle("w", delivery.id, None).expect("held");
        }
    }
}

#[test]
fn nothing_of_a_generation_is_delivered_before_it_is_durable() {
    let mut story = Story::new(definition(), &["a"]);
    let late = story.take(1, 0).remove(0);
    story.consumer.reset(0);
    assert_eq!(story.positions(1, 0), []);
    story.save();
    assert_eq!(story.consumer.settle("w", late.id, None), Err(DeliveryRefusal::Lost));
    assert_eq!(story.positions(1, 0), [1]);
}

#[test]
fn deltas_follow_until_they_are_as_large_as_the_full_one() {
    let log: Vec<String> = (0..20).map(|key| format!("k{key}")).collect();
    let log: Vec<&str> = log.iter().map(String::as_str).collect();
    let mut story = Story::new(definition(), &log);
    story.read();
    let full = story.save();
    assert!(full.is_full && full.open.len() == 20);
    assert!(!story.consumer.has_unsaved());
    let mut kinds = Vec::new();
    while kinds.last() != Some(&true) {
        let taken = story.take(1, 0).remove(0);
        story.consumer.settle("w", taken.id, None).expect("held");
        let built = story.save();
        kinds.push(built.is_full);
        assert!(built.is_full || built.closed.len() == 1);
    }
    assert!(kinds[..9].iter().all(|is_full| !is_full), "{kinds:?}");
    let last = kinds.len() - 1;
    assert_eq!(kinds.iter().position(|is_full| *is_full), Some(last), "{kinds:?}");
}

#[test]
fn a_definition_keeps_its_limits() {
    assert_eq!(definition().check(), Ok(()));
    let long = Definition { run: 101, ..definition() };
    assert_eq!(long.check(), Err(DefinitionFault::Run));
    let short = Definition { max_hold_us: 99, ..definition() };
    assert_eq!(short.check(), Err(DefinitionFault::MaxHold));
    let backoff = Backoff { first_us: 10, most_us: 50 };
    assert_eq!([1, 2, 3, 4, 200].map(|failures| backoff.after(failures)), [10, 20, 40, 50, 50]);
}

#[test]
fn the_values_of_a_tag_are_the_keys() {
    let key = OrderKey::Tag("account".into());
    let tags = ["account:2", "accounts:3", "account:1", "account:2", "account", "other:1"];
    assert_eq!(key.values(tags), ["1", "2"]);
    assert_eq!(OrderKey::All.values(tags), [""]);
    assert_eq!(OrderKey::None.values(tags), [""; 0]);
}

#[test]
fn an_event_whose_workers_die_is_parked_and_told_with_its_worker() {
    let mut story = Story::new(Definition { max_tries: 1, ..definition() }, &["a"]);
    story.take(1, 0);
    assert_eq!(story.consumer.take_parked_by_expiry(), []);
    story.consumer.expire(1_000_000);
    assert_eq!(story.consumer.take_parked_by_expiry(), [(1, "w".into())]);
    assert_eq!(story.consumer.take_parked_by_expiry(), []);
}

#[test]
fn the_worker_that_was_silent_for_longest_and_holds_nothing_makes_room() {
    let mut story = Story::new(definition(), &["a"]);
    story.take(1, 0);
    story.consumer.begin_turn("idle", 1, 1);
    story.consumer.begin_turn("late", 1, 2);
    assert!(story.consumer.forget_idle_worker());
    assert!(story.consumer.knows_worker("w") && !story.consumer.knows_worker("idle"));
    assert!(story.consumer.forget_idle_worker() && !story.consumer.forget_idle_worker());
    assert!(story.consumer.knows_worker("w"), "it holds something");
}

#[test]
fn a_long_scan_without_an_event_is_saved() {
    let mut consumer = Consumer::new(definition(), 1, 0);
    consumer.checkpoint(0).expect("the first one");
    consumer.checkpoint_recorded(1);
    let scan = |consumer: &mut Consumer, after, up_to| {
        let from = ScanFrom { generation: 1, after };
        assert_eq!(consumer.scanned(from, &[], up_to), ScanVerdict::Taken);
    };
    scan(&mut consumer, 0, 65_535);
    assert!(!consumer.has_unsaved());
    scan(&mut consumer, 65_535, 65_536);
    assert!(consumer.has_unsaved());
    assert_eq!(consumer.checkpoint(65_536).expect("another one").scanned, 65_536);
    consumer.checkpoint_recorded(1);
    assert!(!consumer.has_unsaved());
}
