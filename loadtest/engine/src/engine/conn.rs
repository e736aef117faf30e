//! One connection of a worker: socket, protocol state, and bytes on their way out.

use super::setup::Setup;
use super::socket::Socket;
use super::tls::{Tls, Unread};
use super::wire::Wire;
use crate::invalid::Invalid;
use rustix::io::Errno;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Being opened.
    Connecting,
    /// Open, and the TLS handshake is under way.
    Secure,
    /// Can carry requests.
    Open,
    /// Answers under way are waited for, requests go over the next connection.
    Ending,
    /// Closed; to be opened again at the moment given.
    Broken { retry_ns: u64 },
}

pub(super) struct Conn {
    pub(super) state: State,
    pub(super) socket: Option<Socket>,
    /// Between socket and HTTP, if the target is `https`.
    tls: Option<Box<Tls>>,
    pub(super) wire: Wire,
    pub(super) out: Vec<u8>,
    /// How much of `out` has been written.
    pub(super) written: usize,
    /// Whether writability is being waited for.
    pub(super) wants_write: bool,
    /// Counts its openings; an event of an earlier one is stale.
    pub(super) generation: u32,
    pub(super) begun_ns: u64,
    pub(super) tcp_ns: u64,
    pub(super) failures: u32,
    /// Whether it has brought an answer since it was opened.
    pub(super) is_used: bool,
}

impl Conn {
    pub(super) fn new(setup: &Setup) -> Self {
        Conn {
            state: State::Broken { retry_ns: 0 },
            socket: None,
            tls: setup.begin_tls(),
            wire: setup.wire(),
            out: Vec::new(),
            written: 0,
            wants_write: false,
            generation: 0,
            begun_ns: 0,
            tcp_ns: 0,
            failures: 0,
            is_used: false,
        }
    }

    /// What epoll calls it: place in the list and generation.
    pub(super) fn token(&self, index: usize) -> u64 {
        (u64::from(self.generation) << 32) | index as u64
    }

    /// Whether TLS is spoken before HTTP.
    pub(super) fn secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the TLS handshake is still under way.
    pub(super) fn handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.handshaking())
    }

    /// Whether TLS agreed on the protocol that was asked for.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(super) fn agreed(&self) -> Result<(), Invalid> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.agreed())
    }

    /// Whether it is known from TLS that nothing more will come.
    pub(super) fn said_goodbye(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.closed())
    }

    /// Whether answers may arrive on it.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Open | State::Ending)
    }

    /// Whether no byte waits to be written.
    pub(super) fn nothing_to_write(&self) -> bool {
        self.out.is_empty() && self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Reads what is there; `Ok(0)` means that the peer has closed.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Unread> {
        let socket = self.socket.as_mut().ok_or(Unread::System(Errno::NOTCONN))?;
        if let Some(tls) = &mut self.tls {
            return tls.read(socket, buffer);
        }
        socket.read(buffer).map_err(|error| match error {
            Errno::AGAIN | Errno::INTR => Unread::Later,
            error => Unread::System(error),
        })
    }

    /// Writes as much of `out` as there is room for. `Ok(true)` when nothing is left.
    pub(super) fn flush(&mut self) -> Result<bool, Errno> {
        let socket = self.socket.as_mut().ok_or(Errno::NOTCONN)?;
        if let Some(tls) = &mut self.tls {
            let everything = tls.flush(socket, &self.out, &mut self.written)?;
            if everything {
                self.out.clear();
                self.written = 0;
            }
            return Ok(everything);
        }
        while self.written < self.out.len() {
            match socket.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(true)
    }

    /// Forgets the socket and everything under way.
    pub(super) fn close(&mut self, setup: &Setup) {
        if let (Some(tls), Some(mut socket)) = (&mut self.tls, self.socket.take())
            && !tls.handshaking()
        {
            tls.close(&mut socket);
        }
        self.socket = None;
        self.tls = setup.begin_tls();
        self.wire = setup.wire();
        self.out.clear();
        self.written = 0;
        self.wants_write = false;
        self.is_used = false;
        self.generation = self.generation.wrapping_add(1);
    }
}
