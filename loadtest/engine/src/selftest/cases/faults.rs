//! Servers that do wrong: every failure is counted, by its name, and none is a success.

use crate::result::ErrorKind;
use crate::selftest::books::{balance, errors, successes};
use crate::selftest::ledger::{Ledger, Trouble, duration};
use crate::selftest::offer::{Observations, Offer};
use crate::selftest::server::{Reaction, ReceivedRequest};
use crate::selftest::stopwatch::Ending;
use crate::selftest::{Bench, Case};
use std::collections::BTreeMap;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "faults/drops-every-7th",
        about: "every 7th request is answered by closing the connection: exactly these are errors",
        run: |bench, ledger| {
            every_seventh(bench, ledger, ErrorKind::Closed, |_| Reaction::nothing().close())
        },
    },
    Case {
        name: "faults/resets-every-7th",
        about: "every 7th request is answered by resetting the connection",
        run: |bench, ledger| {
            every_seventh(bench, ledger, ErrorKind::Reset, |_| Reaction::nothing().reset())
        },
    },
    Case {
        name: "faults/short-body",
        about: "every 7th answer is shorter than it says, then the connection closes: no success",
        run: |bench, ledger| every_seventh(bench, ledger, ErrorKind::Closed, short),
    },
    Case {
        name: "faults/half-a-chunk",
        about: "every 7th answer closes within a chunk: no success",
        run: |bench, ledger| every_seventh(bench, ledger, ErrorKind::Closed, half_a_chunk),
    },
    Case {
        name: "faults/garbage",
        about: "every 7th answer is not HTTP",
        run: |bench, ledger| every_seventh(bench, ledger, ErrorKind::Protocol, garbage),
    },
    Case {
        name: "faults/answers-twice",
        about: "every 7th request gets two answers at once: neither can be trusted",
        run: |bench, ledger| every_seventh(bench, ledger, ErrorKind::Protocol, twice),
    },
    Case {
        name: "faults/answers-twice-later",
        about: "a second answer arrives when the next request is under way: no success has another's body",
        run: twice_later,
    },
    Case {
        name: "faults/status-400",
        about: "every third answer has status 400: read, counted by status, timed apart, no success",
        run: status_400,
    },
    Case {
        name: "faults/too-late",
        about: "every 10th answer comes after the time limit: a time-out, never a success",
        run: too_late,
    },
    Case {
        name: "faults/freezes",
        about: "the server freezes after 300 answers: 300 successes, time-outs, and the silence is seen",
        run: |bench, ledger| freezes(bench, ledger, 1),
    },
    Case {
        name: "faults/freezes-two-workers",
        about: "the same seen by two workers",
        run: |bench, ledger| freezes(bench, ledger, 2),
    },
    Case {
        name: "faults/goes-away",
        about: "the server goes away for good after 300 answers: refused connections are errors, and the silence is seen",
        run: goes_away,
    },
    Case {
        name: "faults/comes-back",
        about: "the server goes away for 200 ms and comes back: errors meanwhile, successes again afterwards",
        run: comes_back,
    },
    Case {
        name: "faults/comes-back-open-loop",
        about: "the same at a constant rate: what is due meanwhile is refused, and nothing is forgotten",
        run: comes_back_open,
    },
];

const REQUESTS: u64 = 700;

/// 700 requests, every seventh of which gets the fault: exactly 100 errors of this kind.
fn every_seventh(
    bench: &Bench,
    ledger: &mut Ledger,
    kind: ErrorKind,
    fault: fn(&ReceivedRequest) -> Reaction,
) -> Result<(), Trouble> {
    let script = move |asked: &ReceivedRequest| {
        if asked.number % 7 == 6 { fault(asked) } else { Reaction::answer(asked) }
    };
    let seen = Offer::count(4, REQUESTS).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("requests the server read", REQUESTS, seen.log.served.len() as u64);
    ledger.equal("errors", BTreeMap::from([(kind, REQUESTS / 7)]), errors(&seen));
    let successes = seen.run.total().map_or(0, |total| total.counters.successes);
    ledger.equal("successes", REQUESTS - REQUESTS / 7, successes);
    Ok(())
}

fn short(asked: &ReceivedRequest) -> Reaction {
    Reaction::bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", asked.tag)).close()
}

fn half_a_chunk(asked: &ReceivedRequest) -> Reaction {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    Reaction::bytes(format!("{head}20\r\n{}", asked.tag)).close()
}

