//! The server is stopped under the load of eight connections, each with its own way of sending
//! numbered events by `POST /e`.
//!
//! With SIGTERM every answered event is stored once, in order. With `kill -9` only the newest
//! events of each connection may be missing, those answered within the loss window before the kill;
//! events answered as durable are stored.
//!
//! `WELLSPRING_TEST_CRASH_CYCLES` sets the number of cycles (default 12), for each of the two.

use crate::crash_cycles::{cycles, flags, slowest_barrier};
use crate::done::StopSignal;
use crate::numbered::{Fate, HABITS, Habit, Ledger, ends, prefixes, push_until_cut, read_after};
use crate::server::Server;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest time from an answer to a `kill -9` that loses its event. Documented are 2 ms plus a
/// flush; the rest is for a loaded machine.
const WINDOW: Duration = Duration::from_millis(250);
/// None of these waits for the disk, which would trigger an early flush.
const PATIENT: [Habit; 2] = [Habit::Single, Habit::Tagged];
/// With these and such clients, only age triggers a flush.
const AGE_ALONE: [&str; 2] = ["--ingest-flush-bytes", "1073741824"];
/// Cycles on one folder.
const FOLDER_CYCLES: usize = 4;

/// Pushes from connections with these habits for a while, until `stop` has stopped the server.
fn load<T>(
    address: SocketAddr,
    cycle: usize,
    habits: &[Habit],
    time: Duration,
    stop: impl FnOnce() -> T,
) -> (Vec<Ledger>, T) {
    let push = |(at, &habit): (usize, &Habit)| {
        let (name, seed) = (format!("{cycle}-{at}"), (cycle * 100 + at) as u64);
        std::thread::spawn(move || push_until_cut(address, &name, habit, seed))
    };
    let pushers: Vec<_> = habits.iter().enumerate().map(push).collect();
    std::thread::sleep(time);
    let stopped = stop();
    (pushers.into_iter().map(|pusher| pusher.join().expect("a pusher")).collect(), stopped)
}

/// Between the first request and some hundred flushes.
fn some_time(cycle: usize) -> Duration {
    Duration::from_millis(3 + (cycle as u64 * 41) % 170)
}

fn head(server: &Server) -> u64 {
    server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap()
}

/// Runs `cycle` repeatedly, now and then on a new folder.
fn run(mut cycle: impl FnMut(&Path, usize)) {
    let mut dir = tempfile::tempdir().unwrap();
    for number in 0..cycles() {
        if number.is_multiple_of(FOLDER_CYCLES) {
            dir = tempfile::tempdir().unwrap();
        }
        cycle(dir.path(), number);
    }
}

#[test]
fn sigterm_at_any_moment_stores_every_answered_event_once_and_in_order() {
    let mut answered = 0;
    run(|dir, cycle| {
        let mut server = Server::start_in(dir, &flags(cycle));
        let before = head(&server);
        let address = server.address;
        let (ledgers, status) =
            load(address, cycle, &HABITS, some_time(cycle), || server.terminate());
        assert!(status.success(), "{status}");
        let again = Server::start_in(dir, &flags(cycle));
        let events = read_after(&mut again.client(), before);
        for (ledger, there) in ledgers.iter().zip(prefixes(&events, &ledgers)) {
            let mut whole = there == 0;
            for (sent, end) in ends(ledger) {
                whole |= there == end;
                let must = matches!(sent.fate, Fate::Accepted | Fate::Durable);
                assert!(
                    !must || end <= there,
                    "cycle {cycle}, {} ({:?}): {sent:?} was answered, only {there} are there",
                    ledger.name,
                    ledger.habit
                );
            }
            assert!(whole, "cycle {cycle}, {}: a body is there in part", ledger.name);
            answered += ledger.answered();
        }
    });
    println!("{answered} events answered in {} cycles, all there", cycles());
    assert!(answered > cycles() as u64 * 20, "the load reached the server: {answered}");
}

/// The losses of a kill.
#[derive(Debug, Default)]
struct Toll {
    answered: u64,
    missing: u64,
    /// From the answer of a missing event to the kill.
    longest: Duration,
}

impl Toll {
    fn add(&mut self, cycle: usize, ledger: &Ledger, there: usize, killed: Instant) {
        self.answered += ledger.answered();
        for (sent, end) in ends(ledger) {
            let Some(answered) = sent.answered.filter(|_| end > there) else { continue };
            assert!(
                sent.fate != Fate::Durable,
                "cycle {cycle}, {}: {sent:?} was answered as durable, only {there} are there",
                ledger.name
            );
            self.missing += sent.events.min((end - there) as u64);
            self.longest = self.longest.max(killed.saturating_duration_since(answered));
        }
    }
}

#[test]
fn kill_9_takes_the_newest_of_each_connection_within_the_window_and_nothing_durable() {
    let mut all = Toll::default();
    run(|dir, cycle| {
        let patient = cycle % 3 == 2;
        let settings = [&flags(cycle)[..], if patient { &AGE_ALONE } else { &[] }].concat();
        let server = Server::start_in(dir, &settings);
        let before = head(&server);
        let (address, done) = (server.address, StopSignal::default());
        let (habits, time) =
            if patient { (&PATIENT[..], 2 * WINDOW) } else { (&HABITS[..], some_time(cycle)) };
        let (ledgers, killed, barrier) = std::thread::scope(|scope| {
            let enough = done.at_the_end();
            let yardstick = scope.spawn(|| slowest_barrier(dir, &done));
            let (ledgers, killed) = load(address, cycle, habits, time, || {
                let killed = Instant::now();
                server.kill();
                killed
            });
            drop(enough);
            (ledgers, killed, yardstick.join().unwrap())
        });
        let again = Server::start_in(dir, &flags(cycle));
        let events = read_after(&mut again.client(), before);
        let mut toll = Toll::default();
        for (ledger, there) in ledgers.iter().zip(prefixes(&events, &ledgers)) {
            toll.add(cycle, ledger, there, killed);
        }
        // A barrier may be in progress when an event arrives, followed by its own.
        let window = WINDOW + 2 * barrier;
        assert!(toll.longest <= window, "cycle {cycle}: {toll:?}; {window:?} is too long already");
        all.answered += toll.answered;
        all.missing += toll.missing;
        all.longest = all.longest.max(toll.longest);
    });
    println!("in {} cycles: {all:?}", cycles());
    assert!(all.answered > cycles() as u64 * 20, "the load reached the server: {all:?}");
}
