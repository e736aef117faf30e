//! hyper under the handlers: HTTP/1.1 and HTTP/2 on one port, and one watchdog per connection
//! instead of a timer per request.

use super::bare_refusals::{BareRefusals, HEAD_END};
use super::counted::CountedStream;
use super::dispatch::dispatch;
use super::framing::RequestFraming;
use super::head_rules::HeadAmbiguity;
use super::header_names::X_FORWARDED_FOR;
use super::leaving::{LastSecond, Socket};
use super::outgoing::Outgoing;
use super::server::Server;
use super::unread::{Patience, UnreadAnswers};
use super::{Body, ConnectionState, ConnectionTies, Content, Host, Response, Source};
use crate::limits::Payer;
use crate::stats::{self, RefusalReason};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// Activity of a connection, for its watchdog.
#[derive(Default)]
struct Activity {
    /// Requests whose answer has not started.
    waiting: AtomicU64,
    /// Requests whose answer is not completely handed over.
    in_flight: AtomicU64,
    /// Whether bytes between requests mean nothing and sides are never shut.
    is_http2: AtomicBool,
    /// Requests begun.
    begun: AtomicU64,
    /// The request, counted from 1, whose head another reader could take for another one.
    faulty: Mutex<Option<(u64, HeadAmbiguity)>>,
    /// Bytes read since the last request started or ended.
    read: AtomicU64,
    /// Bytes written.
    written: AtomicU64,
    /// Whether the last write found no room.
    blocked: AtomicBool,
    /// Its answers, if this is HTTP/2.
    unread: UnreadAnswers,
}

impl Activity {
    /// Why it is ambiguous where the request ends that begins now.
    fn framing_of_next(&self) -> Option<HeadAmbiguity> {
        let (number, ambiguity) = (*self.faulty.lock().unwrap_or_else(PoisonError::into_inner))?;
        (self.begun.load(Relaxed) + 1 == number).then_some(ambiguity)
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

/// The socket, or TLS on it, with its activity counted.
struct WatchedStream<S> {
    io: TokioIo<CountedStream<S>>,
    last_second: LastSecond,
    bare_refusals: BareRefusals,
    framing: RequestFraming,
    /// Bytes read from the socket before it came here, which come first.
    read: Bytes,
    activity: Arc<Activity>,
    state: Arc<ConnectionState>,
}

impl<S: AsyncRead + Unpin> Read for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = if !self.read.is_empty() {
            let length = self.read.len().min(buffer.remaining());
            let read = self.read.split_to(length);
            self.hand_on(&read, &mut buffer);
            Poll::Ready(Ok(()))
        } else if self.framing.unseen() >= buffer.remaining() as u64 {
            self.read_unseen(context, buffer)
        } else {
            self.read_seen(context, buffer)
        };
        if poll.is_ready() {
            self.activity.read.fetch_add(1, Relaxed);
        }
        poll
    }
}

thread_local! {
    /// Where bytes are looked at before hyper gets them.
    static SEEN: RefCell<Box<[u8]>> = RefCell::new(vec![0; 64 << 10].into());
}

impl<S: AsyncRead + Unpin> WatchedStream<S> {
    /// Reads what need not be looked at: content.
    fn read_unseen(
        &mut self,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.io).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = poll {
            self.framing.pass(self.io.inner().last_read() as u64);
        }
        poll
    }

    /// Reads what may hold a head.
    fn read_seen(
        &mut self,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        SEEN.with_borrow_mut(|seen| {
            let most = seen.len().min(buffer.remaining());
            let mut read = ReadBuf::new(&mut seen[..most]);
            let poll = Pin::new(self.io.inner_mut()).poll_read(context, &mut read);
            if let Poll::Ready(Ok(())) = poll {
                self.hand_on(read.filled(), &mut buffer);
            }
            poll
        })
    }

    /// Looks at bytes and gives them to hyper, except for chunks that it must not read.
    fn hand_on(&mut self, bytes: &[u8], buffer: &mut ReadBufCursor<'_>) {
        match self.framing.follow(bytes) {
            None => buffer.put_slice(bytes),
            Some(sound) => {
                buffer.put_slice(&bytes[..sound]);
                // No size of a chunk: hyper refuses the rest, as it refuses other broken chunks.
                buffer.put_slice(b"!");
            }
        }
        if let Some(faulty) = self.framing.faulty() {
            let mut known = self.activity.faulty.lock().unwrap_or_else(PoisonError::into_inner);
            known.get_or_insert(faulty);
        }
    }
}

impl<S> WatchedStream<S> {
    /// A socket, with bytes already read from it.
    fn new(
        io: CountedStream<S>,
        read: Bytes,
        framing: RequestFraming,
        (activity, state): (Arc<Activity>, Arc<ConnectionState>),
    ) -> WatchedStream<S> {
        let (io, last_second) = (TokioIo::new(io), LastSecond::default());
        let bare_refusals = BareRefusals::default();
        WatchedStream { io, last_second, bare_refusals, framing, read, activity, state }
    }

    fn note(&self, poll: &Poll<io::Result<usize>>) {
        match poll {
            Poll::Ready(Ok(bytes)) => {
                self.activity.written.fetch_add(*bytes as u64, Relaxed);
                self.activity.blocked.store(false, Relaxed);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.blocked.store(true, Relaxed),
        }
    }
}

impl<S: Socket> WatchedStream<S> {
    fn write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let is_claimed = !self.activity.is_http2.load(Relaxed) && self.bare_refusals.claims(bytes);
        match is_claimed {
            true => self.bare_refusals.poll_write(&mut self.io, context, bytes.len()),
            false => Pin::new(&mut self.io).poll_write(context, bytes),
        }
    }

