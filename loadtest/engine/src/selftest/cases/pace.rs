//! When requests are sent: precision, spacing, shares, thinking.

use crate::plan::{Arrivals, Load};
use crate::selftest::books::{balance, errors, successes};
use crate::selftest::ledger::{Ledger, Trouble, duration};
use crate::selftest::offer::{Observations, Offer};
use crate::selftest::server::Reaction;
use crate::selftest::truth::Exact;
use crate::selftest::{Bench, Case};
use std::collections::{BTreeMap, HashMap};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "pace/precision",
        about: "10,000/s: half of all requests are sent at most 50 µs late",
        run: |bench, ledger| precision(bench, ledger, false, 50_000),
    },
    Case {
        name: "pace/precision-spin",
        about: "10,000/s with --spin: half of all requests are sent at most 5 µs late",
        run: |bench, ledger| precision(bench, ledger, true, 5_000),
    },
    Case {
        name: "pace/constant",
        about: "constant arrivals reach the server evenly spaced",
        run: constant,
    },
    Case {
        name: "pace/poisson",
        about: "Poisson arrivals reach the server with gaps that vary as much as their mean",
        run: poisson,
    },
    Case {
        name: "pace/two-workers",
        about: "two workers share a rate: half each, together even, and every second has its number",
        run: two_workers,
    },
    Case {
        name: "pace/think-time",
        about: "8 users who think for 10 ms: none asks earlier, and the throughput is what that allows",
        run: think_time,
    },
];

const PRECISE_RATE_PER_S: f64 = 10_000.0;

fn precision(
    bench: &Bench,
    ledger: &mut Ledger,
    spin: bool,
    allowed_ns: u64,
) -> Result<(), Trouble> {
    let length_ms = bench.size(700, 5_000);
    let offer = Offer { spin, ..Offer::rate(PRECISE_RATE_PER_S, 16, length_ms) };
    let seen = offer.to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let open = seen.run.open_loop.clone().unwrap_or_default();
    ledger.equal("requests due", length_ms * 10, open.due);
    let Some(lateness) = seen.run.total().and_then(|total| total.lateness) else { return Ok(()) };
    let p50_ns = lateness.quantile_ns(0.5).unwrap_or(u64::MAX);
    ledger.timely("lateness p50", 0..=allowed_ns, p50_ns);
    // The reported lateness against the stopwatch: both relative to the least late request.
    let truth = lateness_by_stopwatch(&seen, 100_000);
    let least_ns = lateness.min_ns().unwrap_or(0);
    for q in [0.5, 0.9] {
        let told_ns = lateness.quantile_ns(q).unwrap_or(0).saturating_sub(least_ns);
        let truth_ns = truth.quantile(q);
        let range_ns =
            truth_ns.saturating_sub(5_000 + truth_ns / 500)..=truth_ns + 5_000 + truth_ns / 500;
        ledger.timely(&format!("lateness, quantile {q}, over the least"), range_ns, told_ns);
    }
    ledger.note(format!(
        "lateness p50 {}, p99 {}",
        duration(p50_ns),
        duration(lateness.quantile_ns(0.99).unwrap_or(0))
    ));
    Ok(())
}

/// How much later each request was sent than the least late one. Numbered in the order of being
/// due.
fn lateness_by_stopwatch(seen: &Observations, gap_ns: u64) -> Exact {
    let against =
        |one: &crate::selftest::stopwatch::Sample| one.asked_ns.saturating_sub(one.tag * gap_ns);
    let least = seen.samples.iter().map(against).min().unwrap_or(0);
    Exact::new(seen.samples.iter().map(|one| against(one) - least))
}

/// Times between requests, as the server read them.
fn gaps(seen: &Observations) -> Exact {
    let received: Vec<u64> = seen.log.served.iter().map(|one| one.received_ns).collect();
    Exact::new(received.windows(2).map(|pair| pair[1] - pair[0]))
}

fn constant(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let length_ms = bench.size(800, 4_000);
    let seen = Offer::rate(500.0, 8, length_ms).to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    ledger.equal("requests the server read", length_ms / 2, seen.log.served.len() as u64);
    let gaps = gaps(&seen);
    ledger.timely_ratio("gaps: mean / 2 ms", 0.99..=1.01, gaps.mean() / 2e6);
    // Exponential gaps would spread over 3.2 times their median.
    let spread = (gaps.quantile(0.9) - gaps.quantile(0.1)) as f64 / gaps.quantile(0.5) as f64;
    ledger.timely_ratio("gaps: p90 − p10, over the median", 0.0..=0.2, spread);
    ledger.note(format!(
        "gaps of {} to {} (p10 to p90)",
        duration(gaps.quantile(0.1)),
        duration(gaps.quantile(0.9))
    ));
    Ok(())
}

