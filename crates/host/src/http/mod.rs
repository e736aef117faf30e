//! HTTP without a transport: requests and answers as handlers see them, and what all handlers
//! share. `connection` puts hyper under it; another transport would not touch a handler (decision
//! 0001).

mod allowance;
mod bare_refusals;
pub mod body;
pub(crate) mod body_memory;
pub(crate) mod chunked;
pub(crate) mod config;
pub(crate) mod connection;
pub mod content;
pub mod contract;
pub mod cors;
mod counted_stream;
pub mod declared_problems;
pub mod dispatch;
mod exchange;
pub mod face;
pub mod fast;
mod forward;
mod forwarded_message;
pub(crate) mod framing;
mod half_close;
pub(crate) mod head_rules;
mod header_names;
pub mod history;
pub mod idempotency;
pub mod lines;
mod node_sender;
mod outgoing;
pub mod required_freshness;
mod response;
pub mod routes;
mod security;
pub mod server;
pub mod stream;
mod unread_answers;
mod watched_stream;

pub mod work;

pub use body::{Body, Source};
pub(crate) use response::ReflectedPosition;
pub use response::{Content, Response};

use crate::access::{self, Gate, Principal};
use crate::audit::Audit;
use crate::backup::Backups;
use crate::cluster::{ClusterKey, NodeName};
use crate::figures::{self, Sources};
use crate::ingest::{IngestConfig, IngestContext};
use crate::kept_file::KeptFile;
use crate::kept_types::KeptTypes;
use crate::limits::{Limits, Payer, SharedBucket};
use crate::node::readiness::{self, Purpose};
use crate::node::{Node, Views};
use crate::otlp::Otlp;
use crate::scrub::Scrubs;
use crate::settings::ProcessConfig;
use crate::setup::SetupError;
use crate::stats::Stats;
use crate::stats::family::Family;
use crate::tls::Tls;
use crate::trouble::{Cause, FailedRequest};
use crate::view::ViewSlot;
use crate::view::contract::View;
use crate::wire::effects::{Effects, Repeat};
pub use crate::wire::ndjson::NDJSON;
use crate::wire::param::{Kind, Param};
use crate::wire::params::Params;
use crate::wire::problem::{self, Problem};
use body_memory::BodyMemory;
use bytes::Bytes;
use config::HttpConfig;
use contract::{Contract, IDEMPOTENCY_KEY, NO_ROUTE, Segment, Variable};
use hyper::header::{AsHeaderName, HeaderMap};
use hyper::{Method, Uri, Version};
use routes::Routes;
use server::FacesOnHost;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tokio::sync::{Semaphore, watch};
use wellspring_log::{Clock, CommitOn, Log};
use work::{Job, WorkRoom};

/// The authentication challenge (RFC 9110, 11.6.1).
const CHALLENGE: &str = r#"Bearer realm="wellspring", Basic realm="wellspring", charset="UTF-8""#;

/// Content types spoken here.
pub const JSON: &str = "application/json";
/// Bytes.
pub const OCTETS: &str = "application/octet-stream";
/// Server-sent events.
pub const SSE: &str = "text/event-stream";
/// The encoding of HTML forms and OAuth.
pub const FORM: &str = "application/x-www-form-urlencoded";
/// HTML pages.
pub const HTML: &str = "text/html";
/// Plain text.
pub const TEXT: &str = "text/plain";
/// Pictures.
pub const SVG: &str = "image/svg+xml";
/// Any media type.
pub const ANY: &str = "*/*";

/// What faces may use: the whole server except the faces.
pub struct Host {
    /// The settings of the process.
    pub process: ProcessConfig,
    /// The settings of requests and answers.
    pub config: HttpConfig,
    /// The settings of taking events in.
    pub ingest_config: Arc<IngestConfig>,
    /// The routes of all faces.
    pub routes: Routes,
    /// The logs.
    pub node: Arc<Node>,
    /// Authentication and authorization.
    pub access: Arc<Gate>,
    /// The audit.
    pub(crate) audit: Audit,
    /// Scheduled backups.
    pub(crate) backups: Arc<Backups>,
    /// Passes over every byte of all logs.
    pub(crate) scrubs: Arc<Scrubs>,
    /// Export of figures and traces.
    pub otlp: Otlp,
    /// The figures.
    pub stats: Arc<Stats>,
    /// The limits of clients.
    pub(crate) limits: Arc<Limits>,
    /// The memory for request bodies.
    pub(crate) body_memory: BodyMemory,
    /// Event types that clients may not append.
    pub kept: Arc<KeptTypes>,
    /// The key that this node shares with the others of its cluster.
    pub cluster_key: Option<Arc<ClusterKey>>,
    /// TLS, if it is on.
    pub tls: Option<Arc<Tls>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Becomes true at shutdown.
    pub stopping: watch::Receiver<bool>,
    /// The room for long work.
    pub(crate) work: Arc<WorkRoom>,
    /// One permit for each subscription.
    pub subscriptions: Arc<Semaphore>,
    /// The faces, for their figures and fast paths.
    pub faces: FacesOnHost,
    /// Source of request ids: a random start, then a counter.
    pub(crate) request_ids: AtomicU64,
}

