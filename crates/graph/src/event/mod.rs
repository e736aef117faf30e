//! Events: encode a net change set as JSON in one or more events, and decode it.
//!
//! ```json
//! {"nodes":[{"id":7,"new":["Person"],"set":{"name":"Ann"}},
//!           {"id":3,"label":["X"],"unlabel":["Y"],"set":{"n":2},"unset":["k"]},{"id":9,"gone":true}],
//!  "rels":[{"id":1,"new":"KNOWS","from":7,"to":3,"set":{"since":{"$type":"Date","_value":"2020-01-02"}}}]}
//! ```
//! A change set that is too large for one event is split into parts, which also have `"tx"`,
//! `"part"` and `"of"`; an entity may continue in a later part.

mod decode;
mod encode;
mod fragment;
mod json;
mod parts;
mod schema;
mod value;

pub(crate) use decode::decode_changes;
pub(crate) use encode::encode;
pub(crate) use parts::{Part, PartPlace, merge};
pub(crate) use schema::decode_schema;
pub(crate) use value::{put_json, put_text};

/// The type of events that change nodes and relationships.
pub const GRAPH_CHANGED: &str = "GraphChanged";
/// The type of events that change indexes and constraints.
pub const GRAPH_SCHEMA_CHANGED: &str = "GraphSchemaChanged";

/// Prefix of a label's tag.
pub const LABEL_TAG: &str = "label:";
/// Prefix of a relationship type's tag.
pub const TYPE_TAG: &str = "rel:";

/// Payloads longer than this are split into parts.
const PART_BYTES: usize = 512 << 10;
/// Maximum number of tags of an event.
const MAX_TAGS: usize = 60;
/// Maximum size of a property as JSON: it fits into an event together with its entity's labels.
const MAX_PROPERTY_BYTES: usize = 960 << 10;
/// Maximum number of parts of a transaction, and of all their bytes: what fits into one append.
pub(crate) const MAX_PARTS: usize = 1_000;
const MAX_TRANSACTION_BYTES: usize = 15 << 20;

/// Why an event is invalid; the fold ignores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFault(pub(crate) String);

impl std::fmt::Display for EventFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EventFault {}

fn fault<T>(text: impl Into<String>) -> Result<T, EventFault> {
    Err(EventFault(text.into()))
}