fn garbage(asked: &ReceivedRequest) -> Reaction {
    match asked.tag % 3 {
        0 => Reaction::bytes("SSH-2.0-OpenSSH_9.6\r\n"),
        1 => Reaction::bytes([0xFF, 0x00, 0x16, 0x03, 0x0A, 0x0D]),
        _ => Reaction::bytes("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n22"),
    }
}

fn twice(asked: &ReceivedRequest) -> Reaction {
    let body = asked.tag.to_string();
    let one = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    Reaction::bytes(one.repeat(2))
}

fn twice_later(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        let body = asked.tag.to_string();
        let again = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let answer = Reaction::answer(asked);
        if asked.number % 7 == 6 { answer.then(300_000, again) } else { answer }
    };
    let seen = Offer::count(4, REQUESTS).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    // HTTP/1.1 has no numbers: only the body tells that an answer is another request's.
    let Some(total) = seen.run.total() else { return Ok(()) };
    let wrong = seen.samples.iter().filter(|one| one.ending == Ending::WrongBody).count() as u64;
    ledger.equal("answers to another request", wrong, total.counters.failed_checks.values().sum());
    ledger.within(
        "answers to another request, or broken connections",
        1..=REQUESTS,
        total.counters.failures(),
    );
    ledger.note(format!("{wrong} answers of {REQUESTS} were another request's"));
    Ok(())
}

fn status_400(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| match asked.number % 3 {
        0 => Reaction::status(asked, 400).after(3_000_000),
        _ => Reaction::answer(asked),
    };
    let seen = Offer::count(4, 300).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let Some(total) = seen.run.total() else { return Ok(()) };
    let statuses = BTreeMap::from([(200, 200), (400, 100)]);
    ledger.equal("failures", 100, total.counters.failures());
    ledger.equal("successes", 200, total.counters.successes);
    ledger.equal("answers by status", statuses, total.counters.statuses);
    let failed_ns = total.failed_service.min_ns().unwrap_or(0);
    ledger.lasts("quickest failure", 3_000_000..=u64::MAX, failed_ns);
    ledger.timely("p50 of successes", 0..=3_000_000, total.service.quantile_ns(0.5).unwrap_or(0));
    Ok(())
}

fn too_late(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    const LIMIT_MS: u64 = 150;
    let script = |asked: &ReceivedRequest| match asked.number % 10 {
        9 => Reaction::answer(asked).after(400_000_000),
        _ => Reaction::answer(asked),
    };
    let offer = Offer { timeout_ms: LIMIT_MS, ..Offer::count(4, 160) };
    let seen = offer.to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.within("requests the server read", 0..=160, seen.log.served.len() as u64);
    let timeouts = errors(&seen).get(&ErrorKind::Timeout).copied().unwrap_or(0);
    ledger.timely_count("time-outs", 16, timeouts);
    let others = errors(&seen).into_iter().filter(|(kind, _)| *kind != ErrorKind::Timeout);
    ledger.equal("other errors", BTreeMap::new(), others.collect());
    limits(&seen, ledger, LIMIT_MS);
    Ok(())
}

/// Nothing is given up before the time limit, and nothing counts as a success that came long after
/// it.
fn limits(seen: &Observations, ledger: &mut Ledger, limit_ms: u64) {
    let limit_ns = limit_ms * 1_000_000;
    let lost = seen.samples.iter().filter(|one| one.ending == Ending::Lost);
    let waited: Vec<u64> = lost.map(|one| one.ended_ns - one.asked_ns).collect();
    if let (Some(least), Some(most)) = (waited.iter().min(), waited.iter().max()) {
        // The stopwatch starts a moment after the engine's clock was read.
        ledger.lasts("shortest wait of a time-out", limit_ns - 1_000_000..=u64::MAX, *least);
        // Time limits are looked after fifty times in their length.
        ledger.timely(
            "longest wait of a time-out",
            0..=limit_ns + limit_ns / 25 + 5_000_000,
            *most,
        );
    }
    let slowest = successes(seen).map(|one| one.ended_ns - one.asked_ns).max().unwrap_or(0);
    ledger.timely("slowest success", 0..=limit_ns + limit_ns / 25 + 5_000_000, slowest);
}

/// Successes before a fault that ends everything.
const BEFORE: u64 = 300;

