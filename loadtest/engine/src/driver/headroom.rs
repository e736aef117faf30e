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

/// How long it is measured.
const DURATION_MS: u64 = 250;

/// Requests a second with the plan's connections, streams and workers in closed
/// loop; `None` if it cannot be measured (no port).
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
    null.settings.warmup_ms = 50;
    null.settings.keep_alive = true;
    null.settings.spin = false;
    let measured = run(&null, stop, &mut Unobserved).ok()?;
    Some(measured.run.throughput_per_s())
}
