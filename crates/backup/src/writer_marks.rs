//! Coordinates several writers of one store by empty files, called marks.
//!
//! A folder is locked, so it has one writer. An object store has no lock that ends with the process
//! that holds it, so backups and prunings there use marks: each writer creates its own mark first
//! and then looks for others. Of two writers, at least one sees the other. A pruning that sees a
//! backup removes no segment; a backup that sees a pruning does not begin. The age of a mark is the
//! difference of two times that the store itself assigned, so the writers' clocks do not matter.
//!
//! Marks outlive a process that is killed, so they expire: a `begun` after 7 days, a `pruning`
//! after an hour, and a pruning stops by itself after 30 minutes. Before it writes its manifest, a
//! backup checks that its mark and all its segments still exist. Not covered: a backup of more than
//! 7 days that loses its mark between that check and its manifest; a delete request that takes more
//! than half an hour; a store that ignores `If-None-Match`, where two backups of the same second
//! can get the same name. If backups to a bucket always overlap, its segments are never removed.

use crate::catalog::Catalog;
use crate::fault::{BackupError, BackupResult};
use crate::manifest::{Manifest, begun_file};
use crate::store::{Claim, Store, put};
use std::collections::HashMap;
use wellspring_format::segment::draw_salt;
use wellspring_log::{Clock, SystemClock};

const MINUTE_US: u64 = 60 * 1_000_000;
/// Age after which a backup counts as abandoned, in a store with several writers.
pub(crate) const LONGEST_BACKUP_US: u64 = 7 * 24 * 60 * MINUTE_US;
/// A pruning stops after this time; the next one continues.
const LONGEST_PRUNING_US: u64 = 30 * MINUTE_US;
/// Age after which a pruning and its last request have ended.
pub(crate) const PRUNING_ENDED_US: u64 = 60 * MINUTE_US;
/// Maximum number of names tried for one backup.
const MOST_NAMES: usize = 100;

fn is_pruning_mark(file: &str) -> bool {
    file.ends_with(".pruning")
}

/// The marks of prunings in a store.
fn pruning_marks(store: &mut dyn Store) -> BackupResult<Vec<String>> {
    let files = store.list("backups/")?.into_iter().map(|(file, _)| file);
    Ok(files.filter(|file| is_pruning_mark(file)).collect())
}

/// Whether `file` was written more than `us` before `now`, this process's own mark. True for every
/// file of a store whose only writer is this process.
fn is_older(store: &mut dyn Store, file: &str, now: &str, us: u64) -> BackupResult<bool> {
    let Some(shared) = store.shared() else { return Ok(true) };
    let (Some(written_us), Some(now_us)) = (shared.written_us(file)?, shared.written_us(now)?)
    else {
        // Removed meanwhile; if it was the own mark, every other mark must count.
        return Ok(false);
    };
    Ok(now_us.saturating_sub(written_us) > us)
}

/// Marks a backup as begun, under a unique name; `name_of` returns one that sorts after those in a
/// catalog. Returns the name and the earlier backups.
///
/// # Errors
/// [`BackupError::Busy`] while another process removes old backups.
pub(crate) fn begin_backup(
    store: &mut dyn Store,
    name_of: &dyn Fn(&Catalog) -> String,
) -> BackupResult<(String, Catalog)> {
    for _ in 0..MOST_NAMES {
        let earlier = Catalog::of(store)?;
        let name = name_of(&earlier);
        let mark = begun_file(&name);
        let claimed = match store.shared() {
            Some(shared) => shared.claim(&mark, &format!("{:016x}", draw_salt()))?,
            None => put(store, &mark, b"").map(|()| Claim::Made)?,
        };
        if claimed == Claim::Taken {
            continue;
        }
        if let Err(error) = refuse_pruning(store, &mark) {
            let _ = store.remove(&mark);
            return Err(error);
        }
        return Ok((name, earlier));
    }
    let what = format!("other backups to {} keep taking the name of this one", store.place());
    Err(BackupError::Busy(what))
}

fn refuse_pruning(store: &mut dyn Store, own_mark: &str) -> BackupResult<()> {
    for other in pruning_marks(store)? {
        if !is_older(store, &other, own_mark, PRUNING_ENDED_US)? {
            let what = format!(
                "another process is removing old backups from {}; try again in a few minutes (one \
                 that was killed counts for an hour)",
                store.place()
            );
            return Err(BackupError::Busy(what));
        }
    }
    Ok(())
}

/// Checks, before a backup counts as finished, that no other writer has removed a file of it.
///
/// # Errors
/// [`BackupError::Busy`]; a retry adds the missing files.
pub(crate) fn check_begun(store: &mut dyn Store, manifest: &Manifest) -> BackupResult<()> {
    if store.shared().is_none() {
        return Ok(());
    }
    let refused = |what: String| {
        let what = format!("{what} was removed while the backup was taken: take another one");
        Err(BackupError::Busy(what))
    };
    let mark = begun_file(&manifest.name);
    if !store.list("backups/")?.iter().any(|(file, _)| *file == mark) {
        return refused(format!("the mark {mark}"));
    }
    let stored: HashMap<String, u64> = store.list("segments/")?.into_iter().collect();
    for log in &manifest.logs {
        for segment in &log.segments {
            let file = segment.file(&log.history);
            if stored.get(&file) != Some(&segment.bytes) {
                return refused(file);
            }
        }
    }
    Ok(())
}

/// A pruning in progress.
pub(crate) struct Pruning {
    mark: String,
    begun_us: (u64, u64),
}

/// Monotonic and wall-clock time: only the first stops while a machine is suspended.
fn now_us() -> (u64, u64) {
    (SystemClock.monotonic_us(), SystemClock.wall_us())
}

impl Pruning {
    /// Marks the pruning as begun.
    ///
    /// # Errors
    /// [`BackupError`].
    pub(crate) fn begin(store: &mut dyn Store) -> BackupResult<Pruning> {
        let mark = format!("backups/{:016x}.pruning", draw_salt());
        let begun_us = now_us();
        if store.shared().is_some() {
            put(store, &mark, b"")?;
        }
        Ok(Pruning { mark, begun_us })
    }

    /// Whether an unfinished backup is no longer in progress.
    ///
    /// # Errors
    /// [`BackupError`].
    pub(crate) fn is_abandoned(
        &self,
        store: &mut dyn Store,
        unfinished: &str,
    ) -> BackupResult<bool> {
        is_older(store, &begun_file(unfinished), &self.mark, LONGEST_BACKUP_US)
    }

    /// Whether there is time left to remove another file.
    pub(crate) fn has_time(&self) -> bool {
        let now_us = now_us();
        let passed_us = now_us.0.saturating_sub(self.begun_us.0);
        passed_us.max(now_us.1.saturating_sub(self.begun_us.1)) < LONGEST_PRUNING_US
    }

    /// Removes the mark, and those of prunings that were killed.
    ///
    /// # Errors
    /// [`BackupError`].
    pub(crate) fn end(self, store: &mut dyn Store) -> BackupResult<()> {
        for other in pruning_marks(store)? {
            if other != self.mark && is_older(store, &other, &self.mark, PRUNING_ENDED_US)? {
                store.remove(&other)?;
            }
        }
        if store.shared().is_some() {
            store.remove(&self.mark)?;
        }
        Ok(())
    }
}
