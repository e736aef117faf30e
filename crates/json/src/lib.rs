//! JSON as it travels. What clients send is read without losing where a fault is ([`Cursor`],
//! [`Fault`]); what is known to be well formed is walked over where it lies ([`TrustedCursor`],
//! [`Pointer`]); answers are written without touching a payload's bytes: by hand where it is hot
//! (`push_…`), elsewhere by serde ([`to_json`]). No I/O.

#![forbid(unsafe_code)]

mod answer;
mod document;
mod encoding;
mod pointer;
mod pointer_set;
mod query;
mod read;
mod trusted;
mod write;

pub use answer::{Rfc3339, to_json};
pub use document::{document, missing, once, read_text, rule, unknown};
pub use encoding::{base64_fault, is_wide, without_mark};
pub use pointer::{Pointer, PointerFault};
pub use pointer_set::PointerSet;
pub use query::{push_query, read_items, read_query, read_texts};
pub use read::{Cursor, Fault, FaultKind, MAX_DEPTH, ReadResult, shown_name};
pub use trusted::{TrustedCursor, string_is};
pub use write::{push_list, push_lossy, push_string, push_tags, push_u64};
