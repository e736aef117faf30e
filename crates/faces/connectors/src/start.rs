//! What is fixed when a connector is defined: its id, and where a sink begins.

use crate::document::{FieldFault, SinkDocument, fault, read_value};
use crate::view::{ConnectorKind, StartPoint};
use serde_json::Value;
use wellspring_connectors::sink::StartAt;
use wellspring_host::http::Host;
use wellspring_host::random;
use wellspring_log::Work;
use wellspring_types::hex;

/// Bytes of an id.
const ID_BYTES: usize = 6;

/// Generates the id of a connector.
///
/// # Errors
/// The system provides no random bytes.
pub(crate) fn draw_id() -> std::io::Result<String> {
    Ok(hex::digits(&random::bytes::<ID_BYTES>()?))
}

/// Where a newly defined sink begins; a source has its place in its own log.
///
/// # Errors
/// The field at fault: the log does not exist, or ends before that.
pub(crate) fn start_position(
    host: &Host,
    kind: ConnectorKind,
    definition: &Value,
) -> Result<StartPoint, FieldFault> {
    if kind == ConnectorKind::Source {
        return Ok(StartPoint::default());
    }
    let sink = read_value::<SinkDocument>(definition.clone())?.definition()?;
    start_in(host, &sink.log, sink.start)
}

/// Where reading a log begins.
///
/// # Errors
/// The field at fault: the log does not exist, or ends before that.
pub(crate) fn start_in(host: &Host, log: &str, start: StartAt) -> Result<StartPoint, FieldFault> {
    let Some(log) = host.node.get(log) else {
        return fault(
            "log",
            format!("names a log that does not exist: create it with PUT /v1/logs/{log}"),
        );
    };
    let head = log.head();
    let position = match start {
        StartAt::Beginning => 0,
        StartAt::Now => head,
        StartAt::After(position) if position > head => {
            let rule = format!("must be at most the position of the last event, {head}");
            return fault("from", rule);
        }
        StartAt::After(position) => position,
        StartAt::Since(time_us) if time_us > host.clock.wall_us() => {
            return fault(
                "from",
                "must be a time that has come; \"now\" begins with what comes next",
            );
        }
        // Some dozens of events are looked at, however long the log is.
        StartAt::Since(time_us) => {
            let found = log.snapshot().first_since(time_us).step(&mut Work::unbounded());
            found.or_else(|error| fault("from", error.to_string()))? - 1
        }
    };
    Ok(StartPoint { position, history: log.history() })
}
