//! The client against a real Kafka, started by test-servers/kafka.sh.

use bytes::Bytes;
use std::time::Duration;
use wellspring_kafka::testing::{self, Broker, broker};
use wellspring_kafka::{
    Cluster, ConnectionSettings, Creation, FaultKind, KafkaCluster, NewTopic, OutgoingRecord,
    Reader, Record, Retention, Sasl, SaslMechanism, Tls, partition_of,
};

/// Longer than any operation here takes.
const WAIT: Duration = Duration::from_secs(2);

fn connect(broker: &Broker) -> KafkaCluster {
    KafkaCluster::connect(&broker.connection()).expect("a connection")
}

fn topic(cluster: &KafkaCluster, name: &str, partitions: i32, settings: &[(&str, &str)]) {
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let new = NewTopic {
        name: name.to_owned(),
        partitions: Some(partitions),
        replicas: Some(1),
        settings,
    };
    assert_eq!(cluster.create_topic(&new), Ok(Creation::Created));
}

/// Records `from..to`, cycling through seven keys.
fn records(topic: &str, partitions: i32, from: u32, to: u32) -> Vec<OutgoingRecord> {
    let record = |n: u32| {
        let key = format!("key-{}", n % 7);
        OutgoingRecord {
            topic: topic.to_owned(),
            partition: partition_of(key.as_bytes(), partitions),
            timestamp_ms: 1_700_000_000_000 + i64::from(n),
            key: Some(Bytes::from(key)),
            value: Some(Bytes::from(format!("value {n}"))),
            headers: vec![("number".to_owned(), Some(Bytes::from(n.to_string())))],
        }
    };
    (from..to).map(record).collect()
}

/// Reads this many records, then checks that no more arrive.
fn read(reader: &mut dyn Reader, count: usize) -> Vec<Record> {
    let mut all = Vec::new();
    for _ in 0..20 {
        all.extend(reader.poll(if all.len() < count { WAIT } else { WAIT / 8 }).expect("records"));
        if all.len() >= count {
            all.extend(reader.poll(WAIT / 4).expect("records"));
            break;
        }
    }
    all
}

fn reader(cluster: &KafkaCluster, topic: &str, partitions: i32) -> Box<dyn Reader> {
    let starts: Vec<(i32, i64)> = (0..partitions).map(|partition| (partition, 0)).collect();
    // A broker that has just restarted is not ready for every request at once, and says so.
    for _ in 0..100 {
        match cluster.reader(topic, &starts) {
            Ok(reader) => return reader,
            Err(fault) => assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}"),
        }
        std::thread::sleep(WAIT / 20);
    }
    panic!("no reader of {topic}");
}

fn numbers(records: &[Record]) -> Vec<u32> {
    let number = |record: &Record| {
        let (name, value) = &record.headers[0];
        assert_eq!(name, "number");
        let text = std::str::from_utf8(value.as_ref().expect("a value")).expect("UTF-8");
        let number: u32 = text.parse().expect("a number");
        assert_eq!(record.value, Some(Bytes::from(format!("value {number}"))));
        assert_eq!(record.timestamp_ms, 1_700_000_000_000 + i64::from(number));
        number
    };
    records.iter().map(number).collect()
}

#[test]
fn a_topic_is_described_as_it_was_made() {
    let Some(broker) = broker("a_topic_is_described_as_it_was_made") else { return };
    let cluster = connect(broker);
    assert!(!cluster.id().expect("an id").is_empty());
    let settings = [("retention.ms", "3600000"), ("max.message.bytes", "20000")];
    topic(&cluster, "described", 3, &settings);
    // A broker may not know yet what the controller has made.
    let mut found = None;
    wellspring_patience::until("the topic is described", || {
        found = cluster.topic("described").ok();
        found.is_some()
    });
    let described = found.expect("described");
    assert_eq!((described.partitions, described.replicas), (3, 1));
    assert_eq!(described.max_message_bytes, 20_000);
    assert_eq!(described.retention, Retention::Limited(Duration::from_secs(3_600)));
    assert!(!described.is_compacted && described.id != [0; 16]);
    let again = NewTopic {
        name: "described".into(),
        partitions: None,
        replicas: None,
        settings: Vec::new(),
    };
    assert_eq!(cluster.create_topic(&again), Ok(Creation::Existed));
    topic(&cluster, "compacted", 1, &[("cleanup.policy", "compact")]);
    let compacted = cluster.topic("compacted").expect("described");
    assert!(compacted.is_compacted && compacted.retention == Retention::Unlimited);
    assert_eq!(cluster.topic("nowhere").expect_err("no topic").kind, FaultKind::NoTopic);
}

