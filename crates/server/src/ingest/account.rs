//! What was accepted and what became of it: one source for `GET /v1/ingest` and `/metrics`.

use crate::config::{Config, IngestOverflow};
use wellspring_log::AcceptedStats;
use wellspring_log::batcher::{Amount, Batcher, Figures, PushError};

/// The account of one log. `accepted = stored + in_flight + dropped`, at any moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    /// Answered as accepted: through ingest, and appends with `"ack":"accepted"`.
    pub(crate) accepted: Amount,
    /// Made as durable as `--sync` says.
    pub(crate) stored: Amount,
    /// Refused because there was no room for them in memory; not part of `accepted`.
    pub(crate) shed: Amount,
    /// Appends with `"ack":"accepted"` that a full disk dropped afterwards. Never through ingest.
    pub(crate) dropped: Amount,
    figures: Figures,
    /// Whether events are refused because the device is full.
    pub(crate) full: bool,
}

impl Account {
    /// Of a log's own appends and of its batcher, if it has one.
    pub(crate) fn new(log: AcceptedStats, batcher: Option<&Batcher>) -> Account {
        let figures = batcher.map(Batcher::figures).unwrap_or_default();
        let full = batcher.and_then(Batcher::refusal) == Some(PushError::StorageFull);
        Account { full, ..Account::of_figures(log, figures) }
    }

    fn of_figures(log: AcceptedStats, figures: Figures) -> Account {
        Account {
            accepted: log.accepted.plus(figures.accepted),
            stored: log.stored.plus(figures.stored),
            shed: figures.shed,
            dropped: log.dropped,
            figures,
            full: false,
        }
    }

    /// Accepted, and in memory: what a crash right now would lose.
    pub(crate) fn in_flight(&self) -> Amount {
        self.accepted.minus(self.stored).minus(self.dropped)
    }

    /// Gauges besides the amounts: name, what it says, value.
    pub(crate) fn gauges(&self) -> [(&'static str, &'static str, f64); 4] {
        let figures = &self.figures;
        [
            (
                "wellspring_ingest_window_last_seconds",
                "Longest wait from acceptance to durability in the last flush.",
                figures.window_last_us as f64 / 1e6,
            ),
            (
                "wellspring_ingest_window_longest_seconds",
                "The longest such wait since the start.",
                figures.window_longest_us as f64 / 1e6,
            ),
            (
                "wellspring_ingest_partitions",
                "Partitions of serving threads.",
                figures.partitions as f64,
            ),
            (
                "wellspring_ingest_storage_full",
                "1 while events are refused because the device is full.",
                f64::from(u8::from(self.full)),
            ),
        ]
    }

    /// The document of `GET /v1/ingest`.
    pub(crate) fn to_json(self, config: &Config) -> String {
        let amount = |name: &str, amount: Amount| {
            format!(r#""{name}":{{"events":{},"bytes":{}}}"#, amount.events, amount.bytes)
        };
        let amounts = [
            amount("accepted", self.accepted),
            amount("stored", self.stored),
            amount("in_flight", self.in_flight()),
            amount("shed", self.shed),
            amount("dropped", self.dropped),
            amount("lost_possible", self.in_flight()),
        ];
        let overflow = match config.ingest_overflow {
            IngestOverflow::Block => "block",
            IngestOverflow::Shed => "shed",
        };
        format!(
            r#"{{{},"window":{{"flush_ms":{},"last_us":{},"longest_us":{}}},"overflow":"{overflow}","partitions":{},"partition_bytes":{}}}"#,
            amounts.join(","),
            config.ingest_flush_ms,
            self.figures.window_last_us,
            self.figures.window_longest_us,
            self.figures.partitions,
            config.ingest_partition_bytes,
        )
    }

    /// An account in which something was accepted, and nothing else has happened.
    #[cfg(test)]
    pub(crate) fn of_accepted(accepted: Amount) -> Account {
        Account { accepted, ..Account::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_adds_up() {
        let amount = |events| Amount { events, bytes: events * 10 };
        let log = AcceptedStats { accepted: amount(9), stored: amount(5), dropped: amount(1) };
        let figures = Figures {
            accepted: amount(20),
            stored: amount(18),
            shed: amount(4),
            ..Figures::default()
        };
        let account = Account::of_figures(log, figures);
        assert_eq!(account.in_flight(), amount(5));
        let json: serde_json::Value =
            serde_json::from_str(&account.to_json(&Config::for_tests(&[]))).unwrap();
        let events = |name: &str| json[name]["events"].as_u64().unwrap();
        assert_eq!(events("accepted"), events("stored") + events("in_flight") + events("dropped"));
        assert_eq!((events("shed"), events("lost_possible")), (4, 5));
        assert_eq!(json["overflow"], "block");
    }
}
