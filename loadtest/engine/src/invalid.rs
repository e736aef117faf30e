//! Why a setting, a scenario or a file of the user is of no use.

use std::fmt;

/// What is wrong and where, in a sentence for the user. Read by no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(String);

impl Invalid {
    /// With a sentence that names the part at fault and says what it must be.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

impl From<String> for Invalid {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<&str> for Invalid {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}

impl From<Invalid> for String {
    fn from(invalid: Invalid) -> Self {
        invalid.0
    }
}
