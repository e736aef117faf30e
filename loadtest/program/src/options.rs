//! The options that several forms of `bench` share, and what they mean as a plan.

use crate::exit::{Code, Failure};
use crate::quantity::{duration_ms, header, limit_ms, many, pair, rate_per_s};
use crate::token_file;
use crate::trust::Trust;
use base64::Engine as _;
use std::path::PathBuf;
use std::sync::Arc;
use wellspring_load::driver::{self, ServerCount};
use wellspring_load::engine::{Clock, Target};
use wellspring_load::invalid::Invalid;
use wellspring_load::machine::allowed_cpus;
use wellspring_load::plan::{
    Arrivals, Load, Plan, Protocol, Settings, Stop, TlsTerms, TrustedCertificates,
};
use wellspring_load::report::redact_command;
use wellspring_load::scenario::{FixedSource, Scenario, ScenarioError, SetupValues, Statuses};
use wellspring_load::workload::{OwnedRequest, Source};

/// Connections when none are asked for.
const CONNECTIONS: u32 = 16;
/// Connections of an open loop when none are asked for: only those needed are busy.
const OPEN_CONNECTIONS: u32 = 128;
/// Length of a run when neither that nor a number of requests is asked for.
const DURATION_MS: u64 = 10_000;

/// What is asked.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestOptions {
    /// Method; GET, or POST when there is a body.
    #[arg(short = 'm', long, value_name = "METHOD")]
    method: Option<String>,
    /// A header field; repeats.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// The body; @FILE reads it from a file, @- from standard input.
    #[arg(short = 'd', long = "data", value_name = "TEXT|@FILE")]
    data: Option<String>,
    /// Content-Type of the body; application/json if it looks like JSON.
    #[arg(short = 'T', long = "content-type", value_name = "TYPE")]
    content_type: Option<String>,
    /// Which statuses count as success, e.g. 2xx or 200,404. Everything below 400 otherwise.
    #[arg(long, value_name = "STATUSES")]
    expect: Option<String>,
    /// Path, headers and body hold placeholders such as {{counter}}, {{random:1..100}} or {{uuid}}
    /// (docs/bench/scenarios.md lists them).
    #[arg(long)]
    template: bool,
    #[command(flatten)]
    credentials: Credentials,
}

/// How the client authenticates.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Credentials")]
pub(crate) struct Credentials {
    /// Sends this token as Authorization: Bearer.
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["basic", "token_url"])]
    bearer: Option<String>,
    /// Sends the token or API key in this file as Authorization: Bearer; others on this machine
    /// cannot read it, as they can a command line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bearer", "basic", "token_url"])]
    token_file: Option<PathBuf>,
    /// Sends these credentials as Authorization: Basic.
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with = "token_url")]
    basic: Option<String>,
    /// Logs in here first, outside the figures, and sends the token received as Bearer.
    #[arg(long, value_name = "URL")]
    token_url: Option<String>,
    /// The body of the login: JSON or a form; @FILE reads it.
    #[arg(long, value_name = "TEXT|@FILE", requires = "token_url")]
    token_body: Option<String>,
    /// Where the token is in the answer (JSON Pointer).
    #[arg(long, value_name = "POINTER", default_value = "/access_token")]
    token_pointer: String,
}

/// How connections are made.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionOptions {
    /// HTTP/2 in clear text (prior knowledge).
    #[arg(long, conflicts_with = "http2")]
    h2c: bool,
    /// HTTP/2: over TLS by ALPN, in clear text with prior knowledge.
    #[arg(long)]
    http2: bool,
    /// HTTP/2: requests under way at once on each connection.
    #[arg(short = 'p', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    streams: u32,
    /// Accepts any certificate.
    #[arg(long, conflicts_with = "cacert")]
    insecure: bool,
    #[command(flatten)]
    trust: Trust,
    /// Connects to this Unix socket; the URL still names the host and path.
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// How long an answer may take.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = limit_ms)]
    timeout: u64,
    /// Opens a new connection for every request.
    #[arg(long)]
    no_keepalive: bool,
    /// Threads of the client; half of the processors otherwise.
    #[arg(short = 't', long = "threads", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Leaves the client's threads free to move between processors.
    #[arg(long)]
    no_pin: bool,
}

