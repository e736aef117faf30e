//! Documents of sinks: their meaning, and the field at fault.

use super::*;
use crate::document::{read_body, read_value};
use serde_json::json;

fn definition(value: Value) -> Result<SinkDefinition, FieldFault> {
    read_value::<SinkDocument>(value)?.definition()
}

#[test]
fn brokers_make_a_kafka_sink_and_a_url_a_webhook() {
    let kafka = definition(json!({
        "brokers": ["a:9092", "b:9093"], "topic": "orders", "partition_by": "customer", "from": "now",
        "create_topic": {"partitions": 6}, "tls": true, "sasl": {"mechanism": "PLAIN", "user": "u", "password_secret": "kafka"}
    }))
    .unwrap();
    assert_eq!((kafka.log.as_str(), kafka.start), ("main", StartAt::Now));
    let Target::Kafka(target) = kafka.target else { panic!("a Kafka sink") };
    assert_eq!(target.mode, DeliveryMode::ExactlyOnce);
    assert_eq!(target.cursor_topic, "wellspring.cursors");
    let created = target.create_topic.map(|topic| (topic.partitions, topic.replicas));
    assert_eq!(created, Some((Some(6), None)));
    assert_eq!(target.connection.sasl.map(|sasl| sasl.password_secret), Some("kafka".to_owned()));
    let hook = definition(json!({"url": "https://h.example/x", "from": 7, "log": "a"})).unwrap();
    assert_eq!((hook.log.as_str(), hook.start), ("a", StartAt::After(7)));
    let Target::Webhook(target) = hook.target else { panic!("a webhook") };
    assert_eq!((target.in_flight, target.timeout_ms, target.max_tries), (64, 10_000, None));
}

#[test]
fn the_field_at_fault_is_named() {
    let kafka = |more: Value| {
        let mut document = json!({"brokers": ["a:9092"], "topic": "t"});
        let members = more.as_object().unwrap().clone();
        document.as_object_mut().unwrap().extend(members);
        document
    };
    let hook = |more: Value| {
        let mut document = json!({"url": "http://a"});
        document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        document
    };
    for (document, field) in [
        (json!({}), "brokers"),
        (json!({"brokers": [], "topic": "t"}), "brokers"),
        (json!({"brokers": ["nowhere"], "topic": "t"}), "brokers[0]"),
        (json!({"brokers": ["a:1"]}), "topic"),
        (kafka(json!({"topic": "a b"})), "topic"),
        (kafka(json!({"topic": "wellspring.cursors"})), "cursor_topic"),
        (kafka(json!({"url": "http://a"})), "url"),
        (kafka(json!({"mode": "once"})), "mode"),
        (kafka(json!({"create_topic": {"partitions": 0}})), "create_topic.partitions"),
        (kafka(json!({"create_topic": {"replicas": 0}})), "create_topic.replicas"),
        (hook(json!({"create_topic": {}})), "create_topic"),
        (kafka(json!({"format": "xml"})), "format"),
        (kafka(json!({"from": -1})), "from"),
        (kafka(json!({"from": "later"})), "from"),
        (kafka(json!({"from": "2026-13-01"})), "from"),
        (kafka(json!({"log": "system"})), "log"),
        (kafka(json!({"log": "No"})), "log"),
        (kafka(json!({"in_flight": 3})), "in_flight"),
        (kafka(json!({"partition_by": "a:"})), "partition_by"),
        (kafka(json!({"query": {"items": [{"tags": [1]}]}})), "query.items[0].tags[0]"),
        (
            kafka(json!({"sasl": {"mechanism": "PLAIN", "user": "u", "password_secret": "p"}})),
            "sasl.mechanism",
        ),
        (
            kafka(json!({"sasl": {"mechanism": "X", "user": "u", "password_secret": "p"}})),
            "sasl.mechanism",
        ),
        (
            kafka(
                json!({"sasl": {"mechanism": "SCRAM-SHA-256", "user": "u", "password_secret": "../p"}}),
            ),
            "sasl.password_secret",
        ),
        (hook(json!({"mode": "at-least-once"})), "mode"),
        (hook(json!({"in_flight": 0})), "in_flight"),
        (hook(json!({"timeout_ms": 1})), "timeout_ms"),
        (hook(json!({"max_tries": 0})), "max_tries"),
        (hook(json!({"dead_letter_log": "dead"})), "max_tries"),
        (hook(json!({"dead_letter_log": "main", "max_tries": 3})), "dead_letter_log"),
        (hook(json!({"headers": {"Host": "x"}})), "headers.Host"),
        (hook(json!({"headers": {"a": "x\r\ny: z"}})), "headers.a"),
        (hook(json!({"headers": {"a b": "x"}})), "headers.a b"),
        (hook(json!({"secret_headers": {"Authorization": "a/b"}})), "secret_headers.Authorization"),
        (hook(json!({"secret": ""})), "secret"),
    ] {
        let refused = definition(document.clone()).unwrap_err();
        assert_eq!(refused.field, field, "{document}: {refused:?}");
    }
}

#[test]
fn wrong_types_and_unknown_fields_are_told_by_their_path() {
    for (body, status, field) in [
        (r#"{"brokers":"a:1"}"#, 422, "brokers"),
        (r#"{"brokers":["a:1"],"topic":"t","sasl":{"mechanism":1}}"#, 422, "sasl.mechanism"),
        (r#"{"urll":"http://a"}"#, 422, "urll"),
        (r#"{"url":"http://a","url":"http://b"}"#, 422, ""),
        (r#"{"url":"#, 400, ""),
        (r#"[]"#, 422, ""),
    ] {
        let refused = read_body::<SinkDocument>(body.as_bytes()).unwrap_err();
        assert_eq!(refused.kind.status, status, "{body}");
        let told = refused.field.clone().unwrap_or_default();
        assert_eq!(told, field, "{body}: {}", refused.detail);
    }
}

#[test]
fn what_is_stored_is_read_again_as_the_same() {
    let body = r#"{"url":"http://a","query":{"items":[{"types":["A"]}]},"max_tries":3,"dead_letter_log":"dead"}"#;
    let document: SinkDocument = read_body(body.as_bytes()).unwrap();
    let (meant, stored) = (document.definition().unwrap(), document.stored().unwrap());
    assert_eq!(definition(stored.clone()).unwrap(), meant);
    let again: SinkDocument = read_value(stored.clone()).unwrap();
    assert_eq!(again.stored().unwrap(), stored);
}
