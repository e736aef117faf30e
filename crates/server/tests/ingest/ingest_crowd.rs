//! Ten thousand connections, most of them abusive: idle ones, heads and bodies sent a byte at a
//! time, header bombs. One client's `POST /e` is as fast as if it were alone, memory stays bounded,
//! and merely slow clients are served.

use crate::account::{Account, count_of, metric};
use crate::client::Client;
use crate::done::StopSignal;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const WANTED: usize = 10_000;
const AT_LEAST: usize = 1_000;
/// Descriptors of this process for everything else, including other tests.
const OTHERS: u64 = 1_000;
/// How long the one client is observed at least, and at most: a slow machine needs longer until
/// each slow connection has sent two bytes.
const WATCHED: Duration = Duration::from_millis(2_500);
const WATCHED_AT_MOST: Duration = Duration::from_secs(30);
/// Timeouts so long that slowness of the machine does not count as slowness of a client.
const PATIENT: [&str; 4] = ["--header-timeout-ms", "120000", "--body-timeout-ms", "120000"];
/// Maximum memory of a connection that has sent little, in the lean loop: its state, the head or
/// body so far, and the same again for the allocator.
const LEAN_BYTES: u64 = 4 << 10;
/// The same in the general stack: a read buffer of 8 KiB, the same for the piece of a body, and the
/// same again for tasks, timers and the allocator.
const GENERAL_BYTES: u64 = 24 << 10;
/// Concurrent bombs; each may fill its read buffer twice.
const BOMBERS: u64 = 2;
const MOST_BOMB_BYTES: u64 = 2 * (64 << 10);

/// Raises the limit on descriptors; returns how many connections fit.
fn connections_that_fit() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    WANTED.min(usize::try_from(allowed.saturating_sub(OTHERS)).unwrap_or(WANTED))
}

/// What a connection of the crowd does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Idle,
    SlowHead,
    SlowBody,
}

impl Manner {
    fn of(at: usize) -> Manner {
        [Manner::Idle, Manner::SlowHead, Manner::SlowBody][at % 3]
    }

    fn begin(self) -> &'static [u8] {
        match self {
            Manner::Idle => b"",
            Manner::SlowHead => b"POST /e HTTP/1.1\r\nHost: l\r\nX-Slow: ",
            Manner::SlowBody => b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 1000\r\n\r\n",
        }
    }
}

