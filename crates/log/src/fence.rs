//! Fences: rights that an append needs besides its condition, such as a lease. The log asks for
//! them in the order that makes an answer mean something, and knows none of them.
//!
//! A right is held in memory by something else and can be lost while its append is under way. So it
//! is checked where the append gets its positions: if the right is taken away afterwards, the
//! events of the former holder come before those of the next. A refusal by a fence comes after the
//! answer to a retry and before a failed condition: a former holder meets the events of its
//! successor, and would take each conflict for work that it has done itself.

use std::fmt;
use wellspring_types::Position;

/// A right that an append needs. It is lost once and for all: what it refuses as lost, it never
/// allows again.
///
/// Its methods are called on the threads that append, some with the staging lock held. They must be
/// quick and never call the log; a lock of their own must not be held by anybody who calls it.
pub trait Fence: fmt::Debug + Send + Sync {
    /// Whether the right is held. Asked before the request is told something that only a holder
    /// may conclude from: that its condition failed, or that its times do not fit.
    ///
    /// `epoch` is that in which this node leads the log, or led it last. With the staging lock
    /// held, and so in [`stage`](Self::stage), it is the epoch in which the request gets its
    /// positions.
    ///
    /// # Errors
    /// [`FenceRefusal`].
    fn holds(&self, epoch: u64) -> Result<(), FenceRefusal>;

    /// The last check before the request is staged, with the staging lock held. If this succeeds,
    /// the request is staged, and its first event is at `first` unless it is set back. This may
    /// change something: a right that ends with time, say, may go on until the outcome is known.
    ///
    /// It is called once for a request that nothing else refuses. It is not called for a retry,
    /// which is answered by its first attempt, nor for a request that is refused before.
    ///
    /// **The outcome** is what the request's [`Completion`](crate::Completion) says. After a
    /// success here it is called exactly once, on any thread, without locks, perhaps before the
    /// call that appends returns:
    ///
    /// | the completion says | the request |
    /// |---|---|
    /// | `Ok`, not `replayed` | is durable. Readers may have seen it a moment before |
    /// | [`StorageFull`], [`Unavailable`] | was set back: it is not in the log, and never will be |
    /// | [`NotLeading`], [`Closed`] | was set back, and this process accepts no more appends in this epoch |
    /// | [`Unknown`] | may be durable or not; this process accepts no more appends in this epoch |
    ///
    /// There is no other error after a success. Under [`Ack::Accepted`](crate::Ack::Accepted) the
    /// completion says `Ok` as soon as the request is staged, and a setback is not reported: a
    /// fence that must know needs [`Ack::Durable`](crate::Ack::Durable). A completion that is
    /// dropped without a call, by a panic of the log, leaves the outcome unknown.
    ///
    /// # Errors
    /// [`FenceRefusal`]. The request is refused and has no effect.
    ///
    /// [`StorageFull`]: crate::AppendError::StorageFull
    /// [`Unavailable`]: crate::AppendError::Unavailable
    /// [`NotLeading`]: crate::AppendError::NotLeading
    /// [`Closed`]: crate::AppendError::Closed
    /// [`Unknown`]: crate::AppendError::Unknown
    fn stage(&self, epoch: u64, first: Position) -> Result<(), FenceRefusal> {
        let _ = first;
        self.holds(epoch)
    }
}

/// Why a fence refuses an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FenceRefusal {
    /// The lease has expired or has another holder. Acquire it again and read again.
    LeaseLost,
    /// The delivery is no longer its worker's. Drop it.
    DeliveryLost,
    /// Another append that settles the delivery is staged. Retry once its outcome is known.
    DeliveryStaged,
    /// What appends the request is of an earlier epoch, or was replaced.
    Outdated,
}

impl fmt::Display for FenceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FenceRefusal::LeaseLost => "the lease has expired or has another holder",
            FenceRefusal::DeliveryLost => "the delivery is no longer held by this worker",
            FenceRefusal::DeliveryStaged => {
                "another append that settles the delivery is being made durable"
            }
            FenceRefusal::Outdated => "what the append was made from is out of date",
        })
    }
}
