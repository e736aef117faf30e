//! The five forms as data.

use super::super::ab::AbCounts;
use super::super::markdown::{environment, thresholds};
use super::super::measured::{Column, FAILURES, MAX, Measured, RATE, card, figure, table, words};
use super::super::view::load;
use super::metric::METRICS;
use super::{Form, Input, MicroRow, Part, Section, builds, sweeps};
use crate::numbers::{
    NOT_AVAILABLE, QUANTILES, bytes, count, duration, elapsed, factor, optional_duration,
    optional_mean, quantile, quantile_name, rate, significant,
};
use crate::table::Table;

/// The five forms, by number.
pub(crate) const FORMS: [Form; 5] = [
    Form {
        number: 1,
        shows: "metrics, percentile spreads, and two concurrency levels compared",
        lacks: |_| None,
        sections: &[
            Section { heading: "", tables: of_each_step, note: "", missing: "" },
            Section {
                heading: "Comparison",
                tables: first_and_last,
                note: "Difference and ratio are of the second column against the first, from the raw values.",
                missing: "A comparison needs two steps: measure a ladder, or give two result files.",
            },
        ],
    },
    Form {
        number: 2,
        shows: "ladder by users, several builds side by side, the best of each row",
        lacks: |input| {
            (!input.reports.iter().any(|report| report.steps.len() > 1)).then_some(
                "a ladder: a result file with two steps or more (wellspring bench ladder … --json FILE)",
            )
        },
        sections: &[
            Section { heading: "", tables: builds::ladders, note: "", missing: "" },
            Section {
                heading: "Side by side",
                tables: builds::side_by_side,
                note: "",
                missing: "",
            },
            Section {
                heading: "Comparison",
                tables: builds::best,
                note: "The best build of each row, with its lead over the second best, from the raw values.",
                missing: "",
            },
        ],
    },
    Form {
        number: 3,
        shows: "writes and reads, scaling by connections, sweeps, run history",
        lacks: |_| None,
        sections: &[
            Section {
                heading: "Writes and reads",
                tables: sweeps::writes_and_reads,
                note: "Writes are POST, PUT, PATCH and DELETE, reads are GET, HEAD and OPTIONS.",
                missing: "",
            },
            Section {
                heading: "Throughput by connections",
                tables: sweeps::scaling,
                note: "Efficiency is the rate per connection against that of the first row: 100% is linear scaling.",
                missing: "Not shown: it needs steps in closed loop with different numbers of connections (wellspring bench ladder).",
            },
            Section {
                heading: "Change against the baseline",
                tables: sweeps::changes,
                note: "",
                missing: "Not shown: it needs two steps or more, of one result file or of several.",
            },
            Section {
                heading: "Run history",
                tables: sweeps::history,
                note: "",
                missing: "Not shown: it needs a step measured more than once (--repeat, or several result files of the same load).",
            },
        ],
    },
    Form {
        number: 4,
        shows: "an ab-style block for each endpoint",
        lacks: |_| None,
        sections: &[Section { heading: "", tables: blocks, note: "", missing: "" }],
    },
    Form {
        number: 5,
        shows: "environment, library micro-benchmarks, endpoints, ranking, library against HTTP",
        lacks: |input| {
            input.micro.is_empty().then_some(
                "library micro-benchmarks besides result files (wellspring bench import criterion|go-bench)",
            )
        },
        sections: &[
            Section { heading: "Environment", tables: environments, note: "", missing: "" },
            Section {
                heading: "Library",
                tables: |input| vec![Part::of(table(&LIBRARY, input.micro))],
                note: "",
                missing: "",
            },
            Section { heading: "HTTP endpoints", tables: endpoints, note: "", missing: "" },
            Section { heading: "Ranking", tables: rankings, note: "", missing: "" },
            Section {
                heading: "Library against HTTP",
                tables: pairs,
                note: "The ratio is of times, from the raw values: how many times as long HTTP takes.",
                missing: "",
            },
        ],
    },
];

