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
pub mod declared_problems;
pub mod dispatch;
mod exchange;
pub mod face;
pub mod fast;
mod forward;
mod forwarded_message;
pub(crate) mod framing;
pub(crate) mod half_close;
pub(crate) mod head_rules;
mod header_names;
pub mod history;
mod host;
pub mod idempotency;
pub mod lines;
mod node_sender;
pub mod operation;
mod outgoing;
mod request;
pub mod required_freshness;
mod response;
pub mod routes;
mod security;
pub mod server;
pub mod stream;
pub mod subjects;
mod unread_answers;
mod watched_stream;
mod websocket;

pub mod work;

pub use body::{Body, Source};
pub use host::Host;
pub use request::Request;
pub(crate) use request::{ConnectionState, ConnectionTies};
pub(crate) use response::ReflectedPosition;
pub use response::{Content, Response};

pub use crate::wire::ndjson::NDJSON;
use crate::wire::problem::Problem;

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

/// The result of a handler.
pub type Answer = Result<Response, Box<Problem>>;
