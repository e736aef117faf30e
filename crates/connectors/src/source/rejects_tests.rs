use super::*;
use bytes::Bytes;
use wellspring_log::Options;
use wellspring_types::Query;

fn origin() -> Origin {
    Origin::new("s", 1, "c", "orders", [1; 16]).unwrap()
}

fn reject(offset: i64, value: &[u8]) -> Reject {
    let record = Record {
        partition: 2,
        offset,
        timestamp_ms: 5,
        key: Some(Bytes::from_static(b"\xff\x00")),
        value: Some(Bytes::copy_from_slice(value)),
        headers: vec![("h".into(), Some(Bytes::from_static(b"v"))), ("n".into(), None)],
    };
    Reject { record, reason: "no good".into() }
}

fn stored(log: &Log) -> Vec<Value> {
    let mut events =
        log.snapshot().read_kept(&Query::item(&[RECORD_REJECTED], &[]), Order::Ascending);
    let mut found = Vec::new();
    while let Some(event) = events.next().unwrap() {
        found.push(serde_json::from_slice(event.data()).unwrap());
    }
    found
}

fn open() -> (tempfile::TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    (dir, log)
}

#[test]
fn a_record_is_kept_whole_with_its_reason() {
    let (_dir, log) = open();
    let mut store = RejectStore::new(log.clone());
    store.load(&origin(), 2, -1).unwrap();
    store.store(&origin(), 2, &[reject(7, b"{\"a")]).unwrap();
    let expected = json!({
        "source": "s", "generation": 1, "cluster": "c", "topic": "orders", "topic_id": "01".repeat(16),
        "partition": 2, "offset": 7, "timestamp_ms": 5, "reason": "no good", "key_base64": "/wA=",
        "value": "{\"a", "headers": [{"name": "h", "value": "v"}, {"name": "n", "value": null}],
    });
    assert_eq!(stored(&log), [expected]);
}

#[test]
fn a_record_larger_than_an_event_is_kept_in_parts_and_goes_on_with_the_part_that_is_missing() {
    let value: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let reject = reject(7, &value);
    let all = documents(&origin(), &reject);
    assert!(all.len() > 20, "{}", all.len());
    let (_dir, log) = open();
    // As after a crash between two appends.
    let mut events = EncodedEvents::new();
    for data in &all[..5] {
        let tags = [origin().partition_tag(2), origin().connector_tag];
        events
            .push(&EventRef {
                event_type: RECORD_REJECTED,
                tags: &tags,
                data,
                kind: DataKind::Json,
                id: None,
                metadata: &[],
            })
            .unwrap();
    }
    log.append(Append { events, ..Append::default() }).unwrap();
    let mut store = RejectStore::new(log.clone());
    store.load(&origin(), 2, 6).unwrap();
    assert!(store.holds(2, 7) && !store.holds(2, 8));
    assert_eq!(store.store(&origin(), 2, std::slice::from_ref(&reject)), Ok(1));
    let mut whole = Vec::new();
    for (index, part) in stored(&log).iter().enumerate() {
        assert_eq!(
            (part["part"].as_u64(), part["parts"].as_u64()),
            (Some(index as u64 + 1), Some(all.len() as u64))
        );
        whole.extend(BASE64.decode(part["document_base64"].as_str().unwrap()).unwrap());
    }
    let document: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(BASE64.decode(document["value_base64"].as_str().unwrap()).unwrap(), value);
    store.load(&origin(), 2, 6).unwrap();
    assert!(store.holds(2, 7));
    assert_eq!(store.store(&origin(), 2, &[reject]), Ok(0));
    assert_eq!(stored(&log).len(), all.len(), "what is there is not stored again");
    store.load(&origin(), 2, 7).unwrap();
    assert!(!store.holds(2, 7), "the cursor has passed it");
}

#[test]
fn another_writer_meets_the_condition_and_another_generation_does_not_count() {
    let (_dir, log) = open();
    let (mut one, mut other) = (RejectStore::new(log.clone()), RejectStore::new(log.clone()));
    one.load(&origin(), 2, -1).unwrap();
    other.load(&origin(), 2, -1).unwrap();
    one.store(&origin(), 2, &[reject(1, b"x")]).unwrap();
    one.store(&origin(), 2, &[reject(2, b"x")]).unwrap();
    let refused = other.store(&origin(), 2, &[reject(1, b"x")]);
    assert!(matches!(refused, Err(Interruption::Conflict(_))), "{refused:?}");
    let renewed = Origin { generation: 2, ..origin() };
    other.load(&renewed, 2, -1).unwrap();
    assert!(!other.holds(2, 1));
    other.store(&renewed, 2, &[reject(1, b"x")]).unwrap();
    assert_eq!(stored(&log).len(), 3);
}
