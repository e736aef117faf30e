//! HTTP without a transport: what a request is to a handler, what an answer is,
//! and what all handlers share. `connection` puts hyper under it; another
//! transport could be put there without touching a handler (decision 0001).

mod allowance;
pub mod body;
pub(crate) mod body_memory;
pub(crate) mod config;
pub(crate) mod connection;
pub mod content;
pub mod contract;
pub mod cors;
mod counted;
pub mod dispatch;
mod exchange;
pub mod face;
pub mod fast;
pub mod foreseen;
mod forward;
pub mod fresh;
pub(crate) mod head_rules;
mod header_names;
pub mod idempotency;
mod leaving;
pub mod lines;
mod outgoing;
mod passed_on;
pub mod routes;
mod security;
mod sender;
pub mod server;
pub mod stream;
mod unread;

pub mod work;

pub use body::{Body, Source};

use crate::access::{Gate, Principal};
use crate::audit::Audit;
use crate::cluster::{ClusterKey, NodeName};
use crate::figures::{self, Sources};
use crate::identity::Caller;
use crate::ingest::{IngestConfig, IngestContext};
use crate::kept_types::KeptTypes;
use crate::limits::{Limits, Payer, SharedBucket};
use crate::node::readiness::{self, Purpose};
use crate::node::{Node, Views};
use crate::otlp::Otlp;
use crate::settings::ProcessConfig;
use crate::stats::Stats;
use crate::stats::family::Family;
use crate::tls::Tls;
use crate::trouble::Cause;
use crate::view::ViewSlot;
use crate::wire::json::to_json;
use crate::wire::param::{Kind, Param};
use crate::wire::params::Params;
use crate::wire::problem::{self, Problem};
use body_memory::{BodyMemory, Charge};
use bytes::Bytes;
use config::HttpConfig;
use contract::{Contract, NO_ROUTE, Segment, Variable};
use hyper::header::{AsHeaderName, HeaderMap};
use hyper::{Method, Uri, Version};
use routes::Routes;
use server::FacesOnHost;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use stream::Trailers;
use tokio::sync::{Semaphore, watch};
use wellspring_log::{Clock, CommitOn, Log};
use wellspring_types::Position;
use wellspring_views::view::View;
use work::{Job, WorkRoom};

/// What a client without credentials that count is asked for (RFC 9110, 11.6.1).
const CHALLENGE: &str = r#"Bearer realm="wellspring", Basic realm="wellspring", charset="UTF-8""#;

/// Content types spoken here.
pub const JSON: &str = "application/json";
/// A JSON document a line.
pub const NDJSON: &str = "application/x-ndjson";
/// Server-sent events.
pub const SSE: &str = "text/event-stream";
/// What HTML forms and OAuth send.
pub const FORM: &str = "application/x-www-form-urlencoded";
/// Pages.
pub const HTML: &str = "text/html";
/// Plain text.
pub const TEXT: &str = "text/plain";
/// Pictures.
pub const SVG: &str = "image/svg+xml";
/// Any media type.
pub const ANY: &str = "*/*";

/// What every face may use: all of a server but the faces.
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
    /// Who may do what.
    pub access: Arc<Gate>,
    /// Keeps who did what.
    pub(crate) audit: Audit,
    /// Export of figures and traces.
    pub otlp: Otlp,
    /// The figures.
    pub stats: Arc<Stats>,
    /// How much anybody may have of the server.
    pub(crate) limits: Arc<Limits>,
    /// What bodies being received may take of memory.
    pub(crate) body_memory: BodyMemory,
    /// Types of events that clients may not append.
    pub kept: Arc<KeptTypes>,
    /// The key that this node shares with the others of its cluster.
    pub cluster_key: Option<Arc<ClusterKey>>,
    /// How TLS is spoken, if it is.
    pub tls: Option<Arc<Tls>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Becomes true when the server stops.
    pub stopping: watch::Receiver<bool>,
    /// Where what may be long is done.
    pub(crate) work: Arc<WorkRoom>,
    /// One permit for each subscription.
    pub subscriptions: Arc<Semaphore>,
    /// The faces, for their figures and fast paths.
    pub faces: FacesOnHost,
    /// Source of request ids: a random start, then counting.
    pub(crate) request_ids: AtomicU64,
}

