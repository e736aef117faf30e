//! Why a definition of a sink or a source cannot be used.

use std::fmt;

/// What is wrong with a definition, in a sentence for whoever wrote it. Read by no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionError(String);

impl DefinitionError {
    /// With a sentence that names the part at fault.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DefinitionError {}

impl From<String> for DefinitionError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

impl From<&str> for DefinitionError {
    fn from(sentence: &str) -> Self {
        Self(sentence.to_owned())
    }
}

impl From<DefinitionError> for String {
    fn from(error: DefinitionError) -> Self {
        error.0
    }
}
