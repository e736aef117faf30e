//! What the writers of one place tell each other, by files of no content.
//!
//! A folder is locked, so it has one writer. An object store cannot be locked in a way that ends
//! with its holder, so backups and prunings there are told apart by marks: each writer puts its own
//! mark first and then looks for those of others. Of two writers, at least one sees the other. A
//! pruning that sees a backup removes no segment; a backup that sees a pruning does not begin. The
//! age of a mark is measured between times that the store itself gave to files, so no clock of a
//! writer matters.
//!
//! Marks outlive a process that is killed, so age decides: a `begun` counts for 7 days, a `pruning`
//! for an hour, and a pruning stops by itself after 30 minutes. Before its manifest a backup checks
//! that its mark and all its segments are still there. What remains: a backup of more than 7 days
//! that loses its mark between that check and its manifest; a request to delete that takes more
//! than half an hour; a store that ignores `If-None-Match`, where two backups of one second can get
//! one name. If backups to a bucket always overlap, segments are never removed from it.

use crate::catalog::Catalog;
use crate::fault::{BackupError, Outcome};
use crate::manifest::{Manifest, begun_file};
use crate::store::{Claim, Store, put};
use std::collections::HashMap;
use wellspring_format::segment::draw_salt;
use wellspring_log::{Clock, SystemClock};

const MINUTE_US: u64 = 60 * 1_000_000;
/// No backup that was begun so long ago is under way, in a place with several writers.
pub(crate) const LONGEST_BACKUP_US: u64 = 7 * 24 * 60 * MINUTE_US;
/// A pruning stops on its own after this time; the next one goes on.
const LONGEST_PRUNING_US: u64 = 30 * MINUTE_US;
/// No pruning that was begun so long ago is under way: it has stopped, and so has its last request.
pub(crate) const PRUNING_ENDED_US: u64 = 60 * MINUTE_US;
/// Names that are tried for one backup.
const MOST_NAMES: usize = 100;

fn is_pruning_mark(file: &str) -> bool {
    file.ends_with(".pruning")
}

/// The marks of prunings in a store.
fn pruning_marks(store: &mut dyn Store) -> Outcome<Vec<String>> {
    let files = store.list("backups/")?.into_iter().map(|(file, _)| file);
    Ok(files.filter(|file| is_pruning_mark(file)).collect())
}

/// Whether `file` was written longer than `us` before `now`, the mark of the process itself; for
/// a store with one writer, which is this process, that holds for every other file.
fn is_older(store: &mut dyn Store, file: &str, now: &str, us: u64) -> Outcome<bool> {
    let Some(shared) = store.shared() else { return Ok(true) };
    let (Some(written_us), Some(now_us)) = (shared.written_us(file)?, shared.written_us(now)?)
    else {
        // Removed meanwhile; if that is the own mark, everything else has to count.
        return Ok(false);
    };
    Ok(now_us.saturating_sub(written_us) > us)
}

/// Marks a backup as begun, under a name that no other one has; `name_of` makes one that follows
/// those in a catalog. Returns the name, and the backups there were before.
///
/// # Errors
/// [`BackupError::Busy`] while another process removes old backups.
pub(crate) fn begin_backup(
    store: &mut dyn Store,
    name_of: &dyn Fn(&Catalog) -> String,
) -> Outcome<(String, Catalog)> {
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

fn refuse_pruning(store: &mut dyn Store, own_mark: &str) -> Outcome<()> {
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

/// Checks, before a backup counts as finished, that no other writer has removed anything of it.
///
/// # Errors
/// [`BackupError::Busy`]; another attempt brings what is missing.
pub(crate) fn check_begun(store: &mut dyn Store, manifest: &Manifest) -> Outcome<()> {
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

/// A pruning under way.
pub(crate) struct Pruning {
    mark: String,
    begun_us: (u64, u64),
}

/// Time passed and time of day: a machine that sleeps stops only the first.
fn now_us() -> (u64, u64) {
    (SystemClock.monotonic_us(), SystemClock.wall_us())
}

impl Pruning {
    /// Marks the pruning as begun.
    ///
    /// # Errors
    /// [`BackupError`].
    pub(crate) fn begin(store: &mut dyn Store) -> Outcome<Pruning> {
        let mark = format!("backups/{:016x}.pruning", draw_salt());
        let begun_us = now_us();
        if store.shared().is_some() {
            put(store, &mark, b"")?;
        }
        Ok(Pruning { mark, begun_us })
    }

    /// Whether an unfinished backup is not under way any more.
    ///
    /// # Errors
    /// [`BackupError`].
    pub(crate) fn is_abandoned(&self, store: &mut dyn Store, unfinished: &str) -> Outcome<bool> {
        is_older(store, &begun_file(unfinished), &self.mark, LONGEST_BACKUP_US)
    }

    /// Whether there is time to remove another file.
    pub(crate) fn has_time(&self) -> bool {
        let now_us = now_us();
        let passed_us = now_us.0.saturating_sub(self.begun_us.0);
        passed_us.max(now_us.1.saturating_sub(self.begun_us.1)) < LONGEST_PRUNING_US
    }

    /// Removes the mark, and those of prunings that were killed.
    ///
    /// # Errors
    /// [`BackupError`].
    pub(crate) fn end(self, store: &mut dyn Store) -> Outcome<()> {
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
