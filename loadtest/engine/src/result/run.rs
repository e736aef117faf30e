//! What one run of one step measured.

use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One uninterrupted measurement of one step. The run is the unit of every comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// 1 for the first repeat of its step.
    pub repeat: u32,
    /// Place in the order in which all runs of this report were made, from 1:
    /// it shows whether steps were interleaved.
    pub order: u32,
    /// When the measured part began, microseconds since 1970 UTC.
    pub started_unix_us: u64,
    /// Length of the measured part, warm-up and draining left out, in nanoseconds.
    pub measured_ns: u64,
    /// Requests sent during warm-up and answered; in no other figure but
    /// [`Counters::completed`], if the answer came after it.
    pub warmup_requests: u64,
    /// Of these, the successes; `None` if not known.
    #[serde(default)]
    pub warmup_successes: Option<u64>,
    /// Requests of the warm-up that got no answer at all.
    #[serde(default)]
    pub warmup_unanswered: u64,
    /// Why it ended.
    pub finish: Finish,
    /// Per endpoint, in the order of the workload.
    pub endpoints: Vec<EndpointResult>,
    /// Closed loop: total time users spent thinking between answers, in nanoseconds.
    pub think_ns: u64,
    /// Open loop only: what was offered and how much of it was sent in time.
    pub open_loop: Option<OpenLoop>,
    /// One slice a second, the last one perhaps shorter.
    pub slices: Vec<Slice>,
    /// Requests sent in the measured part and without an answer when draining ended:
    /// neither successes nor in any distribution.
    pub unanswered: u64,
    /// Time at the end of the measured part without any answer, if requests were waiting
    /// or had been lost meanwhile, in nanoseconds (check C17).
    pub silent_tail_ns: u64,
    /// What the client used of the machine.
    pub client: ClientUse,
    /// What the server used and counted, where it could be seen.
    pub server: Option<ServerUse>,
    /// What else the machine did meanwhile.
    pub noise: Noise,
    /// The first error on a connection in the system's words, e.g. `Connection refused (os error
    /// 111)`.
    #[serde(default)]
    pub first_error: Option<String>,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The duration asked for has passed.
    Time,
    /// The number of requests asked for has been sent.
    Count,
    /// The user interrupted it; what is reported was measured until then.
    Interrupted,
    /// It could not go on; the text says why.
    Aborted(String),
}

/// The figures of one endpoint, or of several merged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointResult {
    /// Name in reports, e.g. `GET /health` or a step's name in a scenario.
    pub name: String,
    /// What happened, counted.
    pub counters: Counters,
    /// Sent to last byte, of answers that count as success.
    pub service: Histogram,
    /// Sent to last byte, of answers fully read that count as failures (status or check).
    pub failed_service: Histogram,
    /// Open loop only: due to last byte, of successes.
    pub response: Option<Histogram>,
    /// Open loop only: due to sent, of everything sent. The client's fault, or no connection was
    /// free.
    pub lateness: Option<Histogram>,
    /// With `--phases` only.
    pub phases: Option<Phases>,
}

/// What happened to requests, counted. `sent = successes + failures by status or check + errors +
/// unanswered`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Requests wholly handed to the operating system, or that failed while being sent.
    pub sent: u64,
    /// Answers fully read that had the expected status and passed every check.
    pub successes: u64,
    /// Successes whose last byte came within the measured part, whether they were sent in
    /// it or in the warm-up: what throughput counts. Successes also hold those that were
    /// sent in time and came later. `None` if not known: then successes are taken.
    #[serde(default)]
    pub completed: Option<u64>,
    /// Answers fully read, by status, successes included.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// Answers with an expected status that failed a check on the body, by the check's text.
    #[serde(default)]
    pub failed_checks: BTreeMap<String, u64>,
    /// Requests that ended without an answer, by kind.
    #[serde(default)]
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Requests that the server did not take, because it had ended their connection: it said so
    /// (GOAWAY of HTTP/2), or its end came before they were written. Others were sent in their
    /// place; they are not among `sent`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unprocessed: u64,
    /// Of the errors: requests over a connection that had brought answers before, which the server
    /// ended before a byte of theirs. Nobody can know whether it took them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crossed: u64,
    /// Connections opened for these requests (in the first endpoint, when they are shared).
    pub connections_opened: u64,
    /// Bytes written, heads included.
    pub bytes_sent: u64,
    /// Bytes read, heads included.
    pub bytes_received: u64,
    /// How many different requests were sent, as far as the generator knows; `None` if unknown.
    pub distinct_requests: Option<u64>,
    /// Answers that said they came from a cache (`Age` above 0, `X-Cache: HIT`, status 304); `None`
    /// if heads were not looked at.
    pub cache_hits: Option<u64>,
}

