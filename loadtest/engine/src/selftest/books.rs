//! What must add up in every run, whatever the server did: the report with
//! itself, with the stopwatch beside the engine, and with what the server wrote down.

use super::ledger::Ledger;
use super::offer::Observations;
use super::stopwatch::{Ending, Sample};
use super::truth::Exact;
use crate::plan::Load;
use crate::result::{EndpointResult, ErrorKind, Run};
use std::collections::{BTreeMap, HashMap};

/// Checks everything that must add up.
pub(super) fn balance(seen: &Observations, ledger: &mut Ledger) {
    ledger.delayed_share = ledger.delayed_share.max(delayed_share(&seen.run));
    sums(&seen.run, ledger);
    open_loop(seen, ledger);
    slices(&seen.run, ledger);
    stopwatch(seen, ledger);
    server(seen, ledger);
}

/// `sent = successes + failures by status or check + errors + unanswered`, and
/// every distribution has as many values as its counter says.
fn sums(run: &Run, ledger: &mut Ledger) {
    let mut open = 0;
    for EndpointResult { name, counters, service, failed_service, .. } in &run.endpoints {
        let answered: u64 = counters.statuses.values().sum();
        let lost: u64 = counters.errors.values().sum();
        ledger.within(&format!("{name}: answers and errors"), 0..=counters.sent, answered + lost);
        open += counters.sent.saturating_sub(answered + lost);
        ledger.equal(&format!("{name}: values in service"), counters.successes, service.count());
        let failed = answered - counters.successes.min(answered);
        ledger.equal(&format!("{name}: values in failed_service"), failed, failed_service.count());
        let checks: u64 = counters.failed_checks.values().sum();
        ledger.within(&format!("{name}: failed checks"), 0..=failed, checks);
    }
    ledger.equal("sent − answers − errors = unanswered", open, run.unanswered);
}

/// `due = sent + never_sent`; every request sent has a lateness, every success a response time.
fn open_loop(seen: &Observations, ledger: &mut Ledger) {
    let run = &seen.run;
    let Load::Open { rate_per_s, .. } = seen.offer.load else {
        return ledger.equal(
            "figures of an open loop in a closed one",
            None,
            run.open_loop.clone(),
        );
    };
    let Some(open) = &run.open_loop else {
        return ledger.equal("figures of the open loop", "some", "none");
    };
    let sent: u64 = run.endpoints.iter().map(|one| one.counters.sent).sum();
    ledger.equal("due = sent + never sent", open.due, open.sent + open.never_sent);
    ledger.equal("sent, of those due", sent, open.sent);
    let offered = (open.offered_rate_per_s - rate_per_s).abs() < 1e-6 * rate_per_s;
    ledger.equal("the offered rate is the one asked for", true, offered);
    for one in &run.endpoints {
        let count = |histogram: &Option<crate::histogram::Histogram>| {
            histogram.as_ref().map(crate::histogram::Histogram::count)
        };
        ledger.equal("values in response", Some(one.counters.successes), count(&one.response));
        let sent = one.counters.sent + one.counters.unprocessed;
        ledger.equal("values in lateness", Some(sent), count(&one.lateness));
    }
}

/// The seconds add up to what came within the measured part: all successes but those that came
/// while the last answers were waited for.
fn slices(run: &Run, ledger: &mut Ledger) {
    let Some(total) = run.total() else { return };
    let sum = |of: fn(&crate::result::Slice) -> u64| run.slices.iter().map(of).sum::<u64>();
    let completed = total.counters.completed.unwrap_or(0);
    // What the warm-up sent is in no second, and may have come within the measured part.
    let fewest = completed.saturating_sub(run.warmup_requests);
    let seconds = sum(|one| one.successes);
    let most = completed.min(total.counters.successes);
    ledger.within("successes of all seconds", fewest..=most, seconds);
    ledger.within(
        "failures of all seconds",
        0..=total.counters.failures(),
        sum(|one| one.failures),
    );
    let heat: u64 = run.slices.iter().flat_map(|one| &one.heat).sum();
    ledger.equal("counts in the heat strip", seconds, heat);
}

