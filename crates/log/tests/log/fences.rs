//! Appends that are fenced: by a lease, and by a right that counts what it is asked.

use crate::oracle::{append, append_if, open, read_all, small_segments};
use crate::setbacks::{
    at_the_device, bring_to_the_device, event, full_before_the_next_segment, gated, stage,
};
use crate::shared::{node, take_lead};
use std::sync::{Arc, Mutex, mpsc};
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{
    Append, AppendError, CommitOn, EncodedEvents, Fence, FenceRefusal, LeaseProof, Log, Options,
    RequestKey, SharedOptions, Staged,
};
use wellspring_patience::until;
use wellspring_types::{AppendCondition, Event, Position, Query};

const LOST: AppendError = AppendError::Fenced(FenceRefusal::DeliveryLost);

/// A right of one epoch, which a test takes away.
#[derive(Debug)]
struct Right {
    epoch: u64,
    usage: Mutex<RightUsage>,
}

/// What has become of a right.
#[derive(Debug, Default)]
struct RightUsage {
    is_lost: bool,
    /// How often it was asked for without being staged.
    held: u64,
    /// The first positions of the requests that passed it.
    staged: Vec<Position>,
}

impl Right {
    fn of(log: &Log) -> Arc<Right> {
        Arc::new(Right { epoch: log.epoch(), usage: Mutex::default() })
    }

    fn lose(&self) {
        self.usage.lock().unwrap().is_lost = true;
    }

    fn staged(&self) -> Vec<Position> {
        self.usage.lock().unwrap().staged.clone()
    }

    fn held(&self) -> u64 {
        self.usage.lock().unwrap().held
    }

    fn check(&self, usage: &RightUsage, epoch: u64) -> Result<(), FenceRefusal> {
        let is_held = !usage.is_lost && epoch == self.epoch;
        is_held.then_some(()).ok_or(FenceRefusal::DeliveryLost)
    }
}

impl Fence for Right {
    fn holds(&self, epoch: u64) -> Result<(), FenceRefusal> {
        let mut usage = self.usage.lock().unwrap();
        usage.held += 1;
        self.check(&usage, epoch)
    }

    fn stage(&self, epoch: u64, first: Position) -> Result<(), FenceRefusal> {
        let mut usage = self.usage.lock().unwrap();
        self.check(&usage, epoch)?;
        usage.staged.push(first);
        Ok(())
    }
}

fn fenced(right: &Arc<Right>, append: Append) -> Append {
    Append { fence: Some(Arc::clone(right) as Arc<dyn Fence>), ..append }
}

fn keyed(key: &str, append: Append) -> Append {
    Append { key: Some(RequestKey { key: key.into(), digest: [7; 16] }), ..append }
}

fn unless(tag: &str) -> Append {
    append_if(&[event(tag, 10)], AppendCondition::not_exists(Query::item(&[], &[tag])))
}

#[test]
fn a_former_holder_is_told_of_its_lease_before_any_conflict() {
    let log = open(&SimulatedStorage::new(1), Options::default()).unwrap();
    let first = log.leases().acquire("mail", "one", 60_000_000).unwrap();
    let sent = [Event::json("MailSent", &["mail:1"], "1")];
    let unless_sent =
        || AppendCondition { fail_if_exists: Some(Query::all()), ..AppendCondition::default() };
    let fenced = |token, key: Option<&str>| Append {
        fence: Some(log.leases().fence(LeaseProof { lease: "mail".into(), token })),
        key: key.map(|key| RequestKey { key: key.into(), digest: [7; 16] }),
        ..append_if(&sent, unless_sent())
    };
    let appended = log.append(fenced(first.token, Some("k"))).unwrap();
    let conflict = log.append(fenced(first.token, None));
    assert!(matches!(conflict, Err(AppendError::Conflict(_))), "{conflict:?}");
    log.leases().release("mail", "one", first.token).unwrap();
    let second = log.leases().acquire("mail", "two", 60_000_000).unwrap();
    // The successor has done the work: its predecessor must not take that for its own.
    let lost = Err(AppendError::Fenced(FenceRefusal::LeaseLost));
    assert_eq!(log.append(fenced(first.token, None)), lost);
    // A retry is still recognised, whoever holds the lease now.
    let again = log.append(fenced(first.token, Some("k"))).unwrap();
    assert_eq!(again.first, appended.first);
    let conflict = log.append(fenced(second.token, None));
    assert!(matches!(conflict, Err(AppendError::Conflict(_))), "{conflict:?}");
    log.append(append(&sent)).unwrap();
}

