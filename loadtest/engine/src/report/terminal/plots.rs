//! Plots out of characters: a histogram of latencies, and strips over time.

use crate::histogram::Histogram;
use crate::numbers::{duration, share, significant};
use crate::result::Run;
use crate::table::{Align, pad};

/// Most rows for the body, up to the 95th percentile.
const BODY_ROWS: usize = 10;
/// Most rows for the tail beyond it.
const TAIL_ROWS: usize = 5;

/// One row of the histogram.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Upper end, in nanoseconds.
    pub(super) at_most_ns: u64,
    /// How many latencies are above the row before and not above this one.
    pub(super) count: u64,
}

/// Divisions of a decade, in hundredths, from fine to coarse: the preferred
/// numbers of IEC 60063 (E48, E24, E12), then 1-1.5-2-3-5-7, 1-2-5 and 1.
#[rustfmt::skip]
const DIVISIONS: [&[u64]; 6] = [
    &[100, 105, 110, 115, 121, 127, 133, 140, 147, 154, 162, 169, 178, 187, 196, 205,
      215, 226, 237, 249, 261, 274, 287, 301, 316, 332, 348, 365, 383, 402, 422, 442,
      464, 487, 511, 536, 562, 590, 619, 649, 681, 715, 750, 787, 825, 866, 909, 953],
    &[100, 110, 120, 130, 150, 160, 180, 200, 220, 240, 270, 300,
      330, 360, 390, 430, 470, 510, 560, 620, 680, 750, 820, 910],
    &[100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820],
    &[100, 150, 200, 300, 500, 700],
    &[100, 200, 500],
    &[100],
];

/// Latencies in rows with round ends, from the smallest to the largest: fine
/// ones up to the 95th percentile, coarser ones for the tail.
pub(super) fn rows(histogram: &Histogram) -> Vec<Row> {
    let (Some(min_ns), Some(max_ns)) = (histogram.min_ns(), histogram.max_ns()) else {
        return Vec::new();
    };
    let body_ns = histogram.quantile_ns(0.95).unwrap_or(max_ns);
    let mut ends = fitting_ends(min_ns, body_ns, BODY_ROWS);
    let last_ns = ends.last().copied().unwrap_or(min_ns);
    if last_ns < max_ns {
        ends.extend(fitting_ends(last_ns + 1, max_ns, TAIL_ROWS));
    }
    let mut rows: Vec<Row> = ends.iter().map(|end| Row { at_most_ns: *end, count: 0 }).collect();
    for (top_ns, count) in histogram.buckets() {
        // A bucket's top lies up to 1/1024 above the values in it: a value that
        // is exactly a row's end must not slip into the next row.
        let lowest_ns = (top_ns - top_ns / 1_024).min(max_ns);
        let row = rows.partition_point(|row| row.at_most_ns < lowest_ns);
        if let Some(row) = rows.get_mut(row) {
            row.count += count;
        }
    }
    while rows.first().is_some_and(|row| row.count == 0) {
        rows.remove(0);
    }
    while rows.last().is_some_and(|row| row.count == 0) {
        rows.pop();
    }
    rows
}

/// The finest round ends for this range that are few enough.
fn fitting_ends(min_ns: u64, max_ns: u64, most: usize) -> Vec<u64> {
    let mut all = DIVISIONS.iter().map(|division| ends(division, min_ns, max_ns));
    let fitting = all.clone().find(|ends| ends.len() <= most);
    fitting.or_else(|| all.next_back()).unwrap_or_default()
}

/// The round values from the first not below `min_ns` to the first not below `max_ns`.
fn ends(division: &[u64], min_ns: u64, max_ns: u64) -> Vec<u64> {
    let decades = (0..13).map(|power| 10u64.pow(power));
    let all = decades.flat_map(|decade| division.iter().map(move |step| step * decade / 100));
    let mut ends = Vec::new();
    for end in all.filter(|end| *end >= min_ns) {
        if ends.last() != Some(&end) {
            ends.push(end);
        }
        if end >= max_ns {
            return ends;
        }
    }
    ends.push(max_ns);
    ends
}

/// The histogram's lines: upper end, bar, share. The bars take what `width` leaves.
/// Each line is its label, its bar and its share, to be painted apart.
pub(super) fn histogram(latencies: &Histogram, width: usize) -> Vec<(String, String, String)> {
    let rows = rows(latencies);
    let most = rows.iter().map(|row| row.count).max().unwrap_or(0);
    let space = width.saturating_sub(11 + 2 + 10).clamp(8, 60);
    let line = |row: &Row| {
        let label = pad(&format!("≤ {}", duration(row.at_most_ns as f64)), 10, Align::Right);
        let share =
            if row.count == 0 { String::new() } else { share(row.count, latencies.count()) };
        (label, bar(row.count, most, space), share)
    };
    rows.iter().map(line).collect()
}

