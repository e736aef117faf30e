//! A source between a simulated cluster and logs on simulated disks, with its invariants.

use super::*;
use crate::connection::KafkaConnection;
use crate::source::{RECORD_REJECTED, RecordData, SOURCE_ADVANCED, Template};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellspring_kafka::OutgoingRecord;
use wellspring_kafka::simulated::SimulatedCluster;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Options, ReadOptions, SystemClock};
use wellspring_types::Query;

pub(super) const TOPIC: &str = "orders";

/// A clock that runs fifty times as fast as real time.
struct FastClock;

impl Clock for FastClock {
    fn wall_us(&self) -> u64 {
        SystemClock.wall_us()
    }

    fn monotonic_us(&self) -> u64 {
        SystemClock.monotonic_us() * 50
    }
}

/// Draws numbers from a seed (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A log on a simulated disk.
pub(super) struct DiskLog {
    pub(super) storage: SimulatedStorage,
    pub(super) log: Log,
}

impl DiskLog {
    pub(super) fn open(storage: SimulatedStorage) -> DiskLog {
        let options = Options { segment_bytes: 64 << 10, ..Options::default() };
        let log = Log::open_on(Arc::new(storage.clone()), options).expect("a log");
        DiskLog { storage, log }
    }

    /// The log after a power loss. The pump that used it may continue, but none of its writes
    /// appear here.
    pub(super) fn crash(&self) -> DiskLog {
        DiskLog::open(self.storage.crash())
    }
}

pub(super) struct Bench {
    pub(super) cluster: SimulatedCluster,
    pub(super) main: DiskLog,
    pub(super) rejects: DiskLog,
    pub(super) definition: SourceDefinition,
    pub(super) generation: u64,
    pub(super) with_rejects: bool,
    /// Whether events get ids. Without them, the append conditions alone prevent duplicates.
    pub(super) with_ids: bool,
    pub(super) connections: Arc<AtomicUsize>,
}

/// A running pump.
pub(super) struct Running {
    pub(super) status: Arc<Status>,
    pub(super) control: Arc<Control>,
    thread: std::thread::JoinHandle<()>,
}

impl Running {
    /// Waits up to 20 seconds for a condition.
    pub(super) fn wait_for(&self, mut is_so: impl FnMut(&Status) -> bool) {
        for _ in 0..4_000 {
            if is_so(&self.status) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the condition never held: {:?}", self.status);
    }

    pub(super) fn stop(self) -> Arc<Status> {
        self.control.stop();
        self.join()
    }

    /// Waits until the pump ends by itself.
    pub(super) fn join(self) -> Arc<Status> {
        self.thread.join().expect("no panic");
        self.status
    }

    pub(super) fn stopped_with(self, expected: StopCode) -> String {
        self.wait_for(|status| matches!(status.state(), ConnectorState::Stopped { .. }));
        match self.join().state() {
            ConnectorState::Stopped { code, reason, .. } if code == expected => reason,
            other => panic!("{other:?}"),
        }
    }
}

/// The offsets in a log, by partition, in log order.
pub(super) type Offsets = BTreeMap<i32, Vec<i64>>;

impl Bench {
    pub(super) fn new(partitions: i32) -> Bench {
        let cluster = SimulatedCluster::new();
        cluster.add_topic(TOPIC, partitions);
        Bench {
            cluster,
            main: DiskLog::open(SimulatedStorage::new(1)),
            rejects: DiskLog::open(SimulatedStorage::new(2)),
            definition: SourceDefinition {
                log: "main".into(),
                connection: KafkaConnection { brokers: vec!["b:1".into()], tls: None, sasl: None },
                topic: TOPIC.into(),
                start: StartAt::Beginning,
                event_type: Template::parse("Order").expect("a template"),
                tags: vec![Template::parse("n:{value:/n?}").expect("a template")],
                data: RecordData::Json,
                reject_log: Some("rejects".into()),
            },
            generation: 1,
            with_rejects: true,
            with_ids: true,
            connections: Arc::default(),
        }
    }

    pub(super) fn start(&self) -> Running {
        self.start_named("orders-in")
    }

