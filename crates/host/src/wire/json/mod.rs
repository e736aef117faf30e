//! JSON of requests and answers: read with the position of each fault, written without changing a
//! payload's bytes.

mod answer;
mod document;
mod read;
mod write;

pub use answer::{Rfc3339, to_json};
pub use document::{Outcome, document, missing, once, rule, unknown};
pub use read::{Cursor, Fault, FaultKind, MAX_DEPTH};
pub use write::{push_list, push_lossy, push_string, push_tags, push_u64};
