//! The checks on one row of a published table: C1 to C5, with every figure taken as all it may
//! stand for.

use super::cell::Cell;
use super::read::Row;
use crate::check::ratios::{Interval, range};
use crate::check::{rule_of_three, wilson};
use crate::histogram::Histogram;
use crate::numbers::{count, counted, duration, percent, quantile_name, rate, significant};
use crate::result::Outcome;

/// The limits of Little's law, as in a report of our own.
const LITTLE: (f64, f64) = (0.95, 1.005);
/// Differences of less than this share of a figure should be readable from it.
const COARSE: f64 = 0.10;

/// What a check says of a row.
pub(super) type RowFinding = (u8, Outcome, String);

/// All checks on a row, in order of their numbers.
pub(super) fn judge(row: &Row, closed: bool) -> Vec<RowFinding> {
    let mut said = vec![little(row, closed)];
    said.extend(agreement(row));
    said.push(resolution(row));
    said.push(support(row));
    said.push(failures(row));
    said
}

/// The mean: as published, or within what the percentiles allow. The upper end may be unknown.
fn mean(row: &Row) -> Option<(Interval, &'static str)> {
    if let Some(mean) = &row.mean {
        return Some((mean.value, "mean"));
    }
    let (low, high) = mean_from_quantiles(row)?;
    Some((Interval { low, high: high.unwrap_or(f64::INFINITY) }, "percentiles"))
}

/// The least and, if the maximum is known, the largest mean that the quantiles allow: of all
/// values a share `q(i+1) − q(i)` lies between neighbouring quantiles.
fn mean_from_quantiles(row: &Row) -> Option<(f64, Option<f64>)> {
    let mut least = 0.0;
    let mut most = 0.0;
    let mut last = (0.0, row.min.as_ref().map_or(0.0, |min| min.value.low));
    for (q, cell) in &row.percentiles {
        least += (q - last.0) * last.1;
        most += (q - last.0) * cell.value.high;
        last = (*q, cell.value.low.max(last.1));
    }
    if row.percentiles.is_empty() && row.max.is_none() {
        return None;
    }
    least += (1.0 - last.0) * last.1;
    let most = row.max.as_ref().map(|max| most + (1.0 - last.0) * max.value.high);
    Some((least, most))
}

fn little(row: &Row, closed: bool) -> RowFinding {
    let (Some(users), Some((throughput, written))) = (&row.concurrency, throughput(row)) else {
        return (1, Outcome::NotChecked, "Little's law needs concurrency and throughput.".into());
    };
    let Some((mean, from)) = mean(row) else {
        return (1, Outcome::NotChecked, "Little's law needs a mean, or percentiles.".into());
    };
    let think = row.think.as_ref().map_or(Interval::exact(0.0), |think| think.value);
    let busy = (mean + think) * throughput.times(1e-9);
    let share = busy / users.value;
    let facts = format!(
        "{written} at {} {}{} keep {} of {} busy ({})",
        match from {
            "mean" => "a mean of".to_owned(),
            _ => "latencies of".to_owned(),
        },
        written_mean(row, mean),
        row.think
            .as_ref()
            .map_or(String::new(), |think| format!(" and {} of think time", think.text)),
        open_range(busy, significant),
        counted_users(users),
        open_range(share, percent)
    );
    if share.low > LITTLE.1 + edge(row, mean) {
        return (
            1,
            Outcome::Stop,
            format!("{facts}: throughput and latency cannot both be right."),
        );
    }
    if share.high < LITTLE.0 && closed && !row.at_most {
        return (
            1,
            Outcome::Care,
            format!(
                "{facts}: the rest of their time is in neither figure. It may lie in the client, in opening connections, or before all users had started."
            ),
        );
    }
    if share.high.is_infinite() {
        return (
            1,
            Outcome::NotChecked,
            format!("{facts}; without mean and maximum no more can be said."),
        );
    }
    (1, Outcome::Passed, format!("{facts}."))
}

