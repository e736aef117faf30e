//! The head as something to wait for: blocking, or from any async runtime.

use std::task::{Context, Poll};
use std::time::Duration;
use wellspring_types::Position;

/// Tells when the head moves.
#[derive(Debug, Clone)]
pub struct Feed;

impl Feed {
    /// Waits until the head is past `position`, the log closes, or `timeout` passes; returns the head.
    pub fn wait_past(&self, position: Position, timeout: Duration) -> Position {
        todo!("{position} {timeout:?}")
    }

    /// Ready with the head once it is past `position` (or the log is closed); otherwise the task is woken then.
    /// Spurious wake-ups are possible; call again.
    pub fn poll_past(&self, position: Position, context: &mut Context<'_>) -> Poll<Position> {
        todo!("{position} {context:?}")
    }

    /// Whether the log has been closed: the head will not move again.
    pub fn is_closed(&self) -> bool {
        todo!()
    }
}
