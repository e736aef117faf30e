//! A client that has shut its side of a connection has either sent its last request or left; TCP
//! does not tell which. Over HTTP/1.1 it gets a second for an answer to start, so that nothing is
//! computed or kept for a client that has gone. An answer that has started is sent to its end:
//! writing to a client that has gone fails.

use crate::socket::{OtherSide, Socket};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// How long an answer to a client that has shut its side may take to start.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// How often a connection with unread bytes is checked for a shut peer.
const LOOK_EVERY: Duration = Duration::from_millis(250);

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
