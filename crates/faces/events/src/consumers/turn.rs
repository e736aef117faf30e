//! What a worker says in a turn, as JSON.

use super::definition::MAX_MS;
use std::fmt;
use wellspring_consumers::DeliveryId;
use wellspring_host::wire::json::{Cursor, ReadResult, missing, once, read_text, rule, unknown};
use wellspring_host::wire::param::MAX_WAIT_MS;
use wellspring_types::Position;

/// Most deliveries of an answer, and most of each kind of result in a request.
pub(crate) const MAX_WANT: u64 = 1_000;
/// Longest name of a worker, in bytes.
const MAX_WORKER_BYTES: usize = 128;
/// Longest reason, in bytes.
const MAX_REASON_BYTES: usize = 1_024;

/// A request for deliveries, with the results of earlier ones.
#[derive(Debug, Default)]
pub(super) struct WorkerTurn {
    pub(super) worker: String,
    pub(super) turn: u64,
    pub(super) want: usize,
    pub(super) wait_ms: u64,
    /// Whether the answer waits until what is settled survives a crash.
    pub(super) is_durable: bool,
    pub(super) done: Vec<SettledDelivery>,
    pub(super) failed: Vec<FailedDelivery>,
    pub(super) park: Vec<FailedDelivery>,
    pub(super) release: Vec<DeliveryId>,
}

/// A delivery that is settled, or its events up to a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SettledDelivery {
    pub(super) id: DeliveryId,
    pub(super) up_to: Option<Position>,
}

/// A delivery that failed, or is to be parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedDelivery {
    pub(super) id: DeliveryId,
    pub(super) reason: String,
    pub(super) retry_ms: Option<u64>,
}

/// A delivery as clients name it: generation, first position, number and nonce, in hexadecimal
/// digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryName(pub(crate) DeliveryId);

impl fmt::Display for DeliveryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeliveryId { generation, first, number, nonce } = self.0;
        write!(f, "{generation:x}.{first:x}.{number:x}.{nonce:x}")
    }
}

impl DeliveryName {
    /// Reads what was written.
    pub(crate) fn parse(text: &str) -> Option<DeliveryId> {
        let mut parts = text.split('.').map(|part| {
            let is_hex =
                (1..=16).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            u64::from_str_radix(part, 16).ok().filter(|_| is_hex)
        });
        let mut next = || parts.next().flatten();
        let id =
            DeliveryId { generation: next()?, first: next()?, number: next()?, nonce: next()? };
        parts.next().is_none().then_some(id)
    }
}

/// Reads the name of a delivery.
pub(crate) fn read_delivery(value: &mut Cursor<'_>) -> ReadResult<DeliveryId> {
    let at = value.at();
    match DeliveryName::parse(&value.string()?) {
        Some(id) => Ok(id),
        None => rule(at, "must be the name of a delivery, as the server gave it"),
    }
}

/// Reads the name of a worker.
pub(crate) fn read_worker(value: &mut Cursor<'_>) -> ReadResult<String> {
    read_text(value, MAX_WORKER_BYTES)
}

/// A reason may have line breaks, as exceptions do, and may be long: it is cut.
fn read_reason(value: &mut Cursor<'_>) -> ReadResult<String> {
    let mut reason = value.string()?.into_owned();
    reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
    Ok(reason)
}

/// The body of `POST …/next`.
pub(super) fn read_turn(cursor: &mut Cursor<'_>) -> ReadResult<WorkerTurn> {
    const KNOWN: &str = "worker, turn, want, wait_ms, durable, done, failed, park, release";
    let start = cursor.at();
    let (mut worker, mut turn, mut want, mut wait_ms) = (None, None, None, None);
    let (mut is_durable, mut done, mut failed) = (None, None, None);
    let (mut park, mut release) = (None, None);
    cursor.object(|name, value| {
        let at = value.at();
        match name {
            "worker" => once(&mut worker, at, read_worker(value)?),
            "turn" => once(&mut turn, at, value.u64()?),
            "want" => once(&mut want, at, read_most(value, MAX_WANT)?),
            "wait_ms" => once(&mut wait_ms, at, read_most(value, MAX_WAIT_MS)?),
            "durable" => once(&mut is_durable, at, value.boolean()?),
            "done" => once(&mut done, at, read_list(value, read_settled)?),
            "failed" => once(&mut failed, at, read_list(value, read_failed)?),
            "park" => once(&mut park, at, read_list(value, read_failed)?),
            "release" => once(&mut release, at, read_list(value, read_delivery)?),
            _ => unknown(at, KNOWN),
        }
    })?;
    let Some(worker) = worker else { return missing("worker", start) };
    let Some(turn) = turn else { return missing("turn", start) };
    Ok(WorkerTurn {
        worker,
        turn,
        want: want.unwrap_or(1) as usize,
        wait_ms: wait_ms.unwrap_or(0),
        is_durable: is_durable.unwrap_or(false),
        done: done.unwrap_or_default(),
        failed: failed.unwrap_or_default(),
        park: park.unwrap_or_default(),
        release: release.unwrap_or_default(),
    })
}

