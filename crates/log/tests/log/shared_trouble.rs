//! A copy of a shared log whose engine, disk or neighbour misbehaves: nothing hangs or panics, and
//! no node takes a lead that it cannot use.

use crate::oracle::{append, small_segments};
use crate::shared::{node, open_node, take_lead};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use wellspring_log::shared::entry::{BatchId, BatchPart, Claim, ClusterId, Entry, batch_entries};
use wellspring_log::shared::simulated::{Settings, SimulatedLog, SimulatedNode};
use wellspring_log::shared::{
    Arrival, AskId, Fetched, LogStart, OfferId, Place, SharedLimits, SharedLog, SharedLogError,
};
use wellspring_log::storage::Storage;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{
    AppendError, Claims, Clock, Driver, Log, NotConfirmed, Options, ReadError, Role, SharedOptions,
};
use wellspring_patience::{PATIENCE, until};
use wellspring_types::{Event, Query};

/// The result of an action that must not take long.
fn soon<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(act()));
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it hangs: {what}"))
}

fn confirm(log: &Log, waker: &Waker) -> Poll<Result<u64, NotConfirmed>> {
    std::pin::pin!(log.confirm()).poll(&mut Context::from_waker(waker))
}

/// An event of a given size.
fn event(bytes: usize) -> Event {
    Event::json("T", &[], &format!("\"{}\"", "x".repeat(bytes)))
}

/// An engine that always has another entry without effect.
#[derive(Default)]
struct Chatter {
    place: u64,
    told: VecDeque<Arrival>,
}

impl SharedLog for Chatter {
    fn limits(&self) -> SharedLimits {
        let lead_timeout_min = Duration::from_millis(10);
        SharedLimits { lead_timeout_min, ..Settings::default().limits }
    }

    fn follow(&mut self, _after: Place) {}

    fn offer(&mut self, _id: OfferId, _after: Place, _entry: Arc<[u8]>) {}

    fn ask_end(&mut self, id: AskId) {
        self.told.push_back(Arrival::End { id, end: Some(Place(u64::MAX)) });
    }

    fn next(&mut self, _waker: &Waker) -> Result<Arrival, SharedLogError> {
        if let Some(told) = self.told.pop_front() {
            return Ok(told);
        }
        self.place += 1;
        let entry = match self.place {
            1 => Entry::Founded { cluster: ClusterId([1; 16]), log: "main" },
            tag => Entry::Probe { tag },
        };
        Ok(Arrival::Entry { place: Place(self.place), entry: entry.encode().into() })
    }

    fn fetch(&mut self, _: Place, _: usize) -> Result<Fetched, SharedLogError> {
        Ok(Fetched::Entries(Vec::new()))
    }

    fn gap_after(&mut self, _: Place) -> Result<Option<LogStart>, SharedLogError> {
        Ok(None)
    }
}

#[test]
fn a_log_that_is_far_behind_closes_without_catching_up() {
    let storage = Arc::new(SimulatedStorage::new(1));
    let log =
        Log::open_shared(storage, small_segments(), node(1), Box::<Chatter>::default()).unwrap();
    until("it reads", || log.shared_stats().unwrap().place > Place(100));
    soon("closing", move || log.close());
    let storage = Arc::new(SimulatedStorage::new(1));
    let options = Options { driver: Driver::Turns { seed: 1 }, ..small_segments() };
    let log = Log::open_shared(storage, options, node(1), Box::<Chatter>::default()).unwrap();
    soon("closing by turns", move || log.close());
}

/// An engine whose caller is suspended right after a question has been sent, and that delivers no
/// entries meanwhile.
struct SuspendsAsker {
    engine: SimulatedNode,
    is_armed: Arc<AtomicBool>,
    asked: mpsc::Sender<()>,
    goes_on: mpsc::Receiver<()>,
    stash: VecDeque<Arrival>,
}

impl SharedLog for SuspendsAsker {
    fn limits(&self) -> SharedLimits {
        self.engine.limits()
    }

    fn follow(&mut self, after: Place) {
        self.engine.follow(after);
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        self.engine.offer(id, after, entry);
    }

    fn ask_end(&mut self, id: AskId) {
        self.engine.ask_end(id);
        if self.is_armed.load(Ordering::SeqCst) && self.asked.send(()).is_ok() {
            let _ = self.goes_on.recv();
        }
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        if !self.is_armed.load(Ordering::SeqCst)
            && let Some(stashed) = self.stash.pop_front()
        {
            return Ok(stashed);
        }
        match self.engine.next(waker)? {
            entry @ Arrival::Entry { .. } if self.is_armed.load(Ordering::SeqCst) => {
                self.stash.push_back(entry);
                waker.wake_by_ref();
                Ok(Arrival::Nothing)
            }
            arrival => Ok(arrival),
        }
    }

