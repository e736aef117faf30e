//! The pump between a simulated cluster and logs on simulated disks.

use super::bench::{Bench, TOPIC};
use super::*;
use crate::source::advance::SourceAdvanced;
use crate::source::{RECORD_REJECTED, RecordData, SOURCE_ADVANCED};
use std::sync::atomic::Ordering;
use wellspring_kafka::simulated::{Operation, PlannedFault};
use wellspring_log::storage::simulated::Faults;
use wellspring_log::{Append, EncodedEvents, ReadOptions};
use wellspring_types::{Event, Query};

#[test]
fn every_record_comes_once_as_an_event_or_into_the_reject_log() {
    let bench = Bench::new(3);
    for n in 0..5_000 {
        let value = format!("{{\"n\":{n}}}");
        bench.produce(n % 3, (n % 100 != 7).then_some(&value));
    }
    let open = bench.cluster.append_uncommitted(bench.record(1, Some("1")));
    open.abort();
    bench.produce(1, Some("2"));
    let status = bench.run_until(5_001);
    bench.require_each_once();
    assert_eq!(status.state(), ConnectorState::Ended);
    assert_eq!(status.counters.events.load(Ordering::Relaxed), 4_951);
    assert_eq!(status.counters.set_aside.load(Ordering::Relaxed), 50);
    assert_eq!(status.counters.conflicts.load(Ordering::Relaxed), 0);
    assert_eq!(status.position(), bench.main.log.head());
    assert_eq!(status.records_behind(), 0);
}

#[test]
fn faults_of_the_cluster_go_by_and_a_new_connection_is_made() {
    let bench = Bench::new(2);
    for operation in [Operation::Describe, Operation::MakeReader, Operation::Poll] {
        bench.cluster.fail_next(operation, PlannedFault::new(FaultKind::Unavailable));
    }
    for n in 0..10 {
        bench.produce(n % 2, Some("1"));
    }
    let status = bench.run_until(10);
    bench.require_each_once();
    assert_eq!(status.counters.restarts.load(Ordering::Relaxed), 3);
    assert_eq!(bench.connections.load(Ordering::Relaxed), 4);
}

#[test]
fn now_is_when_it_first_began_and_partitions_added_later_are_read_from_their_beginning() {
    let mut bench = Bench::new(2);
    bench.definition.start = StartAt::Now;
    bench.produce(0, Some("\"before\""));
    let first = bench.start();
    first.wait_for(|status| status.state() == ConnectorState::Running);
    first.stop();
    bench.produce(1, Some("\"while it was away\""));
    bench.cluster.grow_topic(TOPIC, 3);
    bench.produce(2, Some("\"new\""));
    let running = bench.start();
    running.wait_for(|_| bench.count() == 2);
    bench.cluster.grow_topic(TOPIC, 4);
    bench.produce(3, Some("\"newer\""));
    running.wait_for(|_| bench.count() == 3);
    running.stop();
    assert_eq!(bench.events(), [(1, vec![0]), (2, vec![0]), (3, vec![0])].into());
}

#[test]
fn a_recreated_topic_stops_the_source_until_an_operator_resets_it() {
    let mut bench = Bench::new(1);
    bench.produce(0, Some("1"));
    let running = bench.start();
    running.wait_for(|_| bench.count() == 1);
    bench.cluster.recreate_topic(TOPIC);
    running.stopped_with(StopCode::TopicRecreated);
    bench.produce(0, Some("2"));
    let reason = bench.start().stopped_with(StopCode::TopicRecreated);
    assert!(reason.contains("has id"), "{reason}");
    assert_eq!(bench.count(), 1);
    bench.generation = 2;
    bench.run_until(2);
    assert_eq!(bench.events(), [(0, vec![0, 0])].into());
    bench.generation = 1;
    let reason = bench.start().stopped_with(StopCode::Fenced);
    assert!(reason.contains("generation 2"), "{reason}");
}

