//! Every limit on what one request or event may hold, in one place. The server
//! adds its own limits on connections and time in its configuration; these here
//! are part of the meaning of an event and do not vary between installations,
//! because a log written by one must be readable by all.

/// Longest event type, in bytes of UTF-8. Stored behind a one-byte length.
pub const MAX_TYPE_BYTES: usize = 255;
/// Longest tag, in bytes of UTF-8. Stored behind a one-byte length.
pub const MAX_TAG_BYTES: usize = 255;
/// Most tags one event, or one query item, may carry.
pub const MAX_TAGS: usize = 64;
/// Most metadata entries one event may carry.
pub const MAX_METADATA_ENTRIES: usize = 64;
/// Longest metadata key, in bytes of UTF-8.
pub const MAX_METADATA_KEY_BYTES: usize = 255;
/// Longest metadata value, in bytes of UTF-8.
pub const MAX_METADATA_VALUE_BYTES: usize = 4096;
/// Largest payload of one event, in bytes.
pub const MAX_DATA_BYTES: usize = 1 << 20;
/// Most events one append may carry.
pub const MAX_EVENTS: usize = 1000;
/// Largest append, in bytes as encoded on disk; the server applies the same
/// number to a request's body.
pub const MAX_REQUEST_BYTES: usize = 16 << 20;
/// Longest `Idempotency-Key`, in bytes.
pub const MAX_REQUEST_KEY_BYTES: usize = 255;
/// Most items one query may hold.
pub const MAX_QUERY_ITEMS: usize = 256;
/// Most types one query item may name.
pub const MAX_QUERY_TYPES: usize = 256;
/// Most types and tags one query may name over all of its items, a term counted each time it is
/// named. It bounds the look-ups that reading or judging the query takes in each segment: 256 items
/// of 16 terms each, or 12 items of 256 types and 64 tags.
pub const MAX_QUERY_TERMS: usize = 4096;

// Lengths of types, tags and keys are stored in one byte, tag and metadata
// counts too; a payload must fit in a request with room for its envelope.
const _: () = assert!(MAX_TYPE_BYTES <= u8::MAX as usize);
const _: () = assert!(MAX_TAG_BYTES <= u8::MAX as usize);
const _: () = assert!(MAX_REQUEST_KEY_BYTES <= u8::MAX as usize);
const _: () = assert!(MAX_METADATA_KEY_BYTES <= u8::MAX as usize);
const _: () = assert!(MAX_METADATA_VALUE_BYTES <= u16::MAX as usize);
const _: () = assert!(MAX_TAGS <= u8::MAX as usize);
// The largest item, and the largest number of small items, are legal by themselves.
const _: () = assert!(MAX_QUERY_TYPES + MAX_TAGS <= MAX_QUERY_TERMS);
const _: () = assert!(MAX_QUERY_ITEMS * 16 <= MAX_QUERY_TERMS);
const _: () = assert!(MAX_METADATA_ENTRIES <= u8::MAX as usize);
const _: () = assert!(
    MAX_DATA_BYTES
        + MAX_TYPE_BYTES
        + MAX_TAGS * (MAX_TAG_BYTES + 1)
        + MAX_METADATA_ENTRIES * (MAX_METADATA_KEY_BYTES + MAX_METADATA_VALUE_BYTES + 3)
        + 1024
        < MAX_REQUEST_BYTES
);
