//! Backups of logs under load, restored whole and in part, and what becomes of damage.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wellspring_backup::catalog::{self, Catalog, manifest, newest_with};
use wellspring_backup::mend::{
    FirstSalt, LaterEvents, MendPlan, SegmentNeed, later_events, mend, shorten,
};
use wellspring_backup::new_history::renew_history;
use wellspring_backup::plan::{BackupPlan, PlannedLog, PlannedSegment};
use wellspring_backup::prune::{prune, remove};
use wellspring_backup::restore::{HistoryChoice, RestoreRequest, RestoredLog, restore};
use wellspring_backup::retention::{StayReason, StayingBackup};
use wellspring_backup::source::OpenLogs;
use wellspring_backup::store::{ArchiveReader, ArchiveWriter, FolderStore};
use wellspring_backup::take::{TakenBackup, take};
use wellspring_backup::verify::verify;
use wellspring_backup::{BackupError, Cut, KnownEnds, LogEnd, Manifest, RateLimit, Source, Store};
use wellspring_log::{
    Append, EncodedEvents, HeadGate, Log, OpenError, Options, Order, ReadOptions, SystemClock,
    inspect,
};
use wellspring_types::{Event, Position, Query};

/// Logs of small segments that share a gate.
struct Logs {
    dir: tempfile::TempDir,
    gate: HeadGate,
    logs: BTreeMap<String, Log>,
}

fn open(dir: &Path, gate: &HeadGate) -> Log {
    let options =
        Options { segment_bytes: 64 << 10, head_gate: gate.clone(), ..Options::default() };
    Log::open(dir, options).unwrap()
}

impl Logs {
    fn new(names: &[&str]) -> Logs {
        let (dir, gate) = (tempfile::tempdir().unwrap(), HeadGate::default());
        let made = names.iter().map(|name| {
            let log = open(&dir.path().join("logs").join(name), &gate);
            ((*name).to_owned(), log)
        });
        let logs = made.collect();
        Logs { dir, gate, logs }
    }

    fn source(&self) -> OpenLogs {
        let logs: Vec<_> =
            self.logs.iter().map(|(name, log)| (name.clone(), log.clone())).collect();
        OpenLogs::new(self.gate.clone(), Arc::new(SystemClock), "test", move || logs.clone())
    }
}

/// Appends as many events as one request, each with `bytes` of payload; returns the last position.
fn append(log: &Log, events: usize, bytes: usize) -> Position {
    let mut encoded = EncodedEvents::new();
    for n in 0..events {
        let data = format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(bytes));
        encoded.push(&Event::json("T", &["a:1"], &data).as_ref()).unwrap();
    }
    log.append(Append { events: encoded, ..Append::default() }).unwrap().last
}

/// Every event of a log: position, time, type, payload.
fn contents(log: &Log) -> Vec<(Position, u64, String, Vec<u8>)> {
    let options = ReadOptions { order: Order::Ascending, ..ReadOptions::default() };
    let mut events = log.snapshot().read(&Query::all(), options);
    let mut all = Vec::new();
    while let Some(event) = events.next().unwrap() {
        let data = event.data().to_vec();
        all.push((event.position(), event.recorded_at_us(), event.event_type().into(), data));
    }
    all
}

fn quietly(_: u64, _: u64) {}

fn taken(source: &mut dyn Source, store: &mut dyn Store) -> TakenBackup {
    take(source, store, &mut RateLimit::new(None), &mut quietly).unwrap()
}

fn whole() -> RestoreRequest {
    let (logs, never_empty) = (Vec::new(), Vec::new());
    RestoreRequest { logs, cut: Cut::None, never_empty, history: HistoryChoice::New }
}

fn newest(store: &mut dyn Store) -> Manifest {
    let name = Catalog::of(store).unwrap().choose(None, "here").unwrap();
    manifest(store, &name).unwrap()
}

fn restored(
    store: &mut dyn Store,
    to: &Path,
    wanted: &RestoreRequest,
) -> Result<Vec<RestoredLog>, BackupError> {
    let manifest = newest(store);
    restore(store, &manifest, to, wanted, &|| Ok(()), &mut quietly)
}

fn reopened(data: &Path, log: &str) -> Log {
    let dir = data.join("logs").join(log);
    assert!(inspect::verify(&dir, &mut |_, _| ()).unwrap().is_sound());
    open(&dir, &HeadGate::default())
}

#[test]
fn a_backup_restores_to_the_same_events_under_another_history() {
    let logs = Logs::new(&["main", "system"]);
    for n in 0..300 {
        append(&logs.logs["main"], 1 + n % 7, n);
    }
    append(&logs.logs["system"], 3, 10);
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let first = taken(&mut logs.source(), &mut store);
    assert_eq!(first.reused_bytes, 0);
    assert!(first.manifest.log("main").unwrap().segments.len() > 2, "several segments");
    let manifest = newest(&mut store);
    assert_eq!(manifest, first.manifest);
    let report = verify(&mut store, &manifest, &mut quietly).unwrap();
    assert!(report.damage.is_empty() && report.events == manifest.events(), "{report:?}");
    let data = tempfile::tempdir().unwrap();
    let made = restored(&mut store, data.path(), &whole()).unwrap();
    for RestoredLog { name, head, left_out, history_before, history } in made {
        let (old, new) = (&logs.logs[&name], reopened(data.path(), &name));
        assert_eq!((head, left_out), (old.head(), 0));
        assert_eq!(contents(old), contents(&new));
        assert_eq!(old.history().unwrap().to_string(), history_before);
        assert_eq!(new.history().unwrap().to_string(), history);
        assert_ne!(history_before, history, "{name}: consumers have to be told");
        assert_eq!(append(&new, 1, 1), head + 1);
    }
    // Where logs are, none is restored.
    let refused = restored(&mut store, data.path(), &whole()).unwrap_err();
    assert!(matches!(refused, BackupError::Unfit(_)), "{refused}");
    // The same history, if the caller knows that nothing came after the backup.
    let data = tempfile::tempdir().unwrap();
    let kept = RestoreRequest { history: HistoryChoice::Kept, ..whole() };
    restored(&mut store, data.path(), &kept).unwrap();
    assert_eq!(reopened(data.path(), "main").history(), logs.logs["main"].history());
}

