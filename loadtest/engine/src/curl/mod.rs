//! A scenario made of `curl` command lines, as people have them in notes and browsers copy them.
//!
//! The result is the text of a scenario file that loads as it is. Its comments say what could not
//! be carried over.

mod auth;
mod command;
mod draft;
mod glob;
mod options;
mod shell;
mod url;

pub use command::scenario;

/// Why nothing could be made of it. Trying again does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError(String);

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ImportError {}

/// An error with this text.
fn error<T>(text: impl Into<String>) -> Result<T, ImportError> {
    Err(ImportError(text.into()))
}

#[cfg(test)]
mod tests;
