//! Connection errors, worded without passwords.

use crate::options::OptionsError;
use std::error::Error as _;
use std::fmt;
use tokio_postgres::Error;

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

/// Errors of a server or connection that do not go away by themselves: wrong user or password,
/// unknown database, a missing password, no TLS.
const FOR_GOOD: &[&str] =
    &["[28P01]", "[28000]", "[3D000]", "password missing", "server does not support TLS"];

impl ConnectError {
    /// Whether a retry may help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            ConnectError::Server { reason, .. } => {
                match FOR_GOOD.iter().any(|said| reason.contains(said)) {
                    true => Retry::DoesNot,
                    false => Retry::MayHelp,
                }
            }
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
            ConnectError::Server { server, reason } => write!(f, "{server}: {reason}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_has_to_change_is_not_tried_again() {
        let said = |reason: &str| {
            ConnectError::Server { server: "postgres://x".into(), reason: reason.into() }.retry()
        };
        assert_eq!(said("error connecting to server: Connection refused"), Retry::MayHelp);
        assert_eq!(said("the database system is starting up [57P03]"), Retry::MayHelp);
        assert_eq!(said("database \"x\" does not exist [3D000]"), Retry::DoesNot);
        assert_eq!(said("password authentication failed [28P01]"), Retry::DoesNot);
        assert_eq!(ConnectError::Schema("newer".into()).retry(), Retry::DoesNot);
    }
}