fn freezes(bench: &Bench, ledger: &mut Ledger, workers: u32) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        if asked.number < BEFORE { Reaction::answer(asked) } else { Reaction::freeze() }
    };
    let offer = Offer { workers, timeout_ms: 200, ..Offer::time(4, 700) };
    let seen = offer.to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    limits(&seen, ledger, 200);
    let timeouts = errors(&seen).get(&ErrorKind::Timeout).copied().unwrap_or(0);
    // Four users wait 200 ms each, again and again.
    ledger.within("time-outs and unanswered", 4..=20, timeouts + seen.run.unanswered);
    silent_after_all(&seen, ledger);
    Ok(())
}

fn goes_away(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        if asked.number < BEFORE { Reaction::answer(asked) } else { Reaction::vanish(u64::MAX) }
    };
    let seen = Offer::time(4, 700).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    let refused = errors(&seen).get(&ErrorKind::Connect).copied().unwrap_or(0);
    // Each of four users tries again after 10, 20, 40, … ms.
    ledger.within("refused connections", 4..=40, refused);
    silent_after_all(&seen, ledger);
    Ok(())
}

/// Exactly the answers before the fault are successes, and the time without any answer is reported.
fn silent_after_all(seen: &Observations, ledger: &mut Ledger) {
    let told = seen.run.total().map_or(0, |total| total.counters.successes);
    ledger.equal("successes", BEFORE, told);
    let first_ns = seen.samples.first().map_or(0, |one| one.asked_ns);
    let last_ns = successes(seen).map(|one| one.ended_ns).max().unwrap_or(0);
    let silent_ns = (first_ns + seen.run.measured_ns).saturating_sub(last_ns);
    // The first request may be sent later than the measured part begins.
    let around_ns = |ns| silent_ns.saturating_sub(ns)..=silent_ns + ns;
    ledger.lasts("silence at the end", around_ns(150_000_000), seen.run.silent_tail_ns);
    ledger.timely("silence at the end", around_ns(10_000_000), seen.run.silent_tail_ns);
    ledger.note(format!("silent for {}", duration(seen.run.silent_tail_ns)));
}

const AWAY_NS: u64 = 200_000_000;

fn away(asked: &ReceivedRequest) -> Reaction {
    if asked.number == BEFORE { Reaction::vanish(AWAY_NS) } else { Reaction::answer(asked) }
}

fn comes_back(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let seen = Offer::time(4, 1_000).to(bench.clock, Box::new(away))?;
    balance(&seen, ledger);
    let errors = errors(&seen);
    let of = |kind| errors.get(&kind).copied().unwrap_or(0);
    ledger.within("refused connections", 4..=40, of(ErrorKind::Connect));
    let lost = of(ErrorKind::Closed) + of(ErrorKind::Reset);
    ledger.within("requests under way when it went", 1..=4, lost);
    again(&seen, ledger);
    Ok(())
}

fn comes_back_open(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let seen = Offer::rate(500.0, 16, 1_200).to(bench.clock, Box::new(away))?;
    balance(&seen, ledger);
    let open = seen.run.open_loop.clone().unwrap_or_default();
    ledger.equal("due and never sent", (600, 0), (open.due, open.never_sent));
    let Some(total) = seen.run.total() else { return Ok(()) };
    // Whoever was due while it was away was refused, and until the client found it again:
    // it tries every half second at least.
    let away = |ns: u64| ns * 500 / 1_000_000_000;
    let refused = total.counters.errors.get(&ErrorKind::Connect).copied().unwrap_or(0);
    ledger.within("requests refused", away(AWAY_NS) / 2..=away(AWAY_NS + 600_000_000), refused);
    ledger.within("requests lost otherwise", 0..=16, total.counters.failures() - refused);
    again(&seen, ledger);
    Ok(())
}

/// There were successes after the server came back, and none in between.
fn again(seen: &Observations, ledger: &mut Ledger) {
    let Some((gone_ns, back_ns)) = seen.log.pauses.first().copied() else {
        return ledger.equal("the server went away", 1, seen.log.pauses.len());
    };
    let between = successes(seen).filter(|one| one.asked_ns > gone_ns && one.ended_ns < back_ns);
    ledger.equal("successes while it was away", 0, between.count());
    let after = successes(seen).filter(|one| one.asked_ns > back_ns).count() as u64;
    ledger.within("successes after it came back", 10..=u64::MAX, after);
}
