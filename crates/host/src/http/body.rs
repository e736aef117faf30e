//! The body of a request: read whole within a limit, or piece by piece, never slower than the
//! timeout, and within the memory for all bodies.

use super::Host;
use super::body_memory::Charge;
use crate::access::AccessRecheck;
use crate::limits::Payer;
use crate::stats::RefusalReason;
use crate::wire::problem::{self, Problem};
use bytes::{Bytes, BytesMut};
use hyper::Version;
use hyper::body::{Body as _, Incoming};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Bytes and time for discarding an unwanted body, so that a client that is still sending can read
/// its answer.
const LINGER_BYTES: usize = 64 << 20;
const LINGER: Duration = Duration::from_secs(3);

/// The answer to a body shorter than announced.
pub(crate) const ENDED_EARLY: &str = "the request body ended early: it is shorter than \
                                      announced; send the whole request again";
/// The answer to a body with malformed chunks.
pub(crate) const MALFORMED_CHUNKS: &str = "the chunked encoding of the body is malformed";

/// The source of a body.
pub enum Source {
    /// All of it.
    Full(Bytes),
    /// All of it, already charged.
    Paid(Bytes),
    /// The received part of an incomplete body, already charged.
    BrokenOff(Option<Bytes>),
    /// From hyper.
    Incoming(Incoming),
}

/// Why the rest of a body cannot be read, in our words: the library's tell a client nothing.
fn broken(error: &hyper::Error) -> Box<Problem> {
    let cause = std::error::Error::source(error).and_then(|e| e.downcast_ref::<std::io::Error>());
    let detail = match cause.map(std::io::Error::kind) {
        Some(ErrorKind::InvalidInput | ErrorKind::InvalidData) => MALFORMED_CHUNKS,
        _ => ENDED_EARLY,
    };
    problem::BAD_REQUEST.because(detail)
}

/// A body and its charges so far.
pub struct Body {
    source: Source,
    host: Arc<Host>,
    charge: Charge,
    payer: Payer,
    /// The caller; none before access is granted.
    recheck: Option<Arc<AccessRecheck>>,
}

impl Body {
    /// A body not yet read.
    pub fn new(source: Source, host: &Arc<Host>, version: Version) -> Body {
        Body {
            source,
            host: Arc::clone(host),
            charge: Charge::of_body(version),
            payer: Payer::default(),
            recheck: None,
        }
    }

    /// Rejects further input once its caller would no longer be admitted.
    pub(crate) fn recheck_access(&mut self, recheck: AccessRecheck) {
        self.recheck = Some(Arc::new(recheck));
    }

    /// The admission of its caller; none before that.
    pub fn recheck(&self) -> Option<&Arc<AccessRecheck>> {
        self.recheck.as_ref()
    }

