//! One connection of a server of known behaviour.

use super::reaction::{End, Piece, Reaction};
use crate::clock::Clock;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// How long to wait when the peer takes no more bytes.
const NO_ROOM_NS: u64 = 200_000;
/// The most a request may be.
const LARGEST_REQUEST_BYTES: usize = 1 << 20;

pub(super) struct Peer {
    fd: OwnedFd,
    input: Vec<u8>,
    doing: Option<Doing>,
    /// The entry in the log of the request just answered, and when the bytes that made the
    /// answer whole were handed to the system.
    pub(super) whole: Option<(usize, u64)>,
}

/// A request being answered.
struct Doing {
    entry: usize,
    pieces: VecDeque<Piece>,
    /// How much of the first piece has been written.
    written: usize,
    /// When the first piece is due.
    due_ns: u64,
    end: End,
    /// How many pieces remain when the answer is whole; `None` if it never is.
    surplus: Option<usize>,
}

/// How far writing has come.
pub(super) enum Step {
    /// There is nothing to write.
    Idle,
    /// More is to be written at this moment.
    Later(u64),
    /// The peer takes no more.
    Gone,
    /// Everything was written.
    Done { keep: bool },
}

impl Peer {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Peer { fd, input: Vec::new(), doing: None, whole: None }
    }

    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Reads what is there; an error if the peer has gone.
    pub(super) fn read(&mut self) -> io::Result<u64> {
        let mut total = 0;
        loop {
            let mut buffer = [0; 4096];
            match recv(&self.fd, &mut buffer, RecvFlags::empty()) {
                Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((_, count)) => {
                    self.input.extend_from_slice(&buffer[..count]);
                    total += count as u64;
                    if count < buffer.len() {
                        return Ok(total);
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(total),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the next whole request from the input and returns the number in its path.
    pub(super) fn next_request(&mut self) -> io::Result<Option<u64>> {
        if self.doing.is_some() || self.input.is_empty() {
            return Ok(None);
        }
        let wrong = |why: &str| io::Error::other(format!("the client sent {why}"));
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        let head = match request.parse(&self.input) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) if self.input.len() < LARGEST_REQUEST_BYTES => {
                return Ok(None);
            }
            _ => return Err(wrong("no HTTP request")),
        };
        let path = request.path.unwrap_or_default();
        let tag = path.strip_prefix('/').and_then(|tag| tag.parse().ok());
        let tag = tag.ok_or_else(|| wrong(&format!("the path {path:?}")))?;
        let named =
            |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("content-length");
        let length = request.headers.iter().find(named).map_or(Ok(0), |field| {
            let digits = std::str::from_utf8(field.value).unwrap_or_default();
            digits.trim().parse::<usize>().map_err(|_| wrong("a wrong Content-Length"))
        })?;
        if self.input.len() < head + length {
            return Ok(None);
        }
        self.input.drain(..head + length);
        Ok(Some(tag))
    }

    /// Begins to answer the request that the log has at `entry`.
    pub(super) fn react(&mut self, reaction: Reaction, entry: usize, received_ns: u64) {
        let Reaction { pieces, end, whole, surplus, .. } = reaction;
        let due_ns = received_ns + pieces.front().map_or(0, |piece| piece.after_ns);
        let surplus = whole.then_some(surplus);
        self.doing = Some(Doing { entry, pieces, written: 0, due_ns, end, surplus });
    }

    /// Writes what is due.
    pub(super) fn write(&mut self, clock: &Clock, bytes_written: &mut u64) -> Step {
        let Some(doing) = &mut self.doing else { return Step::Idle };
        while let Some(piece) = doing.pieces.front() {
            let now_ns = clock.now_ns();
            if doing.due_ns > now_ns {
                return Step::Later(doing.due_ns);
            }
            match send(&self.fd, &piece.bytes[doing.written..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    doing.written += count;
                    *bytes_written += count as u64;
                }
                Err(Errno::AGAIN) => return Step::Later(clock.now_ns() + NO_ROOM_NS),
                Err(Errno::INTR) => {}
                Err(_) => return Step::Gone,
            }
            if doing.written == piece.bytes.len() {
                doing.pieces.pop_front();
                doing.written = 0;
                if doing.surplus == Some(doing.pieces.len()) {
                    self.whole = Some((doing.entry, now_ns));
                }
                let next_ns = doing.pieces.front().map_or(0, |piece| piece.after_ns);
                // From now, not from when it was due: a gap is at least as long as it says.
                doing.due_ns = if next_ns == 0 { doing.due_ns } else { clock.now_ns() + next_ns };
            }
        }
        let end = doing.end;
        if end == End::Silence {
            // It stays in `doing`, so that nothing further is read from this peer.
            return Step::Idle;
        }
        self.doing = None;
        if end == End::Reset {
            // If it cannot be set the peer sees a close, and the case fails by name.
            let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
        }
        Step::Done { keep: end == End::KeepOpen }
    }
}
