//! Sinks to a real Kafka and sources from it, started by test-servers/kafka.sh.

mod bench;
mod source;

use bench::{Bench, committed, position, topic, wait_until};
use std::collections::BTreeSet;
use std::time::Duration;
use wellspring_connectors::sink::{DeliveryMode, PayloadFormat};
use wellspring_connectors::{ConnectorState, StopCode};
use wellspring_kafka::{partition_of, testing};
use wellspring_log::{Clock as _, SystemClock};
use wellspring_types::Event;

/// The delivered positions, sorted; checks that they ascend within each partition.
fn positions(bench: &Bench) -> Vec<u64> {
    let delivered = committed(&bench.cluster(), &bench.topic);
    let mut last = std::collections::HashMap::new();
    for record in &delivered {
        let before = last.insert(record.partition, position(record)).unwrap_or(0);
        assert!(position(record) > before, "partition {}", record.partition);
    }
    let mut all: Vec<u64> = delivered.iter().map(position).collect();
    all.sort_unstable();
    all
}

fn code(state: &ConnectorState) -> Option<StopCode> {
    match state {
        ConnectorState::Stopped { code, .. } => Some(*code),
        _ => None,
    }
}

#[test]
fn every_event_is_there_once_although_the_broker_is_killed_again_and_again() {
    let name = "every_event_is_there_once_although_the_broker_is_killed_again_and_again";
    let Some(broker) = testing::own(name, &[]) else { return };
    let bench = Bench::new(&broker, "killed");
    topic(&bench.cluster(), "killed", 3, &[]);
    let (pump, running) = bench.pump();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| pump.run());
        for round in 0..3 {
            for _ in 0..20 {
                bench.append(100);
                std::thread::sleep(Duration::from_millis(5));
            }
            if round < 2 {
                broker.kill();
                bench.append(500);
                broker.start_again();
            }
        }
        let complete = wait_until(|| running.status.position() == bench.log.head());
        running.control.stop();
        thread.join().expect("no panic");
        assert!(complete, "{:?}", running.status.state());
    });
    assert_eq!(positions(&bench), (1..=bench.log.head()).collect::<Vec<_>>());
}

#[test]
fn a_server_whose_sink_another_has_taken_over_writes_nothing_more() {
    let name = "a_server_whose_sink_another_has_taken_over_writes_nothing_more";
    let Some(broker) = testing::broker(name) else { return };
    let bench = Bench::new(broker, "taken");
    topic(&bench.cluster(), "taken", 2, &[]);
    bench.append(100);
    let (zombie, old) = bench.pump();
    let (heir, new) = bench.pump();
    std::thread::scope(|scope| {
        let zombie = scope.spawn(|| zombie.run());
        assert!(wait_until(|| old.status.position() == 100), "{:?}", old.status.state());
        let heir = scope.spawn(|| heir.run());
        assert!(wait_until(|| new.status.position() == 100), "{:?}", new.status.state());
        bench.append(100);
        assert!(wait_until(|| new.status.position() == 200), "{:?}", new.status.state());
        assert!(wait_until(|| zombie.is_finished()), "{:?}", old.status.state());
        new.control.stop();
        heir.join().expect("no panic");
    });
    assert_eq!(code(&old.status.state()), Some(StopCode::Fenced), "{:?}", old.status.state());
    assert_eq!(positions(&bench), (1..=200).collect::<Vec<_>>());
}

#[test]
fn restarts_go_on_where_the_cursor_is_and_keys_keep_their_partition() {
    let name = "restarts_go_on_where_the_cursor_is_and_keys_keep_their_partition";
    let Some(broker) = testing::broker(name) else { return };
    let bench = Bench::new(broker, "restarted");
    topic(&bench.cluster(), "restarted", 4, &[]);
    for _ in 0..3 {
        bench.append(50);
        assert_eq!(bench.run(), ConnectorState::Ended);
    }
    assert_eq!(positions(&bench), (1..=150).collect::<Vec<_>>());
    for record in committed(&bench.cluster(), "restarted") {
        if let Some(key) = &record.key {
            assert_eq!(record.partition, partition_of(key, 4));
        }
    }
}

#[test]
fn a_topic_that_is_made_again_stops_it() {
    let Some(broker) = testing::broker("a_topic_that_is_made_again_stops_it") else { return };
    let bench = Bench::new(broker, "recreated");
    topic(&bench.cluster(), "recreated", 1, &[]);
    bench.append(10);
    let (pump, running) = bench.pump();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| pump.run());
        assert!(wait_until(|| running.status.position() == 10), "{:?}", running.status.state());
        broker.topics(&["--delete", "--topic", "recreated"]);
        broker.topics(&["--create", "--topic", "recreated", "--partitions", "1"]);
        assert!(wait_until(|| thread.is_finished()), "{:?}", running.status.state());
    });
    let state = running.status.state();
    let expected = [Some(StopCode::TopicRecreated), Some(StopCode::NoTopic)];
    assert!(expected.contains(&code(&state)), "it may look while there is none: {state:?}");
    assert_eq!(code(&bench.run()), Some(StopCode::TopicRecreated));
    assert!(committed(&bench.cluster(), "recreated").is_empty());
}