    fn fetch(&mut self, after: Place, most: usize) -> Result<Fetched, SharedLogError> {
        self.engine.fetch(after, most)
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        self.engine.gap_after(after)
    }
}

#[test]
fn a_request_that_comes_while_the_question_is_sent_is_not_answered_by_it() {
    let world = SimulatedLog::immediate();
    let leader = open_node(&world, &SimulatedStorage::new(1), 1);
    take_lead(&leader);
    let (asked, was_asked) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let is_armed = Arc::<AtomicBool>::default();
    let engine = SuspendsAsker {
        engine: world.connect(2),
        is_armed: Arc::clone(&is_armed),
        asked,
        goes_on,
        stash: VecDeque::new(),
    };
    let storage = Arc::new(SimulatedStorage::new(2));
    let log = Log::open_shared(storage, small_segments(), node(2), Box::new(engine)).unwrap();
    let first = leader.append(append(&[Event::json("Told", &[], "1")])).unwrap().last;
    until("it follows", || log.head() >= first);
    is_armed.store(true, Ordering::SeqCst);
    let context = &mut Context::from_waker(Waker::noop());
    let mut earlier = std::pin::pin!(log.confirm());
    assert_eq!(earlier.as_mut().poll(context), Poll::Pending);
    was_asked.recv_timeout(PATIENCE).expect("the engine is asked");
    let appended = leader.append(append(&[Event::json("Told", &[], "1")])).unwrap().last;
    let mut later = std::pin::pin!(log.confirm());
    assert_eq!(later.as_mut().poll(context), Poll::Pending);
    // For every question from here on.
    (0..1_000).for_each(|_| go_on.send(()).unwrap());
    until("the earlier request is answered", || earlier.as_mut().poll(context).is_ready());
    assert_eq!(later.as_mut().poll(context), Poll::Pending, "its answer is not there yet");
    is_armed.store(false, Ordering::SeqCst);
    let mut told = Poll::Pending;
    until("the later request is answered", || {
        told = later.as_mut().poll(context);
        told.is_ready()
    });
    assert!(matches!(told, Poll::Ready(Ok(end)) if end >= appended), "{told:?}");
}

/// The leader and its epoch.
fn leader(logs: &[Log]) -> (usize, u64) {
    let lead = |log: &Log| match log.role() {
        Role::Leading { epoch } => Some(epoch),
        _ => None,
    };
    until("one leads", || logs.iter().any(|log| lead(log).is_some()));
    logs.iter().enumerate().find_map(|(n, log)| Some((n, lead(log)?))).unwrap()
}

/// The checksums are right, but it is not a batch: its writer has a bug or is newer. Every node
/// that read it panicked, again at every opening.
#[test]
fn a_batch_without_records_detaches_the_node_that_reads_it() {
    let good = {
        let world = SimulatedLog::immediate();
        let log = open_node(&world, &SimulatedStorage::new(1), 1);
        until("it leads", || log.role().leads());
        log.append(append(&[event(10), event(10)])).unwrap();
        let (_, entry) = world.entries().pop().unwrap();
        match Entry::decode(&entry).unwrap() {
            Entry::Batch(BatchPart { batch, body, .. }) => (batch, body.to_vec()),
            other => panic!("{other:?}"),
        }
    };
    let (batch, body) = good;
    let with = |count: u32, change: &dyn Fn(&mut Vec<u8>)| {
        let mut body = body.clone();
        change(&mut body);
        (count, body)
    };
    let cases = [
        ("no length", with(2, &|body| body[..4].fill(0))),
        ("too long", with(2, &|body| body[..4].fill(255))),
        ("an unknown flag", with(2, &|body| body[27] |= 128)),
        ("a bit", with(2, &|body| body[50] ^= 1)),
        ("more events than records", with(3, &|_| {})),
        ("fewer events than records", with(1, &|_| {})),
        ("a record cut short", with(2, &|body| body.truncate(body.len() - 1))),
        ("one byte", (1, vec![7])),
        ("other positions", with(2, &|body| body[8] = 9)),
    ];
    for (what, (count, body)) in cases {
        for entry_bytes in [1 << 20, 64 + 20] {
            let world = SimulatedLog::immediate();
            let storages = [1, 2].map(SimulatedStorage::new);
            let logs: Vec<Log> =
                (0..2).map(|n| open_node(&world, &storages[n], n as u64)).collect();
            let (_, epoch) = leader(&logs);
            let (body_bytes, body_crc) = (body.len() as u32, crc32c::crc32c(&body));
            let bad = BatchId { epoch, count, body_bytes, body_crc, ..batch };
            for entry in batch_entries(&bad, &body, entry_bytes) {
                world.append(&entry);
            }
            for log in &logs {
                until(what, || matches!(log.role(), Role::Detached { .. }));
                let Role::Detached { reason } = log.role() else { panic!() };
                assert!(reason.contains("record"), "{reason}");
                assert_eq!((log.head(), log.closed_reason()), (0, None), "{what}");
                assert!(matches!(
                    confirm(log, Waker::noop()),
                    Poll::Ready(Err(NotConfirmed::Detached { .. }))
                ));
            }
        }
    }
}

