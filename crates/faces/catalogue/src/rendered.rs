//! An answer as bytes, with the event that tells whether it still holds.

use wellspring_types::Position;

/// An answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct RenderedAnswer {
    /// The last event that changed what it shows.
    pub(crate) changed_at: Position,
    pub(crate) content: Vec<u8>,
}