#[test]
fn an_event_that_is_too_large_stops_it_and_a_small_topic_gets_small_batches() {
    let name = "an_event_that_is_too_large_stops_it_and_a_small_topic_gets_small_batches";
    let Some(broker) = testing::broker(name) else { return };
    let mut bench = Bench::new(broker, "small");
    topic(&bench.cluster(), "small", 2, &[("max.message.bytes", "2000")]);
    bench.append(500);
    bench.append_event(&Event::json("Large", &[], &format!("\"{}\"", "x".repeat(1_900))));
    bench.append(10);
    match bench.run() {
        ConnectorState::Stopped { code: StopCode::TooLarge, position: Some(501), reason } => {
            assert!(reason.contains("wellspring sink skip"), "{reason}");
        }
        state => panic!("{state:?}"),
    }
    assert_eq!(positions(&bench), (1..=500).collect::<Vec<_>>());
    bench.skip = BTreeSet::from([501]);
    assert_eq!(bench.run(), ConnectorState::Ended);
    let expected: Vec<u64> = (1..=511).filter(|position| *position != 501).collect();
    assert_eq!(positions(&bench), expected);
}

#[test]
fn a_record_of_exactly_the_size_that_is_let_through_is_taken_by_the_broker() {
    let name = "a_record_of_exactly_the_size_that_is_let_through_is_taken_by_the_broker";
    let Some(broker) = testing::broker(name) else { return };
    let bench = Bench::new(broker, "edge");
    topic(&bench.cluster(), "edge", 1, &[("max.message.bytes", "20000")]);
    // Noise, because repetitive data compresses to nothing. One of these sizes is the first that
    // the sink itself refuses.
    let mut noise = 1_u32;
    for size in (19_500..19_900).step_by(5) {
        let data: Vec<u8> = (0..size)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                noise.to_be_bytes()[0]
            })
            .collect();
        bench.append_event(&Event {
            data,
            kind: wellspring_types::DataKind::Binary,
            ..Event::json("Noise", &[], "0")
        });
    }
    match bench.run() {
        ConnectorState::Stopped { code: StopCode::TooLarge, position: Some(at), reason } => {
            assert!(
                reason.contains("its record has"),
                "refused by us, not by the broker: {reason}"
            );
            assert_eq!(positions(&bench), (1..at).collect::<Vec<_>>());
        }
        state => panic!("{state:?}"),
    }
}

#[test]
fn at_least_once_goes_on_from_its_store_and_misses_nothing_when_the_broker_is_killed() {
    let name = "at_least_once_goes_on_from_its_store_and_misses_nothing_when_the_broker_is_killed";
    let Some(broker) = testing::own(name, &[]) else { return };
    let mut bench = Bench::new(&broker, "plain");
    bench.mode = DeliveryMode::AtLeastOnce;
    topic(&bench.cluster(), "plain", 2, &[]);
    bench.append(1_000);
    assert_eq!(bench.run(), ConnectorState::Ended);
    assert_eq!(positions(&bench), (1..=1_000).collect::<Vec<_>>());
    let (pump, running) = bench.pump();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| pump.run());
        bench.append(100);
        broker.kill();
        bench.append(100);
        broker.start_again();
        let complete = wait_until(|| running.status.position() == 1_200);
        running.control.stop();
        thread.join().expect("no panic");
        assert!(complete, "{:?}", running.status.state());
    });
    let all: BTreeSet<u64> = committed(&bench.cluster(), "plain").iter().map(position).collect();
    assert!(all.into_iter().eq(1..=1_200));
}

#[test]
fn events_are_cloudevents_if_that_is_wanted() {
    let Some(broker) = testing::broker("events_are_cloudevents_if_that_is_wanted") else { return };
    let mut bench = Bench::new(broker, "documents");
    bench.format = PayloadFormat::CloudEvents;
    topic(&bench.cluster(), "documents", 1, &[]);
    bench.append(3);
    assert_eq!(bench.run(), ConnectorState::Ended);
    let delivered = committed(&bench.cluster(), "documents");
    assert_eq!(delivered.len(), 3);
    for (record, number) in delivered.iter().zip(1..) {
        let value = record.value.as_ref().expect("a value");
        let document: serde_json::Value = serde_json::from_slice(value).expect("JSON");
        assert_eq!(document["specversion"], "1.0");
        assert_eq!(document["data"], number);
        let content_type = record.headers.last().and_then(|(_, value)| value.as_deref());
        assert_eq!(content_type, Some(b"application/cloudevents+json".as_slice()));
    }
}

#[test]
#[ignore = "a measurement: cargo test --release -- --ignored --nocapture"]
fn throughput_of_half_a_million_small_events() {
    let name = "throughput_of_half_a_million_small_events";
    let Some(broker) = testing::own(name, &[]) else { return };
    for mode in [DeliveryMode::ExactlyOnce, DeliveryMode::AtLeastOnce] {
        let mut bench = Bench::new(&broker, &format!("{mode:?}"));
        bench.mode = mode;
        topic(&bench.cluster(), &bench.topic, 4, &[]);
        for _ in 0..500 {
            bench.append(1_000);
        }
        let begin_us = SystemClock.monotonic_us();
        assert_eq!(bench.run(), ConnectorState::Ended);
        let seconds = (SystemClock.monotonic_us() - begin_us) as f64 / 1e6;
        let rate = 500_000.0 / seconds;
        println!("{mode:?}: 500,000 events in {seconds:.2} s, {rate:.0} a second");
        assert_eq!(positions(&bench).len(), 500_000);
    }
}
