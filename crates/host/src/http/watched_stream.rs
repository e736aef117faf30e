//! The stream under hyper: watches its activity, looks at the heads that come and at the answers
//! that hyper writes by itself.

use super::ConnectionState;
use super::bare_refusals::BareRefusals;
use super::connection::Activity;
use super::framing::RequestFraming;
use super::half_close::LastSecond;
use crate::socket::{CountedStream, Socket};
use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// The socket, or TLS on it, with its activity counted.
pub(super) struct WatchedStream<S> {
    io: TokioIo<CountedStream<S>>,
    last_second: LastSecond,
    bare_refusals: BareRefusals,
    framing: RequestFraming,
    /// Bytes read from the socket before it came here, which come first.
    read: Bytes,
    activity: Arc<Activity>,
    state: Arc<ConnectionState>,
}

impl<S: Socket> Read for WatchedStream<S> {
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

impl<S: Socket> WatchedStream<S> {
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
        if self.framing.is_within() {
            self.io.inner().get_ref().acknowledge();
        }
        if let Some(faulty) = self.framing.faulty() {
            // Nothing is followed after the first one.
            let _ = self.activity.faulty.set(faulty);
        }
    }
}

impl<S> WatchedStream<S> {
    /// A socket, with bytes already read from it.
    pub(super) fn new(
        io: CountedStream<S>,
        read: Bytes,
        framing: RequestFraming,
        activity: Arc<Activity>,
        state: Arc<ConnectionState>,
    ) -> WatchedStream<S> {
        let (io, last_second) = (TokioIo::new(io), LastSecond::default());
        let bare_refusals = BareRefusals::default();
        WatchedStream { io, last_second, bare_refusals, framing, read, activity, state }
    }

    /// The socket, which nothing watches any more.
    pub(super) fn into_inner(self) -> CountedStream<S> {
        self.io.into_inner()
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
    /// Whether hyper refuses a head with these bytes, the last of a write.
    fn is_refusal(&self, bytes: &[u8]) -> bool {
        !self.activity.is_http2.load(Relaxed) && self.bare_refusals.is_concerned(bytes)
    }

    fn write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_refusal(bytes) {
            self.bare_refusals.poll_write(&mut self.io, context, bytes)
        } else {
            Pin::new(&mut self.io).poll_write(context, bytes)
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
        let poll = if last.is_some_and(|last| self.is_refusal(last)) {
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter()).copied().collect();
            self.write(context, &bytes)
        } else {
            Pin::new(&mut self.io).poll_write_vectored(context, slices)
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

#[cfg(test)]
mod tests {
    use super::super::half_close::PATIENCE;
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
                        RequestFraming::new(0),
                        Arc::clone(&activity),
                        Arc::default(),
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
}
