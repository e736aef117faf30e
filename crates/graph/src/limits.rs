//! Limits of a graph.

/// Maximum length of a label, relationship type or property key, in bytes.
pub const MAX_NAME_BYTES: usize = 240;
/// Number of names from which statements cannot introduce new ones. Names of events are never
/// forgotten, those of discarded statements at once. Events may introduce more.
pub const MAX_NAMES: usize = 1 << 20;
/// Maximum number of labels of a node.
pub const MAX_LABELS: usize = 60;
/// Maximum number of properties of a node or relationship: reading or writing one of them costs as
/// much as scanning all.
pub const MAX_PROPERTIES: usize = 10_000;
/// Upper bound of ids.
pub const MAX_ID: u64 = 1 << 48;
/// Ids used by events and below this are never assigned again, however far ahead of the counter
/// they are: the counter skips to them, and plenty of ids remain.
pub const MAX_ID_PASSED: u64 = 1 << 46;
/// How far an event's id at or above that bound may move the counter.
pub const MAX_ID_LEAP: u64 = 1 << 20;
/// Maximum number of keys of an index or constraint.
pub const MAX_INDEX_KEYS: usize = 8;
/// Maximum length of the vectors of an index.
pub const MAX_DIMENSIONS: u16 = 4_096;
/// Maximum number of indexes and constraints of a graph.
pub const MAX_SCHEMA_ITEMS: usize = 1_000;
/// Maximum number of entries of a kind in a footprint before it becomes coarser.
pub const MAX_FOOTPRINT: usize = 4_096;
/// Maximum number of nodes and relationships that a transaction may write: more do not fit into the
/// events of one append.
pub const MAX_WRITES: usize = 1_000_000;
/// Maximum growth of the graph by one transaction, in bytes: more does not fit into the events of
/// one append.
pub const MAX_GROWTH_BYTES: i64 = 64 << 20;
