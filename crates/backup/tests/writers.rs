//! Several writers of one place that nothing locks, as a bucket is: whatever their requests do to
//! each other, every finished backup is whole.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wellspring_backup::catalog::{Catalog, manifest};
use wellspring_backup::plan::{BackupPlan, PlannedLog, PlannedSegment};
use wellspring_backup::prune::{Pruned, prune, remove};
use wellspring_backup::source::OpenLogs;
use wellspring_backup::store::{Claim, PendingFile, SharedStore};
use wellspring_backup::take::{TakenBackup, take};
use wellspring_backup::verify::verify;
use wellspring_backup::{BackupError, RateLimit, Source, Store};
use wellspring_log::{Append, EncodedEvents, HeadGate, Log, Options, SystemClock};
use wellspring_types::Event;

type BackupResult<T> = Result<T, BackupError>;

const HOUR_US: u64 = 3_600_000_000;

/// The files of a bucket, each with the time it was written, and that time now.
#[derive(Debug, Clone, Default)]
struct Bucket {
    files: BTreeMap<String, (Vec<u8>, u64)>,
    now_us: u64,
}

/// Whose turn it is. A writer waits before each request until all others wait or have ended; then
/// a seed decides which of them goes on.
struct Turns {
    state: Mutex<Waiting>,
    changed: Condvar,
}

struct Waiting {
    writers: usize,
    waiting: Vec<usize>,
    chosen: Option<usize>,
    seed: u64,
}

impl Turns {
    fn new(writers: usize, seed: u64) -> Arc<Turns> {
        let state = Waiting { writers, waiting: Vec::new(), chosen: None, seed };
        Arc::new(Turns { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choose(&self, state: &mut Waiting) {
        if state.waiting.len() == state.writers && state.writers > 0 {
            // The constants of Knuth's generator.
            state.seed = state.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let at = (state.seed >> 33) as usize % state.waiting.len();
            state.chosen = Some(state.waiting.swap_remove(at));
            self.changed.notify_all();
        }
    }

    fn wait(&self, writer: usize) {
        let mut state = self.lock();
        state.waiting.push(writer);
        state.waiting.sort_unstable();
        self.choose(&mut state);
        while state.chosen != Some(writer) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.chosen = None;
    }

    fn end(&self) {
        let mut state = self.lock();
        state.writers -= 1;
        self.choose(&mut state);
    }
}

/// Whether writers heed each other's marks. Those that do not show what the marks are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marks {
    Heeded,
    Ignored,
}

/// One writer's access to a bucket.
struct Writer {
    bucket: Arc<Mutex<Bucket>>,
    turns: Option<(Arc<Turns>, usize)>,
    marks: Marks,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some((turns, _)) = &self.turns {
            turns.end();
        }
    }
}

impl Writer {
    fn alone(bucket: &Arc<Mutex<Bucket>>) -> Writer {
        Writer { bucket: Arc::clone(bucket), turns: None, marks: Marks::Heeded }
    }

    /// One request.
    fn request(&self) -> MutexGuard<'_, Bucket> {
        if let Some((turns, writer)) = &self.turns {
            turns.wait(*writer);
        }
        let mut bucket = self.bucket.lock().unwrap();
        bucket.now_us += 1;
        bucket
    }

    fn put(&self, name: &str, content: Vec<u8>) {
        let mut bucket = self.request();
        let now_us = bucket.now_us;
        bucket.files.insert(name.to_owned(), (content, now_us));
    }
}

impl Store for Writer {
    fn place(&self) -> String {
        "the bucket".to_owned()
    }

    fn list(&mut self, prefix: &str) -> BackupResult<Vec<(String, u64)>> {
        let bucket = self.request();
        let below = bucket.files.iter().filter(|(name, _)| name.starts_with(prefix));
        Ok(below.map(|(name, (content, _))| (name.clone(), content.len() as u64)).collect())
    }