/// Why a request ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection could be made: refused, unreachable, no address.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// No complete answer within the time limit.
    Timeout,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection before a complete answer.
    Closed,
    /// What came back was not valid HTTP, or not the protocol agreed on.
    Protocol,
    /// An answer larger than the limit.
    TooLarge,
    /// The request could not be made, e.g. a template had no value.
    Request,
}

impl ErrorKind {
    /// As written in reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            ErrorKind::Connect => "could not connect",
            ErrorKind::Tls => "TLS handshake failed",
            ErrorKind::Timeout => "timed out",
            ErrorKind::Reset => "connection reset by the server",
            ErrorKind::Closed => "connection closed before the answer was complete",
            ErrorKind::Protocol => "answer was not valid HTTP",
            ErrorKind::TooLarge => "answer larger than the limit",
            ErrorKind::Request => "request could not be made",
        }
    }
}

/// Where the time of a request goes. Each phase is a distribution of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Opening the TCP or Unix connection; once a connection.
    pub connect: Histogram,
    /// The TLS handshake; once a connection.
    pub tls: Histogram,
    /// First to last byte of the request handed to the system.
    pub write: Histogram,
    /// Request handed over to first byte of the answer.
    pub first_byte: Histogram,
    /// First to last byte of the answer.
    pub last_byte: Histogram,
}

/// Open loop: offered against achieved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// The rate asked for, requests a second.
    pub offered_rate_per_s: f64,
    /// Requests that were due in the measured part.
    pub due: u64,
    /// Of these, sent (late or not).
    pub sent: u64,
    /// Due but never sent: no connection became free before draining ended.
    pub never_sent: u64,
    /// Of those sent, how many found every connection taken when they were due; `None` in
    /// files of before this was counted. The others were late by the client's fault alone.
    #[serde(default)]
    pub waited_for_connection: Option<u64>,
}

/// One second of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Start, milliseconds from the beginning of the measured part.
    pub start_ms: u64,
    /// Length in milliseconds: 1000 but for the last.
    pub length_ms: u64,
    /// Answers that count as success, by the time of their last byte.
    pub successes: u64,
    /// Failures and errors.
    pub failures: u64,
    /// Mean of the latency (response in open loop, service in closed), in nanoseconds; 0 without
    /// successes.
    pub mean_ns: u64,
    /// Its median, to 3%.
    pub p50_ns: u64,
    /// Its 99th percentile, to 3%.
    pub p99_ns: u64,
    /// Its maximum, to 3%.
    pub max_ns: u64,
    /// Open loop: 99th percentile of the lateness, to 3%.
    pub lateness_p99_ns: u64,
    /// Counts of latencies by power of two: `heat[i]` from 2^(i+10) ns (the first from 0) to
    /// 2^(i+11) ns.
    #[serde(default)]
    pub heat: Vec<u64>,
}

/// What the client itself used; a saturated client invents latency (check C7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientUse {
    /// One entry a worker thread.
    pub workers: Vec<WorkerUse>,
    /// The largest resident memory of the process so far, in bytes.
    pub peak_rss_bytes: u64,
    /// Requests a second that this client reached with the same settings against
    /// a server built in that does nothing, just before the run; `None` if not tried.
    pub null_server_rate_per_s: Option<f64>,
}

/// What one worker thread used in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerUse {
    /// The processor it was bound to; `None` if it was free to move.
    pub pinned_cpu: Option<u32>,
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
    /// Processor time, in nanoseconds. With `--spin` it is all of the wall time by intent.
    pub cpu_ns: u64,
    /// Time it could have run but another thread had the processor, in nanoseconds (Linux
    /// `schedstat`).
    pub run_delay_ns: u64,
    /// Longest time between two looks at its sockets while it was not waiting, in nanoseconds.
    pub longest_loop_ns: u64,
    /// Whether it spins by intent.
    pub spin: bool,
}

/// What the server used and counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// With `--server-pid`: processor time, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// With `--server-pid`: resident memory at the end, in bytes.
    pub rss_bytes: Option<u64>,
    /// Its own count of the requests it handled meanwhile (check C18); `None` if not asked.
    pub counted_requests: Option<u64>,
    /// Where that count comes from, e.g. the metric's name.
    pub counted_by: Option<String>,
}

/// What the rest of the machine did during the run (check C8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// A fixed piece of work timed before the run, best of several, in nanoseconds.
    pub calibration_before_ns: u64,
    /// The same after the run.
    pub calibration_after_ns: u64,
    /// Share of processor time taken by the hypervisor, 0 to 1.
    pub steal_share: f64,
    /// Share of all processors' time used by processes other than client and server, 0 to 1;
    /// `None` if the server is here but its process is not known.
    pub other_cpu_share: Option<f64>,
    /// Share of time in which some task waited for a processor (Linux PSI), 0 to 1; `None` if not
    /// offered.
    pub cpu_pressure_share: Option<f64>,
    /// Time the cgroup was throttled, in nanoseconds; `None` without a limit.
    pub throttled_ns: Option<u64>,
}

