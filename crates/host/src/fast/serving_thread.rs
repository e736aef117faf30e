//! A serving thread, as its fast paths see it.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// May be called from any thread.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The stack a thread serves. A connection begins at the lean loop and may be handed over to the
/// general stack, never the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// The lean loop.
    Lean,
    /// The general stack.
    General,
}

/// One serving thread and one stack.
pub struct ServingThread {
    stack: Stack,
    wake: Wake,
    shared: RefCell<Vec<Rc<dyn Any>>>,
}

impl ServingThread {
    /// A thread without paths yet. `wake` makes it retry what waits: for room, or to be settled.
    pub fn new(stack: Stack, wake: Wake) -> ServingThread {
        ServingThread { stack, wake, shared: RefCell::default() }
    }

    /// The stack the thread serves.
    pub fn stack(&self) -> Stack {
        self.stack
    }

    /// Wakes the thread.
    pub fn wake(&self) -> Wake {
        Arc::clone(&self.wake)
    }

    /// State shared by several paths of this thread, one of each type: made on first use.
    pub fn shared<T: 'static>(&self, make: impl FnOnce(&ServingThread) -> T) -> Rc<T> {
        let known = self.shared.borrow().iter().find_map(|one| Rc::clone(one).downcast().ok());
        known.unwrap_or_else(|| {
            let made = Rc::new(make(self));
            self.shared.borrow_mut().push(Rc::clone(&made) as Rc<dyn Any>);
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_made_once_for_each_thread() {
        let thread = || ServingThread::new(Stack::Lean, Arc::new(|| {}));
        let (one, other) = (thread(), thread());
        let first = one.shared(|thread| (thread.stack(), 1));
        assert!(Rc::ptr_eq(&first, &one.shared(|_| (Stack::General, 2))));
        assert!(!Rc::ptr_eq(&first, &other.shared(|_| (Stack::Lean, 1))));
        assert_eq!(*one.shared(|_| "another type"), "another type");
    }
}
