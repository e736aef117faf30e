//! A version as bytes: exactly this version, whatever goes on meanwhile.
//!
//! ```text
//! head: form, position, next node, next relationship
//! names, in order of number
//! schema items: number, name, kind, subject, keys
//! pages of nodes, of relationships: number, places as bits, rows with their length before them
//! five trees, sorted: bytes shared with the key before, the rest
//! ```
//! Counts are not written: they come of the rest.

mod blocks;
mod decode;
mod encode;

pub(crate) use blocks::{BlockWriter, next_block};
pub(crate) use decode::GraphReader;

/// Changes when the form does.
const FORM: u64 = 1;

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
/// Kinds from here on are no part of the version.
pub(crate) const BEYOND: u8 = 11;
