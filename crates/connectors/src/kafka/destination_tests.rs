//! The destination alone, against the simulated cluster.

use super::super::simulation::{Bench, CURSORS, TOPIC, position};
use super::*;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use wellspring_kafka::simulated::{DeliveredPart, Operation, PlannedFault, SimulatedCluster};
use wellspring_kafka::{Fault as KafkaFault, OffsetRange, Reader, partition_of};
use wellspring_log::{Append, EncodedEvents};
use wellspring_types::Event;

fn stop_code(fault: &Fault) -> Option<StopCode> {
    match fault {
        Fault::Stop { code, .. } => Some(*code),
        Fault::Transient(_) => None,
    }
}

#[test]
fn records_and_the_cursor_are_committed_together_and_read_by_the_next_owner() {
    let bench = Bench::new(3);
    bench.append(20);
    let (mut first, none) = bench.opened();
    assert_eq!(none, None);
    assert_eq!(bench.deliver(&mut first, 0), Ok(20));
    assert_eq!(bench.positions(), (1..=20).collect::<Vec<_>>());
    for record in bench.delivered() {
        let partition = record.key.as_ref().map_or(0, |key| partition_of(key, 3));
        assert_eq!(record.partition, partition);
    }
    bench.append(5);
    let (mut second, cursor) = bench.opened();
    let cursor = cursor.expect("a cursor");
    assert_eq!((cursor.generation, cursor.position), (1, 20));
    assert_eq!(cursor.mismatch(&bench.log), Ok(None));
    assert_eq!(bench.deliver(&mut second, 20), Ok(25));
    assert_eq!(bench.positions().len(), 25);
}

#[test]
fn a_delivery_in_doubt_is_decided_by_the_cursor() {
    for (part, reached) in [(DeliveredPart::Nothing, None), (DeliveredPart::Everything, Some(10))] {
        let bench = Bench::new(1);
        bench.append(10);
        let (mut destination, _) = bench.opened();
        bench.cluster.fail_next(Operation::Deliver, PlannedFault::in_doubt(part));
        let fault = bench.deliver(&mut destination, 0).unwrap_err();
        assert_eq!(stop_code(&fault), None, "{fault}");
        let cursor = destination.open().unwrap();
        assert_eq!(cursor.map(|cursor| cursor.position), reached);
    }
}

#[test]
fn a_zombie_delivers_nothing_after_another_has_taken_over() {
    let bench = Bench::new(2);
    bench.append(10);
    let (mut zombie, _) = bench.opened();
    bench.deliver(&mut zombie, 0).unwrap();
    bench.append(10);
    let (mut heir, _) = bench.opened();
    let fault = bench.deliver(&mut zombie, 10).unwrap_err();
    assert_eq!(stop_code(&fault), Some(StopCode::Fenced), "{fault}");
    assert!(fault.to_string().contains("another server runs the sink orders"), "{fault}");
    assert_eq!(bench.positions().len(), 10);
    bench.deliver(&mut heir, 10).unwrap();
    assert_eq!(bench.positions(), (1..=20).collect::<Vec<_>>());
}

