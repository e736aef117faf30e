//! Kafka sources with the real binary and a real broker: every record once, as an event or a
//! reject, whatever is killed.

use crate::kafka_sinks::{is_full, topic};
use crate::server::Server;
use crate::sinks::{ask, is, until};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use wellspring_kafka::testing;
use wellspring_kafka::{Cluster as _, KafkaCluster, OutgoingRecord};
use wellspring_patience::Patience;

/// Records `from..to`; every fiftieth is invalid.
fn records(topic: &str, from: u64, to: u64) -> Vec<OutgoingRecord> {
    let record = |n: u64| {
        let value = match n % 50 {
            0 => format!("rubbish {n}"),
            _ => format!("{{\"n\":{n},\"customer\":{{\"id\":\"c{}\"}}}}", n % 7),
        };
        OutgoingRecord {
            topic: topic.into(),
            partition: i32::try_from(n % 3).unwrap(),
            timestamp_ms: 1_700_000_000_000,
            key: Some(Bytes::from(format!("key-{n}"))),
            value: Some(Bytes::from(value)),
            headers: vec![("kind".into(), Some(Bytes::from_static(b"Paid")))],
        }
    };
    (from..to).map(record).collect()
}

fn produce(cluster: &KafkaCluster, topic: &str, from: u64, to: u64) {
    let mut producer = cluster.idempotent_producer().unwrap();
    for start in (from..to).step_by(5_000) {
        producer.deliver(records(topic, start, to.min(start + 5_000))).unwrap();
    }
}

/// How often each number occurs in the data of a log's events.
fn numbers(
    server: &Server,
    log: &str,
    number: impl Fn(&Value) -> Option<u64>,
) -> BTreeMap<u64, u64> {
    let mut client = server.client();
    let mut after = 0;
    let mut counts = BTreeMap::new();
    loop {
        let path = format!("/v1/logs/{log}/events?after={after}&limit=1000");
        let page = ask(&mut client, "GET", &path, &Value::Null).expect(200);
        let events = page["events"].as_array().unwrap();
        let Some(last) = events.last() else { return counts };
        after = last["position"].as_u64().unwrap();
        for n in events.iter().filter_map(&number) {
            *counts.entry(n).or_insert(0) += 1;
        }
    }
}

#[test]
fn each_record_is_an_event_or_a_reject_once_through_kills() {
    let (total, kills) = if is_full() { (200_000, 20) } else { (30_000, 5) };
    let Some(broker) = testing::broker("each_record_is_an_event_or_a_reject_once") else { return };
    let cluster = topic(broker, "paid", 3);
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(dir.path(), &[]);
    let address = server.address;
    let mut client = server.client();
    for log in ["in", "rejects"] {
        ask(&mut client, "PUT", &format!("/v1/logs/{log}"), &Value::Null).expect(201);
    }
    let source = json!({
        "brokers": [broker.address], "topic": "paid", "log": "in", "reject_log": "rejects",
        "type": "{header:kind}", "tags": ["customer:{value:/customer/id}", "x:{value:/none?}"]
    });
    ask(&mut client, "PUT", "/v1/sources/paid", &source).expect(201);
    for kill in 0..kills {
        produce(&cluster, "paid", total * kill / kills, total * (kill + 1) / kills);
        std::thread::sleep(Duration::from_millis(100 + 90 * (kill % 4)));
        server.kill_here();
        server = Server::start_at(Some(address), &[], dir.path(), &[]);
    }
    let mut client = server.client();
    until(&mut client, "/v1/sources/paid", |report| {
        report["state"] == "running" && report["records_behind"] == 0
    });
    let mut patience = Patience::new();
    let events = |server: &Server| {
        numbers(server, "in", |event| {
            (event["type"] == "Paid").then(|| event["data"]["n"].as_u64().unwrap())
        })
    };
    let good = total - total / 50;
    while (events(&server).len() as u64) < good {
        patience.pause(format_args!("{} of {good}", events(&server).len()));
    }
    let events = events(&server);
    assert!(events.values().all(|count| *count == 1), "an event comes twice");
    assert_eq!(events.len() as u64, good);
    let rejects = numbers(&server, "rejects", |event| {
        let value = event["data"]["value"].as_str()?;
        value.strip_prefix("rubbish ")?.parse().ok()
    });
    assert!(rejects.values().all(|count| *count == 1), "a reject comes twice: {rejects:?}");
    assert_eq!(rejects.len() as u64, total / 50);
    let event = ask(&mut client, "GET", "/v1/logs/in/events?type=Paid&limit=1", &Value::Null);
    let event = &event.expect(200)["events"][0];
    assert!(event["tags"][0].as_str().unwrap().starts_with("customer:c"), "{event}");
    assert_eq!(event["tags"].as_array().unwrap().len(), 1, "what may be missing is left out");
}

#[test]
fn rubbish_without_a_reject_log_stops_the_source_with_its_offset() {
    let Some(broker) = testing::broker("rubbish_without_a_reject_log") else { return };
    let cluster = topic(broker, "strict", 3);
    produce(&cluster, "strict", 47, 53);
    let server = Server::start();
    let mut client = server.client();
    let source = json!({"brokers": [broker.address], "topic": "strict", "type": "Paid"});
    ask(&mut client, "PUT", "/v1/sources/strict", &source).expect(201);
    let stopped = until(&mut client, "/v1/sources/strict", is("stopped"));
    assert_eq!(stopped["stop_code"], "rejected", "{stopped}");
    let reason = stopped["reason"].as_str().unwrap();
    assert!(reason.contains("partition 2") && reason.contains("offset"), "{reason}");
}
