//! Synthetic reports for the tests of the renderers: small, the same every time.

use crate::histogram::Histogram;
use crate::plan::{Arrivals, Load, Protocol, Settings, Stop};
use crate::result::{
    CheckId, ClientUse, Counters, EndpointResult, Environment, ErrorKind, FORMAT, Finding, Finish,
    Noise, OpenLoop, Outcome, Phases, Report, Run, ServerIdentity, ServerUse, Slice, Step,
    ThresholdOutcome, Verdict, WorkerUse,
};
use std::collections::BTreeMap;

const BEGAN_UNIX_US: u64 = 1_795_246_308_000_000;

/// `count` latencies around `typical_ns`: a body within 30% and a tail up to ten times it,
/// by a fixed rule rather than chance.
pub(crate) fn latencies(count: u64, typical_ns: u64) -> Histogram {
    let mut histogram = Histogram::new();
    for i in 0..count {
        // Spread evenly over 0…1 by the golden ratio's multiples, which never repeat.
        let even = (i as f64 * 0.618_033_988_749_895).fract();
        let body = 0.85 + 0.3 * even;
        let tail = if even > 0.95 { 1.0 + 9.0 * ((even - 0.95) / 0.05).powi(4) } else { 1.0 };
        histogram.record((typical_ns as f64 * body * tail) as u64);
    }
    histogram
}

/// An endpoint whose `count` requests all went well.
pub(crate) fn endpoint(name: &str, count: u64, typical_ns: u64) -> EndpointResult {
    let mut result = EndpointResult::new(name);
    result.counters = Counters {
        sent: count,
        successes: count,
        statuses: BTreeMap::from([(200, count)]),
        connections_opened: 16,
        bytes_sent: count * 64,
        bytes_received: count * 213,
        distinct_requests: Some(1),
        ..Counters::default()
    };
    result.service = latencies(count, typical_ns);
    result
}

/// Ten slices that share out what `endpoint` counted.
fn slices(result: &EndpointResult, seconds: u64) -> Vec<Slice> {
    let latency = result.latency();
    let each = result.counters.successes / seconds;
    let make = |second: u64| {
        let slow = if second == 7 { 6 } else { 1 };
        let typical = latency.quantile_ns(0.5).unwrap_or(1_000_000);
        let mut heat = vec![0u64; 24];
        for (top_ns, n) in latencies(each.min(1_000), typical).buckets() {
            let power = (64 - (top_ns * slow).leading_zeros() as usize).saturating_sub(11).min(23);
            heat[power] += n * each / each.clamp(1, 1_000);
        }
        Slice {
            start_ms: second * 1_000,
            length_ms: 1_000,
            successes: each - each / 20 * (second % 3) / 2,
            failures: 0,
            mean_ns: typical + typical / 10,
            p50_ns: typical + typical / 50 * (second % 4),
            p99_ns: typical * 3 * slow,
            max_ns: typical * 9 * slow,
            lateness_p99_ns: 9_000,
            heat,
        }
    };
    (0..seconds).map(make).collect()
}

/// One run of ten seconds over the endpoints given.
pub(crate) fn run(repeat: u32, endpoints: Vec<EndpointResult>) -> Run {
    let mut run = Run {
        repeat,
        order: repeat,
        started_unix_us: BEGAN_UNIX_US + u64::from(repeat) * 12_000_000,
        measured_ns: 10_000_000_000,
        warmup_requests: 2_000,
        warmup_unanswered: 0,
        warmup_successes: None,
        finish: Finish::Time,
        endpoints,
        think_ns: 0,
        open_loop: None,
        slices: Vec::new(),
        unanswered: 0,
        silent_tail_ns: 0,
        client: ClientUse {
            workers: vec![WorkerUse {
                pinned_cpu: Some(1),
                wall_ns: 10_000_000_000,
                cpu_ns: 4_300_000_000,
                run_delay_ns: 20_000_000,
                longest_loop_ns: 300_000,
                spin: false,
            }],
            peak_rss_bytes: 12 << 20,
            null_server_rate_per_s: Some(95_000.0),
        },
        server: None,
        noise: Noise {
            calibration_before_ns: 1_000_000,
            calibration_after_ns: 1_004_000,
            ..Noise::default()
        },
        first_error: None,
    };
    run.slices = run.total().map(|total| slices(&total, 10)).unwrap_or_default();
    run
}

/// A step of so many connections in closed loop.
pub(crate) fn step(name: &str, connections: u32, runs: Vec<Run>) -> Step {
    let settings = Settings {
        url: "http://127.0.0.1:8080/health".into(),
        workload: "GET /health".into(),
        workload_hash: "00c0ffee00c0ffee".into(),
        load: Load::Closed { think_min_us: 0, think_max_us: 0 },
        connections,
        streams: 1,
        workers: 1,
        protocol: Protocol::Http1,
        keep_alive: true,
        stop: Stop { requests: None, duration_ms: Some(10_000) },
        warmup_ms: 2_000,
        timeout_ms: 5_000,
        seed: 1,
        phases: false,
        spin: false,
    };
    Step { name: name.into(), settings, runs }
}