    fn read(&mut self, name: &str) -> BackupResult<Box<dyn Read + '_>> {
        match self.request().files.get(name) {
            Some((content, _)) => Ok(Box::new(Cursor::new(content.clone()))),
            None => Err(BackupError::NotFound { what: format!("there is no {name}") }),
        }
    }

    fn create(&mut self, name: &str, _bytes: u64) -> BackupResult<Box<dyn PendingFile + '_>> {
        Ok(Box::new(Upload { writer: self, name: name.to_owned(), content: Vec::new() }))
    }

    fn remove(&mut self, name: &str) -> BackupResult<()> {
        self.request().files.remove(name);
        Ok(())
    }

    fn shared(&mut self) -> Option<&mut dyn SharedStore> {
        match self.marks {
            Marks::Heeded => Some(self),
            Marks::Ignored => None,
        }
    }
}

impl SharedStore for Writer {
    fn claim(&mut self, name: &str, content: &str) -> BackupResult<Claim> {
        let mut bucket = self.request();
        if bucket.files.contains_key(name) {
            return Ok(Claim::Taken);
        }
        let now_us = bucket.now_us;
        bucket.files.insert(name.to_owned(), (content.into(), now_us));
        Ok(Claim::Made)
    }

    fn written_us(&mut self, name: &str) -> BackupResult<Option<u64>> {
        Ok(self.request().files.get(name).map(|(_, written_us)| *written_us))
    }
}

struct Upload<'a> {
    writer: &'a Writer,
    name: String,
    content: Vec<u8>,
}

impl Write for Upload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PendingFile for Upload<'_> {
    fn finish(self: Box<Self>) -> BackupResult<()> {
        let Upload { writer, name, content } = *self;
        writer.put(&name, content);
        Ok(())
    }
}

/// A log of several small segments.
struct OneLog {
    _dir: tempfile::TempDir,
    gate: HeadGate,
    log: Log,
}

impl OneLog {
    fn new() -> OneLog {
        let (dir, gate) = (tempfile::tempdir().unwrap(), HeadGate::default());
        let options =
            Options { segment_bytes: 64 << 10, head_gate: gate.clone(), ..Options::default() };
        let log = Log::open(&dir.path().join("main"), options).unwrap();
        OneLog { _dir: dir, gate, log }
    }

    fn append(&self, events: usize) {
        for _ in 0..events {
            let mut encoded = EncodedEvents::new();
            let data = format!("\"{}\"", "x".repeat(12_000));
            encoded.push(&Event::json("T", &["a:1"], &data).as_ref()).unwrap();
            self.log.append(Append { events: encoded, ..Append::default() }).unwrap();
        }
    }

    fn source(&self) -> OpenLogs {
        let listed = vec![("main".to_owned(), self.log.clone())];
        OpenLogs::new(self.gate.clone(), Arc::new(SystemClock), "test", move || listed.clone())
    }
}

fn taken(source: &mut dyn Source, store: &mut dyn Store) -> BackupResult<TakenBackup> {
    take(source, store, &mut RateLimit::new(None), &mut |_, _| ())
}

/// Does something between the plan and the last segment.
struct Meanwhile<'a, S> {
    inner: S,
    then: Option<Box<dyn FnOnce() -> BackupResult<()> + 'a>>,
}

impl<S: Source> Source for Meanwhile<'_, S> {
    fn plan(&mut self) -> BackupResult<BackupPlan> {
        self.inner.plan()
    }

    fn open(
        &mut self,
        log: &PlannedLog,
        segment: &PlannedSegment,
    ) -> BackupResult<Box<dyn Read + '_>> {
        let is_last = log.segments.last() == Some(segment);
        if let Some(then) = self.then.take_if(|_| is_last) {
            then()?;
        }
        self.inner.open(log, segment)
    }
}

/// A bucket with a finished backup and what an interrupted one has left.
fn bucket(log: &OneLog) -> Bucket {
    let bucket = Arc::new(Mutex::new(Bucket { now_us: 100 * 24 * HOUR_US, ..Bucket::default() }));
    let mut store = Writer::alone(&bucket);
    log.append(2);
    taken(&mut log.source(), &mut store).unwrap();
    log.append(14);
    let fault = || Err(BackupError::NotFound { what: "the network".into() });
    let mut source = Meanwhile { inner: log.source(), then: Some(Box::new(fault)) };
    taken(&mut source, &mut store).unwrap_err();
    let mut left = bucket.lock().unwrap().clone();
    // Long ago, so that the segments it left are free to go.
    left.files.retain(|name, _| !name.ends_with(".begun"));
    left
}

