//! A socket whose bytes are counted.

use crate::stats::Stats;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts what passes.
pub(crate) struct CountedStream<T> {
    stream: T,
    stats: Arc<Stats>,
    /// Bytes that the last read brought.
    last_read: usize,
}

impl<T> CountedStream<T> {
    /// Counts what passes `stream`.
    pub(crate) fn new(stream: T, stats: &Arc<Stats>) -> CountedStream<T> {
        CountedStream { stream, stats: Arc::clone(stats), last_read: 0 }
    }

    /// What is counted.
    pub(crate) fn get_ref(&self) -> &T {
        &self.stream
    }

    /// Bytes that the last read brought.
    pub(crate) fn last_read(&self) -> usize {
        self.last_read
    }

    fn sent(&self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = poll {
            self.stats.sent(bytes);
        }
        poll
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CountedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.last_read = buffer.filled().len() - before;
        self.stats.received(self.last_read);
        poll
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CountedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.sent(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