impl Host {
    /// What a thread's way of taking events in needs.
    pub fn ingest(&self) -> IngestContext {
        IngestContext {
            node: Arc::clone(&self.node),
            config: Arc::clone(&self.ingest_config),
            kept: Arc::clone(&self.kept),
            stopping: self.stopping.clone(),
        }
    }

    /// Where the append of a request is best committed. A client that is alone is answered quickest
    /// by its own thread, and no other is kept waiting for the device; with others, a thread that
    /// waited would stop their batch from gathering.
    pub fn commit_on(&self, request: &Request) -> CommitOn {
        let alone = self.stats.connections.load(Relaxed) <= 1 && request.version < Version::HTTP_2;
        if alone { CommitOn::ThisThread } else { CommitOn::JournalThread }
    }

    /// Has a view of the log of this name folded, now and each time that log is made anew.
    ///
    /// # Errors
    /// A sentence: the system gives no thread, or what the view begins with could not be had.
    pub fn attach<V: View>(&self, log: &str, view: &Arc<ViewSlot<V>>) -> Result<(), String> {
        self.node.attach(log, Arc::clone(view) as _).map_err(|error| error.to_string())
    }

    /// Has a view of any log but the server's own folded: from when it is first asked for, or, if
    /// the log holds an event of these types, with the log. The view of a log begins with what
    /// `context` returns for its name, on the thread of whoever asks, so that must not wait for the
    /// disk.
    ///
    /// # Errors
    /// A sentence: the system gives no thread, or what a view begins with could not be had.
    pub fn attach_each<V: View>(
        &self,
        types: &[&str],
        context: impl Fn(&str) -> Result<V::Context, String> + Send + Sync + 'static,
    ) -> Result<Views<V>, String> {
        self.node.attach_each(types, context).map_err(|error| error.to_string())
    }

    /// Bounded work for a request, charged to its client. Dropping it ends the work.
    ///
    /// # Errors
    /// 429: earlier work of this client took too much time.
    pub fn job(&self, request: &Request) -> Result<Job, Box<Problem>> {
        Job::begin(self, &request.payer)
    }

    /// The time, µs since 1970 UTC.
    pub fn wall_us(&self) -> u64 {
        self.clock.wall_us()
    }

    /// Whether the server is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Why the server is not ready for these requests, the worst first; empty if it is.
    pub fn reasons(&self, purpose: Purpose) -> Vec<Problem> {
        readiness::reasons(&self.node, self.is_stopping(), purpose)
    }

    /// All figures of the server now. Reads the file system, so not for a serving thread.
    pub fn figures(&self) -> Vec<Family> {
        figures::gather(&Sources {
            stats: &self.stats,
            is_ready: self.reasons(Purpose::Both).is_empty(),
            audit: &self.audit,
            otlp: &self.otlp,
            node: &self.node,
            tls: self.tls.as_deref(),
            clock: &*self.clock,
            face_families: &self.faces.families(),
        })
    }
}

/// A request as a handler sees it.
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub uri: Uri,
    /// Its version, which decides whether a stream can be told from a cut one.
    pub version: Version,
    /// Its headers.
    pub headers: HeaderMap,
    /// Who the client is when trusted proxies and nodes are believed.
    pub client: Option<IpAddr>,
    /// The node of this cluster that sent it on, if one has. It is not sent on again.
    pub of_node: Option<NodeName>,
    /// Whom it is from.
    pub principal: Arc<Principal>,
    /// What its connection has left, if that is limited.
    pub connection: Option<Arc<SharedBucket>>,
    /// Who is charged for it.
    pub payer: Payer,
    /// Its body, not yet read.
    pub body: Body,
    /// What its route takes and gives.
    pub contract: &'static Contract,
    /// The parameters of its URL.
    pub query: Params,
    /// The representation that its client likes best of those of its route.
    pub wants: &'static str,
    /// The decoded variable parts of the path that are not the log's name, in their order.
    pub params: [String; 2],
    /// Name of the log the route is about.
    pub log_name: String,
    /// The log the route is about, if the route is about one that exists.
    pub log: Option<Log>,
}