#[test]
fn a_new_generation_reads_again_from_where_it_is_told_to() {
    let mut bench = Bench::new(2);
    for n in 0..10 {
        bench.produce(n % 2, (n != 4).then_some("1"));
    }
    bench.run_until(10);
    bench.generation = 2;
    bench.run_until(20);
    assert_eq!(bench.rejected(), [(0, vec![2, 2])].into());
    bench.generation = 3;
    bench.definition.start = StartAt::Now;
    let running = bench.start();
    running.wait_for(|status| status.state() == ConnectorState::Running);
    bench.produce(1, Some("1"));
    running.wait_for(|_| bench.count() == 21);
    running.stop();
    assert_eq!(bench.events()[&1], [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5]);
}

#[test]
fn records_that_are_gone_stop_it_and_are_named() {
    let bench = Bench::new(2);
    bench.produce(1, Some("1"));
    bench.run_until(1);
    for _ in 0..5 {
        bench.produce(1, Some("1"));
    }
    bench.cluster.delete_records_before(TOPIC, 1, 3);
    let reason = bench.start().stopped_with(StopCode::RecordsLost);
    for word in ["partition 1", "offset 1", "is 3"] {
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!(bench.count(), 1);
}

#[test]
fn records_that_go_while_it_runs_stop_it_too() {
    let bench = Bench::new(1);
    bench.produce(0, Some("1"));
    let running = bench.start();
    running.wait_for(|_| bench.count() == 1);
    // No reader gets past an open transaction, so the next three records are not read.
    let _open = bench.cluster.append_uncommitted(bench.record(0, Some("1")));
    bench.produce(0, Some("1"));
    bench.produce(0, Some("1"));
    bench.cluster.delete_records_before(TOPIC, 0, 3);
    let reason = running.stopped_with(StopCode::RecordsLost);
    for word in ["partition 0", "offset 1", "is 3"] {
        assert!(reason.contains(word), "{reason}");
    }
}

#[test]
fn a_source_whose_cursor_keeps_moving_reports_another_runner() {
    let bench = Bench::new(1);
    let running = bench.start();
    running.wait_for(|status| status.state() == ConnectorState::Running);
    let topic = bench.cluster.topic(TOPIC).unwrap();
    let origin = Origin::new("orders-in", 1, "simulated", TOPIC, topic.id).unwrap();
    let is_told = |status: &Status| match status.state() {
        ConnectorState::Retrying { reason } => reason.contains("another server"),
        _ => false,
    };
    let mut conflicts = 0;
    while !is_told(&running.status) && conflicts < 10 {
        // Another server records what is already true: that nothing has been read after this point.
        let mut events = EncodedEvents::new();
        let advance = SourceAdvanced::new(&origin, 0, conflicts - 1, 0);
        advance.push(&origin, &mut events).unwrap();
        bench.main.log.append(Append { events, ..Append::default() }).unwrap();
        bench.produce(0, Some("1"));
        conflicts += 1;
        running.wait_for(|status| {
            status.counters.conflicts.load(Ordering::Relaxed) >= conflicts as u64
        });
        if !is_told(&running.status) {
            running.wait_for(|_| bench.count() == conflicts as usize);
        }
    }
    assert!((3..10).contains(&conflicts), "{conflicts}: {:?}", running.status);
    running.wait_for(|_| bench.count() == conflicts as usize);
    running.stop();
    bench.require_each_once();
}

#[test]
fn without_a_reject_log_it_stops_behind_all_that_is_good_and_goes_on_with_one() {
    let mut bench = Bench::new(1);
    bench.with_rejects = false;
    for n in 0..2_500 {
        bench.produce(0, (n != 2_000).then_some("1"));
    }
    let reason = bench.start().stopped_with(StopCode::Rejected);
    for word in [TOPIC, "partition 0", "offset 2000", "not JSON"] {
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!(bench.events()[&0].len(), 2_000);
    bench.with_rejects = true;
    bench.run_until(2_500);
    bench.require_each_once();
}

#[test]
fn what_was_rejected_stays_rejected_though_the_definition_has_changed() {
    let mut bench = Bench::new(1);
    for n in 0..6 {
        bench.produce(0, (n != 3).then_some("1"));
    }
    let empty = bench.main.storage.contents();
    bench.run_until(6);
    // The crash lost everything in the main log and nothing in the other.
    let storage = wellspring_log::storage::simulated::SimulatedStorage::with_contents(1, &empty);
    bench.main = super::bench::DiskLog::open(storage);
    bench.definition.data = RecordData::Binary;
    bench.definition.tags.clear();
    bench.run_until(6);
    bench.require_each_once();
}

#[test]
fn two_sources_carry_one_topic_into_one_log() {
    let bench = Bench::new(1);
    for _ in 0..100 {
        bench.produce(0, Some("1"));
    }
    let running = [bench.start_named("a"), bench.start_named("b")];
    running[0].wait_for(|_| bench.count() == 200);
    for running in running {
        let status = running.stop();
        assert_eq!(status.counters.events.load(Ordering::Relaxed), 100);
    }
}

#[test]
fn ids_that_others_have_taken_are_done_without() {
    let bench = Bench::new(1);
    for _ in 0..10 {
        bench.produce(0, Some("1"));
    }
    let cluster: &dyn Cluster = &bench.cluster;
    let topic = cluster.topic(TOPIC).unwrap();
    let id = cluster.id().unwrap();
    let origin = Origin::new("orders-in", 1, &id, TOPIC, topic.id).unwrap();
    let mut event = Event::json("Other", &[], "1");
    event.id = Some(origin.event_ids(0).id(5));
    let mut events = EncodedEvents::new();
    events.push(&event.as_ref()).unwrap();
    bench.main.log.append(Append { events, ..Append::default() }).unwrap();
    bench.run_until(11);
    assert_eq!(bench.events()[&0], (0..10).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_is_waited_for() {
    let bench = Bench::new(1);
    let running = bench.start();
    running.wait_for(|status| status.state() == ConnectorState::Running);
    let full = Faults { capacity_bytes: Some(1), ..Faults::default() };
    bench.main.storage.set_faults(full);
    for _ in 0..2_000 {
        bench.produce(0, Some("1"));
    }
    running.wait_for(|status| matches!(status.state(), ConnectorState::Retrying { .. }));
    // Small appends may still fit into the segment's reserved space.
    assert!(bench.count() < 2_000);
    bench.main.storage.set_faults(Faults::default());
    running.wait_for(|_| bench.count() == 2_000);
    running.stop();
    bench.require_each_once();
}

#[test]
fn it_ends_with_its_log() {
    let bench = Bench::new(1);
    bench.produce(0, Some("1"));
    let running = bench.start();
    running.wait_for(|_| bench.count() == 1);
    bench.main.log.close();
    assert_eq!(running.join().state(), ConnectorState::Ended);
}

#[test]
fn settings_that_cannot_work_stop_it() {
    let mut bench = Bench::new(1);
    bench.start_named("a\n").stopped_with(StopCode::Unusable);
    bench.definition.start = StartAt::After(3);
    bench.start().stopped_with(StopCode::Unusable);
    bench.definition.start = StartAt::Beginning;
    bench.definition.topic = "none".into();
    bench.start().stopped_with(StopCode::NoTopic);
}

#[test]
fn a_cursor_tells_what_was_read_and_carries_the_tags_it_is_found_by() {
    let bench = Bench::new(1);
    for n in 0..3 {
        bench.produce(0, (n != 1).then_some("1"));
    }
    bench.run_until(3);
    let topic = bench.cluster.topic(TOPIC).unwrap();
    let hex: String = topic.id.iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("source:simulated/{hex}/0");
    let query = Query::item(&[SOURCE_ADVANCED], &[&tag, "connector:orders-in"]);
    let mut events = bench.main.log.snapshot().read(&query, ReadOptions::default());
    let mut offsets = Vec::new();
    let mut records = 0;
    while let Some(event) = events.next().unwrap() {
        let data: serde_json::Value = serde_json::from_slice(event.data()).unwrap();
        assert_eq!((&data["source"], &data["topic"]), (&"orders-in".into(), &TOPIC.into()));
        offsets.push(data["offset"].as_i64().unwrap());
        records += data["records"].as_u64().unwrap();
    }
    assert_eq!((offsets.first(), offsets.last(), records), (Some(&-1), Some(&2), 3));
    let query = Query::item(&[RECORD_REJECTED], &[&tag, "connector:orders-in"]);
    let mut events = bench.rejects.log.snapshot().read(&query, ReadOptions::default());
    assert!(events.next().unwrap().is_some());
}