fn read_most(value: &mut Cursor<'_>, most: u64) -> ReadResult<u64> {
    let at = value.at();
    match value.u64()? {
        number if number <= most => Ok(number),
        _ => rule(at, format!("must be at most {most}")),
    }
}

fn read_list<T>(
    value: &mut Cursor<'_>,
    read: fn(&mut Cursor<'_>) -> ReadResult<T>,
) -> ReadResult<Vec<T>> {
    let mut list = Vec::new();
    value.array(|number, value| {
        if number as u64 == MAX_WANT {
            return rule(value.at(), format!("must be among the first {MAX_WANT}"));
        }
        list.push(read(value)?);
        Ok(())
    })?;
    Ok(list)
}

fn read_settled(value: &mut Cursor<'_>) -> ReadResult<SettledDelivery> {
    if value.next_is(b'"') {
        return Ok(SettledDelivery { id: read_delivery(value)?, up_to: None });
    }
    let start = value.at();
    let (mut id, mut up_to) = (None, None);
    value.object(|name, value| {
        let at = value.at();
        match name {
            "delivery" => once(&mut id, at, read_delivery(value)?),
            "upto" => once(&mut up_to, at, value.u64()?),
            _ => unknown(at, "delivery, upto"),
        }
    })?;
    let Some(id) = id else { return missing("delivery", start) };
    Ok(SettledDelivery { id, up_to })
}

fn read_failed(value: &mut Cursor<'_>) -> ReadResult<FailedDelivery> {
    let start = value.at();
    let (mut id, mut reason, mut retry_ms) = (None, None, None);
    value.object(|name, value| {
        let at = value.at();
        match name {
            "delivery" => once(&mut id, at, read_delivery(value)?),
            "reason" => once(&mut reason, at, read_reason(value)?),
            "retry_ms" => once(&mut retry_ms, at, read_most(value, MAX_MS)?),
            _ => unknown(at, "delivery, reason, retry_ms"),
        }
    })?;
    let Some(id) = id else { return missing("delivery", start) };
    Ok(FailedDelivery { id, reason: reason.unwrap_or_default(), retry_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::wire::json::document;

    #[test]
    fn names_of_deliveries_are_read_as_written() {
        for (generation, number, nonce, first) in
            [(1, 0, 0, 1), (1, 31, 0x008d_02e1, 9), (u64::MAX, u64::MAX, u64::MAX, u64::MAX)]
        {
            let id = DeliveryId { generation, number, nonce, first };
            assert_eq!(DeliveryName::parse(&DeliveryName(id).to_string()), Some(id));
        }
        for wrong in
            ["", "1.2.3", "1.2.3.4.5", "1..3.4", "1.+2.3.4", "g.1.1.1", "11111111111111111.1.1.1"]
        {
            assert_eq!(DeliveryName::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_turn_is_read() {
        let text = br#"{"worker":"w","turn":7,"want":16,"wait_ms":20,"durable":true,
            "done":["1.2.3.4",{"delivery":"1.4.5.6","upto":9}],
            "failed":[{"delivery":"1.6.7.8","reason":"no\nroute","retry_ms":5}],
            "park":[{"delivery":"1.8.9.a"}],"release":["1.a.b.c"]}"#;
        let turn = document(text, read_turn).expect("a turn");
        assert_eq!((turn.worker.as_str(), turn.turn, turn.want), ("w", 7, 16));
        assert_eq!(turn.done[1].up_to, Some(9));
        assert_eq!(
            (turn.failed[0].reason.as_str(), turn.failed[0].retry_ms),
            ("no\nroute", Some(5))
        );
        assert_eq!((turn.park.len(), turn.release.len(), turn.is_durable), (1, 1, true));
        for wrong in [
            r#"{"turn":1}"#,
            r#"{"worker":"w"}"#,
            r#"{"worker":"","turn":1}"#,
            r#"{"worker":"w","turn":1,"want":1001}"#,
            r#"{"worker":"w","turn":1,"wait_ms":1000000}"#,
            r#"{"worker":"w","turn":1,"done":["x"]}"#,
            r#"{"worker":"w","turn":1,"ack":[]}"#,
        ] {
            assert!(document(wrong.as_bytes(), read_turn).is_err(), "{wrong}");
        }
    }
}