/// Form 1, of a step.
const TOTALS: [Column<Measured>; 10] = [
    figure("requests sent", |row| count(row.result.counters.sent)),
    figure("successes", |row| count(row.result.counters.successes)),
    figure("failures", |row| count(row.failures)),
    figure("failures, share", |row| crate::numbers::share(row.failures, row.tried)),
    RATE,
    figure("runs", |row| count(row.runs)),
    figure("measured time", |row| elapsed(row.measured_ns)),
    figure("mean latency", |row| optional_mean(row.result.latency().mean_ns())),
    figure("bytes received", |row| bytes(row.result.counters.bytes_received as f64)),
    figure("bytes sent", |row| bytes(row.result.counters.bytes_sent as f64)),
];

/// A point of a distribution.
struct Quantile {
    name: String,
    ns: Option<u64>,
    text: String,
}

const SPREAD: [Column<Quantile>; 4] = [
    words("percentile", |row| row.name.clone()),
    figure("latency", |row| row.text.clone()),
    figure("above the one before", |row| {
        let before = row.all()[..row.rank() - 1].iter().rev().find_map(|earlier| earlier.ns);
        optional_duration(row.ns.zip(before).map(|(ns, before)| ns.saturating_sub(before)))
    }),
    figure("of the median", |row| {
        let median = row.all().iter().find(|point| point.name == "p50").and_then(|p50| p50.ns);
        let ratio = row.ns.zip(median).map(|(ns, median)| ns as f64 / median as f64);
        factor(ratio.unwrap_or(f64::NAN))
    }),
];

fn of_each_step(input: &Input<'_>) -> Vec<Part> {
    let parts = input.steps.iter().flat_map(|step| {
        let settings = &step.view.step.settings;
        let totals = Part {
            before: format!("{}: {}.", settings.workload, load(settings)),
            ..Part::of(card("metric", &TOTALS, &step.measured))
        };
        let spread = Part::of(table(&SPREAD, &quantiles(&step.measured)));
        [totals.headed(&step.measured.step), spread.small_headed("Percentiles")]
    });
    parts.collect()
}

fn quantiles(of: &Measured) -> Vec<Quantile> {
    let latency = of.result.latency();
    let extreme = |name: &str, ns| Quantile { name: name.into(), ns, text: optional_duration(ns) };
    let shown = QUANTILES.into_iter().filter(|q| *q < 0.9999 || latency.quantile_supported(*q));
    let between = shown.map(|q| Quantile {
        name: quantile_name(q),
        ns: latency.printable_quantile_ns(q),
        text: quantile(latency, q),
    });
    let mut all = vec![extreme("min", latency.min_ns())];
    all.extend(between.chain([extreme("max", latency.max_ns())]));
    all
}

fn first_and_last(input: &Input<'_>) -> Vec<Part> {
    let [first, .., last] = input.steps.as_slice() else { return Vec::new() };
    let (low, high) = (&first.measured, &last.measured);
    let mut table = Table::new(["metric", &low.step, &high.step, "difference", "ratio"]);
    for metric in METRICS {
        let (a, b) = ((metric.value)(low), (metric.value)(high));
        let (raw_a, raw_b) = (a.unwrap_or(f64::NAN), b.unwrap_or(f64::NAN));
        table.row([
            metric.name.to_owned(),
            metric.kind.write(a),
            metric.kind.write(b),
            metric.kind.difference(raw_b - raw_a),
            factor(raw_b / raw_a),
        ]);
    }
    vec![Part::of(table)]
}

