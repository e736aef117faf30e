//! The backups in a store.

use crate::fault::{BackupError, BackupResult, UnreadableManifest};
use crate::manifest::{LogBackup, Manifest, manifest_file};
use crate::names::is_backup_name;
use crate::store::{Store, get};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

/// Maximum size of a manifest, which is read into memory; enough for millions of segments.
const MOST_MANIFEST_BYTES: u64 = 1 << 30;
/// Maximum number of a backup's logs that a message names.
const MOST_SHOWN_LOGS: usize = 5;

/// The names of the backups in a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Finished backups, oldest first.
    pub finished: Vec<String>,
    /// Backups that were begun and not finished, oldest first.
    pub unfinished: Vec<String>,
}

impl Catalog {
    /// Lists the backups in a store.
    ///
    /// # Errors
    /// [`BackupError`]: the store cannot be listed.
    pub fn of(store: &mut dyn Store) -> BackupResult<Catalog> {
        let files = store.list("backups/")?;
        let named = |suffix: &str| {
            let names = files.iter().filter_map(|(name, _)| {
                let name = name.strip_prefix("backups/")?.strip_suffix(suffix)?;
                // Other files are ignored, because names are shown and become paths.
                is_backup_name(name).then(|| name.to_owned())
            });
            let mut names: Vec<String> = names.collect();
            names.sort_unstable();
            names
        };
        let finished = named(".json");
        let mut unfinished = named(".begun");
        unfinished.retain(|name| !finished.contains(name));
        Ok(Catalog { finished, unfinished })
    }

    /// The backup of this name, or the newest finished one.
    ///
    /// # Errors
    /// [`BackupError::Unfinished`], [`BackupError::NotFound`].
    pub fn choose(&self, name: Option<&str>, place: &str) -> BackupResult<String> {
        let Some(name) = name else {
            return match (self.finished.last(), self.unfinished.last()) {
                (Some(newest), _) => Ok(newest.clone()),
                (None, Some(begun)) => Err(BackupError::Unfinished { name: begun.clone() }),
                (None, None) => {
                    Err(BackupError::NotFound { what: format!("{place} holds no backup") })
                }
            };
        };
        if self.finished.iter().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        if self.unfinished.iter().any(|known| known == name) {
            return Err(BackupError::Unfinished { name: name.to_owned() });
        }
        let what = if self.finished.is_empty() {
            format!("{place} holds no finished backup")
        } else {
            format!("{place} holds no backup {name}; it has {}", self.finished.join(", "))
        };
        Err(BackupError::NotFound { what })
    }
}

/// The manifests of finished backups.
#[derive(Debug, Default)]
pub struct Manifests {
    /// Readable manifests, in the order of their names.
    pub read: Vec<Manifest>,
    /// Unreadable ones.
    pub unreadable: Vec<UnreadableManifest>,
}

impl Manifests {
    /// Reads the manifests of the named backups, except those removed meanwhile.
    pub fn of(store: &mut dyn Store, names: &[String]) -> Manifests {
        let mut manifests = Manifests::default();
        for name in names {
            match manifest(store, name) {
                Ok(manifest) => manifests.read.push(manifest),
                Err(BackupError::NotFound { .. }) => {}
                Err(error) => manifests.unreadable.push(UnreadableManifest::new(name, &error)),
            }
        }
        manifests
    }
}

