//! The pump against a destination that records deliveries and fails on demand.

use super::*;
use std::sync::Mutex;
use wellspring_log::{Append, EncodedEvents, Options, RecordView, SystemClock};
use wellspring_types::Event;

/// The state of the simulated destination.
#[derive(Default)]
struct TestDestinationState {
    delivered: Vec<Position>,
    cursor: Option<Cursor>,
    /// PlannedFault faults; the next one is last.
    faults: Vec<PlannedFault>,
    opened: usize,
}

/// A fault during delivery.
enum PlannedFault {
    /// Nothing is delivered.
    Before(Fault),
    /// Everything is delivered, but the caller gets a fault.
    After(Fault),
}

struct RecordingDestination {
    elsewhere: Arc<Mutex<TestDestinationState>>,
    batch: Vec<Position>,
    keeps_cursor: bool,
    /// An event that is refused.
    too_large: Option<Position>,
    limits: BatchLimits,
}

impl Destination for RecordingDestination {
    fn open(&mut self) -> Result<Option<Cursor>, Fault> {
        self.batch.clear();
        let mut elsewhere = self.elsewhere.lock().unwrap();
        elsewhere.opened += 1;
        Ok(elsewhere.cursor.filter(|_| self.keeps_cursor))
    }

    fn limits(&self) -> BatchLimits {
        self.limits
    }

    fn push(&mut self, event: &RecordView<'_>) -> Result<(), Fault> {
        if self.too_large == Some(event.position()) {
            return Err(Fault::stop(StopCode::TooLarge, "too large").at(event.position()));
        }
        self.batch.push(event.position());
        Ok(())
    }

    fn deliver(&mut self, cursor: Cursor, _: &Control) -> Result<DeliveryEnd, Fault> {
        let mut elsewhere = self.elsewhere.lock().unwrap();
        let planned = elsewhere.faults.pop();
        if let Some(PlannedFault::Before(fault)) = planned {
            return Err(fault);
        }
        elsewhere.delivered.append(&mut self.batch);
        elsewhere.cursor = Some(cursor);
        match planned {
            Some(PlannedFault::After(fault)) => Err(fault),
            _ => Ok(DeliveryEnd::complete(cursor)),
        }
    }
}

struct Bench {
    _dir: tempfile::TempDir,
    log: Log,
    elsewhere: Arc<Mutex<TestDestinationState>>,
    store: Arc<Mutex<Option<Cursor>>>,
    status: Arc<Status>,
    control: Arc<Control>,
}

#[derive(Clone)]
struct Store(Arc<Mutex<Option<Cursor>>>);

impl CursorStore for Store {
    fn load(&self) -> Option<Cursor> {
        *self.0.lock().unwrap()
    }

