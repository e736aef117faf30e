//! What waits to be sent to a node: bounded, and dropped while there is no stream. It leaves by the
//! stream that this node has dialed, or else by one that the other has.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Who has dialed a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialer {
    ThisNode = 0,
    Other = 1,
}

/// The messages for one channel to a node.
pub(super) struct StreamQueue {
    most_bytes: usize,
    state: Mutex<QueueState>,
    /// For the streams of each dialer.
    moved: [Notify; 2],
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// Streams of each dialer.
    open: [usize; 2],
}

impl QueueState {
    /// Whose streams carry the messages.
    fn carrier(&self) -> Option<Dialer> {
        [Dialer::ThisNode, Dialer::Other].into_iter().find(|dialer| self.open[*dialer as usize] > 0)
    }
}

/// A stream that lasts until this is dropped.
pub(super) struct OpenStream<'a>(&'a StreamQueue, Dialer);

impl Drop for OpenStream<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open[self.1 as usize] -= 1;
        if state.carrier().is_none() {
            // Nobody waits for it any more when there is one again.
            *state = QueueState::default();
        }
        drop(state);
        self.0.moved.iter().for_each(Notify::notify_one);
    }
}

impl StreamQueue {
    pub(super) fn new(most_bytes: usize) -> StreamQueue {
        StreamQueue { most_bytes, state: Mutex::default(), moved: Default::default() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream begins.
    pub(super) fn open(&self, dialer: Dialer) -> OpenStream<'_> {
        self.state().open[dialer as usize] += 1;
        OpenStream(self, dialer)
    }

    /// Whether there is a stream.
    pub(super) fn is_open(&self) -> bool {
        self.state().carrier().is_some()
    }

    /// Queues a message; without a stream, or if there is no room, it is dropped.
    pub(super) fn push(&self, message: Bytes) {
        let mut state = self.state();
        if let Some(carrier) = state.carrier()
            && state.bytes + message.len() <= self.most_bytes
        {
            state.bytes += message.len();
            state.messages.push_back(message);
            drop(state);
            self.moved[carrier as usize].notify_one();
        }
    }

    /// Waits for messages that streams of this dialer carry, and takes all of them. They count
    /// until they are [written](Self::sent).
    pub(super) async fn take(&self, dialer: Dialer) -> VecDeque<Bytes> {
        loop {
            {
                let mut state = self.state();
                if state.carrier() == Some(dialer) && !state.messages.is_empty() {
                    return std::mem::take(&mut state.messages);
                }
            }
            self.moved[dialer as usize].notified().await;
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
        let open = queue.open(Dialer::ThisNode);
        for message in ["12345", "67890", "more"] {
            queue.push(Bytes::from_static(message.as_bytes()));
        }
        assert_eq!(queue.take(Dialer::ThisNode).await, ["12345", "67890"]);
        queue.push(Bytes::from_static(b"under way"));
        queue.sent(10);
        queue.push(Bytes::from_static(b"now"));
        assert_eq!(queue.take(Dialer::ThisNode).await, ["now"]);
        // The other one's stream carries what this node's would have.
        queue.sent(3);
        let other = queue.open(Dialer::Other);
        queue.push(Bytes::from_static(b"rest"));
        drop(open);
        assert_eq!(queue.take(Dialer::Other).await, ["rest"]);
        drop(other);
        assert!(!queue.is_open());
    }
}