/// A bar in eighths of a character; whatever is there is seen.
fn bar(count: u64, most: u64, space: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if count == 0 || most == 0 {
        return String::new();
    }
    let eighths = (count as f64 / most as f64 * space as f64 * 8.0).round() as usize;
    let eighths = eighths.max(1);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// A figure over time as one line of blocks with its range in words.
pub(super) struct Strip {
    /// What it shows.
    pub(super) name: &'static str,
    /// One block a second, or several seconds.
    pub(super) blocks: String,
    /// Smallest to largest.
    pub(super) range: String,
}

/// Rate, median and 99th percentile over time, at most `width` blocks each, and
/// how many seconds a block stands for. Empty with fewer than three slices.
pub(super) fn strips(run: &Run, width: usize) -> (Vec<Strip>, usize) {
    let slices = &run.slices;
    if slices.len() < 3 {
        return (Vec::new(), 1);
    }
    let per_block = slices.len().div_ceil(width.max(1));
    let blocks = || slices.chunks(per_block);
    let rates: Vec<f64> = blocks()
        .map(|block| {
            let length_ms: u64 = block.iter().map(|s| s.length_ms).sum();
            let successes: u64 = block.iter().map(|s| s.successes).sum();
            if length_ms == 0 { 0.0 } else { successes as f64 * 1e3 / length_ms as f64 }
        })
        .collect();
    let worst = |figure: fn(&crate::result::Slice) -> u64| -> Vec<f64> {
        blocks().map(|block| block.iter().map(figure).max().unwrap_or(0) as f64).collect()
    };
    let times = |ns: f64| duration(ns.round());
    let strips = vec![
        strip("rate", &rates, |per_s| format!("{}/s", significant(per_s))),
        strip("p50", &worst(|s| s.p50_ns), times),
        strip("p99", &worst(|s| s.p99_ns), times),
    ];
    (strips, per_block)
}

fn strip(name: &'static str, values: &[f64], text: impl Fn(f64) -> String) -> Strip {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let block = |value: &f64| {
        let eighths = if most > 0.0 { (value / most * 8.0).round() as usize } else { 0 };
        BLOCKS[eighths.max(usize::from(*value > 0.0)).min(8)]
    };
    Strip {
        name,
        blocks: values.iter().map(block).collect(),
        range: format!("{} to {}", text(least), text(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use proptest::prelude::*;

    #[test]
    fn a_value_at_a_rows_end_is_in_that_row() {
        let mut latencies = Histogram::new();
        latencies.record_n(1_000_000, 5);
        latencies.record_n(1_500_000, 2);
        let rows = rows(&latencies);
        assert_eq!(rows.first(), Some(&Row { at_most_ns: 1_000_000, count: 5 }));
        assert_eq!(rows.last().map(|row| row.count), Some(2));
    }

    #[test]
    fn one_in_a_million_is_seen() {
        assert_eq!(bar(1, 1_000_000, 20), "▏");
        assert_eq!(bar(0, 1_000_000, 20), "");
        assert_eq!(bar(1_000_000, 1_000_000, 20), "█".repeat(20));
    }

    #[test]
    fn a_long_run_shares_blocks_and_keeps_its_worst() {
        let mut run = sample::run(1, vec![sample::endpoint("a", 1_000, 1_000_000)]);
        let slice = run.slices[0].clone();
        run.slices = vec![slice; 300];
        run.slices[123].p99_ns = 9_000_000_000;
        let (strips, per_block) = strips(&run, 60);
        assert_eq!(per_block, 5);
        assert_eq!(strips[0].blocks.chars().count(), 60);
        assert!(strips[2].range.ends_with("to 9.00 s"), "{}", strips[2].range);
        run.slices.truncate(2);
        assert!(super::strips(&run, 60).0.is_empty());
    }

    proptest! {
        #[test]
        fn every_value_is_in_a_row_and_rows_are_few(
            values in prop::collection::vec(1u64..4_000_000_000_000, 1..40)
        ) {
            let mut latencies = Histogram::new();
            for value in &values {
                latencies.record(*value);
            }
            let rows = rows(&latencies);
            prop_assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), latencies.count());
            // A range of many decades has a row a decade.
            prop_assert!(rows.len() <= BODY_ROWS + TAIL_ROWS + 8);
            prop_assert!(rows.windows(2).all(|pair| pair[0].at_most_ns < pair[1].at_most_ns));
        }
    }
}