#[derive(Debug, Default)]
pub struct HandClock(pub AtomicU64);

impl Clock for HandClock {
    fn wall_us(&self) -> u64 {
        self.monotonic_us()
    }

    fn monotonic_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub fn by_turns(clock: &Arc<HandClock>) -> Options {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Options { clock, driver: Driver::Turns { seed: 1 }, ..small_segments() }
}

/// Requests for confirmation delayed the node's own question, which had been lost: for ever, if
/// there was always another request.
#[test]
fn a_node_catches_up_while_reads_are_confirmed_all_the_time() {
    let world = SimulatedLog::by_hand(1);
    let clock = Arc::<HandClock>::default();
    let storage = Arc::new(SimulatedStorage::new(1));
    let log =
        Log::open_shared(storage, by_turns(&clock), node(1), Box::new(world.connect(1))).unwrap();
    log.turn();
    world.under_way().iter().for_each(|question| world.lose(question.id));
    let mut confirming = Box::pin(log.confirm());
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if confirming.as_mut().poll(&mut context).is_ready() {
            confirming = Box::pin(log.confirm());
            assert!(confirming.as_mut().poll(&mut context).is_pending());
        }
        (0..3).for_each(|_| _ = log.turn());
        for under_way in world.under_way() {
            world.land(under_way.id);
            world.report(under_way.id);
            world.answer(under_way.id);
        }
        world.show(1, 10);
        (0..3).for_each(|_| _ = log.turn());
        clock.0.fetch_add(10_000, Ordering::Relaxed);
        if !matches!(log.role(), Role::CatchingUp { .. }) {
            return;
        }
    }
    panic!("{:?}", log.role());
}

/// An engine that panics on demand.
struct Panicking {
    engine: SimulatedNode,
    in_next: Arc<AtomicBool>,
    in_offer: Arc<AtomicBool>,
}

impl SharedLog for Panicking {
    fn limits(&self) -> SharedLimits {
        self.engine.limits()
    }

    fn follow(&mut self, after: Place) {
        self.engine.follow(after);
    }

    fn offer(&mut self, id: OfferId, after: Place, entry: Arc<[u8]>) {
        assert!(!self.in_offer.swap(false, Ordering::SeqCst), "as the test wants");
        self.engine.offer(id, after, entry);
    }

    fn ask_end(&mut self, id: AskId) {
        self.engine.ask_end(id);
    }

    fn next(&mut self, waker: &Waker) -> Result<Arrival, SharedLogError> {
        let is_client = std::thread::current().name() != Some("wellspring-journal");
        assert!(!is_client || !self.in_next.swap(false, Ordering::SeqCst), "as the test wants");
        self.engine.next(waker)
    }

    fn fetch(&mut self, after: Place, most: usize) -> Result<Fetched, SharedLogError> {
        self.engine.fetch(after, most)
    }

    fn gap_after(&mut self, after: Place) -> Result<Option<LogStart>, SharedLogError> {
        self.engine.gap_after(after)
    }
}

/// The log that had met the panic refused everything and still took the lead.
#[test]
fn an_engine_that_panics_ends_its_log_and_the_lead() {
    for panics_in_next in [true, false] {
        let world = SimulatedLog::immediate();
        let flags = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let engine = Panicking {
            engine: world.connect(1),
            in_next: Arc::clone(&flags[0]),
            in_offer: Arc::clone(&flags[1]),
        };
        let storage = Arc::new(SimulatedStorage::new(1));
        let log = Log::open_shared(storage, small_segments(), node(1), Box::new(engine)).unwrap();
        until("it leads", || log.role().leads());
        let other = open_node(&world, &SimulatedStorage::new(2), 2);
        until("it follows", || matches!(other.role(), Role::Following { leader: Some(_) }));
        flags[usize::from(!panics_in_next)].store(true, Ordering::SeqCst);
        let appending = log.clone();
        let outcome = soon("the append", move || {
            catch_unwind(AssertUnwindSafe(|| appending.append(append(&[event(1)]))))
        });
        let outcome = outcome.expect("the client's thread does not panic");
        assert!(matches!(outcome, Err(AppendError::Unknown { .. })), "{outcome:?}");
        assert!(log.closed_reason().is_some());
        until("the other leads", || other.role().leads());
        other.append(append(&[Event::json("Told", &[], "1")])).unwrap();
        soon("closing", move || log.close());
    }
}

