//! A block as ApacheBench 2.3 prints it, so that scripts that read `ab` keep working.
//!
//! Labels, columns and order are `ab`'s. Three things differ, all to stay true:
//! times have three decimals where `ab` rounds to whole milliseconds, a percentile
//! without enough values says `n/a`, and lines whose figure is not measured
//! (`Document Length`, `HTML transferred`, `Connection Times`) are left out.

use super::view::{self, StepView};
use crate::histogram::Histogram;
use crate::numbers::NOT_AVAILABLE;
use crate::result::{EndpointResult, ErrorKind, Report};
use crate::table::visible;
use crate::target::Target;
use std::fmt::Write as _;

/// The shares `ab` lists, in per cent.
pub(crate) const PERCENTS: [u32; 8] = [50, 66, 75, 80, 90, 95, 98, 99];

/// The report in `ab`'s form, one block a step, all repeats and endpoints of it
/// together; its last line is the verdict.
#[must_use]
pub fn ab(report: &Report) -> String {
    let mut out = String::new();
    for view in StepView::all(report) {
        block(&mut out, report, &view).expect("writing to a string cannot fail");
        out.push('\n');
    }
    out.push_str(&view::verdict(report.verdict.as_ref()));
    out.push('\n');
    out
}

/// What `ab` would have counted.
pub(crate) struct AbCounts {
    /// Answers read to the end, whatever their status.
    pub(crate) complete: u64,
    /// Of these and of the rest, what `ab` calls failed: no answer, or one that failed a check.
    pub(crate) failed: u64,
    /// Answers with a status other than 2xx.
    pub(crate) non_2xx: u64,
    /// Their times, failures by status included, as `ab` does; in open loop the
    /// response of successes, which has another beginning and is mixed with nothing.
    pub(crate) times: Histogram,
}

impl AbCounts {
    /// Of an endpoint and so many requests without an answer.
    pub(crate) fn of(result: &EndpointResult, unanswered: u64) -> Self {
        let counters = &result.counters;
        let errors: u64 = counters.errors.values().sum();
        let failed_checks: u64 = counters.failed_checks.values().sum();
        let not_2xx = counters.statuses.iter().filter(|(status, _)| !(200..300).contains(*status));
        let mut times = result.latency().clone();
        if result.response.is_none() {
            times.merge(&result.failed_service);
        }
        AbCounts {
            complete: counters.statuses.values().sum(),
            failed: errors + failed_checks + unanswered,
            non_2xx: not_2xx.map(|(_, n)| n).sum(),
            times,
        }
    }
}

fn block(out: &mut String, report: &Report, view: &StepView<'_>) -> std::fmt::Result {
    let settings = &view.step.settings;
    // The URL of a report is one that was sent to; of any other the lines stay empty.
    let target = Target::parse(&visible(&settings.url)).ok();
    let of_target = |part: fn(&Target) -> String| target.as_ref().map(part).unwrap_or_default();
    let server = report.environment.server.header.as_deref().unwrap_or_default();
    writeln!(out, "Server Software:        {}", visible(server))?;
    writeln!(out, "Server Hostname:        {}", of_target(Target::bracketed_host))?;
    writeln!(out, "Server Port:            {}\n", of_target(|target| target.port.to_string()))?;
    writeln!(out, "Document Path:          {}\n", of_target(|target| target.path.clone()))?;
    writeln!(out, "Concurrency Level:      {}", view.in_flight())?;
    let counted = AbCounts::of(&view.total, view.unanswered());
    let seconds = view.measured_ns() as f64 / 1e9;
    let counters = &view.total.counters;
    writeln!(out, "Time taken for tests:   {seconds:.3} seconds")?;
    writeln!(out, "Complete requests:      {}", counted.complete)?;
    writeln!(out, "Failed requests:        {}", counted.failed)?;
    if counted.failed > 0 {
        let connect = [ErrorKind::Connect, ErrorKind::Tls];
        let connect: u64 = connect.iter().filter_map(|kind| counters.errors.get(kind)).sum();
        let checks: u64 = counters.failed_checks.values().sum();
        writeln!(
            out,
            "   (Connect: {connect}, Receive: {}, Length: {checks}, Exceptions: 0)",
            counted.failed - connect - checks
        )?;
    }
    if counted.non_2xx > 0 {
        writeln!(out, "Non-2xx responses:      {}", counted.non_2xx)?;
    }
    if settings.keep_alive {
        writeln!(out, "Keep-Alive requests:    {}", counted.complete)?;
    }
    writeln!(out, "Total transferred:      {} bytes", counters.bytes_received)?;
    let complete = counted.complete as f64;
    if seconds > 0.0 && complete > 0.0 {
        let each_ms = seconds * 1e3 / complete;
        writeln!(out, "Requests per second:    {:.2} [#/sec] (mean)", complete / seconds)?;
        writeln!(
            out,
            "Time per request:       {:.3} [ms] (mean)",
            each_ms * view.in_flight() as f64
        )?;
        writeln!(
            out,
            "Time per request:       {each_ms:.3} [ms] (mean, across all concurrent requests)"
        )?;
        writeln!(
            out,
            "Transfer rate:          {:.2} [Kbytes/sec] received",
            counters.bytes_received as f64 / 1024.0 / seconds
        )?;
    }
    percentages(out, &counted.times)
}

fn percentages(out: &mut String, times: &Histogram) -> std::fmt::Result {
    let Some(max_ns) = times.max_ns() else { return Ok(()) };
    writeln!(out, "\nPercentage of the requests served within a certain time (ms)")?;
    for percent in PERCENTS {
        match times.printable_quantile_ns(f64::from(percent) / 100.0) {
            Some(ns) => writeln!(out, "  {percent}%  {:>9.3}", ns as f64 / 1e6)?,
            None => writeln!(out, "  {percent}%  {NOT_AVAILABLE:>9}")?,
        }
    }
    writeln!(out, " 100%  {:>9.3} (longest request)", max_ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, assert_golden};

    #[test]
    fn blocks_of_closed_failing_and_ladder() {
        assert_golden(&[
            ("ab_closed.txt", ab(&sample::closed())),
            ("ab_failing.txt", ab(&sample::failing())),
            ("ab_ladder.txt", ab(&sample::ladder())),
        ]);
    }

    #[test]
    fn a_script_that_reads_ab_finds_what_it_looks_for() {
        let text = ab(&sample::closed());
        let value = |label: &str| {
            let line = text.lines().find(|line| line.starts_with(label)).expect(label);
            line[label.len()..].split_whitespace().next().unwrap().to_owned()
        };
        assert_eq!(value("Server Hostname:"), "127.0.0.1");
        assert_eq!(value("Server Port:"), "8080");
        assert_eq!(value("Document Path:"), "/health");
        assert_eq!(value("Complete requests:"), "20000");
        assert_eq!(value("Requests per second:"), "2000.00");
        assert_eq!(value("Time per request:"), "8.000");
        let tail: Vec<&str> = text.lines().filter(|line| line.contains('%')).collect();
        assert_eq!(tail.len(), 9);
        assert!(tail[8].starts_with(" 100%") && tail[8].ends_with("(longest request)"));
    }
}
