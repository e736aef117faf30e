//! What load to offer: [`Settings`] is the part that is recorded, [`Plan`] adds
//! what else a run needs.

use crate::target::Target;
use crate::workload::Source;
use rustls::RootCertStore;
use rustls::client::ResolvesClientCert;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A step ready to be run.
#[derive(Clone)]
pub struct Plan {
    /// The load, as recorded.
    pub settings: Settings,
    /// Where it goes; resolved ([`Target::resolve`]).
    pub target: Target,
    /// What is sent.
    pub source: Arc<dyn Source>,
    /// Whether workers are bound to processors of their own, where there are enough.
    pub pin: bool,
    /// With TLS: which certificates are accepted, and which is shown.
    pub tls: TlsTerms,
}

/// Which certificates a client accepts over TLS, and which it shows.
#[derive(Clone, Debug, Default)]
pub struct TlsTerms {
    /// Which server certificates are accepted.
    pub accepted: TrustedCertificates,
    /// What is shown to servers that ask for a client certificate.
    pub shown: Option<Arc<dyn ResolvesClientCert>>,
}

/// Which server certificates are accepted.
#[derive(Clone, Debug, Default)]
pub enum TrustedCertificates {
    /// Those of the authorities this machine trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` are
    /// heeded).
    #[default]
    OfThisMachine,
    /// Those of these authorities alone.
    Of(RootCertStore),
    /// Any.
    Any,
}

impl TlsTerms {
    /// Accepts any certificate and shows none.
    #[must_use]
    pub fn accepting_any() -> Self {
        TlsTerms { accepted: TrustedCertificates::Any, shown: None }
    }
}

/// The load of one step, as recorded in the result file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// URL asked, without credentials.
    pub url: String,
    /// What is sent, for people: `GET /health`, or a scenario's name.
    pub workload: String,
    /// Hash of everything that is sent and checked (FNV-1a, 64 bits, hexadecimal): equal
    /// only if two runs asked the same of the server (check C11).
    pub workload_hash: String,
    /// Closed or open loop.
    pub load: Load,
    /// Connections held open; in closed loop the number of users.
    pub connections: u32,
    /// HTTP/2: streams on each connection. 1 for HTTP/1.1.
    pub streams: u32,
    /// Worker threads.
    pub workers: u32,
    /// Which protocol to speak.
    pub protocol: Protocol,
    /// Whether connections are kept open between requests.
    pub keep_alive: bool,
    /// When to stop.
    pub stop: Stop,
    /// Length of the warm-up, in milliseconds: the same load, not in the figures.
    pub warmup_ms: u64,
    /// How long an answer may take, in milliseconds.
    pub timeout_ms: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether phases are measured.
    pub phases: bool,
    /// Whether workers spin instead of sleeping (open loop precision, at the cost of a processor).
    pub spin: bool,
}

/// How requests are timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Each user sends the next request when the last was answered and it has
    /// thought for a time between these bounds, in microseconds. Answers "how much".
    Closed {
        /// Shortest think time, in microseconds.
        think_min_us: u64,
        /// Longest think time, in microseconds.
        think_max_us: u64,
    },
    /// Requests are due at times that do not depend on answers. Answers "how long".
    Open {
        /// Requests a second, over all workers.
        rate_per_s: f64,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// How an open loop spreads its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// With exponential gaps, as many independent callers would.
    Poisson,
}

/// Which protocol to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.1.
    #[serde(rename = "HTTP/1.1")]
    Http1,
    /// HTTP/2: over TLS by ALPN, in clear with prior knowledge.
    #[serde(rename = "HTTP/2")]
    Http2,
}

/// When a run stops: at whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// After this many requests were sent.
    pub requests: Option<u64>,
    /// After this long, in milliseconds.
    pub duration_ms: Option<u64>,
}
