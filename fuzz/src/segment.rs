//! A real segment with arbitrary bytes written over it: the log opens with a
//! prefix of what was there, or refuses; reads give that or an error.
use std::sync::{Arc, OnceLock};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Append, EncodedEvents, Log, Options};
use wellspring_types::{Event, Query};

type Files = std::collections::BTreeMap<String, Vec<u8>>;

fn original() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let storage = SimulatedStorage::new(1);
        let log = Log::open_on(Arc::new(storage.clone()), Options::default()).unwrap();
        for i in 0..8 {
            let mut events = EncodedEvents::new();
            let data = format!("[{i},\"{}\"]", "x".repeat(i * 90));
            events.push(&Event::json("T", &[&format!("t:{i}")], &data).as_ref()).unwrap();
            log.append(Append { events, ..Append::default() }).unwrap();
        }
        log.close();
        storage.contents()
    })
}

pub fn run(input: (u16, Vec<u8>, Option<u16>)) {
    let (at, bytes, cut) = input;
    let mut files = original().clone();
    let segment = files.iter_mut().find(|(name, _)| name.ends_with(".seg")).unwrap().1;
    for (i, byte) in bytes.iter().enumerate() {
        if let Some(target) = segment.get_mut(at as usize + i) {
            *target = *byte;
        }
    }
    if let Some(cut) = cut {
        segment.truncate(cut as usize);
    }
    let storage = SimulatedStorage::with_contents(1, &files);
    let Ok(log) = Log::open_on(Arc::new(storage), Options::default()) else { return };
    assert!(log.head() <= 8);
    let mut events = log.snapshot().read(&Query::all(), Default::default());
    let mut position = 0;
    while let Ok(Some(record)) = events.next() {
        position += 1;
        assert_eq!(record.position(), position);
        assert!(record.data().starts_with(format!("[{},", position - 1).as_bytes()));
    }
}
