//! Removes backups and the segments that only they needed.

use crate::catalog::{Catalog, Manifests};
use crate::fault::{BackupError, BackupResult};
use crate::manifest::{Manifest, begun_file, manifest_file};
use crate::names::is_segment_file;
use crate::retention::{Retained, StayingBackup};
use crate::store::Store;
use crate::writer_marks::Pruning;
use std::collections::HashSet;

/// The result of removing backups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Names of the removed backups, finished or not.
    pub backups: Vec<String>,
    /// Number of removed segments.
    pub segments: u64,
    /// Bytes of the removed segments.
    pub bytes: u64,
    /// Backups that retention never removes, the oldest first.
    pub staying: Vec<StayingBackup>,
}

/// Keeps the newest `keep` finished backups, at least one, and removes the others, unfinished ones
/// that are not in progress, and every segment that no remaining backup needs. Only backups that
/// the newest one replaces are counted and removed: those with another history of one of its logs,
/// of another server, or with events that it lacks, [stay](StayingBackup). While another process
/// takes a backup to the store, no segment is removed.
///
/// # Errors
/// [`BackupError::UnreadableManifests`]: nothing is removed. Or another [`BackupError`]; a retry
/// removes the rest.
pub fn prune(store: &mut dyn Store, keep: usize) -> BackupResult<Pruned> {
    let pruning = Pruning::begin(store)?;
    let pruned = remove_old(store, keep, &pruning);
    let ended = pruning.end(store);
    let pruned = pruned?;
    ended.map(|()| pruned)
}

/// Removes these backups, finished or not, and every segment that no remaining backup needs. While
/// another process takes a backup to the store, no segment is removed.
///
/// # Errors
/// [`BackupError::NotFound`] for a name that no backup has, [`BackupError::Busy`] for one that
/// may be in progress: nothing is removed then. Or another [`BackupError`]; a retry removes the
/// rest.
pub fn remove(store: &mut dyn Store, names: &[String]) -> BackupResult<Pruned> {
    let pruning = Pruning::begin(store)?;
    let pruned = remove_named(store, names, &pruning);
    let ended = pruning.end(store);
    let pruned = pruned?;
    ended.map(|()| pruned)
}

fn remove_old(store: &mut dyn Store, keep: usize, pruning: &Pruning) -> BackupResult<Pruned> {
    let Catalog { finished, unfinished } = Catalog::of(store)?;
    if finished.is_empty() {
        return Ok(Pruned::default());
    }
    let manifests = manifests(store, &finished)?;
    let Retained { old, recent, staying } = Retained::of(&manifests, keep);
    let kept = recent.iter().copied().chain(staying.iter().map(|(manifest, _)| *manifest));
    let needed = kept.flat_map(Manifest::files).collect();
    let mut abandoned = Vec::new();
    let mut under_way = UnderWay::None;
    for name in unfinished {
        if pruning.is_abandoned(store, &name)? {
            abandoned.push(name)
        } else {
            under_way = UnderWay::Some
        }
    }
    let named =
        |(manifest, reason): (&Manifest, _)| StayingBackup { name: manifest.name.clone(), reason };
    let staying = staying.into_iter().map(named).collect();
    let mut pruned = Pruned { staying, ..Pruned::default() };
    for manifest in old {
        pruned.remove_backup(store, &manifest_file(&manifest.name), &manifest.name)?;
    }
    for name in &abandoned {
        pruned.remove_backup(store, &begun_file(name), name)?;
    }
    pruned.remove_segments(store, pruning, &needed, under_way)?;
    Ok(pruned)
}

fn remove_named(
    store: &mut dyn Store,
    names: &[String],
    pruning: &Pruning,
) -> BackupResult<Pruned> {
    let Catalog { mut finished, mut unfinished } = Catalog::of(store)?;
    let is_known = |name: &&String| finished.contains(name) || unfinished.contains(name);
    let unknown: Vec<&str> =
        names.iter().filter(|name| !is_known(name)).map(String::as_str).collect();
    if !unknown.is_empty() {
        let what = format!("{} holds no backup {}", store.place(), unknown.join(", "));
        return Err(BackupError::NotFound { what });
    }
    let mut files = Vec::new();
    for name in names {
        if finished.contains(name) {
            files.push((manifest_file(name), name));
        } else if pruning.is_abandoned(store, name)? {
            files.push((begun_file(name), name));
        } else {
            return Err(BackupError::Busy(format!("the backup {name} may be under way")));
        }
    }
    finished.retain(|name| !names.contains(name));
    let remaining = manifests(store, &finished)?;
    let needed = remaining.iter().flat_map(Manifest::files).collect();
    unfinished.retain(|name| !names.contains(name));
    let mut under_way = UnderWay::None;
    for name in &unfinished {
        if !pruning.is_abandoned(store, name)? {
            under_way = UnderWay::Some;
        }
    }
    let mut pruned = Pruned::default();
    for (file, name) in files {
        pruned.remove_backup(store, &file, name)?;
    }
    pruned.remove_segments(store, pruning, &needed, under_way)?;
    Ok(pruned)
}

/// Whether other processes take backups to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnderWay {
    None,
    Some,
}

impl Pruned {
    fn remove_backup(&mut self, store: &mut dyn Store, file: &str, name: &str) -> BackupResult<()> {
        store.remove(file)?;
        self.backups.push(name.to_owned());
        Ok(())
    }

    /// Removes the segments that no manifest names, whatever history they are of.
    fn remove_segments(
        &mut self,
        store: &mut dyn Store,
        pruning: &Pruning,
        needed: &HashSet<String>,
        under_way: UnderWay,
    ) -> BackupResult<()> {
        if under_way == UnderWay::Some {
            // Segments that no manifest names may be those of a backup under way.
            return Ok(());
        }
        for (file, bytes) in store.list("segments/")? {
            if needed.contains(&file) || !is_segment_file(&file) {
                continue;
            }
            if !pruning.has_time() {
                break;
            }
            store.remove(&file)?;
            self.segments += 1;
            self.bytes += bytes;
        }
        Ok(())
    }
}

/// The manifests of these backups. All of them have to be readable, or it would be unknown which
/// segments are needed.
fn manifests(store: &mut dyn Store, names: &[String]) -> BackupResult<Vec<Manifest>> {
    match Manifests::of(store, names) {
        Manifests { read, unreadable } if unreadable.is_empty() => Ok(read),
        Manifests { unreadable, .. } => {
            let place = store.place();
            Err(BackupError::UnreadableManifests { place, manifests: unreadable })
        }
    }
}
