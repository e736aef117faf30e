//! The identity of a caller: what the audit, the logs and error answers know of a request's origin;
//! and the names, roles and grants of accounts. `access` decides what an identity may do.

mod name;
mod role;

pub use name::{AccountName, KeyId, Label, NameFault, TokenId};
pub use role::{Grant, Grants, GrantsFault, MAX_GRANTS, Role};

use std::fmt;
use std::sync::Arc;
use wellspring_types::Position;

/// Longest subject, in bytes (OpenID Connect Core 1.0, section 2).
pub(crate) const MAX_SUBJECT_BYTES: usize = 255;

/// The subject of an external token: 1 to [`MAX_SUBJECT_BYTES`] bytes that are safe in a log line.
/// Written with the prefix `jwt:`, which no account's name has.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Subject(Arc<str>);

impl Subject {
    /// Parses it; `None`: it is too long, empty, or contains a character that changes how a line
    /// looks.
    pub(crate) fn parse(text: &str) -> Option<Subject> {
        let changes_lines = |c: char| {
            // The separators of lines and paragraphs, and characters that reverse the direction of
            // text.
            c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let fits = (1..=MAX_SUBJECT_BYTES).contains(&text.len()) && !text.contains(changes_lines);
        fits.then(|| Subject(format!("jwt:{text}").into()))
    }

    /// With the prefix `jwt:`.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// How a caller was authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// Not at all, on a public route.
    None,
    /// Not at all: there are no accounts.
    Open,
    /// By an external token.
    Foreign,
    /// By a token; its id, if it has one.
    Token(Option<TokenId>),
    /// By this API key.
    Key(KeyId),
    /// By the account's password.
    Password,
}

impl Method {
    /// The word for clients and the audit.
    pub fn as_str(&self) -> &'static str {
        match self {
            Method::None => "nothing",
            Method::Open => "open",
            Method::Foreign => "issuer",
            Method::Token(_) => "token",
            Method::Key(_) => "key",
            Method::Password => "password",
        }
    }
}

/// The identity of a caller, as far as it is authenticated.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The account; `None` if there are no accounts, or if an external issuer vouches for the
    /// caller.
    pub(crate) account: Option<AccountName>,
    /// The subject that an external issuer vouches for.
    pub(crate) subject: Option<Subject>,
    /// How it was authenticated.
    pub(crate) method: Method,
}

/// Of an unknown caller.
pub(crate) static UNKNOWN: Identity =
    Identity { account: None, subject: None, method: Method::None };

impl Identity {
    pub(crate) fn of_account(account: AccountName, method: Method) -> Identity {
        Identity { account: Some(account), subject: None, method }
    }

    /// Of an external subject.
    pub(crate) fn of_subject(subject: Subject) -> Identity {
        Identity { account: None, subject: Some(subject), method: Method::Foreign }
    }

    /// Of an unauthenticated caller.
    pub(crate) fn unknown(method: Method) -> Identity {
        Identity { account: None, subject: None, method }
    }

    /// Its name in logs and in the audit, without control characters and at most 259 bytes: the
    /// account, or `jwt:` and the subject. `None`: the caller is not authenticated.
    pub(crate) fn name(&self) -> Option<&str> {
        let account = self.account.as_ref().map(AccountName::as_str);
        account.or_else(|| self.subject.as_ref().map(Subject::as_str))
    }
}

/// The owner of something that outlives a request, whichever credentials are used later: a request
/// key, a lease, a quota, a transaction. A name is not enough: after an account is deleted, another
/// may take its name. As text it is unique among all owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder<'a> {
    /// Any caller: there are no accounts, or no credential was required.
    AnyCaller,
    /// An account.
    Account {
        /// Its name.
        name: &'a str,
        /// Position of the event of the log `system` that added it.
        added_at: Position,
    },
    /// A subject that an external issuer vouches for.
    Subject(&'a str),
}

impl fmt::Display for Holder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::AnyCaller => Ok(()),
            Holder::Account { name, added_at } => write!(f, "account {added_at} {name}"),
            Holder::Subject(name) => write!(f, "subject {name}"),
        }
    }
}

/// The identity behind an answer where the admitted request itself does not tell it: the gate
/// denied access, or the body contained the login.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Authenticated, but denied.
    Known(Identity),
    /// Authenticated by the password in the body.
    LoggedIn(AccountName),
    /// Not authenticated; the named account, if it exists. Any other text is dropped: users type
    /// passwords into the wrong field.
    Claimed(Option<AccountName>),
}
