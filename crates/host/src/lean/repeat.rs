//! Repeated heads. Most requests on a connection start with the same bytes as the previous one,
//! except perhaps for one piece: the digits of Content-Length, or a word of the target. Comparing
//! is cheaper than parsing, and cannot accept anything new: every byte is equal except digits where
//! a length stood, or letters and digits where a word stood.

use super::head::{HeadMeaning, Persistence};
use crate::http::framing::{LENGTH_DIGITS, length};
use std::ops::Range;

/// Longer heads are not remembered.
const MOST_BYTES: usize = 1_024;

/// The piece of a head that may vary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The digits of Content-Length.
    Length(Range<usize>),
    /// A word of the target, of at most this many characters.
    Word(Range<usize>, usize),
    /// Nothing.
    None,
}

/// The last ordinary head of a path, and its parameters.
pub(crate) struct Repeat<P> {
    /// The part before the piece.
    before: Vec<u8>,
    /// The kind of piece.
    kind: Kind,
    /// The part after the piece.
    behind: Vec<u8>,
    pub(crate) meaning: Meaning<P>,
}

/// The meaning of a repeatable head.
pub(crate) struct Meaning<P> {
    /// Its parameters.
    pub(crate) what: HeadMeaning,
    pub(crate) after: Persistence,
    /// The pass of its caller; `None`: public.
    pub(crate) pass: Option<P>,
    /// The client named by proxies.
    pub(crate) forwarded: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Length,
    Word { most: usize },
}

/// A repetition of a remembered head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepeatableHead {
    /// Its length in bytes.
    pub(crate) used: usize,
    /// Position of its word; empty if none varies.
    pub(crate) word: Range<usize>,
    /// The length of its content.
    pub(crate) length: u64,
}

impl<P> Repeat<P> {
    /// Remembers a head instead of the previous one, unless it is too long.
    pub(crate) fn remember(
        slot: &mut Option<Repeat<P>>,
        head: &[u8],
        piece: &Piece,
        meaning: Meaning<P>,
    ) {
        let (at, kind) = match piece {
            Piece::Length(at) => (at.clone(), Kind::Length),
            Piece::Word(at, most) => (at.clone(), Kind::Word { most: *most }),
            // As a word without characters.
            Piece::None => (head.len()..head.len(), Kind::Word { most: 0 }),
        };
        if head.len() > MOST_BYTES {
            return;
        }
        // Where many heads differ, at least the buffer is reused.
        let (mut before, mut behind) = match slot.take() {
            Some(Repeat { before, behind, .. }) => (before, behind),
            None => (Vec::new(), Vec::new()),
        };
        before.clear();
        before.extend_from_slice(&head[..at.start]);
        behind.clear();
        behind.extend_from_slice(&head[at.end..]);
        *slot = Some(Repeat { before, kind, behind, meaning });
    }

    /// If `input` starts with this head, apart from the piece.
    #[inline]
    pub(crate) fn find(&self, input: &[u8]) -> Option<RepeatableHead> {
        let rest = input.strip_prefix(&self.before[..])?;
        let start = self.before.len();
        let piece = match self.kind {
            Kind::Length => {
                rest.iter().take(LENGTH_DIGITS).take_while(|b| b.is_ascii_digit()).count()
            }
            Kind::Word { most } => word_chars(rest, most),
        };
        let (digits, rest) = rest.split_at(piece);
        if !rest.starts_with(&self.behind) {
            return None;
        }
        let used = start + piece + self.behind.len();
        match self.kind {
            Kind::Length => Some(RepeatableHead { used, word: 0..0, length: length(digits)? }),
            Kind::Word { most } if piece == 0 && most > 0 => None,
            Kind::Word { .. } => {
                Some(RepeatableHead { used, word: start..start + piece, length: 0 })
            }
        }
    }
}

/// The length of the word at the start of `bytes`, up to this many characters. What follows the
/// word is compared, so a longer word does not match.
fn word_chars(bytes: &[u8], most: usize) -> usize {
    bytes.iter().take(most).take_while(|b| b.is_ascii_alphanumeric()).count()
}
