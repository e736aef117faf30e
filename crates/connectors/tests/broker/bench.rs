//! A log, and pumps from it to a topic of a broker.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_connectors::KafkaConnection;
use wellspring_connectors::kafka::{KafkaDestination, KafkaDestinationSettings, connector};
use wellspring_connectors::sink::{
    CursorKeeper, DeliveryMode, KafkaTarget, PayloadFormat, Pump, PumpSettings,
};
use wellspring_connectors::{ConnectorState, Control, Cursor, CursorStore, Fault, Status};
use wellspring_kafka::testing::Broker;
use wellspring_kafka::{
    Cluster, ConnectionSettings, Creation, FaultKind, KafkaCluster, NewTopic, Record,
};
use wellspring_log::{Append, EncodedEvents, Log, Options, SystemClock};
use wellspring_types::{Event, Position, Query};

/// Stores a cursor as the server does.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Option<Cursor>>>);

impl CursorStore for Store {
    fn load(&self) -> Option<Cursor> {
        *self.0.lock().expect("no panic")
    }

    fn save(&mut self, cursor: Cursor) -> Result<(), Fault> {
        *self.0.lock().expect("no panic") = Some(cursor);
        Ok(())
    }
}

/// A running or finished pump.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) status: Arc<Status>,
    pub(crate) control: Arc<Control>,
}

pub(crate) struct Bench {
    _dir: tempfile::TempDir,
    pub(crate) log: Log,
    connection: ConnectionSettings,
    pub(crate) topic: String,
    pub(crate) mode: DeliveryMode,
    pub(crate) format: PayloadFormat,
    pub(crate) skip: BTreeSet<Position>,
    store: Store,
}

impl Bench {
    /// An empty log, to be delivered to a topic.
    pub(crate) fn new(broker: &Broker, topic: &str) -> Bench {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::open(dir.path(), Options::default()).expect("a log");
        Bench {
            _dir: dir,
            log,
            connection: broker.connection(),
            topic: topic.to_owned(),
            mode: DeliveryMode::ExactlyOnce,
            format: PayloadFormat::Data,
            skip: BTreeSet::new(),
            store: Store::default(),
        }
    }

    pub(crate) fn cluster(&self) -> KafkaCluster {
        KafkaCluster::connect(&self.connection).expect("a connection")
    }

    /// Appends events; every fifth has no key.
    pub(crate) fn append(&self, count: u64) {
        let mut events = EncodedEvents::new();
        let head = self.log.head();
        for number in head + 1..=head + count {
            let key = format!("k:{}", number % 50);
            let tags: &[&str] = if number % 5 == 0 { &[] } else { &[&key] };
            let event = Event::json("A", tags, &number.to_string());
            events.push(&event.as_ref()).expect("a valid event");
        }
        self.log.append(Append { events, ..Append::default() }).expect("appended");
    }

    pub(crate) fn append_event(&self, event: &Event) {
        let mut events = EncodedEvents::new();
        events.push(&event.as_ref()).expect("a valid event");
        self.log.append(Append { events, ..Append::default() }).expect("appended");
    }

    pub(crate) fn pump(&self) -> (Pump, Running) {
        let destination = KafkaDestinationSettings {
            log_name: "main".into(),
            history: None,
            identity: format!("c1/main/{}", self.topic),
            sink_name: self.topic.clone(),
            generation: 1,
            target: KafkaTarget {
                connection: KafkaConnection {
                    brokers: self.connection.brokers.clone(),
                    tls: None,
                    sasl: None,
                },
                topic: self.topic.clone(),
                create_topic: None,
                mode: self.mode,
                cursor_topic: "wellspring.cursors".into(),
            },
            format: self.format,
            partition_by: Some("k".into()),
            clock: Arc::new(SystemClock),
        };
        let connection = self.connection.clone();
        let connect = connector(move || Ok(connection.clone()));
        let destination = KafkaDestination::new(destination, connect);
        let settings = PumpSettings {
            log: self.log.clone(),
            query: Query::all(),
            generation: 1,
            history: None,
            start: 0,
            skip: self.skip.clone(),
            clock: Arc::new(SystemClock),
        };
        let keeper = match self.mode {
            DeliveryMode::ExactlyOnce => CursorKeeper::Destination(Box::new(self.store.clone())),
            DeliveryMode::AtLeastOnce => CursorKeeper::Store(Box::new(self.store.clone())),
        };
        let running = Running::default();
        let (status, control) = (Arc::clone(&running.status), Arc::clone(&running.control));
        (Pump::new(settings, Box::new(destination), keeper, status, control), running)
    }

    /// Runs a pump until everything is delivered or it ends by itself; returns its last state.
    pub(crate) fn run(&self) -> ConnectorState {
        let (pump, running) = self.pump();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| pump.run());
            wait_until(|| thread.is_finished() || running.status.position() == self.log.head());
            running.control.stop();
        });
        running.status.state()
    }
}

/// Waits up to two minutes for a condition.
pub(crate) fn wait_until(holds: impl Fn() -> bool) -> bool {
    (0..12_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        holds()
    })
}

pub(crate) fn topic(
    cluster: &KafkaCluster,
    name: &str,
    partitions: i32,
    settings: &[(&str, &str)],
) {
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let new = NewTopic {
        name: name.to_owned(),
        partitions: Some(partitions),
        replicas: Some(1),
        settings,
    };
    assert_eq!(cluster.create_topic(&new), Ok(Creation::Created));
}

/// All committed records of a topic, in order within each partition.
pub(crate) fn committed(cluster: &KafkaCluster, topic: &str) -> Vec<Record> {
    let partitions = cluster.topic(topic).expect("the topic exists").partitions;
    let starts: Vec<(i32, i64)> = (0..partitions).map(|partition| (partition, 0)).collect();
    let mut reader = loop {
        // A broker that has just restarted is not ready for every request at once.
        match cluster.reader(topic, &starts) {
            Ok(reader) => break reader,
            Err(fault) => assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let mut all = Vec::new();
    let mut silent = 0;
    while silent < 3 {
        let records = reader.poll(Duration::from_millis(500)).expect("records");
        silent = if records.is_empty() { silent + 1 } else { 0 };
        all.extend(records);
    }
    all
}

pub(crate) fn position(record: &Record) -> Position {
    let value = record.headers.iter().find(|(name, _)| name == "wellspring-position");
    let text = value.and_then(|(_, value)| value.as_ref()).expect("each record has it");
    std::str::from_utf8(text).expect("digits").parse().expect("a number")
}
