//! Scenarios to start from, made of what people have already: a `curl` command
//! line, a browser's recording (HAR), an API's description (OpenAPI).
//!
//! What comes out is the text of a scenario file that loads as it is. What could
//! not be carried over is said in its comments.

mod auth;
mod curl;
mod curl_options;
mod draft;
mod har;
mod openapi;
mod schema;
mod shell;
mod url;

pub use curl::curl;
pub use har::{HarOptions, har};
pub use openapi::openapi;

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