    /// Charges the body to a payer.
    pub(crate) fn pay_by(&mut self, payer: Payer) {
        self.payer = payer;
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.host.config.body_timeout_ms)
    }

    /// The next piece, `None` at the end. A long body is throttled to the payer's rate.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Box<Problem>> {
        self.payer.solvent().await;
        self.chunk().await
    }

    /// The next piece, `None` at the end, while its caller would still be admitted.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Box<Problem>> {
        let chunk = self.next_chunk().await?;
        self.recheck.as_ref().map_or(Ok(()), |recheck| recheck.check())?;
        Ok(chunk)
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Box<Problem>> {
        let timeout = self.timeout();
        // Most pieces are available at once; only a wait needs a timer.
        let mut first = true;
        let ready = poll_fn(|context| {
            if !std::mem::take(&mut first) {
                return std::task::Poll::Ready(None);
            }
            match self.poll_chunk(context) {
                std::task::Poll::Ready(chunk) => std::task::Poll::Ready(Some(chunk)),
                std::task::Poll::Pending => std::task::Poll::Ready(None),
            }
        });
        if let Some(chunk) = ready.await {
            return chunk;
        }
        let next = poll_fn(|context| self.poll_chunk(context));
        let next = tokio::time::timeout(timeout, next).await;
        next.unwrap_or_else(|_| Err(self.too_slow()))
    }

    fn poll_chunk(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<Option<Bytes>, Box<Problem>>> {
        use std::task::Poll;
        loop {
            let incoming = match &mut self.source {
                Source::Full(bytes) => {
                    let bytes = std::mem::take(bytes);
                    self.payer.bytes(bytes.len());
                    return Poll::Ready(Ok((!bytes.is_empty()).then_some(bytes)));
                }
                Source::Paid(bytes) => {
                    let bytes = std::mem::take(bytes);
                    return Poll::Ready(Ok((!bytes.is_empty()).then_some(bytes)));
                }
                Source::BrokenOff(bytes) => {
                    let broken = || Err(problem::BAD_REQUEST.because(ENDED_EARLY));
                    return Poll::Ready(bytes.take().map_or_else(broken, |bytes| Ok(Some(bytes))));
                }
                Source::Incoming(incoming) => incoming,
            };
            return match Pin::new(incoming).poll_frame(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => Poll::Ready(Ok(None)),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        self.payer.bytes(data.len());
                        Poll::Ready(Ok(Some(data)))
                    }
                    _ => continue, // trailers and empty frames mean nothing here
                },
                Poll::Ready(Some(Err(error))) => Poll::Ready(Err(broken(&error))),
            };
        }
    }

    /// The whole body, at most `limit` bytes.
    pub async fn read(&mut self, limit: usize) -> Result<Bytes, Box<Problem>> {
        self.read_keeping(limit, &mut BytesMut::new()).await
    }

    /// The same; `came` keeps the received part of an incomplete body.
    async fn read_keeping(
        &mut self,
        limit: usize,
        came: &mut BytesMut,
    ) -> Result<Bytes, Box<Problem>> {
        let announced = self.announced();
        if announced > limit as u64 {
            return Err(too_large(limit));
        }
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        if first.len() as u64 >= announced && self.is_end() {
            return if first.len() > limit { Err(too_large(limit)) } else { Ok(first) };
        }
        let timeout = self.timeout();
        came.reserve((announced as usize).clamp(first.len(), 1 << 20));
        let whole = self.gather(first, came, limit);
        let whole = tokio::time::timeout(timeout, whole).await;
        whole.unwrap_or_else(|_| Err(self.too_slow()))
    }

    async fn gather(
        &mut self,
        first: Bytes,
        whole: &mut BytesMut,
        limit: usize,
    ) -> Result<Bytes, Box<Problem>> {
        // Memory is charged as bytes arrive, not as announced: announcements cost nothing.
        let mut next = Some(first);
        while let Some(chunk) = next {
            if whole.len() + chunk.len() > limit {
                return Err(too_large(limit));
            }
            self.charge(whole.len() + chunk.len())?;
            whole.extend_from_slice(&chunk);
            next = self.chunk().await?;
        }
        Ok(std::mem::take(whole).freeze())
    }

    /// Counts this body's memory as `bytes` until dropped.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Box<Problem>> {
        self.charge.raise_for(&self.payer, &self.host.body_memory, bytes)
    }

    fn too_slow(&self) -> Box<Problem> {
        self.host.stats.refusals.count(RefusalReason::SlowBody);
        let ms = self.host.config.body_timeout_ms;
        problem::BODY_TIMEOUT.because(format!("the body did not arrive within {ms} ms"))
    }

    fn is_end(&self) -> bool {
        match &self.source {
            Source::Full(bytes) | Source::Paid(bytes) => bytes.is_empty(),
            Source::BrokenOff(_) => false,
            Source::Incoming(incoming) => incoming.is_end_stream(),
        }
    }

    /// Its minimum size in bytes.
    fn announced(&self) -> u64 {
        match &self.source {
            Source::Full(bytes) | Source::Paid(bytes) => bytes.len() as u64,
            Source::BrokenOff(bytes) => bytes.as_ref().map_or(0, Bytes::len) as u64 + 1,
            Source::Incoming(incoming) => incoming.size_hint().lower(),
        }
    }

    /// Its size in bytes, if known in advance.
    pub(crate) fn exact_bytes(&self) -> Option<u64> {
        match &self.source {
            Source::Full(bytes) | Source::Paid(bytes) => Some(bytes.len() as u64),
            Source::BrokenOff(_) => None,
            Source::Incoming(incoming) => incoming.size_hint().exact(),
        }
    }

    /// Reads all of it, at most `limit` bytes, and keeps it to be read again.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) async fn gather_all(&mut self, limit: usize) -> Result<Bytes, Box<Problem>> {
        let (content, broken) = self.gather_what_comes(limit).await;
        broken.map_or(Ok(content), Err)
    }

    /// The same; returns the received part of an incomplete body, and why, without keeping it.
    pub(crate) async fn gather_what_comes(
        &mut self,
        limit: usize,
    ) -> (Bytes, Option<Box<Problem>>) {
        let mut came = BytesMut::new();
        match self.read_keeping(limit, &mut came).await {
            Ok(content) => {
                self.source = Source::Paid(content.clone());
                (content, None)
            }
            Err(problem) => (came.freeze(), Some(problem)),
        }
    }

    /// Replaces the body with this received part of an incomplete one.
    pub(crate) fn break_off_after(&mut self, content: Bytes) {
        self.source = Source::BrokenOff(Some(content));
    }
}

impl Body {
    /// Discards the rest from now on, so that it fills no buffer: over HTTP/2 each connection holds
    /// up to a MiB.
    pub(crate) fn discard(&mut self) {
        if self.is_end() {
            return;
        }
        let Source::Incoming(incoming) =
            std::mem::replace(&mut self.source, Source::Full(Bytes::new()))
        else {
            return;
        };
        // An answer sent while the client is still sending would be lost to a connection reset.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(linger(incoming, std::mem::take(&mut self.payer)));
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.discard();
    }
}

async fn linger(mut incoming: Incoming, payer: Payer) {
    let discard = async {
        let mut discarded = 0;
        while discarded < LINGER_BYTES {
            match poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Bytes::len);
                    payer.bytes(bytes);
                    discarded += bytes;
                }
                _ => return,
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, discard).await;
}

/// The answer to a body over its limit.
pub(crate) fn too_large(limit: usize) -> Box<Problem> {
    problem::TOO_LARGE
        .because(format!("the body is larger than {limit} bytes; split it into several requests"))
        .limit(limit as u64)
}
