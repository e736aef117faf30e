//! The destination driven by the pump against the simulated cluster, under faults and concurrent
//! servers.

use super::simulation::{Bench, TOPIC, position, wait_until};
use crate::fault::StopCode;
use crate::sink::DeliveryMode;
use crate::status::ConnectorState;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use wellspring_kafka::FaultKind;
use wellspring_kafka::simulated::{DeliveredPart, Operation, PlannedFault};
use wellspring_log::{Append, EncodedEvents};
use wellspring_types::Event;

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::Deliver),
        1 => Just(Operation::Describe),
        1 => Just(Operation::MakeProducer),
        1 => Just(Operation::MakeReader),
        1 => Just(Operation::Poll),
    ]
}

fn faults() -> impl Strategy<Value = PlannedFault> {
    prop_oneof![
        Just(PlannedFault::new(FaultKind::Unavailable)),
        Just(PlannedFault::in_doubt(DeliveredPart::Nothing)),
        Just(PlannedFault::in_doubt(DeliveredPart::Half)),
        Just(PlannedFault::in_doubt(DeliveredPart::Everything)),
    ]
}

/// A step between two appends.
#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Fail(Operation, PlannedFault),
    Unreachable,
    /// Stops the pump and starts another.
    Restart,
    /// Another server starts running the sink, unknown to this one.
    TakeOver,
}

fn steps(with_others: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_usize..40).prop_map(Step::Append),
        3 => (operations(), faults()).prop_map(|(operation, fault)| Step::Fail(operation, fault)),
        1 => Just(Step::Unreachable),
        1 => Just(Step::Restart),
        u32::from(with_others) => Just(Step::TakeOver),
    ];
    prop::collection::vec(step, 1..9)
}

/// Performs the steps while pumps run, and waits until everything is delivered.
fn play(bench: &Bench, steps: &[Step]) {
    std::thread::scope(|scope| {
        let begin = || {
            let (pump, running) = bench.pump();
            (scope.spawn(|| pump.run()), running)
        };
        let mut all = vec![begin()];
        for step in steps {
            match step {
                Step::Append(count) => bench.append(*count),
                Step::Fail(operation, fault) => bench.cluster.fail_next(*operation, *fault),
                Step::Unreachable => bench.unreachable.store(1, Relaxed),
                Step::Restart => {
                    if let Some((thread, running)) = all.pop() {
                        running.control.stop();
                        thread.join().unwrap();
                    }
                    all.push(begin());
                }
                Step::TakeOver => all.push(begin()),
            }
            // Varies where batches begin and end relative to the steps.
            std::thread::sleep(Duration::from_millis(2));
        }
        let head = bench.log.head();
        let complete = wait_until(|| {
            let delivered: BTreeSet<_> = bench.delivered().iter().map(position).collect();
            delivered.len() as u64 == head
        });
        let states: Vec<_> = all.iter().map(|(_, running)| running.status.state()).collect();
        for (_, running) in &all {
            running.control.stop();
        }
        assert!(complete, "{states:?}");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_event_is_there_once_whatever_fails_and_however_many_servers_run_the_sink(
        steps in steps(true),
        partitions in 1..4_i32,
    ) {
        let bench = Bench::new(partitions);
        play(&bench, &steps);
        let expected: Vec<u64> = (1..=bench.log.head()).collect();
        prop_assert_eq!(bench.positions(), expected);
    }

    #[test]
    fn at_least_once_misses_nothing_whatever_fails(
        steps in steps(false),
        partitions in 1..4_i32,
    ) {
        let bench = Bench { mode: DeliveryMode::AtLeastOnce, ..Bench::new(partitions) };
        play(&bench, &steps);
    }
}

#[test]
fn a_topic_that_is_made_again_stops_it_while_it_has_nothing_to_deliver() {
    let bench = Bench::new(1);
    bench.append(10);
    let state = bench.run_until(|status| {
        if status.position() == 10 && bench.delivered().len() == 10 {
            bench.cluster.recreate_topic(TOPIC);
        }
        false
    });
    let stopped = matches!(state, ConnectorState::Stopped { code: StopCode::TopicRecreated, .. });
    assert!(stopped, "{state:?}");
    assert!(bench.delivered().is_empty());
}

#[test]
fn a_cursor_on_an_event_of_another_log_stops_it() {
    let bench = Bench::new(1);
    bench.append(10);
    assert_eq!(bench.run(), ConnectorState::Ended);
    // The log is lost and filled again; the cursor remains in Kafka.
    let cluster = bench.cluster.clone();
    let other = Bench { cluster, ..Bench::without_topic() };
    for appended in [5, 10] {
        other.append(appended);
        let state = other.run();
        let code = match &state {
            ConnectorState::Stopped { code, .. } => Some(*code),
            _ => None,
        };
        assert_eq!(code, Some(StopCode::AnotherHistory), "{state:?}");
    }
    assert_eq!(other.positions(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn an_event_that_is_too_large_stops_it_behind_all_before_and_is_skipped_if_a_person_says_so() {
    let bench = Bench::without_topic();
    bench.cluster.add_topic_with(TOPIC, 2, &[("max.message.bytes", "1000")]);
    bench.append(30);
    let mut events = EncodedEvents::new();
    let data = format!("\"{}\"", "x".repeat(900));
    events.push(&Event::json("Large", &[], &data).as_ref()).unwrap();
    bench.log.append(Append { events, ..Append::default() }).unwrap();
    bench.append(5);
    match bench.run() {
        ConnectorState::Stopped { code: StopCode::TooLarge, position: Some(31), .. } => {}
        state => panic!("{state:?}"),
    }
    assert_eq!(bench.positions(), (1..=30).collect::<Vec<_>>());
    let skipping = Bench { skip: BTreeSet::from([31]), ..bench };
    assert_eq!(skipping.run(), ConnectorState::Ended);
    let expected: Vec<u64> = (1..=36).filter(|position| *position != 31).collect();
    assert_eq!(skipping.positions(), expected);
}

#[test]
fn a_batch_of_skipped_events_moves_the_cursor() {
    let bench = Bench { skip: BTreeSet::from([1, 2]), ..Bench::new(1) };
    bench.append(2);
    assert_eq!(bench.run(), ConnectorState::Ended);
    assert!(bench.delivered().is_empty());
    let (_, cursor) = bench.opened();
    assert_eq!(cursor.map(|cursor| cursor.position), Some(2));
}

#[test]
fn a_topic_that_is_missing_stops_it() {
    let bench = Bench::without_topic();
    bench.append(1);
    let state = bench.run();
    let stopped = matches!(state, ConnectorState::Stopped { code: StopCode::NoTopic, .. });
    assert!(stopped, "{state:?}");
}
