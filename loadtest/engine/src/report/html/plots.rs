//! The four plots: latency by quantile, figures over time, heat over time, and the ladder.

use super::svg::{Axis, COLOURS, Plot, Spread};
use crate::histogram::Histogram;
use crate::numbers::{count, counted, duration, quantile_name, rate, significant};
use crate::plan::Load;
use crate::report::view::StepView;
use crate::result::{Run, Slice};

/// Most columns of a heat map; longer runs have several slices in one.
const MOST_COLUMNS: usize = 120;

fn write_ns(ns: f64) -> String {
    // Ticks are round: `1 ms`, not `1.00 ms`.
    let text = duration(ns.round());
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

fn write_rate(per_s: f64) -> String {
    if per_s >= 1.0 { count(per_s.round() as u64) } else { significant(per_s) }
}

/// Latency by quantile, the axis of quantiles stretched towards 1 as 1/(1 − q) is
/// on a logarithmic scale. Only as far as quantiles may be printed.
pub(super) fn quantiles(id: &str, series: &[(String, &Histogram)]) -> Option<String> {
    let curves: Vec<(&str, Vec<(f64, f64)>)> =
        series.iter().map(|(name, histogram)| (name.as_str(), curve(histogram))).collect();
    let points = || curves.iter().flat_map(|(_, curve)| curve);
    let furthest = points().map(|(x, _)| *x).fold(0.0, f64::max);
    if furthest == 0.0 {
        return None;
    }
    let shown = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
    let ticks: Vec<(f64, String)> = shown
        .into_iter()
        .map(|q: f64| (1.0 / (1.0 - q), quantile_label(q)))
        .filter(|(x, _)| *x <= furthest * 1.01)
        .collect();
    let x = Axis::fixed(Spread::Log, 1.0, furthest, "quantile", ticks);
    let y = Axis::over(Spread::Log, points().map(|(_, y)| *y), "latency", write_ns);
    let mut plot = Plot::new(x, y, 270.0);
    for (colour, (name, curve)) in curves.iter().enumerate() {
        // Service and response often lie upon each other.
        if *name == "response" {
            plot.dashes(colour, curve);
        } else {
            plot.line(colour, curve);
        }
        if curves.len() > 1 {
            plot.name(colour, name);
        }
    }
    let what = "Latency within which each share of requests completed. The tail is stretched: 90, 99 and 99.9% are equally far apart. A curve ends where fewer than ten values lie beyond it.";
    Some(plot.figure(id, "Latency by quantile", what))
}

fn quantile_label(q: f64) -> String {
    if q < 0.99995 { quantile_name(q) } else { format!("p{}", (q * 1e8).round() / 1e6) }
}

/// Points of 1/(1 − q) and nanoseconds, as far as supported.
fn curve(histogram: &Histogram) -> Vec<(f64, f64)> {
    const POINTS_PER_DECADE: i32 = 24;
    let stretched = (0..=8 * POINTS_PER_DECADE)
        .map(|i| 10f64.powf(f64::from(i) / f64::from(POINTS_PER_DECADE)));
    stretched
        .map_while(|x| Some((x, histogram.printable_quantile_ns(1.0 - 1.0 / x)? as f64)))
        .collect()
}

/// Seconds from the beginning at which a slice is half over.
fn middle_s(slice: &Slice) -> f64 {
    (slice.start_ms as f64 + slice.length_ms as f64 / 2.0) / 1e3
}

fn slice_rate(slice: &Slice) -> f64 {
    if slice.length_ms == 0 { 0.0 } else { slice.successes as f64 * 1e3 / slice.length_ms as f64 }
}

fn time_axis(runs: &[Run]) -> Axis {
    let ends = runs.iter().flat_map(|run| &run.slices);
    let longest = ends.map(|s| (s.start_ms + s.length_ms) as f64 / 1e3).fold(1.0, f64::max);
    let full = Axis::over(Spread::Linear, std::iter::once(longest / 1.05), "", |s| s.to_string());
    Axis::fixed(Spread::Linear, 0.0, longest, "seconds from the beginning", full.into_ticks())
}

/// Rate, and median and 99th percentile, over time: a line a run.
pub(super) fn over_time(id: &str, runs: &[Run]) -> Option<String> {
    if runs.iter().all(|run| run.slices.len() < 2) {
        return None;
    }
    let slices = || runs.iter().flat_map(|run| &run.slices);
    let rates =
        Axis::over(Spread::Linear, slices().map(slice_rate), "successes a second", write_rate);
    let mut plot = Plot::new(time_axis(runs), rates, 190.0);
    for (colour, run) in runs.iter().enumerate() {
        let line: Vec<_> = run.slices.iter().map(|s| (middle_s(s), slice_rate(s))).collect();
        plot.line(colour, &line);
    }
    name_runs(&mut plot, runs);
    let runs_words = if runs.len() > 1 { " Each run has its colour." } else { "" };
    let what = format!("Successes in each second.{runs_words}");
    let mut out = plot.figure(&format!("{id}-rate"), "Rate over time", &what);

    let times = || slices().flat_map(|s| [s.p50_ns as f64, s.p99_ns as f64]);
    let y = Axis::over(Spread::Log, times(), "latency", write_ns);
    let mut plot = Plot::new(time_axis(runs), y, 210.0);
    for (colour, run) in runs.iter().enumerate() {
        let line = |figure: fn(&Slice) -> u64| -> Vec<(f64, f64)> {
            let with_answers = run.slices.iter().filter(|s| figure(s) > 0);
            with_answers.map(|s| (middle_s(s), figure(s) as f64)).collect()
        };
        plot.dashes(colour, &line(|s| s.p50_ns));
        plot.line(colour, &line(|s| s.p99_ns));
    }
    name_runs(&mut plot, runs);
    let what = format!("99th percentile of each second, and dashed its median.{runs_words}");
    out += &plot.figure(&format!("{id}-times"), "Latency over time", &what);
    Some(out)
}

/// Names the colours of several runs.
fn name_runs(plot: &mut Plot, runs: &[Run]) {
    if runs.len() > 1 {
        let numbered = runs.iter().enumerate().take(COLOURS);
        numbered.for_each(|(colour, run)| plot.name(colour, &format!("run {}", run.repeat)));
    }
}

/// How latencies are spread in each second: a column a second, a row a power of two.
pub(super) fn heat(id: &str, run: &Run, several_runs: bool) -> Option<String> {
    let per_column = run.slices.len().div_ceil(MOST_COLUMNS).max(1);
    let columns: Vec<(u64, u64, Vec<u64>)> = run.slices.chunks(per_column).map(column).collect();
    let used =
        |row: usize| columns.iter().any(|(_, _, heat)| heat.get(row).is_some_and(|n| *n > 0));
    let rows = columns.iter().map(|(_, _, heat)| heat.len()).max().unwrap_or(0);
    let lowest = (0..rows).find(|row| used(*row))?;
    let highest = (0..rows).rev().find(|row| used(*row))?;
    if columns.len() < 2 {
        return None;
    }
    let bound = |row: usize| 2f64.powi(row as i32 + 10);
    let most = columns.iter().flat_map(|(_, _, heat)| heat).max().copied().unwrap_or(1);
    let ticks = (lowest..=highest + 1).map(|row| (bound(row), duration(bound(row).round())));
    let every = (highest + 2 - lowest).div_ceil(10).max(1);
    let ticks = ticks.step_by(every).collect();
    let y = Axis::fixed(Spread::Log, bound(lowest), bound(highest + 1), "latency", ticks);
    let mut plot = Plot::new(time_axis(std::slice::from_ref(run)), y, 250.0);
    for (start_ms, end_ms, heat) in &columns {
        let (start, end) = (*start_ms as f64 / 1e3, *end_ms as f64 / 1e3);
        for (row, count) in heat.iter().enumerate().filter(|(_, count)| **count > 0) {
            // By logarithm: one slow answer among thousands is what one looks for.
            let share = 0.12 + 0.88 * (*count as f64).ln_1p() / (most as f64).ln_1p();
            let low = if row == 0 { "0 ns".to_owned() } else { duration(bound(row).round()) };
            let text = format!(
                "{start} s: {} from {low} to {}",
                counted(*count, "answer", "answers"),
                duration(bound(row + 1).round())
            );
            plot.cell((start, bound(row)), (end, bound(row + 1)), share, &text);
        }
    }
    let mut what =
        "Answers by latency in each second; a stronger colour means more answers (logarithmic)."
            .to_owned();
    if per_column > 1 {
        what += &format!(" Each column is {per_column} seconds.");
    }
    if several_runs {
        what += &format!(" This is run {}.", run.repeat);
    }
    Some(plot.figure(id, "Latency heat map", &what))
}

/// Start, end and summed heat of some slices.
fn column(slices: &[Slice]) -> (u64, u64, Vec<u64>) {
    let start = slices.first().map_or(0, |s| s.start_ms);
    let end = slices.last().map_or(0, |s| s.start_ms + s.length_ms);
    let mut heat = vec![0; slices.iter().map(|s| s.heat.len()).max().unwrap_or(0)];
    for slice in slices {
        for (sum, count) in heat.iter_mut().zip(&slice.heat) {
            *sum += count;
        }
    }
    (start, end, heat)
}

/// Throughput and tail by concurrency, or by offered rate in open loop. `None` for
/// fewer than two steps or where steps do not differ in it.
pub(super) fn ladder(views: &[StepView<'_>]) -> Option<String> {
    let open = views.iter().all(StepView::is_open);
    let load = |view: &StepView<'_>| match view.step.settings.load {
        Load::Open { rate_per_s, .. } if open => rate_per_s,
        _ => view.in_flight() as f64,
    };
    let mut ordered: Vec<(f64, &StepView<'_>)> =
        views.iter().map(|view| (load(view), view)).collect();
    ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let distinct = ordered.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if ordered.len() < 2 || !distinct || ordered[0].0 <= 0.0 {
        return None;
    }
    let label = if open { "requests offered a second" } else { "requests in flight" };
    let ticks: Vec<_> = ordered.iter().map(|(x, _)| (*x, write_rate(*x))).collect();
    let (low, high) = (ordered[0].0 / 1.1, ordered[ordered.len() - 1].0 * 1.1);
    let x = || Axis::fixed(Spread::Log, low, high, label, ticks.clone());

    let rates: Vec<(f64, f64)> = ordered.iter().map(|(x, v)| (*x, v.rate_per_s())).collect();
    let y = Axis::over(Spread::Linear, rates.iter().map(|p| p.1), "successes a second", write_rate);
    let mut plot = Plot::new(x(), y, 220.0);
    plot.line(0, &rates);
    for (point, (_, view)) in rates.iter().zip(&ordered) {
        plot.dot(0, *point, &format!("{}: {}", view.step.name, rate(point.1)));
    }
    let mut out = plot.figure(
        "ladder-rate",
        "Throughput by load",
        "Successes per second at each step; the geometric mean where a step was repeated.",
    );
    let series = [0.5, 0.99].map(|q| {
        let points = ordered.iter().filter_map(|(x, view)| {
            Some((
                *x,
                view.total.latency().printable_quantile_ns(q)? as f64,
                view.step.name.as_str(),
            ))
        });
        points.collect::<Vec<_>>()
    });
    let y = Axis::over(Spread::Log, series.iter().flatten().map(|p| p.1), "latency", write_ns);
    let mut plot = Plot::new(x(), y, 220.0);
    for (colour, points) in series.iter().enumerate() {
        plot.line(colour, &points.iter().map(|(x, y, _)| (*x, *y)).collect::<Vec<_>>());
        for (x, y, name) in points {
            plot.dot(colour, (*x, *y), &format!("{name}: {}", duration(y.round())));
        }
    }
    plot.name(0, "median");
    plot.name(1, "99th percentile");
    out += &plot.figure(
        "ladder-times",
        "Latency by load",
        "Median and 99th percentile at each step, where there were enough answers.",
    );
    Some(out)
}

/// As many of `views` as have a colour each: all, or some spread evenly with first and last among
/// them.
pub(super) fn spread<'v, 'a>(views: &'v [StepView<'a>]) -> Vec<&'v StepView<'a>> {
    if views.len() <= COLOURS {
        return views.iter().collect();
    }
    (0..COLOURS).map(|i| &views[i * (views.len() - 1) / (COLOURS - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_curve_ends_where_quantiles_are_no_longer_supported() {
        let curve = curve(&sample::latencies(1_000, 1_000_000));
        let last = curve.last().unwrap().0;
        assert!(last <= 100.000_1 && last > 80.0, "{last}");
        assert!(curve.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        assert!(quantiles("q", &[("empty".into(), &Histogram::new())]).is_none());
    }

    #[test]
    fn a_long_heat_map_shares_columns_and_loses_no_answer() {
        let mut run = sample::run(1, vec![sample::endpoint("a", 1_000, 1_000_000)]);
        let slice = run.slices[0].clone();
        run.slices = (0..500).map(|i| Slice { start_ms: i * 1_000, ..slice.clone() }).collect();
        let columns: Vec<_> = run.slices.chunks(5).map(column).collect();
        let sum: u64 = columns.iter().flat_map(|(_, _, heat)| heat).sum();
        assert_eq!(sum, 500 * slice.heat.iter().sum::<u64>());
        let svg = heat("h", &run, false).unwrap();
        assert!(svg.contains("Each column is 5 seconds."));
    }

    #[test]
    fn a_ladder_needs_different_loads() {
        let report = sample::ladder();
        assert!(ladder(&StepView::all(&report)).is_some());
        assert!(ladder(&StepView::all(&sample::closed())).is_none());
        let mut same = sample::ladder();
        for step in &mut same.steps {
            step.settings.connections = 4;
        }
        assert!(ladder(&StepView::all(&same)).is_none());
    }

    #[test]
    fn more_steps_than_colours_are_thinned_with_both_ends() {
        let mut report = sample::ladder();
        let steps = report.steps.clone();
        report.steps = (0..4).flat_map(|_| steps.clone()).collect();
        let views = StepView::all(&report);
        let shown = spread(&views);
        assert_eq!(shown.len(), COLOURS);
        assert!(std::ptr::eq(shown[0], &views[0]) && std::ptr::eq(shown[5], &views[15]));
    }
}
