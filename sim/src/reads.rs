//! Linearizable reads, polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use wellspring_log::{Log, NotConfirmed};
use wellspring_types::Position;

/// A read waiting for confirmation.
pub struct PendingRead {
    /// The node.
    pub node: usize,
    /// The node's process.
    pub life: u64,
    /// The last position reported as durable to any client when it started.
    pub floor: Position,
    confirm: Pin<Box<dyn Future<Output = Result<Position, NotConfirmed>>>>,
}

impl PendingRead {
    /// Asks a node to confirm its end.
    #[must_use]
    pub fn new(node: usize, life: u64, log: Log, floor: Position) -> PendingRead {
        PendingRead { node, life, floor, confirm: Box::pin(async move { log.confirm().await }) }
    }

    /// The answer, once available.
    pub fn poll(&mut self) -> Option<Result<Position, NotConfirmed>> {
        match self.confirm.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}
