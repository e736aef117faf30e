//! Prometheus' text exposition format 0.0.4, e.g. for a push gateway or a node exporter's text
//! file.
//!
//! Names are prefixed with `wellspring_bench_`, times are in seconds, and every
//! series has the labels `step`, `endpoint` and `repeat`.

use super::view;
use crate::histogram::Histogram;
use crate::result::{EndpointResult, Report, Run, Step, Verdict};
use std::fmt::Write as _;

/// Quantiles of a summary; those without enough values are left out.
const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// One measurement of one endpoint.
type Point<'a> = (&'a Step, &'a Run, &'a EndpointResult);

/// The report as metrics. Its last line, a comment, is the verdict.
#[must_use]
pub fn prometheus(report: &Report) -> String {
    let mut page = Page { out: String::new(), points: points(report) };
    page.write(report).expect("writing to a string cannot fail");
    page.out
}

fn points(report: &Report) -> Vec<Point<'_>> {
    let runs = report.steps.iter().flat_map(|step| step.runs.iter().map(move |run| (step, run)));
    runs.flat_map(|(step, run)| run.endpoints.iter().map(move |e| (step, run, e))).collect()
}

struct Page<'a> {
    out: String,
    points: Vec<Point<'a>>,
}

impl Page<'_> {
    fn write(&mut self, report: &Report) -> std::fmt::Result {
        self.gauge("measured_seconds", "Length of the measured part.", |(_, run, _)| {
            run.measured_ns as f64 / 1e9
        })?;
        self.gauge("successes_per_second", "Successes a second.", |(_, run, endpoint)| {
            endpoint.counters.throughput_per_s(run.measured_ns)
        })?;
        self.counter("sent", "Requests sent.", |e| e.counters.sent)?;
        self.counter(
            "successes",
            "Answers with an expected status that passed every check.",
            |e| e.counters.successes,
        )?;
        self.counter("failures", "Answers and errors that do not count as success.", |e| {
            e.counters.failures()
        })?;
        self.counter("sent_bytes", "Bytes written, heads included.", |e| e.counters.bytes_sent)?;
        self.counter("received_bytes", "Bytes read, heads included.", |e| {
            e.counters.bytes_received
        })?;
        self.labelled("answers", "Answers by status.", "status", |e| {
            e.counters.statuses.iter().map(|(status, n)| (status.to_string(), *n)).collect()
        })?;
        self.labelled("errors", "Requests that ended without an answer.", "kind", |e| {
            e.counters.errors.iter().map(|(kind, n)| (kind.label().to_owned(), *n)).collect()
        })?;
        self.labelled("failed_checks", "Answers that failed a check.", "check", |e| {
            e.counters.failed_checks.iter().map(|(text, n)| (text.clone(), *n)).collect()
        })?;
        self.summary("service_seconds", "From sent to the last byte of the answer.", |e| {
            Some(&e.service)
        })?;
        self.summary("response_seconds", "Open loop: from due to the last byte.", |e| {
            e.response.as_ref()
        })?;
        self.summary("lateness_seconds", "Open loop: from due to sent.", |e| e.lateness.as_ref())?;
        self.unanswered(report)?;
        self.verdict(report)
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) -> std::fmt::Result {
        writeln!(self.out, "# HELP wellspring_bench_{name} {help}")?;
        writeln!(self.out, "# TYPE wellspring_bench_{name} {kind}")
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        figure: impl Fn(&Point<'_>) -> f64,
    ) -> std::fmt::Result {
        self.head(name, "gauge", help)?;
        for point in &self.points {
            let labels = labels(point);
            writeln!(self.out, "wellspring_bench_{name}{{{labels}}} {}", figure(point))?;
        }
        Ok(())
    }

    fn counter(
        &mut self,
        name: &str,
        help: &str,
        figure: impl Fn(&EndpointResult) -> u64,
    ) -> std::fmt::Result {
        self.head(&format!("{name}_total"), "counter", help)?;
        for point in &self.points {
            let labels = labels(point);
            writeln!(self.out, "wellspring_bench_{name}_total{{{labels}}} {}", figure(point.2))?;
        }
        Ok(())
    }

    /// A counter with a label more; without any sample it is left out.
    fn labelled(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        figures: impl Fn(&EndpointResult) -> Vec<(String, u64)>,
    ) -> std::fmt::Result {
        let all: Vec<(String, Vec<(String, u64)>)> =
            self.points.iter().map(|point| (labels(point), figures(point.2))).collect();
        if all.iter().all(|(_, figures)| figures.is_empty()) {
            return Ok(());
        }
        self.head(&format!("{name}_total"), "counter", help)?;
        for (labels, figures) in all {
            for (value, n) in figures {
                let value = escape(&value);
                writeln!(
                    self.out,
                    "wellspring_bench_{name}_total{{{labels},{label}=\"{value}\"}} {n}"
                )?;
            }
        }
        Ok(())
    }

    /// A summary; without any sample it is left out.
    fn summary(
        &mut self,
        name: &str,
        help: &str,
        histogram: impl Fn(&EndpointResult) -> Option<&Histogram>,
    ) -> std::fmt::Result {
        if self.points.iter().all(|point| histogram(point.2).is_none()) {
            return Ok(());
        }
        self.head(name, "summary", help)?;
        for point in &self.points {
            let Some(histogram) = histogram(point.2) else { continue };
            let labels = labels(point);
            for q in QUANTILES {
                if let Some(ns) = histogram.printable_quantile_ns(q) {
                    let seconds = ns as f64 / 1e9;
                    writeln!(
                        self.out,
                        "wellspring_bench_{name}{{{labels},quantile=\"{q}\"}} {seconds}"
                    )?;
                }
            }
            let sum = histogram.sum_ns() as f64 / 1e9;
            writeln!(self.out, "wellspring_bench_{name}_sum{{{labels}}} {sum}")?;
            writeln!(self.out, "wellspring_bench_{name}_count{{{labels}}} {}", histogram.count())?;
        }
        Ok(())
    }

    /// Of a run as a whole, so `endpoint` is empty.
    fn unanswered(&mut self, report: &Report) -> std::fmt::Result {
        self.head("unanswered_total", "counter", "Requests without an answer when the run ended.")?;
        for step in &report.steps {
            for run in &step.runs {
                let name = escape(&step.name);
                writeln!(
                    self.out,
                    "wellspring_bench_unanswered_total{{step=\"{name}\",endpoint=\"\",repeat=\"{}\"}} {}",
                    run.repeat, run.unanswered
                )?;
            }
        }
        Ok(())
    }

    fn verdict(&mut self, report: &Report) -> std::fmt::Result {
        self.head("verdict", "gauge", "1 for the verdict of the checks, 0 for the others.")?;
        let names = ["trusted", "use_with_care", "not_measurable"];
        let given = report.verdict.as_ref().map(|verdict| match verdict {
            Verdict::Trusted => 0,
            Verdict::UseWithCare(_) => 1,
            Verdict::NotMeasurable(_) => 2,
        });
        for (at, name) in names.iter().enumerate() {
            let value = u8::from(given == Some(at));
            writeln!(self.out, "wellspring_bench_verdict{{verdict=\"{name}\"}} {value}")?;
        }
        writeln!(self.out, "# {}", view::verdict(report.verdict.as_ref()))
    }
}