impl Request {
    /// A request that came over no connection: whole, of HTTP/1.1, from nobody known.
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
            principal: host.access.nobody(),
            connection: None,
            payer: Payer::default(),
            body: Body::new(Source::Full(content), host, Version::HTTP_11),
            contract: &NO_ROUTE,
            query: Params::default(),
            wants: "",
            params: Default::default(),
            log_name: String::new(),
            log: None,
        })
    }

    /// The decoded variable part of the path, the first if there are two.
    pub fn param(&self) -> &str {
        &self.params[0]
    }

    /// All of its content.
    ///
    /// # Errors
    /// 413 beyond so many bytes, 408, 400, 429: as of every body.
    pub async fn content(&mut self, most_bytes: usize) -> Result<Bytes, Box<Problem>> {
        self.body.read(most_bytes).await
    }

    /// Charges it to somebody from now on.
    pub(crate) fn pay_by(&mut self, payer: Payer) {
        self.body.pay_by(payer.clone());
        self.payer = payer;
    }

    /// Whether who sent it still would be let in. To be asked after a wait.
    ///
    /// # Errors
    /// 401, 403.
    pub fn still_may(&self) -> Result<(), Box<Problem>> {
        self.body.standing().map_or(Ok(()), |standing| standing.check())
    }

    /// The value of a parameter that its route declares.
    ///
    /// # Errors
    /// None, for what was checked when the query was read.
    pub fn query<K: Kind>(&self, param: &Param<K>) -> Result<K::Value<'_>, Box<Problem>> {
        self.query.get(param)
    }

    /// What the variable segment of its path names.
    ///
    /// # Errors
    /// Those of the segment.
    pub fn segment<T>(&self, segment: &Segment<T>) -> Result<T, Box<Problem>> {
        let is_it = |known: &Option<&dyn Variable>| known.is_some_and(|k| k.name() == segment.name);
        let place = self.contract.segments.iter().position(is_it);
        debug_assert!(place.is_some(), "{} is not declared", segment.name);
        (segment.read)(&self.params[place.unwrap_or_default()])
    }

    /// A header's value, if it is there and text.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The log the route is about. The dispatcher has made sure of it for routes about an existing
    /// log.
    pub fn log(&self) -> Result<&Log, Box<Problem>> {
        self.log.as_ref().ok_or_else(|| {
            problem::LOG_NOT_FOUND.because(format!(
                "there is no log {:?}; PUT /v1/logs/{{log}} makes one",
                self.log_name
            ))
        })
    }
}

/// The content of an answer.
pub enum Content {
    /// All of it.
    Full(Bytes),
    /// Piece by piece.
    Stream(stream::Chunks),
}

/// What an answer reflects that names no position of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reflects {
    /// All of the log that its route is about, up to its head; if its route is about one.
    TheLog,
    /// Nothing that has a position.
    Nothing,
}

/// An answer.
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its content type; empty for none.
    pub content_type: &'static str,
    /// Further headers. Values must be visible ASCII.
    pub headers: Vec<(&'static str, String)>,
    /// The position it reflects, where a log is involved.
    pub(crate) position: Option<Position>,
    /// What it reflects if it names no position.
    pub(crate) reflects: Reflects,
    /// Who it is for if the gate did not tell, for the audit alone.
    pub(crate) caller: Option<Caller>,
    /// Why it has a status of 500 or above, for the server's own log alone.
    pub(crate) cause: Option<Box<Cause>>,
    /// When the log was handed something and when it had made it durable, on the monotonic clock,
    /// µs; for the trace alone.
    pub(crate) commit_us: Option<(u64, u64)>,
    /// Its content.
    pub content: Content,
    /// Fields told behind the content; those of a stream come with its end.
    pub(crate) trailers: Option<Box<Trailers>>,
    /// What its request is charged of memory until it has been handed over.
    pub(crate) held: Option<Charge>,
}