/// A report of these steps in which no check objected.
pub(crate) fn report(title: &str, steps: Vec<Step>) -> Report {
    Report {
        format: FORMAT.into(),
        tool: "wellspring 0.1.0".into(),
        title: title.into(),
        started_unix_us: BEGAN_UNIX_US,
        command: ["wellspring", "bench", "http://127.0.0.1:8080/health", "-c", "16"]
            .map(str::to_owned)
            .to_vec(),
        environment: Environment {
            cpu_model: Some("Example CPU @ 2.60GHz".into()),
            cpus: Some(2),
            allowed_cpus: vec![0, 1],
            governor: Some("performance".into()),
            kernel: Some("Linux 6.18.5".into()),
            memory_bytes: Some(8 << 30),
            client_version: "0.1.0".into(),
            git_revision: Some("2a9d87d (modified)".into()),
            target: "127.0.0.1:8080".into(),
            target_is_local: Some(true),
            server: ServerIdentity {
                header: Some("example/1.0".into()),
                protocol: Some("HTTP/1.1".into()),
                ..ServerIdentity::default()
            },
            notes: vec![("disk".into(), "none used".into())],
            ..Environment::default()
        },
        steps,
        findings: vec![finding(1, None, Outcome::Passed, "U = 0.999, within 0.95 to 1.005.")],
        thresholds: Vec::new(),
        verdict: Some(Verdict::Trusted),
        search: None,
    }
}

/// What one check says.
pub(crate) fn finding(check: u8, step: Option<&str>, outcome: Outcome, sentence: &str) -> Finding {
    Finding {
        check: CheckId(check),
        step: step.map(str::to_owned),
        outcome,
        sentence: sentence.to_owned(),
    }
}

/// One step, one run, one endpoint, closed loop, nothing wrong.
pub(crate) fn closed() -> Report {
    let run = run(1, vec![endpoint("GET /health", 20_000, 1_200_000)]);
    report("http://127.0.0.1:8080/health", vec![step("c=16", 16, vec![run])])
}

/// One step in open loop with its three distributions, phases and a note.
pub(crate) fn open() -> Report {
    let mut result = endpoint("GET /health", 10_000, 800_000);
    result.lateness = Some(latencies(10_000, 4_000));
    result.response = Some(latencies(10_000, 804_000));
    result.phases = Some(Phases {
        connect: latencies(16, 90_000),
        write: latencies(10_000, 5_000),
        first_byte: latencies(10_000, 760_000),
        last_byte: latencies(10_000, 20_000),
        ..Phases::default()
    });
    let mut run = run(1, vec![result]);
    run.open_loop = Some(OpenLoop {
        offered_rate_per_s: 1_000.0,
        due: 10_003,
        sent: 10_000,
        never_sent: 3,
        waited_for_connection: None,
    });
    let server = ServerUse {
        cpu_ns: Some(4_200_000_000),
        rss_bytes: Some(21 << 20),
        counted_requests: Some(10_000),
        counted_by: Some("http_requests_total".into()),
    };
    run.server = Some(server);
    let mut step = step("1000/s", 64, vec![run]);
    step.settings.load = Load::Open { rate_per_s: 1_000.0, arrivals: Arrivals::Poisson };
    step.settings.phases = true;
    let mut report = report("Health at 1000/s", vec![step]);
    report.findings.push(finding(
        16,
        None,
        Outcome::Note,
        "Client and server share this machine, so they compete for its processors.",
    ));
    report.thresholds = vec![ThresholdOutcome {
        expression: "p99>5ms".into(),
        step: "1000/s".into(),
        measured: Some("2.70 ms".into()),
        failed: false,
    }];
    report
}

