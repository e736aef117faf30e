//! Tasks that wait for the flusher to store something.

use super::sync::{Mutex, lock};
use super::wanted::WakeRequest;
use crate::waiters::{Line, Slots, Ticket, TooManyWaiters, Wakers};
use std::task::Waker;

/// Maximum number of waiting tasks.
const MAX_WAITERS: usize = 1 << 16;

/// Any number of tasks on one side and the flusher on the other, which takes the lock only if there
/// are any.
#[derive(Debug)]
pub(super) struct StoredWaiters {
    wanted: WakeRequest,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    slots: Slots,
    line: Line,
}

impl StoredWaiters {
    pub(super) fn new() -> StoredWaiters {
        let queue = Queue { slots: Slots::bounded(MAX_WAITERS), line: Line::EMPTY };
        StoredWaiters { wanted: WakeRequest::new(), queue: Mutex::new(queue) }
    }

    /// Registers a task, which keeps its ticket until [`leave`](Self::leave). A change after the
    /// task's next check wakes it.
    ///
    /// # Errors
    /// [`TooManyWaiters`]. A retry helps once others have stopped waiting.
    pub(super) fn register(
        &self,
        ticket: &mut Option<Ticket>,
        waker: &Waker,
    ) -> Result<(), TooManyWaiters> {
        let mut queue = lock(&self.queue);
        let Queue { slots, line } = &mut *queue;
        match ticket {
            Some(ticket) => slots.register(line, ticket, waker),
            None => *ticket = Some(slots.join(line, waker)?),
        }
        // Set under the lock, so that the flusher that takes the question finds the waker once it
        // gets the lock. Also set for a task registered earlier, because its next check must come
        // after the question.
        self.wanted.ask();
        Ok(())
    }

    /// Removes a task.
    pub(super) fn leave(&self, ticket: Ticket) {
        let mut queue = lock(&self.queue);
        let Queue { slots, line } = &mut *queue;
        slots.leave(line, ticket);
    }

    /// Wakes every registered task. To be called after the change that they wait for.
    pub(super) fn wake_all(&self) {
        if self.wanted.take() {
            // All at once: woken tasks may register again.
            let mut wakers = Wakers::unbounded();
            let mut queue = lock(&self.queue);
            let Queue { slots, line } = &mut *queue;
            slots.rouse(line, 0, &mut wakers);
            drop(queue);
            wakers.wake();
        }
    }

    /// Number of tasks that wait, or were woken and have not left yet.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        lock(&self.queue).slots.taken()
    }
}