impl Response {
    /// An answer that serde writes as JSON: any that is not hot.
    pub fn of(status: u16, answer: &impl serde::Serialize) -> Response {
        Response::json(status, to_json(answer))
    }

    /// An answer with a JSON document.
    pub fn json(status: u16, document: impl Into<Bytes>) -> Response {
        Response {
            status,
            content_type: JSON,
            headers: Vec::new(),
            position: None,
            reflects: Reflects::TheLog,
            caller: None,
            cause: None,
            commit_us: None,
            content: Content::Full(document.into()),
            trailers: None,
            held: None,
        }
    }

    /// An answer without content: 204, or one whose headers say all.
    pub fn empty(status: u16) -> Response {
        Response { content_type: "", ..Response::json(status, "") }
    }

    /// The same answer with other content.
    pub fn with_content(mut self, content: impl Into<Bytes>) -> Response {
        self.content = Content::Full(content.into());
        self
    }

    /// The same answer with another status.
    pub fn with_status(mut self, status: u16) -> Response {
        self.status = status;
        self
    }

    /// The same content under another media type.
    pub fn of_type(mut self, content_type: &'static str) -> Response {
        self.content_type = content_type;
        self
    }

    /// The same answer; the trace shows when its commit began and ended, on the monotonic clock,
    /// µs.
    pub fn after_commit(mut self, commit_us: Option<(u64, u64)>) -> Response {
        self.commit_us = commit_us;
        self
    }

    /// An answer with a text.
    pub fn text(content_type: &'static str, text: impl Into<Bytes>) -> Response {
        Response { content_type, ..Response::json(200, text) }
    }

    /// An answer that streams.
    pub fn stream(content_type: &'static str, chunks: stream::Chunks) -> Response {
        let content = Content::Stream(chunks);
        let headers = vec![("cache-control", "no-store".to_owned())];
        Response { content_type, headers, content, ..Response::json(200, "") }
    }

    /// Charges its content to somebody: what there is of it now, what comes as it goes.
    fn pay_by(&mut self, payer: Payer) {
        match &mut self.content {
            Content::Full(bytes) => payer.bytes(bytes.len()),
            Content::Stream(chunks) => chunks.pay_by(payer),
        }
    }

    /// The same answer, reflecting `position`.
    pub fn at(mut self, position: Position) -> Response {
        self.position = Some(position);
        self
    }

    /// The position that it names, if it names one of its own.
    pub fn named_position(&self) -> Option<Position> {
        self.position
    }

    /// The first value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Says that the answer depends on a header of the request.
    pub(crate) fn vary(&mut self, on: &str) {
        match self.headers.iter_mut().find(|(name, _)| *name == "vary") {
            Some((_, names)) => *names = format!("{names}, {on}"),
            None => self.headers.push(("vary", on.to_owned())),
        }
    }

    /// The same answer, to a caller that has just been identified.
    pub fn told_to(mut self, caller: Caller) -> Response {
        self.caller = Some(caller);
        self
    }

    /// The same answer with one more header.
    pub fn with(mut self, name: &'static str, value: String) -> Response {
        debug_assert!(!name.bytes().any(|b| b.is_ascii_uppercase()), "{name}: in small letters");
        self.headers.push((name, value));
        self
    }
}

impl From<Box<Problem>> for Response {
    fn from(problem: Box<Problem>) -> Response {
        let mut response = Response {
            content_type: "application/problem+json",
            position: problem.position,
            caller: problem.caller.clone(),
            cause: Cause::of(&problem),
            ..Response::json(problem.kind.status, problem.to_json())
        };
        if let Some(seconds) = problem.retry_after_s() {
            response.headers.push(("retry-after", seconds.to_string()));
        }
        if let Some(allow) = problem.allow {
            response.headers.push(("allow", allow));
        }
        if response.status == 401 {
            response.headers.push(("www-authenticate", CHALLENGE.to_owned()));
        }
        response
    }
}

/// What a handler comes to.
pub type Answer = Result<Response, Box<Problem>>;
