//! Linearizable reads, polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use wellspring_log::{Log, NotConfirmed};
use wellspring_types::Position;

/// A read that waits to be confirmed.
pub struct Read {
    /// At which node.
    pub node: usize,
    /// At which of its processes.
    pub life: u64,
    /// The last position anybody had been told was durable when it began.
    pub floor: Position,
    confirm: Pin<Box<dyn Future<Output = Result<Position, NotConfirmed>>>>,
}

impl Read {
    /// Asks a node to confirm its end.
    #[must_use]
    pub fn new(node: usize, life: u64, log: Log, floor: Position) -> Read {
        Read { node, life, floor, confirm: Box::pin(async move { log.confirm().await }) }
    }

    /// The answer, if it is there.
    pub fn poll(&mut self) -> Option<Result<Position, NotConfirmed>> {
        match self.confirm.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }
}
