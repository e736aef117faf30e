//! The beginning of a log can be cut off: what is left answers as before, and whatever would need
//! more is refused.

use crate::oracle::{Oracle, SeenEvent, append, append_if, drain, open, small_segments};
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::storage::{Storage, StorageFile};
use wellspring_log::{
    AppendError, CountStep, Floor, Log, Options, Order, ReadError, ReadOptions, Sync,
};
use wellspring_log::{RequestKey, ScrubEnd, TrimError, Work, inspect};
use wellspring_patience::{PATIENCE, Patience};
use wellspring_types::{AppendCondition, Event, EventId, Position, Query};

/// Number of segments whose indexes become one.
const FAN: usize = 4;

fn event(number: usize) -> Event {
    let data = format!("\"{}\"", "x".repeat(3_000));
    let tags = [format!("t:{}", number % 7), "all".to_owned(), format!("unique:{number:05}")];
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    // One type occurs at the beginning alone.
    let event_type = if number < 30 { "Early" } else { ["A", "B", "C"][number % 3] };
    let mut event = Event::json(event_type, &tags, &data);
    event.id = number.is_multiple_of(5).then(|| EventId((number as u128).to_be_bytes()));
    event
}

fn bases(storage: &SimulatedStorage) -> Vec<Position> {
    let names = storage.contents().into_keys();
    names.filter_map(|name| name.strip_suffix(".seg")?.parse().ok()).collect()
}

fn indexes(storage: &SimulatedStorage) -> usize {
    storage.contents().keys().filter(|name| name.ends_with(".idx")).count()
}

/// Appends events until there are this many segments, and waits until their indexes are merged.
/// Returns all events.
fn fill(storage: &SimulatedStorage, log: &Log, segments: usize) -> Vec<Event> {
    let mut all: Vec<Event> = Vec::new();
    while log.segments() < segments as u64 {
        all.push(event(all.len()));
        log.append(append(&all[all.len() - 1..])).unwrap();
    }
    let (mut left, mut expected) = (segments - 1, 0);
    while left > 0 {
        expected += left % FAN;
        left /= FAN;
    }
    let mut patience = Patience::new();
    while indexes(storage) != expected {
        patience.pause(format_args!("{} indexes of {expected}", indexes(storage)));
    }
    all
}

fn counted(log: &Log, query: &Query, after: Position) -> Result<u64, ReadError> {
    let mut count = log.snapshot().count(query.clone(), after);
    loop {
        if let CountStep::Done(n) = count.step(&mut Work::unbounded())? {
            return Ok(n);
        }
    }
}

fn queries() -> Vec<Query> {
    let of = |(types, tags): (&[&str], &[&str])| Query::item(types, tags);
    let items: [(&[&str], &[&str]); 7] = [
        (&["A"], &[]),
        (&["Early"], &[]),
        (&[], &["t:3"]),
        (&["A", "B"], &["t:3", "all"]),
        (&[], &["unique:00017"]),
        (&[], &["unique:00300"]),
        (&[], &["nowhere"]),
    ];
    [Query::all()].into_iter().chain(items.into_iter().map(of)).collect()
}

