//! A session with its socket: what was not sent yet, what epoll watches for, since
//! when it has been waiting for what.

use super::session::{Phase, Session, Turn};
use crate::limits::Connected;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::net::{IpAddr, TcpStream};

/// What sending came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// Everything is sent.
    All,
    /// The client does not read; the rest is kept.
    Blocked,
    /// The connection is gone.
    Gone,
}

/// What a connection is waiting for, for the timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// For a request to begin.
    Idle,
    /// For a head to be complete.
    Head,
    /// For a body to be complete.
    Body,
    /// For the client to read.
    Write,
    /// For the client to close.
    Linger,
    /// For us.
    Ours,
}

/// What of the client's end is still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Requests.
    Open,
    /// Nothing: it has said so.
    Ended,
    /// Whatever it still sends, at most so many bytes, is thrown away.
    Discarded(usize),
}

/// A connection.
pub(super) struct Conn {
    pub(super) stream: TcpStream,
    pub(super) session: Session,
    /// What the session wanted last.
    pub(super) turn: Turn,
    pub(super) input: Input,
    /// What epoll watches for.
    pub(super) interest: EventFlags,
    /// Whether it is in the list of those whose answers wait.
    pub(super) in_waiting: bool,
    /// Whether it is in the list of those without room.
    pub(super) in_stalled: bool,
    /// What it waits for, since when.
    pub(super) waiting: Waiting,
    pub(super) since_us: u64,
    begun: u32,
    /// Answers for which the socket had no room; those up to `sent` are gone.
    unsent: Vec<u8>,
    sent: usize,
    /// Who is at the other end, if the system told.
    pub(super) peer: Option<IpAddr>,
    pub(super) open: Connected,
}

impl Conn {
    /// A connection that was just accepted and is watched for input.
    pub(super) fn new(
        stream: TcpStream,
        peer: Option<IpAddr>,
        open: Connected,
        now_us: u64,
    ) -> Conn {
        Conn {
            stream,
            session: Session::new(peer),
            turn: Turn::More,
            input: Input::Open,
            interest: EventFlags::IN,
            in_waiting: false,
            in_stalled: false,
            waiting: Waiting::Idle,
            since_us: now_us,
            begun: 0,
            unsent: Vec::new(),
            sent: 0,
            peer,
            open,
        }
    }

    /// Sends `out` behind what was not sent before, and empties it, even if the client is
    /// gone: the next to send is another connection.
    pub(super) fn send(&mut self, out: &mut Vec<u8>, now_us: u64) -> SendOutcome {
        if self.unsent.is_empty() {
            if out.is_empty() {
                return SendOutcome::All;
            }
            // A healthy client has room for everything: nothing is copied.
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

    /// Writes what the socket has room for.
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

    /// Whether answers wait for the client to read.
    pub(super) fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether bytes are to be read from the socket now.
    pub(super) fn reads(&self) -> bool {
        match self.input {
            Input::Open => self.turn == Turn::More && !self.is_blocked(),
            Input::Ended => false,
            Input::Discarded(_) => true,
        }
    }

    /// Notes what it waits for, and since when.
    pub(super) fn watch(&mut self, now_us: u64) {
        let waiting = match (self.input, self.session.phase()) {
            _ if self.is_blocked() => Waiting::Write,
            (Input::Discarded(_), _) => Waiting::Linger,
            (_, Phase::Idle) => Waiting::Idle,
            (_, Phase::Head) => Waiting::Head,
            (_, Phase::Body) => Waiting::Body,
            (_, Phase::Ours) => Waiting::Ours,
        };
        if waiting != self.waiting || self.begun != self.session.begun() {
            (self.waiting, self.begun) = (waiting, self.session.begun());
            self.since_us = now_us;
        }
    }
}
