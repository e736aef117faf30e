//! Bugs that are planted in the trial itself, so that it is seen that they would be found.

/// A bug, and who has to object to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Reads said to be linearizable ask for what a node happens to have.
    StaleReads,
    /// An append is told to be done that was never sent.
    LostAppend,
    /// An acknowledged append is sent once more, as by a node that does not know a retry.
    Twice,
    /// A 202 of `POST /e` for an event that was never sent.
    LostIngest,
    /// An order is told to be placed that was never sent.
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

    /// The check that has to object.
    pub(crate) fn found_by(self) -> &'static str {
        match self {
            Plant::StaleReads => "judge",
            Plant::LostAppend | Plant::Twice => "appends",
            Plant::LostIngest => "ingest",
            Plant::Oversold => "stock",
        }
    }
}