/// Checks the role when it is woken.
struct RoleWatcher(Mutex<Log>);

impl Wake for RoleWatcher {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().unwrap().role();
    }
}

#[test]
fn a_waiter_for_a_lease_may_read_the_log_when_the_lead_ends() {
    let world = SimulatedLog::immediate();
    let logs: Vec<Log> = (0..2).map(|n| open_node(&world, &SimulatedStorage::new(n), n)).collect();
    let (leads, _) = leader(&logs);
    let log = logs[leads].clone();
    log.leases().acquire("l", "", 60_000_000).unwrap();
    let waker = Waker::from(Arc::new(RoleWatcher(Mutex::new(log.clone()))));
    let mut context = Context::from_waker(&waker);
    let mut line = log.leases().line("l");
    assert!(line.poll_turn(&mut context).is_ready() && line.poll_turn(&mut context).is_pending());
    take_lead(&logs[1 - leads]);
    let looks = log.clone();
    soon("the role", move || until("it follows", || !looks.role().leads()));
}

/// An operator must decide which of two histories is right: the copy is not overwritten with the
/// other one.
#[test]
fn a_detached_copy_is_not_mended_from_another_past() {
    let world = SimulatedLog::immediate();
    let clock = Arc::<HandClock>::default();
    let run = |log: &Log| {
        for _ in 0..50 {
            clock.0.fetch_add(40_000, Ordering::Relaxed);
            while log.turn().did == wellspring_log::TurnProgress::Something {}
        }
    };
    let open = |storage: &SimulatedStorage, number| {
        let engine = Box::new(world.connect(number));
        Log::open_shared(Arc::new(storage.clone()), by_turns(&clock), node(number), engine).unwrap()
    };
    let storage = SimulatedStorage::new(1);
    let (log, mut places) = (open(&storage, 1), Vec::new());
    run(&log);
    for _ in 0..6 {
        log.submit(append(&[event(500)]), Box::new(|done| assert!(done.is_ok())));
        run(&log);
        places.push(world.end());
    }
    log.close();
    world.forget_after(places[2]);
    let other = open(&SimulatedStorage::new(2), 2);
    run(&other);
    for _ in 0..6 {
        other.submit(append(&[event(500)]), Box::new(|done| assert!(done.is_ok())));
        run(&other);
    }
    other.close();
    let log = open(&storage, 1);
    run(&log);
    assert!(matches!(log.role(), Role::Detached { .. }), "{:?}", log.role());
    let name = storage.contents().into_keys().find(|name| name.ends_with(".seg")).unwrap();
    let mut byte = [0];
    let file = storage.open(&name).unwrap();
    file.read_at(&mut byte, 500).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 500).unwrap();
    let damaged = storage.contents();
    let mut events = log.snapshot().read(&Query::all(), Default::default());
    let outcome = std::iter::from_fn(|| events.next().transpose().map(|e| e.map(|_| ())));
    let outcome: Result<Vec<()>, ReadError> = outcome.collect();
    assert!(matches!(outcome, Err(ReadError::Corrupt(_))));
    run(&log);
    assert!(storage.contents()[&name] == damaged[&name], "the copy was overwritten");
}

/// Time in which a node cannot hear is not silence. Its claim waited for the connection to come
/// back, and took the lead from a healthy leader.
#[test]
fn a_follower_that_is_cut_off_does_not_claim() {
    let world = SimulatedLog::immediate();
    let clock = Arc::<HandClock>::default();
    world.append(&Entry::Founded { cluster: ClusterId([1; 16]), log: "main" }.encode());
    world.append(&Entry::Claim(Claim { epoch: 1, node: "x", start: 1, url: "" }).encode());
    let storage = Arc::new(SimulatedStorage::new(1));
    let log =
        Log::open_shared(storage, by_turns(&clock), node(1), Box::new(world.connect(1))).unwrap();
    let run = || (0..9).for_each(|_| _ = log.turn());
    run();
    assert!(matches!(log.role(), Role::Following { .. }), "{:?}", log.role());
    world.disconnect(1);
    for _ in 0..9 {
        run();
        clock.0.fetch_add(1_000_000, Ordering::Relaxed);
    }
    world.reconnect(1);
    run();
    assert!(matches!(log.role(), Role::Following { .. }), "{:?}", log.role());
    assert_eq!(world.end(), Place(2));
    // A silence that it could hear, twice because it checked so late.
    for _ in 0..2 {
        clock.0.fetch_add(1_000_000, Ordering::Relaxed);
        run();
    }
    assert!(log.role().leads(), "{:?}", log.role());
}

