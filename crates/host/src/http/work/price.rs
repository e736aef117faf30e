//! What is known of a piece of work before it is begun: whether a serving thread may do it.

/// Bodies over this size are parsed elsewhere, in bytes: parsing takes a few µs for each KiB.
const SHORT_BODY_BYTES: usize = 16 << 10;
/// Queries and conditions of more types and tags are compiled and asked elsewhere: each takes a
/// fraction of a µs, and there may be thousands.
const SHORT_TERMS: usize = 64;

/// Where a piece of work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Price {
    /// It may be done by a serving thread.
    Short,
    /// It is done elsewhere.
    Dear,
}

impl Price {
    /// Of parsing so many bytes.
    pub fn of_bytes(bytes: usize) -> Price {
        if bytes > SHORT_BODY_BYTES { Price::Dear } else { Price::Short }
    }

    /// Of compiling so many types and tags, and of looking them up.
    pub fn of_terms(terms: usize) -> Price {
        if terms > SHORT_TERMS { Price::Dear } else { Price::Short }
    }
}
