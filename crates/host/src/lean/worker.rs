//! The loop of one lean thread: waits, accepts, reads, runs sessions, sends.

use super::conn::{Conn, Input, SendOutcome};
use super::loop_state::{AnswerRecord, LoopState, PendingAnswers};
use super::seam::Guards;
use super::session::NextStep;
use super::slab::{Slab, Token};
use super::sweep::Sweep;
use super::wakeup::Wakeup;
use super::{Handover, Settings};
use crate::access::Principal;
use crate::identity;
use crate::limits::Limits;
use crate::record::RequestRecord;
use crate::stats::Stats;
use crate::trouble::FailedRequest;
use rustix::event::epoll::{self, EventFlags};
use rustix::event::{Timespec, epoll::EventData};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, SocketFlags};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use wellspring_log::Clock;

const LISTENER: Token = Token::reserved(1);
const WAKEUP: Token = Token::reserved(2);
/// Sockets handled each time the loop wakes.
const EVENTS: usize = 256;
/// Connections accepted each time the loop wakes.
const ACCEPTS: usize = 64;
/// The buffer that every connection is read into.
const READ_BYTES: usize = 64 << 10;
/// Bytes read at a time while some request finds no room, because they must be kept.
const READ_BYTES_FULL: usize = 16 << 10;
/// How long no connection is accepted after accepting failed, most likely for lack of descriptors.
const ACCEPT_PAUSE_US: u64 = 50_000;
/// Input still read and discarded after a connection has ended, so that the client can read its
/// last answer instead of a reset.
const LINGER_BYTES: usize = 64 << 20;

/// What the loop needs apart from its state.
pub(super) struct Parts {
    /// `None` once the server is shutting down.
    pub(super) listener: Option<TcpListener>,
    pub(super) wakeup: Arc<Wakeup>,
    pub(super) settings: Settings,
    pub(super) stats: Arc<Stats>,
    pub(super) limits: Arc<Limits>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) handover: UnboundedSender<Handover>,
}

/// One lean thread at work.
pub(super) struct Worker<G: Guards> {
    pub(super) parts: Parts,
    pub(super) shared: LoopState<G>,
    pub(super) conns: Slab<Conn>,
    pub(super) sweep: Sweep,
    /// Whether and since when the server is shutting down.
    pub(super) stopping_since_us: Option<u64>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
    /// Connections with unsettled answers, and connections without room.
    waiting: Vec<Token>,
    stalled: Vec<Token>,
    /// Connections with input that was read and not looked at yet.
    later: Vec<Token>,
    /// Scratch list of those being handled; otherwise empty.
    turned: Vec<Token>,
    /// When accepting resumes after it failed.
    accept_again_us: Option<u64>,
    request_id: u64,
}

