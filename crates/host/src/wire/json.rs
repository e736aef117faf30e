//! JSON as it travels: that of every crate.

pub use wellspring_json::{
    Cursor, Fault, FaultKind, MAX_DEPTH, ReadResult, Rfc3339, base64_fault, document, is_wide,
    missing, once, push_list, push_lossy, push_string, push_tags, push_u64, read_text, rule,
    to_json, unknown, without_mark,
};