#[test]
fn a_log_that_was_put_back_gets_another_history_and_keeps_its_events() {
    for appends in [1, 300] {
        let logs = Logs::new(&["main"]);
        let log = &logs.logs["main"];
        for n in 0..appends {
            append(log, 1 + n % 7, n);
        }
        let (before, head, history) = (contents(log), log.head(), log.history().unwrap());
        let dir = logs.dir.path().join("logs/main");
        let refused = renew_history(&dir).unwrap_err();
        assert!(
            matches!(&refused, BackupError::InUse(why) if why.contains("stop it")),
            "{refused}"
        );
        log.close();
        let renewed = renew_history(&dir).unwrap();
        assert_eq!((renewed.head, &renewed.history_before), (head, &history.to_string()));
        let again = reopened(logs.dir.path(), "main");
        assert_eq!(again.history().unwrap().to_string(), renewed.history);
        assert_ne!(renewed.history, renewed.history_before);
        assert_eq!(contents(&again), before);
        assert_eq!(append(&again, 1, 1), head + 1);
    }
}

/// Mending a log of the backup's history that keeps its end.
const SAME_HISTORY: MendPlan =
    MendPlan { first_salt: FirstSalt::OfBackup, later: LaterEvents::Kept };

/// Without its last segment a log does not open; with another history it goes on, however its index
/// and a mark know of more.
#[test]
fn a_log_goes_on_without_its_end_under_another_history_only() {
    let logs = Logs::new(&["main"]);
    let log = &logs.logs["main"];
    for _ in 0..300 {
        append(log, 2, 1_000);
    }
    let (all, before) = (contents(log), log.history().unwrap());
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    taken(&mut logs.source(), &mut store);
    log.close();
    let dir = logs.dir.path().join("logs/main");
    let manifest = newest(&mut store);
    let backup = manifest.log("main").unwrap();
    let base = |back: usize| backup.segments[backup.segments.len() - back].base;
    let path = |back: usize| dir.join(format!("{:020}.seg", base(back)));
    let mut later = |bases: &[Position]| {
        let need = |base: &Position| {
            if dir.join(format!("{base:020}.seg")).exists() {
                (*base, SegmentNeed::Damaged)
            } else {
                (*base, SegmentNeed::Missing)
            }
        };
        later_events(&mut store, backup, &dir, &bases.iter().map(need).collect(), None).unwrap()
    };
    assert_eq!(later(&[base(1), 1]), LaterEvents::Kept, "the files are there");
    fs::remove_file(path(2)).unwrap();
    assert_eq!(later(&[base(2)]), LaterEvents::Kept, "the last one is there");
    fs::remove_file(path(1)).unwrap();
    assert_eq!(later(&[base(2)]), LaterEvents::Unknown);
    assert_eq!(later(&[1]), LaterEvents::Kept, "not mended up to its end");
    let is_refused = || match Log::open(&dir, Options::default()) {
        Err(OpenError::EndLost(lost)) => lost.head == base(2) - 1,
        other => panic!("{:?}", other.map(|log| log.head())),
    };
    assert!(is_refused());
    // The mark of mending holds until the log has another history.
    let plan = MendPlan { later: LaterEvents::Unknown, ..SAME_HISTORY };
    mend(&mut store, backup, &dir, base(2), plan).unwrap();
    mend(&mut store, backup, &dir, base(1), plan).unwrap();
    let refused = Log::open(&dir, Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::EndLost(_)), "{refused}");
    let renewed = renew_history(&dir).unwrap();
    assert_eq!((renewed.head, &renewed.history_before), (backup.head, &before.to_string()));
    let again = reopened(logs.dir.path(), "main");
    assert_ne!(again.history(), Some(before));
    assert_eq!(contents(&again), all);
    assert_eq!(append(&again, 1, 1), backup.head + 1);
}

#[test]
fn a_damaged_log_keeps_its_history() {
    let logs = Logs::new(&["main"]);
    for n in 0..300 {
        append(&logs.logs["main"], 2, n);
    }
    logs.logs["main"].close();
    let dir = logs.dir.path().join("logs/main");
    let first = dir.join("00000000000000000001.seg");
    let mut bytes = fs::read(&first).unwrap();
    bytes[5000] ^= 1;
    fs::write(&first, &bytes).unwrap();
    let refused = renew_history(&dir).unwrap_err();
    assert!(matches!(refused, BackupError::Damaged { .. }), "{refused}");
    assert_eq!(fs::read(&first).unwrap(), bytes);
}

#[test]
fn the_next_backup_brings_only_what_is_new_and_pruning_takes_only_what_no_backup_needs() {
    let logs = Logs::new(&["main"]);
    let log = &logs.logs["main"];
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let mut heads = Vec::new();
    for round in 0..4 {
        for _ in 0..200 {
            append(log, 2, 200);
        }
        let this = taken(&mut logs.source(), &mut store);
        heads.push(log.head());
        let last = this.manifest.log("main").unwrap().segments.last().unwrap().bytes;
        let full_before = this.manifest.bytes() - this.copied_bytes;
        assert_eq!(this.reused_bytes, full_before, "round {round}");
        assert!(round == 0 || this.reused_bytes > last, "round {round}: {this:?}");
    }
    let again = taken(&mut logs.source(), &mut store);
    assert_eq!(again.copied_bytes, 0, "nothing is new");
    assert_eq!(newest(&mut store), again.manifest, "however many there are in a second");
    let catalog = Catalog::of(&mut store).unwrap();
    assert_eq!((catalog.finished.len(), catalog.unfinished.len()), (5, 0));
    let pruned = prune(&mut store, 2).unwrap();
    assert_eq!(pruned.backups, catalog.finished[..3]);
    assert!(pruned.segments > 0);
    let left = Catalog::of(&mut store).unwrap().finished;
    assert_eq!(left, catalog.finished[3..]);
    for name in &left {
        let manifest = manifest(&mut store, name).unwrap();
        let report = verify(&mut store, &manifest, &mut quietly).unwrap();
        assert!(report.damage.is_empty(), "{report:?}");
    }
    assert_eq!(prune(&mut store, 2).unwrap(), Default::default());
    assert_eq!(prune(&mut store, 0).unwrap().backups.len(), 1, "one is always kept");
}

