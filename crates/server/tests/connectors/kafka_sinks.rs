//! Kafka sinks with the real binary and real brokers: consumers with `read_committed` see every
//! event once, whatever is killed.
//!
//! `WELLSPRING_TEST_TRIAL=full` makes the first test the full trial: a million events, 20 kills of
//! the server and 5 of the broker (`WELLSPRING_TEST_TRIAL=full cargo test -p wellspring-server
//! --features kafka --test connectors kafka_sinks`).

use crate::client::Client;
use crate::server::Server;
use crate::sinks::{append, ask, is, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wellspring_kafka::testing::{self, Broker};
use wellspring_kafka::{Cluster as _, FaultKind, KafkaCluster, NewTopic};

pub fn is_full() -> bool {
    std::env::var("WELLSPRING_TEST_TRIAL").is_ok_and(|value| value == "full")
}

pub fn topic(broker: &Broker, name: &str, partitions: i32) -> KafkaCluster {
    let cluster = KafkaCluster::connect(&broker.connection()).unwrap();
    let (partitions, replicas) = (Some(partitions), Some(1));
    let new = NewTopic { name: name.into(), partitions, replicas, settings: Vec::new() };
    cluster.create_topic(&new).unwrap();
    cluster
}

fn sink(broker: &Broker, topic: &str) -> Value {
    json!({"brokers": [broker.address], "topic": topic, "partition_by": "k"})
}

/// The positions of the committed records of a topic, by partition, once there are `count` and no
/// more arrive.
fn committed(
    broker: &Broker,
    topic: &str,
    partitions: i32,
    count: usize,
) -> BTreeMap<i32, Vec<u64>> {
    let cluster = KafkaCluster::connect(&broker.connection()).unwrap();
    let starts: Vec<(i32, i64)> = (0..partitions).map(|partition| (partition, 0)).collect();
    let mut reader = cluster.reader(topic, &starts).unwrap();
    let mut positions: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
    let (mut seen, mut quiet, deadline) = (0, 0, Instant::now() + Duration::from_secs(180));
    while quiet < 4 || seen < count {
        assert!(Instant::now() < deadline, "{seen} of {count} were read");
        let records = reader.poll(Duration::from_millis(500)).unwrap();
        quiet = if records.is_empty() { quiet + 1 } else { 0 };
        for record in records {
            let header = record.headers.iter().find(|(name, _)| name == "wellspring-position");
            let text = header.and_then(|(_, value)| value.clone()).expect("a position");
            let position = std::str::from_utf8(&text).unwrap().parse().unwrap();
            positions.entry(record.partition).or_default().push(position);
            seen += 1;
        }
    }
    positions
}

/// Asserts that each event of the log occurs once, in order within each partition.
#[track_caller]
fn assert_exactly(positions: &BTreeMap<i32, Vec<u64>>, head: u64) {
    for (partition, positions) in positions {
        let first = positions.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(first, None, "partition {partition}");
    }
    let mut all: Vec<u64> = positions.values().flatten().copied().collect();
    all.sort_unstable();
    let missing = (1..=head).find(|position| all.binary_search(position).is_err());
    assert_eq!((all.len() as u64, missing), (head, None));
}

fn head(client: &mut Client) -> u64 {
    ask(client, "GET", "/v1/head", &Value::Null).expect(200)["head"].as_u64().unwrap()
}

/// Pipelines events by `POST /e` over one connection until `ended` is set; waits for a server that
/// is down.
fn send(address: SocketAddr, ended: &AtomicBool, sent: &AtomicU64, wanted: u64) {
    use std::io::Read as _;
    let mut buffer = [0; 1 << 14];
    while !ended.load(Ordering::SeqCst) && sent.load(Ordering::SeqCst) < wanted {
        let Ok(mut stream) = std::net::TcpStream::connect(address) else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
        'connected: while !ended.load(Ordering::SeqCst) && sent.load(Ordering::SeqCst) < wanted {
            let n = sent.load(Ordering::SeqCst);
            let body = format!("{{\"n\":{n}}}");
            let one = format!(
                "POST /e?tag=k:{} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}",
                n % 16,
                body.len()
            );
            if stream.write_all(one.repeat(16).as_bytes()).is_err() {
                break;
            }
            let mut answered = 0;
            while answered < 16 {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break 'connected,
                    Ok(length) => {
                        let text = String::from_utf8_lossy(&buffer[..length]);
                        // An answer split between two reads is missed; the count is only used for
                        // pacing.
                        answered += text.matches("202 Accepted").count().max(1);
                    }
                }
            }
            sent.fetch_add(16, Ordering::SeqCst);
        }
    }
}

