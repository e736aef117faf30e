//! The names of newline-delimited JSON. No standard has one, so every tool has its own.

/// The name in answers, and in documents.
pub const NDJSON: &str = "application/x-ndjson";

const NAMES: [&str; 10] = [
    NDJSON,
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonl",
    "application/jsonlines",
    "application/x-jsonlines",
    "application/json-lines",
    "application/x-json-lines",
    "application/x-ldjson",
    "application/ldjson",
];

/// Whether a media type without parameters is newline-delimited JSON, in any case.
#[must_use]
pub fn is_ndjson(media: &[u8]) -> bool {
    NAMES.iter().any(|name| media.eq_ignore_ascii_case(name.as_bytes()))
}