    pub(super) fn start_named(&self, name: &str) -> Running {
        let settings = SourcePumpSettings {
            name: name.into(),
            generation: self.generation,
            definition: self.definition.clone(),
            log: self.main.log.clone(),
            reject_log: self.with_rejects.then(|| self.rejects.log.clone()),
            clock: Arc::new(FastClock),
        };
        let (cluster, connections) = (self.cluster.clone(), Arc::clone(&self.connections));
        let connect: Connect = Box::new(move || {
            connections.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(cluster.clone()))
        });
        let (status, control) = (Arc::<Status>::default(), Arc::<Control>::default());
        let mut pump =
            SourcePump::new(settings, connect, Arc::clone(&status), Arc::clone(&control));
        pump.with_ids = self.with_ids;
        let thread = std::thread::Builder::new();
        #[allow(clippy::disallowed_methods)] // a test
        let thread = thread.spawn(move || pump.run()).expect("a thread");
        Running { status, control, thread }
    }

    /// Runs a pump until the logs hold this many records.
    pub(super) fn run_until(&self, records: usize) -> Arc<Status> {
        let running = self.start();
        running.wait_for(|status| {
            assert!(!matches!(status.state(), ConnectorState::Stopped { .. }), "{status:?}");
            self.count() >= records
        });
        running.stop()
    }

    /// Appends a record; `None` appends an invalid one.
    pub(super) fn produce(&self, partition: i32, value: Option<&str>) {
        self.cluster.append(vec![self.record(partition, value)]);
    }

    pub(super) fn record(&self, partition: i32, value: Option<&str>) -> OutgoingRecord {
        OutgoingRecord {
            topic: TOPIC.into(),
            partition,
            timestamp_ms: 1_000,
            key: None,
            value: Some(Bytes::copy_from_slice(value.unwrap_or("{rubbish").as_bytes())),
            headers: Vec::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        let count = |offsets: Offsets| offsets.values().map(Vec::len).sum::<usize>();
        count(self.events()) + count(self.rejected())
    }

    /// Offsets of the events in the main log.
    pub(super) fn events(&self) -> Offsets {
        let mut found = Offsets::new();
        let mut events = self.main.log.snapshot().read(&Query::all(), ReadOptions::default());
        while let Some(event) = events.next().expect("a sound log") {
            if event.event_type() == SOURCE_ADVANCED {
                continue;
            }
            let number = |name: &str| {
                let value = event.metadata().find(|(key, _)| *key == name);
                value.map_or(-1, |(_, value)| value.parse::<i64>().expect("a number"))
            };
            let partition = i32::try_from(number("kafka-partition")).expect("small");
            found.entry(partition).or_default().push(number("kafka-offset"));
        }
        found
    }

    /// Offsets of the records in the reject log.
    pub(super) fn rejected(&self) -> Offsets {
        let mut found = Offsets::new();
        let query = Query::item(&[RECORD_REJECTED], &[]);
        let mut events = self.rejects.log.snapshot().read(&query, ReadOptions::default());
        while let Some(event) = events.next().expect("a sound log") {
            let data: serde_json::Value = serde_json::from_slice(event.data()).expect("JSON");
            let number = |name: &str| data[name].as_i64().expect("a number");
            let partition = i32::try_from(number("partition")).expect("small");
            found.entry(partition).or_default().push(number("offset"));
        }
        found
    }

    /// Checks that every record of the topic is in exactly one of the logs, in order: invalid ones
    /// in the reject log, the rest in the main log.
    pub(super) fn require_each_once(&self) {
        let (mut good, mut bad) = (Offsets::new(), Offsets::new());
        for record in self.cluster.committed(TOPIC) {
            let is_good = serde_json::from_slice::<serde::de::IgnoredAny>(
                record.value.as_deref().unwrap_or_default(),
            );
            let offsets = if is_good.is_ok() { &mut good } else { &mut bad };
            offsets.entry(record.partition).or_default().push(record.offset);
        }
        assert_eq!(self.events(), good);
        assert_eq!(self.rejected(), bad);
    }
}
