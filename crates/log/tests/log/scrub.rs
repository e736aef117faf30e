//! One flipped byte anywhere is found by one scrub, and no answer is wrong.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::time::Duration;
use wellspring_log::{Append, EncodedEvents, Log, Options, ReadOptions, ScrubEnd, ScrubReport};
use wellspring_types::{Event, Query};

fn options() -> Options {
    Options { segment_bytes: 64 << 10, ..Options::default() }
}

fn filled(dir: &std::path::Path) -> Log {
    let log = Log::open(dir, options()).unwrap();
    for n in 0..400u32 {
        let mut events = EncodedEvents::new();
        let tags = [format!("a:{}", n % 90), "b:1".to_owned()];
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let data = format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(500));
        events.push(&Event::json(&format!("T{}", n % 5), &tags, &data).as_ref()).unwrap();
        log.append(Append { events, ..Append::default() }).unwrap();
    }
    log
}

fn scrubbed(log: &Log) -> ScrubReport {
    match log.scrub(&mut |_| ControlFlow::Continue(())) {
        ScrubEnd::Complete(report) => report,
        ScrubEnd::Stopped => panic!("nothing stopped it"),
    }
}

fn flip(path: &std::path::Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    // In place: the log has the file open.
    use std::os::unix::fs::FileExt;
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&bytes[at..=at], at as u64).unwrap();
}

fn answers(log: &Log) -> Vec<u64> {
    let mut events = log.snapshot().read(&Query::item(&["T3"], &["a:8"]), ReadOptions::default());
    let mut all = Vec::new();
    while let Ok(Some(event)) = events.next() {
        all.push(event.position());
    }
    all
}

#[test]
fn a_sound_log_is_read_to_its_last_byte_and_a_scrub_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path());
    let report = scrubbed(&log);
    assert!(report.damage.is_empty() && report.unread.is_empty(), "{report:?}");
    assert!(report.segments > 2 && report.bytes > 200_000, "{report:?}");
    let mut passed = 0;
    let end = log.scrub(&mut |bytes| {
        passed += bytes;
        if passed > 100_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(end, ScrubEnd::Stopped);
    assert!(passed < report.bytes);
}

#[test]
fn a_flipped_byte_of_a_segment_is_found_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path());
    let mut segments: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .collect();
    segments.sort();
    for path in &segments[..segments.len() - 1] {
        let len = fs::metadata(path).unwrap().len() as usize;
        for at in (0..len).step_by(len / 40) {
            flip(path, at);
            let report = scrubbed(&log);
            assert_eq!(report.damage.len(), 1, "{} {at}", path.display());
            assert_eq!(report.damage[0].file, path.file_name().unwrap().to_str().unwrap());
            flip(path, at);
        }
    }
    assert!(!log.damage().is_empty(), "reads and readiness know of it");
    assert_eq!(log.stats().damaged_segments as usize, segments.len() - 1);
}

/// The log has its files open, so reads and appends go on in a file that no start will find.
#[test]
fn a_segment_whose_file_was_removed_or_replaced_is_found() {
    for case in ["removed", "replaced", "renamed"] {
        let dir = tempfile::tempdir().unwrap();
        let log = filled(dir.path());
        let last = log.extent_now().segments.last().unwrap().base();
        let names = [1, last].map(|base| format!("{base:020}.seg"));
        for (found, name) in names.iter().enumerate() {
            let path = dir.path().join(name);
            let aside = dir.path().join("aside");
            match case {
                "removed" => fs::remove_file(&path).unwrap(),
                "renamed" => fs::rename(&path, &aside).unwrap(),
                _ => {
                    // Another file with the same bytes: appends go to the one without a name.
                    fs::copy(&path, &aside).unwrap();
                    fs::rename(&aside, &path).unwrap();
                }
            }
            let report = scrubbed(&log);
            assert_eq!(report.damage.len(), found + 1, "{case}: {report:?}");
            assert_eq!(report.damage[found].file, *name, "{case}");
            assert!(report.unread.is_empty() && report.segments > 0, "{case}: {report:?}");
            assert_eq!(log.stats().damaged_segments as usize, found + 1, "{case}");
        }
    }
}