#[test]
fn every_event_is_in_the_topic_once_through_kills_of_server_and_broker() {
    let (events, server_kills, broker_kills) =
        if is_full() { (1_000_000, 20, 5) } else { (60_000, 6, 2) };
    let Some(broker) = testing::own("every_event_is_in_the_topic_once", &[]) else { return };
    topic(&broker, "all", 4);
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(dir.path(), &[]);
    let address = server.address;
    ask(&mut server.client(), "PUT", "/v1/sinks/all", &sink(&broker, "all")).expect(201);
    let (ended, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| send(address, &ended, &sent, events));
        for kill in 1..=server_kills {
            let reached = events * kill / (server_kills + 1);
            while sent.load(Ordering::SeqCst) < reached {
                std::thread::sleep(Duration::from_millis(5));
            }
            server.kill_here();
            if kill % (server_kills / broker_kills) == 0 {
                broker.kill();
                broker.start_again();
            }
            server = Server::start_at(Some(address), &[], dir.path(), &[]);
        }
        while sent.load(Ordering::SeqCst) < events {
            std::thread::sleep(Duration::from_millis(5));
        }
        ended.store(true, Ordering::SeqCst);
    });
    let mut client = server.client();
    // Everything accepted is stored by now or a moment later.
    ask(&mut client, "POST", "/e?ack=durable", &json!({"last": true}));
    let head = head(&mut client);
    assert!(head > events / 2, "{head} of {events} survived the kills");
    until(&mut client, "/v1/sinks/all", |report| report["position"] == head);
    assert_exactly(&committed(&broker, "all", 4, head as usize), head);
    let counted = console_count(&broker, "all");
    assert_eq!(counted, head, "Kafka's own consumer counts the same");
    println!("{head} events, {server_kills} kills of the server, {broker_kills} of the broker");
}