/// How far requests under way at the beginning or the end may move Little's law: the longest
/// answer, or the mean if that is not given, as a share of the duration.
fn edge(row: &Row, mean: Interval) -> f64 {
    let longest = row.max.as_ref().map_or(mean.low, |max| max.value.high);
    row.duration.as_ref().map_or(0.0, |length| longest / length.value.low.max(1.0))
}

/// The throughput as published, or requests ÷ duration, with how it is written.
fn throughput(row: &Row) -> Option<(Interval, String)> {
    if let Some(throughput) = &row.throughput {
        return Some((throughput.value, throughput.text.clone()));
    }
    let (requests, length) = (row.requests.as_ref()?, row.duration.as_ref()?);
    let written = format!("{} requests in {}", requests.text, length.text);
    (length.value.low > 0.0).then(|| (requests.value / length.value.times(1e-9), written))
}

fn written_mean(row: &Row, mean: Interval) -> String {
    row.mean.as_ref().map_or_else(|| open_range(mean, duration), |cell| cell.text.clone())
}

fn counted_users(users: &Cell) -> String {
    let noun = if users.value == Interval::exact(1.0) { "user" } else { "users" };
    format!("{} {noun}", users.text)
}

/// A range, or only its lower end.
fn open_range(of: Interval, write: impl Fn(f64) -> String) -> String {
    if of.high.is_infinite() { format!("at least {}", write(of.low)) } else { range(of, write) }
}

fn agreement(row: &Row) -> Vec<RowFinding> {
    let mut said = Vec::new();
    let mut ladder: Vec<(String, &Cell)> = Vec::new();
    ladder.extend(row.min.as_ref().map(|cell| ("the minimum".to_owned(), cell)));
    ladder.extend(row.percentiles.iter().map(|(q, cell)| (quantile_name(*q), cell)));
    ladder.extend(row.max.as_ref().map(|cell| ("the maximum".to_owned(), cell)));
    for pair in ladder.windows(2) {
        let ((lower, low), (upper, high)) = (&pair[0], &pair[1]);
        if high.value.high < low.value.low {
            said.push(format!("{upper} ({}) is below {lower} ({})", high.text, low.text));
        }
    }
    let bounds = row.mean.as_ref().zip(mean_from_quantiles(row));
    if let Some((mean, (least, most))) = &bounds {
        if mean.value.high < least * (1.0 - 1e-9) {
            said.push(format!(
                "with the percentiles given the mean is at least {}, and it is given as {}",
                duration(*least),
                mean.text
            ));
        }
        if let Some(most) = most.filter(|most| mean.value.low > most * (1.0 + 1e-9)) {
            said.push(format!(
                "with the percentiles given the mean is at most {}, and it is given as {}",
                duration(most),
                mean.text
            ));
        }
    }
    let counted = counts(row);
    said.extend(counted.clone().flatten());
    said.extend(per_connection(row));
    if !said.is_empty() {
        let sentence = |what: String| (2, Outcome::Stop, super::sentence(&what));
        return said.into_iter().map(sentence).collect();
    }
    if ladder.len() < 2 && bounds.is_none() && counted.is_none() {
        let why = "There are not two figures of one distribution to compare.";
        return vec![(2, Outcome::NotChecked, why.into())];
    }
    vec![(2, Outcome::Passed, "Percentiles, mean and counts fit together.".into())]
}

/// Requests ÷ duration against throughput: `None` if one is missing, else what is wrong.
fn counts(row: &Row) -> Option<Option<String>> {
    let (requests, length, throughput) =
        (row.requests.as_ref()?, row.duration.as_ref()?, row.throughput.as_ref()?);
    let seconds = length.value.times(1e-9);
    if seconds.low <= 0.0 {
        return None;
    }
    let computed = requests.value / seconds;
    // A run may count to its last answer or to its last full second: 1% of play.
    let played = Interval { low: computed.low * 0.99, high: computed.high * 1.01 };
    Some((!played.meets(throughput.value)).then(|| {
        format!(
            "{} requests in {} are {}, and the throughput is given as {}",
            requests.text,
            length.text,
            range(computed, rate),
            throughput.text
        )
    }))
}

