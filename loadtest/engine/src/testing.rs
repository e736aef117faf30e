//! Reports and requests for tests, here and in crates that build on this one.

use crate::plan::{Load, Protocol, Settings, Stop};
use crate::result::{
    ClientUse, EndpointResult, Environment, FORMAT, Finish, Noise, Report, Run, Step,
};
use crate::workload::{Answer, Head, Judgement, Next, Workload};
use std::borrow::Cow;

/// The settings of [`report`]'s step.
#[must_use]
pub fn settings() -> Settings {
    Settings {
        url: "http://127.0.0.1:8080/health".into(),
        workload: "GET /health".into(),
        workload_hash: "0123456789abcdef".into(),
        load: Load::Closed { think_min_us: 0, think_max_us: 0 },
        connections: 16,
        streams: 1,
        workers: 1,
        protocol: Protocol::Http1,
        keep_alive: true,
        stop: Stop { requests: None, duration_ms: Some(1_000) },
        warmup_ms: 0,
        timeout_ms: 5_000,
        seed: 1,
        phases: false,
        spin: false,
    }
}

/// A run of one second that began at `second` with `per_s` answers of about `mean_us`.
#[must_use]
pub fn run(second: u64, per_s: u64, mean_us: u64) -> Run {
    let mut endpoint = EndpointResult::new("GET /health");
    endpoint.counters.sent = per_s;
    endpoint.counters.successes = per_s;
    endpoint.counters.statuses.insert(200, per_s);
    for part in 0..20 {
        endpoint.service.record_n(mean_us * 1_000 * (90 + part) / 100, per_s / 20);
    }
    Run {
        repeat: 1,
        order: 1,
        started_unix_us: second * 1_000_000,
        measured_ns: 1_000_000_000,
        warmup_requests: 0,
        warmup_unanswered: 0,
        warmup_successes: None,
        finish: Finish::Time,
        endpoints: vec![endpoint],
        think_ns: 0,
        open_loop: None,
        slices: Vec::new(),
        unanswered: 0,
        silent_tail_ns: 0,
        client: ClientUse::default(),
        server: None,
        noise: Noise::default(),
        first_error: None,
    }
}

/// A report of one step.
#[must_use]
pub fn report(title: &str, runs: Vec<Run>) -> Report {
    Report {
        format: FORMAT.into(),
        tool: "wellspring 0.1.0".into(),
        title: title.into(),
        started_unix_us: runs.first().map_or(0, |run| run.started_unix_us),
        command: Vec::new(),
        environment: Environment::default(),
        steps: vec![Step { name: "c=16".into(), settings: settings(), runs }],
        findings: Vec::new(),
        thresholds: Vec::new(),
        verdict: None,
        search: None,
    }
}

/// 2026-11-21T01:30:56.517796090Z, the time of [`clock`].
pub const NOW_NS: u64 = 1_795_224_656_517_796_090;

/// A clock that stands still.
#[must_use]
pub fn clock() -> u64 {
    NOW_NS
}

/// A request as HTTP/1.1 would write it, without `Host` and `Content-Length`.
pub fn next(workload: &mut dyn Workload, user: u32) -> String {
    match workload.next(user) {
        Next::Send(request) => {
            let mut text = format!("{} {}\n", request.method, request.path);
            for (name, value) in request.headers {
                text.push_str(&format!("{name}: {value}\n"));
            }
            text.push_str(&format!("\n{}", String::from_utf8_lossy(request.body)));
            text
        }
        Next::Failed { endpoint } => format!("failed {endpoint}"),
        Next::Done => "done".into(),
    }
}

/// Answers the request under way.
pub fn answer(
    workload: &mut dyn Workload,
    user: u32,
    status: u16,
    headers: &[(&'static str, &'static str)],
    body: &str,
) -> Judgement {
    let head = headers.iter().map(|(n, v)| (Cow::Borrowed(*n), Cow::Borrowed(*v))).collect();
    workload.judge(
        user,
        &Answer {
            endpoint: 0,
            status,
            head: Head(head),
            body: body.as_bytes(),
            body_bytes: body.len() as u64,
        },
    )
}
