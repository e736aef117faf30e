//! A log of segments that were written anew, batch by batch.

use std::io::Read;
use wellspring_format::segment::segment_name;
use wellspring_format::segment_copy::SegmentCopy;
use wellspring_format::segment_reader::SegmentReader;
use wellspring_log::{Append, EncodedEvents, HeadGate, Log, Options, inspect};
use wellspring_types::Event;

/// The bytes of a segment with batches of one to five events.
fn segment() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let gate = HeadGate::default();
    let options = Options { head_gate: gate.clone(), ..Options::default() };
    let log = Log::open(dir.path(), options).unwrap();
    for n in 1..=5 {
        let mut events = EncodedEvents::new();
        for _ in 0..n {
            events.push(&Event::json("T", &["a:1"], "{\"n\":0}").as_ref()).unwrap();
        }
        log.append(Append { events, ..Append::default() }).unwrap();
    }
    let extent = log.mark_extent(&gate.hold()).resolve();
    assert_eq!((extent.head, extent.segments.len()), (15, 1));
    let mut bytes = Vec::new();
    extent.segments[0].read_from(0).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn reader(bytes: &[u8]) -> SegmentReader<&[u8]> {
    SegmentReader::begin(bytes, "s", 1, bytes.len() as u64).unwrap()
}

/// A copy with another salt, if any, of as many events as there are or of these.
fn copied(bytes: &[u8], salt: Option<u64>, events: u64) -> Vec<u8> {
    let mut read = reader(bytes);
    let mut copy = SegmentCopy::begin(Vec::new(), read.header(), salt).unwrap();
    while let Some(batch) = read.next_batch().unwrap() {
        if batch.header.last() <= events {
            copy.add(&batch).unwrap();
            continue;
        }
        let kept = (events + 1).saturating_sub(batch.header.first) as u32;
        if kept > 0 {
            copy.add_part(&batch, kept).unwrap();
        }
        break;
    }
    copy.finish().0
}

#[test]
fn a_copy_is_the_same_bytes_unless_salt_or_length_differ() {
    let original = segment();
    assert_eq!(copied(&original, None, 15), original);
    let salted = copied(&original, Some(7), 15);
    assert_eq!(salted.len(), original.len());
    let mut read = reader(&salted);
    read.read_to_end().unwrap();
    assert_eq!((read.next_position(), read.header().salt), (16, 7));
    assert_eq!(copied(&salted, Some(reader(&original).header().salt), 15), original);
}

#[test]
fn a_log_opens_from_a_copy_that_was_cut_at_any_event() {
    let original = segment();
    for events in 1..=15 {
        for salt in [None, Some(9)] {
            let dir = tempfile::tempdir().unwrap();
            let name = segment_name(1);
            std::fs::write(dir.path().join(name), copied(&original, salt, events)).unwrap();
            let log = Log::open(dir.path(), Options::default()).unwrap();
            assert_eq!(log.head(), events);
            let mut all = EncodedEvents::new();
            all.push(&Event::json("U", &[], "1").as_ref()).unwrap();
            let appended = log.append(Append { events: all, ..Append::default() }).unwrap();
            assert_eq!(appended.first, events + 1);
            log.close();
            let report = inspect::verify(dir.path(), &mut |_, _| ()).unwrap();
            assert!(report.is_sound(), "{events}: {report:?}");
        }
    }
}

#[test]
fn every_flipped_byte_of_a_segment_is_found() {
    let original = segment();
    for at in 0..original.len() {
        let mut bytes = original.clone();
        bytes[at] ^= 1;
        let found = SegmentReader::begin(&*bytes, "s", 1, bytes.len() as u64)
            .and_then(|mut read| read.read_to_end().map(|()| read.next_position()));
        assert!(found.is_err(), "byte {at}: {found:?}");
    }
    for len in 0..original.len() {
        let found = SegmentReader::begin(&original[..len], "s", 1, original.len() as u64)
            .and_then(|mut read| read.read_to_end());
        assert!(found.is_err(), "{len} bytes");
    }
}
