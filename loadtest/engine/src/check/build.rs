//! Synthetic reports for the tests of the checks: sound by default, spoiled by each test in its own
//! way.

use crate::histogram::Histogram;
use crate::plan::{Arrivals, Load, Protocol, Settings, Stop};
use crate::result::{
    ClientUse, Counters, EndpointResult, Environment, FORMAT, Finish, Noise, OpenLoop, Report, Run,
    Slice, Step, WorkerUse,
};
use std::collections::BTreeMap;

/// Length of every run built here.
pub(crate) const RUN_NS: u64 = 10_000_000_000;

/// Makes a step of one or more runs.
#[derive(Clone)]
pub(crate) struct Builder {
    users: u32,
    rate_per_s: Option<f64>,
    stretch: f64,
    seconds: u64,
    repeats: Vec<f64>,
}

/// A closed loop of 10 s: each user busy 99% of the time with answers of 0.6 to about 3 ms, 1 ms
/// in the mean.
pub(crate) fn closed(users: u32) -> Builder {
    Builder { users, rate_per_s: None, stretch: 1.0, seconds: 10, repeats: vec![1.0] }
}

/// An open loop of 10 s over 100 connections with the same service times, sent 10 µs late.
pub(crate) fn open(rate_per_s: f64) -> Builder {
    Builder { rate_per_s: Some(rate_per_s), ..closed(100) }
}

impl Builder {
    /// Multiplies all latencies, and nothing else.
    pub(crate) fn stretched(mut self, by: f64) -> Self {
        self.stretch = by;
        self
    }

    /// One run for each factor, by which its throughput is multiplied and its latencies divided.
    pub(crate) fn repeats(mut self, factors: &[f64]) -> Self {
        self.repeats = factors.to_vec();
        self
    }

    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds;
        self
    }

    pub(crate) fn step(&self) -> Step {
        let name = match self.rate_per_s {
            Some(rate) => format!("{rate}/s"),
            None => format!("c={}", self.users),
        };
        let runs = self.repeats.iter().enumerate().map(|(at, factor)| self.run(at, *factor));
        Step { name, settings: self.settings(), runs: runs.collect() }
    }

    pub(crate) fn report(&self) -> Report {
        report(vec![self.step()])
    }

    fn settings(&self) -> Settings {
        let load = match self.rate_per_s {
            Some(rate_per_s) => Load::Open { rate_per_s, arrivals: Arrivals::Constant },
            None => Load::Closed { think_min_us: 0, think_max_us: 0 },
        };
        Settings {
            url: "http://192.0.2.7:8080/health".into(),
            workload: "GET /health".into(),
            workload_hash: "00c0ffee".into(),
            load,
            connections: self.users,
            streams: 1,
            workers: 1,
            protocol: Protocol::Http1,
            keep_alive: true,
            stop: Stop { requests: None, duration_ms: Some(self.seconds * 1_000) },
            warmup_ms: 1_000,
            timeout_ms: 30_000,
            seed: 1,
            phases: false,
            spin: false,
        }
    }

    fn run(&self, at: usize, factor: f64) -> Run {
        let count = match self.rate_per_s {
            Some(rate) => (rate * self.seconds as f64) as u64,
            None => (f64::from(self.users) * 990.0 * self.seconds as f64 * factor) as u64,
        };
        let mut endpoint = EndpointResult::new("GET /health");
        endpoint.service = spread(count, self.stretch / factor);
        endpoint.counters = Counters {
            sent: count,
            successes: count,
            statuses: BTreeMap::from([(200, count)]),
            connections_opened: u64::from(self.users),
            distinct_requests: Some(count),
            cache_hits: Some(0),
            ..Counters::default()
        };
        let open_loop = self.rate_per_s.map(|rate| OpenLoop {
            offered_rate_per_s: rate,
            due: count,
            sent: count,
            never_sent: 0,
            waited_for_connection: None,
        });
        if open_loop.is_some() {
            let mut lateness = Histogram::new();
            lateness.record_n(10_000, count);
            endpoint.lateness = Some(lateness);
            endpoint.response = Some(endpoint.service.clone());
        }
        let wall_ns = self.seconds * 1_000_000_000;
        let worker = WorkerUse {
            pinned_cpu: Some(1),
            wall_ns,
            cpu_ns: wall_ns / 10,
            run_delay_ns: wall_ns / 1_000,
            longest_loop_ns: 200_000,
            spin: false,
        };
        Run {
            repeat: at as u32 + 1,
            order: at as u32 + 1,
            started_unix_us: 1_795_000_000_000_000 + at as u64 * 20_000_000,
            measured_ns: wall_ns,
            warmup_requests: 1_000,
            warmup_unanswered: 0,
            warmup_successes: Some(1_000),
            finish: Finish::Time,
            slices: (0..self.seconds).map(|second| slice(second, count / self.seconds)).collect(),
            endpoints: vec![endpoint],
            think_ns: 0,
            open_loop,
            unanswered: 0,
            silent_tail_ns: 2_000_000,
            client: ClientUse {
                workers: vec![worker],
                peak_rss_bytes: 20_000_000,
                null_server_rate_per_s: Some(count as f64 / self.seconds as f64 * 5.0),
            },
            server: None,
            noise: Noise {
                calibration_before_ns: 1_000_000,
                calibration_after_ns: 1_005_000,
                steal_share: 0.0,
                other_cpu_share: Some(0.01),
                cpu_pressure_share: Some(0.02),
                throttled_ns: None,
            },
            first_error: None,
        }
    }
}

/// A second with about `count` answers: a little up and down, without trend or step.
fn slice(second: u64, count: u64) -> Slice {
    let wobble = [0, 3, 1, 4, 2, 3, 0, 2, 4, 1][(second * 7 % 10) as usize];
    Slice {
        start_ms: second * 1_000,
        length_ms: 1_000,
        successes: count * (998 + wobble) / 1_000,
        mean_ns: 1_000_000 + wobble * 1_000,
        p50_ns: 900_000 + wobble * 1_000,
        p99_ns: 2_400_000,
        max_ns: 3_000_000,
        ..Slice::default()
    }
}

/// `count` answers: 0.6 ms and an exponential part of 0.4 ms in the mean, times `stretch`.
pub(crate) fn spread(count: u64, stretch: f64) -> Histogram {
    const LEVELS: u64 = 997;
    let mut histogram = Histogram::new();
    for level in 0..LEVELS {
        let times = count * (level + 1) / LEVELS - count * level / LEVELS;
        let q = (level as f64 + 0.5) / LEVELS as f64;
        let ms = 0.6 - 0.4 * (1.0 - q).ln();
        histogram.record_n((ms * 1e6 * stretch) as u64, times);
    }
    histogram
}

/// A report of these steps, measured over a network on a quiet machine.
pub(crate) fn report(steps: Vec<Step>) -> Report {
    Report {
        format: FORMAT.into(),
        tool: "wellspring 0.1.0".into(),
        title: "built for a test".into(),
        started_unix_us: 1_795_000_000_000_000,
        command: Vec::new(),
        environment: Environment {
            cpu_model: Some("a processor".into()),
            cpus: Some(2),
            allowed_cpus: vec![0, 1],
            governor: Some("performance".into()),
            kernel: Some("Linux 6.18".into()),
            memory_bytes: Some(8 << 30),
            client_version: "0.1.0".into(),
            target: "192.0.2.7:8080".into(),
            target_is_local: Some(false),
            ..Environment::default()
        },
        steps,
        findings: Vec::new(),
        thresholds: Vec::new(),
        verdict: None,
        search: None,
    }
}