/// How long and how often.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Length")]
pub(crate) struct LengthOptions {
    /// Ends after this many requests.
    #[arg(short = 'n', long = "requests", value_name = "N", value_parser = many)]
    requests: Option<u64>,
    /// Ends after this long (default 10s).
    #[arg(short = 'z', long = "duration", value_name = "TIME", value_parser = duration_ms)]
    pub(crate) duration: Option<u64>,
    /// Offers the load this long before measuring. A tenth of the duration, at most 1s, unless -n
    /// is given.
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    pub(crate) warmup: Option<u64>,
    /// Measures this many times; steps take turns.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Measures where the time goes: connect, TLS, write, first byte, last byte.
    #[arg(long)]
    phases: bool,
    /// Spins instead of sleeping: due times kept to the microsecond, at the cost of a processor a
    /// thread.
    #[arg(long)]
    spin: bool,
}

/// What else is known or wanted to be known.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Context")]
pub(crate) struct ContextOptions {
    /// The server's process, if it runs here: reports what it used, and does not take its work for
    /// noise.
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    /// Where the server counts its requests, to be compared with ours: URL of a Prometheus page, #
    /// and the metric.
    #[arg(long, value_name = "URL#METRIC")]
    server_count: Option<String>,
    /// Does not measure what this client reaches against a server that does nothing.
    #[arg(long)]
    no_headroom: bool,
    /// A line for the report's environment; repeats.
    #[arg(long = "note", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) notes: Vec<(String, String)>,
    /// What the report calls this run.
    #[arg(long, value_name = "TITLE")]
    pub(crate) title: Option<String>,
}

/// Reads a value that may be `@FILE`.
fn read_at(value: &str) -> Result<Vec<u8>, Failure> {
    match value.strip_prefix('@') {
        None => Ok(value.as_bytes().to_vec()),
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)
                .map_err(|error| Failure::new(Code::Io, format!("standard input: {error}")))?;
            Ok(bytes)
        }
        Some(path) => std::fs::read(path)
            .map_err(|error| Failure::new(Code::NoInput, format!("{path}: {error}"))),
    }
}

fn looks_like_json(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
}

impl ConnectionOptions {
    pub(crate) fn protocol(&self) -> Protocol {
        if self.h2c || self.http2 { Protocol::Http2 } else { Protocol::Http1 }
    }

    /// The target of a URL, looked up.
    pub(crate) fn target(&self, url: &str) -> Result<Target, Failure> {
        let mut target = Target::parse(url).map_err(|error| Failure::usage(error.0))?;
        if self.h2c && target.tls {
            return Err(Failure::usage("--h2c is HTTP/2 in clear text; for https use --http2"));
        }
        if self.streams > 1 && self.protocol() == Protocol::Http1 {
            return Err(Failure::usage(
                "--streams is for HTTP/2; add --h2c or --http2, or use more connections (-c)",
            ));
        }
        target.unix_socket.clone_from(&self.unix_socket);
        target.resolve().map_err(|error| Failure::new(Code::Unavailable, error.0))?;
        Ok(target)
    }

    /// How TLS is spoken with a target. Files are read only if it is.
    pub(crate) fn tls(&self, target: &Target) -> Result<TlsTerms, Failure> {
        if !target.tls {
            return Ok(TlsTerms::default());
        }
        let authorities = self.trust.authorities().map_err(Failure::usage)?;
        let accepted = match (self.insecure, authorities) {
            (true, _) => TrustedCertificates::Any,
            (false, Some(authorities)) => TrustedCertificates::Of(authorities),
            (false, None) => TrustedCertificates::OfThisMachine,
        };
        Ok(TlsTerms { accepted, shown: self.trust.shown().map_err(Failure::usage)? })
    }

    /// Sends one request outside the figures.
    pub(crate) fn ask(
        &self,
        target: &Target,
        request: OwnedRequest,
    ) -> Result<driver::OwnedAnswer, Failure> {
        let what = format!("{} {}", request.method, target.url());
        driver::ask(target, self.protocol(), &self.tls(target)?, self.timeout, request)
            .map_err(|error| Failure::new(Code::Unavailable, format!("{what}: {error}")))
    }
}

