//! The account of events accepted before they were durable: one source for `GET /v1/ingest` and
//! `/metrics`.

use wellspring_log::AcceptedStats;
use wellspring_log::batcher::{Amount, Batcher, Figures, PushError};

/// The account of one log. `accepted = stored + in_flight + dropped`, at any moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct IngestAccount {
    /// Answered as accepted: by ingest, and appends with `"ack":"accepted"`.
    pub accepted: Amount,
    /// Made as durable as `--sync` says.
    pub stored: Amount,
    /// Refused for lack of memory; not part of `accepted`.
    pub shed: Amount,
    /// Appends with `"ack":"accepted"` that a full disk dropped afterwards. Never through ingest.
    pub dropped: Amount,
    /// The batcher's counts.
    pub figures: Figures,
    /// Whether events are refused because the device is full.
    pub full: bool,
}

impl IngestAccount {
    /// For a log's own appends and its batcher, if it has one.
    pub(crate) fn new(log: AcceptedStats, batcher: Option<&Batcher>) -> IngestAccount {
        let figures = batcher.map(Batcher::figures).unwrap_or_default();
        let full = batcher.and_then(Batcher::refusal) == Some(PushError::StorageFull);
        IngestAccount { full, ..IngestAccount::of_figures(log, figures) }
    }

    fn of_figures(log: AcceptedStats, figures: Figures) -> IngestAccount {
        IngestAccount {
            accepted: log.accepted.plus(figures.accepted),
            stored: log.stored.plus(figures.stored),
            shed: figures.shed,
            dropped: log.dropped,
            figures,
            full: false,
        }
    }

    /// Accepted and in memory: what a crash now would lose.
    pub fn in_flight(&self) -> Amount {
        self.accepted.minus(self.stored).minus(self.dropped)
    }

    /// Gauges apart from the amounts: name, description, value.
    pub(crate) fn gauges(&self) -> [(&'static str, &'static str, f64); 4] {
        let figures = &self.figures;
        [
            (
                "wellspring_ingest_window_last_seconds",
                "Longest time from acceptance to durability in the last flush.",
                figures.window_last_us as f64 / 1e6,
            ),
            (
                "wellspring_ingest_window_longest_seconds",
                "Longest time from acceptance to durability since the start.",
                figures.window_longest_us as f64 / 1e6,
            ),
            (
                "wellspring_ingest_partitions",
                "Ingest partitions, one for each serving thread.",
                figures.partitions as f64,
            ),
            (
                "wellspring_ingest_storage_full",
                "1 while events are refused because the device is full.",
                f64::from(u8::from(self.full)),
            ),
        ]
    }

    /// An account with accepted events only.
    #[cfg(test)]
    pub(crate) fn of_accepted(accepted: Amount) -> IngestAccount {
        IngestAccount { accepted, ..IngestAccount::default() }
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
        let account = IngestAccount::of_figures(log, figures);
        assert_eq!(account.in_flight(), amount(5));
        let events = |amount: Amount| amount.events;
        assert_eq!(
            events(account.accepted),
            events(account.stored) + events(account.in_flight()) + events(account.dropped)
        );
        assert_eq!(account.shed, amount(4));
    }
}
