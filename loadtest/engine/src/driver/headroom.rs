//! What this client reaches against a server that does nothing (check C7): the
//! measure of how much of a result is the client's own limit.

use crate::engine::{Unobserved, run};
use crate::machine::allowed_cpus;
use crate::null_server::NullServer;
use crate::plan::{Load, Plan, Stop};
use crate::scenario::{FixedSource, Statuses};
use crate::target::Target;
use crate::workload::OwnedRequest;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How long one measurement takes, and the load before it.
const DURATION_MS: u64 = 400;
const WARMUP_MS: u64 = 100;
/// How often it is measured: other work on the machine can only make a rate too low, so the highest
/// is the one that counts.
const MEASUREMENTS: usize = 3;
/// Fewer requests than this in one measurement say nothing.
const FEWEST_REQUESTS: u64 = 100;

/// Requests a second with the plan's connections, streams and workers in closed loop: the highest
/// of several measurements. `None` if it cannot be measured: no port, or a machine so busy that
/// hardly a request was answered.
pub(super) fn null_server_rate_per_s(plan: &Plan, stop: &Arc<AtomicBool>) -> Option<f64> {
    let server = NullServer::start(allowed_cpus().first().copied()).ok()?;
    let mut target = Target::parse(&format!("http://{}/", server.address())).ok()?;
    target.resolve().ok()?;
    let request =
        OwnedRequest { method: "GET".into(), path: "/".into(), ..OwnedRequest::default() };
    let source = Arc::new(FixedSource::new(request, Statuses::default()).ok()?);
    let mut null = Plan { target, source, ..plan.clone() };
    null.settings.load = Load::Closed { think_min_us: 0, think_max_us: 0 };
    null.settings.stop = Stop { requests: None, duration_ms: Some(DURATION_MS) };
    null.settings.warmup_ms = WARMUP_MS;
    null.settings.keep_alive = true;
    null.settings.spin = false;
    let rates = (0..MEASUREMENTS).filter_map(|_| {
        let measured = run(&null, stop, &mut Unobserved).ok()?.run;
        let answered = measured.total()?.counters.completed?;
        (answered >= FEWEST_REQUESTS).then(|| measured.throughput_per_s())
    });
    rates.max_by(f64::total_cmp)
}
