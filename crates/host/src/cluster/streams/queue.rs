//! What waits to be sent to a node: bounded, and dropped while there is no stream.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The messages for one stream.
pub(super) struct StreamQueue {
    most_bytes: usize,
    state: Mutex<QueueState>,
    moved: Notify,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Bytes>,
    bytes: usize,
    is_open: bool,
}

impl StreamQueue {
    pub(super) fn new(most_bytes: usize) -> StreamQueue {
        StreamQueue { most_bytes, state: Mutex::default(), moved: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream begins or ends: what was queued for an earlier one is dropped.
    pub(super) fn set_open(&self, is_open: bool) {
        *self.state() = QueueState { is_open, ..QueueState::default() };
    }

    /// Whether there is a stream.
    pub(super) fn is_open(&self) -> bool {
        self.state().is_open
    }

    /// Queues a message; without a stream, or if there is no room, it is dropped.
    pub(super) fn push(&self, message: Bytes) {
        let mut state = self.state();
        if state.is_open && state.bytes + message.len() <= self.most_bytes {
            state.bytes += message.len();
            state.messages.push_back(message);
            drop(state);
            self.moved.notify_one();
        }
    }

    /// Waits for messages, and takes all of them. They count until they are [written](Self::sent).
    pub(super) async fn take(&self) -> VecDeque<Bytes> {
        loop {
            let messages = std::mem::take(&mut self.state().messages);
            if !messages.is_empty() {
                return messages;
            }
            self.moved.notified().await;
        }
    }

    /// So many bytes were written.
    pub(super) fn sent(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_or_has_no_stream_is_dropped() {
        let queue = StreamQueue::new(10);
        queue.push(Bytes::from_static(b"early"));
        queue.set_open(true);
        for message in ["12345", "67890", "more"] {
            queue.push(Bytes::from_static(message.as_bytes()));
        }
        assert_eq!(queue.take().await, ["12345", "67890"]);
        queue.push(Bytes::from_static(b"under way"));
        queue.sent(10);
        queue.push(Bytes::from_static(b"now"));
        assert_eq!(queue.take().await, ["now"]);
    }
}
