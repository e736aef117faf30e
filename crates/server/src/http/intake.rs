//! A serving thread's way of taking events in, on the general stack.

use super::Host;
use crate::ingest::{Intake, Order};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::Notify;

thread_local! {
    /// This serving thread's way in, made when it is first needed.
    static INTAKE: RefCell<Option<(Intake, Arc<Notify>)>> = const { RefCell::new(None) };
}

/// Runs `act` on the thread's intake. Nothing is awaited within.
pub(crate) fn with_intake<T>(
    host: &Arc<Host>,
    act: impl FnOnce(&mut Intake) -> T,
) -> (T, Arc<Notify>) {
    INTAKE.with_borrow_mut(|slot| {
        let (intake, notify) = slot.get_or_insert_with(|| {
            let notify = Arc::new(Notify::new());
            let woken = Arc::clone(&notify);
            let wake = Arc::new(move || woken.notify_waiters());
            (Intake::new(host.ingest(), Order::Second, wake), notify)
        });
        (act(intake), Arc::clone(notify))
    })
}
