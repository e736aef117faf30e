//! A server that stops in the middle of an open loop: what users waited for must
//! be in the response time, and the lateness must show whose fault it was.

use crate::selftest::books::{answered, balance, errors};
use crate::selftest::ledger::{Ledger, Trouble, duration};
use crate::selftest::offer::{Observations, Offer};
use crate::selftest::server::Reaction;
use crate::selftest::truth::{Error, Exact};
use crate::selftest::{Bench, Case};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, HashMap};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "stall/few-connections",
        about: "1000/s, the server stops for a while, 4 connections: response p99 is the truth, and lateness shows that no connection was free",
        run: |bench, ledger| stall(bench, ledger, Connections::Few),
    },
    Case {
        name: "stall/enough-connections",
        about: "the same with a connection for every request: response p99 is the truth, lateness stays small, service shows the server's fault",
        run: |bench, ledger| stall(bench, ledger, Connections::Enough),
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connections {
    Few,
    Enough,
}

const RATE_PER_S: f64 = 1000.0;
const GAP_NS: u64 = 1_000_000;
/// How far the reported p99 may be from the truth (BENCH.md, the stall test).
const ALLOWED_SHARE: f64 = 0.05;

fn stall(bench: &Bench, ledger: &mut Ledger, connections: Connections) -> Result<(), Trouble> {
    let (length_ms, stall_ms): (u64, u64) = bench.size((3_000, 300), (20_000, 1_000));
    let places = match connections {
        Connections::Few => 4,
        // A request a millisecond, and room for a slow beginning.
        Connections::Enough => u32::try_from(stall_ms + stall_ms / 2).unwrap_or(u32::MAX),
    };
    need_files(u64::from(places) * 2 + 64)?;
    let at_number = length_ms * 2 / 5;
    let script = move |asked: &crate::selftest::server::ReceivedRequest| {
        let answer = Reaction::answer(asked);
        if asked.number == at_number { answer.after_stall(stall_ms * 1_000_000) } else { answer }
    };
    let offer = Offer::rate(RATE_PER_S, places, length_ms);
    let seen = offer.to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let Some(total) = seen.run.total() else { return Ok(()) };
    ledger.equal("requests due, sent, answered", length_ms, total.counters.successes);

    let truth = response(&seen);
    let told = |histogram: &Option<crate::histogram::Histogram>, q| {
        histogram.as_ref().and_then(|histogram| histogram.quantile_ns(q)).unwrap_or(0)
    };
    let within = |truth_ns: u64| {
        Error { share: ALLOWED_SHARE, below_ns: 200_000, above_ns: 200_000 }.around(truth_ns)
    };
    // Less than what happened is wrong on any machine; more may be the machine's.
    let hold = |ledger: &mut Ledger, what: &str, truth_ns: u64, told_ns: u64| {
        let range_ns = within(truth_ns);
        ledger.lasts(what, *range_ns.start()..=u64::MAX, told_ns);
        ledger.timely(what, range_ns, told_ns);
    };
    let truth_p99_ns = truth.quantile(0.99);
    let response_p99_ns = told(&total.response, 0.99);
    hold(ledger, "response p99", truth_p99_ns, response_p99_ns);
    ledger.timely("response p50", within(truth.quantile(0.5)), told(&total.response, 0.5));
    // One per cent of all requests were due in the first part of the stall and waited for the rest
    // of it.
    let by_arithmetic_ns = (stall_ms - length_ms / 100) * 1_000_000;
    ledger.timely("response p99, by arithmetic", within(by_arithmetic_ns), response_p99_ns);

    let lateness_p99_ns = told(&total.lateness, 0.99);
    let service_p99_ns = total.service.quantile_ns(0.99).unwrap_or(0);
    let tenth_ns = stall_ms * 100_000;
    match connections {
        Connections::Few => {
            hold(ledger, "lateness p99", truth_p99_ns, lateness_p99_ns);
            ledger.timely("service p99", 0..=tenth_ns, service_p99_ns);
        }
        Connections::Enough => {
            ledger.timely("lateness p99", 0..=tenth_ns, lateness_p99_ns);
            hold(ledger, "service p99", truth_p99_ns, service_p99_ns);
        }
    }
    ledger.note(format!(
        "response p99 {} for {}, lateness p99 {}, service p99 {}",
        duration(response_p99_ns),
        duration(truth_p99_ns),
        duration(lateness_p99_ns),
        duration(service_p99_ns)
    ));
    Ok(())
}

/// Due to answered of every request, by the schedule and the server's own record.
///
/// Requests are numbered in the order in which they were due. Some request was
/// sent as good as on time: none can have been sent before it was due, so the
/// earliest against the schedule tells when the schedule began.
fn response(seen: &Observations) -> Exact {
    let due_ns = |tag: u64| tag * GAP_NS;
    let begun_ns =
        seen.samples.iter().map(|one| one.asked_ns.saturating_sub(due_ns(one.tag))).min();
    let begun_ns = begun_ns.unwrap_or(0);
    let took = answered(seen);
    let received: HashMap<u64, u64> =
        seen.log.served.iter().map(|one| (one.tag, one.received_ns)).collect();
    Exact::new(took.iter().filter_map(|(tag, took_ns)| {
        Some((received.get(tag)? + took_ns).saturating_sub(begun_ns + due_ns(*tag)))
    }))
}

/// Makes sure that so many files can be open at once.
fn need_files(count: u64) -> Result<(), Trouble> {
    let limits = getrlimit(Resource::Nofile);
    if limits.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    if limits.maximum.is_some_and(|maximum| maximum < count) {
        return Err(Trouble::Unsuited(format!(
            "needs {count} open files; raise the limit with `ulimit -n {count}`"
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(count), ..limits })
        .map_err(|error| Trouble::Unsuited(format!("needs {count} open files: {error}")))
}
