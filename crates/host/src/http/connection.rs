//! hyper under the handlers: HTTP/1.1 and HTTP/2 on one port, and one watchdog per connection
//! instead of a timer per request.

use super::dispatch::dispatch;
use super::framing::RequestFraming;
use super::head_rules::HeadAmbiguity;
use super::header_names::X_FORWARDED_FOR;
use super::outgoing::Outgoing;
use super::server::Server;
use super::unread_answers::{Patience, UnreadAnswers};
use super::watched_stream::WatchedStream;
use super::websocket;
use super::{Body, ConnectionState, ConnectionTies, Content, Host, Response, Source};
use crate::limits::Payer;
use crate::socket::{CountedStream, Socket};
use crate::stats::{self, RefusalReason};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, UPGRADE};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Activity of a connection, for its watchdog.
#[derive(Default)]
pub(super) struct Activity {
    /// Requests whose answer has not started.
    pub(super) waiting: AtomicU64,
    /// Requests whose answer is not completely handed over.
    in_flight: AtomicU64,
    /// Whether bytes between requests mean nothing and sides are never shut.
    pub(super) is_http2: AtomicBool,
    /// Requests begun.
    begun: AtomicU64,
    /// The request, counted from 1, whose head another reader could take for another one.
    pub(super) faulty: OnceLock<(u64, HeadAmbiguity)>,
    /// Bytes read since the last request started or ended.
    pub(super) read: AtomicU64,
    /// Bytes written.
    pub(super) written: AtomicU64,
    /// Whether the last write found no room.
    pub(super) blocked: AtomicBool,
    /// Its answers, if this is HTTP/2.
    unread: UnreadAnswers,
    /// The connection after the answer that opened a WebSocket.
    upgrade: Mutex<Option<OnUpgrade>>,
}

impl Activity {
    /// Why it is ambiguous where the request ends that begins now.
    fn framing_of_next(&self) -> Option<HeadAmbiguity> {
        let (number, ambiguity) = self.faulty.get()?;
        (self.begun.load(Relaxed) + 1 == *number).then_some(*ambiguity)
    }
}

/// Counts a request as in progress until its answer is handed over.
struct InFlight {
    activity: Arc<Activity>,
    is_waiting: bool,
    _counted: stats::InFlight,
}

impl InFlight {
    fn new(activity: Arc<Activity>, host: &Host) -> InFlight {
        activity.begun.fetch_add(1, Relaxed);
        activity.read.store(0, Relaxed);
        activity.waiting.fetch_add(1, Relaxed);
        activity.in_flight.fetch_add(1, Relaxed);
        InFlight { activity, is_waiting: true, _counted: host.stats.begin() }
    }

    /// The answer starts.
    fn answered(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.activity.waiting.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.answered();
        self.activity.in_flight.fetch_sub(1, Relaxed);
        self.activity.read.store(0, Relaxed);
    }
}

/// Turns an answer into that of `HEAD`: its headers, including the length of its content, without
/// content (RFC 9110, 9.3.2). hyper does so for HTTP/1 only.
fn leave_content_out(answer: &mut Response) {
    let content = std::mem::replace(&mut answer.content, Content::Full(Bytes::new()));
    if let Content::Full(bytes) = content
        && !bytes.is_empty()
    {
        answer.headers.push(("content-length", bytes.len().to_string()));
    }
}

