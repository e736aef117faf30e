use super::super::origin::Origin;
use super::*;
use crate::connection::KafkaConnection;
use crate::sink::StartAt;
use bytes::Bytes;
use wellspring_log::RecordView;
use wellspring_types::limits::{MAX_DATA_BYTES, MAX_TAGS};

fn definition(event_type: &str, tags: &[&str], data: RecordData) -> SourceDefinition {
    SourceDefinition {
        log: "main".into(),
        connection: KafkaConnection { brokers: vec!["b:1".into()], tls: None, sasl: None },
        topic: "orders".into(),
        start: StartAt::Beginning,
        event_type: Template::parse(event_type).unwrap(),
        tags: tags.iter().map(|tag| Template::parse(tag).unwrap()).collect(),
        data,
        reject_log: None,
    }
}

fn record(key: Option<&[u8]>, value: Option<&[u8]>) -> Record {
    Record {
        partition: 3,
        offset: 77,
        timestamp_ms: 1_000,
        key: key.map(Bytes::copy_from_slice),
        value: value.map(Bytes::copy_from_slice),
        headers: Vec::new(),
    }
}

/// Maps one record and passes the event to `look`.
fn mapped<R>(
    definition: &SourceDefinition,
    record: &Record,
    look: impl FnOnce(&RecordView<'_>) -> R,
) -> Result<R, RejectReason> {
    let ids = Origin::new("s", 1, "c", "orders", [1; 16]).unwrap().event_ids(record.partition);
    let mut events = EncodedEvents::new();
    let pushed = Mapper::new(definition).push(&mut events, record, Some(&ids));
    assert_eq!(events.len(), usize::from(pushed.is_ok()), "nothing is added when it is refused");
    pushed.map(|bytes| {
        let event = events.iter().next().unwrap();
        assert_eq!(bytes, event.data().len() as u64);
        assert_eq!(event.id(), Some(ids.id(record.offset)));
        look(&event)
    })
}

#[test]
fn an_event_has_what_the_templates_say_and_tells_where_its_record_lies() {
    let tags = ["order:{value:/id}", "k:{key?}", "order:{value:/again}", "x:{value:/none?}"];
    let definition = definition("Order{value:/what}", &tags, RecordData::Json);
    let value = br#" {"id":7,"again":7,"what":"Placed"} "#;
    let facts = |event: &RecordView<'_>| {
        let tags: Vec<String> = event.tags().map(str::to_owned).collect();
        let metadata: Vec<String> = event.metadata().map(|(k, v)| format!("{k}={v}")).collect();
        (event.event_type().to_owned(), tags, metadata, event.data().to_vec())
    };
    let (event_type, tags, metadata, data) =
        mapped(&definition, &record(Some(b"ann"), Some(value)), facts).unwrap();
    assert_eq!(
        (event_type.as_str(), tags.as_slice()),
        ("OrderPlaced", &["order:7", "k:ann"].map(str::to_owned)[..])
    );
    assert_eq!(data, br#"{"id":7,"again":7,"what":"Placed"}"#);
    let expected = [
        "kafka-topic=orders",
        "kafka-partition=3",
        "kafka-offset=77",
        "kafka-timestamp=1970-01-01T00:00:01.000000Z",
        "kafka-key=ann",
    ];
    assert_eq!(metadata, expected);
}

#[test]
fn a_tombstone_is_null_or_no_bytes() {
    let data = |event: &RecordView<'_>| (event.kind(), event.data().to_vec());
    let json = definition("T", &["v:{value:/a?}"], RecordData::Json);
    assert_eq!(mapped(&json, &record(None, None), data), Ok((DataKind::Json, b"null".to_vec())));
    let binary = definition("T", &[], RecordData::Binary);
    assert_eq!(mapped(&binary, &record(None, None), data), Ok((DataKind::Binary, vec![])));
    let bytes = [0xff, 0, 1];
    let kept = mapped(&binary, &record(None, Some(&bytes)), data);
    assert_eq!(kept, Ok((DataKind::Binary, bytes.to_vec())));
}

#[test]
fn a_key_that_is_no_text_or_too_long_is_not_in_the_metadata() {
    let definition = definition("T", &[], RecordData::Json);
    for key in [&b"\xff"[..], &[b'k'; 4097]] {
        let count =
            mapped(&definition, &record(Some(key), Some(b"1")), |event| event.metadata().count());
        assert_eq!(count, Ok(4));
    }
}

#[test]
fn what_cannot_be_an_event_says_why() {
    let refused = |event_type: &str, tags: &[&str], value: &[u8], word: &str| {
        let definition = definition(event_type, tags, RecordData::Json);
        let fault = mapped(&definition, &record(None, Some(value)), |_| ()).unwrap_err();
        assert!(fault.to_string().contains(word), "{fault}");
    };
    refused("T", &[], b"{", "not JSON");
    refused("T", &[], b"\"\xff\"", "UTF-8");
    refused("{key}", &[], b"1", "{key}");
    refused("{key?}", &[], b"1", "type");
    refused("{value:/t}", &[], br#"{"t":""}"#, "type must not be empty");
    refused("{value:/t}", &[], br#"{"t":"a\u0000"}"#, "control character");
    refused("T", &["{value:/t}"], br#"{"t":""}"#, "tags[0]");
    refused("T", &["t:{value:/t}"], br#"{"u":1}"#, "value:/t");
    let long = format!("{{\"t\":\"{}\"}}", "x".repeat(300));
    refused("T", &["t:{value:/t}"], long.as_bytes(), "255");
    let tags: Vec<String> = (0..=MAX_TAGS).map(|n| format!("t:{n}")).collect();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    refused("T", &tags, b"1", "64");
    let large = format!("\"{}\"", "x".repeat(MAX_DATA_BYTES - 1));
    refused("T", &[], large.as_bytes(), "1048576");
}

#[test]
fn no_record_becomes_a_cursor() {
    let definition = definition("{value:/t}", &["{value:/c}"], RecordData::Json);
    for event_type in [SOURCE_ADVANCED, RECORD_REJECTED] {
        let value = format!(r#"{{"t":"{event_type}","c":"connector:s"}}"#);
        let fault = mapped(&definition, &record(None, Some(value.as_bytes())), |_| ()).unwrap_err();
        assert!(fault.to_string().contains("reserved"), "{fault}");
    }
}
