//! How events are turned into records.

use super::*;
use proptest::prelude::*;
use wellspring_log::EncodedEvents;
use wellspring_types::Event;

fn batch(payload: PayloadFormat, partition_by: Option<&str>) -> Batch {
    Batch::new(RecordFormat {
        log_name: "orders".into(),
        history: None,
        topic: "t".into(),
        payload,
        partition_by: partition_by.map(str::to_owned),
    })
}

fn encoded(events: &[Event]) -> EncodedEvents {
    let mut all = EncodedEvents::new();
    for event in events {
        all.push(&event.as_ref()).unwrap();
    }
    all
}

fn records(batch: &mut Batch, events: &[Event], partitions: i32) -> Vec<OutgoingRecord> {
    for view in encoded(events).iter() {
        batch.push(&view, partitions, usize::MAX).unwrap();
    }
    batch.take(partitions, 0).0
}

fn headers(record: &OutgoingRecord) -> Vec<(&str, &str)> {
    let mut all = Vec::new();
    for (name, value) in &record.headers {
        let value = value.as_ref().expect("all headers have values");
        all.push((name.as_str(), std::str::from_utf8(value).unwrap()));
    }
    all
}

#[test]
fn data_is_the_value_and_the_rest_stands_in_headers() {
    let mut placed = Event::json("Placed", &["order:1", "customer:\"7\""], r#"{"n":1.50}"#);
    placed.id = EventId::parse("6f1ed002-ab5b-4c53-8f3d-2f7d0b0d9a11");
    let mut scanned = Event::json("Scanned", &[], "1");
    (scanned.kind, scanned.data) = (DataKind::Binary, vec![0, 255]);
    let mut batch = batch(PayloadFormat::Data, Some("order"));
    let records = records(&mut batch, &[placed, scanned], 3);
    let [placed, scanned] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(placed.topic, "t");
    assert_eq!(placed.key.as_deref(), Some(b"1".as_slice()));
    assert_eq!(placed.partition, partition_of(b"1", 3));
    assert_eq!(placed.value.as_deref(), Some(br#"{"n":1.50}"#.as_slice()));
    let expected = [
        ("wellspring-log", "orders"),
        ("wellspring-position", "0"),
        ("wellspring-type", "Placed"),
        ("wellspring-tags", r#"["order:1","customer:\"7\""]"#),
        ("wellspring-id", "6f1ed002-ab5b-4c53-8f3d-2f7d0b0d9a11"),
        ("content-type", "application/json"),
    ];
    assert_eq!(headers(placed), expected);
    assert_eq!((&scanned.key, scanned.partition), (&None, 0));
    assert_eq!(scanned.value.as_deref(), Some([0, 255].as_slice()));
    let expected = [
        ("wellspring-log", "orders"),
        ("wellspring-position", "0"),
        ("wellspring-type", "Scanned"),
        ("wellspring-tags", "[]"),
        ("content-type", "application/octet-stream"),
    ];
    assert_eq!(headers(scanned), expected);
}

#[test]
fn a_document_of_cloudevents_is_the_value_if_it_is_wanted() {
    let mut batch = batch(PayloadFormat::CloudEvents, None);
    let records = records(&mut batch, &[Event::json("Placed", &[], "[1]")], 1);
    let value = records[0].value.clone().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&value).unwrap();
    assert_eq!((&document["type"], &document["data"][0]), (&"Placed".into(), &1.into()));
    assert!(headers(&records[0]).contains(&("content-type", "application/cloudevents+json")));
}

#[test]
fn events_without_a_key_stay_together_and_go_elsewhere_batch_by_batch() {
    let mut batch = batch(PayloadFormat::Data, None);
    let events = [Event::json("A", &["k:1"], "1"), Event::json("A", &[], "2")];
    let mut partitions = Vec::new();
    for _ in 0..4 {
        partitions.extend(records(&mut batch, &events, 3).iter().map(|record| record.partition));
        assert!(batch.take(3, 1).0.is_empty(), "an empty batch uses up no partition");
    }
    assert_eq!(partitions, [0, 0, 1, 1, 2, 2, 0, 0]);
}

#[test]
fn what_is_too_large_is_not_in_the_batch() {
    let mut batch = batch(PayloadFormat::Data, None);
    let events = encoded(&[
        Event::json("A", &[], "1"),
        Event::json("A", &[], &format!("\"{}\"", "x".repeat(500))),
        Event::json("A", &[], "3"),
    ]);
    let pushed: Vec<_> = events.iter().map(|event| batch.push(&event, 1, 500).is_ok()).collect();
    assert_eq!(pushed, [true, false, true]);
    let values: Vec<_> =
        batch.take(1, 0).0.into_iter().map(|record| record.value.unwrap()).collect();
    assert_eq!(values, ["1", "3"]);
}

#[test]
fn the_buffer_is_used_again_when_nobody_has_it() {
    let mut batch = batch(PayloadFormat::Data, None);
    let events = encoded(&[Event::json("A", &[], "1")]);
    batch.push(&events.iter().next().unwrap(), 1, 500).unwrap();
    let (records, bytes) = batch.take(1, 0);
    let place = bytes.as_ptr();
    drop(records);
    batch.reuse(bytes);
    assert_eq!((batch.bytes.as_ptr(), batch.bytes.len()), (place, 0));
    batch.push(&events.iter().next().unwrap(), 1, 500).unwrap();
    let (records, bytes) = batch.take(1, 0);
    batch.reuse(bytes);
    assert_eq!(records[0].value.as_deref(), Some(b"1".as_slice()), "it is still the record's");
}

proptest! {
    #[test]
    fn ids_are_written_as_they_are_displayed(id: [u8; 16]) {
        let mut out = Vec::new();
        push_id(&mut out, EventId(id));
        prop_assert_eq!(String::from_utf8(out).unwrap(), EventId(id).to_string());
    }

    #[test]
    fn tags_are_a_json_array(tags in prop::collection::btree_set("[a-z\"\\\\é:]{1,8}", 0..5)) {
        let names: Vec<&str> = tags.iter().map(String::as_str).collect();
        let events = encoded(&[Event::json("A", &names, "1")]);
        let mut out = Vec::new();
        push_tags(&mut out, &events.iter().next().unwrap());
        let read: Vec<String> = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(read, Vec::from_iter(tags));
    }
}

#[test]
#[ignore = "a measurement: cargo test --release -- --ignored --nocapture"]
fn time_to_build_half_a_million_records() {
    use wellspring_log::{Clock as _, SystemClock};
    let event = |n: u32| {
        let (customer, order) = (format!("customer:{}", n % 500), format!("order:{n}"));
        Event::json("OrderPlaced", &[&customer, &order], r#"{"amount":12.50,"currency":"EUR"}"#)
    };
    let events = encoded(&(0..1_000).map(event).collect::<Vec<_>>());
    for payload in [PayloadFormat::Data, PayloadFormat::CloudEvents] {
        let mut batch = batch(payload, Some("customer"));
        let begin_us = SystemClock.monotonic_us();
        for _ in 0..50 {
            for event in (0..10).flat_map(|_| events.iter()) {
                batch.push(&event, 12, 1 << 20).unwrap();
            }
            let (records, bytes) = batch.take(12, 1);
            assert_eq!(records.len(), 10_000);
            drop(records);
            batch.reuse(bytes);
        }
        let seconds = (SystemClock.monotonic_us() - begin_us) as f64 / 1e6;
        println!("{payload:?}: {:.0} records a second", 500_000.0 / seconds);
    }
}
