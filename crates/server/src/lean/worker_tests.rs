//! The loop over real sockets, with an intake whose room and barriers the test commands.

#![allow(clippy::disallowed_methods)] // tests use real time and threads

use super::answer::{ACCEPTED, ACCEPTED_LAST, FoundEnds};
use super::bell::Bell;
use super::desk::Desk;
use super::head::{After, Limits};
use super::logged::Origin;
use super::seam::{Counted, Credentials, Redirected, Serves, Taken};
use super::worker::{Parts, Worker};
use super::{Handover, Settings};
use crate::http::body_memory::BodyMemory;
use crate::ingest::{Media, Settled};
use crate::limits::Purse;
use crate::links::Visiting;
use crate::record::RouteName;
use crate::stats::{Stats, prometheus};
use crate::wire::problem::Problem;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

/// What the test sees and commands.
#[derive(Default)]
struct Command {
    taken: Mutex<Vec<String>>,
    /// Requests for `/e?full` that there is room for.
    room: AtomicUsize,
    /// Requests for `/e?durable` that are stored.
    stored: AtomicUsize,
    /// A client that goes as soon as something is taken.
    goes: Mutex<Option<TcpStream>>,
}

struct Commanded {
    command: Arc<Command>,
    tickets: usize,
}

impl Serves for Commanded {
    type Target = String;
    type Ticket = usize;
    type Pass = ();

    fn target(&mut self, target: &str) -> Option<Result<String, Box<Problem>>> {
        target.starts_with("/e").then(|| Ok(target.to_owned()))
    }

    fn admit(&mut self, _: Option<&Self::Target>, credentials: &Credentials<'_>) -> Option<()> {
        // The fake knows nobody.
        credentials.authorization.is_none().then_some(())
    }

    fn answers_under(&self, host: &[u8]) -> bool {
        host != b"foreign.example"
    }

    fn holds(&self, (): &()) -> bool {
        true
    }

    fn counts_requests(&self) -> bool {
        false
    }

    fn count(&self, _: Counted<'_, ()>) -> (Purse, Result<(), Box<Problem>>) {
        unreachable!("nothing is limited")
    }

    fn origin(&self, _: &[u8], client: Option<IpAddr>, _: Option<&()>) -> Origin {
        Origin { client, principal: None }
    }

    fn charge(&self, _: Purse, _: usize, _: u64) {}

    fn take(&mut self, target: &String, _: Media, body: &[u8]) -> Taken<usize> {
        if target == "/e?full" {
            let room = self.command.room.load(SeqCst);
            if room == 0 {
                return Taken::Full;
            }
            self.command.room.store(room - 1, SeqCst);
        }
        drop(self.command.goes.lock().unwrap().take());
        self.command.taken.lock().unwrap().push(String::from_utf8_lossy(body).into_owned());
        if target == "/e?durable" {
            self.tickets += 1;
            return Taken::Pending(self.tickets - 1);
        }
        Taken::Accepted
    }

    fn settled(&mut self, ticket: &usize) -> Settled {
        if *ticket < self.command.stored.load(SeqCst) { Settled::Stored } else { Settled::Pending }
    }

    fn largest_body(&self, _: Media) -> usize {
        1 << 20
    }

    fn same(a: &String, b: &String) -> bool {
        a == b
    }

    fn serves_link(&mut self, code: &[u8]) -> bool {
        code != b"health"
    }

    fn redirect(&mut self, visiting: Visiting<'_>, location: &mut Vec<u8>) -> Redirected {
        location.extend_from_slice(b"https://example.com/");
        location.extend_from_slice(visiting.code);
        let peer = visiting.visitor.peer();
        self.command.taken.lock().unwrap().push(peer.unwrap().to_string());
        Redirected::Found
    }
}

struct Running {
    command: Arc<Command>,
    address: SocketAddr,
    bell: Arc<Bell>,
    stop: watch::Sender<bool>,
    stats: Arc<Stats>,
    thread: Option<JoinHandle<()>>,
    handed_over: UnboundedReceiver<Handover>,
}

