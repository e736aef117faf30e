//! A server whose behaviour is known: it does with each request what a script
//! says, and writes down when it had read it and when it had wholly answered it.
//!
//! One thread, HTTP/1.1, one request at a time on each connection. What it
//! writes down is the truth to which reports are held: not what was intended
//! but what happened, by a clock that the client shares.

mod peer;
mod reaction;

pub(super) use reaction::{Reaction, ReceivedRequest};

use crate::clock::Clock;
use crate::engine::spawn;
use peer::{Peer, Step};
use reaction::Interlude;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::net::SocketFlags;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server that nobody stops ends by itself after so long.
const LIFETIME_NS: u64 = 180_000_000_000;
/// The longest time between two looks at whether to stop.
const LOOK_MS: i64 = 20;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// Decides what happens with each request.
pub(super) type Script = Box<dyn FnMut(&ReceivedRequest) -> Reaction + Send>;

/// One request, as the server saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// The number in its path.
    pub(super) tag: u64,
    /// When its last byte had been read.
    pub(super) received_ns: u64,
    /// When the last bytes of a whole answer were about to be handed to the system, which
    /// then took them; `None` if it never did. After that moment nothing is the server's.
    pub(super) answered_ns: Option<u64>,
}

/// Everything a server saw.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The requests, in the order in which they were read.
    pub(super) served: Vec<Served>,
    /// Connections accepted.
    pub(super) accepted: u64,
    /// Bytes read.
    pub(super) bytes_read: u64,
    /// Bytes written.
    pub(super) bytes_written: u64,
    /// When it stalled, froze or vanished, and when it went on.
    pub(super) pauses: Vec<(u64, u64)>,
}

/// A running server. It stops when this is dropped, and by itself after three minutes.
#[derive(Debug)]
pub(super) struct Server {
    at: BoundAddress,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Log>>>,
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub(super) enum BoundAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Server {
    /// Serves on a free port of this loopback address.
    pub(super) fn on(ip: IpAddr, clock: Clock, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        let at = BoundAddress::Tcp(listener.local_addr()?);
        Self::start(at, listener.into(), clock, script)
    }

    /// Serves on a Unix socket at this path, which must not exist.
    pub(super) fn on_path(path: &Path, clock: Clock, script: Script) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        Self::start(BoundAddress::Unix(path.to_owned()), listener.into(), clock, script)
    }

    fn start(
        at: BoundAddress,
        listener: OwnedFd,
        clock: Clock,
        script: Script,
    ) -> io::Result<Self> {
        rustix::net::listen(&listener, BACKLOG)?;
        let stop = Arc::new(AtomicBool::new(false));
        let serving = Serving {
            at: at.clone(),
            clock,
            stop: Arc::clone(&stop),
            ends_ns: clock.now_ns() + LIFETIME_NS,
            listener: Some(listener),
            poller: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            timer: timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?,
            peers: HashMap::new(),
            accepted: 0,
            due: BinaryHeap::new(),
            script,
            log: Log::default(),
        };
        let thread = spawn("known-server", move || {
            crate::machine::fine_timers();
            serving.run()
        })?;
        Ok(Server { at, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn at(&self) -> &BoundAddress {
        &self.at
    }

    /// Stops it and returns what it saw.
    pub(super) fn finish(mut self) -> io::Result<Log> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(log)) => log,
            _ => Err(io::Error::other("the server's thread has died")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The server's thread.
struct Serving {
    at: BoundAddress,
    clock: Clock,
    stop: Arc<AtomicBool>,
    ends_ns: u64,
    listener: Option<OwnedFd>,
    poller: OwnedFd,
    timer: OwnedFd,
    peers: HashMap<u64, Peer>,
    /// How many connections were ever accepted: the name of the next.
    accepted: u64,
    /// When something is to be written, and to whom.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    script: Script,
    log: Log,
}

impl Serving {
    fn run(mut self) -> io::Result<Log> {
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.poller, &self.timer, epoll::EventData::new_u64(TIMER), edge)?;
        self.listen()?;
        let mut events = Vec::with_capacity(256);
        while !self.ending() {
            self.arm()?;
            events.clear();
            let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_MS * 1_000_000 };
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.poller, room, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    TIMER => {}
                    LISTENER => self.accept()?,
                    token => self.read(token)?,
                }
            }
            self.write_what_is_due()?;
        }
        self.log.accepted = self.accepted;
        Ok(self.log)
    }

    fn ending(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now_ns() > self.ends_ns
    }