/// Form 4, of an endpoint.
const BLOCK: [Column<Measured>; 23] = [
    figure("requests sent", |row| count(row.result.counters.sent)),
    figure("complete answers", |row| count(answers(row).complete)),
    figure("successes", |row| count(row.result.counters.successes)),
    figure("errors without an answer", |row| count(sum(row.result.counters.errors.values()))),
    figure("answers that failed a check", |row| {
        count(sum(row.result.counters.failed_checks.values()))
    }),
    figure("answers other than 2xx", |row| count(answers(row).non_2xx)),
    figure("answers 5xx", |row| {
        let statuses = row.result.counters.statuses.iter();
        count(sum(statuses.filter(|(status, _)| **status >= 500).map(|(_, n)| n)))
    }),
    figure("times are", |row| {
        let response = row.result.response.is_some();
        if response { "response, from due" } else { "service, from sent" }.to_owned()
    }),
    figure("total time", |row| elapsed(row.measured_ns)),
    figure("answers a second", |row| {
        rate(answers(row).complete as f64 / (row.measured_ns as f64 / 1e9))
    }),
    figure("mean time", |row| optional_mean(answers(row).times.mean_ns())),
    // Without answers this divides by zero, which is written n/a.
    figure("mean time across all in flight", |row| {
        duration(row.measured_ns as f64 / answers(row).complete as f64)
    }),
    figure("in flight at most", |row| count(row.in_flight)),
    // Little's law: what was in flight on average is the time spent in flight over the time there
    // was.
    figure("in flight on average", |row| {
        let busy_ns = row.result.service.sum_ns() + row.result.failed_service.sum_ns();
        significant(busy_ns as f64 / row.measured_ns as f64)
    }),
    figure("bytes received", |row| bytes(row.result.counters.bytes_received as f64)),
    figure("50% within", |row| quantile(&answers(row).times, 0.5)),
    figure("66% within", |row| quantile(&answers(row).times, 0.66)),
    figure("75% within", |row| quantile(&answers(row).times, 0.75)),
    figure("80% within", |row| quantile(&answers(row).times, 0.8)),
    figure("90% within", |row| quantile(&answers(row).times, 0.9)),
    figure("95% within", |row| quantile(&answers(row).times, 0.95)),
    figure("99% within", |row| quantile(&answers(row).times, 0.99)),
    figure("100% within", |row| optional_duration(answers(row).times.max_ns())),
];

fn answers(of: &Measured) -> AbCounts {
    AbCounts::of(&of.result, 0)
}

fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.sum()
}

fn blocks(input: &Input<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    for step in &input.steps {
        for endpoint in step.endpoints() {
            let heading = format!("{} ({})", endpoint.result.name, endpoint.step);
            parts.push(Part::of(card("", &BLOCK, &endpoint)).headed(heading));
        }
        let unanswered = step.view.unanswered();
        if let Some(last) = parts.last_mut().filter(|_| unanswered > 0) {
            last.after =
                format!("Without an answer at the end, in no block: {}.", count(unanswered));
        }
    }
    parts
}

/// Form 5, of a micro-benchmark.
const LIBRARY: [Column<MicroRow>; 5] = [
    words("benchmark", |row| row.name.clone()),
    figure("operations/s", |row| significant(row.ops_per_s)),
    figure("time", |row| duration(row.time_ns)),
    figure("memory each", |row| row.bytes.map_or_else(|| NOT_AVAILABLE.to_owned(), bytes)),
    figure("allocations each", |row| {
        row.allocs.map_or_else(|| NOT_AVAILABLE.to_owned(), significant)
    }),
];

/// Form 5, of an endpoint.
const ENDPOINT_CARD: [Column<Measured>; 8] = [
    RATE,
    figure("mean", |row| optional_mean(row.result.latency().mean_ns())),
    figure("p50", |row| quantile(row.result.latency(), 0.5)),
    figure("p95", |row| quantile(row.result.latency(), 0.95)),
    figure("p99", |row| quantile(row.result.latency(), 0.99)),
    figure("p99.9", |row| quantile(row.result.latency(), 0.999)),
    MAX,
    FAILURES,
];

fn environments(input: &Input<'_>) -> Vec<Part> {
    let parts = input.reports.iter().zip(&input.names).map(|(report, name)| {
        let part = Part::of(environment(report));
        if input.several() { part.small_headed(name) } else { part }
    });
    parts.collect()
}

/// The endpoint's name, with its step where there are several.
fn label(input: &Input<'_>, endpoint: &Measured) -> String {
    match input.steps.len() {
        1 => endpoint.result.name.clone(),
        _ => format!("{} ({})", endpoint.result.name, endpoint.step),
    }
}

fn endpoints(input: &Input<'_>) -> Vec<Part> {
    let cards = input.endpoints().into_iter().map(|endpoint| {
        Part::of(card("", &ENDPOINT_CARD, &endpoint)).small_headed(label(input, &endpoint))
    });
    let limits = input.reports.iter().zip(&input.names).filter_map(|(report, name)| {
        Some(Part::of(thresholds(report)?).small_headed(format!("Thresholds of {name}")))
    });
    cards.chain(limits).collect()
}

