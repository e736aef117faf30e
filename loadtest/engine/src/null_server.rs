//! A server that does nothing but answer: the floor against which a client's own
//! cost is measured (check C7), and the built-in target of the self-test.
//!
//! One thread on loopback, HTTP/1.1 or HTTP/2 in clear as the client begins;
//! pipelining and bodies are understood, every request gets the same answer.

mod http2;

use crate::engine::spawn;
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What every request is answered with.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// The most a request may be.
const LARGEST_REQUEST_BYTES: usize = 64 << 20;

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NullServer {
    /// Starts one on a free port of 127.0.0.1, bound to processor `cpu` if given.
    ///
    /// # Errors
    /// The system's, when it gives no port or thread.
    pub fn start(cpu: Option<u32>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Self::serve(listener, cpu)
    }

    /// Serves on a listener that is already bound.
    ///
    /// # Errors
    /// The system's, when it gives no thread.
    pub fn serve(listener: TcpListener, cpu: Option<u32>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        // The standard library asks for a queue of 128: a thousand clients at once would wait a
        // second.
        rustix::net::listen(&listener, 4096)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = spawn("null-server", move || {
            if let Some(cpu) = cpu {
                crate::machine::pin_to(cpu);
            }
            // An error of the poller itself ends the server; its clients see closed connections.
            let _ = run(&listener, &stopping);
        })?;
        Ok(NullServer { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server ends, which it does only by an error of the system.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a client speaks.
enum Speech {
    /// It has not said enough yet.
    Unknown,
    Http1,
    Http2(http2::Session),
}

struct Peer {
    socket: TcpStream,
    speech: Speech,
    input: Vec<u8>,
    output: Vec<u8>,
}

fn run(listener: &TcpListener, stop: &AtomicBool) -> io::Result<()> {
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poller, listener, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)?;
    let mut peers: HashMap<u64, Peer> = HashMap::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        match epoll::wait(&poller, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let token = event.data.u64();
            if token == u64::MAX {
                accept(listener, &poller, &mut peers)?;
            } else if let Some(peer) = peers.get_mut(&token)
                && peer.serve(&mut buffer).is_err()
            {
                peers.remove(&token);
            }
        }
    }
    Ok(())
}

fn accept(
    listener: &TcpListener,
    poller: &OwnedFd,
    peers: &mut HashMap<u64, Peer>,
) -> io::Result<()> {
    while let Ok((socket, _)) = listener.accept() {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let token = u64::try_from(socket.as_raw_fd()).unwrap_or(u64::MAX - 1);
        let data = epoll::EventData::new_u64(token);
        epoll::add(poller, socket.as_fd(), data, epoll::EventFlags::IN)?;
        let (input, output) = (Vec::new(), Vec::new());
        peers.insert(token, Peer { socket, speech: Speech::Unknown, input, output });
    }
    Ok(())
}

impl Peer {
    fn serve(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let count = match self.socket.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        // Almost always whole requests arrive and nothing is left over.
        if self.input.is_empty() {
            let used = self.speech.answer_all(&buffer[..count], &mut self.output)?;
            self.input.extend_from_slice(&buffer[used..count]);
        } else {
            self.input.extend_from_slice(&buffer[..count]);
            let used = self.speech.answer_all(&self.input, &mut self.output)?;
            self.input.drain(..used);
        }
        if self.input.len() > LARGEST_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut rest = self.output.as_slice();
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(written) => rest = &rest[written..],
                // Answers are tiny: a peer that takes none of them is not one we serve.
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        Ok(())
    }
}

impl Speech {
    /// Answers every complete request at the front of `input`; returns how much of it was used.
    #[inline]
    fn answer_all(&mut self, input: &[u8], output: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Speech::Http1 => answer_all(input, output),
            Speech::Http2(session) => session.answer_all(input, output),
            Speech::Unknown if input.starts_with(http2::PREFACE) => {
                let mut session = http2::Session::new(output);
                let preface = http2::PREFACE.len();
                let used = session.answer_all(&input[preface..], output)?;
                *self = Speech::Http2(session);
                Ok(preface + used)
            }
            Speech::Unknown if http2::PREFACE.starts_with(input) => Ok(0),
            Speech::Unknown => {
                *self = Speech::Http1;
                answer_all(input, output)
            }
        }
    }
}

/// Answers every complete request at the front of `input`; returns how much of it that was.
fn answer_all(input: &[u8], output: &mut Vec<u8>) -> io::Result<usize> {
    let mut used = 0;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(&input[used..]);
        let head = match parsed {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Ok(used),
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        };
        let mut length = 0;
        for field in request.headers.iter() {
            if field.name.eq_ignore_ascii_case("content-length") {
                let digits = std::str::from_utf8(field.value).unwrap_or_default();
                length = digits.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
            }
        }
        if input.len() - used < head + length {
            return Ok(used);
        }
        used += head + length;
        output.extend_from_slice(ANSWER);
        if used == input.len() {
            return Ok(used);
        }
    }
}