/// The report and the stopwatch saw the same requests end in the same way.
fn stopwatch(seen: &Observations, ledger: &mut Ledger) {
    let Some(total) = seen.run.total() else { return };
    let counters = &total.counters;
    let unmade: u64 = [ErrorKind::Connect, ErrorKind::Request]
        .iter()
        .filter_map(|kind| counters.errors.get(kind))
        .sum();
    // The stopwatch starts again with what takes their place.
    let unprocessed = counters.unprocessed;
    let counted = |ending: Ending| {
        seen.samples.iter().filter(|sample| sample.ending == ending).count() as u64
    };
    let failed: u64 = counters.statuses.values().sum::<u64>() - counters.successes;
    let lost: u64 = counters.errors.values().sum::<u64>() - unmade;
    let pairs = [
        ("requests made", seen.samples.len() as u64, counters.sent - unmade + unprocessed),
        ("successes", counted(Ending::Success), counters.successes),
        ("failures", counted(Ending::WrongStatus) + counted(Ending::WrongBody), failed),
        ("losses", counted(Ending::Lost), lost + unprocessed),
        ("requests without an end", counted(Ending::None), seen.run.unanswered),
    ];
    // Users of a closed loop may have sent one more each between the end and
    // their noticing it; it is in no figure, as is the warm-up.
    let exact = seen.offer.warmup_ms == 0
        && (seen.offer.duration_ms.is_none() || matches!(seen.offer.load, Load::Open { .. }));
    for (what, by_stopwatch, reported) in pairs {
        if exact {
            ledger.equal(&format!("{what} by the stopwatch, and reported"), by_stopwatch, reported);
        } else {
            let most = by_stopwatch;
            ledger.within(
                &format!("{what} reported, of those the stopwatch saw"),
                0..=most,
                reported,
            );
        }
    }
}

/// No success that the server did not send wholly.
fn server(seen: &Observations, ledger: &mut Ledger) {
    let whole = answered(seen);
    let invented = successes(seen).filter(|sample| !whole.contains_key(&sample.tag)).count();
    ledger.equal("successes that the server never wholly sent", 0, invented);
    let told: u64 = seen.run.endpoints.iter().map(|one| one.counters.successes).sum();
    ledger.within("successes, of the answers the server wholly sent", 0..=whole.len() as u64, told);
    // The server began after the client and ended before it, by the same clock.
    let impossible = successes(seen)
        .filter_map(|sample| Some((sample, whole.get(&sample.tag)?)))
        .filter(|(sample, took_ns)| sample.ended_ns - sample.asked_ns < **took_ns)
        .count();
    ledger.equal("successes that took less than the server took", 0, impossible);
    let clean = seen.run.failures() == 0 && seen.offer.warmup_ms == 0;
    if let (true, None, Some(total)) = (clean, seen.offer.duration_ms, seen.run.total()) {
        ledger.equal("bytes sent", seen.log.bytes_read, total.counters.bytes_sent);
        ledger.equal("bytes received", seen.log.bytes_written, total.counters.bytes_received);
    }
}

/// The successes, as the stopwatch saw them.
pub(super) fn successes(seen: &Observations) -> impl Iterator<Item = &Sample> {
    seen.samples.iter().filter(|sample| sample.ending == Ending::Success)
}

/// Sent to last byte of every success, by the stopwatch.
pub(super) fn service(seen: &Observations) -> Exact {
    Exact::new(successes(seen).map(|sample| sample.ended_ns - sample.asked_ns))
}

/// Of every request that was wholly answered: how long the server took, by its number.
pub(super) fn answered(seen: &Observations) -> HashMap<u64, u64> {
    let took = |one: &super::server::Served| Some((one.tag, one.answered_ns? - one.received_ns));
    seen.log.served.iter().filter_map(took).collect()
}

/// The errors of all endpoints, by kind.
pub(super) fn errors(seen: &Observations) -> BTreeMap<ErrorKind, u64> {
    seen.run.total().map(|total| total.counters.errors).unwrap_or_default()
}

/// The largest share of a worker's time in which it could have run but had no processor.
fn delayed_share(run: &Run) -> f64 {
    let share = |worker: &crate::result::WorkerUse| {
        worker.run_delay_ns as f64 / worker.wall_ns.max(1) as f64
    };
    run.client.workers.iter().map(share).fold(0.0, f64::max)
}
