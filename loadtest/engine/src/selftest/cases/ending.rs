//! How runs begin and end: counts, time, warm-up, interruption.

use crate::plan::{Arrivals, Load};
use crate::result::Finish;
use crate::selftest::books::{balance, errors};
use crate::selftest::ledger::{Ledger, Trouble};
use crate::selftest::offer::{Observations, Offer};
use crate::selftest::server::{Reaction, ReceivedRequest};
use crate::selftest::{Bench, Case};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "ending/count",
        about: "-n 1000 sends exactly 1000 requests, with one worker and with three, in closed and in open loop",
        run: count,
    },
    Case {
        name: "ending/count-and-gone",
        about: "-n 320 ends although the server goes away at the 300th: what could not be sent counts as well",
        run: count_and_gone,
    },
    Case {
        name: "ending/count-and-gone-for-good",
        about: "-n 100000 against a server that goes away for good: given up after the time limit, and the report says why",
        run: gone_for_good,
    },
    Case {
        name: "ending/warm-up",
        about: "requests of the warm-up are in no figure",
        run: warm_up,
    },
    Case {
        name: "ending/warm-up-backlog",
        about: "requests that were due in the warm-up and never sent are not missed by the measured part",
        run: warm_up_backlog,
    },
    Case {
        name: "ending/interrupted",
        about: "Ctrl-C ends a run at once, what was measured is reported, and the sums hold",
        run: interrupted,
    },
    Case {
        name: "ending/interrupted-backlog",
        about: "Ctrl-C with a backlog: nothing more is sent",
        run: interrupted_backlog,
    },
    Case {
        name: "ending/interrupted-frozen",
        about: "Ctrl-C while the server is frozen: the report comes, with what was unanswered",
        run: interrupted_frozen,
    },
    Case {
        name: "ending/interrupted-waiting",
        about: "Ctrl-C after the end, while answers are waited for: the report comes, and the run is whole",
        run: interrupted_waiting,
    },
    Case {
        name: "ending/overdue",
        about: "with a backlog at the end, overdue requests are sent for 1 s more and no longer",
        run: overdue,
    },
    Case {
        name: "ending/slow-judge",
        about: "a client that is busy with its own work says for how long it did not look at its sockets",
        run: slow_judge,
    },
];

/// The wall time of `ms` milliseconds that belong to the run itself, with time to start and stop.
const AROUND_NS: u64 = 700_000_000;

fn count(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let open = Load::Open { rate_per_s: 4000.0, arrivals: Arrivals::Poisson };
    let closed = Load::Closed { think_min_us: 0, think_max_us: 0 };
    for (load, workers) in [(closed, 1), (closed, 3), (open, 1), (open, 3)] {
        let offer = Offer { load, workers, ..Offer::count(7, 1_000) };
        let seen = offer.to(bench.clock, Box::new(Reaction::answer))?;
        balance(&seen, ledger);
        ledger.equal("errors", BTreeMap::new(), errors(&seen));
        ledger.equal("requests the server read", 1_000, seen.log.served.len());
        let different: BTreeSet<u64> = seen.log.served.iter().map(|one| one.tag).collect();
        ledger.equal("different requests", 1_000, different.len());
        ledger.equal("why it ended", Finish::Count, seen.run.finish.clone());
        let sent: u64 = seen.run.endpoints.iter().map(|one| one.counters.sent).sum();
        ledger.equal("sent", 1_000, sent);
    }
    Ok(())
}

fn count_and_gone(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        if asked.number < 300 { Reaction::answer(asked) } else { Reaction::vanish(u64::MAX) }
    };
    let offer = Offer { interrupt_after_ms: Some(6_000), ..Offer::count(4, 320) };
    let seen = offer.to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("why it ended", Finish::Count, seen.run.finish.clone());
    let sent: u64 = seen.run.endpoints.iter().map(|one| one.counters.sent).sum();
    ledger.equal("sent", 320, sent);
    ledger.equal("failures", 20, seen.run.failures());
    Ok(())
}

