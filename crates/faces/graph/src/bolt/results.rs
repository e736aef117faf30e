//! The rows of a statement, framed while it ran, until they are pulled.

use crate::run::{Results, Summary};
use wellspring_bolt::{FetchAmount, measure_messages};

/// A result that has not been pulled to its end. It holds the memory granted to its rows.
pub(super) struct BufferedResult {
    results: Results,
    summary: Summary,
    /// Bytes that were pulled or discarded.
    at: usize,
    rows_left: u64,
}

/// Rows that a client asked for.
pub(super) struct Portion<'a> {
    /// Framed messages.
    pub(super) rows: &'a [u8],
    pub(super) has_more: bool,
}

impl BufferedResult {
    /// The result of a statement that was executed without a fault.
    pub(super) fn new(mut results: Results) -> Option<BufferedResult> {
        let summary = results.summary.take()?;
        Some(BufferedResult { results, rows_left: summary.rows, summary, at: 0 })
    }

    pub(super) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The next rows.
    pub(super) fn take(&mut self, amount: FetchAmount) -> Portion<'_> {
        let left = &self.results.bytes[self.at..];
        let (rows, count) = match amount {
            FetchAmount::Rows(most) if most < self.rows_left => {
                let measured = measure_messages(left, most);
                (&left[..measured.bytes], measured.messages)
            }
            _ => (left, self.rows_left),
        };
        self.at += rows.len();
        self.rows_left -= count;
        Portion { rows, has_more: self.rows_left > 0 }
    }
}
