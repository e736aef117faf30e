//! JSON as it travels: read without losing where a fault is, written without
//! touching a payload's bytes.

mod document;
mod read;
mod write;

pub(crate) use document::{Outcome, document, missing, once, rule, unknown};
pub(crate) use read::{Cursor, Fault, FaultKind, MAX_DEPTH};
pub(crate) use write::{push_list, push_lossy, push_string, push_tags, push_u64};