async fn serve_request(
    mut request: hyper::Request<Incoming>,
    peer: Option<IpAddr>,
    server: Arc<Server>,
    activity: Arc<Activity>,
    connection: ConnectionTies,
) -> Result<hyper::Response<Outgoing<InFlight>>, Infallible> {
    let host = &server.host;
    let version = request.version();
    if version == hyper::Version::HTTP_2 {
        activity.is_http2.store(true, Relaxed);
    }
    let upgrade = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let mut in_flight = InFlight::new(activity, host);
    let (parts, incoming) = request.into_parts();
    let request = Box::new(super::Request {
        client: {
            let forwarded = parts.headers.get_all(&X_FORWARDED_FOR).iter();
            host.limits.proxies().client(peer, forwarded.map(|value| value.as_bytes()))
        },
        of_node: None,
        principal: host.access.unauthenticated(),
        connection: Some(connection),
        payer: Payer::default(),
        effects: Default::default(),
        method: parts.method,
        uri: parts.uri,
        version: parts.version,
        headers: parts.headers,
        body: Body::new(Source::Incoming(incoming), host, parts.version),
        contract: &super::contract::NO_ROUTE,
        query: Default::default(),
        wants: "",
        params: Default::default(),
        log_name: String::new(),
        log: None,
    });
    let is_head = request.method == hyper::Method::HEAD;
    let mut answer = dispatch(server, request).await;
    if is_head && version == hyper::Version::HTTP_2 {
        leave_content_out(&mut answer);
    }
    if answer.status == websocket::SWITCHING {
        *in_flight.activity.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = upgrade;
    }
    in_flight.answered();
    let watched = in_flight.activity.is_http2.load(Relaxed).then_some(&in_flight.activity.unread);
    let outgoing =
        Outgoing::new(answer.content, answer.trailers.map_or_else(Vec::new, |t| *t), watched);
    let outgoing = outgoing.holding(in_flight, answer.held);
    let mut response = hyper::Response::new(outgoing);
    *response.status_mut() = hyper::StatusCode::from_u16(answer.status).unwrap_or_default();
    let headers = response.headers_mut();
    if !answer.content_type.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    }
    if let Some(position) = answer.position {
        headers.insert(HeaderName::from_static("wellspring-position"), position.into());
    }
    for (name, value) in answer.headers {
        // An embedded face may write names in mixed case.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

/// What another stack did with a connection before it was handed over.
#[derive(Debug, Default)]
pub(crate) struct EarlierTraffic {
    /// Bytes read from it, which belong to the next request.
    pub(crate) read: Bytes,
    /// Whether events may have been accepted from it that are not stored yet.
    pub(crate) handed_in: bool,
}

/// Serves one connection until it ends, times out or the server stops. `peer` is the client's
/// address.
pub(crate) async fn serve<S: Socket + Send + 'static>(
    stream: S,
    peer: Option<IpAddr>,
    earlier: EarlierTraffic,
    server: Arc<Server>,
) {
    let host = &server.host;
    let EarlierTraffic { read, handed_in } = earlier;
    let activity = Arc::new(Activity::default());
    let state = ConnectionState { handed_in: AtomicBool::new(handed_in), ..Default::default() };
    let state = Arc::new(state);
    let io = WatchedStream::new(
        CountedStream::new(stream, &host.stats),
        read,
        RequestFraming::new(host.config.max_buffer_bytes),
        Arc::clone(&activity),
        Arc::clone(&state),
    );
    let rate = host.limits.of_connection();
    let service = service_fn(|request| {
        let framing = activity.framing_of_next();
        let (rate, state) = (rate.clone(), Arc::clone(&state));
        let ties = ConnectionTies { rate, is_counted: false, framing, state };
        serve_request(request, peer, Arc::clone(&server), Arc::clone(&activity), ties)
    });
    let builder = builder(host);
    let mut connection = std::pin::pin!(builder.serve_connection_with_upgrades(io, service));
    let is_proxy = host.limits.proxies().trusts(peer);
    let mut watch = Watch::new(host, if is_proxy { Patience::OfAll } else { Patience::OfEach });
    let mut stopping = host.stopping.clone();
    let mut told_to_end = false;
    loop {
        tokio::select! {
            // A request that has been read is started before the connection is told to end.
            biased;
            _ = connection.as_mut() => break,
            () = tokio::time::sleep(watch.tick) => match watch.look(&activity) {
                IdleCheck::Fine => {}
                IdleCheck::Idle => connection.as_mut().graceful_shutdown(),
                IdleCheck::Stuck(refused) => {
                    if let Some(refused) = refused {
                        host.stats.refusals.count(refused);
                    }
                    return;
                }
            },
            _ = stopping.wait_for(|&stopping| stopping), if !told_to_end => {
                told_to_end = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    let upgrade = activity.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(upgrade) = upgrade {
        // Apart, as most connections have none.
        Box::pin(websocket::serve::<S>(upgrade, peer, &server)).await;
    }
}

/// Headers that hyper reads without an allocation. Over its limit hyper answers without content; so
/// it reads as many as are free, and those over the setting are counted afterwards.
const HEADERS_UNALLOCATED: usize = 100;

fn builder(host: &Host) -> auto::Builder<TokioExecutor> {
    let config = &host.config;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .max_headers(config.max_headers.max(HEADERS_UNALLOCATED))
        .max_buf_size(config.max_buffer_bytes)
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.max_streams)
        .max_header_list_size(config.max_buffer_bytes as u32)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .max_send_buf_size(256 << 10)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

#[derive(Debug, PartialEq, Eq)]
enum IdleCheck {
    Fine,
    /// Idle for long: end gracefully.
    Idle,
    /// The client does not finish its request, does not read its answer, or does not close.
    Stuck(Option<RefusalReason>),
}

/// Checks a connection every `tick` and remembers its state.
struct Watch {
    tick: Duration,
    header: Duration,
    idle: Duration,
    write: Duration,
    patience: Patience,
    begun: u64,
    written: u64,
    quiet_for: Duration,
    partial_for: Duration,
    blocked_for: Duration,
}

impl Watch {
    fn new(host: &Host, patience: Patience) -> Watch {
        let config = &host.config;
        let [header, idle, write] =
            [config.header_timeout_ms, config.idle_timeout_ms, config.write_timeout_ms]
                .map(Duration::from_millis);
        let tick = (header.min(idle).min(write) / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(5));
        let zero = Duration::ZERO;
        Watch {
            tick,
            header,
            idle,
            write,
            patience,
            begun: 0,
            written: 0,
            quiet_for: zero,
            partial_for: zero,
            blocked_for: zero,
        }
    }

    fn look(&mut self, activity: &Activity) -> IdleCheck {
        let begun = activity.begun.load(Relaxed);
        let quiet = activity.in_flight.load(Relaxed) == 0 && begun == self.begun;
        self.begun = begun;
        self.quiet_for = if quiet { self.quiet_for + self.tick } else { Duration::ZERO };
        let partial = quiet && activity.read.load(Relaxed) > 0 && !activity.is_http2.load(Relaxed);
        self.partial_for = if partial { self.partial_for + self.tick } else { Duration::ZERO };
        let written = activity.written.load(Relaxed);
        let blocked = activity.blocked.load(Relaxed) && written == self.written;
        self.written = written;
        self.blocked_for = if blocked { self.blocked_for + self.tick } else { Duration::ZERO };
        let unread_for = activity.unread.still_for(self.tick, self.patience);
        if self.partial_for >= self.header {
            IdleCheck::Stuck(Some(RefusalReason::SlowHead))
        } else if self.blocked_for.max(unread_for) >= self.write {
            IdleCheck::Stuck(Some(RefusalReason::SlowReader))
        } else if self.quiet_for >= self.idle {
            // Graceful first; a client that does not close is disconnected one idle time later.
            if self.quiet_for >= 2 * self.idle { IdleCheck::Stuck(None) } else { IdleCheck::Idle }
        } else {
            IdleCheck::Fine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        let second = Duration::from_secs(1);
        Watch {
            tick: second,
            header: 2 * second,
            idle: 5 * second,
            write: 3 * second,
            patience: Patience::OfEach,
            begun: 0,
            written: 0,
            quiet_for: Duration::ZERO,
            partial_for: Duration::ZERO,
            blocked_for: Duration::ZERO,
        }
    }

    #[test]
    fn a_request_that_never_completes_is_cut() {
        let (mut watch, activity) = (watch(), Activity::default());
        activity.read.store(1, Relaxed);
        assert_eq!(watch.look(&activity), IdleCheck::Fine);
        assert_eq!(watch.look(&activity), IdleCheck::Stuck(Some(RefusalReason::SlowHead)));
    }

    #[test]
    fn a_quiet_connection_is_ended_and_a_busy_one_is_not() {
        let (mut watch, activity) = (watch(), Activity::default());
        let looks: Vec<_> = (0..5).map(|_| watch.look(&activity)).collect();
        assert_eq!(looks[3..], [IdleCheck::Fine, IdleCheck::Idle]);
        activity.in_flight.store(1, Relaxed);
        assert!((0..20).all(|_| watch.look(&activity) == IdleCheck::Fine));
    }

    #[test]
    fn a_client_that_does_not_read_is_cut() {
        let (mut watch, activity) = (watch(), Activity::default());
        activity.in_flight.store(1, Relaxed);
        activity.blocked.store(true, Relaxed);
        let looks: Vec<_> = (0..3).map(|_| watch.look(&activity)).collect();
        assert_eq!(
            looks,
            [IdleCheck::Fine, IdleCheck::Fine, IdleCheck::Stuck(Some(RefusalReason::SlowReader))]
        );
    }
}
