//! Connections to other nodes: HTTP/1.1, kept open per serving thread.

use super::ClusterKey;
use super::node_auth::{self, NodeName};
use crate::setup::SetupError;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wellspring_client::connection::{Content, Sender, connect};
use wellspring_client::endpoint::Endpoint;
use wellspring_client::trust::Trust;
use wellspring_tls::ClientTerms;

/// Longest time for connecting to another node.
const CONNECT: Duration = Duration::from_secs(2);
/// Idle connections to one node that a thread keeps.
const KEPT: usize = 64;

thread_local! {
    /// Idle connections of this thread, by the URL of the node.
    static IDLE: RefCell<HashMap<Box<str>, Vec<Sender>>> = RefCell::default();
}

/// A request to another node.
#[derive(Debug, Clone)]
pub struct PeerRequest {
    /// Its method.
    pub method: Method,
    /// Path and query, already encoded.
    pub target: String,
    /// Headers apart from those of every request.
    pub headers: HeaderMap,
    /// Its content.
    pub content: Bytes,
    /// The original client, if it is forwarded.
    pub client: Option<IpAddr>,
}

/// Why another node did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerError {
    /// Nothing was sent: it may be retried, there or elsewhere.
    NotSent(String),
    /// At least a part of it was sent: its outcome is unknown.
    Unknown(String),
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerError::NotSent(reason) | PeerError::Unknown(reason) => f.write_str(reason),
        }
    }
}

/// The connections to other nodes.
pub struct Peers {
    node: NodeName,
    key: Arc<ClusterKey>,
    trust: Trust,
    /// The TLS configuration for each node, by its origin.
    terms: Mutex<HashMap<String, Option<ClientTerms>>>,
}

impl Peers {
    /// The connections of a node. `authorities`: a PEM file of those to trust, instead of this
    /// machine's.
    pub fn new(node: NodeName, key: Arc<ClusterKey>, authorities: Option<PathBuf>) -> Peers {
        let trust = authorities.map_or_else(Trust::default, Trust::of_authorities);
        Peers { node, key, trust, terms: Mutex::default() }
    }

    /// The TLS configuration for other nodes, for callers with their own connections.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The header value that identifies a request as this node's, at a time in µs since 1970 UTC.
    pub(crate) fn signature(
        &self,
        (method, target): (&str, &str),
        client: Option<IpAddr>,
        now_us: u64,
    ) -> String {
        node_auth::sign(&self.key, (method, target), &self.node, client, now_us)
    }

    /// Sends a request of this node to the node at a URL. Call it within a serving thread's
    /// runtime.
    ///
    /// # Errors
    /// [`PeerError`].
    pub async fn send(
        &self,
        url: &str,
        request: &PeerRequest,
        now_us: u64,
    ) -> Result<Response<Incoming>, PeerError> {
        let endpoint =
            Endpoint::parse(url).map_err(|error| PeerError::NotSent(format!("{url}: {error}")))?;
        let target = format!("{}{}", endpoint.prefix, request.target);
        let signature =
            self.signature((request.method.as_str(), &request.target), request.client, now_us);
        let mut tried_idle = true;
        loop {
            let mut sender = match ready(url) {
                Some(sender) => sender,
                None => {
                    tried_idle = false;
                    self.connect(&endpoint).await?
                }
            };
            let mut outgoing = Request::new(Content::new(request.content.clone()));
            *outgoing.method_mut() = request.method.clone();
            *outgoing.uri_mut() = target.parse().map_err(|_| {
                PeerError::NotSent(format!("{target} is not a valid request target"))
            })?;
            *outgoing.headers_mut() = request.headers.clone();
            let value = |text: &str| {
                HeaderValue::from_str(text).map_err(|error| PeerError::NotSent(error.to_string()))
            };
            let authority = value(&endpoint.authority())?;
            let headers = outgoing.headers_mut();
            headers.entry(HOST).or_insert(authority);
            headers.insert(node_auth::HEADER, value(&signature)?);
            match sender.try_send_request(outgoing).await {
                Ok(response) => {
                    keep(url, sender);
                    return Ok(response);
                }
                Err(mut error) => match (error.take_message(), tried_idle) {
                    // An idle connection was closed: the request was never sent, and may take
                    // another one.
                    (Some(_), true) => {}
                    (Some(_), false) => {
                        return Err(PeerError::NotSent(format!("{url}: {}", error.error())));
                    }
                    (None, _) => {
                        let why = error.error();
                        return Err(PeerError::Unknown(format!("{url} did not answer: {why}")));
                    }
                },
            }
        }
    }

    /// The TLS configuration for a node; its authorities are read once.
    fn terms(&self, endpoint: &Endpoint) -> Result<Option<ClientTerms>, SetupError> {
        let mut known = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = endpoint.origin();
        if let Some(terms) = known.get(&origin) {
            return Ok(terms.clone());
        }
        let terms = self.trust.terms(endpoint)?;
        known.insert(origin, terms.clone());
        Ok(terms)
    }

    async fn connect(&self, endpoint: &Endpoint) -> Result<Sender, PeerError> {
        let failed = |error: &dyn fmt::Display| {
            PeerError::NotSent(format!("cannot reach {}: {error}", endpoint.origin()))
        };
        let terms = self.terms(endpoint).map_err(|error| failed(&error))?;
        let connecting = connect(endpoint, terms.as_ref(), CONNECT);
        match tokio::time::timeout(CONNECT, connecting).await {
            Ok(connected) => connected.map_err(|error| failed(&error)),
            Err(_) => Err(failed(&format_args!("no connection within {} s", CONNECT.as_secs()))),
        }
    }
}

/// An idle connection of this thread whose last answer has been read.
fn ready(url: &str) -> Option<Sender> {
    IDLE.with_borrow_mut(|idle| {
        let kept = idle.get_mut(url)?;
        let at = kept.iter().rposition(SendRequest::is_ready)?;
        Some(kept.swap_remove(at))
    })
}

/// Keeps a connection for the next request of this thread. It is usable again when its answer has
/// been read.
fn keep(url: &str, sender: Sender) {
    IDLE.with_borrow_mut(|idle| {
        let kept = idle.entry(url.into()).or_default();
        kept.retain(|sender| !sender.is_closed());
        if kept.len() < KEPT {
            kept.push(sender);
        }
    });
}
