//! Asking the [`Fence`](crate::Fence) of a request: after the answer to a retry, before what only
//! the holder of its right may be told, and last of all before the request is staged.

use super::Sequencer;
use super::staged::Staging;
use crate::append::Append;
use crate::error::AppendError;

impl Sequencer {
    /// The epoch in which this node leads, or led last. It changes under the staging lock.
    pub(crate) fn current_epoch(&self) -> u64 {
        self.epoch.load(std::sync::atomic::Ordering::Acquire)
    }

    /// What a request is told: an error that only a holder may conclude from, only while its right
    /// is held. The right was held then when what the error names was appended, as none is gained
    /// again.
    pub(super) fn fence_first(&self, append: &Append, error: AppendError) -> AppendError {
        let concludes = matches!(error, AppendError::Conflict(_) | AppendError::Invalid(_));
        match &append.fence {
            Some(fence) if concludes => {
                fence.holds(self.current_epoch()).err().map_or(error, AppendError::Fenced)
            }
            _ => error,
        }
    }

    /// The last check of a request before it is staged. If it succeeds, the request must be staged.
    pub(super) fn pass_fence(&self, staging: &Staging, append: &Append) -> Result<(), AppendError> {
        let Some(fence) = &append.fence else { return Ok(()) };
        fence.stage(self.current_epoch(), staging.next).map_err(AppendError::Fenced)
    }
}
