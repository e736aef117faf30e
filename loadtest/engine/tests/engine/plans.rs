//! Short runs, and what must hold for every one of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wellspring_load::engine::{Measured, RunError, Target, Unobserved, run};
use wellspring_load::plan::{Load, Plan, Protocol, Settings, Stop, TlsTerms};
use wellspring_load::result::EndpointResult;
use wellspring_load::scenario::{FixedSource, Statuses};
use wellspring_load::workload::{OwnedRequest, Source};

/// `GET /`, ready to be changed: one connection with one stream, a fifth of a second.
pub(crate) fn plan(url: &str) -> Plan {
    let request = OwnedRequest { method: "GET".into(), path: "/".into(), ..Default::default() };
    with_source(url, Arc::new(FixedSource::new(request, Statuses::default()).unwrap()))
}

/// The same with another workload.
pub(crate) fn with_source(url: &str, source: Arc<dyn Source>) -> Plan {
    let mut target = Target::parse(url).unwrap();
    target.resolve().unwrap();
    let settings = Settings {
        url: target.url(),
        workload: source.name(),
        workload_hash: String::new(),
        load: Load::Closed { think_min_us: 0, think_max_us: 0 },
        connections: 1,
        streams: 1,
        workers: 1,
        protocol: Protocol::Http2,
        keep_alive: true,
        stop: Stop { requests: None, duration_ms: Some(200) },
        warmup_ms: 0,
        timeout_ms: 2_000,
        seed: 1,
        phases: false,
        spin: false,
    };
    Plan { settings, target, source, pin: false, tls: TlsTerms::default() }
}

/// In clear to an address.
pub(crate) fn to(address: SocketAddr) -> Plan {
    plan(&format!("http://{address}/"))
}

pub(crate) fn try_run(plan: &Plan) -> Result<Measured, RunError> {
    run(plan, &Arc::new(AtomicBool::new(false)), &mut Unobserved)
}

/// Runs and balances the books: every request sent has exactly one end.
pub(crate) fn measured(plan: &Plan) -> (Measured, EndpointResult) {
    let measured = try_run(plan).unwrap();
    let total = measured.run.total().unwrap();
    let counters = &total.counters;
    let answered: u64 = counters.statuses.values().sum();
    let errors: u64 = counters.errors.values().sum();
    assert_eq!(counters.sent, answered + errors + measured.run.unanswered, "{counters:?}");
    assert_eq!(total.service.count(), counters.successes);
    (measured, total)
}