/// Whether the log answers every question as one with all events, or refuses it for its beginning.
fn check(log: &Log, all: &[Event], first: Position) {
    let snapshot = log.snapshot();
    assert_eq!((snapshot.first(), snapshot.head()), (first, all.len() as u64));
    let oracle = Oracle { events: all.to_vec() };
    let trimmed = ReadError::Trimmed { first };
    for query in queries() {
        let matching: Vec<SeenEvent> = oracle.matching(&query);
        let afters = [0, 1, first.saturating_sub(2), first - 1, first, first + 25, snapshot.head()];
        for after in afters {
            let later: Vec<_> = matching.iter().filter(|e| e.position > after).cloned().collect();
            let is_refused = after + 1 < first;
            let options = ReadOptions { after: Some(after), ..ReadOptions::default() };
            let read = drain(snapshot.read(&query, options));
            let count = counted(log, &query, after);
            if is_refused {
                assert_eq!(read.as_ref(), Err(&trimmed), "{query:?} after {after}");
                assert_eq!(count, Err(trimmed.clone()), "{query:?} after {after}");
            } else {
                assert!(read.as_ref() == Ok(&later), "{query:?} after {after}");
                assert_eq!(count, Ok(later.len() as u64), "{query:?} after {after}");
            }
            let condition = AppendCondition::no_match_after(query.clone(), after);
            let newest = matching.last().filter(|newest| newest.position > after);
            let outcome = match newest {
                Some(newest) if newest.position >= first => {
                    Err(AppendError::Conflict(oracle.judge(&condition).unwrap()))
                }
                _ if is_refused => Err(AppendError::Read(trimmed.clone())),
                // Allowed: appended nowhere here, as the log has to stay as it is.
                _ => continue,
            };
            let appended = log.append(append_if(&[event(1)], condition));
            assert_eq!(appended, outcome, "{query:?} after {after}");
        }
        let down = ReadOptions { order: Order::Descending, ..ReadOptions::default() };
        let mut kept: Vec<_> = matching.into_iter().filter(|e| e.position >= first).collect();
        kept.reverse();
        let whole = drain(snapshot.read(&query, down));
        assert!(if first > 1 {
            whole == Err(trimmed.clone())
        } else {
            whole.as_ref() == Ok(&kept)
        });
        assert!(drain(snapshot.read(&query, down).only_after(first - 1)) == Ok(kept), "{query:?}");
    }
    let kept = &all[first as usize - 1..];
    for term in snapshot.types().unwrap() {
        let own = kept.iter().filter(|event| event.event_type == term.term);
        assert_eq!(own.count() as u64, term.count, "{}", term.term);
    }
    let tags: BTreeSet<&String> = kept.iter().flat_map(|event| &event.tags).collect();
    let listed = snapshot.tags("", None, usize::MAX, &mut Work::unbounded()).unwrap();
    assert_eq!(listed.len(), tags.len());
    for (number, event) in all.iter().enumerate() {
        let Some(id) = event.id else { continue };
        let position = number as u64 + 1;
        let found = snapshot.find_id(id).unwrap();
        assert_eq!(found, Some(position).filter(|&position| position >= first));
    }
    let at = |position| snapshot.at(position, |record| record.position());
    assert_eq!(at(first), Ok(Some(first)));
    if first > 1 {
        assert_eq!(at(first - 1), Err(trimmed.clone()));
        let time = snapshot.first_since(0).step(&mut Work::unbounded());
        assert_eq!(time, Err(trimmed));
        assert_eq!(log.floor().map(|floor| floor.first), Some(first));
    }
    let of_now = snapshot.first_since(u64::MAX).step(&mut Work::unbounded());
    assert_eq!(of_now, Ok(snapshot.head() + 1));
}

/// Where the log begins if everything before `wanted` may go.
fn expected_first(storage: &SimulatedStorage, wanted: Position) -> Position {
    bases(storage).into_iter().filter(|&base| base <= wanted).max().unwrap_or(1)
}

#[test]
fn what_is_left_answers_as_before_and_what_is_gone_is_refused() {
    let storage = SimulatedStorage::new(1);
    let mut log = open(&storage, small_segments()).unwrap();
    let all = fill(&storage, &log, FAN * FAN + 2 * FAN + 4);
    let history = log.history();
    let early = log.snapshot();
    check(&log, &all, 1);
    let head = log.head();
    let mut first = 1;
    // Within the run of 16 segments, at its end, within one of 4, and in single ones.
    for wanted in [2, 25, 90, 91, 300, 360, 410, 480, 555, head, u64::MAX] {
        first = expected_first(&storage, wanted).max(first);
        assert_eq!(log.trim(wanted), Ok(first), "{wanted}");
        assert_eq!(bases(&storage)[0], first);
        check(&log, &all, first);
        log.close();
        drop(log);
        let report = inspect::verify_on(&storage, &mut |_, _| ()).unwrap();
        assert!(report.is_sound() && report.stale_indexes.is_empty(), "{report:?}");
        assert_eq!((report.first, report.head), (first, head));
        log = open(&storage, small_segments()).unwrap();
        check(&log, &all, first);
    }
    assert_eq!((log.history(), log.segments()), (history, 1));
    assert!(first > head - 30, "{first} of {head}: the segment that is written stays");
    // A reader that began before goes on.
    let read = drain(early.read(&Query::all(), ReadOptions::default())).unwrap();
    assert_eq!(read.len(), all.len());
    // And the log goes on.
    assert_eq!(log.append(append(&[event(1)])).unwrap().first, head + 1);
}

#[test]
fn earlier_cuts_and_those_before_the_first_segment_change_nothing() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    assert_eq!((log.trim(0), log.trim(1), log.trim(9), log.floor()), (Ok(1), Ok(1), Ok(1), None));
    let all = fill(&storage, &log, FAN + 2);
    assert_eq!((log.trim(0), log.trim(1), log.floor()), (Ok(1), Ok(1), None));
    let first = log.trim(50).unwrap();
    assert_eq!((log.trim(30), log.trim(0)), (Ok(first), Ok(first)));
    check(&log, &all, first);
}

