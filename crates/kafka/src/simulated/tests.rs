//! The simulated cluster behaves as the client does against brokers (tests/broker).

use super::*;
use crate::cluster::Retention;
use bytes::Bytes;
use std::time::Duration;

const NOT_LONG: Duration = Duration::from_millis(5);

fn record(topic: &str, partition: i32, number: u32) -> OutgoingRecord {
    OutgoingRecord {
        topic: topic.to_owned(),
        partition,
        timestamp_ms: i64::from(number),
        key: Some(Bytes::from(format!("key-{}", number % 3))),
        value: Some(Bytes::from(number.to_string())),
        headers: vec![("number".to_owned(), None)],
    }
}

fn records(topic: &str, partition: i32, numbers: std::ops::Range<u32>) -> Vec<OutgoingRecord> {
    numbers.map(|number| record(topic, partition, number)).collect()
}

fn numbers(records: &[Record]) -> Vec<i64> {
    records.iter().map(|record| record.timestamp_ms).collect()
}

fn cluster(partitions: i32) -> SimulatedCluster {
    let cluster = SimulatedCluster::new();
    cluster.add_topic("t", partitions);
    cluster
}

#[test]
fn a_topic_is_described_as_it_was_made() {
    let cluster = cluster(3);
    let described = cluster.topic("t").unwrap();
    assert_eq!((described.partitions, described.max_message_bytes), (3, 1_048_588));
    assert!(!described.is_compacted);
    let settings = [("cleanup.policy", "compact"), ("max.message.bytes", "2000")];
    cluster.add_topic_with("c", 1, &settings);
    let compacted = cluster.topic("c").unwrap();
    assert!(compacted.is_compacted && compacted.retention == Retention::Unlimited);
    assert_eq!(compacted.max_message_bytes, 2_000);
    assert_ne!(compacted.id, described.id);
    assert_eq!(cluster.topic("nowhere").unwrap_err().kind, FaultKind::NoTopic);
    let again =
        NewTopic { name: "t".into(), partitions: Some(9), replicas: None, settings: Vec::new() };
    assert_eq!(cluster.create_topic(&again), Ok(Creation::Existed));
    assert_eq!(cluster.topic("t").unwrap(), described);
}

#[test]
fn a_transaction_takes_an_offset_more_than_it_has_records() {
    let cluster = cluster(2);
    let mut producer = cluster.transactional_producer("p").unwrap();
    let mut batch = records("t", 0, 0..3);
    batch.extend(records("t", 1, 3..4));
    producer.deliver(batch).unwrap();
    producer.deliver(records("t", 0, 4..5)).unwrap();
    producer.deliver(Vec::new()).unwrap();
    assert_eq!(cluster.offsets("t", 0).unwrap(), OffsetRange { first: 0, end: 6 });
    assert_eq!(cluster.offsets("t", 1).unwrap(), OffsetRange { first: 0, end: 2 });
    let offsets: Vec<i64> = cluster.committed("t").iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [0, 1, 2, 4, 0]);
}

#[test]
fn a_producer_whose_id_was_taken_is_fenced_and_spent() {
    let cluster = cluster(1);
    let mut zombie = cluster.transactional_producer("p").unwrap();
    let mut other = cluster.transactional_producer("q").unwrap();
    zombie.deliver(records("t", 0, 0..1)).unwrap();
    let mut heir = cluster.clone().transactional_producer("p").unwrap();
    assert_eq!(zombie.deliver(records("t", 0, 9..10)).unwrap_err().kind, FaultKind::Fenced);
    assert_eq!(zombie.deliver(records("t", 0, 9..10)).unwrap_err().kind, FaultKind::Unusable);
    heir.deliver(records("t", 0, 1..2)).unwrap();
    other.deliver(records("t", 0, 2..3)).unwrap();
    assert_eq!(numbers(&cluster.committed("t")), [0, 1, 2]);
}

#[test]
fn a_transaction_is_delivered_whole_or_not_at_all() {
    let cluster = cluster(1);
    let mut batch = records("t", 0, 0..2);
    batch.push(record("t", 7, 2));
    let mut producer = cluster.transactional_producer("p").unwrap();
    assert_eq!(producer.deliver(batch).unwrap_err().kind, FaultKind::NoTopic);
    for (delivered, expected) in [
        (DeliveredPart::Nothing, vec![]),
        (DeliveredPart::Half, vec![]),
        (DeliveredPart::Everything, vec![0, 1, 2, 3]),
    ] {
        cluster.fail_next(Operation::Deliver, PlannedFault::in_doubt(delivered));
        let mut producer = cluster.transactional_producer("p").unwrap();
        let fault = producer.deliver(records("t", 0, 0..4)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::InDoubt);
        assert_eq!(numbers(&cluster.committed("t")), expected);
    }
}

#[test]
fn without_transactions_half_may_be_delivered_and_nothing_is_marked() {
    let cluster = cluster(1);
    cluster.fail_next(Operation::Deliver, PlannedFault::in_doubt(DeliveredPart::Half));
    let mut producer = cluster.idempotent_producer().unwrap();
    assert!(producer.deliver(records("t", 0, 0..4)).is_err());
    assert!(producer.deliver(records("t", 0, 0..4)).is_err(), "it is spent");
    cluster.idempotent_producer().unwrap().deliver(records("t", 0, 4..5)).unwrap();
    assert_eq!(numbers(&cluster.committed("t")), [0, 1, 4]);
    assert_eq!(cluster.offsets("t", 0).unwrap().end, 3);
}

