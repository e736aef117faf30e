//! Records per second from a topic into a log on disk. The topic costs nothing, so this measures
//! the source and the log.

use super::bench::{Bench, TOPIC};
use super::*;
use bytes::Bytes;
use std::sync::atomic::Ordering;
use wellspring_kafka::{
    Creation, Fault as KafkaFault, NewTopic, OffsetRange, Producer, Record, Retention,
    TopicDescription,
};
use wellspring_log::{Options, SystemClock};

/// A topic whose records are generated on reading.
#[derive(Clone)]
struct EndlessTopic {
    partitions: i32,
    /// Number of records in each partition.
    records: i64,
}

impl Cluster for EndlessTopic {
    fn id(&self) -> Result<String, KafkaFault> {
        Ok("endless".into())
    }

    fn topic(&self, _: &str) -> Result<TopicDescription, KafkaFault> {
        Ok(TopicDescription {
            id: [1; 16],
            partitions: self.partitions,
            replicas: 1,
            max_message_bytes: 1 << 20,
            retention: Retention::Unlimited,
            is_compacted: false,
        })
    }

    fn create_topic(&self, _: &NewTopic) -> Result<Creation, KafkaFault> {
        Ok(Creation::Existed)
    }

    fn offsets(&self, _: &str, _: i32) -> Result<OffsetRange, KafkaFault> {
        Ok(OffsetRange { first: 0, end: self.records })
    }

    fn transactional_producer(&self, _: &str) -> Result<Box<dyn Producer>, KafkaFault> {
        Err(KafkaFault::new(FaultKind::Unusable, "nothing is produced here"))
    }

    fn idempotent_producer(&self) -> Result<Box<dyn Producer>, KafkaFault> {
        Err(KafkaFault::new(FaultKind::Unusable, "nothing is produced here"))
    }

    fn reader(&self, _: &str, starts: &[(i32, i64)]) -> Result<Box<dyn Reader>, KafkaFault> {
        Ok(Box::new(EndlessReader { topic: self.clone(), places: starts.to_vec(), turn: 0 }))
    }
}

struct EndlessReader {
    topic: EndlessTopic,
    places: Vec<(i32, i64)>,
    turn: usize,
}

impl Reader for EndlessReader {
    fn poll(&mut self, timeout: Duration) -> Result<Vec<Record>, KafkaFault> {
        let count = self.places.len();
        for _ in 0..count {
            self.turn = (self.turn + 1) % count;
            let (partition, place) = &mut self.places[self.turn];
            let end = self.topic.records.min(*place + 5_000);
            if *place < end {
                let records = (*place..end).map(|offset| record(*partition, offset)).collect();
                *place = end;
                return Ok(records);
            }
        }
        std::thread::sleep(timeout);
        Ok(Vec::new())
    }
}

/// A record of about a hundred bytes.
fn record(partition: i32, offset: i64) -> Record {
    let value = format!(
        "{{\"customer\":{},\"item\":\"item-{offset}\",\"amount\":{},\"note\":\"as ordered by telephone, to be sent\"}}",
        offset % 10_000,
        offset % 7
    );
    Record {
        partition,
        offset,
        timestamp_ms: 1_700_000_000_000 + offset,
        key: Some(Bytes::from(format!("customer-{}", offset % 10_000))),
        value: Some(Bytes::from(value)),
        headers: Vec::new(),
    }
}

/// Takes about half a minute: `cargo test --release -p wellspring-connectors -- --ignored
/// --nocapture throughput`.
#[test]
#[ignore = "a measurement"]
fn throughput_into_a_log_on_disk() {
    for (partitions, with_ids) in [(1, true), (1, false), (4, true)] {
        let topic = EndlessTopic { partitions, records: 2_000_000 / i64::from(partitions) };
        let dir = tempfile::tempdir_in(".").expect("a folder");
        let log = Log::open(dir.path(), Options::default()).expect("a log");
        let mut definition = Bench::new(1).definition;
        definition.topic = TOPIC.into();
        let template = |text: &str| crate::source::Template::parse(text).expect("a template");
        definition.tags =
            vec![template("customer:{value:/customer}"), template("item:{value:/item}")];
        let settings = SourcePumpSettings {
            name: "measured".into(),
            generation: 1,
            definition,
            log: log.clone(),
            reject_log: None,
            clock: Arc::new(SystemClock),
        };
        let (status, control) = (Arc::<Status>::default(), Arc::<Control>::default());
        let connect: Connect = Box::new(move || Ok(Arc::new(topic.clone())));
        let mut pump =
            SourcePump::new(settings, connect, Arc::clone(&status), Arc::clone(&control));
        pump.with_ids = with_ids;
        let clock = SystemClock;
        let begun_us = clock.monotonic_us();
        std::thread::scope(|scope| {
            scope.spawn(|| pump.run());
            while status.counters.events.load(Ordering::Relaxed) < 2_000_000 {
                std::thread::sleep(Duration::from_millis(5));
            }
            let seconds = (clock.monotonic_us() - begun_us) as f64 / 1e6;
            let stats = log.stats();
            println!(
                "{partitions} partitions, ids {with_ids}: {:.0} records/s, {} barriers, {} segments",
                2_000_000.0 / seconds,
                stats.batches,
                stats.segments
            );
            control.stop();
        });
    }
}
