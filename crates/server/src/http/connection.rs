//! hyper under the handlers: HTTP/1.1 and HTTP/2 on one port, one watch over each
//! connection instead of a timer for each request.

use super::body_memory::Charge;
use super::counted::Counted;
use super::dispatch::dispatch;
use super::stream::Polled;
use super::unread::{PIECE_BYTES, Patience, Progress, Unread};
use super::{Body, Content, Shell, Source};
use crate::limits::{Payer, Refused, SharedBucket};
use crate::stats;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// What happened on a connection, for the watch over it.
#[derive(Default)]
struct Activity {
    /// Requests whose answer is not yet handed over completely.
    in_flight: AtomicU64,
    /// Requests begun.
    begun: AtomicU64,
    /// Bytes read since the last request began or ended.
    read: AtomicU64,
    /// Bytes written.
    written: AtomicU64,
    /// Whether the last write found no room.
    blocked: AtomicBool,
    /// Whether this is HTTP/2, where bytes between requests mean nothing.
    http2: AtomicBool,
    /// Its answers, if it is.
    unread: Unread,
}

/// Counts a request as in flight until its answer is handed over.
struct InFlight(Arc<Activity>, #[allow(dead_code)] stats::InFlight);

impl InFlight {
    fn new(activity: &Arc<Activity>, shell: &Shell) -> InFlight {
        activity.in_flight.fetch_add(1, Relaxed);
        activity.begun.fetch_add(1, Relaxed);
        activity.read.store(0, Relaxed);
        InFlight(Arc::clone(activity), shell.stats.begin())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
        self.0.read.store(0, Relaxed);
    }
}

/// The socket, or what speaks TLS on it, watched.
struct Watched<S> {
    io: TokioIo<Counted<S>>,
    /// What was read from the socket before it came here, and comes before what it still holds.
    read: Bytes,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> Read for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.read.is_empty() {
            let length = self.read.len().min(buffer.remaining());
            buffer.put_slice(&self.read.split_to(length));
            self.activity.read.fetch_add(1, Relaxed);
            return Poll::Ready(Ok(()));
        }
        let poll = Pin::new(&mut self.io).poll_read(context, buffer);
        if poll.is_ready() {
            self.activity.read.fetch_add(1, Relaxed);
        }
        poll
    }
}

impl<S> Watched<S> {
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

impl<S: AsyncWrite + Unpin> Write for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write(context, bytes);
        self.note(&poll);
        poll
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.note(&poll);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.io).poll_flush(context);
        // TLS takes what the socket has no room for, and is stuck with it here.
        self.activity.blocked.store(poll.is_pending(), Relaxed);
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// An answer's content as hyper takes it.
struct Outgoing {
    content: Content,
    /// What has come of a stream and is not given yet.
    rest: Bytes,
    /// Over HTTP/2, where it goes in pieces.
    progress: Option<Arc<Progress>>,
    _in_flight: InFlight,
    _held: Option<Box<Charge>>,
}

impl Outgoing {
    fn new(content: Content, in_flight: InFlight, held: Option<Box<Charge>>) -> Outgoing {
        let is_empty = matches!(&content, Content::Full(bytes) if bytes.is_empty());
        let activity = &in_flight.0;
        let watched = !is_empty && activity.http2.load(Relaxed);
        let progress = watched.then(|| activity.unread.begin());
        Outgoing { content, rest: Bytes::new(), progress, _in_flight: in_flight, _held: held }
    }