fn labels((step, run, endpoint): &Point<'_>) -> String {
    format!(
        "step=\"{}\",endpoint=\"{}\",repeat=\"{}\"",
        escape(&step.name),
        escape(&endpoint.name),
        run.repeat
    )
}

/// A label's value: backslash, quote and line feed are escaped.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, assert_golden};
    use std::collections::BTreeSet;

    #[test]
    fn metrics_of_open_and_failing() {
        assert_golden(&[
            ("open.prom", prometheus(&sample::open())),
            ("failing.prom", prometheus(&sample::failing())),
        ]);
    }

    #[test]
    fn every_family_is_described_once_and_every_series_is_there_once() {
        for report in [sample::hostile(), sample::repeated(), sample::two_endpoints()] {
            let text = prometheus(&report);
            let mut seen = BTreeSet::new();
            for line in text.lines() {
                let key = line.rsplit_once(' ').expect("a name and a value").0;
                assert!(seen.insert(key.to_owned()), "twice: {line}");
                if line.starts_with('#') {
                    continue;
                }
                let name = line.split('{').next().unwrap();
                let family = name.trim_end_matches("_sum").trim_end_matches("_count");
                assert!(text.contains(&format!("# TYPE {family} ")), "{line}");
                assert!(line.rsplit_once(' ').unwrap().1.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(prometheus(&sample::hostile()).contains("=\\\"1\\\""));
    }
}