/// A cluster on which something happens just before a transactional id is taken.
struct LastMoment {
    cluster: SimulatedCluster,
    event: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Cluster for LastMoment {
    fn id(&self) -> Result<String, KafkaFault> {
        self.cluster.id()
    }

    fn topic(&self, name: &str) -> Result<TopicDescription, KafkaFault> {
        self.cluster.topic(name)
    }

    fn create_topic(&self, topic: &NewTopic) -> Result<Creation, KafkaFault> {
        self.cluster.create_topic(topic)
    }

    fn offsets(&self, topic: &str, partition: i32) -> Result<OffsetRange, KafkaFault> {
        self.cluster.offsets(topic, partition)
    }

    fn transactional_producer(&self, id: &str) -> Result<Box<dyn Producer>, KafkaFault> {
        if let Some(event) = self.event.lock().unwrap().take() {
            event();
        }
        self.cluster.transactional_producer(id)
    }

    fn idempotent_producer(&self) -> Result<Box<dyn Producer>, KafkaFault> {
        self.cluster.idempotent_producer()
    }

    fn reader(&self, topic: &str, starts: &[(i32, i64)]) -> Result<Box<dyn Reader>, KafkaFault> {
        self.cluster.reader(topic, starts)
    }
}

#[test]
fn what_the_earlier_owner_commits_just_before_it_is_fenced_is_not_delivered_again() {
    let bench = Arc::new(Bench::new(1));
    bench.append(10);
    let (mut zombie, _) = bench.opened();
    let (at_last, cluster) = (Arc::clone(&bench), bench.cluster.clone());
    let event: Box<dyn FnOnce() + Send> = Box::new(move || {
        assert_eq!(at_last.deliver(&mut zombie, 0), Ok(10));
    });
    let event = Mutex::new(Some(event));
    let hooked: Arc<dyn Cluster> = Arc::new(LastMoment { cluster, event });
    let connect = Box::new(move || Ok(Arc::clone(&hooked)));
    let mut heir = KafkaDestination::new(bench.settings(), connect);
    assert_eq!(heir.open().unwrap().map(|cursor| cursor.position), Some(10));
}

#[test]
fn a_transaction_that_the_brokers_ended_is_not_taken_for_another_server() {
    let bench = Bench::new(1);
    bench.append(10);
    let (mut destination, _) = bench.opened();
    bench.cluster.fail_next(Operation::Deliver, PlannedFault::new(FaultKind::Fenced));
    let fault = bench.deliver(&mut destination, 0).unwrap_err();
    assert_eq!(stop_code(&fault), None, "{fault}");
    assert_eq!(destination.open().unwrap(), None);
    assert_eq!(bench.deliver(&mut destination, 0), Ok(10));
}

#[test]
fn a_topic_that_is_made_again_or_gone_stops_it() {
    let bench = Bench::new(1);
    bench.append(10);
    let (mut destination, _) = bench.opened();
    bench.deliver(&mut destination, 0).unwrap();
    bench.cluster.recreate_topic(TOPIC);
    let fault = destination.look().unwrap_err();
    assert_eq!(stop_code(&fault), Some(StopCode::TopicRecreated), "{fault}");
    let fault = destination.open().unwrap_err();
    assert_eq!(stop_code(&fault), Some(StopCode::TopicRecreated), "{fault}");
    // An operator sets a start position.
    let anew = Bench { generation: 2, ..bench };
    let (mut destination, cursor) = anew.opened();
    assert_eq!(cursor.map(|cursor| cursor.generation), Some(1), "the pump passes it over");
    assert_eq!(anew.deliver(&mut destination, 0), Ok(10));
    anew.cluster.delete_topic(TOPIC);
    for fault in [destination.look().unwrap_err(), destination.open().unwrap_err()] {
        assert_eq!(stop_code(&fault), Some(StopCode::NoTopic), "{fault}");
    }
}

#[test]
fn it_looks_at_the_topic_while_it_delivers_without_a_pause() {
    let bench = Bench::new(1);
    bench.append(10);
    let (mut destination, _) = bench.opened();
    bench.cluster.recreate_topic(TOPIC);
    // The tests' clock advances by 250 ms on each call.
    let deliver = |_| destination.deliver(Cursor::start(1, None), &Control::default()).err();
    let fault = (0..100).find_map(deliver).expect("a fault");
    assert_eq!(stop_code(&fault), Some(StopCode::TopicRecreated), "{fault}");
}

#[test]
fn the_cursor_of_a_newer_definition_stops_it() {
    let bench = Bench { generation: 3, ..Bench::new(1) };
    bench.append(1);
    let (mut destination, _) = bench.opened();
    bench.deliver(&mut destination, 0).unwrap();
    let older = Bench { generation: 2, ..bench };
    let fault = older.destination().open().unwrap_err();
    assert_eq!(stop_code(&fault), Some(StopCode::AnotherHistory), "{fault}");
}

#[test]
fn an_event_that_is_too_large_is_refused_with_words_for_what_to_do() {
    let bench = Bench::without_topic();
    bench.cluster.add_topic_with(TOPIC, 1, &[("max.message.bytes", "1000")]);
    bench.append(2);
    let mut events = EncodedEvents::new();
    let data = format!("\"{}\"", "x".repeat(900));
    events.push(&Event::json("Large", &[], &data).as_ref()).unwrap();
    bench.log.append(Append { events, ..Append::default() }).unwrap();
    let (mut destination, _) = bench.opened();
    match bench.deliver(&mut destination, 0).unwrap_err() {
        Fault::Stop { code: StopCode::TooLarge, detail, position: Some(3) } => {
            for part in ["position 3", "is 1000", "wellspring sink skip orders --position 3"] {
                assert!(detail.contains(part), "{detail}");
            }
        }
        other => panic!("{other:?}"),
    }
    let limits = destination.limits();
    assert!(limits.bytes <= 1_000, "batches are no larger than the topic takes: {limits:?}");
}

#[test]
fn a_batch_that_brokers_refuse_becomes_smaller_until_the_event_is_known() {
    let bench = Bench::new(1);
    bench.append(100);
    let mut destination = bench.destination();
    let mut sizes = Vec::new();
    let fault = loop {
        let cursor = destination.open().unwrap();
        let most = destination.limits().events;
        let mut subscription = bench.log.subscribe(wellspring_types::Query::all(), 0);
        let mut last = cursor.unwrap_or(Cursor::start(1, None));
        for _ in 0..most.min(100) {
            let event = subscription.next(Duration::ZERO).unwrap().unwrap();
            destination.push(&event).unwrap();
            last = last.on(&event);
        }
        sizes.push(most);
        bench.cluster.fail_next(Operation::Deliver, PlannedFault::new(FaultKind::TooLarge));
        // Opening delivers a probe, which happens earlier.
        match destination.deliver(last, &Control::default()).unwrap_err() {
            Fault::Transient(_) => {}
            fault @ Fault::Stop { .. } => break fault,
        }
    };
    assert_eq!(sizes, [10_000, 25, 6, 1]);
    assert!(matches!(fault, Fault::Stop { code: StopCode::TooLarge, position: Some(1), .. }));
    assert!(bench.delivered().is_empty());
}

#[test]
fn more_partitions_are_used_after_the_next_start_and_warned_of() {
    let bench = Bench::new(2);
    bench.append(50);
    let (mut destination, _) = bench.opened();
    let warnings = destination.warnings();
    bench.cluster.grow_topic(TOPIC, 7);
    destination.look().unwrap();
    assert!(warnings.texts().iter().any(|text| text.contains("7 partitions")));
    bench.deliver(&mut destination, 0).unwrap();
    assert!(bench.delivered().iter().all(|record| record.partition < 2));
    bench.append(50);
    let (mut again, _) = bench.opened();
    bench.deliver(&mut again, 50).unwrap();
    let later = bench.delivered().into_iter().filter(|record| position(record) > 50);
    assert!(later.into_iter().any(|record| record.partition >= 2));
}

#[test]
fn events_that_the_topic_does_not_keep_are_warned_of() {
    let bench = Bench::without_topic();
    bench.cluster.add_topic_with(TOPIC, 1, &[("retention.ms", "1000")]);
    bench.append(3); // recorded at this machine's time, before that of the tests' clock
    let (mut destination, _) = bench.opened();
    bench.deliver(&mut destination, 0).unwrap();
    assert!(destination.warnings().texts()[0].contains("position 3"));
}

#[test]
fn each_start_makes_a_connection_and_a_failed_one_is_no_end() {
    let bench = Bench::new(1);
    bench.unreachable.store(2, Relaxed);
    let mut destination = bench.destination();
    for _ in 0..2 {
        assert_eq!(stop_code(&destination.open().unwrap_err()), None);
    }
    assert!(destination.deliver(Cursor::start(1, None), &Control::default()).is_err());
    for operation in [Operation::Describe, Operation::MakeProducer, Operation::MakeReader] {
        bench.cluster.fail_next(operation, PlannedFault::new(FaultKind::Unavailable));
        assert_eq!(stop_code(&destination.open().unwrap_err()), None);
    }
    destination.open().unwrap();
    assert_eq!(bench.connected.load(Relaxed), 4);
    let forbidden = PlannedFault::new(FaultKind::Forbidden);
    bench.cluster.fail_next(Operation::MakeProducer, forbidden);
    assert_eq!(stop_code(&destination.open().unwrap_err()), Some(StopCode::Forbidden));
}

#[test]
fn at_least_once_needs_no_topic_of_cursors_and_keeps_none() {
    let bench = Bench { mode: DeliveryMode::AtLeastOnce, ..Bench::new(2) };
    bench.append(10);
    let (mut destination, cursor) = bench.opened();
    assert_eq!(cursor, None);
    assert_eq!(bench.deliver(&mut destination, 0), Ok(10));
    assert_eq!(bench.positions().len(), 10);
    assert_eq!(
        bench.cluster.topic(CURSORS).map_err(|fault: KafkaFault| fault.kind),
        Err(FaultKind::NoTopic)
    );
    assert_eq!(destination.open(), Ok(None));
    destination.deliver(Cursor::start(1, None), &Control::default()).unwrap();
}

#[test]
fn a_missing_topic_is_created_where_that_is_asked_for() {
    let bench = Bench::new(1);
    bench.append(10);
    bench.cluster.delete_topic(TOPIC);
    let open = |create_topic| {
        let mut settings = bench.settings();
        settings.target.create_topic = create_topic;
        let cluster: Arc<dyn Cluster> = Arc::new(bench.cluster.clone());
        let connect = Box::new(move || Ok(Arc::clone(&cluster)));
        let mut destination = KafkaDestination::new(settings, connect);
        destination.open().map(|cursor| (destination, cursor))
    };
    let Err(fault) = open(None) else { panic!("there is no topic") };
    assert_eq!(stop_code(&fault), Some(StopCode::NoTopic), "{fault}");
    let three = TopicToCreate { partitions: Some(3), replicas: Some(1) };
    let (mut destination, cursor) = open(Some(three)).unwrap();
    assert_eq!((cursor, bench.cluster.topic(TOPIC).unwrap().partitions), (None, 3));
    assert_eq!(bench.deliver(&mut destination, 0), Ok(10));
    // One that is there stays as it is; one that is made again is still told from the first.
    let (_, cursor) = open(Some(TopicToCreate::default())).unwrap();
    assert_eq!(cursor.map(|cursor| cursor.position), Some(10));
    assert_eq!(bench.cluster.topic(TOPIC).unwrap().partitions, 3);
    bench.cluster.delete_topic(TOPIC);
    let Err(fault) = open(Some(three)) else { panic!("it is another topic") };
    assert_eq!(stop_code(&fault), Some(StopCode::TopicRecreated), "{fault}");
}
