//! What can go wrong with keys.

use crate::key::MAX_SUBJECT_BYTES;
use std::{fmt, io};

/// Why the keys cannot be used at all. A retry helps only for [`KeysFault::Io`].
#[derive(Debug)]
pub enum KeysFault {
    /// The store exists and its root does not: without it everything sealed is lost.
    RootMissing {
        /// Where the root should be.
        source: String,
    },
    /// The root cannot be understood.
    Root(RootFault),
    /// The store has keys under this generation, and there is no such root.
    GenerationMissing {
        /// The generation.
        generation: u16,
    },
    /// The root of this generation is another one than that which wrapped the keys.
    WrongRoot {
        /// The generation.
        generation: u16,
    },
    /// The command prints no root that is newer than this generation, so nothing was rotated.
    NoNewerRoot {
        /// The newest generation.
        generation: u16,
    },
    /// A slot of the store, or its header, fails its checksum, or its key cannot be unwrapped.
    Damaged {
        /// Where in the store, in bytes.
        offset: u64,
    },
    /// The store was written by a newer version.
    Version(u32),
    /// No more than 65,535 generations.
    TooManyGenerations,
    /// Reading or writing failed.
    Io {
        /// What was being done.
        doing: &'static str,
        /// The error.
        error: io::Error,
    },
}

impl KeysFault {
    pub(crate) fn io(doing: &'static str) -> impl Fn(io::Error) -> KeysFault {
        move |error| KeysFault::Io { doing, error }
    }
}

impl fmt::Display for KeysFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysFault::RootMissing { source } => write!(
                f,
                "there are keys of data subjects and no root for them ({source}): correct where \
                 it is looked for, or put the root back; everything sealed is lost only if no copy \
                 of the root is left"
            ),
            KeysFault::Root(fault) => fault.fmt(f),
            KeysFault::GenerationMissing { generation } => write!(
                f,
                "keys of data subjects are wrapped under the root of generation {generation}, \
                 which is not there: put that root back or, if the root was rotated since, the \
                 newest backup of the keys"
            ),
            KeysFault::WrongRoot { generation } => write!(
                f,
                "the root of generation {generation} is not the one that wrapped the keys of data \
                 subjects: put the right one back; without it what they seal is lost"
            ),
            KeysFault::NoNewerRoot { generation } => write!(
                f,
                "nothing was rotated: the command prints no root newer than generation \
                 {generation}; add one to what it prints"
            ),
            KeysFault::Damaged { offset } => write!(
                f,
                "the store of subject keys is damaged at byte {offset}: put the newest backup of \
                 the keys in its place"
            ),
            KeysFault::Version(version) => write!(
                f,
                "the store of subject keys has format version {version}, which this version does \
                 not support"
            ),
            KeysFault::TooManyGenerations => f.write_str("there are no more generations of roots"),
            KeysFault::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for KeysFault {}

impl From<RootFault> for KeysFault {
    fn from(fault: RootFault) -> KeysFault {
        KeysFault::Root(fault)
    }
}

/// Why a text does not hold roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootFault {
    /// There is no root in it.
    Empty,
    /// This line, from 1, is not a root, or fails its check.
    Line(usize),
    /// Generations do not grow.
    Order,
}

impl fmt::Display for RootFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the root of subject keys ")?;
        match self {
            RootFault::Empty => f.write_str("is empty"),
            RootFault::Line(line) => {
                write!(
                    f,
                    "is damaged in line {line}: put its second copy back, or correct the command \
                     that prints it"
                )
            }
            RootFault::Order => f.write_str("must list its generations in order, each once"),
        }
    }
}

impl std::error::Error for RootFault {}

/// Why something cannot be sealed for a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealRefusal {
    /// Empty, too long, or without a `key:` in front.
    NotASubject,
    /// It looks like an e-mail address or a telephone number, and tags are not sealed.
    Identifying,
    /// It is erased, or about to be. A retry helps after the time given, µs since
    /// 1970 UTC, if the erasure has ended by then.
    Erased {
        /// When its name may be used again, if that is known.
        until_us: Option<u64>,
    },
    /// There are no random bytes, or its key cannot be read or kept. A retry may help.
    Unavailable(String),
}

impl fmt::Display for SealRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SealRefusal::NotASubject => write!(
                f,
                "must be a tag of the form key:value, of at most {MAX_SUBJECT_BYTES} bytes, whose \
                 value is an opaque id, such as \"student:8f14e45f\""
            ),
            SealRefusal::Identifying => f.write_str(
                "looks like an e-mail address or a telephone number; a subject is a tag, and tags \
                 are stored as they are and never erased: name the subject by an opaque id",
            ),
            SealRefusal::Erased { .. } => {
                f.write_str("is erased, or about to be: nothing is sealed for it")
            }
            SealRefusal::Unavailable(why) => write!(f, "has no key: {why}"),
        }
    }
}

impl std::error::Error for SealRefusal {}
