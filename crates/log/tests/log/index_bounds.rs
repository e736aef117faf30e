//! Memory limits of a log's indexes.

use crate::oracle::{append, drain, open};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Options, ReadOptions};
use wellspring_types::{Event, Query};

const BOUND_BYTES: usize = 1 << 20;

#[test]
fn events_of_many_unique_tags_begin_a_new_segment_when_the_index_is_full() {
    let options = Options { active_index_bytes: BOUND_BYTES, ..Options::default() };
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, options.clone()).unwrap();
    // 64 tags of about 75 bytes each: the amount by which one event may exceed the limit.
    let slack_bytes = 8 << 10;
    for i in 0..700 {
        let tags: Vec<String> = (0..64).map(|tag| format!("unique:{i}:{tag}")).collect();
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        log.append(append(&[Event::json("Tagged", &tags, "1")])).unwrap();
        let taken = log.stats().active_index_memory_bytes as usize;
        assert!(taken <= BOUND_BYTES + slack_bytes, "{taken} bytes after event {i}");
    }
    let stats = log.stats();
    assert!((2..8).contains(&stats.segments), "{} segments", stats.segments);
    let all = |log: &wellspring_log::Log| {
        drain(log.snapshot().read(&Query::all(), ReadOptions::default())).unwrap()
    };
    let before = all(&log);
    assert_eq!(before.len(), 700);
    log.close();
    drop(log);
    let log = open(&storage, options).unwrap();
    assert_eq!(all(&log), before);
    assert!(log.stats().active_index_memory_bytes as usize <= BOUND_BYTES + slack_bytes);
}
