//! What is wrong with a piece of input, and where: enough for a client to mend
//! it without reading our source.

use crate::limits;
use crate::moment::push_rfc3339;
use std::fmt;

/// An input that breaks a rule. Retrying the same input never helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Path of the field at fault, e.g. `events[3].tags[0]`.
    pub field: String,
    /// The rule it breaks.
    pub reason: Reason,
}

/// The rule an input breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A text that must hold at least one byte holds none.
    Empty,
    /// A text or payload is longer than its limit.
    TooLong {
        /// Length found, in bytes.
        bytes: usize,
        /// Longest allowed, in bytes.
        limit: usize,
    },
    /// A list holds more elements than its limit.
    TooMany {
        /// Elements found.
        count: usize,
        /// Most allowed.
        limit: usize,
    },
    /// A query has more items, or an item of it more types or tags, than it may.
    TooManyAsked {
        /// Elements found.
        count: usize,
        /// Most allowed.
        limit: usize,
    },
    /// A query names more types and tags than it may, over all of its items.
    TooManyTerms {
        /// Types and tags named.
        count: usize,
        /// Most allowed.
        limit: usize,
    },
    /// A text holds a control character (U+0000–U+001F, U+007F–U+009F).
    ControlCharacter,
    /// An element of a set repeats an earlier one.
    Duplicate {
        /// What the elements are, in the singular: `tag`.
        element: &'static str,
    },
    /// A time given for an event lies before that of the event before it.
    BeforeLast {
        /// The time of the event before it, µs since 1970 UTC.
        last_us: u64,
    },
    /// A time given for an event has not come yet.
    InFuture {
        /// The time it is, µs since 1970 UTC.
        now_us: u64,
    },
}

impl Reason {
    /// The limit that was passed, where the rule is a limit.
    #[must_use]
    pub fn limit(self) -> Option<usize> {
        match self {
            Reason::TooLong { limit, .. }
            | Reason::TooMany { limit, .. }
            | Reason::TooManyAsked { limit, .. }
            | Reason::TooManyTerms { limit, .. } => Some(limit),
            Reason::Empty
            | Reason::ControlCharacter
            | Reason::Duplicate { .. }
            | Reason::BeforeLast { .. }
            | Reason::InFuture { .. } => None,
        }
    }

    /// Whether a time given for an event does not fit the log. The event itself is valid.
    #[must_use]
    pub fn is_of_time(self) -> bool {
        matches!(self, Reason::BeforeLast { .. } | Reason::InFuture { .. })
    }

    /// Whether the input was too large rather than malformed (HTTP 413 rather than 422). A query
    /// that asks for too much at once is not: its bytes are fewer than it may have.
    #[must_use]
    pub fn is_size(self) -> bool {
        matches!(self, Reason::TooLong { .. } | Reason::TooMany { .. })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Empty => write!(f, "must not be empty"),
            Reason::TooLong { bytes, limit } => {
                write!(f, "is {bytes} bytes long; the limit is {limit} bytes")
            }
            Reason::TooMany { count, limit } => {
                write!(f, "holds {count} elements; the limit is {limit}")
            }
            Reason::TooManyAsked { count, limit } => {
                write!(f, "holds {count} elements; the limit is {limit}: ask in several queries")
            }
            Reason::TooManyTerms { count, limit } => write!(
                f,
                "name {count} types and tags in all; the limit is {limit}: ask in several queries"
            ),
            Reason::ControlCharacter => write!(f, "holds a control character; remove it"),
            Reason::Duplicate { element } => {
                write!(f, "repeats an earlier {element}; remove it")
            }
            Reason::BeforeLast { last_us } => write!(
                f,
                "is before {}, the time of the event before it; the times of a log never decrease",
                moment(*last_us)
            ),
            Reason::InFuture { now_us } => {
                write!(f, "is in the future: it is {} now", moment(*now_us))
            }
        }
    }
}