/// Drives the log when it is woken, as a program may.
struct TurnWaker(Mutex<Log>, AtomicU64);

impl Wake for TurnWaker {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        // Woken by that again, it is already busy with it.
        if let Ok(log) = self.0.try_lock() {
            log.turn();
        }
    }
}

/// Waiters for a role, a place or an answer were woken while the committer was locked.
#[test]
fn a_waker_may_give_its_log_a_turn() {
    let world = SimulatedLog::immediate();
    let clock = Arc::<HandClock>::default();
    let engine = Box::new(world.connect(1));
    let storage = Arc::new(SimulatedStorage::new(1));
    let log = Log::open_shared(storage, by_turns(&clock), node(1), engine).unwrap();
    let waits = || Arc::new(TurnWaker(Mutex::new(log.clone()), AtomicU64::new(0)));
    let run = |log: &Log| while log.turn().did == wellspring_log::TurnProgress::Something {};
    let turns = log.clone();
    let run_soon = |what: &str| {
        let log = turns.clone();
        soon(what, move || run(&log));
    };
    let role = waits();
    let mut changed = Box::pin(log.role_changes().past(0));
    let waker = Waker::from(Arc::clone(&role));
    assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    run_soon("a role that changes");
    assert!(role.1.load(Ordering::SeqCst) > 0);
    log.claim_lead();
    run_soon("claiming");
    assert!(log.role().leads());
    let answer = waits();
    let mut confirming = Box::pin(log.confirm());
    let waker = Waker::from(Arc::clone(&answer));
    assert!(confirming.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    run_soon("an answer");
    assert!(answer.1.load(Ordering::SeqCst) > 0);
    assert!(confirming.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    let lease = waits();
    let waker = Waker::from(Arc::clone(&lease));
    let mut context = Context::from_waker(&waker);
    log.leases().acquire("l", "", 60_000_000).unwrap();
    let mut line = log.leases().line("l");
    assert!(line.poll_turn(&mut context).is_ready() && line.poll_turn(&mut context).is_pending());
    log.resign();
    run_soon("a lease that ends");
    assert!(lease.1.load(Ordering::SeqCst) > 0);
}

/// A copy had a batch of an epoch whose leader it could not note on a full disk. After a restart it
/// never knew the leader again: without beats, nothing tells it a second time.
#[test]
fn a_copy_that_had_no_room_knows_who_leads_after_a_restart() {
    let world = SimulatedLog::immediate();
    let clock = Arc::<HandClock>::default();
    let disks = [1, 2].map(SimulatedStorage::new);
    let open = |number: u64| {
        let storage = Arc::new(disks[number as usize - 1].clone());
        let options = SharedOptions { claims: Claims::WhenTold, ..node(number) };
        let engine = Box::new(world.connect(number));
        Log::open_shared(storage, by_turns(&clock), options, engine).unwrap()
    };
    let (leader, follower) = (open(1), open(2));
    let run = |log: &Log| {
        for _ in 0..100 {
            leader.turn();
            log.turn();
        }
    };
    let put = || leader.append(append(&[Event::json("Told", &[], "1")])).unwrap();
    leader.claim_lead();
    run(&follower);
    put();
    run(&follower);
    let used: usize = disks[1].contents().values().map(Vec::len).sum();
    let capacity_bytes = Some(used as u64);
    disks[1].set_faults(Faults { capacity_bytes, ..Faults::default() });
    leader.resign();
    run(&follower);
    leader.claim_lead();
    run(&follower);
    let head = put().last;
    run(&follower);
    drop(follower);
    disks[1].set_faults(Faults::default());
    let follower = open(2);
    for _ in 0..20 {
        clock.0.fetch_add(1_000_000, Ordering::Relaxed);
        run(&follower);
    }
    assert_eq!(follower.head(), head);
    assert!(
        matches!(follower.role(), Role::Following { leader: Some(_) }),
        "{:?}",
        follower.role()
    );
}
