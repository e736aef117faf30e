//! A session with its socket: unsent output, epoll interest, and what it waits for since when.

use super::answer::HeldMemory;
use super::loop_state::LoopState;
use super::seam::Guards;
use super::session::{NextStep, Phase, Session};
use crate::http::half_close;
use crate::limits::CountedConnection;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::net::{IpAddr, TcpStream};

/// A larger buffer for answers is not kept.
const KEPT_BYTES: usize = 256 << 10;

/// The result of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// Everything is sent.
    All,
    /// The client is not reading; the rest is kept.
    Blocked,
    /// The connection is gone.
    Gone,
}

/// What a connection waits for, for the timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedEvent {
    /// The start of a request.
    Idle,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
    /// The client to read.
    Write,
    /// The client to close.
    Linger,
    /// This server.
    Ours,
    /// A handler, which has nothing to do once the client has left.
    Handler,
}

/// What is still read from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Requests.
    Open,
    /// Nothing: it has shut its side.
    Ended,
    /// Up to this many more bytes, which are discarded.
    Discarded(usize),
}

/// A connection.
pub(super) struct Conn {
    pub(super) stream: TcpStream,
    pub(super) session: Session,
    /// The session's last request of the loop.
    pub(super) turn: NextStep,
    pub(super) input: Input,
    /// The events that epoll watches for.
    pub(super) interest: EventFlags,
    /// Whether it is in the list of those with pending answers.
    pub(super) in_waiting: bool,
    /// Whether it is in the list of those without room.
    pub(super) in_stalled: bool,
    /// What it waits for, and since when.
    pub(super) waiting: AwaitedEvent,
    pub(super) since_us: u64,
    /// When the client was seen to have shut its side: it has sent its last request, or left.
    pub(super) shut_us: Option<u64>,
    begun: u32,
    /// Output the socket had no room for; the first `sent` bytes are sent.
    unsent: Vec<u8>,
    sent: usize,
    /// What is charged for it.
    held: Vec<HeldMemory>,
    /// The peer's address, if known.
    pub(super) peer: Option<IpAddr>,
    pub(super) open: CountedConnection,
}

impl Conn {
    /// A newly accepted connection, watched for input.
    pub(super) fn new(
        stream: TcpStream,
        peer: Option<IpAddr>,
        open: CountedConnection,
        now_us: u64,
    ) -> Conn {
        Conn {
            stream,
            session: Session::new(peer),
            turn: NextStep::More,
            input: Input::Open,
            interest: EventFlags::IN,
            in_waiting: false,
            in_stalled: false,
            waiting: AwaitedEvent::Idle,
            since_us: now_us,
            shut_us: None,
            begun: 0,
            unsent: Vec::new(),
            sent: 0,
            held: Vec::new(),
            peer,
            open,
        }
    }

    /// Sends the answers in `shared` after earlier unsent output, and empties it even if the client
    /// is gone, because the buffer is shared with the next connection.
    pub(super) fn send<G: Guards>(&mut self, shared: &mut LoopState<G>) -> SendOutcome {
        let sent = self.send_bytes(&mut shared.out, shared.now_us);
        match sent {
            SendOutcome::Blocked => self.held.append(&mut shared.held),
            SendOutcome::All | SendOutcome::Gone => self.held.clear(),
        }
        shared.held.clear();
        if shared.out.capacity() > KEPT_BYTES {
            shared.out = Vec::new();
        }
        sent
    }

    fn send_bytes(&mut self, out: &mut Vec<u8>, now_us: u64) -> SendOutcome {
        if self.unsent.is_empty() {
            if out.is_empty() {
                return SendOutcome::All;
            }
            // A healthy client's socket has room for everything: nothing is copied.
            let sent = match self.write(out) {
                Ok(sent) => sent,
                Err(gone) => {
                    out.clear();
                    return gone;
                }
            };
            if sent < out.len() {
                self.unsent.extend_from_slice(&out[sent..]);
            }
            out.clear();
        } else {
            self.unsent.append(out);
            match self.write(&self.unsent[self.sent..]) {
                Ok(0) => {}
                Ok(sent) => {
                    self.sent += sent;
                    self.since_us = now_us;
                }
                Err(gone) => return gone,
            }
            if self.sent == self.unsent.len() {
                (self.unsent, self.sent) = (Vec::new(), 0);
            }
        }
        if self.unsent.is_empty() { SendOutcome::All } else { SendOutcome::Blocked }
    }

    /// Writes as much as the socket accepts.
    fn write(&self, bytes: &[u8]) -> Result<usize, SendOutcome> {
        match rustix::net::send(&self.stream, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => {
                self.open.sent(sent);
                Ok(sent)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(_) => Err(SendOutcome::Gone),
        }
    }

    /// Whether output is waiting for the client to read.
    pub(super) fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether its client has shut its side for so long that it has left: over the general stack
    /// it gets as long (`host/http/half_close.rs`).
    pub(super) fn is_left(&self, now_us: u64) -> bool {
        let last_us = half_close::PATIENCE.as_micros() as u64;
        // Each of several requests gets it.
        let since_us = self.shut_us.map(|shut_us| shut_us.max(self.since_us));
        since_us.is_some_and(|since_us| now_us.saturating_sub(since_us) >= last_us)
    }

    /// Whether to read from the socket now.
    pub(super) fn reads(&self) -> bool {
        match self.input {
            Input::Open => self.turn == NextStep::More && !self.is_blocked(),
            Input::Ended => false,
            Input::Discarded(_) => true,
        }
    }

    /// Records what it waits for, and since when.
    pub(super) fn watch(&mut self, now_us: u64) {
        let waiting = match (self.input, self.session.phase()) {
            _ if self.is_blocked() => AwaitedEvent::Write,
            (Input::Discarded(_), _) => AwaitedEvent::Linger,
            (_, Phase::Idle) => AwaitedEvent::Idle,
            (_, Phase::Head) => AwaitedEvent::Head,
            (_, Phase::Body) => AwaitedEvent::Body,
            (_, Phase::Ours) => AwaitedEvent::Ours,
            (_, Phase::Handler) => AwaitedEvent::Handler,
        };
        if waiting != self.waiting || self.begun != self.session.begun() {
            (self.waiting, self.begun) = (waiting, self.session.begun());
            self.since_us = now_us;
        }
    }
}