/// One step with every kind of trouble.
pub(crate) fn failing() -> Report {
    let mut result = endpoint("GET /health", 900, 1_500_000);
    result.counters.sent = 1_000;
    result.counters.statuses = BTreeMap::from([(200, 910), (404, 5), (503, 30)]);
    result.counters.failed_checks = BTreeMap::from([("body has \"ok\"".to_owned(), 10)]);
    result.counters.errors =
        BTreeMap::from([(ErrorKind::Timeout, 40), (ErrorKind::Connect, 8), (ErrorKind::Reset, 5)]);
    result.failed_service = latencies(45, 300_000);
    let mut run = run(1, vec![result]);
    run.unanswered = 2;
    run.finish = Finish::Interrupted;
    let mut report = report("http://127.0.0.1:8080/health", vec![step("c=16", 16, vec![run])]);
    report.findings = vec![
        finding(
            5,
            Some("c=16"),
            Outcome::Care,
            "10% failed; with 95% confidence between 8.29% and 12.0%.",
        ),
        finding(
            10,
            None,
            Outcome::NotChecked,
            "One run cannot show how much runs differ; use --repeat 5.",
        ),
        finding(17, Some("c=16"), Outcome::Stop, "2 requests had no answer when the run ended."),
    ];
    report.thresholds = vec![
        ThresholdOutcome {
            expression: "p50>1ms".into(),
            step: "c=16".into(),
            measured: Some("1.50 ms".into()),
            failed: true,
        },
        ThresholdOutcome {
            expression: "p99.9>5ms".into(),
            step: "c=16".into(),
            measured: None,
            failed: true,
        },
    ];
    report.verdict = Some(Verdict::NotMeasurable(vec![
        "2 requests had no answer when the run ended (C17)".into(),
    ]));
    report
}

/// Four rungs of a ladder.
pub(crate) fn ladder() -> Report {
    let rung = |(connections, count, typical_ns): (u32, u64, u64)| {
        let mut endpoint = endpoint("GET /health", count, typical_ns);
        if connections == 16 {
            endpoint.counters.errors = BTreeMap::from([(ErrorKind::Timeout, 12)]);
            endpoint.counters.sent += 12;
        }
        step(&format!("c={connections}"), connections, vec![run(1, vec![endpoint])])
    };
    let rungs =
        [(1, 4_000, 250_000), (4, 12_000, 330_000), (16, 16_000, 990_000), (64, 15_000, 4_200_000)];
    let mut report = report("build A", rungs.map(rung).to_vec());
    report.findings.push(finding(
        9,
        Some("c=64"),
        Outcome::Care,
        "The rate fell by 12% from the first to the last third of the run.",
    ));
    report.verdict = Some(Verdict::UseWithCare(vec!["the rate fell during c=64 (C9)".into()]));
    report
}

/// One step repeated five times with rates that differ.
pub(crate) fn repeated() -> Report {
    let one = |(repeat, count): (u32, u64)| {
        run(repeat, vec![endpoint("GET /health", count, 16_000_000_000_000 / (count * 1_600))])
    };
    let runs = [(1, 10_000), (2, 10_400), (3, 9_700), (4, 12_000), (5, 10_100)].map(one).to_vec();
    report("five times", vec![step("c=16", 16, runs)])
}

/// One step with a write and a read endpoint.
pub(crate) fn two_endpoints() -> Report {
    let mut write = endpoint("POST /events", 4_000, 2_400_000);
    write.counters.statuses = BTreeMap::from([(201, 4_000), (500, 3)]);
    write.counters.sent += 3;
    let read = endpoint("GET /events", 12_000, 400_000);
    let mut report =
        report("write and read", vec![step("c=16", 16, vec![run(1, vec![write, read])])]);
    report.steps[0].settings.workload = "write-read".into();
    report.steps[0].settings.workload_hash = "00facade00facade".into();
    report
}

/// Names chosen to break out of whatever they are put into.
pub(crate) fn hostile() -> Report {
    let name = "GET /?a=\"1\"&b=<script>alert(1)</script>|x,y\u{1b}[2J\n\\";
    let run = run(1, vec![endpoint(name, 2_000, 1_000_000), endpoint("'quoted'", 2_000, 900_000)]);
    let mut report =
        report("</title><script>alert(2)</script>", vec![step("s\"<1>\n", 2, vec![run])]);
    report.environment.server.header = Some("<b>x</b>\u{1b}[31m".into());
    report.environment.notes = vec![("<i>".into(), "-->".into())];
    report.verdict = Some(Verdict::UseWithCare(vec!["<img src=x onerror=alert(3)>".into()]));
    report.findings = vec![finding(3, None, Outcome::Care, "<svg/onload=alert(4)>")];
    report
}

/// Compares each text with its file under `golden/`. Where one differs the new text
/// is left among the system's temporary files for a person to look at: nothing here
/// ever writes a golden file.
pub(crate) fn assert_golden(texts: &[(&str, String)]) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/golden");
    let kept = std::env::temp_dir().join("wellspring-golden");
    let mut differing = Vec::new();
    for (name, text) in texts {
        let expected = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        if expected == *text {
            continue;
        }
        std::fs::create_dir_all(&kept).expect("a temporary folder");
        std::fs::write(kept.join(name), text).expect("a temporary file");
        let line = expected.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
        let (old, new) = (expected.lines().nth(line), text.lines().nth(line));
        differing.push(format!("{name}, line {}: golden {old:?}, now {new:?}", line + 1));
    }
    let kept = kept.display();
    assert!(differing.is_empty(), "the new texts are in {kept}:\n{}", differing.join("\n"));
}
