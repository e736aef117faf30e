//! Retention: removing the oldest backups, and what only they needed.

use crate::catalog::{self, Catalog};
use crate::fault::Outcome;
use crate::manifest::{Manifest, begun_file, manifest_file};
use crate::marks::Pruning;
use crate::names::is_segment_file;
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
/// that are not under way, and every segment that no remaining backup needs. Only backups that
/// share a history with the newest count and go: those of another server, or of this one before it
/// was restored, are kept. While another process takes a backup to the store, no segment is
/// removed.
///
/// # Errors
/// [`BackupError`](crate::BackupError). What was not removed yet can be removed by another attempt.
pub fn prune(store: &mut dyn Store, keep: usize) -> Outcome<Pruned> {
    let pruning = Pruning::begin(store)?;
    let pruned = remove_old(store, keep, &pruning);
    let ended = pruning.end(store);
    let pruned = pruned?;
    ended.map(|()| pruned)
}

fn remove_old(store: &mut dyn Store, keep: usize, pruning: &Pruning) -> Outcome<Pruned> {
    let Catalog { finished, unfinished } = Catalog::of(store)?;
    let mut pruned = Pruned::default();
    if finished.is_empty() {
        return Ok(pruned);
    }
    // All of them have to be readable, or it would be unknown which segments are needed.
    let manifests: Vec<Manifest> =
        finished.iter().map(|name| catalog::manifest(store, name)).collect::<Outcome<_>>()?;
    let newest_histories = manifests.last().map(histories).unwrap_or_default();
    let (same, foreign): (Vec<_>, Vec<_>) =
        manifests.iter().partition(|manifest| !histories(manifest).is_disjoint(&newest_histories));
    let (old, kept) = same.split_at(same.len() - keep.clamp(1, same.len()));
    let mut needed = HashSet::new();
    for manifest in kept.iter().chain(&foreign) {
        needed.extend(manifest.files());
    }
    for Manifest { name, .. } in old {
        store.remove(&manifest_file(name))?;
        pruned.backups.push(name.clone());
    }
    let mut is_written_to = false;
    for name in unfinished {
        if pruning.is_abandoned(store, &name)? {
            store.remove(&begun_file(&name))?;
            pruned.backups.push(name);
        } else {
            is_written_to = true;
        }
    }
    if is_written_to {
        // Segments that no manifest names may be those of a backup under way.
        return Ok(pruned);
    }
    for (file, bytes) in store.list("segments/")? {
        if needed.contains(&file) || !is_segment_file(&file) {
            continue;
        }
        if !pruning.has_time() {
            break;
        }
        store.remove(&file)?;
        pruned.segments += 1;
        pruned.bytes += bytes;
    }
    Ok(pruned)
}

/// The ids of the histories in a backup.
fn histories(manifest: &Manifest) -> HashSet<&str> {
    manifest.logs.iter().map(|log| log.history.as_str()).collect()
}