fn moment(us: u64) -> String {
    let mut text = Vec::with_capacity(27);
    push_rfc3339(&mut text, us);
    String::from_utf8_lossy(&text).into_owned()
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

impl std::error::Error for Invalid {}

impl Invalid {
    /// The same fault seen from the enclosing structure: `prefix` is put before the path.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Invalid {
        self.field = join_path(prefix, &self.field);
        self
    }
}

/// The path of a field: `outer`, and from there `inner` (a member, or an element as `[3]`).
#[must_use]
pub fn join_path(outer: &str, inner: &str) -> String {
    let is_step = !outer.is_empty() && !inner.is_empty() && !inner.starts_with('[');
    format!("{outer}{}{inner}", if is_step { "." } else { "" })
}

/// Checks a type, tag or key: 1 to `limit` bytes, no control characters.
///
/// # Errors
/// The rule broken; the caller knows the field.
pub fn check_text(text: &str, limit: usize) -> Result<(), Reason> {
    if text.is_empty() {
        return Err(Reason::Empty);
    }
    if text.len() > limit {
        return Err(Reason::TooLong { bytes: text.len(), limit });
    }
    // Control characters are the bytes below 0x20, 0x7f, and U+0080–U+009F,
    // which UTF-8 writes as 0xC2 0x80–0x9F. Bytes are checked first because
    // almost every text is ASCII and passes without being decoded.
    let mut previous = 0u8;
    for &byte in text.as_bytes() {
        if byte < 0x20 || byte == 0x7f || (previous == 0xc2 && byte < 0xa0) {
            return Err(Reason::ControlCharacter);
        }
        previous = byte;
    }
    Ok(())
}

/// Checks the tags of one event or query item: count, each text, no duplicate.
///
/// # Errors
/// [`Invalid`] with a path that starts at `tags`.
pub fn check_tags<T: AsRef<str>>(tags: &[T]) -> Result<(), Invalid> {
    if tags.len() > limits::MAX_TAGS {
        let reason = Reason::TooMany { count: tags.len(), limit: limits::MAX_TAGS };
        return Err(Invalid { field: "tags".into(), reason });
    }
    for (i, tag) in tags.iter().enumerate() {
        let tag = tag.as_ref();
        let fault = |reason| Invalid { field: format!("tags[{i}]"), reason };
        check_text(tag, limits::MAX_TAG_BYTES).map_err(fault)?;
        // At most 64 tags: comparing all pairs costs less than a hash set.
        if tags[..i].iter().any(|earlier| earlier.as_ref() == tag) {
            return Err(fault(Reason::Duplicate { element: "tag" }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_found_in_every_range() {
        for bad in ["\0", "a\tb", "\x1f", "\x7f", "\u{80}", "x\u{9f}"] {
            assert_eq!(check_text(bad, 255), Err(Reason::ControlCharacter), "{bad:?}");
        }
        for good in ["a", "ü", "\u{a0}", "\u{c2}\u{a0}", "日本", "course:c1", " "] {
            assert_eq!(check_text(good, 255), Ok(()), "{good:?}");
        }
    }

    #[test]
    fn every_two_byte_text_agrees_with_the_standard_definition() {
        for c in (0u32..0x800).filter_map(char::from_u32) {
            let text = format!("a{c}b");
            assert_eq!(check_text(&text, 9).is_err(), c.is_control(), "{c:?}");
        }
    }

    #[test]
    fn lengths_are_counted_in_bytes() {
        assert_eq!(check_text("", 3), Err(Reason::Empty));
        assert_eq!(check_text("éé", 3), Err(Reason::TooLong { bytes: 4, limit: 3 }));
    }

    #[test]
    fn paths_are_joined_by_dots_but_for_elements() {
        let joined = ["", "b", "[0]", "[0].c"].map(|inner| join_path("a", inner));
        assert_eq!(joined, ["a", "a.b", "a[0]", "a[0].c"]);
        assert_eq!(join_path("", "b"), "b");
    }

    #[test]
    fn a_duplicate_tag_is_named() {
        let fault = check_tags(&["a", "b", "a"]).unwrap_err();
        assert_eq!(fault.to_string(), "tags[2] repeats an earlier tag; remove it");
    }
}
