//! The server's own account of ingest, held against what a client saw: every 202 must be one stored
//! event.

use crate::{
    flags::Outcome,
    http1::{HttpConnection, number_after},
};
use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

/// How long what is in flight may take to be stored.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

/// `GET /v1/ingest` and `GET /v1/head` at one moment, in events.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    accepted: u64,
    stored: u64,
    in_flight: u64,
    dropped: u64,
    /// The position of the newest event in the log.
    pub(crate) head: u64,
}

impl Account {
    /// Reads it, over a connection of its own.
    pub(crate) fn read(address: &str) -> Outcome<Self> {
        let mut connection = HttpConnection::open(address)?;
        let mut get = |path: &str| -> Outcome<Vec<u8>> {
            let mut answer = Vec::new();
            match connection.call("GET", path, "", None, |part| answer.extend_from_slice(part))? {
                200 => Ok(answer),
                status => {
                    Err(format!("{path} answered {status}: {}", String::from_utf8_lossy(&answer))
                        .into())
                }
            }
        };
        let ingest: serde_json::Value = serde_json::from_slice(&get("/v1/ingest")?)?;
        let events = |name: &str| {
            ingest[name]["events"]
                .as_u64()
                .ok_or_else(|| format!("/v1/ingest has no {name}.events: {ingest}"))
        };
        let head = get("/v1/head")?;
        let head = number_after(&head, "head")
            .or_else(|| number_after(&head, "position"))
            .ok_or("/v1/head tells no position")?;
        Ok(Self {
            accepted: events("accepted")?,
            stored: events("stored")?,
            in_flight: events("in_flight")?,
            dropped: events("dropped")?,
            head,
        })
    }

    /// Waits until everything accepted is stored.
    pub(crate) fn settled(address: &str) -> Outcome<Self> {
        let until = Instant::now() + SETTLES_WITHIN;
        loop {
            let account = Self::read(address)?;
            if account.accepted == account.stored && account.in_flight == 0 {
                return Ok(account);
            }
            if Instant::now() > until {
                return Err(format!(
                    "not trusted: after {} s not all that was accepted is stored: {account:?}",
                    SETTLES_WITHIN.as_secs()
                )
                .into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Fails unless since `before` the log has grown by as many events as answers, which were
    /// durable.
    pub(crate) fn head_must_have_grown_by(
        &self,
        answered: RangeInclusive<u64>,
        before: &Self,
    ) -> Outcome<()> {
        match self.head.checked_sub(before.head) {
            Some(events) if answered.contains(&events) => Ok(()),
            _ => Err(format!(
                "not trusted: the client has {answered:?} answers, but the log grew from {} to {}",
                before.head, self.head
            )
            .into()),
        }
    }

    /// Fails unless since `before` as many events as answers were accepted, stored, and are in the
    /// log. The number is a range for a client that does not know of its very last answers.
    pub(crate) fn must_have_grown_by(
        &self,
        answered: RangeInclusive<u64>,
        before: &Self,
    ) -> Outcome<()> {
        let accepted = self.accepted.checked_sub(before.accepted);
        let stored = self.stored.checked_sub(before.stored);
        let head = self.head.checked_sub(before.head);
        if accepted.is_some_and(|events| answered.contains(&events))
            && [stored, head] == [accepted; 2]
            && self.dropped == before.dropped
        {
            return Ok(());
        }
        Err(format!(
            "not trusted: the client has {answered:?} answers, but before the run the server had {before:?} and \
             after it {self:?}"
        )
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_difference_is_an_error() {
        let before = Account { accepted: 5, stored: 5, in_flight: 0, dropped: 0, head: 7 };
        let after = Account { accepted: 15, stored: 15, in_flight: 0, dropped: 0, head: 17 };
        assert!(after.must_have_grown_by(10..=10, &before).is_ok());
        assert!(after.must_have_grown_by(9..=9, &before).is_err());
        assert!(after.must_have_grown_by(11..=11, &before).is_err());
        assert!(Account { head: 18, ..after }.must_have_grown_by(10..=10, &before).is_err());
        assert!(Account { stored: 14, ..after }.must_have_grown_by(10..=10, &before).is_err());
        assert!(Account { dropped: 1, ..after }.must_have_grown_by(10..=10, &before).is_err());
        assert!(after.must_have_grown_by(8..=10, &before).is_ok());
        assert!(Account { stored: 14, ..after }.must_have_grown_by(8..=10, &before).is_err());
        assert!(before.must_have_grown_by(10..=10, &after).is_err());
    }
}
