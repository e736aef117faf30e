//! Determining the size of a log does not open its files.

use crate::oracle::small_segments;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellspring_log::storage::{DiskStorage, Storage, StorageFile};
use wellspring_log::{Append, EncodedEvents, Log};
use wellspring_types::Event;

/// A folder that counts how often files are opened.
#[derive(Debug)]
struct CountedStorage {
    disk: DiskStorage,
    opened: AtomicUsize,
}

impl Storage for CountedStorage {
    delegate!(disk: name lock unlock list file_bytes create rename remove sync_dir);

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.disk.open(name)
    }
}

#[test]
fn figures_open_no_file_and_say_what_lies_there() {
    let dir = tempfile::tempdir().unwrap();
    let disk = DiskStorage::create(dir.path()).unwrap();
    let storage = Arc::new(CountedStorage { disk, opened: AtomicUsize::new(0) });
    let log = Log::open_on(storage.clone(), small_segments()).unwrap();
    for _ in 0..40 {
        let mut events = EncodedEvents::new();
        events.push(&Event::json("T", &[], &"8".repeat(8_000)).as_ref()).unwrap();
        log.append(Append { events, ..Append::default() }).unwrap();
    }
    assert!(log.stats().segments > 2);
    assert_eq!(log.staged_bytes(), 0);
    log.close();
    let opened = storage.opened.load(Ordering::SeqCst);
    let stats = log.stats();
    assert_eq!(storage.opened.load(Ordering::SeqCst), opened);
    let files = std::fs::read_dir(dir.path()).unwrap();
    let lengths = files.map(|entry| entry.unwrap().metadata().unwrap().len());
    assert_eq!(stats.disk_bytes, lengths.sum::<u64>());
    assert!(stats.segment_bytes > 0 && stats.sealed_index_bytes > 0);
}
