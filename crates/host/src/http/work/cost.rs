//! The estimated cost of work before it starts: whether a serving thread may run it.

/// Bodies over this size, in bytes, are parsed elsewhere: parsing takes a few µs per KiB.
pub const MAX_SHORT_BODY_BYTES: usize = 16 << 10;
/// Queries and conditions with more types and tags are compiled and evaluated elsewhere: each takes
/// a fraction of a µs, and there may be thousands.
const SHORT_TERMS: usize = 64;

/// Whether a piece of work is cheap enough for a serving thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// A serving thread may run it.
    Cheap,
    /// It runs in the room for bounded work.
    Expensive,
}

impl Cost {
    /// For parsing this many bytes.
    pub fn of_bytes(bytes: usize) -> Cost {
        if bytes > MAX_SHORT_BODY_BYTES { Cost::Expensive } else { Cost::Cheap }
    }

    /// For compiling and looking up this many types and tags.
    pub fn of_terms(terms: usize) -> Cost {
        if terms > SHORT_TERMS { Cost::Expensive } else { Cost::Cheap }
    }
}
