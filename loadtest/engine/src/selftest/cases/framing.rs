//! Answers that are right, in every form HTTP allows, and whole only at their last byte.

use crate::random::SplitMix64;
use crate::selftest::books::{answered, balance, errors};
use crate::selftest::ledger::{Ledger, Trouble, duration};
use crate::selftest::offer::Offer;
use crate::selftest::server::{Reaction, ReceivedRequest};
use crate::selftest::truth::Exact;
use crate::selftest::{Bench, Case};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "framing/forms",
        about: "answers with a length, in chunks, until the connection closes, after interim answers, without a body: all are successes",
        run: forms,
    },
    Case {
        name: "framing/odd-parts",
        about: "chunked answers that arrive cut at random places: every body is put together rightly",
        run: odd_parts,
    },
    Case {
        name: "framing/byte-by-byte",
        about: "answers that arrive a byte at a time: the time ends at the last byte, and the phases show where it went",
        run: byte_by_byte,
    },
    Case {
        name: "framing/connection-close",
        about: "the server closes after every answer and says so: no error, a connection for each request",
        run: connection_close,
    },
];

/// The request's number in two chunks, with an extension and a trailer.
fn chunked(asked: &ReceivedRequest) -> String {
    let tag = asked.tag.to_string();
    let (first, second) = tag.split_at(tag.len() / 2);
    let mut answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for chunk in [first, second].into_iter().filter(|chunk| !chunk.is_empty()) {
        let _ = write!(answer, "{:x};part\r\n{chunk}\r\n", chunk.len());
    }
    answer + "0\r\nX-Trailer: yes\r\n\r\n"
}

fn forms(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        let tag = asked.tag;
        let digits = tag.to_string().len();
        match asked.number % 6 {
            0 => Reaction::answer(asked),
            1 => Reaction::whole(chunked(asked)),
            2 => Reaction::whole(format!("HTTP/1.1 200 OK\r\n\r\n{tag}")).close(),
            3 => Reaction::whole(format!(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
                 HTTP/1.1 201 Created\r\ncontent-length:{digits}\r\n\r\n{tag}"
            )),
            4 => Reaction::whole("HTTP/1.1 204 No Content\r\n\r\n"),
            _ => Reaction::whole(format!("HTTP/1.0 200 OK\r\n\r\n{tag}")).close(),
        }
    };
    let seen = Offer::count(3, 600).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let Some(total) = seen.run.total() else { return Ok(()) };
    let statuses = BTreeMap::from([(200, 400), (201, 100), (204, 100)]);
    ledger.equal("answers by status", statuses, total.counters.statuses);
    ledger.equal("successes", 600, total.counters.successes);
    Ok(())
}

fn odd_parts(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let mut random = SplitMix64::stream(bench.seed, 0x0DD);
    let script = move |asked: &ReceivedRequest| {
        let most = random.between(1, 40);
        let part = || usize::try_from(random.between(1, most)).unwrap_or(1);
        // Two answers in three hardly pause between parts, so that reads see them in any mixture.
        let gap_ns = if asked.number.is_multiple_of(3) { 30_000 } else { 1 };
        Reaction::whole(chunked(asked)).in_parts(gap_ns, part)
    };
    let requests = bench.size(600, 6_000);
    let seen = Offer::count(4, requests).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let successes = seen.run.total().map_or(0, |total| total.counters.successes);
    ledger.equal("successes, each with its own body", requests, successes);
    Ok(())
}

fn byte_by_byte(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    const GAP_NS: u64 = 50_000;
    let script =
        |asked: &ReceivedRequest| Reaction::answer(asked).after(1_000_000).in_parts(GAP_NS, || 1);
    let offer = Offer { phases: true, ..Offer::count(4, 200) };
    let seen = offer.to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let truth = Exact::new(answered(&seen).into_values());
    let Some(total) = seen.run.total() else { return Ok(()) };
    let told = |histogram: &crate::histogram::Histogram| histogram.quantile_ns(0.5).unwrap_or(0);
    let least_ns = truth.quantile(0.5) - truth.quantile(0.5) / 1000;
    ledger.lasts("service p50", least_ns..=u64::MAX, told(&total.service));
    let Some(phases) = &total.phases else {
        ledger.equal("phases", "measured", "none");
        return Ok(());
    };
    // The head has 35 bytes and more, so at least as many gaps follow the first byte; a
    // client that is late reads several bytes at once.
    ledger.timely("first to last byte, p50", 35 * GAP_NS..=u64::MAX, told(&phases.last_byte));
    // The server may have read the request before the client knows that it was written.
    ledger.timely("request to first byte, p50", 900_000..=2_000_000, told(&phases.first_byte));
    // Write, first byte and last byte are the whole of it, up to a reading of the clock.
    let mean = |histogram: &crate::histogram::Histogram| histogram.mean_ns().unwrap_or(0.0);
    let parts = mean(&phases.write) + mean(&phases.first_byte) + mean(&phases.last_byte);
    ledger.timely_ratio("phases / service", 0.999..=1.001, parts / mean(&total.service));
    ledger.equal("connections whose opening was timed", 4, phases.connect.count());
    ledger.note(format!(
        "p50 {}: {} to the first byte, {} to the last",
        duration(told(&total.service)),
        duration(told(&phases.first_byte)),
        duration(told(&phases.last_byte))
    ));
    Ok(())
}

fn connection_close(bench: &Bench, ledger: &mut Ledger) -> Result<(), Trouble> {
    let script = |asked: &ReceivedRequest| {
        let (tag, digits) = (asked.tag, asked.tag.to_string().len());
        Reaction::whole(format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {digits}\r\n\r\n{tag}"
        ))
        .close()
    };
    let seen = Offer::count(4, 400).to(bench.clock, Box::new(script))?;
    balance(&seen, ledger);
    ledger.equal("errors", BTreeMap::new(), errors(&seen));
    let Some(total) = seen.run.total() else { return Ok(()) };
    ledger.equal("successes", 400, total.counters.successes);
    // After the last answers connections are opened that nobody needs any more.
    ledger.within("connections opened", 400..=404, total.counters.connections_opened);
    let accepted = seen.log.accepted;
    ledger.within(
        "of the connections the server accepted",
        400..=accepted,
        total.counters.connections_opened,
    );
    Ok(())
}