fn poisson(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let length_ms = bench.size(1_200, 10_000);
    let load = Load::Open { rate_per_s: 1000.0, arrivals: Arrivals::Poisson };
    let offer = Offer { load, seed: bench.seed, ..Offer::rate(1000.0, 16, length_ms) };
    let seen = offer.to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let gaps = gaps(&seen);
    // Five standard errors: of the variation of n exponential gaps it is 1/√n, of their
    // mean as well. A pause of the machine makes one long gap and many short ones, which
    // the variation feels and the quantiles do not.
    let error = 5.0 / (gaps.len() as f64).sqrt();
    let wide = error.max(0.1);
    let variation = gaps.variation();
    ledger.timely_ratio("gaps: standard deviation / mean", 1.0 - wide..=1.0 + wide, variation);
    ledger.timely_ratio("gaps: mean / 1 ms", 1.0 - error..=1.0 + error, gaps.mean() / 1e6);
    // For exponential gaps the median is ln 2 of the mean; an even mix of two gaps has another.
    let median = gaps.quantile(0.5) as f64 / gaps.mean();
    ledger.timely_ratio("gaps: median / mean", 0.69 - error..=0.69 + error, median);
    ledger.note(format!("gaps vary by {:.3} of their mean", gaps.variation()));
    Ok(())
}

fn two_workers(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let offer = Offer { workers: 2, ..Offer::rate(1000.0, 8, 1_300) };
    let seen = offer.to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    // Worker 0 asks for even numbers, worker 1 for odd ones.
    let sent: Vec<u64> = seen.run.endpoints.iter().map(|one| one.counters.sent).collect();
    ledger.equal("requests of each worker", vec![650, 650], sent);
    let starts: Vec<(u64, u64)> =
        seen.run.slices.iter().map(|one| (one.start_ms, one.length_ms)).collect();
    ledger.equal("seconds", vec![(0, 1000), (1000, 300)], starts);
    for (second, slice) in seen.run.slices.iter().enumerate() {
        let expected = slice.length_ms;
        // One request is on its way at each edge.
        let range = expected.saturating_sub(3)..=expected + 3;
        if !range.contains(&slice.successes) {
            ledger.timely_count(&format!("answers in second {second}"), expected, slice.successes);
        }
    }
    let gaps = gaps(&seen);
    ledger.timely("median gap at the server", 900_000..=1_100_000, gaps.quantile(0.5));
    let counts: Vec<String> = seen.run.slices.iter().map(|one| one.successes.to_string()).collect();
    ledger.note(format!("{} answers in the seconds", counts.join(", ")));
    Ok(())
}

fn think_time(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    const USERS: u64 = 8;
    const THINK_NS: u64 = 10_000_000;
    let load = Load::Closed { think_min_us: 10_000, think_max_us: 10_000 };
    let offer = Offer { load, ..Offer::time(8, bench.size(1_000, 5_000)) };
    let seen = offer.to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    // Users are connections, and nothing closes them; a user's next request is the
    // first that was asked after it had thought. Times of all users interleave, so:
    // between a request and the one that is USERS later lies at least the think time.
    let mut by_time: Vec<_> = successes(&seen).collect();
    by_time.sort_by_key(|one| one.asked_ns);
    let users = usize::try_from(USERS).unwrap_or(8);
    let least =
        by_time.windows(users + 1).map(|some| some[users].asked_ns - some[0].asked_ns).min();
    ledger.lasts("time until every user has asked again", THINK_NS..=u64::MAX, least.unwrap_or(0));
    let answers: HashMap<u16, u64> = seen
        .run
        .total()
        .map(|total| total.counters.statuses)
        .unwrap_or_default()
        .into_iter()
        .collect();
    let thought = answers.get(&200).copied().unwrap_or(0) * THINK_NS;
    // The answers to the last requests came after the end: nobody counts the thinking after them.
    ledger.lasts(
        "time spent thinking",
        thought.saturating_sub(USERS * THINK_NS)..=thought,
        seen.run.think_ns,
    );
    let mean_ns = seen.run.total().and_then(|total| total.service.mean_ns()).unwrap_or(0.0);
    let expected_per_s = USERS as f64 * 1e9 / (THINK_NS as f64 + mean_ns);
    let ratio = seen.run.throughput_per_s() / expected_per_s;
    ledger.timely_ratio("throughput / users ÷ (think + service)", 0.94..=1.02, ratio);
    ledger.note(format!("{:.0}/s, {ratio:.3} of what is possible", seen.run.throughput_per_s()));
    Ok(())
}
