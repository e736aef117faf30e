//! What is wrong with a scenario, and where.

use std::path::{Path, PathBuf};

/// Why a scenario cannot be used. Trying again without changing the file (or the
/// server, for an answer to a setup request) does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, if the scenario came from one.
    pub file: Option<PathBuf>,
    /// The line, counted from 1, where it is known.
    pub line: Option<u32>,
    /// The part of the scenario, e.g. `step "create", expect`; may be empty.
    pub place: String,
    /// What is wrong, and what is expected instead.
    pub message: String,
}

impl ScenarioError {
    /// An error without a line.
    pub(crate) fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        ScenarioError { file: None, line: None, place: place.into(), message: message.into() }
    }

    /// An error at a line.
    pub(crate) fn at(line: u32, place: impl Into<String>, message: impl Into<String>) -> Self {
        ScenarioError { line: Some(line), ..Self::new(place, message) }
    }

    /// The same error, naming the file.
    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_owned());
        self
    }
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScenarioError {}