    fn save(&mut self, cursor: Cursor) -> Result<(), Fault> {
        *self.0.lock().unwrap() = Some(cursor);
        Ok(())
    }
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        Bench {
            _dir: dir,
            log,
            elsewhere: Arc::default(),
            store: Arc::default(),
            status: Arc::default(),
            control: Arc::default(),
        }
    }

    fn append(&self, event_type: &str, count: usize) {
        let mut events = EncodedEvents::new();
        for n in 0..count {
            events.push(&Event::json(event_type, &[], &n.to_string()).as_ref()).unwrap();
        }
        self.log.append(Append { events, ..Append::default() }).unwrap();
    }

    fn pump(
        &self,
        keeps_cursor: bool,
        with: impl FnOnce(&mut PumpSettings, &mut RecordingDestination),
    ) -> Pump {
        let mut settings = PumpSettings {
            log: self.log.clone(),
            query: Query::item(&["A"], &[]),
            generation: 1,
            history: None,
            start: 0,
            skip: BTreeSet::new(),
            clock: Arc::new(SystemClock),
        };
        let limits = BatchLimits { events: 7, bytes: 1 << 20, linger: Duration::from_millis(1) };
        let mut kept = RecordingDestination {
            elsewhere: Arc::clone(&self.elsewhere),
            batch: Vec::new(),
            keeps_cursor,
            too_large: None,
            limits,
        };
        with(&mut settings, &mut kept);
        let keeper = if keeps_cursor {
            CursorKeeper::Destination(Box::new(Store(Arc::clone(&self.store))))
        } else {
            CursorKeeper::Store(Box::new(Store(Arc::clone(&self.store))))
        };
        let (status, control) = (Arc::clone(&self.status), Arc::clone(&self.control));
        Pump::new(settings, Box::new(kept), keeper, status, control)
    }

    /// Runs a pump until this much is delivered, or it stops by itself.
    fn run_until(&self, pump: Pump, delivered: usize) {
        std::thread::scope(|scope| {
            let running = scope.spawn(|| pump.run());
            for _ in 0..2_000 {
                if running.is_finished() || self.delivered().len() >= delivered {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            self.control.stop();
        });
    }

    fn delivered(&self) -> Vec<Position> {
        self.elsewhere.lock().unwrap().delivered.clone()
    }
}

#[test]
fn every_match_is_delivered_once_and_in_order_whatever_is_in_doubt() {
    let bench = Bench::new();
    for _ in 0..20 {
        bench.append("A", 3);
        bench.append("B", 2);
    }
    let passing = || Fault::transient("away");
    bench.elsewhere.lock().unwrap().faults = vec![
        PlannedFault::After(passing()),
        PlannedFault::Before(passing()),
        PlannedFault::After(passing()),
    ];
    bench.run_until(bench.pump(true, |_, _| {}), 60);
    let expected: Vec<Position> = (1..=100).filter(|position| (position - 1) % 5 < 3).collect();
    assert_eq!(bench.delivered(), expected);
    assert_eq!(bench.elsewhere.lock().unwrap().opened, 4);
    assert_eq!(bench.status.counters.restarts.load(std::sync::atomic::Ordering::Relaxed), 3);
    assert_eq!(bench.status.state(), ConnectorState::Ended);
}

#[test]
fn with_a_cursor_in_a_store_a_doubt_delivers_again_and_misses_nothing() {
    let bench = Bench::new();
    bench.append("A", 30);
    bench.elsewhere.lock().unwrap().faults = vec![PlannedFault::After(Fault::transient("away"))];
    bench.run_until(bench.pump(false, |_, _| {}), 37);
    let mut delivered = bench.delivered();
    assert_eq!(delivered.len(), 37, "seven of them twice: {delivered:?}");
    delivered.sort_unstable();
    delivered.dedup();
    assert_eq!(delivered, (1..=30).collect::<Vec<_>>());
    assert_eq!(bench.store.lock().unwrap().map(|cursor| cursor.position), Some(30));
}

#[test]
fn a_cursor_moves_over_many_events_that_do_not_match_and_begins_there_again() {
    let bench = Bench::new();
    bench.append("A", 10);
    for _ in 0..6 {
        bench.append("B", 900);
    }
    let saved = || bench.store.lock().unwrap().map(|cursor| cursor.position);
    std::thread::scope(|scope| {
        let pump = bench.pump(false, |_, _| {});
        let running = scope.spawn(|| pump.run());
        let mut patience = wellspring_patience::Patience::new();
        while saved() != Some(5_410) {
            patience.pause(format_args!("saved {:?}", saved()));
        }
        bench.control.stop();
        running.join().unwrap();
    });
    bench.append("A", 1);
    let again = Bench { control: Arc::default(), ..bench };
    again.run_until(again.pump(false, |_, _| {}), 11);
    assert_eq!(again.delivered()[10..], [5_411]);
}

#[test]
fn a_sink_continues_where_it_was_and_starts_over_in_a_new_generation() {
    let bench = Bench::new();
    bench.append("A", 10);
    bench.run_until(bench.pump(true, |_, _| {}), 10);
    bench.append("A", 5);
    let again = Bench { control: Arc::default(), ..bench };
    again.run_until(again.pump(true, |_, _| {}), 15);
    assert_eq!(again.delivered(), (1..=15).collect::<Vec<_>>());
    let anew = Bench { control: Arc::default(), ..again };
    anew.run_until(
        anew.pump(true, |settings, _| (settings.generation, settings.start) = (2, 13)),
        17,
    );
    assert_eq!(anew.delivered()[15..], [14, 15]);
}

#[test]
fn what_is_too_large_stops_it_behind_all_before_and_is_skipped_if_a_person_says_so() {
    let bench = Bench::new();
    bench.append("A", 10);
    bench.run_until(bench.pump(true, |_, kept| kept.too_large = Some(5)), 10);
    assert_eq!(bench.delivered(), [1, 2, 3, 4]);
    match bench.status.state() {
        ConnectorState::Stopped { code: StopCode::TooLarge, position: Some(5), .. } => {}
        other => panic!("{other:?}"),
    }
    let again = Bench { control: Arc::default(), status: Arc::default(), ..bench };
    let skipping = again.pump(true, |settings, kept| {
        kept.too_large = Some(5);
        settings.skip.insert(5);
    });
    again.run_until(skipping, 9);
    assert_eq!(again.delivered(), [1, 2, 3, 4, 6, 7, 8, 9, 10]);
    assert_eq!(again.status.position(), 10);
}

#[test]
fn a_cursor_of_another_past_stops_it_before_anything_is_delivered() {
    for (position, anchor) in [(3, 77), (300, 77)] {
        let bench = Bench::new();
        bench.append("A", 5);
        bench.elsewhere.lock().unwrap().cursor =
            Some(Cursor { position, anchor, ..Cursor::start(1, None) });
        bench.run_until(bench.pump(true, |_, _| {}), 1);
        assert!(bench.delivered().is_empty());
        match bench.status.state() {
            ConnectorState::Stopped { code: StopCode::AnotherHistory, .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// What a restore of the log and its cursor together leaves: every event that the cursor knows, in
/// a log of another history.
#[test]
fn a_log_of_another_history_stops_it_whatever_they_have_in_common() {
    for (keeps_cursor, is_cursor_known) in
        [(true, true), (false, true), (true, false), (false, false)]
    {
        let bench = Bench::new();
        bench.append("A", 5);
        let own = bench.log.history().unwrap();
        let earlier = Some(HistoryId(own.0 ^ 1));
        if is_cursor_known {
            let anchor = bench.log.snapshot().at(3, |event| event.checksum()).unwrap().unwrap();
            let cursor = Cursor { position: 3, anchor, ..Cursor::start(1, earlier) };
            bench.elsewhere.lock().unwrap().cursor = Some(cursor);
            *bench.store.lock().unwrap() = Some(cursor);
        }
        // The settings of a sink that an earlier version defined name no history: then the cursor's
        // counts.
        for history in [earlier, None].into_iter().take(1 + usize::from(is_cursor_known)) {
            let (control, status) = (Arc::default(), Arc::<Status>::default());
            let (log, dir) = (bench.log.clone(), tempfile::tempdir().unwrap());
            let (elsewhere, store) = (Arc::clone(&bench.elsewhere), Arc::clone(&bench.store));
            let again = Bench { _dir: dir, log, elsewhere, store, status, control };
            again.run_until(again.pump(keeps_cursor, |settings, _| settings.history = history), 1);
            assert!(again.delivered().is_empty());
            match again.status.state() {
                ConnectorState::Stopped { code: StopCode::AnotherHistory, reason, .. } => {
                    assert!(reason.contains(&own.to_string()), "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
        let opened = bench.elsewhere.lock().unwrap().opened;
        assert_eq!(opened, usize::from(is_cursor_known), "opening would fence another server");
    }
}

#[test]
fn cursors_name_the_history_of_their_log() {
    let bench = Bench::new();
    bench.append("A", 5);
    bench.run_until(bench.pump(false, |_, _| {}), 5);
    let saved = bench.store.lock().unwrap().unwrap();
    assert_eq!((saved.position, saved.history), (5, bench.log.history()));
    // A cursor of an earlier version names none, and goes on.
    *bench.store.lock().unwrap() = Some(Cursor { history: None, ..saved });
    bench.append("A", 1);
    let again = Bench { control: Arc::default(), ..bench };
    again.run_until(again.pump(false, |_, _| {}), 6);
    assert_eq!(again.delivered(), (1..=6).collect::<Vec<_>>());
    assert_eq!(again.store.lock().unwrap().unwrap().history, again.log.history());
}

#[test]
fn a_beginning_behind_the_end_of_the_log_stops_it() {
    let bench = Bench::new();
    bench.append("A", 5);
    bench.run_until(bench.pump(true, |settings, _| settings.start = 6), 1);
    let state = bench.status.state();
    let stopped = matches!(state, ConnectorState::Stopped { code: StopCode::AnotherHistory, .. });
    assert!(stopped, "{state:?}");
}

#[test]
fn a_destination_that_has_lost_its_cursor_stops_it_before_anything_comes_again() {
    let bench = Bench::new();
    bench.append("A", 10);
    bench.run_until(bench.pump(true, |_, _| {}), 10);
    for lost in [None, Some(Cursor { position: 4, ..Cursor::start(1, None) })] {
        bench.elsewhere.lock().unwrap().cursor = lost;
        let (control, status) = (Arc::default(), Arc::default());
        let log = bench.log.clone();
        let (elsewhere, store) = (Arc::clone(&bench.elsewhere), Arc::clone(&bench.store));
        let dir = tempfile::tempdir().unwrap();
        let again = Bench { _dir: dir, log, elsewhere, store, status, control };
        again.run_until(again.pump(true, |_, _| {}), 11);
        assert_eq!(again.delivered().len(), 10);
        let state = again.status.state();
        let stopped =
            matches!(state, ConnectorState::Stopped { code: StopCode::AnotherHistory, .. });
        assert!(stopped, "{state:?}");
    }
    // An operator sets a start position.
    let anew = Bench { control: Arc::default(), status: Arc::default(), ..bench };
    anew.run_until(anew.pump(true, |settings, _| settings.generation = 2), 20);
    assert_eq!(anew.delivered().len(), 20);
}

#[test]
fn it_ends_with_its_log() {
    let bench = Bench::new();
    bench.append("A", 5);
    std::thread::scope(|scope| {
        let pump = bench.pump(true, |_, _| {});
        let running = scope.spawn(|| pump.run());
        while bench.delivered().len() < 5 {
            std::thread::sleep(Duration::from_millis(5));
        }
        bench.log.close();
        running.join().unwrap();
    });
    assert_eq!(bench.status.state(), ConnectorState::Ended);
}
