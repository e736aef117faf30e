//! Why the server, or a part of it, cannot be set up.

use std::fmt;

/// A setting is wrong, or what it names cannot be opened. Told to the operator, who can change it;
/// read by no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupError(String);

impl SetupError {
    /// With a sentence that names the setting or the file at fault and says what to do.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

impl From<String> for SetupError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<&str> for SetupError {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}
