//! Makes a log long with the events that `POST /e` stores, many in a request: NDJSON, the same
//! seven bytes a line.

use crate::{
    flags::{Flags, Outcome},
    http1::HttpConnection,
    ingest::BODY,
    ingest_account::Account,
    row::Sink,
};
use std::time::Instant;

/// `wsbench ingest-fill`: until the log has `--events` events.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let sink = Sink::from_flags("ingest-fill", "wellspring", &mut flags)?;
    let address: String = flags.required("address")?;
    let events: u64 = flags.required("events")?;
    let lines: u64 = flags.or("lines", 10_000)?;
    flags.finish()?;
    let before = Account::settled(&address)?;
    let missing = events.saturating_sub(before.head);
    let line = format!("{BODY}\n");
    let body = line.repeat(usize::try_from(lines.clamp(1, missing.max(1)))?);
    let mut connection = HttpConnection::open(&address)?;
    let started = Instant::now();
    let mut left = missing;
    while left > 0 {
        let now = left.min(lines);
        let part = &body.as_bytes()[..line.len() * usize::try_from(now)?];
        let mut answer = Vec::new();
        let status = connection.call_with(
            "POST",
            "/e",
            "",
            Some(("application/x-ndjson", part)),
            |bytes| answer.extend_from_slice(bytes),
        )?;
        if status != 202 {
            let answer = String::from_utf8_lossy(&answer);
            return Err(format!("{now} lines were answered with {status}: {answer}").into());
        }
        left -= now;
    }
    let after = Account::settled(&address)?;
    after.must_have_grown_by(missing..=missing, &before)?;
    let rate = missing as f64 / started.elapsed().as_secs_f64();
    let mut row = sink.row(&format!("{lines} lines a request, 1 client"), rate, "events/s");
    (row.size, row.samples) = (after.head, missing);
    sink.put(&row)
}
