//! Connection errors, worded without passwords.

use crate::options::{ConnectOptions, OptionsError};
use std::error::Error as _;
use std::{fmt, io};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why a node has no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// The options are invalid.
    Options(OptionsError),
    /// No server that accepts writes can be reached, or it refuses the login. A retry may help.
    Server {
        /// The URL, without the password.
        server: String,
        /// The error.
        reason: String,
        /// Whether a retry may help.
        retry: Retry,
    },
    /// The tables are not as expected.
    Schema(String),
    /// The system could not create a thread or a timer.
    System(String),
}

/// Whether a retry may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It may: the server may start, or another one may replace it.
    MayHelp,
    /// It does not: an operator must change something.
    DoesNot,
}

/// Errors that persist until an operator changes something: wrong user or password, unknown
/// database.
const PERMANENT: [SqlState; 3] = [
    SqlState::INVALID_PASSWORD,
    SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    SqlState::INVALID_CATALOG_NAME,
];

impl Retry {
    /// After an error of the server or connection.
    fn after(error: &Error) -> Retry {
        let is_permanent = match error.code() {
            Some(code) => PERMANENT.contains(code),
            // Of the connection itself. Any other cause is one of its terms: a missing password, a
            // way to authenticate, or encryption that one side lacks.
            None => error.source().is_some_and(|cause| !cause.is::<io::Error>()),
        };
        if is_permanent { Retry::DoesNot } else { Retry::MayHelp }
    }
}

impl ConnectError {
    /// An error of the server or the connection to it.
    pub(crate) fn of_server(server: &ConnectOptions, error: &Error) -> ConnectError {
        let (server, reason) = (server.to_string(), describe(error));
        ConnectError::Server { server, reason, retry: Retry::after(error) }
    }

    /// Whether a retry may help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            ConnectError::Server { retry, .. } => *retry,
            ConnectError::Options(_) | ConnectError::Schema(_) | ConnectError::System(_) => {
                Retry::DoesNot
            }
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Options(error) => error.fmt(f),
            ConnectError::Server { server, reason, .. } => write!(f, "{server}: {reason}"),
            ConnectError::Schema(reason) => f.write_str(reason),
            ConnectError::System(reason) => {
                write!(
                    f,
                    "the system could not create a thread for the journal: {reason}; raise its limits"
                )
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

/// The error of the server or connection.
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
