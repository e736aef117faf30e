//! An answer as bytes, with the event that validates it.

use wellspring_types::Position;

/// An answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct RenderedAnswer {
    /// The last event that changed its content.
    pub(crate) changed_at: Position,
    pub(crate) content: Vec<u8>,
}