#[test]
fn what_is_too_large_is_refused_alone_and_as_a_batch_of_small_ones() {
    let cluster = SimulatedCluster::new();
    cluster.add_topic_with("t", 1, &[("max.message.bytes", "1000")]);
    let deliver = |batch: Vec<OutgoingRecord>| {
        cluster.transactional_producer("p").unwrap().deliver(batch).map_err(|fault| fault.kind)
    };
    assert_eq!(deliver(records("t", 0, 0..100)), Err(FaultKind::TooLarge));
    let mut large = record("t", 0, 0);
    large.value = Some(Bytes::from(vec![b'x'; 1_000]));
    assert_eq!(deliver(vec![large]), Err(FaultKind::TooLarge));
    assert_eq!(deliver(records("t", 0, 0..10)), Ok(()));
}

#[test]
fn readers_see_what_is_committed_from_where_they_begin() {
    let cluster = cluster(2);
    cluster.append(records("t", 0, 0..5));
    cluster.append(records("t", 1, 5..8));
    let mut reader = cluster.reader("t", &[(0, 3), (1, 0)]).unwrap();
    assert_eq!(numbers(&reader.poll(NOT_LONG).unwrap()), [3, 4, 5, 6, 7]);
    assert!(reader.poll(NOT_LONG).unwrap().is_empty());
    let open = cluster.append_uncommitted(record("t", 0, 8));
    cluster.append(records("t", 0, 9..10));
    assert!(reader.poll(NOT_LONG).unwrap().is_empty(), "an open transaction is in the way");
    assert_eq!(cluster.offsets("t", 0).unwrap().end, 7);
    open.abort();
    assert_eq!(numbers(&reader.poll(NOT_LONG).unwrap()), [9]);
    cluster.append_uncommitted(record("t", 1, 10)).commit();
    assert_eq!(numbers(&reader.poll(NOT_LONG).unwrap()), [10]);
    let mut again = cluster.reader("t", &[(1, 3)]).unwrap();
    assert_eq!(numbers(&again.poll(NOT_LONG).unwrap()), [10]);
}

#[test]
fn a_waiting_reader_is_woken_by_a_record() {
    let cluster = cluster(1);
    let mut reader = cluster.reader("t", &[(0, 0)]).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || reader.poll(Duration::from_secs(600)));
        cluster.append(records("t", 0, 0..1));
        assert_eq!(waiting.join().unwrap().unwrap().len(), 1);
    });
}

#[test]
fn retention_puts_readers_out_of_range() {
    let cluster = cluster(1);
    cluster.append(records("t", 0, 0..5));
    let mut reader = cluster.reader("t", &[(0, 1)]).unwrap();
    cluster.delete_records_before("t", 0, 3);
    assert_eq!(cluster.offsets("t", 0).unwrap(), OffsetRange { first: 3, end: 5 });
    assert_eq!(reader.poll(NOT_LONG).unwrap_err().kind, FaultKind::OutOfRange);
    for gone in [2, 6, -1] {
        let fault = cluster.reader("t", &[(0, gone)]).err().unwrap();
        assert_eq!(fault.kind, FaultKind::OutOfRange);
    }
    assert_eq!(numbers(&cluster.committed("t")), [3, 4]);
}

#[test]
fn compaction_keeps_the_last_of_each_key_at_its_offset() {
    let cluster = cluster(1);
    cluster.append(records("t", 0, 0..8));
    cluster.compact("t");
    assert_eq!(numbers(&cluster.committed("t")), [5, 6, 7]);
    let mut reader = cluster.reader("t", &[(0, 2)]).unwrap();
    assert_eq!(reader.poll(NOT_LONG).unwrap()[0].offset, 5);
}

#[test]
fn a_topic_that_is_made_again_ends_its_readers_and_has_another_id() {
    let cluster = cluster(2);
    cluster.append(records("t", 0, 0..5));
    let before = cluster.topic("t").unwrap();
    let mut reader = cluster.reader("t", &[(0, 0)]).unwrap();
    cluster.recreate_topic("t");
    assert_eq!(reader.poll(NOT_LONG).unwrap_err().kind, FaultKind::TopicRecreated);
    assert!(cluster.committed("t").is_empty());
    let after = cluster.topic("t").unwrap();
    assert_ne!(before.id, after.id);
    assert_eq!(after.partitions, 2);
    cluster.grow_topic("t", 5);
    assert_eq!(cluster.topic("t").unwrap().partitions, 5);
    cluster.delete_topic("t");
    let mut producer = cluster.idempotent_producer().unwrap();
    assert_eq!(producer.deliver(records("t", 0, 0..1)).unwrap_err().kind, FaultKind::NoTopic);
}

#[test]
fn planned_faults_come_in_order_and_once() {
    let cluster = cluster(1);
    cluster.fail_next(Operation::Describe, PlannedFault::new(FaultKind::Unavailable));
    cluster.fail_next(Operation::Describe, PlannedFault::new(FaultKind::Forbidden));
    cluster.fail_next(Operation::MakeReader, PlannedFault::new(FaultKind::Unavailable));
    assert_eq!(cluster.topic("t").unwrap_err().kind, FaultKind::Unavailable);
    assert_eq!(cluster.id().unwrap_err().kind, FaultKind::Forbidden);
    assert!(cluster.id().is_ok());
    cluster.forget_faults();
    assert!(cluster.reader("t", &[(0, 0)]).is_ok());
}
