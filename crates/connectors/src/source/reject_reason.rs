//! Why a record becomes no event.

use std::fmt;

/// What is wrong with a record, in a sentence that the reject log keeps. Read by no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectReason(String);

impl RejectReason {
    /// With a sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RejectReason {}

impl From<String> for RejectReason {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<&str> for RejectReason {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}

impl From<RejectReason> for String {
    fn from(error: RejectReason) -> Self {
        error.0
    }
}