    /// Whether output may still be waiting for the client. hyper flushes whenever it is woken.
    fn look_for_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Activity { waiting, is_http2, .. } = &*self.activity;
        if waiting.load(Relaxed) == 0 || is_http2.load(Relaxed) {
            self.last_second.forget();
            return Ok(());
        }
        self.last_second.look(self.io.inner().get_ref(), context)?;
        self.state.is_shut.store(self.last_second.has_begun(), Relaxed);
        Ok(())
    }
}

impl<S: Socket> Write for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = self.write(context, bytes);
        self.note(&poll);
        poll
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let last = slices.iter().rfind(|slice| !slice.is_empty());
        let poll = match last.is_some_and(|last| last.ends_with(HEAD_END)) {
            true => {
                let bytes: Vec<u8> =
                    slices.iter().flat_map(|slice| slice.iter()).copied().collect();
                self.write(context, &bytes)
            }
            false => Pin::new(&mut self.io).poll_write_vectored(context, slices),
        };
        self.note(&poll);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_for_end(context)?;
        let poll = Pin::new(&mut self.io).poll_flush(context);
        // TLS buffers what the socket has no room for, and is stuck with it here.
        self.activity.blocked.store(poll.is_pending(), Relaxed);
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
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
    request: hyper::Request<Incoming>,
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
pub(crate) async fn serve<S: Socket + 'static>(
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
        (Arc::clone(&activity), Arc::clone(&state)),
    );
    let rate = host.limits.of_connection();
    let service = service_fn(|request| {
        let framing = activity.framing_of_next();
        let ties = ConnectionTies { rate: rate.clone(), framing, state: Arc::clone(&state) };
        serve_request(request, peer, Arc::clone(&server), Arc::clone(&activity), ties)
    });
    let builder = builder(host);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    let is_proxy = host.limits.proxies().trusts(peer);
    let mut watch = Watch::new(host, if is_proxy { Patience::OfAll } else { Patience::OfEach });
    let mut stopping = host.stopping.clone();
    let mut told_to_end = false;
    loop {
        tokio::select! {
            // A request that has been read is started before the connection is told to end.
            biased;
            _ = connection.as_mut() => return,
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
    use super::super::leaving::PATIENCE;
    use super::*;
    use crate::stats::Stats;
    use std::future::poll_fn;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn a_client_that_shuts_its_side_waits_a_second_for_its_answer_to_begin() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (activity, stats) =
                (Arc::new(Activity::default()), Arc::new(Stats::new(1, Vec::new(), 0)));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let connected = async || {
                let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let (server, _) = listener.accept().await.unwrap();
                (
                    client,
                    WatchedStream::new(
                        CountedStream::new(server, &stats),
                        Bytes::new(),
                        (Arc::clone(&activity), Arc::default()),
                    ),
                )
            };
            // Flushes as hyper does, whenever it is woken, until that fails.
            let refused_after = async |watched: &mut WatchedStream<TcpStream>| {
                let begun = tokio::time::Instant::now();
                let flushed =
                    poll_fn(|context| match Pin::new(&mut *watched).poll_flush(context) {
                        Poll::Ready(Err(error)) => Poll::Ready(error),
                        _ => Poll::Pending,
                    });
                let refused = tokio::time::timeout(2 * PATIENCE, flushed).await;
                refused.ok().map(|error| (begun.elapsed(), error.kind()))
            };
            let (mut client, mut watched) = connected().await;
            client.shutdown().await.unwrap();
            assert_eq!(refused_after(&mut watched).await, None, "nothing is asked");
            activity.waiting.store(1, Relaxed);
            let (after, kind) = refused_after(&mut watched).await.expect("no answer has begun");
            assert_eq!(kind, io::ErrorKind::ConnectionAborted);
            assert!(after >= PATIENCE, "{after:?}");
            activity.is_http2.store(true, Relaxed);
            assert_eq!(refused_after(&mut watched).await, None, "over HTTP/2 no side is shut");
            activity.is_http2.store(false, Relaxed);
            let (mut client, mut watched) = connected().await;
            client.write_all(b"the next request").await.unwrap();
            client.shutdown().await.unwrap();
            let refused = refused_after(&mut watched).await;
            let (after, kind) = refused.expect("unread bytes do not hide the end");
            assert_eq!(kind, io::ErrorKind::ConnectionAborted);
            assert!(after >= PATIENCE, "{after:?}");
            let (mut client, mut watched) = connected().await;
            client.write_all(b"the next request").await.unwrap();
            assert_eq!(refused_after(&mut watched).await, None, "it is not shut");
            client.set_zero_linger().unwrap();
            drop(client);
            let refused = refused_after(&mut watched).await;
            let (after, _) = refused.expect("unread bytes do not hide that the client has gone");
            assert!(after < PATIENCE, "{after:?}");
            let (client, mut watched) = connected().await;
            client.set_zero_linger().unwrap();
            drop(client);
            let (after, kind) = refused_after(&mut watched).await.expect("the client has gone");
            assert_eq!(kind, io::ErrorKind::ConnectionReset);
            assert!(after < PATIENCE, "{after:?}");
        });
    }

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