#[test]
fn keys_and_ids_of_what_is_gone_can_be_used_again() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let keyed = |number: usize| {
        let mut request = append(&[event(number)]);
        request.key = Some(RequestKey { key: format!("k{number}"), digest: [7; 16] });
        request
    };
    while log.segments() < 4 {
        log.append(keyed(log.head() as usize)).unwrap();
    }
    assert!(log.append(keyed(0)).unwrap().replayed);
    let first = log.trim(u64::MAX).unwrap();
    let again = log.append(keyed(0)).unwrap();
    assert!(!again.replayed && again.first > first);
    assert!(log.append(keyed(first as usize - 1)).unwrap().replayed, "what is left is known");
}

#[test]
fn what_was_appended_before_a_cut_survives_a_power_loss_that_the_cut_does() {
    let storage = SimulatedStorage::new(1);
    let delayed = Options { sync: Sync::Interval(Duration::from_secs(600)), ..small_segments() };
    let log = open(&storage, delayed).unwrap();
    let all = fill(&storage, &log, FAN + 2);
    // A client appends again an event that the trim is about to remove.
    let last = log.append(append(&[event(1)])).unwrap().last;
    assert_eq!(last, all.len() as u64 + 1);
    assert!(log.trim(u64::MAX).unwrap() > 1);
    for _ in 0..20 {
        let found = open(&storage.crash(), small_segments()).unwrap();
        assert_eq!(found.head(), last);
    }
}

#[test]
fn an_idle_subscription_outlives_a_cut_and_one_that_is_behind_is_told() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let mut idle = log.subscribe(Query::item(&["Rare"], &[]), 0);
    let mut behind = log.subscribe(Query::all(), 0);
    let rare = append(&[Event::json("Rare", &[], "1")]);
    for round in 1..4 {
        assert!(idle.next(Duration::ZERO).unwrap().is_none());
        let mut context = Context::from_waker(Waker::noop());
        let _ = idle.poll_ready(&mut context);
        let wanted = log.head() + 60;
        while log.head() < wanted {
            log.append(append(&[event(log.head() as usize)])).unwrap();
        }
        assert!(idle.next(Duration::ZERO).unwrap().is_none());
        assert_eq!(idle.position(), log.head());
        assert!(log.trim(u64::MAX).unwrap() > wanted - 30, "{round}");
        log.append(rare.clone()).unwrap();
        assert_eq!(idle.next(PATIENCE).unwrap().expect("one").position(), log.head());
    }
    let first = log.snapshot().first();
    assert_eq!(behind.next(Duration::ZERO).unwrap_err(), ReadError::Trimmed { first });
}

/// A disk of which a power loss at every step is kept.
#[derive(Debug)]
struct LossyStorage {
    disk: SimulatedStorage,
    losses: Mutex<Vec<(String, SimulatedStorage)>>,
    /// There is room for no index.
    is_narrow: AtomicBool,
}

fn lossy(disk: SimulatedStorage) -> (Arc<LossyStorage>, Log) {
    let (losses, is_narrow) = (Mutex::default(), AtomicBool::new(false));
    let lossy = Arc::new(LossyStorage { disk, losses, is_narrow });
    let log = Log::open_on(Arc::clone(&lossy) as Arc<dyn Storage>, small_segments()).unwrap();
    (lossy, log)
}

impl LossyStorage {
    fn step(&self, step: String) {
        let mut losses = self.losses.lock().unwrap();
        losses.extend((0..3).map(|_| (step.clone(), self.disk.crash())));
    }
}

impl Storage for LossyStorage {
    delegate!(disk: name lock unlock list open);

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        if self.is_narrow.load(Relaxed) && name.ends_with(".idx.tmp") {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.step(format!("before {name} is created"));
        self.disk.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.step(format!("before {to} is renamed"));
        let renamed = self.disk.rename(from, to);
        self.step(format!("after {to} was renamed"));
        renamed
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.disk.remove(name);
        self.step(format!("after {name} was removed"));
        removed
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()?;
        self.step("after the folder was synced".into());
        Ok(())
    }
}

