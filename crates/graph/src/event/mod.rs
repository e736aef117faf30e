//! Events: a net change set as JSON, in one event or several, and back.
//!
//! ```json
//! {"nodes":[{"id":7,"new":["Person"],"set":{"name":"Ann"}},
//!           {"id":3,"label":["X"],"unlabel":["Y"],"set":{"n":2},"unset":["k"]},{"id":9,"gone":true}],
//!  "rels":[{"id":1,"new":"KNOWS","from":7,"to":3,"set":{"since":{"$type":"Date","_value":"2020-01-02"}}}]}
//! ```
//! A change set that is too large for one event is told in parts, which have `"tx"`, `"part"` and
//! `"of"` besides; an entity may go on in a later part.

mod decode;
mod encode;
mod fragment;
mod json;
mod parts;
mod schema;
mod value;

pub(crate) use decode::decode_changes;
pub(crate) use encode::encode;
pub(crate) use parts::{Part, merge};
pub(crate) use schema::decode_schema;
pub(crate) use value::{put_json, put_text};

/// The type of events that change nodes and relationships.
pub const GRAPH_CHANGED: &str = "GraphChanged";
/// The type of events that change indexes and constraints.
pub const GRAPH_SCHEMA_CHANGED: &str = "GraphSchemaChanged";

/// What begins the tag of a label.
pub const LABEL_TAG: &str = "label:";
/// What begins the tag of a relationship type.
pub const TYPE_TAG: &str = "rel:";

/// Payloads longer than this are told in parts.
const PART_BYTES: usize = 512 << 10;
/// Most tags of an event.
const MAX_TAGS: usize = 60;
/// Longest property, as JSON: with its entity's labels it fits an event.
const MAX_PROPERTY_BYTES: usize = 960 << 10;
/// Most parts of a transaction, and most bytes of all: what fits one append.
pub(crate) const MAX_PARTS: usize = 1_000;
const MAX_TRANSACTION_BYTES: usize = 15 << 20;

/// Why an event is nonsense: it then changes nothing.
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
