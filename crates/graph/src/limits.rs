//! What a graph may hold.

/// Longest label, relationship type or property key, in bytes.
pub const MAX_NAME_BYTES: usize = 240;
/// How many names a graph may have seen for a statement to bring another: names are never
/// forgotten, also those of statements that came to nothing. Events may bring more.
pub const MAX_NAMES: usize = 1 << 20;
/// Most labels of a node.
pub const MAX_LABELS: usize = 60;
/// Most properties of a node or relationship: to read or write one costs as many.
pub const MAX_PROPERTIES: usize = 10_000;
/// Ids are below this.
pub const MAX_ID: u64 = 1 << 48;
/// Ids of events below this are never given again, however far ahead of the counter they are: it
/// passes them, and plenty are left behind them.
pub const MAX_ID_PASSED: u64 = 1 << 46;
/// How far ahead of the counter the id of an event from there on may move it.
pub const MAX_ID_LEAP: u64 = 1 << 20;
/// Most keys of an index or constraint.
pub const MAX_INDEX_KEYS: usize = 8;
/// Most indexes and constraints of a graph.
pub const MAX_SCHEMA_ITEMS: usize = 1_000;
/// Most entries of a kind in a footprint; more become the coarser kind.
pub const MAX_FOOTPRINT: usize = 4_096;
/// Most nodes and relationships that a transaction may write: more do not fit the events of one
/// append.
pub const MAX_WRITES: usize = 1_000_000;
/// By how many bytes a transaction may make the graph larger: more do not fit the events of one
/// append.
pub const MAX_GROWTH_BYTES: i64 = 64 << 20;
