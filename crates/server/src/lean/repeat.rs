//! A head that comes again. Most requests on a connection begin with the bytes of
//! the one before, except perhaps for the digits of Content-Length or the code of a
//! link. Comparing is cheaper than parsing, and can accept nothing that was not
//! accepted before: every byte is equal but for digits that stand where a length
//! stood, and letters and digits that stand where a code stood.

use super::head::{After, CODE_AT, LENGTH_DIGITS, code_chars, length};
use crate::ingest::Media;
use crate::links::{Told, Visit};
use wellspring_views::links::MAX_CODE_CHARS;

/// Longer heads are not worth remembering.
const MOST_BYTES: usize = 1_024;

/// The last head that was an ingest request with a Content-Length and nothing special.
pub(crate) struct Repeat<P> {
    /// Up to the length's first digit. Empty while nothing is remembered.
    before: Vec<u8>,
    /// From behind the length's last digit to the end of the head.
    behind: Vec<u8>,
    /// What the request asked for.
    pub(crate) target: String,
    pub(crate) media: Media,
    pub(crate) after: After,
    /// That it may be asked. There once a head is remembered.
    pub(crate) pass: Option<P>,
}

impl<P> Repeat<P> {
    /// Nothing to repeat.
    pub(crate) fn new() -> Repeat<P> {
        Repeat {
            before: Vec::new(),
            behind: Vec::new(),
            target: String::new(),
            media: Media::Unspecified,
            after: After::Keep,
            pass: None,
        }
    }

    /// If `input` begins with the remembered head: the head's length in bytes and the body's.
    pub(crate) fn find(&self, input: &[u8]) -> Option<(usize, u64)> {
        let rest = input.strip_prefix(&self.before[..])?;
        let digits = rest.iter().take(LENGTH_DIGITS).take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at(digits);
        if self.behind.is_empty() || !rest.starts_with(&self.behind) {
            return None;
        }
        Some((self.before.len() + digits.len() + self.behind.len(), length(digits)?))
    }

    /// Remembers a head whose length's digits are at `length_at`.
    pub(crate) fn remember(
        &mut self,
        head: &[u8],
        length_at: (usize, usize),
        media: Media,
        after: After,
        pass: P,
    ) {
        // `POST`, a space, the target: what has been parsed looks like this.
        let target = head.split(|&b| b == b' ').nth(1).and_then(|t| std::str::from_utf8(t).ok());
        let Some(target) = target.filter(|_| head.len() <= MOST_BYTES) else { return };
        self.before.clear();
        self.before.extend_from_slice(&head[..length_at.0]);
        self.behind.clear();
        self.behind.extend_from_slice(&head[length_at.1..]);
        target.clone_into(&mut self.target);
        (self.media, self.after, self.pass) = (media, after, Some(pass));
    }
}

/// The last head that asked for a link, and what it told of the visitor.
pub(crate) struct RepeatVisit {
    /// From behind the code to the end of the head. Empty while nothing is remembered.
    behind: Vec<u8>,
    /// What is recorded of a visitor who sends this head.
    pub(crate) visit: Visit,
    pub(crate) after: After,
}

impl RepeatVisit {
    /// Nothing to repeat.
    pub(crate) fn new() -> RepeatVisit {
        RepeatVisit { behind: Vec::new(), visit: Visit::default(), after: After::Keep }
    }

    /// If `input` begins with the remembered head, but for the code: where the code ends, and the head.
    pub(crate) fn find(&self, input: &[u8]) -> Option<(usize, usize)> {
        let rest = input.strip_prefix(b"GET /")?;
        let chars = code_chars(rest);
        if self.behind.is_empty() || chars == 0 || chars > MAX_CODE_CHARS {
            return None;
        }
        let code_end = CODE_AT + chars;
        rest[chars..].starts_with(&self.behind).then_some((code_end, code_end + self.behind.len()))
    }

    /// Takes what a head tells, and remembers it: `behind` is what of it stands behind the code.
    pub(crate) fn remember(&mut self, behind: &[u8], after: After, told: &Told<'_>) {
        self.visit.read(told);
        self.after = after;
        self.behind.clear();
        if behind.len() <= MOST_BYTES {
            self.behind.extend_from_slice(behind);
        }
    }
}