/// The number of records that Kafka's own console consumer reads with `read_committed`.
fn console_count(broker: &Broker, topic: &str) -> u64 {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-servers/kafka.sh");
    let output = Command::new(script)
        .args(["tool", broker.dir().to_str().unwrap()])
        .args(["org.apache.kafka.tools.consumer.ConsoleConsumer"])
        .args(["--bootstrap-server", &broker.address, "--topic", topic, "--from-beginning"])
        .args(["--isolation-level", "read_committed", "--timeout-ms", "8000"])
        .output()
        .unwrap();
    output.stdout.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[test]
fn a_frozen_server_whose_place_was_taken_writes_nothing_more() {
    let Some(broker) = testing::broker("a_frozen_server_whose_place_was_taken") else { return };
    topic(broker, "frozen", 2);
    let dir = tempfile::tempdir().unwrap();
    let first = Server::start_in(dir.path(), &[]);
    let mut client = first.client();
    ask(&mut client, "PUT", "/v1/sinks/frozen", &sink(broker, "frozen")).expect(201);
    for n in 0..40 {
        append(&mut client, "main", "A", &format!("k:{}", n % 4), n);
    }
    until(&mut client, "/v1/sinks/frozen", |report| report["position"] == 40);
    let signal = |name: &str| {
        let killed = Command::new("kill").args([name, &first.pid().to_string()]).status();
        assert!(killed.unwrap().success());
    };
    signal("-STOP");
    // Another server with the same identity: a copy of the folder, like a restored backup.
    let copy = tempfile::tempdir().unwrap();
    let from = format!("{}/.", dir.path().display());
    let status = Command::new("cp").args(["-r", &from]).arg(copy.path()).status().unwrap();
    assert!(status.success());
    let second = Server::start_in(copy.path(), &[]);
    let mut other = second.client();
    for n in 40..60 {
        append(&mut other, "main", "A", &format!("k:{}", n % 4), n);
    }
    until(&mut other, "/v1/sinks/frozen", |report| report["position"] == 60);
    std::thread::sleep(Duration::from_secs(if is_full() { 30 } else { 2 }));
    signal("-CONT");
    let mut client = first.client();
    append(&mut client, "main", "A", "k:1", 1_000);
    let stopped = until(&mut client, "/v1/sinks/frozen", is("stopped"));
    assert_eq!(stopped["stop_code"], "fenced", "{stopped}");
    assert_exactly(&committed(broker, "frozen", 2, 60), 60);
    // The one that took over continues.
    append(&mut other, "main", "A", "k:1", 61);
    until(&mut other, "/v1/sinks/frozen", |report| report["position"] == 61);
    assert_exactly(&committed(broker, "frozen", 2, 61), 61);
}

#[test]
fn what_a_person_has_to_decide_stops_the_sink_and_says_why() {
    let Some(broker) = testing::broker("what_a_person_has_to_decide") else { return };
    topic(broker, "decide", 1);
    let server = Server::start();
    let mut client = server.client();
    append(&mut client, "main", "A", "k:1", 1);
    let nowhere = json!({"brokers": [broker.address], "topic": "nowhere"});
    ask(&mut client, "PUT", "/v1/sinks/nowhere", &nowhere).expect(201);
    let stopped = until(&mut client, "/v1/sinks/nowhere", is("stopped"));
    assert_eq!(stopped["stop_code"], "no-topic", "{stopped}");
    ask(&mut client, "PUT", "/v1/sinks/a", &sink(broker, "decide")).expect(201);
    until(&mut client, "/v1/sinks/a", |report| report["position"] == 1);
    let large = json!({"events": [{"type": "A", "tags": ["k:1"], "data": "x".repeat(1_040_000)}]});
    ask(&mut client, "POST", "/v1/append", &large).expect(200);
    append(&mut client, "main", "A", "k:1", 3);
    let report = until(&mut client, "/v1/sinks/a", |report| {
        report["state"] == "stopped" || report["position"] == 3
    });
    if report["state"] == "stopped" {
        assert_eq!(report["stop_code"], "too-large", "{report}");
        assert_eq!(report["stopped_at"], 2);
        assert!(report["reason"].as_str().unwrap().contains("wellspring sink skip a"), "{report}");
        ask(&mut client, "POST", "/v1/sinks/a/skip", &json!({"position": 2})).expect(200);
        until(&mut client, "/v1/sinks/a", |report| report["position"] == 3);
    }
    broker.topics(&["--delete", "--topic", "decide"]);
    std::thread::sleep(Duration::from_secs(1));
    topic_again(broker, "decide");
    append(&mut client, "main", "A", "k:1", 4);
    ask(&mut client, "POST", "/v1/sinks/a/resume", &Value::Null).expect(200);
    let stopped = until(&mut client, "/v1/sinks/a", is("stopped"));
    assert_eq!(stopped["stop_code"], "topic-recreated", "{stopped}");
    let to = json!({"to": "beginning"});
    ask(&mut client, "POST", "/v1/sinks/a/skip", &json!({"position": 2})).expect(200);
    ask(&mut client, "POST", "/v1/sinks/a/reset", &to).expect(200);
    ask(&mut client, "POST", "/v1/sinks/a/skip", &json!({"position": 2})).expect(200);
    until(&mut client, "/v1/sinks/a", |report| report["position"] == 4);
}

fn topic_again(broker: &Broker, name: &str) {
    let cluster = KafkaCluster::connect(&broker.connection()).unwrap();
    let new =
        NewTopic { name: name.into(), partitions: Some(1), replicas: Some(1), settings: vec![] };
    for _ in 0..50 {
        match cluster.create_topic(&new) {
            Ok(wellspring_kafka::Creation::Created) => return,
            Ok(_) => {}
            Err(fault) => assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("{name} could not be made again");
}

#[test]
fn a_broker_that_is_away_slows_no_append_and_gets_everything_later() {
    let Some(broker) = testing::own("a_broker_that_is_away", &[]) else { return };
    topic(&broker, "away", 2);
    let server = Server::start();
    let mut client = server.client();
    ask(&mut client, "PUT", "/v1/sinks/away", &sink(&broker, "away")).expect(201);
    append(&mut client, "main", "A", "k:1", 0);
    until(&mut client, "/v1/sinks/away", |report| report["position"] == 1);
    broker.kill();
    let begun = Instant::now();
    let away = Duration::from_secs(if is_full() { 60 } else { 8 });
    let mut slowest = Duration::ZERO;
    let mut n = 1;
    while begun.elapsed() < away {
        let asked = Instant::now();
        append(&mut client, "main", "A", &format!("k:{}", n % 4), n);
        slowest = slowest.max(asked.elapsed());
        n += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(slowest < Duration::from_secs(5), "an append took {slowest:?}");
    broker.start_again();
    until(&mut client, "/v1/sinks/away", |report| report["position"] == n);
    assert_exactly(&committed(&broker, "away", 2, n as usize), n);
}

#[test]
fn a_password_comes_from_a_secret_file_and_is_seen_nowhere() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(broker) = testing::own("a_password_comes_from_a_secret_file", &["--secure"]) else {
        return;
    };
    topic(&broker, "secure", 1);
    let secrets = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = secrets.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("kafka", "kafka-secret\n");
    write("wrong", "kafka-canary\n");
    let flags = ["--secrets", secrets.path().to_str().unwrap(), "--log-level", "debug"];
    let server = Server::start_with(&flags);
    let mut client = server.client();
    append(&mut client, "main", "A", "k:1", 1);
    let secure = |secret: &str| {
        json!({
            "brokers": [broker.secure.clone().unwrap()], "topic": "secure",
            "tls": {"ca_file": broker.ca.clone().unwrap()},
            "sasl": {"mechanism": "SCRAM-SHA-512", "user": "wellspring", "password_secret": secret}
        })
    };
    ask(&mut client, "PUT", "/v1/sinks/a", &secure("kafka")).expect(201);
    until(&mut client, "/v1/sinks/a", |report| report["position"] == 1);
    ask(&mut client, "PUT", "/v1/sinks/b", &secure("wrong")).expect(201);
    let stopped = until(&mut client, "/v1/sinks/b", is("stopped"));
    assert_eq!(stopped["stop_code"], "forbidden", "{stopped}");
    let mut seen = vec![server.log().join("\n"), stopped.to_string()];
    for path in ["/v1/sinks", "/metrics", "/v1/logs/system/events"] {
        seen.push(ask(&mut client, "GET", path, &Value::Null).text());
    }
    for text in seen {
        assert!(!text.contains("kafka-secret") && !text.contains("kafka-canary"), "{text}");
    }
}
