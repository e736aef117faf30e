//! The record of a request, complete once its answer is known. Request figures, the access log, the
//! audit and traces are all made from it, on both HTTP stacks.
//!
//! Rooms below `http` know a route by its name in the record, never by the routes of a face.

use crate::identity::AccountName;
use crate::identity::{Caller, Identity, Method};
use std::net::IpAddr;
use wellspring_types::Position;

/// The name of a route in figures, logs and traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteName {
    /// Its index in the list of routes; the length of that list stands for no route.
    pub index: usize,
    /// Its path, with `{…}` for variable segments; `None`: the request has no route.
    pub path: Option<&'static str>,
}

/// A request and its answer. Times are on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestRecord<'a> {
    pub(crate) route: RouteName,
    pub(crate) method: &'a str,
    /// The path as sent, without the query.
    pub(crate) path: &'a str,
    /// The log named in the path, which may be an invalid name; empty if there is none.
    pub(crate) log: &'a str,
    /// The identity that was admitted.
    pub(crate) identity: &'a Identity,
    /// The identity behind the answer, where the admitted one does not tell it.
    pub(crate) caller: Option<&'a Caller>,
    /// Whether it was refused although it has credentials.
    pub(crate) shows_credentials: bool,
    pub(crate) status: u16,
    /// The client's address, taking trusted proxies into account.
    pub(crate) client: Option<IpAddr>,
    /// Empty if the request has no id.
    pub(crate) request_id: &'a str,
    /// Size of the content; `None` for a stream.
    pub(crate) bytes: Option<usize>,
    /// The position that the answer reflects.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code))]
    pub(crate) position: Option<Position>,
    /// When the request arrived, and when its answer was known.
    pub(crate) started_us: u64,
    pub(crate) ended_us: u64,
    /// When the append was submitted, and when it was durable.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code))]
    pub(crate) commit_us: Option<(u64, u64)>,
}

impl RequestRecord<'_> {
    /// Time to the answer; for a stream, until it began.
    pub(crate) fn took_us(&self) -> u64 {
        self.ended_us.saturating_sub(self.started_us)
    }

    fn authenticated(&self) -> &Identity {
        match self.caller {
            Some(Caller::Known(identity)) => identity,
            _ => self.identity,
        }
    }

    /// Whether the caller is authenticated, or need not be because there are no accounts.
    pub(crate) fn is_identified(&self) -> bool {
        *self.authentication() != Method::None
    }

    /// The authenticated caller's name: an account, or the subject of an external issuer.
    pub(crate) fn name(&self) -> Option<&str> {
        self.account().or_else(|| self.subject())
    }

    /// The authenticated account.
    pub(crate) fn account(&self) -> Option<&str> {
        match self.caller {
            Some(Caller::LoggedIn(account)) => Some(account.as_str()),
            _ => self.authenticated().account.as_ref().map(AccountName::as_str),
        }
    }

    /// The subject of an external issuer. Separate from accounts: the issuer's `admin` is not ours.
    pub(crate) fn subject(&self) -> Option<&str> {
        let identity = self.authenticated();
        identity.name().filter(|_| identity.method == Method::Foreign)
    }

    /// The account that a failed login named.
    pub(crate) fn claimed(&self) -> Option<&str> {
        match self.caller {
            Some(Caller::Claimed(account)) => account.as_ref().map(AccountName::as_str),
            _ => None,
        }
    }

    /// How the caller was authenticated.
    pub(crate) fn authentication(&self) -> &Method {
        match self.caller {
            Some(Caller::LoggedIn(_)) => &Method::Password,
            _ => &self.authenticated().method,
        }
    }

    /// Writes the line of the access log, at level info if the log `is_on`, otherwise at level
    /// debug.
    pub(crate) fn write_line(&self, is_on: bool) {
        use tracing::Level;
        if !is_on && !tracing::enabled!(target: "access", Level::DEBUG) {
            return;
        }
        let &RequestRecord { method, path, status, bytes, request_id, .. } = self;
        let (route, account, took_us) = (self.route.path, self.name(), self.took_us());
        let client = self.client.map(tracing::field::display);
        // The level of a line is part of its call site, so there are two call sites.
        if is_on {
            tracing::info!(target: "access", method, path, route, status, took_us, bytes, account, client, request_id);
        } else {
            tracing::debug!(target: "access", method, path, route, status, took_us, bytes, account, client, request_id);
        }
    }

    /// A record of a success, for tests to change.
    #[cfg(test)]
    pub(crate) fn for_tests(identity: &Identity) -> RequestRecord<'_> {
        RequestRecord {
            route: RouteName { index: 0, path: Some("/v1/append") },
            method: "POST",
            path: "/v1/append",
            log: "main",
            identity,
            caller: None,
            shows_credentials: false,
            status: 200,
            client: None,
            request_id: "r",
            bytes: None,
            position: None,
            started_us: 0,
            ended_us: 0,
            commit_us: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_behind_the_answer_is_the_one_that_counts() {
        let name = |text| AccountName::parse(text).unwrap();
        let (unknown, ann) =
            (Identity::unknown(Method::None), Identity::of_account(name("ann"), Method::Password));
        let record = RequestRecord::for_tests(&unknown);
        assert_eq!((record.is_identified(), record.name()), (false, None));
        let admitted = RequestRecord::for_tests(&ann);
        assert_eq!((admitted.is_identified(), admitted.name()), (true, Some("ann")));
        let known = Caller::Known(ann.clone());
        let denied = RequestRecord { caller: Some(&known), ..record };
        assert_eq!((denied.is_identified(), denied.name()), (true, Some("ann")));
        let logged_in = Caller::LoggedIn(name("bob"));
        let login = RequestRecord { caller: Some(&logged_in), ..record };
        assert_eq!((login.name(), login.authentication()), (Some("bob"), &Method::Password));
        let claimed = Caller::Claimed(Some(name("eve")));
        let failed = RequestRecord { caller: Some(&claimed), ..record };
        assert_eq!((failed.is_identified(), failed.name()), (false, None));
        assert_eq!(failed.claimed(), Some("eve"));
    }

    #[test]
    fn the_subject_of_another_issuer_is_no_account() {
        let subject = crate::identity::Subject::parse("admin").unwrap();
        let identity = Identity::of_subject(subject);
        let record = RequestRecord::for_tests(&identity);
        assert_eq!((record.account(), record.subject()), (None, Some("jwt:admin")));
        assert_eq!(record.name(), Some("jwt:admin"));
    }
}
