//! The loop over real sockets, with a fake intake whose room and barriers the test controls.

#![allow(clippy::disallowed_methods)] // tests use real time and threads

use super::head::HeadLimits;
use super::loop_state::LoopState;
use super::seam::{CountedRequest, Credentials, Guards};
use super::session_tests::{ACCEPTED, ACCEPTED_LAST};
use super::wakeup::Wakeup;
use super::worker::{Parts, Worker};
use super::{Handover, Settings};
use crate::access::Principal;
use crate::fast::{
    Claim, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head, Shape,
    TicketState, Varying, Word, erase,
};
use crate::http::body_memory::BodyMemory;
use crate::identity::Role;
use crate::limits::{Payer, QuotaKeys};
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
use wellspring_patience::{PATIENCE, Patience};

/// What the test observes and controls.
#[derive(Default)]
struct Command {
    taken: Mutex<Vec<String>>,
    /// Number of requests for `/e?full` that find room.
    room: AtomicUsize,
    /// Requests for `/e?durable` that are stored.
    stored: AtomicUsize,
    /// A client that disconnects as soon as something is accepted.
    goes: Mutex<Option<TcpStream>>,
}

struct CommandedIngest {
    command: Arc<Command>,
    tickets: usize,
}

/// Admits every request.
struct OpenGuards;

impl Guards for OpenGuards {
    type Pass = ();

    fn admit(&mut self, _: Role, _: Option<&str>, _: &Credentials<'_>) -> Option<()> {
        Some(())
    }

    fn answers_under(&self, _: &[u8]) -> bool {
        true
    }

    fn holds(&self, (): &()) -> bool {
        true
    }

    fn principal(&self, (): &()) -> Option<Arc<Principal>> {
        None
    }

    fn client(&self, peer: Option<IpAddr>, _: &[u8]) -> Option<IpAddr> {
        peer
    }

    fn counts_requests(&self) -> bool {
        false
    }

    fn count(&self, _: CountedRequest<'_, ()>) -> (QuotaKeys, Result<(), Box<Problem>>) {
        unreachable!("nothing is limited")
    }

    fn charge(&self, _: QuotaKeys, _: usize, _: u64) {}

    fn payer(&self, _: QuotaKeys) -> Payer {
        Payer::default()
    }
}

impl FastPath for CommandedIngest {
    type Params = String;
    type Ticket = usize;