fn open_crowd(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let open = |at| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(Manner::of(at).begin()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    (0..count).map(open).collect()
}

/// Sends a byte on every slow connection, repeatedly; `sent` is the number each has sent.
fn drip(crowd: &[TcpStream], done: &StopSignal, sent: &AtomicUsize) {
    while !done.is_set() {
        let slow = crowd.iter().enumerate().filter(|(at, _)| Manner::of(*at) != Manner::Idle);
        for (count, (at, mut stream)) in slow.enumerate() {
            stream.write_all(b"x").unwrap_or_else(|error| panic!("connection {at}: {error}"));
            // Slowly enough to be no load.
            if count % 64 == 63 {
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        sent.fetch_add(1, SeqCst);
    }
}

/// Sends endless heads until the server closes the connection; counts the connections closed.
fn bomb(address: SocketAddr, done: &StopSignal, ended: &AtomicUsize) {
    let line = format!("X-Bomb: {}\r\n", "y".repeat(4_000));
    while !done.is_set() {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut all = stream.write_all(b"POST /e HTTP/1.1\r\nHost: l\r\n");
        for _ in 0..1_000 {
            all = all.and_then(|()| stream.write_all(line.as_bytes()));
        }
        let answer = stream.read(&mut [0; 512]);
        let alive =
            all.is_ok() && answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
        assert!(!alive, "4 MB of headers were taken");
        ended.fetch_add(1, SeqCst);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Latencies of single requests, alternating between the crowded server and an idle one.
fn watch(crowded: &Server, quiet: &Server, sent: &AtomicUsize) -> [Vec<Duration>; 2] {
    let mut clients = [crowded.client(), quiet.client()];
    let mut times = [Vec::new(), Vec::new()];
    let begun = Instant::now();
    let enough = || sent.load(SeqCst) > 1 || begun.elapsed() > WATCHED_AT_MOST;
    while begun.elapsed() < WATCHED || !enough() {
        for (client, times) in clients.iter_mut().zip(&mut times) {
            let asked = Instant::now();
            client.call("POST", "/e?type=Watched", &[], b"1").unwrap().expect(202);
            times.push(asked.elapsed());
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    times.iter_mut().for_each(|times| times.sort());
    times
}

/// Completes the requests of some slow connections; each must get its 202.
fn complete(crowd: Vec<TcpStream>, sent: usize) -> usize {
    let mut completed = 0;
    for (at, mut stream) in crowd.into_iter().enumerate().filter(|(at, _)| at % 10 < 3) {
        let rest = match Manner::of(at) {
            Manner::Idle => b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\n\r\n1".to_vec(),
            Manner::SlowHead => b"\r\nContent-Length: 1\r\n\r\n1".to_vec(),
            Manner::SlowBody => vec![b'x'; 1000 - sent],
        };
        stream.set_nonblocking(false).unwrap();
        stream.write_all(&rest).unwrap();
        let mut client = Client::from(stream);
        let answer = client.answer().unwrap_or_else(|e| panic!("{at} {:?}: {e}", Manner::of(at)));
        answer.expect(202);
        completed += 1;
    }
    completed
}

fn resident_bytes(server: &Server) -> u64 {
    let text = server.client().get("/metrics").unwrap().text();
    metric(&text, "process_resident_memory_bytes")
}

fn watch_once(server: &Server) {
    server.client().call("POST", "/e?type=Watched&ack=durable", &[], b"1").unwrap().expect(202);
}

/// Events of completed requests, once all are stored.
fn count_of_completed(server: &Server) -> u64 {
    let account = Account::at_rest(server, "main");
    assert_eq!(account.accepted, account.stored);
    count_of(server, "main", "Ingested")
}

/// Run alone by `tests/runner`: they measure time.
mod timed {
    use super::*;

    #[test]
    fn ten_thousand_connections_up_to_no_good_stop_nobody() {
        let count = connections_that_fit();
        assert!(count >= AT_LEAST, "only {count} connections are allowed here");
        for lean in BOTH_LOOPS {
            let flags = [&lean[..], &PATIENT].concat();
            let (crowded, quiet) = (Server::start_with(&flags), Server::start_with(&flags));
            // Warm-up: partitions and threads exist.
            watch_once(&crowded);
            watch_once(&quiet);
            let before = resident_bytes(&crowded);
            let begun = Instant::now();
            let crowd = open_crowd(crowded.address, count);
            let (done, ended, sent) =
                (StopSignal::default(), AtomicUsize::new(0), AtomicUsize::new(0));
            let (times, resident) = std::thread::scope(|scope| {
                let enough = done.at_the_end();
                let dripping = scope.spawn(|| drip(&crowd, &done, &sent));
                let bombers =
                    (0..BOMBERS).map(|_| scope.spawn(|| bomb(crowded.address, &done, &ended)));
                let bombers: Vec<_> = bombers.collect();
                let times = watch(&crowded, &quiet, &sent);
                let resident = resident_bytes(&crowded);
                drop(enough);
                bombers.into_iter().for_each(|bomber| bomber.join().unwrap());
                dripping.join().unwrap();
                (times, resident)
            });
            let sent = sent.into_inner();
            let [[median, p99], [quiet_median, quiet_p99]] =
                times.each_ref().map(|times| [50, 99].map(|p| times[times.len() * p / 100]));
            let grown = resident.saturating_sub(before);
            println!(
                "{lean:?}: {count} connections, {sent} bytes on each slow one, {} bombs, in {:?}\n\
                 {} requests: median {median:?} and p99 {p99:?}; {quiet_median:?} and {quiet_p99:?} of a server alone\n\
                 memory grew by {} bytes a connection",
                ended.load(SeqCst),
                begun.elapsed(),
                times[0].len(),
                grown / count as u64,
            );
            assert!(ended.load(SeqCst) > 0 && sent > 1);
            let usual = quiet_median.max(Duration::from_millis(5));
            assert!(median < 4 * usual, "median {median:?}, {quiet_median:?} without the crowd");
            assert!(p99 < Duration::from_millis(100) + 4 * quiet_p99, "p99 {p99:?}");
            let each = if lean[1] == "true" { LEAN_BYTES } else { GENERAL_BYTES };
            let most = count as u64 * each + BOMBERS * MOST_BOMB_BYTES;
            assert!(grown <= most, "memory grew by {grown} bytes, {most} are possible");
            let watched = times[0].len() as u64;
            assert_eq!(complete(crowd, sent) as u64, count_of_completed(&crowded));
            assert_eq!(count_of(&crowded, "main", "Watched"), watched + 1);
        }
    }
}
