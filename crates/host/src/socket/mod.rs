//! The sockets of connections, within TLS or not: whether the peer has shut its side, how many
//! bytes pass, and the bytes within a WebSocket.

mod counted_stream;
mod frames;
mod websocket;

pub(crate) use counted_stream::CountedStream;
pub(crate) use websocket::WebSocket;

use std::io;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The state of the peer.
pub(crate) enum OtherSide {
    /// It may send more, and the task is woken when it sends or shuts its side.
    Open,
    /// It may send more; unread bytes are waiting, so the end behind them does not wake the task.
    Unread,
    /// It sends nothing more. Over TLS the connection below decides: a client that sends
    /// close_notify and keeps the connection open has not left.
    Shut,
}

/// A connection that tells whether its peer has shut its side while it is not being read.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Whether it has. Costs no system call while nothing has arrived.
    ///
    /// # Errors
    /// The connection is broken.
    fn other_side(&self, context: &mut Context<'_>) -> io::Result<OtherSide>;

    /// The connection below TLS.
    fn tcp(&self) -> &TcpStream;

    /// Acknowledges at once what has arrived: the rest of a request is awaited, and a client that
    /// sends it in a second write may hold it back until then (Nagle's algorithm), which costs 40
    /// ms where acknowledgements are delayed.
    fn acknowledge(&self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(self.tcp(), true);
    }
}

impl Socket for TcpStream {
    fn other_side(&self, context: &mut Context<'_>) -> io::Result<OtherSide> {
        let mut byte = [0];
        match self.poll_peek(context, &mut ReadBuf::new(&mut byte))? {
            Poll::Pending => Ok(OtherSide::Open),
            Poll::Ready(0) => Ok(OtherSide::Shut),
            Poll::Ready(_) => behind_unread(self),
        }
    }

    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// The same when bytes are unread: the next request, or TLS's message before the end.
#[cfg(target_os = "linux")]
fn behind_unread(socket: &TcpStream) -> io::Result<OtherSide> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut asked = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    let told = asked[0].revents();
    if told.intersects(PollFlags::ERR | PollFlags::HUP) {
        Err(io::ErrorKind::ConnectionReset.into())
    } else if told.contains(PollFlags::RDHUP) {
        Ok(OtherSide::Shut)
    } else {
        Ok(OtherSide::Unread)
    }
}

#[cfg(not(target_os = "linux"))]
fn behind_unread(socket: &TcpStream) -> io::Result<OtherSide> {
    socket.take_error()?.map_or(Ok(OtherSide::Unread), Err)
}

impl Socket for TlsStream<TcpStream> {
    fn other_side(&self, context: &mut Context<'_>) -> io::Result<OtherSide> {
        self.tcp().other_side(context)
    }

    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// What is read of a WebSocket whose client sends these pieces, for the fuzz target.
#[cfg(feature = "fuzzing")]
#[derive(Debug, PartialEq, Eq)]
pub struct ReadWebSocket {
    /// The content; `None` if the client is not understood.
    pub content: Option<Vec<u8>>,
    /// The frames that answer the client's.
    pub replies: Vec<u8>,
}

/// Reads a WebSocket whose client sends these pieces.
#[cfg(feature = "fuzzing")]
pub fn websocket<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> ReadWebSocket {
    let (mut reader, mut content, mut replies) =
        (frames::FrameReader::default(), Some(Vec::new()), Vec::new());
    for piece in pieces {
        let mut piece = piece.to_vec();
        match (reader.read(&mut piece, &mut replies), &mut content) {
            (Ok(length), Some(content)) => content.extend_from_slice(&piece[..length]),
            _ => content = None,
        }
    }
    ReadWebSocket { content, replies }
}
