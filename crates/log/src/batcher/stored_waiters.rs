//! Tasks that wait for the flusher to have stored something.

use super::sync::{Mutex, lock};
use super::wanted::Wanted;
use crate::waiters::{Line, Slots, Ticket, TooManyWaiters, Wakers};
use std::task::Waker;

/// Most tasks that may wait at a time.
const MAX_WAITERS: usize = 1 << 16;

/// Any number of tasks on one side, the flusher on the other, which takes the lock only if there
/// are any.
#[derive(Debug)]
pub(super) struct StoredWaiters {
    wanted: Wanted,
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
        StoredWaiters { wanted: Wanted::new(), queue: Mutex::new(queue) }
    }

    /// Registers a task, which keeps its ticket and gives it back with [`leave`](Self::leave). What
    /// it then finds unchanged will be followed by its waking.
    ///
    /// # Errors
    /// [`TooManyWaiters`]. A retry helps when others have stopped waiting.
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
        // Under the lock: the flusher that takes the question finds the waker when it gets the
        // lock. Also for a task known already, because what it finds must be newer than the
        // question.
        self.wanted.ask();
        Ok(())
    }

    /// Forgets a task.
    pub(super) fn leave(&self, ticket: Ticket) {
        let mut queue = lock(&self.queue);
        let Queue { slots, line } = &mut *queue;
        slots.leave(line, ticket);
    }

    /// Wakes every task registered. To be called after the change that they wait for.
    pub(super) fn wake_all(&self) {
        if self.wanted.take() {
            // At once: tasks that were woken may register again.
            let mut wakers = Wakers::unbounded();
            let mut queue = lock(&self.queue);
            let Queue { slots, line } = &mut *queue;
            slots.rouse(line, 0, &mut wakers);
            drop(queue);
            wakers.wake();
        }
    }

    /// Tasks that wait, or have been woken and have not left yet.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        lock(&self.queue).slots.taken()
    }
}
