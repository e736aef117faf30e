//! A version as bytes: exactly this version, whatever is written meanwhile.
//!
//! ```text
//! head: form, position, next node, next relationship
//! names, in order of number
//! schema items: number, name, kind, subject, keys
//! pages of nodes, of relationships: number, places as bits, rows preceded by their length
//! five trees, sorted: number of bytes shared with the previous key, remaining bytes
//! ```
//! Counts are not written: they are derived.

mod blocks;
mod decode;
mod encode;

pub(crate) use blocks::{BlockWriter, next_block};
pub(crate) use decode::GraphReader;

/// Version of the format. The first had no indexes of vectors and words; it is read as well.
const FORM: u64 = 2;

const HEAD: u8 = 1;
const NAMES: u8 = 2;
const SCHEMA: u8 = 3;
const NODES: u8 = 4;
const RELATIONSHIPS: u8 = 5;
const OUTGOING: u8 = 6;
const INCOMING: u8 = 7;
const LABELS: u8 = 8;
const TYPES: u8 = 9;
const INDEX: u8 = 10;
/// Kinds from this number on are not part of the version.
pub(crate) const BEYOND: u8 = 11;
