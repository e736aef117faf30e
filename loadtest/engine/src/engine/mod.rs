//! Offers the load of a [`Plan`] and measures what comes back.
//!
//! One thread a worker, each with its own connections, users, requests and
//! histograms; the calling thread only watches. Nothing is shared on the hot
//! path, and the memory used does not depend on the number of requests.

mod conn;
mod fault;
mod pace;
mod setup;
mod slice;
mod socket;
mod tally;
mod threads;
mod tls;
mod usage;
mod wire;
mod worker;

pub use crate::clock::Clock;
pub use crate::target::{Target, UrlError};
pub use threads::spawn;
#[cfg(any(test, feature = "fuzzing"))]
pub use wire::{AnswersSeen, answers_of};

use crate::plan::{Plan, Protocol};
use crate::result::{ClientUse, EndpointResult, ErrorKind, Finish, Noise, OpenLoop, Run, Slice};
use fault::{Cause, Fault};
use rustix::io::Errno;
use setup::{Control, Cut, Ready, Setup, WorkerResult};
use slice::Gathered;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use worker::Worker;

/// Time between the last connection's opening and the first request.
const START_AFTER_NS: u64 = 2_000_000;
/// How often the observer is told.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Who watches a run.
pub trait Observer {
    /// Called about ten times a second from the thread that called [`run`].
    fn progress(&mut self, progress: &Progress<'_>);

    /// Called before each run with what it is, e.g. `c=16, repeat 2 of 3`.
    fn begin(&mut self, _what: &str) {}
}

/// An observer that does not look.
#[derive(Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn progress(&mut self, _progress: &Progress<'_>) {}
}

/// How far a run has come.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Time since the beginning of the measured part, in nanoseconds; 0 while warming up.
    pub elapsed_ns: u64,
    /// Whether it is still warming up.
    pub warming_up: bool,
    /// Successes so far.
    pub successes: u64,
    /// Failures and errors so far.
    pub failures: u64,
    /// The seconds that are over.
    pub slices: &'a [Slice],
    /// How much of the run is done, 0 to 1, by time or by requests, whichever is further.
    pub done_share: f64,
}

/// What [`run`] measured and learned.
#[derive(Debug)]
pub struct Measured {
    /// The figures.
    pub run: Run,
    /// The server's `Server` field, if it sent one.
    pub server: Option<String>,
    /// The first error on a connection, in the words of the system, TLS or HTTP/2.
    pub first_error: Option<String>,
}

