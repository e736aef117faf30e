//! Bugs planted in the trial itself, to show that they would be found.

/// A planted bug and the check that must find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Reads that should be linearizable ask for whatever a node has.
    StaleReads,
    /// An append that was never sent is recorded as done.
    LostAppend,
    /// An acknowledged append is sent again, as if a node did not recognize a retry.
    Twice,
    /// A 202 of `POST /e` is recorded for an event that was never sent.
    LostIngest,
    /// An order that was never sent is recorded as placed.
    Oversold,
}

impl Plant {
    pub(crate) const ALL: [Plant; 5] =
        [Plant::StaleReads, Plant::LostAppend, Plant::Twice, Plant::LostIngest, Plant::Oversold];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Plant::StaleReads => "stale-reads",
            Plant::LostAppend => "lost-append",
            Plant::Twice => "twice",
            Plant::LostIngest => "lost-ingest",
            Plant::Oversold => "oversold",
        }
    }

    /// The check that must find it.
    pub(crate) fn found_by(self) -> &'static str {
        match self {
            Plant::StaleReads => "judge",
            Plant::LostAppend | Plant::Twice => "appends",
            Plant::LostIngest => "ingest",
            Plant::Oversold => "stock",
        }
    }
}
