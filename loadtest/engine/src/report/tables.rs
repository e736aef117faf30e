//! The tables that several renderers show: latency, endpoints, steps, repeats, phases.

use super::measured::{
    self, AGAINST_MEAN, Column, ENDPOINT, FAILURES, MAX, Measured, P50, P95, P99, P999, RATE, STEP,
    figure, words,
};
use super::view::{StepView, early_ends, extremes, length, load};
use crate::histogram::Histogram;
use crate::numbers::{
    QUANTILES, bytes, count, counted, optional_duration, optional_mean, percent, quantile,
    quantile_name, rate, share, short_quantile, significant,
};
use crate::plan::Load;
use crate::result::{EndpointResult, ErrorKind, Report, WorkerUse};
use crate::table::Table;

/// What the three distributions of an open loop are, one line each.
pub(crate) const LATENCY_WORDS: [(&str, &str); 3] = [
    ("lateness", "from due to sent: the client was late or no connection was free"),
    ("service", "from sent to the last byte of the answer: how long the server took"),
    ("response", "from due to the last byte: how long a caller would have waited"),
];

/// A step's latency by quantile. In open loop three columns, never mixed; in closed loop one.
pub(crate) fn latency(result: &EndpointResult) -> Table {
    let mut columns: Vec<(&str, &Histogram)> = Vec::new();
    if let Some(lateness) = &result.lateness {
        columns.push(("lateness", lateness));
    }
    columns.push((if result.response.is_some() { "service" } else { "latency" }, &result.service));
    if let Some(response) = &result.response {
        columns.push(("response", response));
    }
    let names = columns.iter().map(|(name, _)| *name);
    let mut table = Table::new(std::iter::once("").chain(names));
    // Set to the left: a quantile that is missing says why, which is long.
    for column in 1..=columns.len() {
        table = table.words(column);
    }
    let mut row = |name: &str, figure: &dyn Fn(&Histogram) -> String| {
        let cells = columns.iter().map(|(_, histogram)| figure(histogram));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("mean", &|h| optional_mean(h.mean_ns()));
    row("min", &|h| optional_duration(h.min_ns()));
    for q in QUANTILES {
        // p99.99 is shown where it can be had; its absence needs no words.
        if q < 0.9999 || columns.iter().any(|(_, h)| h.quantile_supported(q)) {
            row(&quantile_name(q), &|h| quantile(h, q));
        }
    }
    row("max", &|h| optional_duration(h.max_ns()));
    table
}

/// Where the time of a request goes; `None` if it was not measured.
pub(crate) fn phases(result: &EndpointResult) -> Option<Table> {
    let phases = result.phases.as_ref()?;
    let mut table = Table::new(["phase", "times", "mean", "p50", "p99", "max"]);
    let all = [
        ("connect", &phases.connect),
        ("TLS handshake", &phases.tls),
        ("write request", &phases.write),
        ("to first byte", &phases.first_byte),
        ("first to last byte", &phases.last_byte),
    ];
    for (name, histogram) in all.into_iter().filter(|(_, histogram)| !histogram.is_empty()) {
        table.row([
            name.to_owned(),
            count(histogram.count()),
            optional_mean(histogram.mean_ns()),
            short_quantile(histogram, 0.5),
            short_quantile(histogram, 0.99),
            optional_duration(histogram.max_ns()),
        ]);
    }
    Some(table)
}

/// One row an endpoint; `None` if there is only one.
pub(crate) fn endpoints(view: &StepView<'_>) -> Option<Table> {
    const COLUMNS: [Column<Measured>; 7] = [ENDPOINT, RATE, P50, P95, P99, MAX, FAILURES];
    let rows = Measured::step(view, "", String::new()).endpoints(view);
    (rows.len() > 1).then(|| measured::table(&COLUMNS, &rows))
}

/// One row a step; `None` if there is only one.
pub(crate) fn steps(report: &Report) -> Option<Table> {
    const COLUMNS: [Column<Measured>; 8] = [STEP, RATE, P50, P95, P99, P999, MAX, FAILURES];
    let views = StepView::all(report);
    let row = |view: &StepView<'_>| Measured::step(view, "", view.step.name.clone());
    let rows: Vec<Measured> = views.iter().map(row).collect();
    (rows.len() > 1).then(|| measured::table(&COLUMNS, &rows))
}

/// One row a repeat, each against the mean of all; `None` if there is only one.
pub(crate) fn repeats(view: &StepView<'_>) -> Option<Table> {
    const COLUMNS: [Column<Measured>; 8] = [
        words("run", |row| row.repeat.to_string()),
        figure("order", |row| row.order.to_string()),
        RATE,
        AGAINST_MEAN,
        P50,
        P99,
        MAX,
        FAILURES,
    ];
    let step = Measured::step(view, "", String::new());
    let rows: Vec<Measured> = view.step.runs.iter().map(|run| step.run(run)).collect();
    (rows.len() > 1).then(|| measured::table(&COLUMNS, &rows))
}

/// A number of failures with its share: `12 (0.42%)`; `0` alone.
pub(crate) fn failures(failed: u64, of: u64) -> String {
    if failed == 0 { "0".to_owned() } else { format!("{} ({})", count(failed), share(failed, of)) }
}

/// The first lines of a report of one step: name and text.
pub(crate) fn summary(report: &Report, view: &StepView<'_>) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("load", format!("{}, {}", load(&view.step.settings), length(view.step)))];
    let counters = &view.total.counters;
    let sent = count(counters.sent);
    pairs.push(("requests", format!("{sent} sent, {} succeeded", count(counters.successes))));
    pairs.push(("throughput", throughput_line(view)));
    if let Load::Open { .. } = view.step.settings.load {
        pairs.push(("offered", offered_line(view)));
    }
    pairs.push(("failures", failure_line(report, view)));
    pairs.push(("data", data_line(view)));
    pairs.extend(client_line(view).map(|line| ("client", line)));
    pairs.extend(server_line(view).map(|line| ("server", line)));
    pairs.extend(early_ends(view.step).into_iter().map(|line| ("ended", line)));
    pairs
}

fn throughput_line(view: &StepView<'_>) -> String {
    let rates = view.rates();
    match extremes(&rates) {
        Some((lowest, highest)) if rates.len() > 1 => format!(
            "{}, geometric mean of {} runs ({} to {})",
            rate(view.rate_per_s()),
            rates.len(),
            significant(lowest),
            rate(highest)
        ),
        _ => rate(view.rate_per_s()),
    }
}

fn offered_line(view: &StepView<'_>) -> String {
    let open = view.step.runs.iter().filter_map(|run| run.open_loop.as_ref());
    let (due, sent, never) = open.fold((0, 0, 0), |(due, sent, never), open| {
        (due + open.due, sent + open.sent, never + open.never_sent)
    });
    let mut text = format!("{} due, {} sent", count(due), count(sent));
    if never > 0 {
        text += &format!("; {} never sent, because no connection became free", count(never));
    }
    text
}

/// The check's sentence with the interval, if it was made; the plain figure before it.
fn failure_line(report: &Report, view: &StepView<'_>) -> String {
    let figure = failures(view.failures(), view.tried());
    match view.finding(report, 5) {
        Some(finding) => format!("{figure}. {}", finding.sentence),
        None => figure,
    }
}

fn data_line(view: &StepView<'_>) -> String {
    let counters = &view.total.counters;
    let seconds = view.measured_ns() as f64 / 1e9;
    let per_s = if seconds > 0.0 { counters.bytes_received as f64 / seconds } else { 0.0 };
    format!(
        "{} received ({}/s), {} sent, {} opened",
        bytes(counters.bytes_received as f64),
        bytes(per_s),
        bytes(counters.bytes_sent as f64),
        counted(counters.connections_opened, "connection", "connections")
    )
}

fn client_line(view: &StepView<'_>) -> Option<String> {
    let busy = |w: &WorkerUse| if w.wall_ns > 0 { w.cpu_ns as f64 / w.wall_ns as f64 } else { 0.0 };
    let workers = || view.step.runs.iter().flat_map(|run| &run.client.workers);
    let busiest = workers().map(busy).max_by(f64::total_cmp)?;
    let mut text =
        counted(u64::from(view.step.settings.workers), "worker thread", "worker threads");
    if workers().any(|w| w.spin) {
        text += ", spinning";
    } else {
        text += &format!(", the busiest used {} of a processor", percent(busiest));
    }
    let null = view.step.runs.iter().filter_map(|run| run.client.null_server_rate_per_s);
    if let Some(null) = null.min_by(f64::total_cmp) {
        text += &format!("; {} against a server that does nothing", rate(null));
    }
    Some(text)
}

fn server_line(view: &StepView<'_>) -> Option<String> {
    let uses: Vec<_> = view.step.runs.iter().filter_map(|run| run.server.as_ref()).collect();
    let mut parts = Vec::new();
    let cpu = uses.iter().filter_map(|s| s.cpu_ns).reduce(|a, b| a + b);
    if let (Some(cpu_ns), true) = (cpu, view.measured_ns() > 0) {
        let processors = cpu_ns as f64 / view.measured_ns() as f64;
        parts.push(format!("{processors:.2} processors used"));
    }
    if let Some(rss) = uses.iter().filter_map(|s| s.rss_bytes).max() {
        parts.push(format!("{} of memory at the end", bytes(rss as f64)));
    }
    if let Some(counted_itself) =
        uses.iter().filter_map(|s| s.counted_requests).reduce(|a, b| a + b)
    {
        parts.push(format!("counted {} itself", counted(counted_itself, "request", "requests")));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Answers by status: status and its count with share.
pub(crate) fn statuses(result: &EndpointResult) -> Vec<(u16, String)> {
    let all: u64 = result.counters.statuses.values().sum();
    let line = |(status, n): (&u16, &u64)| (*status, format!("{} ({})", count(*n), share(*n, all)));
    result.counters.statuses.iter().map(line).collect()
}

/// What went wrong, most frequent first: how often, and what it was in words.
pub(crate) fn errors(view: &StepView<'_>) -> Vec<(u64, String)> {
    let counters = &view.total.counters;
    let explain = |kind: ErrorKind| match kind {
        ErrorKind::Timeout => {
            let limit = crate::numbers::duration(view.step.settings.timeout_ms as f64 * 1e6);
            format!("{}: no complete answer within {limit}", kind.label())
        }
        other => other.label().to_owned(),
    };
    let mut all: Vec<(u64, String)> =
        counters.errors.iter().map(|(kind, n)| (*n, explain(*kind))).collect();
    let failed_checks = counters.failed_checks.iter();
    all.extend(failed_checks.map(|(text, n)| (*n, format!("answer failed the check: {text}"))));
    let passed_or_checked: u64 = counters.successes + counters.failed_checks.values().sum::<u64>();
    let answered: u64 = counters.statuses.values().sum();
    all.push((
        answered.saturating_sub(passed_or_checked),
        "answer had an unexpected status".to_owned(),
    ));
    all.push((view.unanswered(), "still without an answer when the run ended".to_owned()));
    all.retain(|(n, _)| *n > 0);
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    all
}

/// What a search concluded, as lines.
pub(crate) fn search(report: &Report) -> Vec<String> {
    let Some(search) = &report.search else { return Vec::new() };
    let mut lines = vec![match search.highest_rate_per_s {
        Some(highest) => format!("{} holds up to {}.", search.slo, rate(highest)),
        None => format!("{} does not hold at any rate tried.", search.slo),
    }];
    if let Some(lowest) = search.lowest_failing_rate_per_s {
        lines.push(format!("It fails at {}.", rate(lowest)));
    }
    lines.push(search.reason.clone());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn what_went_wrong_adds_up_to_the_failures() {
        for report in [sample::closed(), sample::open(), sample::failing()] {
            let view = StepView::of(&report.steps[0]);
            let told: u64 = errors(&view).iter().map(|(n, _)| n).sum();
            assert_eq!(told, view.failures());
        }
        let report = sample::failing();
        let words = errors(&StepView::of(&report.steps[0]));
        assert!(
            words.iter().any(|(_, text)| text == "timed out: no complete answer within 5.00 s")
        );
    }

    #[test]
    fn a_search_says_both_sides() {
        let mut report = sample::closed();
        assert!(search(&report).is_empty());
        report.search = Some(crate::result::SearchOutcome {
            slo: "p99<10ms".into(),
            highest_rate_per_s: Some(8_000.0),
            lowest_failing_rate_per_s: Some(8_250.0),
            reason: "The step between them is below 5%.".into(),
            decisive_step: None,
        });
        assert_eq!(search(&report)[0], "p99<10ms holds up to 8,000/s.");
        assert_eq!(search(&report)[1], "It fails at 8,250/s.");
    }
}
