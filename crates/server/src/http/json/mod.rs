//! JSON as it travels: read without losing where a fault is, written without
//! touching a payload's bytes.

mod read;
mod write;

pub(crate) use read::{Cursor, Fault, FaultKind, MAX_DEPTH};
pub(crate) use write::{push_list, push_lossy, push_string, push_u64};
