//! Form 4: a block for each endpoint with the figures of ApacheBench.

use super::{Named, measured_steps, origin};
use crate::numbers::{
    bytes, count, duration, elapsed, optional_duration, optional_mean, quantile, rate, significant,
};
use crate::page::Page;
use crate::report::ab::{Counted, PERCENTS};
use crate::result::{EndpointResult, Report};
use crate::table::Table;

pub(super) fn write(page: &mut Page, reports: &[Report]) {
    page.list(reports.iter().map(origin));
    for step in measured_steps(reports) {
        for endpoint in step.view.step.merged_endpoints() {
            page.heading(format!("{} ({})", endpoint.name, step.label(reports.len() > 1)));
            page.table(block(&step, &endpoint));
        }
        let unanswered = step.view.unanswered();
        if unanswered > 0 {
            let text = format!("Without an answer at the end, in no block: {}.", count(unanswered));
            page.text(text);
        }
    }
}

fn block(step: &Named<'_>, endpoint: &EndpointResult) -> Table {
    let counters = &endpoint.counters;
    let counted = Counted::of(endpoint, 0);
    let errors: u64 = counters.errors.values().sum();
    let of_500 = counters.statuses.iter().filter(|(status, _)| **status >= 500);
    let measured_ns = step.view.measured_ns() as f64;
    let seconds = measured_ns / 1e9;
    let complete = counted.complete as f64;
    let busy_ns = endpoint.service.sum_ns() + endpoint.failed_service.sum_ns();
    let mut table = Table::new(["", "figure"]);
    table.row(["requests sent", &count(counters.sent)]);
    table.row(["complete answers", &count(counted.complete)]);
    table.row(["successes", &count(counters.successes)]);
    table.row(["errors without an answer", &count(errors)]);
    table
        .row(["answers that failed a check", &count(counters.failed_checks.values().sum::<u64>())]);
    table.row(["answers other than 2xx", &count(counted.non_2xx)]);
    table.row(["answers 5xx", &count(of_500.map(|(_, n)| n).sum::<u64>())]);
    let times =
        if endpoint.response.is_some() { "response, from due" } else { "service, from sent" };
    table.row(["times are", times]);
    table.row(["total time", &elapsed(step.view.measured_ns())]);
    table.row(["answers a second", &rate(complete / seconds)]);
    table.row(["mean time", &optional_mean(counted.times.mean_ns())]);
    // Without answers this divides by zero, which is written n/a.
    table.row(["mean time across all in flight", &duration(measured_ns / complete)]);
    table.row(["in flight at most", &count(step.view.in_flight())]);
    // Little's law: what was in flight on average is the time spent in flight over the time there
    // was.
    table.row(["in flight on average", &significant(busy_ns as f64 / measured_ns)]);
    table.row(["bytes received", &bytes(counters.bytes_received as f64)]);
    for percent in PERCENTS.into_iter().filter(|percent| *percent != 98) {
        let time = quantile(&counted.times, f64::from(percent) / 100.0);
        table.row([format!("{percent}% within"), time]);
    }
    table.row(["100% within".to_owned(), optional_duration(counted.times.max_ns())]);
    table
}
