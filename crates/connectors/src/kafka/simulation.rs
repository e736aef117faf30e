//! A log, a simulated cluster and a clock for the tests in this folder.

use super::destination::{KafkaDestination, KafkaDestinationSettings};
use crate::connection::KafkaConnection;
use crate::control::Control;
use crate::cursor::{Cursor, CursorStore};
use crate::fault::Fault;
use crate::sink::{
    CursorKeeper, DeliveryMode, Destination, KafkaTarget, PayloadFormat, Pump, PumpSettings,
};
use crate::status::{ConnectorState, Status};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_kafka::Record;
use wellspring_kafka::simulated::SimulatedCluster;
use wellspring_log::{Append, Clock, EncodedEvents, Log, Options};
use wellspring_types::{Event, Position, Query};

pub(super) const TOPIC: &str = "t";
pub(super) const CURSORS: &str = "cursors";
pub(super) const IDENTITY: &str = "c1/main/orders";

/// A clock that advances on each call, so tests do not wait for real time.
pub(super) struct SteppingClock {
    now_us: AtomicU64,
    pub(super) step_us: AtomicU64,
}

impl Default for SteppingClock {
    fn default() -> SteppingClock {
        SteppingClock { now_us: AtomicU64::new(0), step_us: AtomicU64::new(250_000) }
    }
}

impl Clock for SteppingClock {
    fn wall_us(&self) -> u64 {
        1_800_000_000_000_000
    }

    fn monotonic_us(&self) -> u64 {
        self.now_us.fetch_add(self.step_us.load(Relaxed), Relaxed)
    }
}

/// Stores a cursor as the server does.
#[derive(Clone, Default)]
pub(super) struct Store(Arc<Mutex<Option<Cursor>>>);

impl CursorStore for Store {
    fn load(&self) -> Option<Cursor> {
        *self.0.lock().unwrap()
    }

    fn save(&mut self, cursor: Cursor) -> Result<(), Fault> {
        *self.0.lock().unwrap() = Some(cursor);
        Ok(())
    }
}

/// A running or finished pump.
pub(super) struct Running {
    pub(super) status: Arc<Status>,
    pub(super) control: Arc<Control>,
}

pub(super) struct Bench {
    pub(super) _dir: tempfile::TempDir,
    pub(super) log: Log,
    pub(super) cluster: SimulatedCluster,
    pub(super) clock: Arc<SteppingClock>,
    pub(super) store: Store,
    pub(super) mode: DeliveryMode,
    pub(super) generation: u64,
    pub(super) skip: BTreeSet<Position>,
    /// Number of connections made.
    pub(super) connected: Arc<AtomicU64>,
    /// Number of connection attempts that fail before one succeeds.
    pub(super) unreachable: Arc<AtomicU64>,
}

impl Bench {
    /// An empty log and a topic with this many partitions.
    pub(super) fn new(partitions: i32) -> Bench {
        let bench = Bench::without_topic();
        bench.cluster.add_topic(TOPIC, partitions);
        bench
    }