#[test]
fn an_archive_goes_through_a_pipe_and_comes_back() {
    let logs = Logs::new(&["main", "other"]);
    for _ in 0..200 {
        append(&logs.logs["main"], 3, 300);
    }
    let mut bytes = Vec::new();
    let mut out = ArchiveWriter::new(&mut bytes, "a pipe");
    taken(&mut logs.source(), &mut out);
    drop(out);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("backup.tar");
    fs::write(&path, &bytes).unwrap();
    let mut store = ArchiveReader::open(&path).unwrap();
    let data = place.path().join("data");
    restored(&mut store, &data, &whole()).unwrap();
    assert_eq!(contents(&logs.logs["main"]), contents(&reopened(&data, "main")));
    // Cut off anywhere before its end, it is refused.
    for len in (0..bytes.len() - 2048).step_by(997) {
        fs::write(&path, &bytes[..len]).unwrap();
        let Ok(mut store) = ArchiveReader::open(&path) else { continue };
        let chosen = Catalog::of(&mut store).unwrap().choose(None, "the archive");
        assert!(matches!(chosen, Err(BackupError::Unfinished { .. })), "{len}: {chosen:?}");
    }
}

#[test]
fn a_cut_keeps_whole_appends_and_says_which_positions_are_safe() {
    let logs = Logs::new(&["main"]);
    let log = &logs.logs["main"];
    let mut ends = vec![0];
    let mut times = Vec::new();
    for n in 0..40 {
        ends.push(append(log, 1 + n % 4, 2_000));
        times.push(log.stats().last_recorded_at_us);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    taken(&mut logs.source(), &mut store);
    let all = contents(log);
    let cut = |store: &mut FolderStore, cut: Cut| {
        let data = tempfile::tempdir().unwrap();
        let wanted = RestoreRequest { cut, ..whole() };
        let made = restored(store, data.path(), &wanted)?;
        let log = reopened(data.path(), "main");
        assert_eq!(made[0].head + made[0].left_out, *ends.last().unwrap());
        assert_eq!(contents(&log), all[..log.head() as usize]);
        Ok::<_, BackupError>(log.head())
    };
    for position in 0..=*ends.last().unwrap() {
        match cut(&mut store, Cut::After(position)) {
            Ok(head) => assert_eq!((head, true), (position, ends.contains(&position))),
            Err(BackupError::Unfit(what)) => {
                assert!(!ends.contains(&position), "{position}: {what}");
                let before = ends.iter().rfind(|&&end| end < position).unwrap();
                let after = ends.iter().find(|&&end| end > position).unwrap();
                assert!(what.ends_with(&format!("restore up to {before} or {after}")), "{what}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    for (time, end) in times.iter().zip(&ends[1..]) {
        assert_eq!(cut(&mut store, Cut::At(*time)).unwrap(), *end);
        assert_eq!(cut(&mut store, Cut::At(time + 1)).unwrap(), *end);
    }
    let beyond = cut(&mut store, Cut::After(ends.last().unwrap() + 1));
    assert!(matches!(beyond, Err(BackupError::Unfit(_))), "{beyond:?}");
}

/// A time that the backup does not reach gives no state of that time, and one before everything
/// gives logs without events: both are mistakes.
#[test]
fn a_time_beyond_the_backup_is_refused_and_the_range_is_named() {
    let logs = Logs::new(&["empty", "main", "system"]);
    append(&logs.logs["main"], 1, 10);
    std::thread::sleep(std::time::Duration::from_millis(2));
    append(&logs.logs["system"], 1, 10);
    let first_us = |log: &str| contents(&logs.logs[log])[0].1;
    let (main_us, system_us) = (first_us("main"), first_us("system"));
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let taken_at_us = taken(&mut logs.source(), &mut store).manifest.taken_at_us;
    let shown = |us: u64| {
        let mut text = Vec::new();
        wellspring_types::moment::push_rfc3339(&mut text, us);
        String::from_utf8(text).unwrap()
    };
    let mut at = |us: u64, never_empty: &[&str]| {
        let data = place.path().join("data");
        let never_empty = never_empty.iter().map(|&name| name.to_owned()).collect();
        let wanted = RestoreRequest { cut: Cut::At(us), never_empty, ..whole() };
        let made = restored(&mut store, &data, &wanted);
        assert_eq!(made.is_ok(), data.join("logs").exists());
        let _ = fs::remove_dir_all(&data);
        match made {
            Ok(made) => Ok(made.iter().map(|log| log.head).collect::<Vec<_>>()),
            Err(BackupError::Unfit(what)) => Err(what),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(at(taken_at_us, &["system"]), Ok(vec![0, 1, 1]));
    assert_eq!(at(main_us, &[]), Ok(vec![0, 1, 0]), "a log that did not exist yet is empty");
    assert_eq!(at(system_us, &["system"]), Ok(vec![0, 1, 1]));
    for (us, never_empty, from_us) in [
        (taken_at_us + 1, &[][..], main_us),
        (u64::MAX, &["system"], system_us),
        (main_us - 1, &[], main_us),
        (0, &["empty"], main_us),
        (system_us - 1, &["system"], system_us),
    ] {
        let refused = at(us, never_empty).unwrap_err();
        let range = format!("{} to {}", shown(from_us), shown(taken_at_us));
        assert!(refused.ends_with(&range), "{refused}, not {range}");
    }
}

#[test]
fn named_backups_are_removed_with_the_segments_that_only_they_needed() {
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let (before, after) = (Logs::new(&["main"]), Logs::new(&["main"]));
    for logs in [&before, &after] {
        append(&logs.logs["main"], 200, 1_000);
    }
    let old = taken(&mut before.source(), &mut store).manifest;
    let kept = taken(&mut after.source(), &mut store).manifest;
    append(&after.logs["main"], 1, 10);
    let newer = taken(&mut after.source(), &mut store).manifest;
    let pruned = prune(&mut store, 2).unwrap();
    assert_eq!((pruned.backups.len(), pruned.segments), (0, 0), "of another history");
    let stays = StayingBackup { name: old.name.clone(), reason: StayReason::OtherServer };
    assert_eq!(pruned.staying, [stays]);
    let files = |store: &mut FolderStore| {
        let mut files: Vec<_> = ["backups/", "segments/"]
            .iter()
            .flat_map(|part| store.list(part).unwrap())
            .map(|(file, _)| file)
            .collect();
        files.sort();
        files
    };
    let all = files(&mut store);
    let unknown = remove(&mut store, &[old.name.clone(), "20200101T000000Z".into()]).unwrap_err();
    assert!(matches!(&unknown, BackupError::NotFound { .. }), "{unknown}");
    assert!(unknown.to_string().contains("no backup 20200101T000000Z"), "{unknown}");
    assert_eq!(files(&mut store), all, "nothing is removed");
    // Also one whose manifest is damaged: nothing else can be done with it.
    fs::write(place.path().join(format!("backups/{}.json", old.name)), b"{").unwrap();
    // Which segments it needs is unknown, so nothing goes before it does, and the error says so.
    for refused in [
        prune(&mut store, 1).unwrap_err(),
        remove(&mut store, std::slice::from_ref(&newer.name)).unwrap_err(),
    ] {
        let named = format!("backup remove --from {} {}`", store.place(), old.name);
        assert!(refused.to_string().contains(&named), "{refused}");
        assert_eq!(files(&mut store), all, "nothing is removed");
    }
    let removed = remove(&mut store, &[newer.name.clone(), old.name.clone()]).unwrap();
    assert_eq!(removed.backups, [newer.name.clone(), old.name.clone()]);
    assert_eq!(removed.segments, old.files().count() as u64 + 1, "and the open one of the newest");
    assert!(verify(&mut store, &kept, &mut quietly).unwrap().damage.is_empty());
    let left = Catalog::of(&mut store).unwrap().finished;
    assert_eq!((left.len(), &left[0]), (1, &kept.name));
    // The last one, too.
    remove(&mut store, &[kept.name]).unwrap();
    assert_eq!(files(&mut store), [] as [String; 0]);
}

#[test]
fn segments_that_no_manifest_names_go_whatever_their_history() {
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let (before, after) = (Logs::new(&["main"]), Logs::new(&["main"]));
    for logs in [&before, &after] {
        append(&logs.logs["main"], 20, 1_000);
    }
    let old = taken(&mut before.source(), &mut store).manifest;
    let kept = taken(&mut after.source(), &mut store).manifest;
    fs::remove_file(place.path().join(format!("backups/{}.json", old.name))).unwrap();
    let pruned = prune(&mut store, 14).unwrap();
    assert_eq!((pruned.segments, pruned.backups.len()), (old.files().count() as u64, 0));
    assert!(verify(&mut store, &kept, &mut quietly).unwrap().damage.is_empty());
}

/// A source that fails after some bytes, as a server that is killed does.
struct Failing<S> {
    inner: S,
    left: u64,
    with: io::ErrorKind,
}

impl<S: Source> Source for Failing<S> {
    fn plan(&mut self) -> Result<BackupPlan, BackupError> {
        self.inner.plan()
    }

    fn open(
        &mut self,
        log: &PlannedLog,
        segment: &PlannedSegment,
    ) -> Result<Box<dyn Read + '_>, BackupError> {
        let inner = self.inner.open(log, segment)?;
        Ok(Box::new(FailingRead { inner, left: &mut self.left, with: self.with }))
    }
}

struct FailingRead<'a> {
    inner: Box<dyn Read + 'a>,
    left: &'a mut u64,
    with: io::ErrorKind,
}

impl Read for FailingRead<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if *self.left == 0 {
            return Err(self.with.into());
        }
        let len = (buf.len() as u64).min(*self.left) as usize;
        let got = self.inner.read(&mut buf[..len])?;
        *self.left -= got as u64;
        Ok(got)
    }
}

#[test]
fn a_server_that_is_gone_meanwhile_is_no_damage() {
    let logs = Logs::new(&["a"]);
    append(&logs.logs["a"], 20, 400);
    let dir = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(&dir.path().join("place")).unwrap();
    for with in [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset] {
        for left in [0, 10, 3_000] {
            let mut source = Failing { inner: logs.source(), left, with };
            let failed = take(&mut source, &mut store, &mut RateLimit::new(None), &mut quietly);
            let failed = failed.unwrap_err();
            assert!(matches!(failed, BackupError::Refused { status: None, .. }), "{failed:?}");
            let said = failed.to_string();
            assert!(said.contains("stopped sending a/00000000000000000001.seg"), "{said}");
            assert!(said.contains("take the backup again"), "{said}");
        }
    }
    taken(&mut logs.source(), &mut store);
}

/// A source whose logs of some names are deleted as soon as the backup is planned.
struct Deleting<S> {
    inner: S,
    deleted: Vec<&'static str>,
}

impl<S: Source> Source for Deleting<S> {
    fn plan(&mut self) -> Result<BackupPlan, BackupError> {
        self.inner.plan()
    }

    fn open(
        &mut self,
        log: &PlannedLog,
        segment: &PlannedSegment,
    ) -> Result<Box<dyn Read + '_>, BackupError> {
        // After its first segment: some of it is copied already.
        if self.deleted.contains(&&*log.name) && segment.base > 1 {
            return Err(BackupError::LogDeleted { log: log.name.clone() });
        }
        self.inner.open(log, segment)
    }
}

#[test]
fn a_log_that_is_deleted_meanwhile_is_left_out_and_the_others_are_there() {
    let logs = Logs::new(&["a", "b", "c"]);
    for _ in 0..300 {
        for log in logs.logs.values() {
            append(log, 1, 400);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(&dir.path().join("place")).unwrap();
    let mut bytes = Vec::new();
    let mut archive = ArchiveWriter::new(&mut bytes, "a pipe");
    for store in [&mut store as &mut dyn Store, &mut archive] {
        let mut source = Deleting { inner: logs.source(), deleted: vec!["b"] };
        let all_bytes = logs.source().plan().unwrap().bytes();
        let mut last = (0, 0);
        let progress = &mut |done, all| last = (done, all);
        let taken = take(&mut source, store, &mut RateLimit::new(None), progress).unwrap();
        assert_eq!(last, (all_bytes, all_bytes), "the progress reaches its end");
        assert_eq!(taken.deleted_logs, ["b"]);
        let names: Vec<_> = taken.manifest.logs.iter().map(|log| log.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
    }
    restored(&mut store, &dir.path().join("data"), &whole()).unwrap();
    assert_eq!(contents(&logs.logs["c"]), contents(&reopened(&dir.path().join("data"), "c")));
    // What was copied of the log goes with the next pruning.
    taken(&mut Deleting { inner: logs.source(), deleted: vec!["b"] }, &mut store);
    assert!(prune(&mut store, 1).unwrap().segments > 0);
    // The archive is whole, too.
    let path = dir.path().join("backup.tar");
    drop(archive);
    fs::write(&path, &bytes).unwrap();
    let mut archive = ArchiveReader::open(&path).unwrap();
    restored(&mut archive, &dir.path().join("from-tar"), &whole()).unwrap();
    assert_eq!(contents(&logs.logs["c"]), contents(&reopened(&dir.path().join("from-tar"), "c")));
}

#[test]
fn backups_under_load_hold_everything_acknowledged_before_and_unfinished_ones_are_refused() {
    let logs = Logs::new(&["main", "other"]);
    let (main, other) = (logs.logs["main"].clone(), logs.logs["other"].clone());
    let stop = AtomicBool::new(false);
    let acknowledged = [AtomicU64::new(0), AtomicU64::new(0)];
    /// Set on every way out: the scope waits for its thread.
    struct Stopping<'a>(&'a AtomicBool);
    impl Drop for Stopping<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let stopping = Stopping(&stop);
        scope.spawn(|| {
            // Each event of `other` is caused by one of `main` before it.
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                // Under load, but not more than the rounds below can restore in time.
                std::thread::sleep(std::time::Duration::from_millis(5));
                n += 1;
                acknowledged[0].store(append(&main, 1 + n % 3, n % 400), Ordering::SeqCst);
                acknowledged[1].store(append(&other, 1, 4), Ordering::SeqCst);
            }
        });
        let place = tempfile::tempdir().unwrap();
        let mut store = FolderStore::create(place.path()).unwrap();
        for round in 0..30u64 {
            let before = [0, 1].map(|n| acknowledged[n].load(Ordering::SeqCst));
            let left = if round % 2 == 0 { round * 5_000 } else { u64::MAX };
            let with = io::ErrorKind::ConnectionReset;
            let mut source = Failing { inner: logs.source(), left, with };
            let known = Catalog::of(&mut store).unwrap();
            match take(&mut source, &mut store, &mut RateLimit::new(None), &mut quietly) {
                Ok(taken) => {
                    let heads =
                        ["main", "other"].map(|name| taken.manifest.log(name).unwrap().head);
                    assert!(heads[0] >= before[0] && heads[1] >= before[1], "round {round}");
                    let data = tempfile::tempdir().unwrap();
                    restored(&mut store, data.path(), &whole()).unwrap();
                    let [main, other] = ["main", "other"].map(|name| reopened(data.path(), name));
                    assert_eq!([main.head(), other.head()], heads);
                    // One moment: no effect without its cause.
                    let appends = contents(&main)
                        .iter()
                        .filter(|(.., data)| data.starts_with(b"{\"n\":0,"))
                        .count();
                    assert!(appends as u64 >= other.head(), "round {round}");
                }
                Err(error) => {
                    assert!(left < u64::MAX, "{error}");
                    let now = Catalog::of(&mut store).unwrap();
                    assert_eq!(now.finished, known.finished);
                    let name = now.unfinished.last().unwrap();
                    let refused = now.choose(Some(name), "here").unwrap_err();
                    assert!(matches!(refused, BackupError::Unfinished { .. }), "{refused}");
                }
            }
        }
        drop(stopping);
        let left = prune(&mut store, 1).unwrap();
        assert!(!left.backups.is_empty());
        let manifest = newest(&mut store);
        assert!(verify(&mut store, &manifest, &mut quietly).unwrap().damage.is_empty());
    });
}