fn gone_for_good(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let open = Load::Open { rate_per_s: 1000.0, arrivals: Arrivals::Constant };
    let closed = Load::Closed { think_min_us: 0, think_max_us: 0 };
    for (load, workers) in [(closed, 1), (open, 1), (open, 2)] {
        let script = |asked: &ReceivedRequest| {
            if asked.number < 200 { Reaction::answer(asked) } else { Reaction::vanish(u64::MAX) }
        };
        let offer = Offer {
            load,
            workers,
            timeout_ms: 300,
            interrupt_after_ms: Some(4_000),
            ..Offer::count(4, 100_000)
        };
        let seen = offer.to(bench.clock, Box::new(script))?;
        balance(&seen, ledger);
        let why = "no connection could be opened for 300 ms".to_owned();
        ledger.equal("why it ended", Finish::Aborted(why), seen.run.finish.clone());
        // 200 ms of answers, 300 ms without a connection, the look that finds it.
        ledger.lasts("time until the report", 300_000_000..=600_000_000 + AROUND_NS, seen.wall_ns);
        ledger.lasts("silence at the end", 290_000_000..=u64::MAX, seen.run.silent_tail_ns);
    }
    Ok(())
}

fn warm_up(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    // The warm-up's answers are slow and wrong: none of that may show.
    let script = |asked: &ReceivedRequest| match asked.tag {
        0..300 => Reaction::status(asked, 500).after(3_000_000),
        _ => Reaction::answer(asked),
    };
    let offer = Offer { warmup_ms: 300, ..Offer::rate(1000.0, 32, 400) };
    let seen = offer.to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("requests the server read", 700, seen.log.served.len());
    ledger.equal("requests of the warm-up", 300, seen.run.warmup_requests);
    let Some(total) = seen.run.total() else { return Ok(()) };
    ledger.equal("answers by status", BTreeMap::from([(200, 400)]), total.counters.statuses);
    ledger.equal("failures", 0, seen.run.failures());
    ledger.lasts("measured part", 400_000_000..=400_000_000, seen.run.measured_ns);

    let closed = Offer { warmup_ms: 200, ..Offer::time(4, 300) };
    let seen = closed.to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    let sent: u64 = seen.run.endpoints.iter().map(|one| one.counters.sent).sum();
    let all = seen.log.served.len() as u64;
    // Each user may send one more between the end and noticing it.
    ledger.within("warm-up and measured requests", all - 4..=all, seen.run.warmup_requests + sent);
    ledger.within("requests of the warm-up", 1..=all, seen.run.warmup_requests);
    Ok(())
}

fn warm_up_backlog(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let slow = |asked: &ReceivedRequest| Reaction::answer(asked).after(20_000_000);
    let offer = Offer { warmup_ms: 200, ..Offer::rate(1000.0, 1, 200) };
    let seen = offer.to(bench.clock, Box::new(slow))?;
    balance(&seen, ledger);
    let open = seen.run.open_loop.clone().unwrap_or_default();
    ledger.equal("requests due in the measured part", 200, open.due);
    Ok(())
}

/// What must hold of every run that Ctrl-C ended.
fn ended_by_user(seen: &Observations, ledger: &mut Ledger, after_ms: u64, drain_ms: u64) {
    balance(seen, ledger);
    ledger.equal("why it ended", Finish::Interrupted, seen.run.finish.clone());
    let after_ns = after_ms * 1_000_000;
    let measured_ns = after_ns.saturating_sub(100_000_000)..=after_ns + AROUND_NS;
    ledger.lasts("measured part", measured_ns, seen.run.measured_ns);
    let wall_ns = 0..=after_ns + drain_ms * 1_000_000 + AROUND_NS;
    ledger.lasts("time until the report", wall_ns, seen.wall_ns);
}