    fn route(&self) -> FastRoute {
        FastRoute { method: "POST", path: "/e" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 202,
            content_type: "application/json",
            headers: Vec::new(),
            varying_headers: &[],
            content: FormContent::Fixed(br#"{"ok":true}"#),
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let is_ours = method == "POST" && target.starts_with("/e");
        is_ours.then_some(Claim { role: Some(Role::Writer), log: None, shape: Shape::Content })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<String>, Box<Problem>> {
        Ok(Some(head.target.to_owned()))
    }

    fn largest_content(&self, _: &String) -> usize {
        1 << 20
    }

    fn line(&self, target: &String) -> usize {
        target.len()
    }

    fn answer(
        &mut self,
        target: &String,
        asked: FastRequest<'_>,
        _: &mut Varying,
    ) -> FastAnswer<usize> {
        if target == "/e?full" {
            let room = self.command.room.load(SeqCst);
            if room == 0 {
                return FastAnswer::Full;
            }
            self.command.room.store(room - 1, SeqCst);
        }
        drop(self.command.goes.lock().unwrap().take());
        let body = String::from_utf8_lossy(asked.content).into_owned();
        self.command.taken.lock().unwrap().push(body);
        if target == "/e?durable" {
            self.tickets += 1;
            return FastAnswer::Pending(self.tickets - 1);
        }
        FastAnswer::Reply(0)
    }

    fn settled(&mut self, ticket: &usize, _: &mut Varying) -> TicketState {
        if *ticket < self.command.stored.load(SeqCst) {
            TicketState::Reply(0)
        } else {
            TicketState::Pending
        }
    }
}

/// Answers with the code, and records the caller.
struct CodePath(Arc<Command>);

impl FastPath for CodePath {
    type Params = ();
    type Ticket = ();

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: "/{code}" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 302,
            content_type: "",
            headers: Vec::new(),
            varying_headers: &["location"],
            content: FormContent::Fixed(b""),
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let shape = Shape::Bare(Some(Word { at: 1, most: 10 }));
        let is_ours = method == "GET" && target != "/health";
        is_ours.then_some(Claim { role: None, log: None, shape })
    }

    fn understand(&mut self, _: &Head<'_>) -> Result<Option<()>, Box<Problem>> {
        Ok(Some(()))
    }

    fn answer(&mut self, (): &(), asked: FastRequest<'_>, varying: &mut Varying) -> FastAnswer<()> {
        varying.header(|out| out.extend_from_slice(asked.word));
        self.0.taken.lock().unwrap().push(asked.client.unwrap().to_string());
        FastAnswer::Reply(0)
    }

    fn settled(&mut self, (): &(), _: &mut Varying) -> TicketState {
        TicketState::Pending
    }
}

struct Running {
    command: Arc<Command>,
    address: SocketAddr,
    wakeup: Arc<Wakeup>,
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
        let (wakeup, command) = (Arc::new(Wakeup::new().unwrap()), Arc::new(Command::default()));
        let (stop, stopping) = watch::channel(false);
        let (handover, handed_over) = unbounded_channel();
        let (limited, stats) = crate::limits::Limits::for_tests(&[]);
        let settings = Settings {
            access_log: false,
            first_request_id: 0,
            routes: [(0, "/e"), (1, "/{code}")]
                .map(|(index, path)| RouteName { index, path: Some(path) })
                .into(),
            no_route: RouteName { index: 2, path: None },
            header_us: 10_000_000,
            body_us: 10_000_000,
            idle_us: 10_000_000,
            write_us: 10_000_000,
            drain_us: 600_000,
        };
        let parts = Parts {
            listener: Some(listener),
            wakeup: Arc::clone(&wakeup),
            settings,
            limits: limited,
            stats: Arc::clone(&stats),
            clock: Arc::new(wellspring_log::SystemClock),
            stopping,
            handover,
        };
        let limits = HeadLimits { headers: 16, head_bytes: 8_192, url_bytes: 4_096, traced: false };
        let memory = BodyMemory::new(&stats, 1 << 20);
        let ours = Arc::clone(&command);
        let thread = std::thread::spawn(move || {
            let links = CodePath(Arc::clone(&ours));
            let paths = vec![erase(CommandedIngest { command: ours, tickets: 0 }), erase(links)];
            Worker::new(parts, LoopState::new(OpenGuards, paths, limits, memory)).unwrap().run();
        });
        let thread = Some(thread);
        Running { command, address, wakeup, stop, stats, thread, handed_over }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
    }

    /// Waits until this many requests are accepted.
    fn taken(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
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
        let mut patience = Patience::new();
        while self.stats.connections.load(SeqCst) != count {
            patience.pause(format_args!("{} are open", self.stats.connections.load(SeqCst)));
        }
    }

    /// Stops the loop and returns the time it took.
    fn stop(&mut self) -> Duration {
        let asked = Instant::now();
        self.stop.send(true).unwrap();
        self.wakeup.wake();
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

/// Asserts that nothing arrives for a while.
fn silent(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
}

#[test]
fn connections_that_wait_for_room_are_served_in_turn_and_delay_no_other() {
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
    running.wakeup.wake();
    running.taken(5);
    running.command.room.store(8, SeqCst);
    running.wakeup.wake();
    let order: Vec<String> = running.taken(13).split_off(3);
    assert_eq!(order, ["0a", "1a", "2a", "3a", "4a", "0b", "1b", "2b", "3b", "4b"]);
    waiting.iter_mut().for_each(|stream| answers(stream, 2));
    running.stop();
}

#[test]
fn a_connection_that_waits_for_room_is_not_read_and_may_close() {
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
    // A reset is noticed although the connection is not being read, and its pending work is
    // dropped.
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    running.open(0);
    running.command.room.store(1, SeqCst);
    running.wakeup.wake();
    let mut next = running.connect();
    next.write_all(&request("/e?full", "next")).unwrap();
    answers(&mut next, 1);
    assert_eq!(running.taken(1), ["next"]);
    running.stop();
}

#[test]
fn an_answer_to_a_client_that_left_reaches_no_other_client() {
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
    running.wakeup.wake();
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
    running.wakeup.wake();
    answers(&mut stream, 2);
    silent(&mut stream);
    // The connection is handed over once the last answer is settled, not before.
    stream.write_all(b"GET /health HTTP/1.1\r\n").unwrap();
    silent(&mut stream);
    assert!(running.handed_over.try_recv().is_err());
    running.command.stored.store(2, SeqCst);
    running.wakeup.wake();
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
    let found = b"HTTP/1.1 302 Found\r\nLocation: abc\r\nContent-Length: 0\r\n\
        Connection: keep-alive\r\n\r\n";
    let expected = [found.repeat(3), ACCEPTED.to_vec()].concat();
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
    running.wakeup.wake();
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
