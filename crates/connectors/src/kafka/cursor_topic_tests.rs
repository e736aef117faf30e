//! Takeovers: what is read from the cursor topic, and when it is refused.

use super::super::simulation::{Bench, CURSORS, IDENTITY};
use super::*;
use crate::sink::Destination;
use std::sync::atomic::Ordering::Relaxed;
use wellspring_kafka::simulated::SimulatedCluster;

fn append(cluster: &SimulatedCluster, key: &str, value: Option<&str>) {
    cluster.append(vec![record(key, value)]);
}

fn record(key: &str, value: Option<&str>) -> OutgoingRecord {
    OutgoingRecord {
        topic: CURSORS.into(),
        partition: 0,
        timestamp_ms: 0,
        key: Some(Bytes::from(key.to_owned())),
        value: value.map(|value| Bytes::from(value.to_owned())),
        headers: Vec::new(),
    }
}

/// A cursor of an earlier generation; its topic does not matter.
fn document(position: u64) -> String {
    format!(
        r#"{{"generation":0,"position":{position},"anchor":9,"topic_id":"00","log":"main","sink":"orders"}}"#
    )
}

fn with_cursors() -> Bench {
    let bench = Bench::new(1);
    bench.cluster.add_topic_with(CURSORS, 1, &[("cleanup.policy", "compact")]);
    bench
}

fn code(bench: &Bench) -> Option<StopCode> {
    match bench.destination().open() {
        Err(Fault::Stop { code, .. }) => Some(code),
        Ok(_) | Err(Fault::Transient(_)) => None,
    }
}

#[test]
fn the_topic_is_made_if_it_is_missing_and_refused_if_kafka_would_delete_cursors() {
    let bench = Bench::new(1);
    bench.opened();
    let made = bench.cluster.topic(CURSORS).unwrap();
    assert!(made.is_compacted && made.partitions == 1);
    bench.opened();
    bench.cluster.delete_topic(CURSORS);
    bench.cluster.add_topic(CURSORS, 1);
    match bench.destination().open().unwrap_err() {
        Fault::Stop { code: StopCode::Unusable, detail, .. } => {
            assert!(detail.contains("not compacted"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_cursor_of_its_own_key_counts_whatever_others_write() {
    let bench = with_cursors();
    append(&bench.cluster, IDENTITY, Some("not a cursor, and not the last one"));
    append(&bench.cluster, IDENTITY, Some(&document(5)));
    append(&bench.cluster, "another", Some("nonsense"));
    append(&bench.cluster, &format!("probe:{IDENTITY}"), None);
    append(&bench.cluster, IDENTITY, Some(&document(7)));
    bench.cluster.append_uncommitted(record(IDENTITY, Some(&document(99)))).abort();
    let (_, cursor) = bench.opened();
    assert_eq!(cursor, Some(Cursor { generation: 0, history: None, position: 7, anchor: 9 }));
    bench.cluster.compact(CURSORS);
    assert_eq!(bench.opened().1, cursor);
    bench.cluster.delete_records_before(CURSORS, 0, 4);
    assert_eq!(bench.opened().1, cursor);
    append(&bench.cluster, IDENTITY, None);
    assert_eq!(bench.opened().1, None, "a tombstone deletes it");
}

#[test]
fn a_cursor_comes_back_with_the_history_that_it_was_taken_in() {
    let bench = Bench::new(1);
    bench.append(5);
    let (mut destination, _) = bench.opened();
    bench.deliver(&mut destination, 0).unwrap();
    let (_, cursor) = bench.opened();
    assert!(bench.log.history().is_some());
    assert_eq!(cursor.map(|cursor| cursor.history), Some(bench.log.history()));
    for id in [None, Some(""), Some("4f1c"), Some("4f1c09d2a87b4e6g")] {
        let bench = with_cursors();
        let id = id.map(|id| Bytes::from(id.to_owned()));
        let headers = vec![("wellspring-history".to_owned(), id)];
        let record = OutgoingRecord { headers, ..record(IDENTITY, Some(&document(5))) };
        bench.cluster.append(vec![record]);
        assert_eq!(code(&bench), Some(StopCode::Unusable));
    }
}

#[test]
fn a_cursor_that_cannot_be_read_stops_it() {
    let whole = document(5);
    let unreadable = [
        "",
        "{}",
        "null",
        &whole.replace("\"anchor\":9", "\"anchor\":-9"),
        &whole.replace("\"anchor\":9", "\"anchor\":4294967296"),
        &whole.replace("\"position\":5", "\"position\":\"5\""),
        &whole.replace("\"log\"", "\"surprise\":1,\"log\""),
        &whole[..whole.len() - 1],
    ];
    for value in unreadable {
        let bench = with_cursors();
        append(&bench.cluster, IDENTITY, Some(value));
        assert_eq!(code(&bench), Some(StopCode::Unusable), "{value}");
    }
}

#[test]
fn a_transaction_that_hangs_is_waited_for_and_not_for_ever() {
    let bench = with_cursors();
    append(&bench.cluster, IDENTITY, Some(&document(5)));
    let open = bench.cluster.append_uncommitted(record("another", None));
    let step_us = bench.clock.step_us.swap(10_000_000, Relaxed);
    match bench.destination().open() {
        Err(Fault::Transient(detail)) => assert!(detail.contains("is open"), "{detail}"),
        other => panic!("{other:?}"),
    }
    bench.clock.step_us.store(step_us, Relaxed);
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| bench.opened().1);
        open.commit();
        assert_eq!(opening.join().unwrap().map(|cursor| cursor.position), Some(5));
    });
}