#[test]
fn transactions_come_whole_and_in_order_of_each_partition() {
    let Some(broker) = broker("transactions_come_whole_and_in_order_of_each_partition") else {
        return;
    };
    let cluster = connect(broker);
    topic(&cluster, "ordered", 3, &[]);
    let mut producer = cluster.transactional_producer("ordered-1").expect("a producer");
    for from in [0, 1_000, 2_000] {
        producer.deliver(records("ordered", 3, from, from + 1_000)).expect("delivered");
    }
    producer.deliver(Vec::new()).expect("nothing to deliver is no fault");
    let read = read(&mut *reader(&cluster, "ordered", 3), 3_000);
    let mut all = numbers(&read);
    for partition in 0..3 {
        let of_it: Vec<&Record> = read.iter().filter(|r| r.partition == partition).collect();
        assert!(of_it.windows(2).all(|w| w[0].offset < w[1].offset));
        assert!(of_it.windows(2).all(|w| w[0].timestamp_ms < w[1].timestamp_ms));
    }
    all.sort_unstable();
    assert_eq!(all, (0..3_000).collect::<Vec<_>>());
}

#[test]
fn a_producer_whose_transactional_id_was_taken_delivers_nothing_more() {
    let name = "a_producer_whose_transactional_id_was_taken_delivers_nothing_more";
    let Some(broker) = broker(name) else { return };
    let cluster = connect(broker);
    topic(&cluster, "fenced", 1, &[]);
    let mut zombie = cluster.transactional_producer("fenced-1").expect("a producer");
    zombie.deliver(records("fenced", 1, 0, 10)).expect("delivered");
    let mut heir = cluster.transactional_producer("fenced-1").expect("a producer");
    heir.deliver(records("fenced", 1, 10, 20)).expect("delivered");
    let fault = zombie.deliver(records("fenced", 1, 900, 910)).expect_err("it is fenced");
    assert_eq!(fault.kind, FaultKind::Fenced, "{fault}");
    assert!(zombie.deliver(records("fenced", 1, 900, 910)).is_err(), "it is spent");
    heir.deliver(records("fenced", 1, 20, 30)).expect("the heir goes on");
    let read = read(&mut *reader(&cluster, "fenced", 1), 30);
    assert_eq!(numbers(&read), (0..30).collect::<Vec<_>>());
}

#[test]
fn what_is_too_large_is_refused_and_nothing_of_its_transaction_is_there() {
    let name = "what_is_too_large_is_refused_and_nothing_of_its_transaction_is_there";
    let Some(broker) = broker(name) else { return };
    let cluster = connect(broker);
    topic(&cluster, "small", 1, &[("max.message.bytes", "2000")]);
    let mut batch = records("small", 1, 0, 3);
    // Noise, because repetitive data compresses to nothing.
    let mut noise = 1_u32;
    let large: Vec<u8> = (0..50_000)
        .map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise.to_be_bytes()[0]
        })
        .collect();
    batch[1].value = Some(Bytes::from(large));
    let mut producer = cluster.transactional_producer("small-1").expect("a producer");
    let fault = producer.deliver(batch).expect_err("too large");
    assert_eq!(fault.kind, FaultKind::TooLarge, "{fault}");
    let mut next = cluster.transactional_producer("small-1").expect("a producer");
    next.deliver(records("small", 1, 5, 6)).expect("delivered");
    assert_eq!(numbers(&read(&mut *reader(&cluster, "small", 1), 1)), [5]);
}