impl Counters {
    /// Successes a second over a measured part of this length: those whose last byte came
    /// within it. 0 if it has no length.
    #[must_use]
    pub fn throughput_per_s(&self, measured_ns: u64) -> f64 {
        if measured_ns == 0 {
            return 0.0;
        }
        self.completed.unwrap_or(self.successes) as f64 * 1e9 / measured_ns as f64
    }

    /// Answers and errors that do not count as success, unanswered ones left out.
    #[must_use]
    pub fn failures(&self) -> u64 {
        let answered: u64 = self.statuses.values().sum();
        answered.saturating_sub(self.successes) + self.errors.values().sum::<u64>()
    }

    /// What was sent and neither answered nor ended in an error.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.sent.saturating_sub(self.successes + self.failures())
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Counters) {
        self.sent += other.sent;
        self.successes += other.successes;
        self.completed = sum(self.completed, other.completed);
        add(&mut self.statuses, &other.statuses);
        add(&mut self.failed_checks, &other.failed_checks);
        add(&mut self.errors, &other.errors);
        self.unprocessed += other.unprocessed;
        self.crossed += other.crossed;
        self.connections_opened += other.connections_opened;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.distinct_requests = sum(self.distinct_requests, other.distinct_requests);
        self.cache_hits = sum(self.cache_hits, other.cache_hits);
    }
}

// By reference, as serde calls it.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn add<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key.clone()).or_default() += count;
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    }
}

impl EndpointResult {
    /// An endpoint of which nothing has been measured yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        EndpointResult {
            name: name.to_owned(),
            counters: Counters::default(),
            service: Histogram::new(),
            failed_service: Histogram::new(),
            response: None,
            lateness: None,
            phases: None,
        }
    }

    /// The distribution a user means by "latency": response in open loop, service in closed.
    #[must_use]
    pub fn latency(&self) -> &Histogram {
        self.response.as_ref().unwrap_or(&self.service)
    }

    /// Adds what `other` measured; the name stays.
    pub fn merge(&mut self, other: &EndpointResult) {
        self.counters.merge(&other.counters);
        self.service.merge(&other.service);
        self.failed_service.merge(&other.failed_service);
        merge_option(&mut self.response, other.response.as_ref());
        merge_option(&mut self.lateness, other.lateness.as_ref());
        match (&mut self.phases, &other.phases) {
            (Some(there), Some(new)) => there.merge(new),
            (there @ None, Some(new)) => *there = Some(new.clone()),
            (_, None) => {}
        }
    }
}

fn merge_option(into: &mut Option<Histogram>, from: Option<&Histogram>) {
    match (into, from) {
        (Some(there), Some(new)) => there.merge(new),
        (there @ None, Some(new)) => *there = Some(new.clone()),
        (_, None) => {}
    }
}

impl Phases {
    /// Adds what `other` measured.
    pub fn merge(&mut self, other: &Phases) {
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.write.merge(&other.write);
        self.first_byte.merge(&other.first_byte);
        self.last_byte.merge(&other.last_byte);
    }
}

impl Run {
    /// Everything of all endpoints in one; `None` without any.
    #[must_use]
    pub fn total(&self) -> Option<EndpointResult> {
        let mut all = self.endpoints.iter();
        let mut total = all.next()?.clone();
        for endpoint in all {
            total.merge(endpoint);
        }
        "total".clone_into(&mut total.name);
        Some(total)
    }

    /// Whether it came to its end and measured something: only such runs are alike.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.measured_ns > 0 && matches!(self.finish, Finish::Time | Finish::Count)
    }

    /// Successes a second over the measured part; 0 if nothing was measured.
    #[must_use]
    pub fn throughput_per_s(&self) -> f64 {
        let each = self.endpoints.iter().map(|e| e.counters.throughput_per_s(self.measured_ns));
        each.sum()
    }

    /// Failures by status or check and errors, unanswered requests included.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.endpoints.iter().map(|e| e.counters.failures()).sum::<u64>() + self.unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_counts_and_keeps_what_only_one_side_knows() {
        let mut one = EndpointResult::new("a");
        one.counters = Counters { sent: 3, successes: 2, ..Counters::default() };
        one.counters.statuses = BTreeMap::from([(200, 2), (500, 1)]);
        let mut other = EndpointResult::new("b");
        other.counters = Counters { sent: 2, cache_hits: Some(1), ..Counters::default() };
        other.counters.errors = BTreeMap::from([(ErrorKind::Timeout, 1)]);
        other.response = Some(Histogram::new());
        one.merge(&other);
        assert_eq!(one.name, "a");
        assert_eq!(one.counters.sent, 5);
        assert_eq!(one.counters.failures(), 2);
        assert_eq!(one.counters.cache_hits, Some(1));
        assert!(one.response.is_some());
    }
}