#[test]
fn a_right_is_passed_once_and_the_completion_says_that_its_append_is_durable() {
    let (log, storage, ahead) = at_the_device(append(&[event("a", 10)]));
    let right = Right::of(&log);
    let (staged, told) = stage(&log, fenced(&right, append(&[event("b", 10), event("c", 10)])));
    assert!(matches!(staged, Staged::Placed { first: 2, last: 3, .. }), "{staged:?}");
    assert_eq!(right.staged(), [2]);
    assert!(told.try_recv().is_err(), "nothing is said before the outcome is known");
    // What is staged is not asked for again, whatever becomes of the right.
    right.lose();
    log.commit(CommitOn::JournalThread);
    storage.gate.open();
    ahead.recv().unwrap().unwrap();
    let appended = told.recv().unwrap().unwrap();
    assert_eq!((appended.first, appended.last, appended.replayed), (2, 3, false));
    assert_eq!(told.recv(), Err(mpsc::RecvError), "it is called once");
    assert_eq!((right.staged(), right.held()), (vec![2], 0));
}

#[test]
fn a_right_that_was_passed_is_free_again_after_a_setback() {
    let (log, storage, events) = full_before_the_next_segment();
    let right = Right::of(&log);
    let (staged, told) = stage(&log, fenced(&right, append(&[event("t", 1000)])));
    assert!(matches!(staged, Staged::Placed { .. }), "{staged:?}");
    log.commit(CommitOn::ThisThread);
    assert_eq!(told.recv().unwrap(), Err(AppendError::StorageFull));
    assert_eq!(told.recv(), Err(mpsc::RecvError), "it is called once");
    storage.set_faults(Faults::default());
    let appended = log.append(fenced(&right, append(&[event("t", 1000)]))).unwrap();
    let next = events as Position + 1;
    assert_eq!((appended.first, right.staged()), (next, vec![next, next]));
}

#[test]
fn a_right_that_was_passed_learns_of_an_unknown_outcome_and_of_a_closed_log() {
    let (log, storage) = gated();
    let (first, second) = (Right::of(&log), Right::of(&log));
    let request = fenced(&first, append(&[event("b", 10)]));
    let told_first = bring_to_the_device(&log, &storage, request);
    let (_, told_second) = stage(&log, fenced(&second, append(&[event("c", 10)])));
    storage.disk.set_faults(Faults { sync_fails_after: Some(0), ..Faults::default() });
    storage.gate.open();
    assert!(matches!(told_first.recv().unwrap(), Err(AppendError::Unknown { .. })));
    assert!(matches!(told_second.recv().unwrap(), Err(AppendError::Closed { .. })));
    assert_eq!((first.staged(), second.staged()), (vec![1], vec![2]));
    // A closed log asks for nothing.
    let third = Right::of(&log);
    let closed = log.append(fenced(&third, append(&[event("d", 10)])));
    assert!(matches!(closed, Err(AppendError::Closed { .. })), "{closed:?}");
    assert_eq!((third.staged(), third.held()), (Vec::new(), 0));
}

#[test]
fn what_a_right_refuses_is_not_appended() {
    let log = open(&SimulatedStorage::new(1), Options::default()).unwrap();
    let right = Right::of(&log);
    log.append(fenced(&right, append(&[event("a", 10)]))).unwrap();
    right.lose();
    let (staged, told) = stage(&log, fenced(&right, keyed("k", append(&[event("b", 10)]))));
    assert_eq!((staged, told.recv().unwrap()), (Staged::Answered, Err(LOST)));
    assert_eq!((log.head(), read_all(&log).len(), right.staged()), (1, 1, vec![1]));
    // Nor does the refusal use up its key.
    let other = Right::of(&log);
    log.append(fenced(&other, keyed("k", append(&[event("b", 10)])))).unwrap();
    assert_eq!(other.staged(), [2]);
}

