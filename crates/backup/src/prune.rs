//! Retention: removing the oldest backups, and what only they needed.

use crate::catalog::{self, Catalog};
use crate::fault::Outcome;
use crate::manifest::{begun_file, manifest_file};
use crate::store::Store;
use std::collections::HashSet;

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Names of backups, finished or not.
    pub backups: Vec<String>,
    /// Segments that no backup needs any more.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Keeps the newest `keep` finished backups, at least one, and removes the others, unfinished ones
/// that are older than the newest, and every segment that no remaining backup needs. Nothing else
/// may write to the store meanwhile.
///
/// # Errors
/// [`BackupError`](crate::BackupError). What was not removed yet can be removed by another attempt.
pub fn prune(store: &mut dyn Store, keep: usize) -> Outcome<Pruned> {
    let Catalog { finished, unfinished } = Catalog::of(store)?;
    let Some(newest) = finished.last() else { return Ok(Pruned::default()) };
    let mut pruned = Pruned::default();
    let (old, kept) = finished.split_at(finished.len() - keep.clamp(1, finished.len()));
    // All of these have to be readable, or it would be unknown which segments are needed.
    let mut needed = HashSet::new();
    for name in kept {
        needed.extend(catalog::manifest(store, name)?.files());
    }
    for name in old {
        store.remove(&manifest_file(name))?;
        pruned.backups.push(name.clone());
    }
    for name in unfinished.iter().filter(|name| *name < newest) {
        store.remove(&begun_file(name))?;
        pruned.backups.push(name.clone());
    }
    if unfinished.iter().any(|name| name > newest) {
        // Segments that no manifest names may be those of a backup under way.
        return Ok(pruned);
    }
    for (file, bytes) in store.list("segments/")? {
        if !needed.contains(&file) {
            store.remove(&file)?;
            pruned.segments += 1;
            pruned.bytes += bytes;
        }
    }
    Ok(pruned)
}