    pub(super) fn without_topic() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        Bench {
            _dir: dir,
            log,
            cluster: SimulatedCluster::new(),
            clock: Arc::default(),
            store: Store::default(),
            mode: DeliveryMode::ExactlyOnce,
            generation: 1,
            skip: BTreeSet::new(),
            connected: Arc::default(),
            unreachable: Arc::default(),
        }
    }

    /// Appends events; every fifth has no key.
    pub(super) fn append(&self, count: usize) {
        let mut events = EncodedEvents::new();
        let head = usize::try_from(self.log.head()).unwrap();
        for number in head + 1..=head + count {
            let key = format!("k:{}", number % 5);
            let tags: &[&str] = if number % 5 == 0 { &[] } else { &[&key] };
            events.push(&Event::json("A", tags, &number.to_string()).as_ref()).unwrap();
        }
        self.log.append(Append { events, ..Append::default() }).unwrap();
    }

    pub(super) fn settings(&self) -> KafkaDestinationSettings {
        KafkaDestinationSettings {
            log_name: "main".into(),
            history: None,
            identity: IDENTITY.into(),
            sink_name: "orders".into(),
            generation: self.generation,
            target: KafkaTarget {
                connection: KafkaConnection { brokers: Vec::new(), tls: None, sasl: None },
                topic: TOPIC.into(),
                create_topic: None,
                mode: self.mode,
                cursor_topic: CURSORS.into(),
            },
            format: PayloadFormat::Data,
            partition_by: Some("k".into()),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn destination(&self) -> KafkaDestination {
        let (cluster, connected) = (self.cluster.clone(), Arc::clone(&self.connected));
        let unreachable = Arc::clone(&self.unreachable);
        KafkaDestination::new(
            self.settings(),
            Box::new(move || {
                if unreachable.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                    return Err(Fault::transient("no broker answers"));
                }
                connected.fetch_add(1, Relaxed);
                Ok(Arc::new(cluster.clone()))
            }),
        )
    }

    pub(super) fn opened(&self) -> (KafkaDestination, Option<Cursor>) {
        let mut destination = self.destination();
        let cursor = destination.open().unwrap();
        (destination, cursor)
    }

    /// Pushes the events after a position and delivers them.
    pub(super) fn deliver(
        &self,
        destination: &mut KafkaDestination,
        after: Position,
    ) -> Result<Position, Fault> {
        let mut subscription = self.log.subscribe(Query::all(), after);
        let mut cursor = Cursor::start(self.generation, self.log.history());
        while let Some(event) = subscription.next(Duration::ZERO).unwrap() {
            destination.push(&event)?;
            cursor = cursor.on(&event);
        }
        destination.deliver(cursor, &Control::default()).map(|end| end.through)
    }

    pub(super) fn pump(&self) -> (Pump, Running) {
        let settings = PumpSettings {
            log: self.log.clone(),
            query: Query::all(),
            generation: self.generation,
            history: self.log.history(),
            start: 0,
            skip: self.skip.clone(),
            clock: self.clock.clone(),
        };
        let keeper = match self.mode {
            DeliveryMode::ExactlyOnce => CursorKeeper::Destination(Box::new(self.store.clone())),
            DeliveryMode::AtLeastOnce => CursorKeeper::Store(Box::new(self.store.clone())),
        };
        let running = Running { status: Arc::default(), control: Arc::default() };
        let (status, control) = (Arc::clone(&running.status), Arc::clone(&running.control));
        (Pump::new(settings, Box::new(self.destination()), keeper, status, control), running)
    }

    /// Runs a pump until a condition holds or it ends by itself; returns its last state.
    pub(super) fn run_until(&self, done: impl Fn(&Status) -> bool) -> ConnectorState {
        let (pump, running) = self.pump();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| pump.run());
            wait_until(|| thread.is_finished() || done(&running.status));
            running.control.stop();
        });
        running.status.state()
    }

    /// Runs a pump until everything is delivered or it ends by itself.
    pub(super) fn run(&self) -> ConnectorState {
        let head = self.log.head();
        self.run_until(|status| status.position() == head)
    }

    pub(super) fn delivered(&self) -> Vec<Record> {
        self.cluster.committed(TOPIC)
    }

    /// The delivered positions, sorted; checks that they ascend within each partition.
    pub(super) fn positions(&self) -> Vec<Position> {
        let delivered = self.delivered();
        for pair in delivered.windows(2) {
            let grows = position(&pair[0]) < position(&pair[1]);
            assert!(grows || pair[0].partition != pair[1].partition, "{pair:?}");
        }
        let mut all: Vec<Position> = delivered.iter().map(position).collect();
        all.sort_unstable();
        all
    }
}

/// Waits up to 20 s for a condition.
pub(super) fn wait_until(holds: impl Fn() -> bool) -> bool {
    (0..4_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        holds()
    })
}

pub(super) fn position(record: &Record) -> Position {
    let value = record.headers.iter().find(|(name, _)| name == "wellspring-position");
    let text = value.and_then(|(_, value)| value.as_ref()).expect("each record has it");
    std::str::from_utf8(text).unwrap().parse().unwrap()
}
