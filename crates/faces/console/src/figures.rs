//! `GET /v1/figures`: the main figures since the start, as series that a chart can draw.

use crate::ConsoleFace;
use crate::samples::{DURATIONS, FIGURES, Sample};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::wire::param::{Integer, Param};

/// From when on a client wants the series.
pub(crate) static AFTER: Param<Integer> = Param::integer(
    "after",
    "Only samples after this time, in ms since 1970 UTC: the last of `at_ms` that the client has.",
    0..=u64::MAX,
);

/// `GET /v1/figures`.
pub(crate) async fn figures(face: Arc<ConsoleFace>, request: Box<Request>) -> Answer {
    let after_us = request.query(&AFTER)?.map(|ms| ms.saturating_mul(1_000).saturating_add(999));
    let document = elsewhere(move || {
        let newest = face.newest();
        let mut samples = crate::lock(&face.samples).taken().to_vec();
        // Two samples of one moment would divide by zero.
        samples.retain(|sample| sample.at_us < newest.at_us);
        samples.push(newest);
        document(&samples, after_us)
    });
    Ok(Response::of(200, &document.await?).with("cache-control", "no-store".to_owned()))
}

/// The series of samples, of which there is at least one. Counters are given as growth in a second
/// between a sample and the one before it, so the first has none. Those up to `after_us` are left
/// out.
fn document(samples: &[Sample], after_us: Option<u64>) -> Value {
    let is_known = |sample: &Sample| after_us.is_some_and(|after_us| sample.at_us <= after_us);
    let known = samples.iter().take_while(|sample| is_known(sample)).count();
    // The last that is known is where the growth of the next begins.
    let samples = &samples[known.saturating_sub(1).min(samples.len() - 1)..];
    let shown = |values: Vec<Value>| Value::Array(values.into_iter().skip(known.min(1)).collect());
    let at_ms = samples.iter().map(|sample| json!(sample.at_us / 1_000)).collect();
    let mut series = Map::new();
    let mut now = Map::new();
    for (index, figure) in FIGURES.iter().enumerate() {
        let values = if figure.is_counter {
            between(samples, |earlier, later, seconds| {
                json!(rounded((later.values[index] - earlier.values[index]).max(0.0) / seconds))
            })
        } else {
            samples.iter().map(|sample| json!(sample.values[index])).collect()
        };
        series.insert(figure.name.to_owned(), shown(values));
        now.insert(
            figure.name.to_owned(),
            samples.last().map_or(json!(0), |of| json!(of.values[index])),
        );
    }
    for (index, (name, _)) in DURATIONS.iter().enumerate() {
        for (suffix, share) in [("p50_ms", 0.5), ("p99_ms", 0.99)] {
            let values = between(samples, |earlier, later, _| {
                let (earlier, later) = (&earlier.durations[index], &later.durations[index]);
                quantile(earlier, later, share).map_or(Value::Null, |s| json!(rounded(s * 1_000.0)))
            });
            series.insert(format!("{name}_{suffix}"), shown(values));
        }
    }
    json!({"at_ms": shown(at_ms), "now": now, "series": series})
}

/// A value for each sample: null for the first, then of each with the one before it.
fn between(samples: &[Sample], of: impl Fn(&Sample, &Sample, f64) -> Value) -> Vec<Value> {
    let pairs = samples.windows(2).map(|pair| {
        debug_assert!(pair[0].at_us < pair[1].at_us);
        of(&pair[0], &pair[1], (pair[1].at_us - pair[0].at_us) as f64 / 1e6)
    });
    std::iter::once(Value::Null).chain(pairs).collect()
}

/// The upper bound of the bucket in which this share of the requests between two samples lies;
/// `None` without requests. Requests above all bounds count as the last finite bound.
fn quantile(earlier: &[(f64, u64)], later: &[(f64, u64)], share: f64) -> Option<f64> {
    let of_earlier = |index: usize| earlier.get(index).map_or(0, |(_, count)| *count);
    let counts: Vec<(f64, u64)> = later
        .iter()
        .enumerate()
        .map(|(index, &(bound, count))| (bound, count.saturating_sub(of_earlier(index))))
        .collect();
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    if all == 0 {
        return None;
    }
    let wanted = (all as f64 * share).ceil() as u64;
    let mut seen = 0;
    let mut last_finite = 0.0;
    for (bound, count) in counts {
        seen += count;
        if bound.is_finite() {
            last_finite = bound;
        }
        if seen >= wanted {
            break;
        }
    }
    Some(last_finite)
}

/// Three decimals are enough for a chart.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_us: u64, events: f64, fast: u64, slow: u64) -> Sample {
        let mut values = vec![0.0; FIGURES.len()];
        values[0] = events;
        let durations = vec![(0.001, fast), (0.01, slow), (f64::INFINITY, 0)];
        Sample { at_us, values, durations: vec![durations; DURATIONS.len()] }
    }

    #[test]
    fn counters_are_given_by_the_second_and_durations_by_interval() {
        let samples = [at(0, 0.0, 0, 0), at(2_000_000, 10.0, 98, 2), at(3_000_000, 10.0, 98, 2)];
        let found = document(&samples, None);
        assert_eq!(found["at_ms"], json!([0, 2000, 3000]));
        assert_eq!(found["series"]["events"], json!([null, 5.0, 0.0]));
        assert_eq!(found["now"]["events"], json!(10.0));
        assert_eq!(found["series"]["append_p50_ms"], json!([null, 1.0, null]));
        assert_eq!(found["series"]["append_p99_ms"], json!([null, 10.0, null]));
    }

    #[test]
    fn a_client_gets_what_it_does_not_have() {
        let samples = [at(0, 0.0, 0, 0), at(2_000_000, 10.0, 98, 2), at(3_000_000, 14.0, 98, 2)];
        let found = document(&samples, Some(2_000_999));
        assert_eq!(found["at_ms"], json!([3000]));
        assert_eq!(found["series"]["events"], json!([4.0]));
        assert_eq!(found["series"]["memory_bytes"], json!([0.0]));
        for after_us in [3_000_999, u64::MAX] {
            let nothing = document(&samples, Some(after_us));
            assert_eq!((&nothing["at_ms"], &nothing["series"]["events"]), (&json!([]), &json!([])));
            assert_eq!(nothing["now"]["events"], json!(14.0));
        }
    }

    #[test]
    fn what_is_above_all_bounds_counts_as_the_last() {
        let later = [(0.001, 0), (0.01, 0), (f64::INFINITY, 5)];
        assert_eq!(quantile(&[], &later, 0.5), Some(0.01));
        assert_eq!(quantile(&later, &later, 0.5), None);
    }
}
