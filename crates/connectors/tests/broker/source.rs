//! Sources from a real Kafka into logs on disk.

use crate::bench::{topic, wait_until};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wellspring_connectors::KafkaConnection;
use wellspring_connectors::kafka::connector;
use wellspring_connectors::sink::StartAt;
use wellspring_connectors::source::{
    RECORD_REJECTED, RecordData, SOURCE_ADVANCED, SourceDefinition, SourcePump, SourcePumpSettings,
    Template,
};
use wellspring_connectors::{ConnectorState, Control, Status, StopCode};
use wellspring_kafka::testing::{self, Broker};
use wellspring_kafka::{Cluster, ConnectionSettings, KafkaCluster, OutgoingRecord};
use wellspring_log::{Clock as _, Log, Options, ReadOptions, SystemClock};
use wellspring_types::Query;

/// A running source.
struct Running {
    status: Arc<Status>,
    control: Arc<Control>,
    thread: std::thread::JoinHandle<()>,
}

impl Running {
    fn stop(self) -> Arc<Status> {
        self.control.stop();
        self.thread.join().expect("no panic");
        self.status
    }
}

/// The logs of a source, in a folder.
struct Logs {
    main: Log,
    rejects: Log,
}

impl Logs {
    fn open(dir: &Path) -> Logs {
        let open = |name| Log::open(&dir.join(name), Options::default()).expect("a log");
        Logs { main: open("main"), rejects: open("rejects") }
    }

    fn start(&self, connection: &ConnectionSettings, topic: &str) -> Running {
        let template = |text| Template::parse(text).expect("a template");
        let definition = SourceDefinition {
            log: "main".into(),
            connection: KafkaConnection {
                brokers: connection.brokers.clone(),
                tls: None,
                sasl: None,
            },
            topic: topic.to_owned(),
            start: StartAt::Beginning,
            event_type: template("Order"),
            tags: vec![template("n:{value:/n}"), template("key:{key?}")],
            data: RecordData::Json,
            reject_log: Some("rejects".into()),
        };
        let settings = SourcePumpSettings {
            name: "orders-in".into(),
            generation: 1,
            definition,
            log: self.main.clone(),
            reject_log: Some(self.rejects.clone()),
            clock: Arc::new(SystemClock),
        };
        let (status, control) = (Arc::<Status>::default(), Arc::<Control>::default());
        let reach = connection.clone();
        let connect = connector(move || Ok(reach.clone()));
        let pump = SourcePump::new(settings, connect, Arc::clone(&status), Arc::clone(&control));
        let thread = std::thread::Builder::new();
        #[allow(clippy::disallowed_methods)] // a test
        let thread = thread.spawn(move || pump.run()).expect("a thread");
        Running { status, control, thread }
    }

    /// The numbers of the records in both logs, by partition and in log order.
    fn numbers(&self) -> (BTreeMap<i32, Vec<i64>>, Vec<i64>) {
        let mut events = self.main.snapshot().read(&Query::all(), ReadOptions::default());
        let mut by_partition: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        while let Some(event) = events.next().expect("a sound log") {
            if event.event_type() == SOURCE_ADVANCED {
                continue;
            }
            let data: serde_json::Value = serde_json::from_slice(event.data()).expect("JSON");
            let partition = event.metadata().find(|(name, _)| *name == "kafka-partition");
            let partition = partition.and_then(|(_, value)| value.parse().ok()).expect("a number");
            by_partition.entry(partition).or_default().push(data["n"].as_i64().expect("a number"));
        }
        let query = Query::item(&[RECORD_REJECTED], &[]);
        let mut events = self.rejects.snapshot().read(&query, ReadOptions::default());
        let mut rejected = Vec::new();
        while let Some(event) = events.next().expect("a sound log") {
            let data: serde_json::Value = serde_json::from_slice(event.data()).expect("JSON");
            let value = data["value"].as_str().expect("text");
            rejected.push(value.trim_start_matches("rubbish ").parse().expect("a number"));
        }
        rejected.sort_unstable();
        (by_partition, rejected)
    }

    fn count(&self) -> usize {
        let (events, rejected) = self.numbers();
        events.values().map(Vec::len).sum::<usize>() + rejected.len()
    }
}

/// Numbered records; every hundredth is invalid.
fn records(topic: &str, partitions: i32, numbers: std::ops::Range<i64>) -> Vec<OutgoingRecord> {
    let record = |number: i64| OutgoingRecord {
        topic: topic.to_owned(),
        partition: i32::try_from(number % i64::from(partitions)).expect("small"),
        timestamp_ms: 1_700_000_000_000 + number,
        key: (number % 3 == 0).then(|| Bytes::from(format!("k{number}"))),
        value: Some(Bytes::from(match number % 100 {
            99 => format!("rubbish {number}"),
            _ => format!(
                "{{\"n\":{number},\"note\":\"as ordered by telephone, to be sent when it is there\"}}"
            ),
        })),
        headers: Vec::new(),
    };
    numbers.map(record).collect()
}

fn require_each_once(logs: &Logs, partitions: i32, count: i64) {
    let (events, rejected) = logs.numbers();
    for partition in 0..partitions {
        let expected: Vec<i64> = (0..count)
            .filter(|n| n % i64::from(partitions) == i64::from(partition) && n % 100 != 99)
            .collect();
        assert_eq!(events[&partition], expected, "partition {partition}");
    }
    let expected: Vec<i64> = (0..count).filter(|n| n % 100 == 99).collect();
    assert_eq!(rejected, expected);
}

