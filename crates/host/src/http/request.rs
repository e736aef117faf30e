//! A request as handlers see it, and what it shares with others of its connection.

use super::body::{Body, Source};
use super::contract::{Contract, IDEMPOTENCY_KEY, NO_ROUTE, Segment, Variable};
use super::{Host, head_rules, header_names};
use crate::access::{Needs, Principal, gate};
use crate::cluster::NodeName;
use crate::identity::{Caller, Role};
use crate::limits::{Payer, SharedBucket};
use crate::wire::effects::{Effects, Repeat};
use crate::wire::param::{Kind, Param};
use crate::wire::params::Params;
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use hyper::header::{AsHeaderName, HeaderMap};
use hyper::{Method, Uri, Version};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wellspring_log::Log;

/// What the requests of one connection share.
#[derive(Debug)]
pub(crate) struct ConnectionTies {
    /// The quota of the connection, if limited.
    pub(crate) rate: Option<Arc<SharedBucket>>,
    /// Whether the stack that received the request has taken it from the quotas of its payer.
    pub(crate) is_counted: bool,
    /// Why it is ambiguous where this request ends, if its headers do not tell any more.
    pub(crate) framing: Option<head_rules::HeadAmbiguity>,
    /// What has happened on it.
    pub(crate) state: Arc<ConnectionState>,
}

/// What has happened on a connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    /// Whether events were ever accepted from it, of which some may not be stored yet. A change
    /// waits for them.
    pub(crate) handed_in: AtomicBool,
    /// Whether its client has shut its side: it has sent its last request, or left.
    pub(crate) is_shut: AtomicBool,
}

/// A request as handlers see it.
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub uri: Uri,
    /// Its version, which decides whether a truncated stream is detectable.
    pub version: Version,
    /// Its headers.
    pub headers: HeaderMap,
    /// The client's address, taking trusted proxies and nodes into account.
    pub client: Option<IpAddr>,
    /// The node of this cluster that forwarded it, if any. It is not forwarded again.
    pub of_node: Option<NodeName>,
    /// The caller.
    pub principal: Arc<Principal>,
    /// What it shares with the other requests of its connection, if it came over one of its
    /// client's own.
    pub(crate) connection: Option<ConnectionTies>,
    /// Who is charged for it.
    pub payer: Payer,
    /// What it has changed so far.
    pub effects: Effects,
    /// Its body, not yet read.
    pub body: Body,
    /// What its route takes and gives.
    pub contract: &'static Contract,
    /// The parameters of its URL.
    pub query: Params,
    /// The client's preferred representation of its route's.
    pub wants: &'static str,
    /// The decoded variable path segments other than the log's name, in order.
    pub params: [String; 2],
    /// Name of the route's log.
    pub log_name: String,
    /// The route's log, if it concerns an existing one.
    pub log: Option<Log>,
}

impl Request {
    /// A request without a connection: complete, HTTP/1.1, from an unknown client.
    pub fn in_process(
        host: &Arc<Host>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        content: Bytes,
    ) -> Box<Request> {
        Box::new(Request {
            method,
            uri,
            version: Version::HTTP_11,
            headers,
            client: None,
            of_node: None,
            principal: host.access.unauthenticated(),
            connection: None,
            payer: Payer::default(),
            effects: Effects::default(),
            body: Body::new(Source::Full(content), host, Version::HTTP_11),
            contract: &NO_ROUTE,
            query: Params::default(),
            wants: "",
            params: Default::default(),
            log_name: String::new(),
            log: None,
        })
    }

    /// Whether its client may have left: it has shut its side of the connection. It still gets an
    /// answer that begins within a second, but nothing exclusive should be taken for it.
    #[must_use]
    pub fn may_have_no_client(&self) -> bool {
        self.connection.as_ref().is_some_and(|ties| ties.state.is_shut.load(Relaxed))
    }

    /// The decoded variable part of the path, the first if there are two.
    pub fn param(&self) -> &str {
        &self.params[0]
    }

    /// All of its content.
    ///
    /// # Errors
    /// 413 over this many bytes, 408, 400, 429: as for every body.
    pub async fn content(&mut self, most_bytes: usize) -> Result<Bytes, Box<Problem>> {
        self.body.read(most_bytes).await
    }

    /// Whether it may be sent again after it may have taken effect.
    pub(crate) fn repeat(&self) -> Repeat {
        let has_key = self.headers.contains_key(&header_names::IDEMPOTENCY_KEY);
        if has_key && self.contract.reads(&IDEMPOTENCY_KEY) {
            Repeat::Safe
        } else {
            self.contract.repeat
        }
    }

    /// Charges it to this payer from now on.
    pub(crate) fn pay_by(&mut self, payer: Payer) {
        self.body.pay_by(payer.clone());
        self.payer = payer;
    }

    /// Whether its sender would still be admitted. Check this after a wait.
    ///
    /// # Errors
    /// 401, 403.
    pub fn still_may(&self) -> Result<(), Box<Problem>> {
        self.body.recheck().map_or(Ok(()), |recheck| recheck.check())
    }

    /// Whether its sender has a role on a log, which is not the route's.
    ///
    /// # Errors
    /// 403.
    pub fn check_role(&self, role: Role, log: &str) -> Result<(), Box<Problem>> {
        let principal = &self.principal;
        gate::may(principal, Needs::Role(role), Some(log))
            .map_err(|problem| problem.told_to(Caller::Known(principal.identity().clone())))
    }

    /// The value of a parameter that its route declares.
    ///
    /// # Errors
    /// None, for what was checked when the query was parsed.
    pub fn query<K: Kind>(&self, param: &Param<K>) -> Result<K::Value<'_>, Box<Problem>> {
        self.query.get(param)
    }

    /// The value of the variable path segment.
    ///
    /// # Errors
    /// Those of the segment.
    pub fn segment<T>(&self, segment: &Segment<T>) -> Result<T, Box<Problem>> {
        let is_it = |known: &Option<&dyn Variable>| known.is_some_and(|k| k.name() == segment.name);
        let place = self.contract.segments.iter().position(is_it);
        debug_assert!(place.is_some(), "{} is not declared", segment.name);
        (segment.read)(&self.params[place.unwrap_or_default()])
    }

    /// A header's value, if present and text.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The route's log. The dispatcher has made sure that it exists for routes about an existing
    /// log.
    pub fn log(&self) -> Result<&Log, Box<Problem>> {
        self.log.as_ref().ok_or_else(|| problem::no_such_log(&self.log_name))
    }
}