impl Credentials {
    /// The value of `Authorization`, if there is to be one. May log in.
    pub(crate) fn authorization(
        &self,
        target: &Target,
        connection: &ConnectionOptions,
    ) -> Result<Option<String>, Failure> {
        let basic = |pair: &str| {
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
        };
        if let Some(token) = &self.bearer {
            return Ok(Some(format!("Bearer {token}")));
        }
        if let Some(path) = &self.token_file {
            let token = token_file::read(path)?;
            return Ok(Some(format!("Bearer {}", token.as_str())));
        }
        if let Some(url) = &self.token_url {
            return self.log_in(url, connection).map(|token| Some(format!("Bearer {token}")));
        }
        Ok(self.basic.as_ref().or(target.credentials.as_ref()).map(|pair| basic(pair)))
    }

    fn log_in(&self, url: &str, connection: &ConnectionOptions) -> Result<String, Failure> {
        let mut target = Target::parse(url).map_err(|error| Failure::usage(error.0))?;
        target.resolve().map_err(|error| Failure::new(Code::Unavailable, error.0))?;
        let body = self.token_body.as_deref().map_or(Ok(Vec::new()), read_at)?;
        let kind = if looks_like_json(&body) {
            "application/json"
        } else {
            "application/x-www-form-urlencoded"
        };
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if !body.is_empty() {
            headers.push(("content-type".to_owned(), kind.to_owned()));
        }
        let request =
            OwnedRequest { method: "POST".into(), path: target.path.clone(), headers, body };
        let answer = connection.ask(&target, request)?;
        let refused = |why: Invalid| {
            Failure::new(Code::Unavailable, format!("logging in at {}: {why}", target.url()))
        };
        if !(200..300).contains(&answer.status) {
            return Err(refused(format!("status {}", answer.status).into()));
        }
        let json: serde_json::Value = serde_json::from_slice(&answer.body)
            .map_err(|error| refused(format!("the answer is not JSON ({error})").into()))?;
        let token = json.pointer(&self.token_pointer).and_then(serde_json::Value::as_str);
        token.map(str::to_owned).ok_or_else(|| {
            refused(
                format!(
                    "the answer has no text at {:?}; say where the token is with --token-pointer",
                    self.token_pointer
                )
                .into(),
            )
        })
    }
}

impl RequestOptions {
    /// The header fields.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The credentials.
    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The one request, and a hash of everything in it but the credentials: logging
    /// in again gives another token, but asks the same of the server.
    pub(crate) fn source(
        &self,
        target: &Target,
        connection: &ConnectionOptions,
    ) -> Result<(Arc<dyn Source>, String), Failure> {
        let body = self.data.as_deref().map_or(Ok(Vec::new()), read_at)?;
        let default = if self.data.is_some() { "POST" } else { "GET" };
        let mut headers = self.headers.clone();
        let has = |headers: &[(String, String)], wanted: &str| {
            headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        if !has(&headers, "content-type") {
            let kind = match &self.content_type {
                Some(kind) => Some(kind.clone()),
                None if looks_like_json(&body) => Some("application/json".to_owned()),
                None => None,
            };
            headers.extend(kind.map(|kind| ("content-type".to_owned(), kind)));
        }
        let expected = match &self.expect {
            Some(text) => {
                Statuses::parse(text).map_err(|why| Failure::usage(format!("--expect: {why}")))?
            }
            None => Statuses::default(),
        };
        let mut request = OwnedRequest {
            method: self.method.clone().unwrap_or_else(|| default.to_owned()),
            path: target.path.clone(),
            headers,
            body,
        };
        let plain = self.made_of(request.clone(), expected)?;
        let hash = driver::workload_hash(plain.as_ref());
        if let Some(value) = self.credentials.authorization(target, connection)? {
            request.headers.push(("authorization".to_owned(), value));
        }
        Ok((self.made_of(request, expected)?, hash))
    }

    fn made_of(
        &self,
        request: OwnedRequest,
        expected: Statuses,
    ) -> Result<Arc<dyn Source>, Failure> {
        if !self.template {
            let source = FixedSource::new(request, expected).map_err(Failure::usage)?;
            return Ok(Arc::new(source));
        }
        let wrong = |error: ScenarioError| Failure::usage(format!("--template: {error}"));
        let scenario = Scenario::of_request(&request, expected, &[]).map_err(wrong)?;
        let source = scenario.source(&SetupValues::default(), Clock::unix_ns).map_err(wrong)?;
        Ok(Arc::new(source))
    }
}

/// The load of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) connections: Option<u32>,
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) arrivals: Arrivals,
    pub(crate) think_us: (u64, u64),
}