/// Why a run could not be made. Nothing was measured.
#[derive(Debug)]
pub enum RunError {
    /// Not one connection could be opened. Trying again helps once the server is there.
    Connect {
        /// Where to.
        target: String,
        /// The first error.
        why: String,
    },
    /// The operating system gave no thread or no file descriptor.
    System(String),
    /// The settings contradict each other.
    Settings(String),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Connect { target, why } => {
                write!(f, "could not connect to {target}: {why}")
            }
            RunError::System(why) => write!(f, "the system refused: {why}"),
            RunError::Settings(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RunError {}

/// Offers the load and measures, once. `stop` set to true ends it early: what
/// was measured until then is the result.
///
/// The fields `repeat`, `order`, `server` and `noise` of the result are the
/// caller's to fill: they need to know more than one run.
///
/// # Errors
/// [`RunError`] if nothing could be measured.
pub fn run(
    plan: &Plan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<Measured, RunError> {
    validate(plan)?;
    crate::machine::allow_open_files(u64::from(plan.settings.connections) + 256);
    let clock = Clock::start();
    let setup =
        Arc::new(Setup::new(plan, clock).map_err(|invalid| RunError::Settings(invalid.into()))?);
    let control =
        Arc::new(Control::new(Arc::clone(stop), plan.settings.stop.requests, setup.workers));
    let (slices, gathered) = mpsc::channel();
    let (ready, all_ready) = mpsc::channel();
    let mut starts = Vec::new();
    let mut threads = Vec::new();
    for index in 0..setup.workers {
        let (start, started) = mpsc::channel::<u64>();
        let (setup, control) = (Arc::clone(&setup), Arc::clone(&control));
        let (ready, slices) = (ready.clone(), slices.clone());
        let body = move || work(setup, control, index, &ready, &started, slices);
        threads.push(threads::spawn(&format!("load-{index}"), body).map_err(system)?);
        starts.push(start);
    }
    drop((ready, slices));
    let begun = wait_until_open(&all_ready, &setup);
    if let Err(error) = begun {
        drop(starts);
        for thread in threads {
            let _ = thread.join();
        }
        return Err(error);
    }
    let started_unix_us = Clock::unix_us() + setup.warmup_ns / 1000;
    let start_ns = clock.now_ns() + START_AFTER_NS;
    for start in &starts {
        // A worker that is gone shows when it is joined.
        let _ = start.send(start_ns);
    }
    let seconds = watch(&setup, &control, start_ns, &gathered, observer);
    let mut results = Vec::new();
    for thread in threads {
        match thread.join() {
            Ok(Some(result)) => results.push(result),
            _ => return Err(RunError::System("a worker thread has died".into())),
        }
    }
    let finish = finish(&setup, &control, &results);
    let made = results.iter().map(|worker| worker.endpoints.first()?.counters.distinct_requests);
    let made: Option<Vec<u64>> = made.collect();
    let mut measured = gather(finish, results, seconds, started_unix_us);
    if let (Some(first), Some(made)) = (measured.run.endpoints.first_mut(), made) {
        first.counters.distinct_requests = Some(plan.source.distinct_requests(&made));
    }
    Ok(measured)
}

fn system(error: std::io::Error) -> RunError {
    RunError::System(error.to_string())
}

fn validate(plan: &Plan) -> Result<(), RunError> {
    let settings = &plan.settings;
    let wrong = |why: &str| Err(RunError::Settings(why.to_owned()));
    if settings.connections == 0 || settings.streams == 0 || settings.workers == 0 {
        return wrong("connections, streams and workers must be at least 1");
    }
    if settings.streams > 1 && settings.protocol == Protocol::Http1 {
        return wrong(
            "HTTP/1.1 has one stream a connection; ask for HTTP/2 or for more connections",
        );
    }
    if settings.workers > settings.connections {
        return wrong("there cannot be more workers than connections");
    }
    if settings.stop.duration_ms.is_none() && settings.stop.requests.is_none() {
        return wrong("a run needs a duration or a number of requests");
    }
    if settings.timeout_ms == 0 {
        return wrong("the time limit must be at least 1 ms");
    }
    if let crate::plan::Load::Open { rate_per_s, .. } = settings.load
        && !(rate_per_s.is_finite() && rate_per_s > 0.0)
    {
        return wrong("the rate must be a number above 0");
    }
    Ok(())
}

/// The life of one worker thread.
fn work(
    setup: Arc<Setup>,
    control: Arc<Control>,
    index: u32,
    ready: &mpsc::Sender<Ready>,
    started: &mpsc::Receiver<u64>,
    slices: mpsc::Sender<Gathered>,
) -> Option<WorkerResult> {
    if let Some(cpu) = setup.cpu_of(index) {
        crate::machine::pin_to(cpu);
    }
    crate::machine::fine_timers();
    let mut worker = match Worker::new(setup, control, index) {
        Ok(worker) => worker,
        Err(error) => {
            let error = Some(Fault::system(ErrorKind::Connect, error));
            let _ = ready.send(Ready { open: 0, error });
            return None;
        }
    };
    let (open, error) = worker.connect_all();
    let _ = ready.send(Ready { open, error });
    // No start: another worker failed, or nothing could be reached.
    let start_ns = started.recv().ok()?;
    Some(worker.run(start_ns, slices))
}

fn wait_until_open(ready: &mpsc::Receiver<Ready>, setup: &Setup) -> Result<(), RunError> {
    let mut open = 0;
    let mut first = None;
    for _ in 0..setup.workers {
        let Ok(worker) = ready.recv() else { break };
        open += worker.open;
        first = first.or(worker.error);
    }
    if open > 0 {
        return Ok(());
    }
    let why = match first {
        Some(Fault { cause: Cause::System(Errno::CONNREFUSED), .. }) => {
            "connection refused; is the server running?".to_owned()
        }
        Some(Fault { cause: Cause::System(Errno::MFILE), .. }) => {
            "too many open files; raise the limit with `ulimit -n`".to_owned()
        }
        Some(fault) if fault.kind == ErrorKind::Tls => format!("TLS: {fault}"),
        Some(fault) => fault.to_string(),
        None => "no answer in the time for connecting".to_owned(),
    };
    let target = match &setup.target.unix_socket {
        Some(path) => path.display().to_string(),
        None => setup.target.authority(),
    };
    Err(RunError::Connect { target, why })
}

/// Puts the workers' seconds together and tells the observer, until all workers are done.
fn watch(
    setup: &Setup,
    control: &Control,
    start_ns: u64,
    gathered: &setup::Slices,
    observer: &mut dyn Observer,
) -> Seconds {
    let mut seconds = Seconds { workers: setup.workers, ..Seconds::default() };
    let measured_from_ns = start_ns + setup.warmup_ns;
    let mut told_ns = 0;
    loop {
        match gathered.recv_timeout(TELL_EVERY) {
            Ok(second) => seconds.add(&second),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return seconds,
        }
        let now_ns = setup.clock.now_ns();
        if now_ns.saturating_sub(told_ns) < 90_000_000 {
            continue;
        }
        told_ns = now_ns;
        let total = |of: fn(&setup::Published) -> &std::sync::atomic::AtomicU64| -> u64 {
            control.published.iter().map(|worker| of(worker).load(Ordering::Relaxed)).sum()
        };
        let (successes, failures) =
            (total(|worker| &worker.successes), total(|worker| &worker.failures));
        let elapsed_ns = now_ns.saturating_sub(measured_from_ns);
        let share =
            |part: u64, of: Option<u64>| of.map_or(0.0, |of| part as f64 / of.max(1) as f64);
        let by_time = share(elapsed_ns, setup.duration_ns);
        let by_count = share(successes + failures, control.requests());
        observer.progress(&Progress {
            elapsed_ns,
            warming_up: now_ns < measured_from_ns,
            successes,
            failures,
            slices: &seconds.done,
            done_share: by_time.max(by_count).min(1.0),
        });
    }
}

/// The seconds of a run, of all workers together.
#[derive(Default)]
struct Seconds {
    workers: u32,
    done: Vec<Slice>,
    /// Seconds that not all workers have told of yet, and how many have.
    pending: BTreeMap<u64, (Gathered, u32)>,
}

impl Seconds {
    fn add(&mut self, second: &Gathered) {
        let fresh = || (Gathered { index: second.index, ..Gathered::default() }, 0);
        let (whole, told) = self.pending.entry(second.index).or_insert_with(fresh);
        whole.merge(second);
        *told += 1;
        if *told == self.workers
            && let Some((whole, _)) = self.pending.remove(&second.index)
        {
            self.done.push(whole.slice(1000));
        }
    }

    /// All seconds in order, the last as long as it really was.
    fn finish(mut self, measured_ns: u64) -> Vec<Slice> {
        self.done.extend(self.pending.values().map(|(whole, _)| whole.slice(1000)));
        self.done.sort_by_key(|slice| slice.start_ms);
        if let Some(last) = self.done.last_mut() {
            last.length_ms = (measured_ns / 1_000_000).saturating_sub(last.start_ms).min(1000);
        }
        self.done.retain(|slice| slice.length_ms > 0 || slice.successes + slice.failures > 0);
        self.done
    }
}

/// Why the run ended.
fn finish(setup: &Setup, control: &Control, results: &[WorkerResult]) -> Finish {
    let any = |cut| results.iter().any(|worker| worker.cut == Some(cut));
    if control.limited && results.iter().all(|worker| worker.exhausted) {
        Finish::Count
    } else if any(Cut::Interrupted) {
        Finish::Interrupted
    } else if any(Cut::Unreachable) {
        let limit_ms = setup.timeout_ns / 1_000_000;
        Finish::Aborted(format!("no connection could be opened for {limit_ms} ms"))
    } else {
        Finish::Time
    }
}

/// Time at the end without any answer, if anybody was waiting for one: as long
/// as one worker got answers the server was not silent.
fn silent_tail_ns(results: &[WorkerResult], end_ns: u64) -> u64 {
    let last_ns = results.iter().map(|worker| worker.last_answer_ns).max().unwrap_or(end_ns);
    let waiting = results.iter().any(|worker| worker.waiting);
    if waiting { end_ns.saturating_sub(last_ns) } else { 0 }
}

/// One run out of what the workers measured.
fn gather(
    finish: Finish,
    results: Vec<WorkerResult>,
    seconds: Seconds,
    started_unix_us: u64,
) -> Measured {
    let start_ns = results.iter().map(|worker| worker.start_ns).min().unwrap_or(0);
    let end_ns = results.iter().map(|worker| worker.end_ns).max().unwrap_or(0);
    let measured_ns = end_ns.saturating_sub(start_ns);
    let mut endpoints: Vec<EndpointResult> = Vec::new();
    let mut open_loop: Option<OpenLoop> = None;
    let mut first_error = None;
    for worker in &results {
        if endpoints.is_empty() {
            endpoints.clone_from(&worker.endpoints);
        } else {
            for (whole, part) in endpoints.iter_mut().zip(&worker.endpoints) {
                whole.merge(part);
            }
        }
        if let Some(part) = &worker.open_loop {
            let whole = open_loop.get_or_insert_with(OpenLoop::default);
            whole.offered_rate_per_s += part.offered_rate_per_s;
            whole.due += part.due;
            whole.sent += part.sent;
            whole.never_sent += part.never_sent;
            let waited = part.waited_for_connection.unwrap_or(0);
            *whole.waited_for_connection.get_or_insert(0) += waited;
        }
        first_error = first_error.or(worker.first_error.as_ref());
    }
    let server = results.iter().find_map(|worker| worker.server.clone());
    let run = Run {
        repeat: 1,
        order: 1,
        started_unix_us,
        measured_ns,
        warmup_requests: results.iter().map(|worker| worker.warmup_requests).sum(),
        warmup_unanswered: results.iter().map(|worker| worker.warmup_unanswered).sum(),
        warmup_successes: Some(results.iter().map(|worker| worker.warmup_successes).sum()),
        finish,
        endpoints,
        think_ns: results.iter().map(|worker| worker.think_ns).sum(),
        open_loop,
        slices: seconds.finish(measured_ns),
        unanswered: results.iter().map(|worker| worker.unanswered).sum(),
        silent_tail_ns: silent_tail_ns(&results, end_ns),
        client: ClientUse {
            workers: results.iter().map(|worker| worker.usage.clone()).collect(),
            peak_rss_bytes: crate::machine::peak_rss_bytes(),
            null_server_rate_per_s: None,
        },
        server: None,
        noise: Noise::default(),
        first_error: None,
    };
    let first_error = first_error.map(Fault::to_string);
    Measured { run, server, first_error }
}
