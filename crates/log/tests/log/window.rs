//! Events staged while a request is judged: a few are judged under the staging lock, more are not.
//! The clock that the judgement reads stages them, so they come at the same moment every time.

use crate::oracle::{append, append_if, open};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{AppendError, Appended, Clock, Log, Options, Staged, Work};
use wellspring_types::{AppendCondition, Event, Query, QueryItem, limits};

/// Maximum number of positions judged under the lock, as in `sequencer/stage.rs`.
const WINDOW_EVENTS: usize = 4096;

/// Stages events whenever the time is read.
struct Meddler {
    log: Log,
    event: fn(usize) -> Event,
    /// How many each time, the last first.
    each: Mutex<Vec<usize>>,
    asked: AtomicUsize,
    staged: AtomicUsize,
}

impl Clock for Meddler {
    fn wall_us(&self) -> u64 {
        0
    }

    fn monotonic_us(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let events = self.each.lock().unwrap().pop().unwrap_or(0);
        let first = self.staged.fetch_add(events, Ordering::SeqCst);
        let events: Vec<Event> = (first..first + events).map(self.event).collect();
        for chunk in events.chunks(1000) {
            self.log.stage(append(chunk), Box::new(drop));
        }
        0
    }
}

type Outcome = Result<Appended, AppendError>;

/// Judges a request that reads the clock once in a round of 256 steps or more, while `each` many
/// events are staged in successive rounds; returns the steps taken outside the lock.
fn judge(
    each: &[usize],
    event: fn(usize) -> Event,
) -> (Option<Staged>, u64, mpsc::Receiver<Outcome>, Log) {
    let storage = SimulatedStorage::new(1);
    let log = open(&storage, Options::default()).unwrap();
    log.append(append(&[Event::json("Old", &[], "1")])).unwrap();
    let mut each = each.to_vec();
    each.reverse();
    let meddler = Arc::new(Meddler {
        log: log.clone(),
        event,
        each: Mutex::new(each),
        asked: AtomicUsize::new(0),
        staged: AtomicUsize::new(0),
    });
    let tags = |n: usize| [format!("absent:{n}"), format!("never:{n}")];
    let items = (0..250).flat_map(|n| tags(n).map(|tag| QueryItem::new(&[], &[&tag])));
    let items = items.take(limits::MAX_QUERY_ITEMS);
    let condition = AppendCondition::not_exists(Query { items: items.collect() });
    let request = append_if(&[Event::json("New", &[], "1")], condition);
    let mut work = Work::unbounded().with_deadline(Arc::clone(&meddler) as Arc<dyn Clock>, 1);
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |outcome| drop(tell.send(outcome)));
    // Whatever the journal's thread would write quickly stays staged until the judgement is over.
    storage.hold_barriers();
    let staged = log.stage_within(request, &mut work, done).ok();
    storage.release_barriers();
    assert!(meddler.asked.load(Ordering::SeqCst) > 0, "the clock was looked at");
    // The meddler's handle of the log is dropped with it.
    (staged, work.steps(), told, log)
}

#[test]
fn what_is_more_than_the_window_is_judged_in_another_round_outside_the_lock() {
    let plain = |_| Event::json("Plain", &["present:1"], "1");
    let (_, alone, ..) = judge(&[0], plain);
    let (staged, in_window, ..) = judge(&[WINDOW_EVENTS], plain);
    assert!(matches!(staged, Some(Staged::Placed { .. })), "{staged:?}");
    assert_eq!(in_window, alone, "it was judged under the lock");
    let (staged, over, ..) = judge(&[WINDOW_EVENTS + 1], plain);
    assert!(matches!(staged, Some(Staged::Placed { .. })), "{staged:?}");
    assert!(over > alone, "it was not judged under the lock: {over} steps, {alone} alone");
}

#[test]
fn an_offence_staged_meanwhile_is_found_in_the_window_and_over_it() {
    let offence = |_| Event::json("Plain", &["absent:7"], "1");
    for events in [1, WINDOW_EVENTS, WINDOW_EVENTS + 1, 3 * WINDOW_EVENTS] {
        let (staged, _, told, log) = judge(&[events], offence);
        let Some(Staged::WaitsFor { position }) = staged else { panic!("{events}: {staged:?}") };
        assert_eq!(position, 1 + events as u64);
        log.commit(wellspring_log::CommitOn::ThisThread);
        match told.recv().unwrap() {
            Err(AppendError::Conflict(conflict)) => assert_eq!(conflict.position, position),
            other => panic!("{events}: {other:?}"),
        }
    }
}

#[test]
fn a_request_that_is_always_overtaken_is_refused_and_may_be_sent_again() {
    // Each brings a new tag, so that each round looks up terms and reads the clock.
    let plain = |n| Event::json("Plain", &[&format!("new:{n}")], "1");
    let (staged, _, told, log) = judge(&[WINDOW_EVENTS + 1; 64], plain);
    assert_eq!(staged, Some(Staged::Answered));
    assert_eq!(told.recv().unwrap(), Err(AppendError::Overloaded));
    log.append(append(&[plain(0)])).unwrap();
}