/// Produces in transactions, one of them aborted by a takeover, and keeps restarting the source.
fn restart_again_and_again(broker: &Broker) {
    let connection = broker.connection();
    let cluster = KafkaCluster::connect(&connection).expect("a connection");
    topic(&cluster, "restarted-source", 3, &[]);
    let dir = tempfile::tempdir().expect("a folder");
    let (mut next, mut conflicts) = (0, 0);
    for round in 0..20_i64 {
        let logs = Logs::open(dir.path());
        let before = logs.main.head();
        let running = logs.start(&connection, "restarted-source");
        // Another server runs the same source.
        let other = (round % 4 == 1).then(|| logs.start(&connection, "restarted-source"));
        let mut producer = match round % 2 {
            0 => cluster.transactional_producer("orders").expect("a producer"),
            _ => cluster.idempotent_producer().expect("a producer"),
        };
        for _ in 0..4 {
            let end = next + 700;
            producer.deliver(records("restarted-source", 3, next..end)).expect("delivered");
            next = end;
        }
        if round % 7 == 6 {
            broker.kill();
            broker.start_again();
        }
        std::thread::sleep(Duration::from_millis(u64::try_from(round).expect("small") * 17 % 300));
        if round % 3 == 0 {
            assert!(wait_until(|| logs.main.head() > before), "{:?}", running.status);
        }
        for running in [Some(running), other].into_iter().flatten() {
            conflicts += running.stop().counters.conflicts.load(Ordering::Relaxed);
        }
        logs.main.close();
        logs.rejects.close();
    }
    let logs = Logs::open(dir.path());
    let running = logs.start(&connection, "restarted-source");
    let complete = wait_until(|| logs.count() >= usize::try_from(next).expect("small"));
    let status = running.stop();
    assert!(complete, "{status:?}");
    require_each_once(&logs, 3, next);
    println!("{next} records, {conflicts} conflicts");
}

#[test]
fn each_record_comes_once_over_twenty_restarts() {
    let name = "each_record_comes_once_over_twenty_restarts";
    let Some(broker) = testing::own(name, &[]) else { return };
    restart_again_and_again(&broker);
}

#[test]
fn partitions_that_are_added_are_read_and_a_topic_made_again_stops_it() {
    let name = "partitions_that_are_added_are_read_and_a_topic_made_again_stops_it";
    let Some(broker) = testing::broker(name) else { return };
    let connection = broker.connection();
    let cluster = KafkaCluster::connect(&connection).expect("a connection");
    topic(&cluster, "growing", 1, &[]);
    let dir = tempfile::tempdir().expect("a folder");
    let logs = Logs::open(dir.path());
    let running = logs.start(&connection, "growing");
    let produce = |partitions, numbers| {
        let cluster = KafkaCluster::connect(&connection).expect("a connection");
        let mut producer = cluster.idempotent_producer().expect("a producer");
        producer.deliver(records("growing", partitions, numbers)).expect("delivered");
    };
    produce(1, 0..10);
    assert!(wait_until(|| logs.count() == 10), "{:?}", running.status);
    broker.topics(&["--alter", "--topic", "growing", "--partitions", "2"]);
    produce(2, 10..20);
    assert!(wait_until(|| logs.count() == 20), "{:?}", running.status);
    broker.topics(&["--delete", "--topic", "growing"]);
    broker.topics(&["--create", "--topic", "growing", "--partitions", "1"]);
    assert!(wait_until(|| running.thread.is_finished()), "{:?}", running.status);
    let code = |status: &Status| match status.state() {
        ConnectorState::Stopped { code, .. } => Some(code),
        _ => None,
    };
    let expected = [Some(StopCode::TopicRecreated), Some(StopCode::NoTopic)];
    assert!(expected.contains(&code(&running.status)), "{:?}", running.status);
    let again = logs.start(&connection, "growing");
    assert!(wait_until(|| again.thread.is_finished()), "{:?}", again.status);
    assert_eq!(code(&again.status), Some(StopCode::TopicRecreated), "{:?}", again.status);
}

#[test]
#[ignore = "a measurement: cargo test --release -- --ignored --nocapture"]
fn throughput_of_a_million_small_records() {
    let Some(broker) = testing::own("throughput_of_a_million_small_records", &[]) else { return };
    let connection = broker.connection();
    let cluster = KafkaCluster::connect(&connection).expect("a connection");
    for partitions in [1, 4] {
        let name = format!("measured-{partitions}");
        topic(&cluster, &name, partitions, &[]);
        let mut producer = cluster.idempotent_producer().expect("a producer");
        for thousand in 0..200 {
            let numbers = thousand * 5_000..(thousand + 1) * 5_000;
            let good = records(&name, partitions, numbers).into_iter().map(|mut record| {
                if record.value.as_deref().is_some_and(|value| value.starts_with(b"rubbish")) {
                    record.value = Some(Bytes::from_static(b"{\"n\":0}"));
                }
                record
            });
            producer.deliver(good.collect()).expect("delivered");
        }
        let dir = tempfile::tempdir_in(".").expect("a folder");
        let logs = Logs::open(dir.path());
        let begin_us = SystemClock.monotonic_us();
        let running = logs.start(&connection, &name);
        let events = || running.status.counters.events.load(Ordering::Relaxed);
        let complete = wait_until(|| events() == 1_000_000);
        let seconds = (SystemClock.monotonic_us() - begin_us) as f64 / 1e6;
        assert!(complete, "{:?}", running.status);
        running.stop();
        println!("{partitions} partitions: {:.0} records a second", 1_000_000.0 / seconds);
    }
}