#[test]
fn damage_of_a_backup_is_found_and_never_restored() {
    let logs = Logs::new(&["main"]);
    for _ in 0..60 {
        append(&logs.logs["main"], 2, 1_000);
    }
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    taken(&mut logs.source(), &mut store);
    let manifest = newest(&mut store);
    let files: Vec<_> = manifest.files().collect();
    assert!(files.len() > 1);
    for (n, file) in files.iter().enumerate() {
        let path = place.path().join(file);
        let sound = fs::read(&path).unwrap();
        for at in (0..sound.len()).step_by(sound.len() / 20 + n) {
            let mut bad = sound.clone();
            bad[at] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            let report = verify(&mut store, &manifest, &mut quietly).unwrap();
            assert_eq!(report.damage.len(), 1, "{file} {at}");
            let data = tempfile::tempdir().unwrap();
            assert!(restored(&mut store, data.path(), &whole()).is_err(), "{file} {at}");
            assert!(!data.path().join("logs").exists());
        }
        fs::remove_file(&path).unwrap();
        let report = verify(&mut store, &manifest, &mut quietly).unwrap();
        assert_eq!(report.damage.len(), 1, "{file} is missing");
        fs::write(&path, &sound).unwrap();
    }
}

#[test]
fn a_damaged_segment_is_mended_from_a_backup_and_keeps_what_came_after_it() {
    let logs = Logs::new(&["main"]);
    let log = logs.logs["main"].clone();
    for _ in 0..45 {
        append(&log, 2, 1_000);
    }
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    taken(&mut logs.source(), &mut store);
    let manifest = newest(&mut store);
    let backup = manifest.log("main").unwrap();
    // Later than the backup: in its last segment and in further ones.
    for _ in 0..60 {
        append(&log, 2, 1_000);
    }
    let all = contents(&log);
    let dir = logs.dir.path().join("logs/main");
    log.close();
    drop((log, logs.logs));
    for segment in &backup.segments {
        let path = dir.join(format!("{:020}.seg", segment.base));
        let sound = fs::read(&path).unwrap();
        for at in [3, 70, 200, segment.bytes as usize - 1] {
            let mut bad = sound.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            let mended = mend(&mut store, backup, &dir, segment.base, SAME_HISTORY).unwrap();
            let kept_as = mended.kept_as.unwrap();
            assert_eq!(fs::read(&kept_as).unwrap(), bad);
            assert_eq!(fs::read(&path).unwrap(), sound, "{at}");
            fs::remove_file(kept_as).unwrap();
        }
        fs::remove_file(&path).unwrap();
        let mended = mend(&mut store, backup, &dir, segment.base, SAME_HISTORY).unwrap();
        assert_eq!(mended.kept_as, None);
        assert_eq!(fs::read(&path).unwrap(), sound[..segment.bytes as usize], "a missing file");
        fs::write(&path, &sound).unwrap();
    }
    // Damage after the end of the backup cannot be mended from it, and nothing changes.
    let last = backup.segments.last().unwrap();
    let path = dir.join(format!("{:020}.seg", last.base));
    let sound = fs::read(&path).unwrap();
    let mut bad = sound.clone();
    bad[last.bytes as usize + 80] ^= 1;
    fs::write(&path, &bad).unwrap();
    let refused = mend(&mut store, backup, &dir, last.base, SAME_HISTORY).unwrap_err();
    assert!(refused.to_string().contains("after the backup"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), bad);
    fs::write(&path, &sound).unwrap();
    assert_eq!(contents(&open(&dir, &HeadGate::default())), all);
    let other = Logs::new(&["main"]);
    append(&other.logs["main"], 2, 10);
    let other_dir = other.dir.path().join("logs/main");
    let refused = mend(&mut store, backup, &other_dir, 1, SAME_HISTORY).unwrap_err();
    assert!(refused.to_string().contains("another log"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn any_log_comes_back_whole_or_as_a_prefix(
        appends in proptest::collection::vec((1usize..6, 0usize..9_000), 1..30),
        share in 0.0f64..1.0,
    ) {
        let logs = Logs::new(&["main"]);
        let log = &logs.logs["main"];
        for (events, bytes) in appends {
            append(log, events, bytes);
        }
        let place = tempfile::tempdir().unwrap();
        let mut store = FolderStore::create(place.path()).unwrap();
        taken(&mut logs.source(), &mut store);
        let all = contents(log);
        let time = all[(share * all.len() as f64) as usize].1;
        let data = tempfile::tempdir().unwrap();
        restored(&mut store, data.path(), &RestoreRequest { cut: Cut::At(time), ..whole() }).unwrap();
        let kept: Vec<_> = all.iter().take_while(|event| event.1 <= time).cloned().collect();
        prop_assert_eq!(contents(&reopened(data.path(), "main")), kept);
    }
}

/// A folder that was rolled back to an earlier state and went on has the same history and, here,
/// segments of the same lengths.
#[test]
fn a_log_that_was_rolled_back_is_told_from_what_it_was() {
    let mut logs = Logs::new(&["main"]);
    let dir = logs.dir.path().join("logs/main");
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    append(&logs.logs["main"], 1, 10);
    let close = |logs: &mut Logs| logs.logs.remove("main").unwrap().close();
    let segment = dir.join("00000000000000000001.seg");
    close(&mut logs);
    let before = fs::read(&segment).unwrap();
    logs.logs.insert("main".into(), open(&dir, &logs.gate));
    append(&logs.logs["main"], 1, 20);
    let first = taken(&mut logs.source(), &mut store);
    close(&mut logs);
    fs::write(&segment, before).unwrap();
    logs.logs.insert("main".into(), open(&dir, &logs.gate));
    append(&logs.logs["main"], 1, 20);
    let all = contents(&logs.logs["main"]);
    let second = taken(&mut logs.source(), &mut store);
    assert_eq!(first.manifest.bytes(), second.manifest.bytes());
    assert!(second.copied_bytes > 0, "other events are not there already");
    // Of segments that a manifest names, the manifest tells how far they reach.
    let history = &second.manifest.log("main").unwrap().history;
    let end = LogEnd { head: 2, last_base: 1, last_bytes: 64 };
    assert_eq!(KnownEnds::of(&mut store).unwrap().lost_end(history, end), None);
    let data = tempfile::tempdir().unwrap();
    restored(&mut store, data.path(), &whole()).unwrap();
    assert_eq!(contents(&reopened(data.path(), "main")), all);
    close(&mut logs);
    let mut bad = fs::read(&segment).unwrap();
    bad[100] ^= 1;
    fs::write(&segment, &bad).unwrap();
    let refused =
        mend(&mut store, first.manifest.log("main").unwrap(), &dir, 1, SAME_HISTORY).unwrap_err();
    assert!(refused.to_string().contains("rolled back"), "{refused}");
    assert_eq!(fs::read(&segment).unwrap(), bad);
    mend(&mut store, second.manifest.log("main").unwrap(), &dir, 1, SAME_HISTORY).unwrap();
    assert_eq!(contents(&open(&dir, &HeadGate::default())), all);
}

#[test]
fn a_backup_dated_in_the_future_is_not_the_newest_for_ever() {
    let logs = Logs::new(&["main"]);
    append(&logs.logs["main"], 1, 10);
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let first = taken(&mut logs.source(), &mut store);
    let future = Manifest { name: "20991231T000000Z".into(), ..first.manifest };
    fs::write(place.path().join("backups/20991231T000000Z.json"), future.encode()).unwrap();
    append(&logs.logs["main"], 1, 10);
    let second = taken(&mut logs.source(), &mut store);
    assert_eq!(newest(&mut store), second.manifest);
    prune(&mut store, 1).unwrap();
    assert_eq!(Catalog::of(&mut store).unwrap().finished, [second.manifest.name]);
}

#[test]
fn an_interrupted_backup_is_not_listed_for_ever() {
    let logs = Logs::new(&["main"]);
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let interrupted = |store: &mut FolderStore| {
        append(&logs.logs["main"], 3, 10);
        let mut source =
            Failing { inner: logs.source(), left: 100, with: io::ErrorKind::ConnectionReset };
        take(&mut source, store, &mut RateLimit::new(None), &mut quietly).unwrap_err();
    };
    interrupted(&mut store);
    taken(&mut logs.source(), &mut store);
    interrupted(&mut store);
    // Later than the newest backup, too: nothing else can be writing to a folder that is locked.
    let pruned = prune(&mut store, 9).unwrap();
    assert_eq!(pruned.backups.len(), 2);
    let catalog = Catalog::of(&mut store).unwrap();
    assert_eq!((catalog.finished.len(), catalog.unfinished.len()), (1, 0));
}

#[test]
fn the_newest_backup_of_a_server_is_not_that_of_another_in_the_same_place() {
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let (one, other) = (Logs::new(&["main"]), Logs::new(&["main"]));
    let histories = |logs: &Logs| {
        vec!["0000000000000001".to_owned(), logs.logs["main"].history().unwrap().to_string()]
    };
    let own = taken(&mut one.source(), &mut store).manifest;
    assert_eq!(newest_with(&mut store, &histories(&other)).unwrap(), None);
    let others = taken(&mut other.source(), &mut store).manifest;
    assert_eq!(newest_with(&mut store, &histories(&one)).unwrap(), Some(own));
    assert_eq!(newest_with(&mut store, &histories(&other)).unwrap(), Some(others.clone()));
    for (logs, has_any) in [(&one, true), (&other, true), (&Logs::new(&["main"]), false)] {
        assert_eq!(catalog::may_have(&mut store, &histories(logs)).unwrap(), has_any);
    }
    // Which of the two is wanted, nothing tells.
    let newer = taken(&mut one.source(), &mut store).manifest;
    let refused = catalog::newest(&mut store).unwrap_err();
    let BackupError::Unfit(told) = &refused else { panic!("{refused}") };
    for part in [
        "backups of 2 servers",
        "--backup",
        &format!("{}, the newest of 2: main 0", newer.name),
        &format!("{}, the newest of 1: main 0", others.name),
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    remove(&mut store, std::slice::from_ref(&others.name)).unwrap();
    assert_eq!(catalog::newest(&mut store).unwrap(), newer);
    fs::write(place.path().join(format!("backups/{}.json", newer.name)), b"{").unwrap();
    assert!(catalog::may_have(&mut store, &["0000000000000001".to_owned()]).unwrap());
}

/// `data/logs` may lead elsewhere: a server, a backup, a check and `mend` follow it. A restore,
/// which renames, refuses it before it has copied anything, unless it can follow, too.
#[test]
fn a_link_in_place_of_the_logs_is_followed_or_refused_at_once() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let logs = Logs::new(&["main", "other"]);
    append(&logs.logs["main"], 3, 10);
    let dir = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(&dir.path().join("place")).unwrap();
    taken(&mut logs.source(), &mut store);
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let one = RestoreRequest { logs: vec!["main".into()], ..whole() };
    let linked = |name: &str, to: &Path| {
        let data = dir.path().join(name);
        fs::create_dir(&data).unwrap();
        symlink(to, data.join("logs")).unwrap();
        data
    };
    let is_refused = |store: &mut FolderStore, data: &Path, wanted: &RestoreRequest| {
        let refused = restored(store, data, wanted).unwrap_err();
        assert!(refused.to_string().contains("restore into a folder on"), "{refused}");
        assert!(!data.join("logs.restoring").exists(), "nothing is left");
    };
    let data = linked("same-device", &elsewhere);
    is_refused(&mut store, &data, &whole());
    restored(&mut store, &data, &one).unwrap();
    assert_eq!(contents(&logs.logs["main"]), contents(&reopened(&data, "main")));
    is_refused(&mut store, &linked("nowhere", &dir.path().join("none")), &whole());
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    if fs::metadata(other.path()).unwrap().dev() != fs::metadata(dir.path()).unwrap().dev() {
        let data = linked("another-device", other.path());
        is_refused(&mut store, &data, &whole());
        is_refused(&mut store, &data, &one);
    }
}

#[test]
fn no_place_of_backups_is_among_the_logs_of_a_server() {
    let logs = Logs::new(&["main"]);
    let dir = logs.dir.path();
    std::os::unix::fs::symlink(dir.join("logs"), dir.join("link")).unwrap();
    for place in ["", "logs", "logs/backups", "logs/main", "logs/main/x/y", "link/backups"] {
        let refused = FolderStore::create(&dir.join(place)).unwrap_err();
        assert!(matches!(refused, BackupError::Unfit(_)), "{place}: {refused}");
    }
    assert!(!dir.join("logs/backups").exists());
}

/// A manifest that names another file must not have that file removed.
#[test]
fn a_manifest_under_another_name_removes_nothing() {
    let logs = Logs::new(&["main"]);
    append(&logs.logs["main"], 1, 10);
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("place");
    let mut store = FolderStore::create(&place).unwrap();
    let made = taken(&mut logs.source(), &mut store).manifest;
    let mine = dir.path().join("mine.json");
    fs::write(&mine, b"{}").unwrap();
    let hostile = Manifest { name: "../../mine".into(), ..made.clone() };
    let file = place.join("backups/20010101T000000Z.json");
    fs::write(&file, hostile.encode()).unwrap();
    let refused = prune(&mut store, 1).unwrap_err();
    assert!(refused.to_string().contains("mine"), "{refused}");
    assert!(mine.exists());
    fs::rename(&file, place.join("backups/2\u{1b}[2J.json")).unwrap();
    assert_eq!(Catalog::of(&mut store).unwrap().finished, [made.name], "it is no backup's name");
}

/// The ways in which a log gets another history while the others keep theirs.
#[derive(Debug, Clone, Copy)]
enum Renewal {
    /// `restore --log main --position 2`
    RestoredLog,
    /// `mend` of a log whose end is lost
    MendedEnd,
    /// `mend --cut`
    Cut,
    /// `restore --rolled-back --log main`
    RolledBack,
}

/// What was recorded before may be nowhere but in the backup, whose log `system` the server still
/// has.
#[test]
fn a_backup_from_before_one_log_was_restored_mended_or_cut_stays_until_it_is_named() {
    use Renewal::{Cut as CutOff, MendedEnd, RestoredLog, RolledBack};
    for renewal in [RestoredLog, MendedEnd, CutOff, RolledBack] {
        let mut logs = Logs::new(&["main", "system"]);
        append(&logs.logs["system"], 3, 10);
        for _ in 0..100 {
            append(&logs.logs["main"], 2, 1_000);
        }
        let place = tempfile::tempdir().unwrap();
        let mut store = FolderStore::create(place.path()).unwrap();
        let old = taken(&mut logs.source(), &mut store).manifest;
        logs.logs.remove("main").unwrap().close();
        let dir = logs.dir.path().join("logs/main");
        let segments = &old.log("main").unwrap().segments;
        let last = segments.last().unwrap();
        let path = dir.join(format!("{:020}.seg", last.base));
        match renewal {
            RestoredLog => {
                fs::remove_dir_all(&dir).unwrap();
                logs.logs.remove("system").unwrap().close();
                let one =
                    RestoreRequest { logs: vec!["main".into()], cut: Cut::After(2), ..whole() };
                restored(&mut store, logs.dir.path(), &one).unwrap();
                let system = open(&logs.dir.path().join("logs/system"), &logs.gate);
                logs.logs.insert("system".into(), system);
            }
            MendedEnd => {
                fs::remove_file(path).unwrap();
                let main = old.log("main").unwrap();
                let plan = MendPlan { later: LaterEvents::Unknown, ..SAME_HISTORY };
                mend(&mut store, main, &dir, last.base, plan).unwrap();
                renew_history(&dir).unwrap();
            }
            CutOff => {
                let mut bytes = fs::read(&path).unwrap();
                bytes[last.bytes as usize - 10] ^= 1;
                fs::write(&path, bytes).unwrap();
                shorten(&dir).unwrap().unwrap();
                renew_history(&dir).unwrap();
            }
            RolledBack => drop(renew_history(&dir).unwrap()),
        }
        logs.logs.insert("main".into(), open(&dir, &logs.gate));
        append(&logs.logs["main"], 200, 10);
        let mut newest = old.clone();
        for _ in 0..2 {
            append(&logs.logs["main"], 1, 10);
            newest = taken(&mut logs.source(), &mut store).manifest;
            let pruned = prune(&mut store, 1).unwrap();
            let reason = StayReason::OtherHistory { log: "main".into() };
            let stays = StayingBackup { name: old.name.clone(), reason };
            assert_eq!(pruned.staying, [stays], "{renewal:?}");
        }
        let left = Catalog::of(&mut store).unwrap().finished;
        assert_eq!(left, [old.name.clone(), newest.name.clone()], "{renewal:?}");
        for kept in [&old, &newest] {
            let report = verify(&mut store, kept, &mut quietly).unwrap();
            assert!(report.damage.is_empty(), "{renewal:?} {report:?}");
        }
        remove(&mut store, &[old.name]).unwrap();
        assert_eq!(Catalog::of(&mut store).unwrap().finished, [newest.name], "{renewal:?}");
    }
}

/// Positions that the place has would be given to other events.
#[test]
fn no_history_is_kept_by_a_backup_that_the_place_has_later_events_of() {
    let logs = Logs::new(&["main", "system"]);
    append(&logs.logs["main"], 3, 10);
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    let old = taken(&mut logs.source(), &mut store).manifest;
    append(&logs.logs["main"], 5, 10);
    let newer = taken(&mut logs.source(), &mut store).manifest;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let kept = RestoreRequest { history: HistoryChoice::Kept, ..whole() };
    let mut restored = |from: &Manifest, wanted: &RestoreRequest| {
        restore(&mut store, from, &data, wanted, &|| Ok(()), &mut quietly)
    };
    let refused = restored(&old, &kept).unwrap_err().to_string();
    for part in [&newer.name, "up to position 3", "up to position 8", "leave out --keep-history"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(!data.exists(), "nothing is made");
    // The other log has no later events; a damaged manifest hides none.
    let system = RestoreRequest { logs: vec!["system".into()], ..kept.clone() };
    restored(&old, &system).unwrap();
    fs::write(place.path().join(format!("backups/{}.json", newer.name)), b"{").unwrap();
    let main = RestoreRequest { logs: vec!["main".into()], ..kept };
    let refused = restored(&old, &main).unwrap_err().to_string();
    assert!(refused.contains("segments/") && refused.contains("later events"), "{refused}");
    restored(&old, &RestoreRequest { history: HistoryChoice::New, ..main }).unwrap();
}

/// One flipped byte in the newest manifest must not hide that a folder was put back.
#[test]
fn a_damaged_manifest_hides_no_lost_end_and_is_told() {
    let mut logs = Logs::new(&["main", "system"]);
    let dir = logs.dir.path().join("logs/main");
    append(&logs.logs["main"], 3, 10);
    let place = tempfile::tempdir().unwrap();
    let mut store = FolderStore::create(place.path()).unwrap();
    taken(&mut logs.source(), &mut store);
    let snapshot = fs::read(dir.join("00000000000000000001.seg")).unwrap();
    append(&logs.logs["main"], 5, 10);
    let newest = taken(&mut logs.source(), &mut store).manifest;
    let file = place.path().join(format!("backups/{}.json", newest.name));
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    // Whole and in place: nothing is lost, and the manifest is told.
    let whole = taken(&mut logs.source(), &mut store);
    assert_eq!((whole.lost_ends.len(), whole.unreadable.len()), (0, 1), "{whole:?}");
    fs::remove_file(place.path().join(format!("backups/{}.json", whole.manifest.name))).unwrap();
    logs.logs.remove("main").unwrap().close();
    fs::write(dir.join("00000000000000000001.seg"), snapshot).unwrap();
    logs.logs.insert("main".into(), open(&dir, &logs.gate));
    let known = KnownEnds::of(&mut store).unwrap();
    let unreadable: Vec<_> = known.unreadable().iter().map(|other| &other.name).collect();
    assert_eq!(unreadable, [&newest.name]);
    let short = taken(&mut logs.source(), &mut store);
    let (log, lost) = &short.lost_ends[0];
    assert_eq!((log.as_str(), lost.head, lost.known_end), ("main", 3, None));
    assert!(lost.known_from.starts_with("segments/"), "{lost}");
    let [damaged] = &short.unreadable[..] else { panic!("{short:?}") };
    assert!(damaged.detail.contains(&format!("backups/{}.json", newest.name)), "{damaged:?}");
    assert!(damaged.remedy("/p").contains(&format!("remove --from /p {}`", newest.name)));
}