#[test]
fn a_conflict_is_told_only_while_the_right_is_held() {
    let (log, storage, ahead) = at_the_device(append(&[event("a", 10)]));
    let (held, lost) = (Right::of(&log), Right::of(&log));
    lost.lose();
    // With a staged event it waits for the outcome of that one; the right is asked for before.
    let (staged, conflict) = stage(&log, fenced(&held, unless("a")));
    assert_eq!(staged, Staged::WaitsFor { position: 1 });
    let (staged, refused) = stage(&log, fenced(&lost, unless("a")));
    assert_eq!((staged, refused.recv().unwrap()), (Staged::Answered, Err(LOST)));
    storage.gate.open();
    ahead.recv().unwrap().unwrap();
    let conflict = conflict.recv().unwrap();
    assert!(matches!(conflict, Err(AppendError::Conflict(_))), "{conflict:?}");
    // With a durable one.
    let conflict = log.append(fenced(&held, unless("a")));
    assert!(matches!(conflict, Err(AppendError::Conflict(_))), "{conflict:?}");
    assert_eq!(log.append(fenced(&lost, unless("a"))), Err(LOST));
    assert_eq!((held.staged(), lost.staged()), (Vec::new(), Vec::new()), "neither is passed");
}

#[test]
fn times_that_do_not_fit_are_told_only_while_the_right_is_held() {
    let log = open(&SimulatedStorage::new(1), Options::default()).unwrap();
    let right = Right::of(&log);
    log.append(append(&[event("a", 10)])).unwrap();
    let of_1970 = || {
        let mut events = EncodedEvents::new();
        events.push_recorded(&event("b", 10).as_ref(), 1).unwrap();
        fenced(&right, Append { events, ..Append::default() })
    };
    let invalid = log.append(of_1970());
    assert!(matches!(invalid, Err(AppendError::Invalid(_))), "{invalid:?}");
    right.lose();
    assert_eq!(log.append(of_1970()), Err(LOST));
    assert_eq!(right.staged(), [], "it is not passed before the last check");
}

#[test]
fn a_retry_is_answered_although_its_right_is_lost() {
    let (log, storage, ahead) = at_the_device(append(&[event("a", 10)]));
    let right = Right::of(&log);
    let request = || fenced(&right, keyed("k", unless("b")));
    let (_, first) = stage(&log, request());
    right.lose();
    // One that overtakes its first attempt, and one that comes after it.
    let (staged, early) = stage(&log, request());
    assert_eq!(staged, Staged::WaitsFor { position: 2 });
    log.commit(CommitOn::JournalThread);
    storage.gate.open();
    ahead.recv().unwrap().unwrap();
    let appended = first.recv().unwrap().unwrap();
    for retried in [early.recv().unwrap(), log.append(request())] {
        let retried = retried.unwrap();
        assert_eq!((retried.first, retried.replayed), (appended.first, true));
    }
    assert_eq!((right.staged(), right.held()), (vec![2], 0), "a retry passes nothing");
    // Another append under the same key is told of the first, not of its right.
    let other = fenced(&right, keyed("k", append(&[event("b", 10), event("b", 10)])));
    assert_eq!(log.append(other), Err(AppendError::KeyReused { first: 2 }));
}

#[test]
fn a_right_of_an_earlier_epoch_is_lost_although_the_same_node_leads_again() {
    let world = SimulatedLog::immediate();
    let logs = [1, 2].map(|number| {
        let engine = Box::new(world.connect(number));
        let storage = Arc::new(SimulatedStorage::new(number));
        // Leads move only when asked.
        let lead_timeout = std::time::Duration::from_secs(600);
        let options = SharedOptions { lead_timeout, ..node(number) };
        Log::open_shared(storage, small_segments(), options, engine).unwrap()
    });
    take_lead(&logs[0]);
    let first = Right::of(&logs[0]);
    let one = || append(&[event("a", 10)]);
    logs[0].append(fenced(&first, one())).unwrap();
    take_lead(&logs[1]);
    until("the first follows", || !logs[0].role().leads());
    let refused = logs[0].append(fenced(&first, one()));
    assert!(matches!(refused, Err(AppendError::NotLeading { .. })), "{refused:?}");
    take_lead(&logs[0]);
    assert!(logs[0].epoch() > logs[1].epoch(), "each lead has an epoch of its own");
    assert_eq!(logs[0].append(fenced(&first, one())), Err(LOST));
    assert_eq!(first.staged(), [1]);
    let second = Right::of(&logs[0]);
    logs[0].append(fenced(&second, one())).unwrap();
    assert_eq!(second.staged(), [2]);
}
