//! Where a log's events come from when the entries that held them were dropped.

use wellspring_log::shared::{Place, PlacedEntry, SharedLogError};

/// The copies that other nodes have of the logs.
pub trait CopySource: Send + Sync + 'static {
    /// The batches of a log after a place that took effect, each as one entry: at least one if any
    /// node has one, and about `max_bytes`. A repeated call may ask another node. Blocks.
    ///
    /// # Errors
    /// [`SharedLogError::Unavailable`].
    fn accepted_after(
        &self,
        log: &str,
        after: Place,
        max_bytes: usize,
    ) -> Result<Vec<PlacedEntry>, SharedLogError>;
}