#[test]
fn a_log_that_is_deleted_while_it_is_scrubbed_is_not_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path());
    log.close();
    fs::remove_dir_all(dir.path()).unwrap();
    // Its files are gone, the epoch for one, and that counts for nothing.
    assert_eq!(log.scrub(&mut |_| ControlFlow::Continue(())), ScrubEnd::Stopped);
    assert!(log.damage().is_empty(), "{:?}", log.damage());
}

fn contents(dir: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(named).collect()
}

/// Moved away under an open log, with another log at its path.
#[test]
fn a_log_changes_nothing_in_a_folder_that_has_taken_its_place() {
    let root = tempfile::tempdir().unwrap();
    let (path, away) = (root.path().join("log"), root.path().join("away"));
    fs::create_dir(&path).unwrap();
    let log = filled(&path);
    fs::rename(&path, &away).unwrap();
    let moved = scrubbed(&log);
    assert!(!path.exists(), "nothing is made there");
    // Opened twice, so that its epoch is another one.
    for _ in 0..2 {
        Log::open(&path, options()).unwrap().close();
    }
    let other = contents(&path);
    assert_eq!(other["epoch"], b"00000000000000000002\n");
    for report in [moved, scrubbed(&log)] {
        assert!(report.mended.is_empty(), "{report:?}");
        assert!(report.segments == 0 && report.damage.len() > 2, "{report:?}");
        assert!(report.damage.iter().all(|found| found.what.contains("removed or replaced")));
        let lost = |what: &String| what.contains("epoch") && what.contains("no longer the folder");
        assert!(report.unread.iter().any(lost), "{report:?}");
    }
    // The next segment would be a file of the other one.
    let refused = (0..400).find_map(|_| {
        let mut events = EncodedEvents::new();
        let data = format!("\"{}\"", "x".repeat(1_000));
        events.push(&Event::json("T", &[], &data).as_ref()).unwrap();
        log.append(Append { events, ..Append::default() }).err()
    });
    assert!(refused.is_some(), "it has no place for more");
    assert_eq!(contents(&path), other);
}

#[test]
fn a_flipped_byte_of_an_index_is_found_and_the_index_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let expected = {
        let log = filled(dir.path());
        let expected = answers(&log);
        log.close();
        expected
    };
    // Opened again, so that every full segment has its index, merged or not.
    let mut found = 0;
    for round in 0..120usize {
        let log = Log::open(dir.path(), options()).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let index = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|end| end == "idx"));
        let Some(index) = index else { continue };
        let Ok(metadata) = fs::metadata(&index) else { continue };
        flip(&index, metadata.len() as usize * round / 120);
        let before = log.indexes_mended();
        let report = scrubbed(&log);
        assert!(report.damage.is_empty(), "{report:?}");
        found += u64::from(log.indexes_mended() > before);
        let name = index.file_name().unwrap().to_str().unwrap();
        let is_named = report.mended.iter().any(|mended| mended == name);
        assert_eq!(is_named, log.indexes_mended() > 0, "round {round}: {report:?}");
        assert_eq!(scrubbed(&log).mended, [""; 0], "told once");
        assert_eq!(answers(&log), expected, "round {round}");
        log.close();
    }
    assert!(found > 100, "{found} of 120 flipped bytes were found");
}

#[test]
fn a_damaged_epoch_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let log = filled(dir.path());
    fs::write(dir.path().join("epoch"), "00000000000000000900\n").unwrap();
    assert_eq!(scrubbed(&log).mended, ["epoch"]);
    assert_eq!(scrubbed(&log).mended, [""; 0]);
    assert_eq!(fs::read_to_string(dir.path().join("epoch")).unwrap(), "00000000000000000001\n");
}
