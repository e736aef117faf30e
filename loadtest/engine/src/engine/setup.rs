//! What the workers of a run share: everything that does not change, and the
//! few words that do.

use super::fault::Fault;
use super::pace::Pace;
use super::slice::Gathered;
use super::tally::{Tally, Window};
use super::tls::{Tls, TlsSettings};
use super::wire::{Http1, Http2, Wire};
use crate::clock::Clock;
use crate::invalid::Invalid;
use crate::plan::{Load, Plan, Protocol};
use crate::result::{EndpointResult, OpenLoop, WorkerUse};
use crate::target::Target;
use crate::workload::{Needs, Source};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What does not change during a run.
pub(super) struct Setup {
    pub(super) clock: Clock,
    pub(super) target: Target,
    pub(super) authority: String,
    pub(super) scheme: &'static str,
    pub(super) source: Arc<dyn Source>,
    pub(super) names: Vec<String>,
    pub(super) needs: Vec<Needs>,
    pub(super) load: Load,
    pub(super) connections: u32,
    pub(super) streams: u32,
    pub(super) workers: u32,
    pub(super) keep_alive: bool,
    pub(super) seed: u64,
    pub(super) phases: bool,
    pub(super) spin: bool,
    pub(super) warmup_ns: u64,
    pub(super) duration_ns: Option<u64>,
    pub(super) timeout_ns: u64,
    pub(super) connect_timeout_ns: u64,
    protocol: Protocol,
    tls: Option<TlsSettings>,
    cpus: Vec<u32>,
}

impl Deref for Setup {
    type Target = Target;

    fn deref(&self) -> &Target {
        &self.target
    }
}

/// One worker's share of the connections.
pub(super) struct Share {
    pub(super) connections: u32,
    first: u32,
}

impl Setup {
    /// # Errors
    /// A sentence for the user, if TLS cannot be spoken with the target.
    pub(super) fn new(plan: &Plan, clock: Clock) -> Result<Self, Invalid> {
        let settings = &plan.settings;
        let tls = if plan.target.tls { Some(TlsSettings::new(plan)?) } else { None };
        let endpoints = plan.source.endpoints();
        Ok(Setup {
            clock,
            authority: plan.target.authority(),
            scheme: if plan.target.tls { "https" } else { "http" },
            target: plan.target.clone(),
            source: Arc::clone(&plan.source),
            names: endpoints.iter().map(|endpoint| endpoint.name.clone()).collect(),
            needs: endpoints.iter().map(|endpoint| endpoint.needs).collect(),
            load: settings.load,
            connections: settings.connections,
            streams: settings.streams,
            workers: settings.workers,
            keep_alive: settings.keep_alive,
            seed: settings.seed,
            phases: settings.phases,
            spin: settings.spin,
            warmup_ns: settings.warmup_ms * 1_000_000,
            duration_ns: settings.stop.duration_ms.map(|ms| ms * 1_000_000),
            timeout_ns: settings.timeout_ms * 1_000_000,
            connect_timeout_ns: (settings.timeout_ms * 1_000_000).min(5_000_000_000),
            protocol: settings.protocol,
            tls,
            cpus: if plan.pin { crate::machine::cpus_for(settings.workers) } else { Vec::new() },
        })
    }

    pub(super) fn share_of(&self, worker: u32) -> Share {
        let (each, more) = (self.connections / self.workers, self.connections % self.workers);
        Share {
            connections: each + u32::from(worker < more),
            first: each * worker + worker.min(more),
        }
    }

    /// The number, among all users, of the first place of a worker.
    pub(super) fn first_place_of(&self, worker: u32) -> u32 {
        self.share_of(worker).first * self.streams
    }

    pub(super) fn cpu_of(&self, worker: u32) -> Option<u32> {
        self.cpus.get(worker as usize).copied()
    }

    pub(super) fn window(&self, start_ns: u64) -> Window {
        let start_ns = start_ns + self.warmup_ns;
        let end_ns = self.duration_ns.map_or(u64::MAX, |duration_ns| start_ns + duration_ns);
        Window { start_ns, end_ns }
    }

