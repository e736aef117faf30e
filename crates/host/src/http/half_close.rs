//! A client that has shut its side of a connection has either sent its last request or left; TCP
//! does not tell which. Over HTTP/1.1 it gets a second for an answer to start, so that nothing is
//! computed or kept for a client that has gone. An answer that has started is sent to its end:
//! writing to a client that has gone fails.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;

/// How long an answer to a client that has shut its side may take to start.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How often a connection with unread bytes is checked for a shut peer.
const LOOK_EVERY: Duration = Duration::from_millis(250);

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
        self.get_ref().0.other_side(context)
    }
}

/// The second that a client has after it has shut its side.
#[derive(Default)]
pub(super) struct LastSecond {
    ends: Option<Pin<Box<Sleep>>>,
    next_look: Option<Pin<Box<Sleep>>>,
}

impl LastSecond {
    /// Checks the connection of a client that waits for an answer. hyper does not read from it
    /// meanwhile, since that would cost each request a buffer of 8 KiB.
    ///
    /// # Errors
    /// The client has gone, or its second is over.
    pub(super) fn look(
        &mut self,
        socket: &impl Socket,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        while self.ends.is_none() {
            match socket.other_side(context)? {
                OtherSide::Open => return Ok(()),
                OtherSide::Unread => {
                    let next_look = || Box::pin(tokio::time::sleep(LOOK_EVERY));
                    let next = self.next_look.get_or_insert_with(next_look);
                    if next.as_mut().poll(context).is_pending() {
                        return Ok(());
                    }
                    self.next_look = None;
                }
                OtherSide::Shut => self.ends = Some(Box::pin(tokio::time::sleep(PATIENCE))),
            }
        }
        match self.ends.as_mut().map(|ends| ends.as_mut().poll(context)) {
            Some(Poll::Ready(())) => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }

    /// Whether the client has shut its side.
    pub(super) fn has_begun(&self) -> bool {
        self.ends.is_some()
    }

    /// An answer has started, or no request is in progress.
    pub(super) fn forget(&mut self) {
        *self = LastSecond::default();
    }
}