#[test]
fn a_power_loss_at_any_step_leaves_the_log_before_or_after() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let all = fill(&storage, &log, FAN * FAN + FAN + 2);
    let history = log.history();
    log.close();
    for wanted in [100, 345] {
        let disk = SimulatedStorage::with_contents(wanted, &storage.contents());
        let (lossy, log) = lossy(disk);
        lossy.losses.lock().unwrap().clear();
        let first = log.trim(wanted).unwrap();
        let losses = std::mem::take(&mut *lossy.losses.lock().unwrap());
        log.close();
        assert!(losses.len() > 20);
        let mut seen = BTreeSet::new();
        for (step, disk) in losses {
            let log = open(&disk, small_segments()).unwrap_or_else(|e| panic!("{step}: {e}"));
            let found = log.snapshot().first();
            assert!([1, first].contains(&found), "{step}: {found}");
            assert_eq!(log.history(), history, "{step}");
            assert_eq!(bases(&disk)[0], found, "{step}: files are left");
            let options = ReadOptions { after: Some(found - 1), ..ReadOptions::default() };
            let left = drain(log.snapshot().read(&Query::item(&[], &["all"]), options)).unwrap();
            assert!(left.iter().map(|seen| &seen.event).eq(&all[found as usize - 1..]), "{step}");
            assert_eq!(log.trim(wanted), Ok(first), "{step}: again");
            log.close();
            if seen.insert(found) {
                check(&open(&disk, small_segments()).unwrap(), &all, first);
            }
        }
        assert_eq!(seen, BTreeSet::from([1, first]));
    }
}

#[test]
fn without_room_for_an_index_segments_go_that_share_none_with_the_rest() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let all = fill(&storage, &log, FAN * FAN + FAN + 2);
    log.close();
    drop(log);
    let (lossy, log) = lossy(storage.clone());
    lossy.is_narrow.store(true, Relaxed);
    let bases_before = bases(&storage);
    let [of_run, within] = [bases_before[FAN * FAN], bases_before[FAN * FAN + 2]];
    assert_eq!(log.trim(of_run - 1), Ok(1), "all of it shares one index");
    storage.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    assert!(matches!(log.trim(within), Err(TrimError::Io { is_full: true, .. })));
    storage.set_faults(Faults::default());
    check(&log, &all, 1);
    assert_eq!(log.trim(within), Ok(of_run));
    lossy.is_narrow.store(false, Relaxed);
    check(&log, &all, of_run);
    assert_eq!(log.trim(within), Ok(within));
    check(&log, &all, within);
}

#[test]
fn a_scrub_writes_a_lost_floor_again_and_without_it_no_log_is_opened() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let all = fill(&storage, &log, FAN + 2);
    let first = log.trim(60).unwrap();
    let floor = log.floor().unwrap();
    storage.remove("floor").unwrap();
    assert!(open(&storage.crash(), small_segments()).is_err());
    let ScrubEnd::Complete(report) = log.scrub(&mut |_| std::ops::ControlFlow::Continue(())) else {
        panic!("it was stopped")
    };
    assert_eq!((report.mended, report.damage), (vec!["floor".to_owned()], vec![]));
    assert_eq!(Floor::read(&storage).unwrap(), Some(floor));
    log.close();
    drop(log);
    check(&open(&storage, small_segments()).unwrap(), &all, first);
    storage.open("floor").unwrap().write_all_at(b"x", 30).unwrap();
    let report = inspect::verify_on(&storage, &mut |_, _| ()).unwrap();
    assert_eq!(report.damage[0].file, "floor");
    assert!(open(&storage, small_segments()).is_err());
}

#[test]
fn readers_and_writers_beside_cuts_see_whole_answers_or_refusals() {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, small_segments()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..1_500 {
                log.append(append(&[event(number)])).unwrap();
            }
            is_done.store(true, Relaxed);
        });
        let reader = || {
            while !is_done.load(Relaxed) {
                let snapshot = log.snapshot();
                let (first, head) = (snapshot.first(), snapshot.head());
                let options = ReadOptions { after: Some(first - 1), ..ReadOptions::default() };
                let read = drain(snapshot.read(&Query::item(&[], &["all"]), options)).unwrap();
                assert_eq!(read.len() as u64, head + 1 - first);
                let unique = format!("unique:{:05}", head.saturating_sub(40));
                let condition = AppendCondition::not_exists(Query::item(&[], &[&unique]));
                // It was appended, whether it is left or not.
                let refused = log.append(append_if(&[event(1)], condition));
                assert!(refused.is_err() || head < 41, "{refused:?}");
            }
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        let mut first = 1;
        while !is_done.load(Relaxed) {
            first = log.trim(log.head().saturating_sub(100)).unwrap().max(first);
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(first > 900, "{first}");
    });
    log.close();
    let report = inspect::verify_on(&storage, &mut |_, _| ()).unwrap();
    assert!(report.is_sound(), "{report:?}");
}
