//! What goes wrong, in words that hold no password.

use crate::options::OptionsError;
use std::error::Error as _;
use std::fmt;
use tokio_postgres::Error;

/// Why a node has no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// The options cannot be used.
    Options(OptionsError),
    /// No server can be reached that takes writes, or it lets nobody in. Trying again may help.
    Server {
        /// The URL, without the password.
        server: String,
        /// What was said.
        reason: String,
    },
    /// The tables are not as they must be.
    Schema(String),
    /// The system gave no thread or no timer.
    System(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Options(error) => error.fmt(f),
            ConnectError::Server { server, reason } => write!(f, "{server}: {reason}"),
            ConnectError::Schema(reason) => f.write_str(reason),
            ConnectError::System(reason) => {
                write!(f, "the system gave no thread for the journal: {reason}; raise its limits")
            }
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<OptionsError> for ConnectError {
    fn from(error: OptionsError) -> ConnectError {
        ConnectError::Options(error)
    }
}

/// What the server or the way to it said.
pub(crate) fn describe(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        let hint = said.hint().map_or(String::new(), |hint| format!(" ({hint})"));
        return format!("{} [{}]{hint}", said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
