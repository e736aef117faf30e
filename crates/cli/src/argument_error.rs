//! Why an argument of the command line cannot be used.

use std::fmt;

/// What an argument must be, in a sentence. Clap prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentError(String);

impl ArgumentError {
    /// With a sentence.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgumentError {}

impl From<String> for ArgumentError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<&str> for ArgumentError {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}

impl From<ArgumentError> for String {
    fn from(error: ArgumentError) -> Self {
        error.0
    }
}