impl Host {
    /// Reports a stream about a log that the server breaks off, after its answer has begun: in one
    /// line with answers that fail, and as rarely.
    pub fn tell_cut(&self, problem: &Problem, log: &str) {
        let Some(cause) = Cause::of(problem) else { return };
        let failed = FailedRequest { cause: &cause, route: None, log, request_id: None };
        self.stats.troubles.tell(failed, self.clock.monotonic_us());
    }

    /// What each thread's intake shares.
    pub fn ingest(&self) -> IngestContext {
        IngestContext {
            node: Arc::clone(&self.node),
            config: Arc::clone(&self.ingest_config),
            kept: Arc::clone(&self.kept),
            stopping: self.stopping.clone(),
        }
    }

    /// Where an append is best committed. A single client is answered fastest by its own thread,
    /// which delays no other; with several, a waiting thread would keep their batch from gathering.
    pub fn commit_on(&self, request: &Request) -> CommitOn {
        let alone = self.stats.connections.load(Relaxed) <= 1 && request.version < Version::HTTP_2;
        if alone { CommitOn::ThisThread } else { CommitOn::JournalThread }
    }

    /// Attaches a view to the log of this name, now and each time that log is recreated.
    ///
    /// # Errors
    /// A sentence: the system provides no thread, or the view's initial state could not be made.
    pub fn attach<V: View>(&self, log: &str, view: &Arc<ViewSlot<V>>) -> Result<(), SetupError> {
        self.node
            .attach(log, Arc::clone(view) as _)
            .map_err(|error| SetupError::new(error.to_string()))
    }

    /// Attaches a view to every log but the server's own: opened on first use, or with the log if
    /// that contains an event of these types. The initial state is what `context` returns for the
    /// log's name, on the caller's thread, so it must not wait for the disk.
    ///
    /// # Errors
    /// A sentence: the system provides no thread, or an initial state could not be made.
    pub fn attach_each<V: View>(
        &self,
        types: &[&str],
        context: impl Fn(&str) -> Result<V::Context, SetupError> + Send + Sync + 'static,
    ) -> Result<Views<V>, SetupError> {
        self.node.attach_each(types, context).map_err(|error| SetupError::new(error.to_string()))
    }

    /// Bounded work for a request, charged to its client. Dropping it ends the work.
    ///
    /// # Errors
    /// 429: earlier work of this client took too much time.
    pub fn job(&self, request: &Request) -> Result<Job, Box<Problem>> {
        Job::begin(self, &request.payer)
    }

    /// The server's URL as the client of a request knows it, without a slash at its end.
    pub fn base_url(&self, request: &Request) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let authority = request.uri.authority().map(|authority| authority.as_str());
        let host = authority.or_else(|| request.header("host")).unwrap_or("localhost");
        format!("{scheme}://{host}")
    }

    /// The time, in µs since 1970 UTC.
    pub fn wall_us(&self) -> u64 {
        self.clock.wall_us()
    }

    /// Whether the server is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Why the server is not ready for these requests, worst first; empty if it is.
    pub fn reasons(&self, purpose: Purpose) -> Vec<Problem> {
        readiness::reasons(&self.node, self.is_stopping(), purpose)
    }

    /// What deserves attention and is no reason against these requests.
    pub fn warnings(&self, purpose: Purpose) -> Vec<Problem> {
        let mut warnings = readiness::warnings(&self.node, purpose);
        warnings.extend(self.scrubs.warnings());
        warnings
    }

    /// The files of the data folder that belong to no log, to be checked.
    pub(crate) fn kept_files(&self) -> Vec<KeptFile> {
        let data = &self.process.data;
        let mut files = access::kept_files::kept_files(data, &self.access);
        files.extend(self.faces.kept_files());
        files
    }

    /// All current figures of the server. Reads the file system, so not for a serving thread.
    pub fn figures(&self) -> Vec<Family> {
        figures::gather(&Sources {
            stats: &self.stats,
            is_ready: self.reasons(Purpose::Both).is_empty(),
            audit: &self.audit,
            backups: &self.backups,
            scrubs: &self.scrubs,
            otlp: &self.otlp,
            node: &self.node,
            tls: self.tls.as_deref(),
            clock: &*self.clock,
            face_families: &self.faces.families(),
        })
    }
}

/// What the requests of one connection share.
#[derive(Debug)]
pub(crate) struct ConnectionTies {
    /// The quota of the connection, if limited.
    pub(crate) rate: Option<Arc<SharedBucket>>,
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
        self.body.standing().map_or(Ok(()), |standing| standing.check())
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

/// The result of a handler.
pub type Answer = Result<Response, Box<Problem>>;
