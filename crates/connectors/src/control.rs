//! The stop signal of a running connector.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The stop signal of one connector, shared by its thread and its owner.
#[derive(Debug, Default)]
pub struct Control {
    stopping: Mutex<bool>,
    told: Condvar,
}

impl Control {
    /// Asks the connector to stop. It stops within about 100 ms, or once the current call has
    /// returned.
    pub fn stop(&self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    /// Whether the connector has been asked to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for `time` or until the connector is asked to stop; returns whether it was.
    pub fn sleep(&self, time: Duration) -> bool {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let slept = self.told.wait_timeout_while(stopping, time, |stopping| !*stopping);
        *slept.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_sleeper_is_woken_by_the_stop() {
        let control = Arc::new(Control::default());
        assert!(!control.sleep(Duration::from_millis(1)));
        let stopper = Arc::clone(&control);
        std::thread::scope(|scope| {
            scope.spawn(move || stopper.stop());
            assert!(control.sleep(Duration::from_secs(600)));
        });
        assert!(control.is_stopping());
    }
}