/// The newest finished backup that has a log with one of these histories, because a store may also
/// have backups of other servers. Backups with a damaged manifest are ignored.
///
/// # Errors
/// [`BackupError`]: the store cannot be read.
pub fn newest_with(store: &mut dyn Store, histories: &[String]) -> BackupResult<Option<Manifest>> {
    for name in Catalog::of(store)?.finished.iter().rev() {
        let Some(found) = readable(store, name)? else { continue };
        if found.logs.iter().any(|log| histories.contains(&log.history)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether any finished backup may have a log with one of these histories. True for a backup with a
/// damaged manifest.
///
/// # Errors
/// [`BackupError::Io`]: the store cannot be read.
pub fn may_have(store: &mut dyn Store, histories: &[String]) -> BackupResult<bool> {
    for name in Catalog::of(store)?.finished.iter().rev() {
        match manifest(store, name) {
            Ok(found) if found.logs.iter().any(|log| histories.contains(&log.history)) => {
                return Ok(true);
            }
            Ok(_) | Err(BackupError::NotFound { .. }) => {}
            Err(error @ BackupError::Io { .. }) => return Err(error),
            Err(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// The newest finished backup, provided that all readable ones are of one server.
///
/// # Errors
/// [`BackupError::Unfit`] if backups share no history, with the newest backup of each server; or no
/// finished backup exists, or the newest cannot be read.
pub fn newest(store: &mut dyn Store) -> BackupResult<Manifest> {
    let place = store.place();
    let catalog = Catalog::of(store)?;
    let newest = manifest(store, &catalog.choose(None, &place)?)?;
    let read = Manifests::of(store, &catalog.finished).read;
    let mut servers = by_server(&read);
    if servers.len() < 2 {
        return Ok(newest);
    }
    servers.sort_by_key(|backups| Reverse(&backups[backups.len() - 1].name));
    let shown = servers.iter().map(|backups| {
        let newest = backups[backups.len() - 1];
        let log = |log: &LogBackup| format!("{} {}", log.name, log.head);
        let mut logs: Vec<_> = newest.logs.iter().take(MOST_SHOWN_LOGS).map(log).collect();
        if newest.logs.len() > logs.len() {
            logs.push(format!("and {} more", newest.logs.len() - logs.len()));
        }
        format!("\n  {}, the newest of {}: {}", newest.name, backups.len(), logs.join(", "))
    });
    Err(BackupError::Unfit(format!(
        "{place} has backups of {} servers, or of one before and after it was restored: they share \
         no history. Name one with --backup; `wellspring backup list --from {place}` shows \
         all:{}",
        servers.len(),
        shown.collect::<String>()
    )))
}

/// Backups by server, each in their order. Two backups are of one server if they share a history,
/// directly or through backups in between.
fn by_server(manifests: &[Manifest]) -> Vec<Vec<&Manifest>> {
    let mut servers: Vec<(HashSet<&str>, Vec<&Manifest>)> = Vec::new();
    for manifest in manifests {
        let mut histories = manifest.histories();
        let mut backups = Vec::new();
        servers.retain_mut(|(of_server, earlier)| {
            if of_server.is_disjoint(&histories) {
                return true;
            }
            backups.append(earlier);
            histories.extend(of_server.drain());
            false
        });
        backups.push(manifest);
        backups.sort_by_key(|manifest| &manifest.name);
        servers.push((histories, backups));
    }
    servers.into_iter().map(|(_, backups)| backups).collect()
}

/// The backups that can mend a log with this name: those of its history, by descending position,
/// newest first among equals. If the log's history is unknown, the backups must share one.
///
/// # Errors
/// [`BackupError::NotFound`] if none has the log; [`BackupError::Unfit`] if none has this history,
/// or if they have several and the log's is unknown; or the store cannot be read.
pub fn candidates(
    store: &mut dyn Store,
    log: &str,
    history: Option<&str>,
) -> BackupResult<Vec<Manifest>> {
    let place = store.place();
    let catalog = Catalog::of(store)?;
    // Fails with the unfinished backups, if none is finished.
    catalog.choose(None, &place)?;
    let mut found = Vec::new();
    for name in catalog.finished.iter().rev() {
        found.extend(readable(store, name)?.filter(|manifest| manifest.log(log).is_ok()));
    }
    let of = |manifest: &Manifest| manifest.log(log).map(|log| log.history.clone()).ok();
    let histories: BTreeSet<_> = found.iter().filter_map(of).collect();
    let listed = histories.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match history {
        _ if found.is_empty() => {
            let what = format!("no backup in {place} has a log {log}");
            return Err(BackupError::NotFound { what });
        }
        Some(history) => found.retain(|manifest| of(manifest).as_deref() == Some(history)),
        None if histories.len() > 1 => {
            return Err(BackupError::Unfit(format!(
                "{place} has backups of several logs {log}, with the histories {listed}, and \
                 nothing in the folder tells which is its own: name a backup with --backup"
            )));
        }
        None => {}
    }
    if found.is_empty() {
        return Err(BackupError::Unfit(format!(
            "the log {log} has the history {}, and {place} has backups of {listed} only: they are of \
             other logs, or of this one before it was restored",
            history.unwrap_or_default()
        )));
    }
    // Stable, so the newest stays first among equals.
    found.sort_by_key(|manifest| Reverse(manifest.log(log).map_or(0, |log| log.head)));
    Ok(found)
}

/// The manifest of a finished backup; `None` if it is damaged, which concerns that backup only.
///
/// # Errors
/// [`BackupError::Io`]: the store cannot be read.
fn readable(store: &mut dyn Store, name: &str) -> BackupResult<Option<Manifest>> {
    match manifest(store, name) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(error @ BackupError::Io { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Reads the manifest of a finished backup. The name in it is the one it is asked for.
///
/// # Errors
/// [`BackupError`].
pub fn manifest(store: &mut dyn Store, name: &str) -> BackupResult<Manifest> {
    let file = manifest_file(name);
    let content = get(store, &file, MOST_MANIFEST_BYTES)?;
    let manifest = Manifest::decode(&content, &file)?;
    if manifest.name == name {
        return Ok(manifest);
    }
    // Who removes a backup by the name in its manifest must not remove anything else.
    let what = format!("it is the manifest of the backup {:?}", manifest.name);
    Err(BackupError::Damaged { file, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::FORMAT;

    #[test]
    fn backups_are_of_one_server_if_histories_lead_from_one_to_the_other() {
        let backup = |(at, histories): (usize, &[&str])| Manifest {
            format: FORMAT,
            name: at.to_string(),
            version: String::new(),
            taken_at_us: 0,
            has_accounts: false,
            logs: histories
                .iter()
                .map(|history| LogBackup {
                    name: "main".to_owned(),
                    history: (*history).to_owned(),
                    head: 0,
                    recorded_at_us: 0,
                    removed_until_us: None,
                    segments: Vec::new(),
                })
                .collect(),
        };
        let all: &[&[&str]] = &[&["a"], &["x", "y"], &["b"], &["y"], &["a", "b"], &["c"]];
        let manifests: Vec<_> = all.iter().copied().enumerate().map(backup).collect();
        let names = |backups: Vec<&Manifest>| {
            backups.into_iter().map(|backup| backup.name.clone()).collect::<String>()
        };
        let mut servers: Vec<_> = by_server(&manifests).into_iter().map(names).collect();
        servers.sort();
        assert_eq!(servers, ["024", "13", "5"]);
    }
}
