//! The part of a worker that opens, closes and mends connections.

use super::{Phase, Stage, Worker};
use crate::engine::conn::State;
use crate::engine::fault::Fault;
use crate::engine::socket::Socket;
use crate::engine::tally::Tally;
use crate::engine::tls::Unread;
use crate::result::ErrorKind;
use rustix::event::epoll;
use rustix::io::Errno;

/// The first wait before a failed connection is tried again; doubled up to [`LONGEST_BACKOFF_NS`].
const BACKOFF_NS: u64 = 10_000_000;
const LONGEST_BACKOFF_NS: u64 = 500_000_000;
/// A connection that was open this long and closed while idle is opened again at once.
const RESTED_NS: u64 = 1_000_000_000;

impl Worker {
    /// The number of place `place` of connection `index` among all places of this worker.
    pub(super) fn number(&self, index: usize, place: u32) -> u32 {
        u32::try_from(index).expect("fewer connections than 2^32") * self.setup.streams + place
    }

    pub(super) fn conn_of(&self, place: u32) -> usize {
        (place / self.setup.streams) as usize
    }

    /// Whether no connection is open and each was refused when it was last tried.
    pub(super) fn unreachable(&self) -> bool {
        self.conns.iter().all(|conn| conn.state != State::Open && conn.failures > 0)
    }

