//! Answers that are constant except for a few pieces, so that a stack can prepare the rest once.

use crate::wire::problem::{self, Problem};

/// Most varying headers of a form.
pub const MOST_VARYING_HEADERS: usize = 4;

/// An answer without its framing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Its status.
    pub status: u16,
    /// Its content type; empty for none.
    pub content_type: &'static str,
    /// Further headers, with lower-case names and visible ASCII values.
    pub headers: Vec<(&'static str, String)>,
    /// Headers with varying values, before all others and in this order; at most
    /// [`MOST_VARYING_HEADERS`]. The path must write visible ASCII values.
    pub varying_headers: &'static [&'static str],
    /// Its content.
    pub content: FormContent,
}

/// The content of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormContent {
    /// Constant; empty for none, which a status without content (204, 304) requires.
    Fixed(&'static [u8]),
    /// Different in each answer.
    Varying,
}

impl Form {
    /// Its content as a stack frames it: none, not even a length of 0, if its status has none (RFC
    /// 9110, 8.6 and 15.4.5).
    pub(crate) fn framed_content(&self) -> Option<FormContent> {
        let has_none = matches!(self.status, 204 | 304);
        debug_assert!(!has_none || self.content == FormContent::Fixed(b""), "{self:?}");
        debug_assert!(self.varying_headers.len() <= MOST_VARYING_HEADERS, "{self:?}");
        (!has_none).then_some(self.content)
    }
}

/// The varying pieces of one answer, in one reusable buffer.
#[derive(Debug, Default)]
pub struct Varying {
    bytes: Vec<u8>,
    /// Where the value of each header ends.
    ends: [usize; MOST_VARYING_HEADERS],
    headers: usize,
    /// Start of the content, which is the end of the last header.
    content_at: usize,
    stage: Stage,
}

/// What has been written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// At most headers.
    #[default]
    Headers,
    /// Content, too.
    Content,
    /// A header after the content, or more than any form may have.
    Spoilt,
}

impl Varying {
    /// Without pieces.
    pub const fn new() -> Varying {
        let ends = [0; MOST_VARYING_HEADERS];
        Varying { bytes: Vec::new(), ends, headers: 0, content_at: 0, stage: Stage::Headers }
    }

    /// Has the value of the next varying header appended to its argument. Call it once for each, in
    /// order, before [`content`](Self::content).
    #[inline]
    pub fn header<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let written = write(&mut self.bytes);
        match (self.stage, self.ends.get_mut(self.headers)) {
            (Stage::Headers, Some(end)) => {
                self.content_at = self.bytes.len();
                *end = self.content_at;
                self.headers += 1;
            }
            _ => self.stage = Stage::Spoilt,
        }
        written
    }

    /// The buffer for the content, if the form's varies.
    #[inline]
    pub fn content(&mut self) -> &mut Vec<u8> {
        if self.stage == Stage::Headers {
            self.stage = Stage::Content;
        }
        &mut self.bytes
    }

    /// The value of a varying header, by index; empty if it has not been written.
    #[inline]
    pub fn header_at(&self, place: usize) -> &[u8] {
        self.headers().nth(place).unwrap_or_default()
    }

    /// The values of the varying headers.
    #[inline]
    pub(crate) fn headers(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().take(self.headers).map(move |&end| {
            let value = self.bytes.get(from..end).unwrap_or_default();
            from = end;
            value
        })
    }

    /// The content that has been written.
    #[inline]
    pub fn written_content(&self) -> &[u8] {
        self.bytes.get(self.content_at..).unwrap_or_default()
    }

    /// Clears the pieces and keeps the buffer.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.headers = 0;
        self.content_at = 0;
        self.stage = Stage::Headers;
    }

    /// Checks that the pieces fit a form with this many varying headers and such content.
    ///
    /// # Errors
    /// [`Misfit`]: its path has a bug.
    #[inline]
    pub(crate) fn fit(&self, headers: usize, content: Option<FormContent>) -> Result<(), Misfit> {
        let wrote = match content {
            Some(FormContent::Varying) => self.stage != Stage::Spoilt,
            Some(FormContent::Fixed(_)) | None => {
                self.stage == Stage::Headers && self.bytes.len() == self.content_at
            }
        };
        if wrote && self.headers == headers { Ok(()) } else { Err(Misfit) }
    }
}

/// A path has written pieces that do not fit its form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit;

impl From<Misfit> for Box<Problem> {
    #[cold]
    fn from(Misfit: Misfit) -> Box<Problem> {
        debug_assert!(false, "a path has written other pieces than its form leaves open");
        problem::INTERNAL.because("the answer does not fit its template")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Option<FormContent> = Some(FormContent::Fixed(b""));
    const VARYING: Option<FormContent> = Some(FormContent::Varying);

    fn with(headers: &[&str], content: &str) -> Varying {
        let mut varying = Varying::new();
        for value in headers {
            varying.header(|out| out.extend_from_slice(value.as_bytes()));
        }
        if !content.is_empty() {
            varying.content().extend_from_slice(content.as_bytes());
        }
        varying
    }

    #[test]
    fn pieces_are_read_as_they_were_written_and_the_room_is_kept() {
        let mut varying = with(&["a", "", "long"], "content");
        assert_eq!([0, 1, 2].map(|at| varying.header_at(at)), [&b"a"[..], b"", b"long"]);
        assert_eq!(varying.written_content(), b"content");
        let room = varying.bytes.capacity();
        varying.clear();
        assert_eq!((varying.written_content(), varying.fit(0, FIXED)), (&b""[..], Ok(())));
        assert_eq!(varying.header(|out| out.capacity()), room);
    }

    #[test]
    fn only_what_the_form_leaves_open_fits() {
        assert_eq!(with(&["a", "b"], "").fit(2, FIXED), Ok(()));
        assert_eq!(with(&["a", "b"], "c").fit(2, VARYING), Ok(()));
        assert_eq!(with(&[], "").fit(0, VARYING), Ok(()), "content may be empty");
        for headers in [0, 1, 3] {
            assert_eq!(with(&["a", "b"], "").fit(headers, FIXED), Err(Misfit));
            assert_eq!(with(&["a", "b"], "c").fit(headers, VARYING), Err(Misfit));
        }
        for content in [FIXED, None] {
            assert_eq!(with(&["a"], "c").fit(1, content), Err(Misfit), "its content does not vary");
            assert_eq!(with(&["a"], "").fit(1, content), Ok(()));
        }
        for headers in 0..=4 {
            let five = with(&["1", "2", "3", "4", "5"], "");
            assert_eq!(five.fit(headers, VARYING), Err(Misfit));
            let mut late = with(&["a"], "c");
            late.header(|out| out.push(b'd'));
            assert_eq!(late.fit(headers, VARYING), Err(Misfit));
        }
    }

    #[test]
    fn a_buffer_that_a_path_has_emptied_breaks_nothing() {
        let mut varying = with(&["abc", "def"], "");
        varying.content().clear();
        assert_eq!([0, 1].map(|at| varying.header_at(at)), [&b""[..], b""]);
        assert_eq!(varying.written_content(), b"");
    }
}
