//! One entry: what is known of a request, as tags to ask for and as JSON to read. Never a
//! credential, never a query string, never a body.

use crate::access::Principal;
use crate::access::principal::Method as By;
use crate::http::json::{push_string, push_u64};
use crate::http::routes::TABLE;
use crate::node::is_name;
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_types::valid::check_tags;
use wellspring_views::access::AccountName;

/// Longest path that is kept, in bytes; of a longer one the beginning is.
const PATH_BYTES: usize = 256;

/// Who it is where the request itself does not tell: he came to the gate and was not let through,
/// or said who he is in the body.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// It is he; but he may not.
    Known(Arc<Principal>),
    /// It is he, as his password has just shown.
    LoggedIn(AccountName),
    /// Somebody says so, and the account exists; otherwise what he said is not kept: people type
    /// passwords into the wrong field.
    Claimed(Option<AccountName>),
}

/// What is known of a request when its answer is.
pub(crate) struct Done<'a> {
    /// Its place in the table of routes; the table's length if it has none.
    pub(crate) route: usize,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// The log it is about; empty if it is about none.
    pub(crate) log: &'a str,
    /// Whom the gate let in.
    pub(crate) principal: &'a Principal,
    /// Who it is, if that is not the one whom the gate let in.
    pub(crate) caller: Option<&'a Caller>,
    /// Whether it has a header for credentials.
    pub(crate) shows_credentials: bool,
    pub(crate) status: u16,
    pub(crate) client: Option<IpAddr>,
    pub(crate) request_id: &'a str,
}

impl Done<'_> {
    /// Whoever it is for certain.
    fn who(&self) -> &Principal {
        match self.caller {
            Some(Caller::Known(principal)) => principal,
            _ => self.principal,
        }
    }

    /// Whether it is known who it is, or nobody has to say.
    pub(super) fn is_identified(&self) -> bool {
        matches!(self.caller, Some(Caller::LoggedIn(_))) || *self.who().method() != By::None
    }

    /// Who it is for certain: an account, or whom another issuer names.
    pub(crate) fn name(&self) -> Option<&str> {
        self.account().or_else(|| self.subject())
    }

    fn account(&self) -> Option<&str> {
        match self.caller {
            Some(Caller::LoggedIn(account)) => Some(account.as_str()),
            _ => self.who().account().map(AccountName::as_str),
        }
    }

    /// Whom another issuer says it is. Apart from accounts: its `admin` is not ours.
    pub(crate) fn subject(&self) -> Option<&str> {
        let who = self.who();
        who.name().filter(|_| *who.method() == By::Foreign)
    }

    /// The log, if it may be one: in a path anything may stand in its place, at any length.
    fn log(&self) -> Option<&str> {
        Some(self.log).filter(|log| is_name(log))
    }

    fn claimed(&self) -> Option<&str> {
        match self.caller {
            Some(Caller::Claimed(account)) => account.as_ref().map(AccountName::as_str),
            _ => None,
        }
    }

    /// How he showed who he is.
    fn by(&self) -> &By {
        match self.caller {
            Some(Caller::LoggedIn(_)) => &By::Password,
            _ => self.who().method(),
        }
    }

    fn key(&self) -> Option<&str> {
        match self.by() {
            By::Key(id) => Some(id.as_str()),
            _ => None,
        }
    }

    /// What can be asked for.
    pub(super) fn tags(&self) -> Vec<String> {
        let client = self.client.map(|client| client.to_string());
        let tags = [
            ("account", self.account()),
            ("subject", self.subject()),
            ("claimed", self.claimed()),
            ("key", self.key()),
            ("log", self.log()),
            ("client", client.as_deref()),
        ];
        let tags = tags.into_iter().filter_map(|(name, value)| Some(format!("{name}:{}", value?)));
        tags.filter(|tag| check_tags(&[tag]).is_ok()).collect()
    }

    /// What can be read, as JSON.
    pub(super) fn data(&self) -> Vec<u8> {
        let client = self.client.map(|client| client.to_string());
        let route = TABLE.get(self.route).map(|route| route.path);
        let texts = [
            ("account", self.account()),
            ("subject", self.subject()),
            ("claimed", self.claimed()),
            ("by", Some(self.by().as_str())),
            ("key", self.key()),
            ("method", Some(self.method)),
            ("route", route),
            ("path", Some(beginning(self.path))),
            ("log", self.log()),
            ("client", client.as_deref()),
            ("request", Some(self.request_id)),
        ];
        let mut out = b"{\"status\":".to_vec();
        push_u64(&mut out, self.status.into());
        for (name, value) in texts {
            let Some(value) = value else { continue };
            out.push(b',');
            push_string(&mut out, name);
            out.push(b':');
            push_string(&mut out, value);
        }
        out.push(b'}');
        out
    }
}

/// As much of a path as is kept.
fn beginning(path: &str) -> &str {
    let is_end = |&at: &usize| path.is_char_boundary(at);
    let end = (0..=path.len().min(PATH_BYTES)).rev().find(is_end).unwrap_or(0);
    &path[..end]
}