impl Running {
    fn start() -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (bell, command) = (Arc::new(Bell::new().unwrap()), Arc::new(Command::default()));
        let (stop, stopping) = watch::channel(false);
        let (handover, handed_over) = unbounded_channel();
        let (limited, stats) = crate::limits::Limits::for_tests(&[]);
        let settings = Settings {
            access_log: false,
            first_request_id: 0,
            routes: [(0, "/e"), (1, "/{code}")]
                .map(|(index, path)| RouteName { index, path: Some(path) }),
            header_us: 10_000_000,
            body_us: 10_000_000,
            idle_us: 10_000_000,
            write_us: 10_000_000,
            drain_us: 600_000,
        };
        let parts = Parts {
            listener: Some(listener),
            bell: Arc::clone(&bell),
            settings,
            limits: limited,
            stats: Arc::clone(&stats),
            clock: Arc::new(wellspring_log::SystemClock),
            stopping,
            handover,
        };
        let limits = Limits { headers: 16, head_bytes: 8_192, url_bytes: 4_096, traced: false };
        let memory = BodyMemory::new(&stats, 1 << 20);
        let intake = Commanded { command: Arc::clone(&command), tickets: 0 };
        let thread = std::thread::spawn(move || {
            Worker::new(parts, Desk::new(intake, limits, memory, FoundEnds::new("origin")))
                .unwrap()
                .run();
        });
        let thread = Some(thread);
        Running { command, address, bell, stop, stats, thread, handed_over }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    }

    /// Waits until so many requests are taken.
    fn taken(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let taken = self.command.taken.lock().unwrap().clone();
            if taken.len() >= count || Instant::now() > deadline {
                assert_eq!(taken.len(), count, "{taken:?}");
                return taken;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn open(&self, count: i64) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.stats.connections.load(SeqCst) != count {
            assert!(Instant::now() < deadline, "{} are open", self.stats.connections.load(SeqCst));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the loop and gives the time it took.
    fn stop(&mut self) -> Duration {
        let asked = Instant::now();
        self.stop.send(true).unwrap();
        self.bell.ring();
        self.thread.take().unwrap().join().unwrap();
        asked.elapsed()
    }
}

fn request(target: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {target} HTTP/1.1\r\nHost: l\r\nContent-Length: {length}\r\n\r\n{body}").into()
}

fn answers(stream: &mut TcpStream, count: usize) {
    let mut answers = vec![0; count * ACCEPTED.len()];
    stream.read_exact(&mut answers).unwrap();
    assert_eq!(answers, ACCEPTED.repeat(count));
}

/// That nothing comes for a while.
fn silent(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
}

#[test]
fn who_waits_for_room_is_served_in_turn_and_hinders_nobody() {
    let mut running = Running::start();
    let mut waiting: Vec<TcpStream> = (0..5)
        .map(|i| {
            let mut stream = running.connect();
            let [first, second] = ["a", "b"].map(|n| request("/e?full", &format!("{i}{n}")));
            stream.write_all(&[first, second].concat()).unwrap();
            silent(&mut stream);
            stream
        })
        .collect();
    let mut other = running.connect();
    for i in 0..3 {
        other.write_all(&request("/e", "other")).unwrap();
        answers(&mut other, 1);
        running.taken(i + 1);
    }
    running.command.room.store(2, SeqCst);
    running.bell.ring();
    running.taken(5);
    running.command.room.store(8, SeqCst);
    running.bell.ring();
    let order: Vec<String> = running.taken(13).split_off(3);
    assert_eq!(order, ["0a", "1a", "2a", "3a", "4a", "0b", "1b", "2b", "3b", "4b"]);
    waiting.iter_mut().for_each(|stream| answers(stream, 2));
    running.stop();
}

#[test]
fn who_waits_for_room_is_not_read_and_may_go() {
    let mut running = Running::start();
    let mut stream = running.connect();
    stream.set_nonblocking(true).unwrap();
    let (batch, mut sent) = (request("/e?full", "x").repeat(1_000), 0);
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_millis(300) {
        match stream.write(&batch) {
            Ok(more) => (sent, last) = (sent + more, Instant::now()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(sent < 64 << 20, "it reads without end");
    }
    running.open(1);
    // A reset is noticed although nobody reads, and what was waiting is forgotten.
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    running.open(0);
    running.command.room.store(1, SeqCst);
    running.bell.ring();
    let mut next = running.connect();
    next.write_all(&request("/e?full", "next")).unwrap();
    answers(&mut next, 1);
    assert_eq!(running.taken(1), ["next"]);
    running.stop();
}

#[test]
fn an_answer_to_a_client_that_is_gone_goes_to_nobody_else() {
    let mut running = Running::start();
    let mut stalled = ["gone", "there"].map(|body| {
        let mut stream = running.connect();
        stream.write_all(&request("/e?full", body)).unwrap();
        silent(&mut stream);
        Some(stream)
    });
    let gone = stalled[0].take().unwrap();
    rustix::net::sockopt::set_socket_linger(&gone, Some(Duration::ZERO)).unwrap();
    *running.command.goes.lock().unwrap() = Some(gone);
    running.command.room.store(2, SeqCst);
    running.bell.ring();
    running.taken(2);
    let there = stalled[1].as_mut().unwrap();
    answers(there, 1);
    silent(there);
    running.stop();
}

#[test]
fn durable_answers_come_when_the_barrier_has() {
    let mut running = Running::start();
    let mut stream = running.connect();
    let durable = request("/e?durable", "d");
    stream.write_all(&[&durable[..], &request("/e", "p"), &durable].concat()).unwrap();
    running.taken(3);
    silent(&mut stream);
    running.command.stored.store(1, SeqCst);
    running.bell.ring();
    answers(&mut stream, 2);
    silent(&mut stream);
    // The connection leaves once the last is settled, not before.
    stream.write_all(b"GET /health HTTP/1.1\r\n").unwrap();
    silent(&mut stream);
    assert!(running.handed_over.try_recv().is_err());
    running.command.stored.store(2, SeqCst);
    running.bell.ring();
    answers(&mut stream, 1);
    let handed_over = running.handed_over.blocking_recv().unwrap();
    assert_eq!(handed_over.read, b"GET /health HTTP/1.1\r\n");
    assert_eq!(handed_over.peer, Some(std::net::Ipv4Addr::LOCALHOST.into()));
    running.open(1);
    drop(handed_over);
    running.open(0);
    running.stop();
}

#[test]
fn redirects_are_counted_by_their_route_and_know_the_peer() {
    let mut running = Running::start();
    let mut stream = running.connect();
    let visit = b"GET /abc HTTP/1.1\r\nHost: l\r\n\r\n";
    stream.write_all(&[&visit.repeat(3)[..], &request("/e", "1")].concat()).unwrap();
    let begin = b"HTTP/1.1 302 Found\r\nLocation: https://example.com/abc".as_slice();
    let ends = FoundEnds::new("origin");
    let expected = [[begin, ends.of(After::Keep)].concat().repeat(3), ACCEPTED.to_vec()].concat();
    let mut answers = vec![0; expected.len()];
    stream.read_exact(&mut answers).unwrap();
    assert_eq!(answers, expected);
    assert_eq!(running.taken(4), ["127.0.0.1", "127.0.0.1", "127.0.0.1", "1"]);
    running.stop();
    let figures = prometheus::page(&running.stats.request_families());
    for line in [
        r#"wellspring_requests_total{route="POST /e",status="202"} 1"#,
        r#"wellspring_requests_total{route="GET /{code}",status="302"} 3"#,
    ] {
        assert!(figures.lines().any(|l| l == line), "{line}\n{figures}");
    }
}

#[test]
fn stopping_ends_the_idle_at_once_and_gives_the_others_their_time() {
    let mut running = Running::start();
    let mut idle = running.connect();
    idle.write_all(&request("/e", "1")).unwrap();
    answers(&mut idle, 1);
    assert!(running.stop() < Duration::from_millis(500));
    assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
    assert!(TcpStream::connect(running.address).is_err(), "nobody listens any more");

    let mut running = Running::start();
    let mut waiting = running.connect();
    waiting.write_all(&request("/e?full", "1")).unwrap();
    let mut durable = running.connect();
    durable.write_all(&request("/e?durable", "2")).unwrap();
    running.taken(1);
    running.stop.send(true).unwrap();
    running.bell.ring();
    std::thread::sleep(Duration::from_millis(100));
    running.command.stored.store(1, SeqCst);
    let took = running.stop();
    assert!(took > Duration::from_millis(300) && took < Duration::from_secs(3), "{took:?}");
    let mut last = Vec::new();
    durable.read_to_end(&mut last).unwrap();
    assert_eq!(last, ACCEPTED_LAST);
    let mut none = Vec::new();
    let _ = waiting.read_to_end(&mut none);
    assert!(none.is_empty(), "what was not taken is not answered");
}