    /// Begins to open a connection.
    pub(super) fn open(&mut self, index: usize, tally: &mut Tally) {
        let now_ns = self.setup.clock.now_ns();
        let conn = &mut self.conns[index];
        conn.begun_ns = now_ns;
        let attempt = conn.failures as usize;
        let opened = Socket::open(&self.setup, attempt).and_then(|socket| {
            let events = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP;
            let data = epoll::EventData::new_u64(conn.token(index));
            epoll::add(&self.epoll, &socket, data, events)?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => {
                conn.socket = Some(socket);
                conn.wants_write = true;
                conn.state = State::Connecting;
            }
            Err(error) => {
                self.connect_failed(index, Fault::system(ErrorKind::Connect, error), tally);
            }
        }
    }

    /// A connection being opened has become writable or failed.
    pub(super) fn connected(&mut self, index: usize, tally: &mut Tally) {
        let connected = self.conns[index]
            .socket
            .as_ref()
            .map_or(Err(Errno::NOTCONN), |socket| socket.connected());
        if let Err(error) = connected {
            let fault = Fault::system(ErrorKind::Connect, error);
            return self.connect_failed(index, fault, tally);
        }
        let now_ns = self.setup.clock.now_ns();
        let conn = &mut self.conns[index];
        conn.tcp_ns = now_ns - conn.begun_ns;
        conn.failures = 0;
        if conn.secure() {
            conn.state = State::Secure;
            self.flush(index, tally);
        } else {
            self.usable(index, None, tally);
        }
    }

    /// The TLS handshake may have ended. `Err` if it did not end well.
    pub(super) fn secured(&mut self, index: usize, tally: &mut Tally) -> Result<(), ()> {
        if self.conns[index].handshaking() {
            return Ok(());
        }
        if let Err(why) = self.conns[index].agreed() {
            self.connect_failed(index, Fault::words(ErrorKind::Tls, why), tally);
            return Err(());
        }
        let generation = self.conns[index].generation;
        let passed_ns = self.setup.clock.now_ns() - self.conns[index].begun_ns;
        let tls_ns = passed_ns.saturating_sub(self.conns[index].tcp_ns);
        self.usable(index, Some(tls_ns), tally);
        if self.conns[index].generation == generation { Ok(()) } else { Err(()) }
    }

    /// The connection can carry requests: whoever waited for it goes on.
    fn usable(&mut self, index: usize, tls_ns: Option<u64>, tally: &mut Tally) {
        let conn = &mut self.conns[index];
        conn.state = State::Open;
        conn.wire.open(&mut conn.out);
        tally.connected(conn.tcp_ns, tls_ns);
        for place in 0..self.setup.streams {
            let number = self.number(index, place);
            if self.places[number as usize].phase != Phase::Ready {
                continue;
            }
            if tally.is_open() || !self.started {
                self.rest(number);
            } else {
                self.send(number, None, tally);
            }
        }
        self.flush(index, tally);
    }

    fn connect_failed(&mut self, index: usize, fault: Fault, tally: &mut Tally) {
        let kind = fault.kind;
        self.first_error.get_or_insert(fault);
        if self.started {
            // Each attempt that fails is a request that its user could not make: one of those asked
            // for.
            let now_ns = self.setup.clock.now_ns();
            if !tally.is_open() && self.grant(tally.measures(now_ns)) {
                tally.unsendable(0, kind, now_ns, now_ns);
            }
        }
        self.retry_later(index);
    }

    fn retry_later(&mut self, index: usize) {
        let now_ns = self.setup.clock.now_ns();
        let conn = &mut self.conns[index];
        conn.close(&self.setup);
        let wait_ns = BACKOFF_NS.saturating_mul(1 << conn.failures.min(16)).min(LONGEST_BACKOFF_NS);
        conn.failures += 1;
        conn.state = State::Broken { retry_ns: now_ns + wait_ns };
        self.next_scan_ns = self.next_scan_ns.min(now_ns + wait_ns);
    }

    /// Closes a connection that did its work and opens it anew.
    pub(super) fn reopen(&mut self, index: usize, tally: &mut Tally) {
        self.conns[index].close(&self.setup);
        self.conns[index].failures = 0;
        self.open(index, tally);
    }

    /// The connection takes no further requests: it is made anew as soon as nothing is under way on
    /// it.
    pub(super) fn wind_up(&mut self, index: usize, tally: &mut Tally) {
        self.conns[index].state = State::Ending;
        let busy = |place| self.places[self.number(index, place) as usize].phase == Phase::UnderWay;
        if (0..self.setup.streams).any(busy) {
            self.flush(index, tally);
        } else {
            self.reopen(index, tally);
        }
    }

    /// Keeps the first words about why requests are lost.
    pub(super) fn explain(&mut self, index: usize, kind: ErrorKind) {
        if self.first_error.is_none()
            && let Some(why) = self.conns[index].wire.why()
        {
            self.first_error = Some(Fault::words(kind, why));
        }
    }

    /// Reading failed.
    pub(super) fn unreadable(&mut self, index: usize, unread: Unread, tally: &mut Tally) {
        let fault = match unread {
            Unread::Tls(why) => Fault::words(ErrorKind::Tls, why),
            Unread::System(error @ (Errno::CONNRESET | Errno::PIPE)) => {
                Fault::system(ErrorKind::Reset, error)
            }
            Unread::System(error) => Fault::system(ErrorKind::Closed, error),
            Unread::Cut | Unread::Later => return self.broken(index, ErrorKind::Closed, tally),
        };
        let kind = fault.kind;
        if self.conns[index].is_up() {
            self.first_error.get_or_insert(fault);
            self.broken(index, kind, tally);
        } else if kind == ErrorKind::Tls {
            self.connect_failed(index, fault, tally);
        } else {
            self.broken(index, kind, tally);
        }
    }

    /// A connection is of no further use: what was under way on it is lost.
    pub(super) fn broken(&mut self, index: usize, kind: ErrorKind, tally: &mut Tally) {
        let was_open = self.conns[index].is_up();
        let mut lost = 0;
        for place in 0..self.setup.streams {
            let number = self.number(index, place);
            if self.places[number as usize].phase != Phase::UnderWay {
                continue;
            }
            lost += 1;
            let conn = &self.conns[index];
            if self.setup.streams == 1 && was_open && !conn.out.is_empty() && conn.written == 0 {
                // Not a byte of it was written.
                self.take_back(number, tally);
            } else {
                let is_end = matches!(kind, ErrorKind::Closed | ErrorKind::Reset);
                self.ends_unannounced |= is_end;
                if is_end && conn.is_used && conn.wire.awaits_first_byte() {
                    let at = self.places[number as usize];
                    tally.crossed(at.endpoint, at.times.due_ns);
                }
                self.lose(number, kind, tally);
            }
        }
        let age_ns = self.setup.clock.now_ns().saturating_sub(self.conns[index].begun_ns);
        if was_open && (lost > 0 || age_ns >= RESTED_NS) {
            self.reopen(index, tally);
        } else if was_open {
            // Closed as soon as it was opened, and nobody has lost anything: not again at once.
            self.retry_later(index);
        } else {
            let fault = match (self.conns[index].state, kind) {
                (State::Secure, ErrorKind::Connect) => Fault::words(
                    ErrorKind::Tls,
                    "the handshake did not end in the time for connecting",
                ),
                (State::Secure, _) => Fault::words(
                    ErrorKind::Tls,
                    "the server closed the connection within the handshake",
                ),
                (_, ErrorKind::Connect) => Fault::system(kind, Errno::TIMEDOUT),
                _ => Fault::system(ErrorKind::Connect, Errno::CONNRESET),
            };
            self.connect_failed(index, fault, tally);
        }
    }

    /// The request at `number` ended without an answer.
    pub(super) fn lose(&mut self, number: u32, kind: ErrorKind, tally: &mut Tally) {
        let at = self.places[number as usize];
        self.places[number as usize].phase = Phase::Ready;
        self.in_flight -= 1;
        self.workload.lost(self.setup.first_place_of(self.index) + number);
        tally.lost(at.endpoint, kind, at.times.due_ns, self.setup.clock.now_ns());
    }

    /// The server has not taken the request at `number`: it was not sent, for the figures, and
    /// another one is, due at the same moment.
    pub(super) fn take_back(&mut self, number: u32, tally: &mut Tally) {
        let at = self.places[number as usize];
        self.places[number as usize].phase = Phase::Ready;
        self.in_flight -= 1;
        self.workload.lost(self.setup.first_place_of(self.index) + number);
        tally.unprocessed(at.endpoint, at.times.due_ns);
        let measured = tally.measures(at.times.due_ns);
        if tally.is_open() {
            self.due_again.push_back(at.times.due_ns);
            self.sent_of_due -= u64::from(measured);
        }
        if measured && self.control.limited && self.stage == Stage::Sending {
            self.granted += 1;
            self.exhausted = false;
        }
    }

    /// The peer has closed its side.
    pub(super) fn peer_closed(&mut self, index: usize, tally: &mut Tally) {
        if !self.conns[index].is_up() {
            return self.broken(index, ErrorKind::Closed, tally);
        }
        match self.conns[index].wire.closed() {
            Ok(place) => {
                let done_ns = self.setup.clock.now_ns();
                self.answered(index, place, done_ns, tally);
            }
            Err(kind) => {
                self.explain(index, kind);
                self.broken(index, kind, tally);
            }
        }
    }

    pub(super) fn count_received(&mut self, index: usize, bytes: usize, tally: &mut Tally) {
        // With several streams the bytes are counted for the first that waits: sums stay right.
        for place in 0..self.setup.streams {
            let at = self.places[self.number(index, place) as usize];
            if at.phase == Phase::UnderWay {
                tally.received(at.endpoint, bytes, at.times.due_ns);
                return;
            }
        }
    }

    /// Writes what is waiting on a connection; with several streams, requests that
    /// follow at once on the same connection go out in the same write.
    pub(super) fn flush_in_turn(&mut self, index: usize, tally: &mut Tally) {
        if self.setup.streams == 1 {
            self.flush(index, tally);
        } else if self.unflushed != Some(index) {
            self.flush_rest(tally);
            self.unflushed = Some(index);
        }
    }

    /// Writes what [`Self::flush_in_turn`] left.
    pub(super) fn flush_rest(&mut self, tally: &mut Tally) {
        if let Some(index) = self.unflushed.take()
            && self.conns[index].is_up()
        {
            self.flush(index, tally);
        }
    }

    /// Writes what is waiting on a connection, and listens for room if there is not enough.
    pub(super) fn flush(&mut self, index: usize, tally: &mut Tally) {
        let conn = &mut self.conns[index];
        if conn.nothing_to_write() && !conn.wants_write {
            return;
        }
        match conn.flush() {
            Ok(everything) => {
                if self.setup.phases && everything {
                    self.mark_written(index);
                }
                let conn = &mut self.conns[index];
                if everything == conn.wants_write {
                    conn.wants_write = !everything;
                    let mut events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
                    events.set(epoll::EventFlags::OUT, !everything);
                    let data = epoll::EventData::new_u64(conn.token(index));
                    if let Some(socket) = &conn.socket {
                        // It was registered when it was opened; failing here would show as a
                        // timeout.
                        let _ = epoll::modify(&self.epoll, socket, data, events);
                    }
                }
            }
            // What the peer had to say before it closed may still be there to be read.
            Err(Errno::PIPE | Errno::CONNRESET) if self.conns[index].is_up() => {}
            Err(_) => self.broken(index, ErrorKind::Reset, tally),
        }
    }

    fn mark_written(&mut self, index: usize) {
        let now_ns = self.setup.clock.now_ns();
        for place in 0..self.setup.streams {
            let number = self.number(index, place) as usize;
            let at = &mut self.places[number];
            if at.phase == Phase::UnderWay && at.times.written_ns == 0 {
                at.times.written_ns = now_ns;
            }
        }
    }
}
