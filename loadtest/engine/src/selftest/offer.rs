//! Offers a load to a server of known behaviour and collects what all three saw:
//! the engine, the stopwatch beside it, and the server.

use super::ledger::Trouble;
use super::server::{BoundAddress, Log, Script, Server};
use super::stopwatch::{Numbered, Sample};
use crate::clock::Clock;
use crate::engine::{Measured, Observer, Progress, run};
use crate::plan::{Arrivals, Load, Plan, Protocol, Settings, Stop, TlsTerms};
use crate::result::Run;
use crate::target::Target;
use crate::workload::Source;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The load of one run. What is not said is one worker, one connection, no warm-up.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub(super) load: Load,
    pub(super) connections: u32,
    pub(super) workers: u32,
    pub(super) requests: Option<u64>,
    pub(super) duration_ms: Option<u64>,
    pub(super) warmup_ms: u64,
    pub(super) timeout_ms: u64,
    pub(super) phases: bool,
    pub(super) spin: bool,
    /// The user's wish to stop comes so long after the beginning.
    pub(super) interrupt_after_ms: Option<u64>,
    /// How long the workload takes to judge an answer.
    pub(super) judging_ns: u64,
    pub(super) seed: u64,
    pub(super) on: ListenPlace,
}

/// What the server listens on.
#[derive(Clone, Debug)]
pub(super) enum ListenPlace {
    Ip(IpAddr),
    Path(PathBuf),
}

impl Offer {
    /// Users who ask, one after another, until `requests` were asked.
    pub(super) fn count(connections: u32, requests: u64) -> Self {
        Offer { requests: Some(requests), ..Offer::closed(connections) }
    }

    /// Users who ask, one after another, for so long.
    pub(super) fn time(connections: u32, duration_ms: u64) -> Self {
        Offer { duration_ms: Some(duration_ms), ..Offer::closed(connections) }
    }

    /// Requests at a constant rate for so long.
    pub(super) fn rate(rate_per_s: f64, connections: u32, duration_ms: u64) -> Self {
        let load = Load::Open { rate_per_s, arrivals: Arrivals::Constant };
        Offer { load, ..Offer::time(connections, duration_ms) }
    }

    fn closed(connections: u32) -> Self {
        Offer {
            load: Load::Closed { think_min_us: 0, think_max_us: 0 },
            connections,
            workers: 1,
            requests: None,
            duration_ms: None,
            warmup_ms: 0,
            timeout_ms: 10_000,
            phases: false,
            spin: false,
            interrupt_after_ms: None,
            judging_ns: 0,
            seed: 1,
            on: ListenPlace::Ip(Ipv4Addr::LOCALHOST.into()),
        }
    }

    pub(super) fn plan(&self, target: Target, source: Arc<dyn Source>) -> Plan {
        let settings = Settings {
            url: target.url(),
            workload: source.name(),
            workload_hash: String::new(),
            load: self.load,
            connections: self.connections,
            streams: 1,
            workers: self.workers,
            protocol: Protocol::Http1,
            keep_alive: true,
            stop: Stop { requests: self.requests, duration_ms: self.duration_ms },
            warmup_ms: self.warmup_ms,
            timeout_ms: self.timeout_ms,
            seed: self.seed,
            phases: self.phases,
            spin: self.spin,
        };
        Plan { settings, target, source, pin: false, tls: TlsTerms::default() }
    }

    /// Starts a server with this script, offers the load, stops the server.
    pub(super) fn to(&self, clock: Clock, script: Script) -> Result<Observations, Trouble> {
        let server = match &self.on {
            ListenPlace::Ip(ip) => Server::on(*ip, clock, script),
            ListenPlace::Path(path) => Server::on_path(path, clock, script),
        };
        let server = server.map_err(|error| Trouble::of("the server could not start", &error))?;
        let source = Arc::new(Numbered::new(clock, self.judging_ns));
        let plan = self.plan(target(server.at()), Arc::<Numbered>::clone(&source));
        let stop = Arc::new(AtomicBool::new(false));
        let begun_ns = clock.now_ns();
        let stop_ns = self.interrupt_after_ms.map(|ms| begun_ns + ms * 1_000_000);
        let mut observer = Interrupting { clock, stop: Arc::clone(&stop), stop_ns };
        let measured = run(&plan, &stop, &mut observer)
            .map_err(|error| Trouble::Broken(format!("the run could not be made: {error}")))?;
        let wall_ns = clock.now_ns() - begun_ns;
        let log = server.finish().map_err(|error| Trouble::of("the server failed", &error))?;
        drop(plan);
        let Measured { run, .. } = measured;
        let mut samples = source.samples();
        samples.sort_by_key(|sample| sample.asked_ns);
        Ok(Observations { offer: self.clone(), run, samples, log, wall_ns })
    }
}

fn target(at: &BoundAddress) -> Target {
    let (host, port, path, address) = match at {
        BoundAddress::Tcp(address) => {
            (address.ip().to_string(), address.port(), None, Some(*address))
        }
        BoundAddress::Unix(path) => ("localhost".to_owned(), 80, Some(path.clone()), None),
    };
    Target {
        tls: false,
        host,
        port,
        path: "/".into(),
        credentials: None,
        unix_socket: path,
        addresses: address.into_iter().collect(),
    }
}

/// What all three saw.
#[derive(Debug)]
pub(super) struct Observations {
    pub(super) offer: Offer,
    /// The engine.
    pub(super) run: Run,
    /// The stopwatch, in the order of asking.
    pub(super) samples: Vec<Sample>,
    /// The server.
    pub(super) log: Log,
    /// From before the connections were opened until the run was over.
    pub(super) wall_ns: u64,
}

/// A user who presses Ctrl-C.
struct Interrupting {
    clock: Clock,
    stop: Arc<AtomicBool>,
    stop_ns: Option<u64>,
}

impl Observer for Interrupting {
    fn progress(&mut self, _progress: &Progress<'_>) {
        if self.stop_ns.is_some_and(|stop_ns| self.clock.now_ns() >= stop_ns) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
