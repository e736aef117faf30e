//! The load tester as a library: `cargo run --release --example load_library -- URL [connections]
//! [seconds] [rate]`.
//!
//! By environment: `STREAMS=n` speaks HTTP/2 with so many streams on each connection (in clear or,
//! with `https`, over TLS), `INSECURE=1` accepts any certificate, `SPIN=1` spins instead of
//! sleeping.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wellspring_load::engine::{Target, Unobserved, run};
use wellspring_load::plan::{Arrivals, Load, Plan, Protocol, Settings, Stop, TlsTerms};
use wellspring_load::scenario::{FixedSource, Statuses};
use wellspring_load::workload::{OwnedRequest, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:4999/".to_owned());
    let connections = arguments.next().map_or(Ok(16), |n| n.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let rate: Option<f64> = arguments.next().map(|n| n.parse()).transpose()?;
    let streams: Option<u32> = std::env::var("STREAMS").ok().map(|n| n.parse()).transpose()?;
    let mut target = Target::parse(&url)?;
    target.resolve()?;
    let request =
        OwnedRequest { method: "GET".into(), path: target.path.clone(), ..OwnedRequest::default() };
    let source = Arc::new(FixedSource::new(request, Statuses::default())?);
    let settings = Settings {
        url: target.url(),
        workload: source.name(),
        workload_hash: String::new(),
        load: match rate {
            Some(rate_per_s) => Load::Open { rate_per_s, arrivals: Arrivals::Constant },
            None => Load::Closed { think_min_us: 0, think_max_us: 0 },
        },
        connections,
        streams: streams.unwrap_or(1),
        workers: 1,
        protocol: if streams.is_some() { Protocol::Http2 } else { Protocol::Http1 },
        keep_alive: true,
        stop: Stop { requests: None, duration_ms: Some(seconds * 1000) },
        warmup_ms: 0,
        timeout_ms: 10_000,
        seed: 1,
        phases: false,
        spin: std::env::var_os("SPIN").is_some(),
    };
    let tls = match std::env::var_os("INSECURE") {
        Some(_) => TlsTerms::accepting_any(),
        None => TlsTerms::default(),
    };
    let plan = Plan { settings, target, source, pin: true, tls };
    let measured = run(&plan, &Arc::new(AtomicBool::new(false)), &mut Unobserved)?;
    let total = measured.run.total().ok_or("nothing was asked")?;
    let figure = |q| total.latency().printable_quantile_ns(q).map(|ns| ns / 1000);
    println!(
        "{:.0}/s, p50 {:?} µs, p99 {:?} µs, failures {}, lateness p50 {:?} ns",
        measured.run.throughput_per_s(),
        figure(0.5),
        figure(0.99),
        measured.run.failures(),
        total.lateness.and_then(|lateness| lateness.quantile_ns(0.5)),
    );
    if let Some(error) = &measured.first_error {
        println!("first error: {error}");
    }
    println!("{:?}", measured.run.client);
    Ok(())
}
