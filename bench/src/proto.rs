//! UmaDB's messages (`package umadb.v1`, WIRE.md §6), written by hand so that no `protoc` is
//! needed.
//!
//! [`AppendRequest`] is also the workload's own form of a request: the JSON body for Wellspring is
//! written from the same value, so both servers get the same types, tags and data bytes.

use prost::Message;

/// One event of an append or a read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {
    /// The event's type.
    #[prost(string, tag = "1")]
    pub(crate) event_type: String,
    /// Its tags.
    #[prost(string, repeated, tag = "2")]
    pub(crate) tags: Vec<String>,
    /// Its payload; always JSON text here.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) data: Vec<u8>,
    /// Its id; left empty here.
    #[prost(string, tag = "4")]
    pub(crate) uuid: String,
}

/// An event with its position.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SequencedEvent {
    /// The position in the log.
    #[prost(uint64, tag = "1")]
    pub(crate) position: u64,
    /// The event.
    #[prost(message, optional, tag = "2")]
    pub(crate) event: Option<Event>,
}

/// Any of the types and all of the tags.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryItem {
    /// Any of these types; empty means every type.
    #[prost(string, repeated, tag = "1")]
    pub(crate) types: Vec<String>,
    /// All of these tags.
    #[prost(string, repeated, tag = "2")]
    pub(crate) tags: Vec<String>,
}

/// Items joined by OR.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Query {
    /// The items.
    #[prost(message, repeated, tag = "1")]
    pub(crate) items: Vec<QueryItem>,
}

/// What must not be in the log for the append to succeed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AppendCondition {
    /// The query that must match nothing.
    #[prost(message, optional, tag = "1")]
    pub(crate) fail_if_events_match: Option<Query>,
    /// Only events after this position count.
    #[prost(uint64, optional, tag = "2")]
    pub(crate) after: Option<u64>,
}

/// `Append`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AppendRequest {
    /// The events, appended atomically.
    #[prost(message, repeated, tag = "1")]
    pub(crate) events: Vec<Event>,
    /// The condition.
    #[prost(message, optional, tag = "2")]
    pub(crate) condition: Option<AppendCondition>,
}

/// The answer to `Append`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AppendResponse {
    /// Position of the last event.
    #[prost(uint64, tag = "1")]
    pub(crate) position: u64,
}

/// `Read`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadRequest {
    /// What to read; absent means everything.
    #[prost(message, optional, tag = "1")]
    pub(crate) query: Option<Query>,
    /// Events per message; the server's default is 1024, its maximum 4096.
    #[prost(uint32, optional, tag = "6")]
    pub(crate) batch_size: Option<u32>,
}

/// One message of the answer to `Read`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ReadResponse {
    /// Some events, in order.
    #[prost(message, repeated, tag = "1")]
    pub(crate) events: Vec<SequencedEvent>,
    /// The head the read reflects.
    #[prost(uint64, optional, tag = "2")]
    pub(crate) head: Option<u64>,
}

/// The answer to `Head`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeadResponse {
    /// The head; unset on an empty store.
    #[prost(uint64, optional, tag = "1")]
    pub(crate) position: Option<u64>,
}

/// Writes the gRPC frame (flag, length, message) of `message`.
pub(crate) fn write_grpc(message: &impl Message, out: &mut Vec<u8>) {
    let length = message.encoded_len() as u32;
    out.push(0);
    out.extend_from_slice(&length.to_be_bytes());
    message.encode(out).expect("a Vec grows as needed");
}

/// How many events a `ReadResponse` holds, found by walking its outer fields only: the counterpart
/// of counting lines in NDJSON.
pub(crate) fn count_events(mut message: &[u8]) -> Result<u64, prost::DecodeError> {
    use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
    let mut events = 0;
    while !message.is_empty() {
        let (tag, kind) = decode_key(&mut message)?;
        if tag == 1 && kind == WireType::LengthDelimited {
            let length = decode_varint(&mut message)? as usize;
            message = message.get(length..).unwrap_or_default();
            events += 1;
        } else {
            skip_field(kind, tag, &mut message, DecodeContext::default())?;
        }
    }
    Ok(events)
}
