//! The bytes within a WebSocket as a stream: a browser has no other one.

use super::frames::{FrameReader, MAX_SENT_BYTES, push_binary, push_farewell};
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Frames that wait, beyond which none are added, in bytes.
const MAX_WAITING_BYTES: usize = MAX_SENT_BYTES;
/// Memory that is kept while nothing waits, in bytes.
const KEPT_BYTES: usize = 1 << 10;

/// A connection on which a WebSocket was opened, on the server's side.
pub(crate) struct WebSocket<S> {
    io: S,
    /// Bytes that were read with the handshake.
    early: Bytes,
    frames: FrameReader,
    /// Frames that are still to be sent, from `sent` on.
    waiting: Vec<u8>,
    sent: usize,
    /// Answers to the client's control frames, which come next.
    replies: Vec<u8>,
    /// Whether the farewell was written.
    has_left: bool,
}

impl<S> WebSocket<S> {
    /// The WebSocket behind its handshake, with which `early` was read.
    pub(crate) fn new(io: S, early: Bytes) -> WebSocket<S> {
        WebSocket {
            io,
            early,
            frames: FrameReader::default(),
            waiting: Vec::new(),
            sent: 0,
            replies: Vec::new(),
            has_left: false,
        }
    }
}

impl<S> WebSocket<S> {
    /// What it is on.
    pub(crate) fn get_ref(&self) -> &S {
        &self.io
    }
}

impl<S: AsyncWrite + Unpin> WebSocket<S> {
    /// Sends what waits, and then the replies, until nothing waits.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.sent < self.waiting.len() {
                let rest = &self.waiting[self.sent..];
                match ready!(Pin::new(&mut self.io).poll_write(context, rest))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    written => self.sent += written,
                }
            }
            self.waiting.clear();
            self.sent = 0;
            if self.replies.is_empty() {
                self.waiting.shrink_to(KEPT_BYTES);
                return Poll::Ready(Ok(()));
            }
            self.waiting.append(&mut self.replies);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while !this.frames.has_ended() && buffer.remaining() > 0 {
            let before = buffer.filled().len();
            if this.early.is_empty() {
                ready!(Pin::new(&mut this.io).poll_read(context, buffer))?;
            } else {
                let most = this.early.len().min(buffer.remaining());
                buffer.put_slice(&this.early.split_to(most));
            }
            let received = &mut buffer.filled_mut()[before..];
            if received.is_empty() {
                break;
            }
            let read = this.frames.read(received, &mut this.replies);
            buffer.set_filled(before + *read.as_ref().unwrap_or(&0));
            if !this.replies.is_empty() {
                this.has_left |= this.frames.has_ended();
                // What finds no room now goes with what is written next.
                if let Poll::Ready(sent) = this.poll_drain(context) {
                    sent?;
                }
                let _ = Pin::new(&mut this.io).poll_flush(context)?;
            }
            match read {
                Err(_) => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
                // A read of nothing is the end.
                Ok(0) => {}
                Ok(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WebSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.has_left {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.waiting.len() - self.sent >= MAX_WAITING_BYTES {
            ready!(self.poll_drain(context))?;
        }
        let taken = &bytes[..bytes.len().min(MAX_SENT_BYTES)];
        if !taken.is_empty() {
            push_binary(&mut self.waiting, taken);
            if let Poll::Ready(sent) = self.poll_drain(context) {
                sent?;
            }
        }
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.has_left, true) {
            push_farewell(&mut self.waiting);
        }
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    /// A WebSocket with a few bytes of room on its way to the client.
    fn socket(early: &'static [u8]) -> (WebSocket<DuplexStream>, DuplexStream) {
        let (server, client) = duplex(300);
        (WebSocket::new(server, Bytes::from_static(early)), client)
    }

    #[tokio::test]
    async fn bytes_pass_in_both_directions_behind_those_of_the_handshake() {
        let (mut socket, mut client) = socket(&[0x82, 0x82, 0, 0, 0, 0, b'a', b'b', 0x82]);
        client.write_all(&[0x81, 1, 1, 1, 1, b'b']).await.unwrap();
        let mut read = [0; 3];
        socket.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"abc");
        let long = vec![7; 1_000];
        let sent = async {
            socket.write_all(&long).await.unwrap();
            socket.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, got) = tokio::join!(sent, client.read_to_end(&mut received));
        got.unwrap();
        assert_eq!(received[..4], [0x82, 126, 0x03, 0xE8]);
        assert_eq!(received[4..1_004], long);
        assert_eq!(received[1_004..], [0x88, 2, 0x03, 0xE8]);
    }

    #[tokio::test]
    async fn a_client_that_closes_is_answered_and_read_to_its_end() {
        let (mut socket, mut client) = socket(&[0x88, 0x80, 0, 0, 0, 0]);
        assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(socket.write_all(b"late").await.is_err());
        let mut farewell = [0; 4];
        client.read_exact(&mut farewell).await.unwrap();
        assert_eq!(farewell, [0x88, 2, 0x03, 0xE8]);
    }

    #[tokio::test]
    async fn pings_of_a_client_that_does_not_read_take_no_memory() {
        let (mut socket, mut client) = socket(b"");
        let ping = [&[0x89, 0xFD][..], &[0; 129]].concat();
        let mut read = [0; 256];
        for _ in 0..100 {
            client.write_all(&ping).await.unwrap();
            tokio::select! {
                biased;
                read = socket.read(&mut read) => panic!("{read:?}"),
                () = std::future::ready(()) => {}
            }
        }
        assert!(socket.waiting.len() + socket.replies.len() <= 2 * 127);
        client.write_all(&[0x82, 0x81, 0, 0, 0, 0, 9]).await.unwrap();
        let mut pongs = [0; 127];
        assert_eq!(socket.read(&mut read).await.unwrap(), 1);
        client.read_exact(&mut pongs).await.unwrap();
        assert_eq!(pongs[..2], [0x8A, 125]);
    }
}