/// A URL as it may be kept: what looks like a secret in its query is not.
fn without_secrets(url: String) -> String {
    redact_command(&[url]).concat()
}

/// Puts the options together.
pub(crate) fn plan(
    target: &Target,
    (source, workload_hash): (Arc<dyn Source>, String),
    offer: Offer,
    connection: &ConnectionOptions,
    length: &LengthOptions,
) -> Result<Plan, Failure> {
    let load = match offer.rate_per_s {
        Some(rate_per_s) => Load::Open { rate_per_s, arrivals: offer.arrivals },
        None => Load::Closed { think_min_us: offer.think_us.0, think_max_us: offer.think_us.1 },
    };
    let default = if offer.rate_per_s.is_some() { OPEN_CONNECTIONS } else { CONNECTIONS };
    let connections = offer.connections.unwrap_or(default);
    let processors = u32::try_from(allowed_cpus().len()).unwrap_or(1);
    let workers = connection.threads.unwrap_or((processors / 2).max(1)).min(connections);
    let duration_ms = match (length.duration, length.requests) {
        (None, None) => Some(DURATION_MS),
        (duration, _) => duration,
    };
    if duration_ms == Some(0) {
        return Err(Failure::usage("the duration must be longer than nothing"));
    }
    let by_length = match (duration_ms, length.requests) {
        (Some(ms), None) => (ms / 10).min(1_000),
        _ => 0,
    };
    let settings = Settings {
        url: without_secrets(target.url()),
        workload: source.name(),
        workload_hash,
        load,
        connections,
        streams: connection.streams,
        workers,
        protocol: connection.protocol(),
        keep_alive: !connection.no_keepalive,
        stop: Stop { requests: length.requests, duration_ms },
        warmup_ms: length.warmup.unwrap_or(by_length),
        timeout_ms: connection.timeout,
        seed: length.seed,
        phases: length.phases,
        spin: length.spin,
    };
    let pin = !connection.no_pin;
    Ok(Plan { settings, target: target.clone(), source, pin, tls: connection.tls(target)? })
}

impl ContextOptions {
    pub(crate) fn driver_options(
        &self,
        connection: &ConnectionOptions,
    ) -> Result<driver::Options, Failure> {
        let server_count = match &self.server_count {
            None => None,
            Some(text) => {
                let (url, metric) = text.split_once('#').ok_or_else(|| {
                    Failure::usage("--server-count is URL#METRIC; the # is missing")
                })?;
                let mut target = Target::parse(url).map_err(|error| Failure::usage(error.0))?;
                target.resolve().map_err(|error| Failure::new(Code::Unavailable, error.0))?;
                let tls = connection.tls(&target)?;
                let count = ServerCount { target, metric: metric.to_owned(), tls };
                // Better refused now than missed after minutes of measuring.
                count.read().map_err(|why| Failure::usage(format!("--server-count: {why}")))?;
                Some(count)
            }
        };
        if let Some(pid) = self.server_pid
            && wellspring_load::machine::process_cpu_ns(pid).is_none()
        {
            return Err(Failure::usage(format!("--server-pid: there is no process {pid}")));
        }
        let headroom = !self.no_headroom;
        Ok(driver::Options { server_pid: self.server_pid, headroom, server_count })
    }
}

/// Rates in options.
pub(crate) fn rate(text: &str) -> Result<f64, Invalid> {
    rate_per_s(text)
}