    pub(super) fn pace(&self, worker: u32, start_ns: u64) -> Option<Pace> {
        match self.load {
            Load::Closed { .. } => None,
            Load::Open { rate_per_s, arrivals } => {
                let share = (worker, self.workers);
                Some(Pace::new(rate_per_s, arrivals, self.seed, share, start_ns))
            }
        }
    }

    /// The protocol of a fresh connection.
    pub(super) fn wire(&self) -> Wire {
        match self.protocol {
            Protocol::Http1 => Wire::Http1(Http1::new(self.phases)),
            Protocol::Http2 => Wire::Http2(Box::new(Http2::new(self.streams, self.phases))),
        }
    }

    /// TLS of a fresh connection, if there is any.
    pub(super) fn begin_tls(&self) -> Option<Box<Tls>> {
        self.tls.as_ref().map(TlsSettings::begin)
    }
}

/// What one worker has published of its progress, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Published {
    pub(super) successes: AtomicU64,
    pub(super) failures: AtomicU64,
}

/// The words that change during a run.
pub(super) struct Control {
    stop: Arc<AtomicBool>,
    budget: AtomicU64,
    /// Whether the number of requests is limited.
    pub(super) limited: bool,
    requests: Option<u64>,
    block: u64,
    pub(super) published: Vec<Published>,
}

impl Control {
    pub(super) fn new(stop: Arc<AtomicBool>, requests: Option<u64>, workers: u32) -> Self {
        let budget = requests.unwrap_or(0);
        Control {
            stop,
            limited: requests.is_some(),
            requests,
            // Small enough that workers end together, large enough that they seldom meet here.
            block: (budget / (u64::from(workers) * 64)).clamp(1, 1024),
            budget: AtomicU64::new(budget),
            published: (0..workers).map(|_| Published::default()).collect(),
        }
    }

    /// The limit on the number of requests.
    pub(super) fn requests(&self) -> Option<u64> {
        self.requests
    }

    pub(super) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes a block of requests that may be sent; 0 when none are left.
    pub(super) fn take_budget(&self) -> u64 {
        let mut left = self.budget.load(Ordering::Relaxed);
        loop {
            let take = left.min(self.block);
            match self.budget.compare_exchange_weak(
                left,
                left - take,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return take,
                Err(now) => left = now,
            }
        }
    }

    pub(super) fn publish(&self, worker: u32, tally: &Tally) {
        let published = &self.published[worker as usize];
        let successes: u64 = tally.endpoints.iter().map(|e| e.counters.successes).sum();
        let failed: u64 = tally.endpoints.iter().map(|e| e.failed_service.count()).sum();
        let errors: u64 = tally.endpoints.iter().flat_map(|e| e.counters.errors.values()).sum();
        published.successes.store(successes, Ordering::Relaxed);
        published.failures.store(failed + errors, Ordering::Relaxed);
    }
}

/// What ends a run before its time or count does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The user wants no more.
    Interrupted,
    /// Only a count would end it, and no connection could be opened for the time limit of a
    /// request.
    Unreachable,
}

/// What one worker measured.
pub(super) struct WorkerResult {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) warmup_requests: u64,
    pub(super) warmup_successes: u64,
    pub(super) warmup_unanswered: u64,
    pub(super) think_ns: u64,
    pub(super) open_loop: Option<OpenLoop>,
    pub(super) unanswered: u64,
    pub(super) last_answer_ns: u64,
    /// Whether, at the end, requests were waiting or had been lost since the last answer.
    pub(super) waiting: bool,
    pub(super) server: Option<String>,
    pub(super) first_error: Option<Fault>,
    pub(super) usage: WorkerUse,
    /// It ended because the number of requests was reached.
    pub(super) exhausted: bool,
    /// What ended it before it would have ended, if anything did.
    pub(super) cut: Option<Cut>,
    pub(super) endpoints: Vec<EndpointResult>,
}

/// Sent by a worker when its connections are open, or could not be.
pub(super) struct Ready {
    pub(super) open: u32,
    pub(super) error: Option<Fault>,
}

/// What the run's thread hears from its workers.
pub(super) type Slices = std::sync::mpsc::Receiver<Gathered>;