    fn listen(&mut self) -> io::Result<()> {
        if let Some(listener) = &self.listener {
            rustix::io::ioctl_fionbio(listener, true)?;
            let data = epoll::EventData::new_u64(LISTENER);
            epoll::add(&self.poller, listener, data, epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    /// Sets the timer to the next moment at which something is to be written.
    fn arm(&self) -> io::Result<()> {
        let Some(Reverse((at_ns, _))) = self.due.peek() else { return Ok(()) };
        // A time of zero would switch the timer off.
        let left_ns = at_ns.saturating_sub(self.clock.now_ns()).max(1);
        let value = Timespec {
            tv_sec: i64::try_from(left_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(left_ns % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(fd) = rustix::net::accept_with(listener, flags) {
            if matches!(self.at, BoundAddress::Tcp(_)) {
                rustix::net::sockopt::set_tcp_nodelay(&fd, true)?;
            }
            let data = epoll::EventData::new_u64(self.accepted);
            epoll::add(&self.poller, &fd, data, epoll::EventFlags::IN)?;
            self.peers.insert(self.accepted, Peer::new(fd));
            self.accepted += 1;
        }
        Ok(())
    }

    fn read(&mut self, token: u64) -> io::Result<()> {
        // A peer of an event may have gone with an earlier one.
        let Some(peer) = self.peers.get_mut(&token) else { return Ok(()) };
        match peer.read() {
            Ok(count) => self.log.bytes_read += count,
            Err(_) => {
                self.peers.remove(&token);
                return Ok(());
            }
        }
        self.begin(token)
    }

    /// Reacts to the next request of a connection, if it is there and none is being answered.
    fn begin(&mut self, token: u64) -> io::Result<()> {
        let received_ns = self.clock.now_ns();
        let Some(peer) = self.peers.get_mut(&token) else { return Ok(()) };
        let tag = match peer.next_request() {
            Ok(Some(tag)) => tag,
            Ok(None) => return Ok(()),
            Err(error) => return Err(error),
        };
        let number = self.log.served.len() as u64;
        self.log.served.push(Served { tag, received_ns, answered_ns: None });
        let reaction = (self.script)(&ReceivedRequest { number, tag });
        let interlude = reaction.interlude;
        peer.react(reaction, self.log.served.len() - 1, received_ns);
        match interlude {
            Interlude::None => {}
            Interlude::Stall(ns) => self.pause(ns),
            Interlude::Freeze => self.pause(u64::MAX),
            Interlude::Vanish(ns) => return self.vanish(ns),
        }
        self.step(token)
    }

    /// Does nothing for so long, or until the server is stopped.
    fn pause(&mut self, ns: u64) {
        let begun_ns = self.clock.now_ns();
        let until_ns = begun_ns.saturating_add(ns);
        while !self.ending() {
            let left_ns = until_ns.saturating_sub(self.clock.now_ns());
            if left_ns == 0 {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left_ns.min(10_000_000)));
        }
        self.log.pauses.push((begun_ns, self.clock.now_ns()));
    }

    fn vanish(&mut self, ns: u64) -> io::Result<()> {
        self.listener = None;
        self.peers.clear();
        self.due.clear();
        self.pause(ns);
        let BoundAddress::Tcp(address) = self.at else { return Ok(()) };
        while !self.ending() {
            // Somebody's outgoing connection may have the port for a moment.
            if let Ok(listener) = TcpListener::bind(address) {
                let listener = OwnedFd::from(listener);
                rustix::net::listen(&listener, BACKLOG)?;
                self.listener = Some(listener);
                return self.listen();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn write_what_is_due(&mut self) -> io::Result<()> {
        while let Some(Reverse((at_ns, token))) = self.due.peek().copied() {
            if at_ns > self.clock.now_ns() {
                break;
            }
            self.due.pop();
            self.step(token)?;
        }
        Ok(())
    }

    /// Writes what a connection has to write now.
    fn step(&mut self, token: u64) -> io::Result<()> {
        let Some(peer) = self.peers.get_mut(&token) else { return Ok(()) };
        let step = peer.write(&self.clock, &mut self.log.bytes_written);
        if let Some((entry, at_ns)) = peer.whole.take() {
            self.log.served[entry].answered_ns = Some(at_ns);
        }
        match step {
            Step::Idle => {}
            Step::Later(at_ns) => self.due.push(Reverse((at_ns, token))),
            Step::Gone => drop(self.peers.remove(&token)),
            Step::Done { keep } => {
                if !keep {
                    self.peers.remove(&token);
                } else if self.peers[&token].has_input() {
                    return self.begin(token);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
