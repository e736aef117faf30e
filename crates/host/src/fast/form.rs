//! Answers that are known beforehand but for one piece, so that a stack can write the rest down once.

/// An answer, but for what frames it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Its status.
    pub status: u16,
    /// Its content type; empty for none.
    pub content_type: &'static str,
    /// Further headers, their names in small letters, their values visible ASCII.
    pub headers: Vec<(&'static str, String)>,
    /// What varies from answer to answer.
    pub varies: Varies,
}

/// What varies of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Varies {
    /// Nothing: this is its content.
    Nothing(&'static [u8]),
    /// The value of one more header, the first of all; there is no content. The value is visible
    /// ASCII: whoever appends it sees to that.
    Header(&'static str),
    /// Its content.
    Content,
}