/// A name and how long one takes.
struct Timed {
    name: String,
    ns: f64,
}

const TIMED: [Column<Timed>; 4] = [
    words("rank", |row| row.rank().to_string()),
    words("", |row| row.name.clone()),
    figure("time", |row| duration(row.ns)),
    figure("of the shortest", |row| factor(row.ns / row.first().ns)),
];

/// From the shortest time to the longest.
fn ranking(heading: &'static str, mut times: Vec<Timed>) -> Part {
    times.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let [rank, name, time, ratio] = TIMED;
    Part::of(table(&[rank, name.headed(heading), time, ratio], &times))
}

fn rankings(input: &Input<'_>) -> Vec<Part> {
    let library = input.micro.iter().map(|row| Timed { name: row.name.clone(), ns: row.time_ns });
    let endpoints = input.endpoints();
    let http = endpoints.iter().filter_map(|endpoint| {
        Some(Timed { name: label(input, endpoint), ns: endpoint.quantile_ns(0.5)? })
    });
    vec![ranking("library, by time", library.collect()), ranking("HTTP, by p50", http.collect())]
}

/// An endpoint and a benchmark that may do the same.
struct Pair {
    endpoint: String,
    http_ns: f64,
    benchmark: MicroRow,
}

const PAIR: [Column<Pair>; 5] = [
    words("endpoint", |row| row.endpoint.clone()),
    words("benchmark", |row| row.benchmark.name.clone()),
    figure("HTTP, p50", |row| duration(row.http_ns)),
    figure("library", |row| duration(row.benchmark.time_ns)),
    figure("HTTP over library", |row| factor(row.http_ns / row.benchmark.time_ns)),
];

/// Most pairs of library and HTTP when no names match.
const MOST_PAIRS: usize = 40;

fn pairs(input: &Input<'_>) -> Vec<Part> {
    let endpoints = input.endpoints();
    let all = || endpoints.iter().flat_map(|e| input.micro.iter().map(move |row| (e, row)));
    let pair = |(endpoint, row): (&Measured, &MicroRow)| Pair {
        endpoint: label(input, endpoint),
        http_ns: endpoint.quantile_ns(0.5).unwrap_or(f64::NAN),
        benchmark: row.clone(),
    };
    let mut rows: Vec<Pair> = all()
        .filter(|(endpoint, row)| names_match(&endpoint.result.name, &row.name))
        .map(pair)
        .collect();
    let after = if rows.is_empty() {
        rows = all().take(MOST_PAIRS).map(pair).collect();
        "No benchmark's name matches an endpoint's, so each is paired with each."
    } else {
        "Benchmark and endpoint belong together where the last part of the benchmark's name is a word of the endpoint's."
    };
    vec![Part { after: after.to_owned(), ..Part::of(table(&PAIR, &rows)) }]
}

/// Whether a word of the endpoint's name is the last part of the benchmark's, case aside.
fn names_match(endpoint: &str, benchmark: &str) -> bool {
    let separators = |c: char| !c.is_alphanumeric();
    let Some(last) = benchmark.split(separators).rfind(|part| !part.is_empty()) else {
        return false;
    };
    endpoint.split(separators).any(|word| word.eq_ignore_ascii_case(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{form, sample};

    #[test]
    fn a_benchmark_finds_its_endpoint_by_a_word() {
        assert!(names_match("POST /log/append", "log/Append"));
        assert!(names_match("append", "BenchmarkLog/append"));
        assert!(!names_match("POST /appendix", "log/append"));
        assert!(!names_match("GET /", "///"));
    }

    #[test]
    fn ratios_come_from_raw_values_not_from_cells() {
        let step = |name: &str, connections, count| {
            let endpoint = sample::endpoint("a", count, 1_000_000);
            sample::step(name, connections, vec![sample::run(1, vec![endpoint])])
        };
        // 100.6 and 104.4 a second are written 101 and 104; 104/101 would be 1.03.
        let report = sample::report("x", vec![step("c=1", 1, 1_006), step("c=2", 2, 1_044)]);
        let text = form(1, &[report], &[]).unwrap();
        let row = text.lines().rfind(|line| line.starts_with("| req/s")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[2..6], ["101", "104", "+3.80", "1.04×"]);
    }
}
