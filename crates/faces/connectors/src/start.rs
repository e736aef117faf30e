//! What is fixed when a connector is defined: its id, and where a sink begins.

use crate::document::{FieldFault, SinkDocument, fault, read_value};
use crate::view::ConnectorKind;
use serde_json::Value;
use wellspring_connectors::sink::StartAt;
use wellspring_host::http::Host;
use wellspring_host::{hex, random};
use wellspring_types::Position;

/// Bytes of an id.
const ID_BYTES: usize = 6;

/// Generates the id of a connector.
///
/// # Errors
/// The system provides no random bytes.
pub(crate) fn draw_id() -> std::io::Result<String> {
    let mut id = String::with_capacity(2 * ID_BYTES);
    hex::push(&mut id, &random::bytes::<ID_BYTES>()?);
    Ok(id)
}

/// The position after which a newly defined sink begins; 0 for a source.
///
/// # Errors
/// The field at fault: the log does not exist, or ends before that.
pub(crate) fn start_position(
    host: &Host,
    kind: ConnectorKind,
    definition: &Value,
) -> Result<Position, FieldFault> {
    if kind == ConnectorKind::Source {
        return Ok(0);
    }
    let sink = read_value::<SinkDocument>(definition.clone())?.definition()?;
    start_in(host, &sink.log, sink.start)
}

/// The position of a log after which reading begins.
///
/// # Errors
/// The field at fault: the log does not exist, or ends before that.
pub(crate) fn start_in(host: &Host, log: &str, start: StartAt) -> Result<Position, FieldFault> {
    let Some(log) = host.node.get(log) else {
        return fault(
            "log",
            format!("names a log that does not exist: create it with PUT /v1/logs/{log}"),
        );
    };
    let head = log.head();
    match start {
        StartAt::Beginning => Ok(0),
        StartAt::Now => Ok(head),
        StartAt::After(position) if position > head => {
            fault("from", format!("must be at most the position of the last event, {head}"))
        }
        StartAt::After(position) => Ok(position),
    }
}
