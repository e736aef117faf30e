//! The figures of a log.

use crate::oracle::{append, open, small_segments};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Histogram, Log, LogStats};
use wellspring_types::Event;

/// Appends `count` events of two types, each with a unique and a common tag, one batch each.
fn fill(log: &Log, count: usize) {
    for i in 0..count {
        let data = format!("\"{}\"", "x".repeat(1500));
        let tags = [&*format!("n:{i}"), "all"];
        log.append(append(&[Event::json(["A", "B"][i % 2], &tags, &data)])).unwrap();
    }
}

fn recorded(log: &Log) -> u64 {
    log.snapshot().at(log.head(), |record| record.recorded_at_us()).unwrap().unwrap()
}

#[test]
fn batches_and_barriers_are_counted_by_size() {
    let log = open(&SimulatedStorage::new(1), small_segments()).unwrap();
    assert_eq!((log.stats().batch_events.count(), log.stats().last_recorded_at_us), (0, 0));
    fill(&log, 3);
    let three: Vec<Event> = (0..3).map(|_| Event::json("C", &[], "1")).collect();
    log.append(append(&three)).unwrap();
    let LogStats { batches, batch_events, batch_bytes, barriers_us, .. } = log.stats();
    assert_eq!((batches, batch_events.count(), batch_events.sum()), (4, 4, 6));
    let of_size = |histogram: &Histogram, bound| {
        histogram.buckets().find(|&(b, _)| b == Some(bound)).unwrap().1
    };
    assert_eq!((of_size(&batch_events, 1), of_size(&batch_events, 4)), (3, 1));
    assert_eq!(of_size(&batch_bytes, 2048), 3, "{batch_bytes:?}");
    assert_eq!(barriers_us.count(), 4, "one for each batch");
    assert_eq!(log.stats().last_recorded_at_us, recorded(&log));
}

#[test]
fn what_lies_on_disk_and_in_memory_is_told_apart() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    fill(&log, 150);
    let before = log.stats();
    assert!(before.segments > 2);
    log.close();
    drop(log);
    let log = open(&storage, small_segments()).unwrap();
    let stats = log.stats();
    // The epoch file is neither.
    assert!(stats.segment_bytes > 150 * 1500 && stats.sealed_index_bytes > 0, "{stats:?}");
    let rest = stats.disk_bytes - stats.segment_bytes - stats.sealed_index_bytes;
    assert!(rest < 100, "{rest} bytes are neither a segment's nor an index's");
    assert!(0 < stats.active_index_memory_bytes, "{stats:?}");
    assert!(stats.active_index_memory_bytes < stats.index_memory_bytes, "{stats:?}");
    // Unique tags count once, common ones and types once per segment.
    assert_eq!(stats.terms.types, 2 * stats.segments);
    assert_eq!(stats.terms.tags, 150 + stats.segments);
    assert_eq!(stats.last_recorded_at_us, recorded(&log), "also when it was opened again");
    assert_eq!(stats.last_recorded_at_us, before.last_recorded_at_us);
}
