//! What clients ask of links, and what becomes of it.

use super::Code;
use super::url::UrlFault;
use std::fmt;

/// Number of candidate codes tried for a deterministic link. By chance hardly any URL needs a
/// third, but an attacker can compute the codes and take them, and the search runs under a lock.
pub(super) const MOST_CANDIDATES: usize = 64;

/// How a link gets its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The next code of the permuted counter.
    Automatic,
    /// The code that the client chose.
    Alias(Code),
    /// A code derived from the URL: the same URL always gets the same code.
    Deterministic,
}

/// A link to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Its target, already checked by [`check`](super::url::check).
    pub url: String,
    /// How it gets its code.
    pub naming: Naming,
    /// Expiry, µs since 1970 UTC.
    pub expires_at_us: Option<u64>,
    /// How often it may be followed, from once.
    pub max_clicks: Option<u32>,
    /// At most [`MAX_TAGS`](super::MAX_TAGS), all different.
    pub tags: Vec<String>,
    /// Its URL and tags, if they are sealed.
    pub sealed: Option<SealedTarget>,
}

/// The URL and the tags of a link, sealed for a data subject. The fold never sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedTarget {
    /// The data subject, which becomes the second tag of the event.
    pub subject: String,
    /// The sealed parts of the event.
    pub parts: Vec<u8>,
}

/// A change to a link; `None` leaves a property unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The link.
    pub code: Code,
    /// The new target.
    pub url: Option<String>,
    /// Whether it redirects.
    pub enabled: Option<bool>,
    /// The new expiry; `Some(None)`: never.
    pub expires_at_us: Option<Option<u64>>,
    /// How often it may be followed, clicks so far included; `Some(None)`: any number of times.
    pub max_clicks: Option<Option<u32>>,
    /// All its tags from now on.
    pub tags: Option<Vec<String>>,
    /// Its new URL and tags, if they are sealed. `url` has to be there, too.
    pub sealed: Option<SealedTarget>,
}

/// A change requested by a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Creates a link.
    Create(Create),
    /// Changes a link.
    Change(Change),
    /// Deletes a link permanently.
    Delete {
        /// The link.
        code: Code,
    },
    /// Follows a link that may be followed a number of times only.
    Click {
        /// The link.
        code: Code,
        /// The data of the click's event.
        data: Vec<u8>,
    },
}

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkOutcome {
    /// The link was created.
    Created(Code),
    /// The link existed already.
    Existing(Code),
    /// The link is as the command wants it.
    Changed(Code),
    /// The link was deleted.
    Deleted(Code),
    /// The link was followed.
    Clicked(Code),
}

/// Why a command is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkRefusal {
    /// A link has, or had, this alias.
    AliasTaken(Code),
    /// The alias is a word that the server reserves.
    Reserved(Code),
    /// No link has this code.
    Unknown(Code),
    /// The link was deleted.
    Deleted(Code),
    /// The link has been followed as often as it may be.
    UsedUp(Code),
    /// The URL is not allowed for a link.
    Url(UrlFault),
    /// There are too many tags, one is too long, or one is repeated.
    Tags,
    /// The link's tags are sealed with its URL, and would be stored in the clear.
    SealedTags(Code),
    /// The expiry is later than the year 9999.
    TooLate,
    /// Every code is taken.
    Exhausted,
    /// The first `MOST_CANDIDATES` codes derived from the URL are taken.
    CandidatesTaken,
}

impl fmt::Display for LinkRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkRefusal::AliasTaken(code) => write!(f, "the alias {code} is taken; choose another"),
            LinkRefusal::Reserved(code) => {
                write!(f, "the alias {code} is reserved; choose another")
            }
            LinkRefusal::Unknown(code) => write!(f, "no link has the code {code}"),
            LinkRefusal::Deleted(code) => write!(f, "the link {code} has been deleted"),
            LinkRefusal::UsedUp(code) => {
                write!(f, "the link {code} has been followed as often as it may be")
            }
            LinkRefusal::Url(fault) => fault.fmt(f),
            LinkRefusal::Tags => write!(
                f,
                "a link has at most {} different tags of at most {} bytes, without control characters",
                super::MAX_TAGS,
                super::MAX_TAG_BYTES
            ),
            LinkRefusal::SealedTags(code) => write!(
                f,
                "the tags of {code} are sealed for a data subject; send url and tags with \
                 Wellspring-Subject"
            ),
            LinkRefusal::TooLate => {
                f.write_str("a link must expire before the year 10000, or never")
            }
            LinkRefusal::Exhausted => f.write_str("all codes are in use"),
            LinkRefusal::CandidatesTaken => write!(
                f,
                "the first {MOST_CANDIDATES} codes derived from this URL are taken by other links; \
                 choose an alias or omit deterministic"
            ),
        }
    }
}
