//! A head that comes again. Most requests on a connection begin with the bytes of
//! the one before, except perhaps for one piece: the digits of Content-Length, or a
//! word of the target. Comparing is cheaper than parsing, and can accept nothing that
//! was not accepted before: every byte is equal but for digits that stand where a length
//! stood, or letters and digits that stand where a word stood.

use super::head::{After, LENGTH_DIGITS, Understood, length};
use std::ops::Range;

/// Longer heads are not worth remembering.
const MOST_BYTES: usize = 1_024;

/// The piece of a head that may be another when it comes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The digits of Content-Length.
    Length(Range<usize>),
    /// A word of the target, of at most so many characters.
    Word(Range<usize>, usize),
    /// Nothing.
    None,
}

/// The last head of a path, with nothing special about it, and what it asked for.
pub(crate) struct Repeat<P> {
    /// Up to the piece.
    before: Vec<u8>,
    /// What stands between.
    kind: Kind,
    /// From behind the piece to the end of the head.
    behind: Vec<u8>,
    pub(crate) meaning: Meaning<P>,
}

/// What a head means that may come again.
pub(crate) struct Meaning<P> {
    /// What it asks for.
    pub(crate) what: Understood,
    pub(crate) after: After,
    /// That it may be asked; `None`: anybody may.
    pub(crate) pass: Option<P>,
    /// What proxies say of where it came from.
    pub(crate) forwarded: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Length,
    Word { most: usize },
}

/// A remembered head that has come again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Again {
    /// Its length in bytes.
    pub(crate) used: usize,
    /// Where its word is; empty if none varies.
    pub(crate) word: Range<usize>,
    /// The length of its content.
    pub(crate) length: u64,
}

impl<P> Repeat<P> {
    /// Remembers a head in the place of another, unless it is too long for that.
    pub(crate) fn remember(
        slot: &mut Option<Repeat<P>>,
        head: &[u8],
        piece: &Piece,
        meaning: Meaning<P>,
    ) {
        let (at, kind) = match piece {
            Piece::Length(at) => (at.clone(), Kind::Length),
            Piece::Word(at, most) => (at.clone(), Kind::Word { most: *most }),
            // As a word of no characters.
            Piece::None => (head.len()..head.len(), Kind::Word { most: 0 }),
        };
        if head.len() > MOST_BYTES {
            return;
        }
        // Where many heads differ, they at least need no new memory.
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

    /// If `input` begins with this head, but for the piece.
    #[inline]
    pub(crate) fn find(&self, input: &[u8]) -> Option<Again> {
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
            Kind::Length => Some(Again { used, word: 0..0, length: length(digits)? }),
            Kind::Word { most } if piece == 0 && most > 0 => None,
            Kind::Word { .. } => Some(Again { used, word: start..start + piece, length: 0 }),
        }
    }
}

/// How many characters of a word `bytes` begin with, at most so many. What follows the word is
/// compared, so a longer one does not pass.
fn word_chars(bytes: &[u8], most: usize) -> usize {
    bytes.iter().take(most).take_while(|b| b.is_ascii_alphanumeric()).count()
}