impl<G: Guards> Worker<G> {
    /// A loop about to begin.
    ///
    /// # Errors
    /// The operating system has no room for another epoll set.
    pub(super) fn new(parts: Parts, shared: LoopState<G>) -> io::Result<Worker<G>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = |token: Token| EventData::new_u64(token.to_u64());
        if let Some(listener) = &parts.listener {
            epoll::add(&epoll, listener, data(LISTENER), EventFlags::IN)?;
        }
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &*parts.wakeup, data(WAKEUP), edge)?;
        let mut shared = shared;
        shared.now_us = parts.clock.monotonic_us();
        let sweep = Sweep::new(&parts.settings, shared.now_us);
        Ok(Worker {
            request_id: parts.settings.first_request_id,
            parts,
            shared,
            conns: Slab::new(),
            sweep,
            stopping_since_us: None,
            epoll,
            buffer: vec![0; READ_BYTES],
            waiting: Vec::new(),
            stalled: Vec::new(),
            later: Vec::new(),
            turned: Vec::new(),
            accept_again_us: None,
        })
    }

    /// Serves until the server stops and the connections have ended or run out of time.
    pub(super) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        // Handles rings from before the loop started.
        self.answer_the_bell();
        while !self.is_done() {
            events.clear();
            let timeout = self.timeout();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "a lean thread cannot poll");
                    return;
                }
            }
            self.shared.now_us = self.parts.clock.monotonic_us();
            // First: what is new must not take their share of the turn.
            self.go_on_later();
            let mut rang = false;
            for event in &events {
                match Token::from_u64(event.data.u64()) {
                    LISTENER => self.accept(),
                    WAKEUP => rang = true,
                    token => self.ready(token, event.flags),
                }
            }
            // What waited for answers is executed with them, and has to be acted on as well.
            loop {
                if self.shared.pending == PendingAnswers::SinceThisTurn {
                    rang |= self.end_turn();
                }
                if !std::mem::take(&mut rang) {
                    break;
                }
                self.answer_the_bell();
            }
            self.sweep();
            self.accept_again();
            self.parts.stats.waiting(self.waiting.len() + self.stalled.len());
        }
    }

    fn is_done(&self) -> bool {
        let Some(since_us) = self.stopping_since_us else { return false };
        let left = self.conns.len();
        let late = self.shared.now_us.saturating_sub(since_us) >= self.parts.settings.drain_us;
        if late && left > 0 {
            tracing::warn!(connections = left, "connections were closed at the shutdown deadline");
        }
        late || left == 0
    }

    /// Continues with the connections that have let others go first, until one of them does so
    /// again.
    fn go_on_later(&mut self) {
        let mut line = std::mem::take(&mut self.later).into_iter();
        for token in line.by_ref() {
            let Some(conn) = self.conns.get_mut(token) else { continue };
            if conn.turn == NextStep::Later && !conn.is_blocked() {
                let turn = conn.session.resume(&mut self.shared);
                self.proceed(token, turn);
            }
            if !self.later.is_empty() {
                break;
            }
        }
        self.later.splice(..0, line);
    }

    /// The longest wait: nothing is due while there are no connections.
    fn timeout(&self) -> Option<Timespec> {
        if !self.later.is_empty() {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let swept = (self.conns.len() > 0).then(|| self.sweep.due_us());
        let end =
            self.stopping_since_us.map(|since| since.saturating_add(self.parts.settings.drain_us));
        let due = [swept, end, self.accept_again_us].into_iter().flatten().min()?;
        let wait_us = due.saturating_sub(self.shared.now_us);
        let nanos = (wait_us % 1_000_000 * 1_000) as i64;
        Some(Timespec { tv_sec: (wait_us / 1_000_000) as i64, tv_nsec: nanos })
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let Some(listener) = &self.parts.listener else { return };
            // With the address: querying it later would be another call.
            match rustix::net::acceptfrom_with(listener, flags) {
                Ok((socket, peer)) => self.admit(TcpStream::from(socket), peer.and_then(ip_of)),
                Err(Errno::AGAIN) => return,
                // The client has disconnected already.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.accept_again_us = Some(self.shared.now_us + ACCEPT_PAUSE_US);
                    self.watch_listener(EventFlags::empty());
                    return;
                }
            }
        }
    }

    fn accept_again(&mut self) {
        if self.accept_again_us.is_some_and(|again| again <= self.shared.now_us) {
            self.accept_again_us = None;
            self.watch_listener(EventFlags::IN);
        }
    }

    fn watch_listener(&self, interest: EventFlags) {
        if let Some(listener) = &self.parts.listener {
            let data = EventData::new_u64(LISTENER.to_u64());
            let _ = epoll::modify(&self.epoll, listener, data, interest);
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: Option<IpAddr>) {
        let _ = stream.set_nodelay(true);
        let open = match self.parts.limits.connect(peer) {
            Ok(open) => open,
            Err(told) => {
                let _ = rustix::net::send(&stream, &told, SendFlags::NOSIGNAL);
                return;
            }
        };
        let token = self.conns.insert(Conn::new(stream, peer, open, self.shared.now_us));
        let Some(conn) = self.conns.get_mut(token) else { return };
        let data = EventData::new_u64(token.to_u64());
        if epoll::add(&self.epoll, &conn.stream, data, EventFlags::IN).is_err() {
            self.close(token);
        }
    }

    /// Something happened on a connection.
    fn ready(&mut self, token: Token, flags: EventFlags) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if conn.is_blocked() {
            if broken {
                return self.close(token);
            }
            // Once everything is sent, the session continues.
            match conn.send(&mut self.shared) {
                SendOutcome::Gone => return self.close(token),
                SendOutcome::Blocked => return,
                SendOutcome::All => {}
            }
            let turn = conn.session.settle(&mut self.shared);
            return self.proceed(token, turn);
        }
        if conn.reads() {
            return self.read(token);
        }
        if broken {
            // The client is gone.
            return self.close(token);
        }
        // Not now: the input is noticed when it is wanted, its end at once.
        let is_shut = flags.contains(EventFlags::RDHUP);
        conn.shut_us = conn.shut_us.or(is_shut.then_some(self.shared.now_us));
        let end = if is_shut { EventFlags::empty() } else { EventFlags::RDHUP };
        self.watch_for(token, end);
    }

    /// Reads once and runs the session on it.
    pub(super) fn read(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let most = if self.stalled.is_empty() { READ_BYTES } else { READ_BYTES_FULL };
        let buffer = &mut self.buffer[..most];
        let got = match rustix::net::recv(&conn.stream, &mut *buffer, RecvFlags::empty()) {
            Ok((got, _)) => {
                conn.open.received(got);
                got
            }
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => return self.close(token),
        };
        let turn = match &mut conn.input {
            Input::Discarded(_) if got == 0 => return self.close(token),
            Input::Discarded(left) => match left.checked_sub(got) {
                Some(rest) => {
                    *left = rest;
                    conn.session.charge_bytes(&self.shared, got);
                    return;
                }
                None => return self.close(token),
            },
            Input::Open if got > 0 => conn.session.receive(&mut self.shared, &buffer[..got]),
            Input::Open | Input::Ended => {
                conn.input = Input::Ended;
                conn.session.end_of_input(&mut self.shared)
            }
        };
        self.proceed(token, turn);
    }

    /// Sends the session's answers and does what it needs next.
    pub(super) fn proceed(&mut self, token: Token, mut turn: NextStep) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let mut sent = conn.send(&mut self.shared);
        while (sent, turn) == (SendOutcome::All, NextStep::Flush) {
            turn = conn.session.resume(&mut self.shared);
            sent = conn.send(&mut self.shared);
        }
        conn.turn = turn;
        if turn == NextStep::Stalled && !std::mem::replace(&mut conn.in_stalled, true) {
            self.stalled.push(token);
        }
        if conn.session.waits() && !std::mem::replace(&mut conn.in_waiting, true) {
            self.waiting.push(token);
        }
        let wants = match (sent, turn) {
            (SendOutcome::Gone, _) => {
                self.close(token);
                return self.count();
            }
            (SendOutcome::Blocked, _) => EventFlags::OUT,
            (SendOutcome::All, NextStep::More) => EventFlags::IN,
            (SendOutcome::All, NextStep::Leave) => {
                self.hand_over(token);
                return self.count();
            }
            (SendOutcome::All, NextStep::End) => {
                self.linger(token);
                return self.count();
            }
            // Most clients send nothing while they wait: the extra call is needed only if they do.
            (
                SendOutcome::All,
                NextStep::Stalled | NextStep::Wait | NextStep::Flush | NextStep::Later,
            ) => conn.interest,
        };
        // What is blocked goes on when the client has read.
        if sent == SendOutcome::All && turn == NextStep::Later {
            self.later.push(token);
        }
        conn.watch(self.shared.now_us);
        if conn.interest != wants {
            self.watch_for(token, wants);
        }
        self.count();
    }

    fn watch_for(&mut self, token: Token, wants: EventFlags) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.interest = wants;
        let data = EventData::new_u64(token.to_u64());
        if epoll::modify(&self.epoll, &conn.stream, data, wants).is_err() {
            self.close(token);
        }
    }

    /// Counts the answers. Their time runs from when the loop woke.
    fn count(&mut self) {
        let LoopState { tally, paths, now_us, .. } = &mut self.shared;
        if tally.prompt == 0 && tally.others.is_empty() {
            return;
        }
        let sent_us = self.parts.clock.monotonic_us();
        let (stats, settings) = (&self.parts.stats, &self.parts.settings);
        if std::mem::take(&mut tally.prompt) > 0 {
            let took_us = sent_us.saturating_sub(*now_us);
            for (served, &route) in paths.iter_mut().zip(&settings.routes) {
                for form in &mut served.forms {
                    let count = std::mem::take(&mut form.prompt);
                    if count > 0 {
                        stats.answered_alike(route, form.status, took_us, count.into());
                    }
                }
            }
        }
        for AnswerRecord { path_index, status, cause, came } in tally.others.drain(..) {
            let logged = came.logged.as_deref();
            let principal = logged.and_then(|logged| logged.principal.as_deref());
            let mut record = RequestRecord {
                route: path_index
                    .map_or(settings.no_route, |path_index| settings.routes[path_index]),
                method: path_index.map_or("", |path_index| paths[path_index].path.route().method),
                path: logged.map_or("", |logged| &logged.path),
                log: "",
                identity: principal.map_or(&identity::UNKNOWN, Principal::identity),
                caller: None,
                shows_credentials: false,
                status,
                client: logged.and_then(|logged| logged.client),
                request_id: "",
                bytes: None,
                position: None,
                started_us: came.at_us,
                ended_us: sent_us,
                commit_us: None,
            };
            stats.answered(&record);
            if let Some(cause) = &cause {
                let failed =
                    FailedRequest { cause, route: record.route.path, log: "", request_id: None };
                stats.troubles.tell(failed, sent_us);
            }
            if logged.is_some() {
                let request_id = format!("{:016x}", self.request_id);
                self.request_id = self.request_id.wrapping_add(1);
                record.request_id = &request_id;
                record.write_line(self.parts.settings.access_log);
            }
        }
    }

    /// Lets the paths act on everything that came in since the last turn. Whether the bell was rung
    /// meanwhile: what they settle on this thread needs no system call.
    fn end_turn(&mut self) -> bool {
        self.shared.pending = PendingAnswers::Earlier;
        self.parts.wakeup.mute();
        for served in &mut self.shared.paths {
            served.path.end_turn();
        }
        self.parts.wakeup.unmute()
    }

    /// Rung by the flusher or at shutdown.
    fn answer_the_bell(&mut self) {
        self.parts.wakeup.rearm();
        if self.stopping_since_us.is_none() && *self.parts.stopping.borrow() {
            self.stop();
        }
        self.settle_all();
        self.retry_all();
    }

    fn settle_all(&mut self) {
        let mut turned = std::mem::take(&mut self.turned);
        turned.append(&mut self.waiting);
        for &token in &turned {
            let Some(conn) = self.conns.get_mut(token) else { continue };
            // A client that does not read gets no more to read.
            if conn.is_blocked() {
                self.waiting.push(token);
                continue;
            }
            conn.in_waiting = false;
            let turn = conn.session.settle(&mut self.shared);
            self.proceed(token, turn);
        }
        turned.clear();
        self.turned = turned;
    }

    /// Retries in the order in which connections got stuck: first the kept requests, then those
    /// behind them, so that a connection with many requests does not overtake one with a single
    /// one.
    fn retry_all(&mut self) {
        let mut turned = std::mem::take(&mut self.turned);
        self.shared.full.clear();
        for token in std::mem::take(&mut self.stalled) {
            let Some(conn) = self.conns.get_mut(token) else { continue };
            if conn.session.retry(&mut self.shared) == NextStep::Stalled {
                self.stalled.push(token);
                continue;
            }
            conn.in_stalled = false;
            match conn.send(&mut self.shared) {
                SendOutcome::Gone => self.close(token),
                SendOutcome::All | SendOutcome::Blocked => turned.push(token),
            }
        }
        for &token in &turned {
            let Some(conn) = self.conns.get_mut(token) else { continue };
            let turn = conn.session.resume(&mut self.shared);
            self.proceed(token, turn);
        }
        turned.clear();
        self.turned = turned;
    }

    /// Gives the connection to the other stack.
    fn hand_over(&mut self, token: Token) {
        let Some(conn) = self.conns.remove(token) else { return };
        if epoll::delete(&self.epoll, &conn.stream).is_err() {
            return;
        }
        let Conn { stream, session, peer, open, .. } = conn;
        let handed_in = session.handed_in;
        let read = session.into_rest();
        // Fails only if the other stack has ended; then so has the connection.
        let _ = self.parts.handover.send(Handover { stream, read, handed_in, peer, open });
    }

    /// Closes a connection whose last answer is sent.
    fn linger(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if conn.input == Input::Ended {
            return self.close(token);
        }
        if conn.stream.shutdown(std::net::Shutdown::Write).is_err() {
            return self.close(token);
        }
        conn.input = Input::Discarded(LINGER_BYTES);
        conn.watch(self.shared.now_us);
        if conn.interest != EventFlags::IN {
            self.watch_for(token, EventFlags::IN);
        }
    }

    /// Drops a connection. Closing a socket removes it from the epoll set.
    pub(super) fn close(&mut self, token: Token) {
        if self.conns.remove(token).is_some_and(|conn| conn.in_waiting) {
            // It is counted as one that waits no more.
            self.waiting.retain(|waiting| *waiting != token);
        }
    }

    /// Accepts no more connections; received requests are answered; those in progress get time.
    fn stop(&mut self) {
        self.shared.stopping = true;
        self.stopping_since_us = Some(self.shared.now_us);
        self.accept_again_us = None;
        if let Some(listener) = self.parts.listener.take() {
            // Closing this descriptor is not enough: there is another (see `run`).
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        }
        self.sweep.hurry(self.shared.now_us);
        for place in 0..self.conns.places() {
            let Some(token) = self.conns.at(place) else { continue };
            self.end_if_idle(token);
        }
    }
}

/// A client's address without its port, as IPv4 if it is IPv4-mapped.
fn ip_of(address: SocketAddrAny) -> Option<IpAddr> {
    SocketAddr::try_from(address).ok().map(|address| address.ip().to_canonical())
}
