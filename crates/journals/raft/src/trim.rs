//! Purges entries that the copies of this node hold.

use crate::group::{self, Checkpoints, Raft};
use crate::runtime::within;
use crate::shared_node::SharedNode;
use std::sync::Arc;
use std::time::Duration;

/// Time between looks.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Purges whole files of the WAL, except for the last `keep_bytes`, which a node that was away for
/// a moment needs.
pub(crate) async fn trim(
    shared: Arc<SharedNode>,
    raft: Raft,
    checkpoints: Arc<Checkpoints>,
    keep_bytes: u64,
) {
    loop {
        // Wakes earlier in tests, whose files are small.
        let _ = within(LOOK_AFTER, shared.has_copied.notified()).await;
        let (copied, starts) = shared.delivery.copied();
        let upto = shared.reader.purgeable(copied, keep_bytes).index;
        if upto <= shared.reader.purged().index {
            continue;
        }
        let Ok(Some(id)) = shared.reader.id(copied) else { continue };
        if checkpoints.newest().is_none_or(|newest| newest.id < id)
            && let Err(error) = checkpoints.make(id, starts).await
        {
            tracing::warn!(%error, "no entries are purged: a checkpoint could not be written");
            continue;
        }
        if !group::purge(&raft, id, upto).await {
            return;
        }
    }
}