/// Finished backups of a bucket that are not whole.
fn broken(bucket: &Arc<Mutex<Bucket>>) -> Vec<String> {
    let mut store = Writer::alone(bucket);
    let names = Catalog::of(&mut store).unwrap().finished;
    assert!(!names.is_empty());
    let is_broken = |name: &String| {
        let manifest = manifest(&mut store, name).unwrap();
        !verify(&mut store, &manifest, &mut |_, _| ()).unwrap().damage.is_empty()
    };
    names.into_iter().filter(is_broken).collect()
}

/// Two processes that each take a backup and remove old ones, and one that only removes, in an
/// order of their requests that the seed decides. Returns what is broken, and how many backups
/// finished.
fn race(log: &OneLog, start: &Bucket, seed: u64, marks: Marks) -> (Vec<String>, usize) {
    let bucket = Arc::new(Mutex::new(start.clone()));
    let turns = Turns::new(3, seed);
    let finished = std::thread::scope(|scope| {
        let writers = [true, true, false].into_iter().enumerate().map(|(writer, takes)| {
            let turns = Some((Arc::clone(&turns), writer));
            let mut store = Writer { bucket: Arc::clone(&bucket), turns, marks };
            scope.spawn(move || {
                let is_finished = takes && taken(&mut log.source(), &mut store).is_ok();
                // A manifest may go while another process reads it.
                let _ = prune(&mut store, 1);
                usize::from(is_finished)
            })
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    (broken(&bucket), finished)
}

#[test]
fn whatever_the_order_of_the_requests_every_finished_backup_is_whole() {
    let log = OneLog::new();
    let start = bucket(&log);
    let mut finished = 0;
    for seed in 0..300 {
        let (broken, count) = race(&log, &start, seed, Marks::Heeded);
        assert_eq!(broken, [""; 0], "seed {seed}");
        finished += count;
    }
    assert!(finished > 60, "{finished} of 600 backups finished");
    // These races are ones: without the marks some of them break a backup.
    let is_broken = |seed: &u64| !race(&log, &start, *seed, Marks::Ignored).0.is_empty();
    assert!((0..300).any(|seed| is_broken(&seed)));
}

#[test]
fn marks_that_no_process_keeps_up_are_passed_over_and_others_are_heeded() {
    let log = OneLog::new();
    let start = bucket(&log);
    let with = |name: &str, age_us: u64| {
        let mut bucket = start.clone();
        let written_us = bucket.now_us - age_us;
        bucket.files.insert(name.to_owned(), (Vec::new(), written_us));
        Arc::new(Mutex::new(bucket))
    };
    let names = |bucket: &Arc<Mutex<Bucket>>, suffix: &str| {
        let bucket = bucket.lock().unwrap();
        bucket.files.keys().filter(|name| name.ends_with(suffix)).cloned().collect::<Vec<_>>()
    };
    let mark = "backups/20010101T000000Z.begun";
    let this_week = with(mark, 6 * 24 * HOUR_US);
    let pruned = prune(&mut Writer::alone(&this_week), 1).unwrap();
    assert_eq!(pruned, Pruned::default(), "its segments may be those of a backup under way");
    assert_eq!(names(&this_week, ".begun"), [mark]);
    let last_week = with(mark, 8 * 24 * HOUR_US);
    let pruned = prune(&mut Writer::alone(&last_week), 1).unwrap();
    assert_eq!(pruned.backups, ["20010101T000000Z"]);
    assert!(pruned.segments > 0);
    assert_eq!((names(&last_week, ".begun"), names(&last_week, ".pruning")), (vec![], vec![]));
    let mark = "backups/0123456789abcdef.pruning";
    let now = with(mark, HOUR_US / 2);
    let refused = taken(&mut log.source(), &mut Writer::alone(&now)).unwrap_err();
    assert!(refused.to_string().contains("removing old backups"), "{refused}");
    assert_eq!(names(&now, ".begun"), [""; 0], "it leaves nothing");
    let earlier = with(mark, 2 * HOUR_US);
    taken(&mut log.source(), &mut Writer::alone(&earlier)).unwrap();
    prune(&mut Writer::alone(&earlier), 1).unwrap();
    assert_eq!(names(&earlier, ".pruning"), [""; 0]);
}

#[test]
fn who_removes_a_backup_by_name_leaves_those_under_way_alone() {
    let log = OneLog::new();
    let start = bucket(&log);
    let finished = Catalog::of(&mut Writer::alone(&Arc::new(Mutex::new(start.clone()))));
    let finished = finished.unwrap().finished;
    let begun = "20010101T000000Z".to_owned();
    let with_begun = |age_us: u64| {
        let mut bucket = start.clone();
        let written_us = bucket.now_us - age_us;
        bucket.files.insert(format!("backups/{begun}.begun"), (Vec::new(), written_us));
        Arc::new(Mutex::new(bucket))
    };
    let now = with_begun(HOUR_US);
    let files = || now.lock().unwrap().files.keys().cloned().collect::<Vec<_>>();
    let before = files();
    let names = [finished[0].clone(), begun.clone()];
    let refused = remove(&mut Writer::alone(&now), &names).unwrap_err();
    assert!(refused.to_string().contains("may be under way"), "{refused}");
    assert_eq!(files(), before, "nothing is removed, and no mark is left");
    let removed = remove(&mut Writer::alone(&now), &finished).unwrap();
    assert_eq!((&removed.backups, removed.segments), (&finished, 0), "it may use the segments");
    let last_week = with_begun(8 * 24 * HOUR_US);
    let removed = remove(&mut Writer::alone(&last_week), &names).unwrap();
    assert_eq!(removed.backups, names);
    assert_eq!(last_week.lock().unwrap().files.len(), 0, "nothing is left");
}

#[test]
fn a_backup_whose_segments_or_mark_were_removed_meanwhile_is_not_finished() {
    let log = OneLog::new();
    let start = bucket(&log);
    for removed in ["segments/", ".begun"] {
        let bucket = Arc::new(Mutex::new(start.clone()));
        // So that there is a last segment to copy.
        log.append(1);
        let then = || {
            let mut bucket = bucket.lock().unwrap();
            // The first segment of the earlier backup has grown since.
            let is_needed = |name: &&String| name.contains(removed) && !name.contains("000001-");
            let name = bucket.files.keys().find(is_needed).cloned();
            bucket.files.remove(&name.unwrap());
            Ok(())
        };
        let mut source = Meanwhile { inner: log.source(), then: Some(Box::new(then)) };
        let refused = taken(&mut source, &mut Writer::alone(&bucket)).unwrap_err();
        assert!(refused.to_string().contains("was removed while"), "{removed}: {refused}");
        assert_eq!(Catalog::of(&mut Writer::alone(&bucket)).unwrap().finished.len(), 1);
        // Another attempt brings what is missing.
        taken(&mut log.source(), &mut Writer::alone(&bucket)).unwrap();
    }
}

#[test]
fn two_backups_of_one_moment_have_two_names() {
    let log = OneLog::new();
    log.append(1);
    for seed in 0..20 {
        let bucket = Arc::new(Mutex::new(Bucket::default()));
        let turns = Turns::new(2, seed);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let turns = Some((Arc::clone(&turns), writer));
                let bucket = Arc::clone(&bucket);
                let mut store = Writer { bucket, turns, marks: Marks::Heeded };
                let log = &log;
                scope.spawn(move || taken(&mut log.source(), &mut store).unwrap());
            }
        });
        let catalog = Catalog::of(&mut Writer::alone(&bucket)).unwrap();
        assert_eq!((catalog.finished.len(), catalog.unfinished.len()), (2, 0), "seed {seed}");
    }
}
