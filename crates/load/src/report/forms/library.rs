//! Form 5: environment, library micro-benchmarks, endpoints with thresholds, ranking, library
//! against HTTP.

use super::{FormError, MicroRow, Named, measured_steps, names};
use crate::numbers::{
    NOT_AVAILABLE, bytes, duration, factor, optional_duration, optional_mean, quantile, significant,
};
use crate::page::Page;
use crate::report::markdown::{environment, thresholds};
use crate::report::tables::failures;
use crate::result::{EndpointResult, Report};
use crate::table::Table;

/// Most pairs of library and HTTP when no names match.
const MOST_PAIRS: usize = 40;

pub(super) fn write(
    page: &mut Page,
    reports: &[Report],
    micro: &[MicroRow],
) -> Result<(), FormError> {
    if micro.is_empty() {
        let needs = "library micro-benchmarks besides result files (wellspring bench import criterion|go-bench)";
        return Err(FormError::Lacks { form: 5, needs });
    }
    page.heading("Environment");
    for (report, name) in reports.iter().zip(names(reports)) {
        if reports.len() > 1 {
            page.small_heading(name);
        }
        page.table(environment(report));
    }
    page.heading("Library");
    page.table(library(micro));
    let steps = measured_steps(reports);
    let several_steps = steps.len() > 1;
    let endpoints: Vec<Asked> = steps
        .iter()
        .flat_map(|step| {
            let name = |endpoint: &str| match several_steps {
                true => format!("{endpoint} ({})", step.label(reports.len() > 1)),
                false => endpoint.to_owned(),
            };
            let asked = |result: EndpointResult| Asked { label: name(&result.name), result };
            step.view.step.merged_endpoints().into_iter().map(asked).collect::<Vec<_>>()
        })
        .collect();
    page.heading("HTTP endpoints");
    blocks(page, &steps, &endpoints);
    for (report, name) in reports.iter().zip(names(reports)) {
        if let Some(table) = thresholds(report) {
            page.small_heading(format!("Thresholds of {name}"));
            page.table(table);
        }
    }
    page.heading("Ranking");
    rankings(page, micro, &endpoints);
    page.heading("Library against HTTP");
    against(page, micro, &endpoints);
    Ok(())
}

/// An endpoint with the name it has in this form.
struct Asked {
    label: String,
    result: EndpointResult,
}

fn library(micro: &[MicroRow]) -> Table {
    let mut table =
        Table::new(["benchmark", "operations/s", "time", "memory each", "allocations each"]);
    for row in micro {
        table.row([
            row.name.clone(),
            significant(row.ops_per_s),
            duration(row.time_ns),
            row.bytes.map_or_else(|| NOT_AVAILABLE.to_owned(), bytes),
            row.allocs.map_or_else(|| NOT_AVAILABLE.to_owned(), significant),
        ]);
    }
    table
}

fn blocks(page: &mut Page, steps: &[Named<'_>], endpoints: &[Asked]) {
    let mut at = endpoints.iter();
    for step in steps {
        for asked in at.by_ref().take(step.view.step.merged_endpoints().len()) {
            let (latency, counters) = (asked.result.latency(), &asked.result.counters);
            page.small_heading(&asked.label);
            let mut table = Table::new(["", "figure"]);
            table.row([
                "requests a second",
                &significant(counters.throughput_per_s(step.view.measured_ns())),
            ]);
            table.row(["mean", &optional_mean(latency.mean_ns())]);
            for (name, q) in [("median", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)] {
                table.row([name, &quantile(latency, q)]);
            }
            table.row(["max", &optional_duration(latency.max_ns())]);
            let tried = counters.sent.max(counters.failures());
            table.row(["failures", &failures(counters.failures(), tried)]);
            page.table(table);
        }
    }
}

fn rankings(page: &mut Page, micro: &[MicroRow], endpoints: &[Asked]) {
    let mut library: Vec<(&str, f64)> =
        micro.iter().map(|row| (row.name.as_str(), row.time_ns)).collect();
    page.table(ranking("library, by time", &mut library));
    let median = |asked: &Asked| asked.result.latency().printable_quantile_ns(0.5);
    let mut http: Vec<(&str, f64)> = endpoints
        .iter()
        .filter_map(|asked| Some((asked.label.as_str(), median(asked)? as f64)))
        .collect();
    page.table(ranking("HTTP, by median", &mut http));
}

/// From the shortest time to the longest, each as a multiple of the shortest.
fn ranking(what: &str, times: &mut [(&str, f64)]) -> Table {
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut table = Table::new(["rank", what, "time", "of the shortest"]).words(1);
    let shortest = times.first().map_or(f64::NAN, |(_, ns)| *ns);
    for (rank, (name, ns)) in times.iter().enumerate() {
        table.row([
            (rank + 1).to_string(),
            (*name).to_owned(),
            duration(*ns),
            factor(*ns / shortest),
        ]);
    }
    table
}

fn against(page: &mut Page, micro: &[MicroRow], endpoints: &[Asked]) {
    let all = || endpoints.iter().flat_map(|asked| micro.iter().map(move |row| (asked, row)));
    let matching: Vec<(&Asked, &MicroRow)> =
        all().filter(|(asked, row)| names_match(&asked.result.name, &row.name)).collect();
    let matched = !matching.is_empty();
    let pairs = if matched { matching } else { all().take(MOST_PAIRS).collect() };
    let mut table =
        Table::new(["endpoint", "benchmark", "HTTP, median", "library", "HTTP over library"])
            .words(1);
    for (asked, row) in &pairs {
        let latency = asked.result.latency();
        let raw = latency.printable_quantile_ns(0.5).map_or(f64::NAN, |ns| ns as f64);
        table.row([
            asked.label.clone(),
            row.name.clone(),
            duration(raw),
            duration(row.time_ns),
            factor(raw / row.time_ns),
        ]);
    }
    page.table(table);
    page.text(if matched {
        "Benchmark and endpoint belong together where the last part of the benchmark's name is a word of the endpoint's. The ratio is of times, from the raw values: how many times as long HTTP takes."
    } else {
        "No benchmark's name matches an endpoint's, so they are paired one with another. The ratio is of times, from the raw values: how many times as long HTTP takes."
    });
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

    #[test]
    fn a_benchmark_finds_its_endpoint_by_a_word() {
        assert!(names_match("POST /log/append", "log/Append"));
        assert!(names_match("append", "BenchmarkLog/append"));
        assert!(!names_match("POST /appendix", "log/append"));
        assert!(!names_match("GET /", "///"));
    }
}