fn interrupted(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    // So many are due that some are always being sent.
    let loads = [
        Offer::time(16, 60_000),
        Offer { interrupt_after_ms: None, ..Offer::rate(20_000.0, 64, 60_000) },
        Offer {
            load: Load::Closed { think_min_us: 0, think_max_us: 400 },
            ..Offer::time(64, 60_000)
        },
    ];
    for offer in loads {
        let offer = Offer { interrupt_after_ms: Some(300), ..offer };
        let slow = |asked: &ReceivedRequest| Reaction::answer(asked).after(500_000);
        let seen = offer.to(bench.clock, Box::new(slow))?;
        ended_by_user(&seen, ledger, 300, 0);
        ledger.equal("unanswered", 0, seen.run.unanswered);
        ledger.equal("errors", BTreeMap::new(), errors(&seen));
    }
    Ok(())
}

fn interrupted_backlog(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let slow = |asked: &ReceivedRequest| Reaction::answer(asked).after(20_000_000);
    let offer = Offer { interrupt_after_ms: Some(300), ..Offer::rate(1000.0, 2, 60_000) };
    let seen = offer.to(bench.clock, Box::new(slow))?;
    ended_by_user(&seen, ledger, 300, 20);
    let first_ns = seen.samples.first().map_or(0, |one| one.asked_ns);
    let last_ns = seen.samples.last().map_or(0, |one| one.asked_ns);
    // Between the end and the look at it passes one turn of the loop.
    let until_ns = seen.run.measured_ns + 20_000_000;
    ledger.lasts("last request after the first", 0..=until_ns, last_ns - first_ns);
    Ok(())
}

fn interrupted_frozen(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        if asked.number < 100 { Reaction::answer(asked) } else { Reaction::freeze() }
    };
    let offer = Offer { interrupt_after_ms: Some(400), ..Offer::time(4, 60_000) };
    let seen = offer.to(bench.clock, Box::new(script))?;
    ended_by_user(&seen, ledger, 400, 1_100);
    ledger.equal("unanswered", 4, seen.run.unanswered);
    let told = seen.run.total().map_or(0, |total| total.counters.successes);
    ledger.equal("successes", 100, told);
    ledger.lasts("silence at the end", 150_000_000..=u64::MAX, seen.run.silent_tail_ns);
    Ok(())
}

fn interrupted_waiting(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        if asked.number < 100 { Reaction::answer(asked) } else { Reaction::freeze() }
    };
    let offer = Offer { interrupt_after_ms: Some(500), ..Offer::time(4, 250) };
    let seen = offer.to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("unanswered", 4, seen.run.unanswered);
    ledger.equal("why it ended", Finish::Time, seen.run.finish.clone());
    ledger.lasts("time until the report", 0..=1_600_000_000 + AROUND_NS, seen.wall_ns);
    Ok(())
}

fn overdue(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let slow = |asked: &ReceivedRequest| Reaction::answer(asked).after(20_000_000);
    let offer = Offer { timeout_ms: 3_000, ..Offer::rate(1000.0, 2, 300) };
    let seen = offer.to(bench.clock, Box::new(slow))?;
    balance(&seen, ledger);
    ledger.equal("why it ended", Finish::Time, seen.run.finish.clone());
    ledger.equal("unanswered", 0, seen.run.unanswered);
    let open = seen.run.open_loop.clone().unwrap_or_default();
    ledger.equal("requests due", 300, open.due);
    // Two connections, 20 ms each, 1.3 s.
    ledger.within("requests never sent", 300 - 135..=299, open.never_sent);
    ledger.lasts("time until the report", 1_300_000_000..=1_350_000_000 + AROUND_NS, seen.wall_ns);
    Ok(())
}

fn slow_judge(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    const JUDGING_NS: u64 = 10_000_000;
    let offer = Offer { judging_ns: JUDGING_NS, ..Offer::count(2, 20) };
    let seen = offer.to(bench.clock, Box::new(Reaction::answer))?;
    balance(&seen, ledger);
    let longest_ns = seen.run.client.workers.first().map_or(0, |worker| worker.longest_loop_ns);
    ledger.lasts("longest time without a look", JUDGING_NS..=u64::MAX, longest_ns);
    Ok(())
}