#[test]
fn a_topic_that_is_made_again_ends_its_readers() {
    let Some(broker) = broker("a_topic_that_is_made_again_ends_its_readers") else { return };
    let cluster = connect(broker);
    topic(&cluster, "again", 1, &[]);
    let mut producer = cluster.idempotent_producer().expect("a producer");
    producer.deliver(records("again", 1, 0, 5)).expect("delivered");
    let mut reader = reader(&cluster, "again", 1);
    assert_eq!(numbers(&read(&mut *reader, 5)).len(), 5);
    broker.topics(&["--delete", "--topic", "again"]);
    broker.topics(&["--create", "--topic", "again", "--partitions", "1"]);
    let fault = (0..20).find_map(|_| reader.poll(WAIT / 8).err()).expect("a fault");
    assert_eq!(fault.kind, FaultKind::TopicRecreated, "{fault}");
}

#[test]
fn offsets_count_what_is_not_committed_and_a_place_that_is_gone_is_told() {
    let name = "offsets_count_what_is_not_committed_and_a_place_that_is_gone_is_told";
    let Some(broker) = broker(name) else { return };
    let cluster = connect(broker);
    topic(&cluster, "ranges", 1, &[]);
    let empty = cluster.offsets("ranges", 0).expect("a range");
    assert_eq!((empty.first, empty.end), (0, 0));
    let mut producer = cluster.transactional_producer("ranges-1").expect("a producer");
    producer.deliver(records("ranges", 1, 0, 10)).expect("delivered");
    // The commit marker appears shortly after the producer gets its answer.
    let ends = || cluster.offsets("ranges", 0).expect("a range").end;
    assert!((0..200).any(|_| ends() == 11), "ten records and the mark of the commit");
    let fault = cluster.reader("ranges", &[(0, 5_000)]).err().expect("a fault");
    assert_eq!(fault.kind, FaultKind::OutOfRange, "{fault}");
}

#[test]
fn a_broker_that_is_killed_and_comes_back_loses_nothing_that_was_delivered() {
    let name = "a_broker_that_is_killed_and_comes_back_loses_nothing_that_was_delivered";
    let Some(broker) = testing::own(name, &[]) else { return };
    let cluster = connect(&broker);
    topic(&cluster, "killed", 2, &[]);
    let mut producer = cluster.transactional_producer("killed-1").expect("a producer");
    producer.deliver(records("killed", 2, 0, 100)).expect("delivered");
    broker.kill();
    broker.start_again();
    // Whether this producer can continue depends on what it was doing; a new one always can.
    if producer.deliver(records("killed", 2, 100, 200)).is_err() {
        let mut next = cluster.transactional_producer("killed-1").expect("a producer");
        next.deliver(records("killed", 2, 100, 200)).expect("delivered");
    }
    let mut all = numbers(&read(&mut *reader(&cluster, "killed", 2), 200));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
}

#[test]
fn tls_and_every_mechanism_let_the_right_password_in_and_no_other() {
    let name = "tls_and_every_mechanism_let_the_right_password_in_and_no_other";
    let Some(broker) = testing::own(name, &["--secure"]) else { return };
    let connect = |mechanism, password: &str| {
        let sasl =
            Sasl { mechanism, user: "wellspring".into(), password: password.to_owned().into() };
        let ca_file = broker.ca.clone();
        KafkaCluster::connect(&ConnectionSettings {
            brokers: vec![broker.secure.clone().expect("a secure listener")],
            tls: Some(Tls { ca_file }),
            sasl: Some(sasl),
            client_id: "wellspring-test".into(),
        })
    };
    for mechanism in [SaslMechanism::Plain, SaslMechanism::ScramSha256, SaslMechanism::ScramSha512]
    {
        let cluster = connect(mechanism, "kafka-secret").expect("it is let in");
        assert!(!cluster.id().expect("an id").is_empty());
        let fault = connect(mechanism, "canary-41").err().expect("it is refused");
        assert_eq!(fault.kind, FaultKind::Forbidden, "{mechanism:?}: {fault}");
        assert!(!fault.detail.contains("canary-41"), "{fault}");
    }
}