fn per_connection(row: &Row) -> Option<String> {
    let (each, throughput, users) =
        (row.per_connection.as_ref()?, row.throughput.as_ref()?, row.concurrency.as_ref()?);
    let computed = throughput.value / users.value;
    (!computed.meets(each.value)).then(|| {
        format!(
            "{} over {} connections are {} each, and it is given as {}",
            throughput.text,
            users.text,
            range(computed, rate),
            each.text
        )
    })
}

fn resolution(row: &Row) -> RowFinding {
    let cells = row.mean.iter().chain(row.percentiles.iter().map(|(_, cell)| cell));
    let coarsest = cells
        .filter(|cell| cell.value.middle() > 0.0)
        .max_by(|a, b| (a.step / a.value.middle()).total_cmp(&(b.step / b.value.middle())));
    let Some(cell) = coarsest else {
        return (3, Outcome::NotChecked, "No latency is given.".into());
    };
    let share = cell.step / cell.value.middle();
    if share >= COARSE {
        return (
            3,
            Outcome::Note,
            format!(
                "{} is written to {}, which is {} of it: smaller differences cannot be read.",
                cell.text,
                duration(cell.step),
                percent(share)
            ),
        );
    }
    (3, Outcome::Passed, format!("Latencies are written to {} or better.", percent(share)))
}

/// How many requests there were: as given, or throughput × duration.
fn requests(row: &Row) -> Option<Interval> {
    if let Some(requests) = &row.requests {
        return Some(requests.value);
    }
    Some(row.throughput.as_ref()?.value * row.duration.as_ref()?.value.times(1e-9))
}

fn support(row: &Row) -> RowFinding {
    let Some((highest, _)) = row.percentiles.last() else {
        return (4, Outcome::NotChecked, "No percentile is given.".into());
    };
    let Some(requests) = requests(row) else {
        let why = "How many requests the percentiles rest on is not given.";
        return (4, Outcome::NotChecked, why.into());
    };
    let unsupported =
        row.percentiles.iter().find(|(q, _)| (Histogram::values_needed(*q) as f64) > requests.high);
    match unsupported {
        Some((q, cell)) => (
            4,
            Outcome::Care,
            format!(
                "{} ({}) rests on {} and needs {}: fewer than ten are beyond it.",
                quantile_name(*q),
                cell.text,
                counted(requests.high.round() as u64, "request", "requests"),
                count(Histogram::values_needed(*q))
            ),
        ),
        None => (
            4,
            Outcome::Passed,
            format!("There are enough requests for {}.", quantile_name(*highest)),
        ),
    }
}

fn failures(row: &Row) -> RowFinding {
    let Some(failures) = &row.failures else {
        return (5, Outcome::NotChecked, "The number of failures is not given.".into());
    };
    let Some(requests) = requests(row) else {
        let why = "How many requests the failures are of is not given.";
        return (5, Outcome::NotChecked, why.into());
    };
    let (failed, all) = (failures.value.middle().round() as u64, requests.middle().round() as u64);
    if failed > all {
        let text = format!("{} failures of {} requests are more than all.", failures.text, all);
        return (5, Outcome::Stop, text);
    }
    if failed == 0 {
        let bound = percent(rule_of_three(all));
        let of = counted(all, "request", "requests");
        return (
            5,
            Outcome::Passed,
            format!("None of {of} failed: with 95% confidence fewer than {bound} do."),
        );
    }
    let share = failed as f64 / all as f64;
    let (low, high) = wilson(failed, all);
    let text = format!(
        "{failed} of {} failed: {} ({} to {} with 95% confidence).",
        counted(all, "request", "requests"),
        percent(share),
        percent(low),
        percent(high)
    );
    (5, if share >= 0.01 { Outcome::Care } else { Outcome::Note }, text)
}
