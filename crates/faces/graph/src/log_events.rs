//! The events of a log as values of statements.

use std::sync::Arc;
use wellspring_cypher::error::{Detail, Error, ErrorKind, Result};
use wellspring_cypher::value::Value;
use wellspring_cypher::{EventSink, EventsWanted, LogEvent};
use wellspring_log::{Log, ReadError, ReadOptions, RecordView, Stopped, Work};
use wellspring_types::{DataKind, Query, QueryItem};

/// Steps of a search between two charges.
const STEPS_AT_ONCE: u64 = 16_384;
/// The most bytes that the value of a byte of JSON takes while it is parsed, about.
const BYTES_OF_BYTE: u64 = 32;

/// Passes the wanted events of a log to the sink, as they are on the disk now.
///
/// # Errors
/// Those of the sink; events that cannot be read.
pub(crate) fn pass(log: &Log, wanted: &EventsWanted, sink: &mut dyn EventSink) -> Result<()> {
    let own = |texts: &[Arc<str>]| texts.iter().map(|text| (**text).to_owned()).collect();
    let items = if wanted.types.is_empty() && wanted.tags.is_empty() {
        Vec::new()
    } else {
        vec![QueryItem { types: own(&wanted.types), tags: own(&wanted.tags) }]
    };
    let options = ReadOptions {
        after: Some(wanted.after),
        limit: Some(wanted.limit),
        ..ReadOptions::default()
    };
    let mut events = log.snapshot().read(&Query { items }, options);
    loop {
        events.bound(Work::unbounded().with_step_limit(STEPS_AT_ONCE));
        let next = match events.next() {
            Ok(Some(record)) if wanted.until.is_none_or(|until| record.position() <= until) => {
                Some(event(&record, sink)?)
            }
            Ok(_) => return Ok(()),
            // The search goes on where it stopped.
            Err(ReadError::Stopped(Stopped::Steps)) => None,
            Err(error) => return Err(unreadable(&error)),
        };
        sink.searched(1 + events.work().steps())?;
        if let Some(event) = next {
            sink.event(event)?;
        }
    }
}

fn unreadable(error: &ReadError) -> Error {
    let message = format!("The events of the log cannot be read: {error}");
    Error::runtime(ErrorKind::ProcedureError, Detail::Refused, message)
}

fn event(record: &RecordView<'_>, sink: &mut dyn EventSink) -> Result<LogEvent> {
    let data = match record.kind() {
        DataKind::Binary => Value::Bytes(record.data().into()),
        DataKind::Json => {
            sink.parsing((record.data().len() as u64).saturating_mul(BYTES_OF_BYTE))?;
            let parsed = serde_json::from_slice(record.data());
            value(parsed.map_err(|_| Error::defect("an event's data are no JSON"))?)
        }
    };
    Ok(LogEvent {
        position: record.position(),
        kind: record.event_type().into(),
        tags: record.tags().map(Arc::from).collect(),
        data,
        recorded_us: record.recorded_at_us(),
    })
}

/// JSON as a value; a number that no integer of 64 bits can be is a float.
fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(truth) => Value::Boolean(truth),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => number.as_f64().map_or(Value::Null, Value::Float),
        },
        serde_json::Value::String(text) => Value::string(text),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(value).collect()),
        serde_json::Value::Object(entries) => {
            Value::map(entries.into_iter().map(|(key, entry)| (key.into(), value(entry))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::value;
    use wellspring_cypher::value::Value;

    #[test]
    fn json_becomes_values() {
        let json = r#"{"a":[9223372036854775807,9223372036854775808,1.5,true,null,"x"]}"#;
        let Value::Map(entries) = value(serde_json::from_str(json).unwrap()) else { panic!() };
        let Some(Value::List(items)) = entries.get("a") else { panic!() };
        assert!(matches!(items[0], Value::Integer(i64::MAX)));
        assert!(matches!(items[1], Value::Float(float) if float == 9_223_372_036_854_775_808.0));
        assert!(matches!(items[2], Value::Float(float) if float == 1.5));
        assert!(matches!(&items[5], Value::String(text) if &**text == "x"));
    }
}
