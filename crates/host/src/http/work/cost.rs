//! The estimated cost of work before it starts: whether a serving thread may run it.

/// Bodies over this size, in bytes, are parsed elsewhere: parsing takes a few µs per KiB.
const SHORT_BODY_BYTES: usize = 16 << 10;
/// Queries and conditions with more types and tags are compiled and evaluated elsewhere: each takes
/// a fraction of a µs, and there may be thousands.
const SHORT_TERMS: usize = 64;

/// Where a piece of work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Price {
    /// A serving thread may run it.
    Short,
    /// It runs elsewhere.
    Dear,
}

impl Price {
    /// For parsing this many bytes.
    pub fn of_bytes(bytes: usize) -> Price {
        if bytes > SHORT_BODY_BYTES { Price::Dear } else { Price::Short }
    }

    /// For compiling and looking up this many types and tags.
    pub fn of_terms(terms: usize) -> Price {
        if terms > SHORT_TERMS { Price::Dear } else { Price::Short }
    }
}