    /// What there is next, in any size.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let most = if self.progress.is_some() { PIECE_BYTES } else { usize::MAX };
        let bytes = match &mut self.content {
            Content::Full(bytes) => bytes,
            Content::Stream(chunks) => {
                if self.rest.is_empty() {
                    self.rest = match std::task::ready!(chunks.poll(context)) {
                        Polled::Bytes(bytes) => bytes,
                        Polled::End => return Poll::Ready(None),
                        Polled::Cut => {
                            return Poll::Ready(Some(Err(io::Error::other("the answer was cut"))));
                        }
                    };
                }
                &mut self.rest
            }
        };
        let piece = bytes.split_to(bytes.len().min(most));
        Poll::Ready((!piece.is_empty()).then_some(Ok(piece)))
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = self.poll_bytes(context);
        let Some(progress) = &self.progress else {
            return polled.map(|next| next.map(|bytes| bytes.map(Frame::data)));
        };
        progress.asked(polled.is_pending());
        polled.map(|next| next.map(|bytes| Ok(Frame::data(progress.piece(bytes?)))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

async fn serve_request(
    request: hyper::Request<Incoming>,
    peer: Option<IpAddr>,
    shell: Arc<Shell>,
    activity: Arc<Activity>,
    connection: Option<Arc<SharedBucket>>,
) -> Result<hyper::Response<Outgoing>, Infallible> {
    let in_flight = InFlight::new(&activity, &shell);
    if request.version() == hyper::Version::HTTP_2 {
        activity.http2.store(true, Relaxed);
    }
    let (parts, incoming) = request.into_parts();
    let request = super::Request {
        client: shell.limits.client(peer, || {
            let forwarded = parts.headers.get_all("x-forwarded-for");
            forwarded.into_iter().map(|value| value.as_bytes()).collect()
        }),
        principal: shell.access.nobody(),
        connection,
        payer: Payer::default(),
        method: parts.method,
        uri: parts.uri,
        version: parts.version,
        headers: parts.headers,
        peer,
        body: Body::new(Source::Incoming(incoming), &shell, parts.version),
        param: String::new(),
        log_name: String::new(),
        log: None,
    };
    let answer = dispatch(shell, request).await;
    let outgoing = Outgoing::new(answer.content, in_flight, answer.held);
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
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}

/// Serves one connection until it ends, times out or the server stops. `read` is
/// what has been read from it already, `peer` who is at the other end.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    peer: Option<IpAddr>,
    read: Bytes,
    shell: Arc<Shell>,
) {
    let activity = Arc::new(Activity::default());
    let io = TokioIo::new(Counted::new(stream, &shell.stats));
    let io = Watched { io, read, activity: Arc::clone(&activity) };
    let rate = shell.limits.of_connection();
    let service = service_fn(|request| {
        serve_request(request, peer, Arc::clone(&shell), Arc::clone(&activity), rate.clone())
    });
    let builder = builder(&shell);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    let is_proxy = shell.link_settings.proxies.trusts(peer);
    let mut watch = Watch::new(&shell, if is_proxy { Patience::OfAll } else { Patience::OfEach });
    let mut stopping = shell.stopping.clone();
    let mut told_to_end = false;
    loop {
        tokio::select! {
            // A request that has been read is begun before the connection is told to end.
            biased;
            _ = connection.as_mut() => return,
            () = tokio::time::sleep(watch.tick) => match watch.look(&activity) {
                Verdict::Fine => {}
                Verdict::Idle => connection.as_mut().graceful_shutdown(),
                Verdict::Stuck(refused) => {
                    if let Some(refused) = refused {
                        shell.stats.refusals.count(refused);
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

fn builder(shell: &Shell) -> auto::Builder<TokioExecutor> {
    let config = &shell.config;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .half_close(true)
        .max_headers(config.max_headers)
        .max_buf_size(config.max_buffer_bytes);
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
enum Verdict {
    Fine,
    /// Nothing asked for long: end politely.
    Idle,
    /// The client does not send what it began, or does not read what it asked for, or does not go.
    Stuck(Option<Refused>),
}

/// Looks at a connection every `tick` and remembers what it saw.
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
    fn new(shell: &Shell, patience: Patience) -> Watch {
        let config = &shell.config;
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

    fn look(&mut self, activity: &Activity) -> Verdict {
        let begun = activity.begun.load(Relaxed);
        let quiet = activity.in_flight.load(Relaxed) == 0 && begun == self.begun;
        self.begun = begun;
        self.quiet_for = if quiet { self.quiet_for + self.tick } else { Duration::ZERO };
        let partial = quiet && activity.read.load(Relaxed) > 0 && !activity.http2.load(Relaxed);
        self.partial_for = if partial { self.partial_for + self.tick } else { Duration::ZERO };
        let written = activity.written.load(Relaxed);
        let blocked = activity.blocked.load(Relaxed) && written == self.written;
        self.written = written;
        self.blocked_for = if blocked { self.blocked_for + self.tick } else { Duration::ZERO };
        let unread_for = activity.unread.still_for(self.tick, self.patience);
        if self.partial_for >= self.header {
            Verdict::Stuck(Some(Refused::SlowHead))
        } else if self.blocked_for.max(unread_for) >= self.write {
            Verdict::Stuck(Some(Refused::SlowReader))
        } else if self.quiet_for >= self.idle {
            // Polite first; a client that does not go is cut one idle time later.
            if self.quiet_for >= 2 * self.idle { Verdict::Stuck(None) } else { Verdict::Idle }
        } else {
            Verdict::Fine
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
        assert_eq!(watch.look(&activity), Verdict::Fine);
        assert_eq!(watch.look(&activity), Verdict::Stuck(Some(Refused::SlowHead)));
    }

    #[test]
    fn a_quiet_connection_is_ended_and_a_busy_one_is_not() {
        let (mut watch, activity) = (watch(), Activity::default());
        let looks: Vec<_> = (0..5).map(|_| watch.look(&activity)).collect();
        assert_eq!(looks[3..], [Verdict::Fine, Verdict::Idle]);
        activity.in_flight.store(1, Relaxed);
        assert!((0..20).all(|_| watch.look(&activity) == Verdict::Fine));
    }

    #[test]
    fn a_client_that_does_not_read_is_cut() {
        let (mut watch, activity) = (watch(), Activity::default());
        activity.in_flight.store(1, Relaxed);
        activity.blocked.store(true, Relaxed);
        let looks: Vec<_> = (0..3).map(|_| watch.look(&activity)).collect();
        assert_eq!(
            looks,
            [Verdict::Fine, Verdict::Fine, Verdict::Stuck(Some(Refused::SlowReader))]
        );
    }
}
