//! Backups in a folder.

use super::piecewise_file::PiecewiseFile;
use super::{PendingFile, Store, not_found};
use crate::data_folders::folder_of_logs;
use crate::fault::{BackupError, BackupResult};
use crate::names::is_own_file;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wellspring_log::storage::create_folder;

const LOCK: &str = "LOCK";
/// The extension of a file while it is written.
const UNFINISHED: &str = ".tmp";
const BUFFER_BYTES: usize = 1 << 20;

/// A folder of backups. Its files are readable by their owner only.
#[derive(Debug)]
pub struct FolderStore {
    dir: PathBuf,
    /// Held by a writer.
    _lock: Option<File>,
}

impl FolderStore {
    /// Opens the folder for writing, creating it if necessary, and locks out other writers.
    ///
    /// # Errors
    /// [`BackupError::Busy`] if another process writes to it; [`BackupError::Unfit`] for a folder
    /// of a server; or an error of the file system.
    pub fn create(dir: &Path) -> BackupResult<FolderStore> {
        let shown = dir.display();
        if dir.as_os_str().is_empty() {
            return Err(BackupError::Unfit("the place of the backups is empty: name one".into()));
        }
        let holds = |name: &str| dir.join(name).exists();
        if holds("logs") || holds("has-accounts") {
            return Err(BackupError::Unfit(format!(
                "{shown} is a server's data folder: keep backups elsewhere, best on another device"
            )));
        }
        if let Some(logs) = folder_of_logs(dir) {
            return Err(BackupError::Unfit(format!(
                "{shown} leads into {}, where a server keeps logs: keep backups elsewhere, best on \
                 another device",
                logs.display()
            )));
        }
        create_folder(dir).map_err(BackupError::io(format!("creating {shown}")))?;
        let path = dir.join(LOCK);
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let lock =
            options.open(&path).map_err(BackupError::io(format!("opening {}", path.display())))?;
        match lock.try_lock() {
            Ok(()) => {
                // A killed process may have left temporary files whose names are never used again.
                remove_unfinished(dir).map_err(BackupError::io(format!("clearing {shown}")))?;
                Ok(FolderStore { dir: dir.to_owned(), _lock: Some(lock) })
            }
            Err(TryLockError::WouldBlock) => Err(BackupError::Busy(format!(
                "another process is writing a backup to {shown}; wait for it, or choose another folder"
            ))),
            Err(TryLockError::Error(error)) => {
                Err(BackupError::Io { doing: format!("locking {shown}"), error })
            }
        }
    }

    /// Opens the folder for reading.
    ///
    /// # Errors
    /// [`BackupError::NotFound`] if it does not exist or holds no backups.
    pub fn open(dir: &Path) -> BackupResult<FolderStore> {
        if !dir.join("backups").is_dir() {
            let what = format!("{} holds no backups", dir.display());
            return Err(BackupError::NotFound { what });
        }
        Ok(FolderStore { dir: dir.to_owned(), _lock: None })
    }
}

/// Removes the temporary files of a locked folder.
fn remove_unfinished(dir: &Path) -> io::Result<()> {
    for part in ["backups/", "segments/"] {
        for (name, _) in files_below(dir, part)? {
            // Nothing else, even through symlinks.
            if name.strip_suffix(UNFINISHED).is_some_and(is_own_file) {
                fs::remove_file(dir.join(name))?;
            }
        }
    }
    Ok(())
}

/// The files in `part` of the folder and in its direct subfolders, each with its length. No deeper,
/// because symlinks can form a cycle.
fn files_below(dir: &Path, part: &str) -> io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    for (name, metadata) in entries(&dir.join(part))? {
        // A symlink to a folder counts as a folder.
        if !metadata.is_dir() {
            found.push((format!("{part}{name}"), metadata.len()));
            continue;
        }
        for (below, metadata) in entries(&dir.join(part).join(&name))? {
            if metadata.is_file() {
                found.push((format!("{part}{name}/{below}"), metadata.len()));
            }
        }
    }
    Ok(found)
}

/// The entries of a folder; none if it does not exist. Entries that another process removes or
/// renames meanwhile are left out.
fn entries(dir: &Path) -> io::Result<Vec<(String, fs::Metadata)>> {
    let passing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    };
    let mut found = Vec::new();
    let listed = match fs::read_dir(dir) {
        Ok(listed) => listed,
        Err(error) => return passing(error).map(|()| found),
    };
    for entry in listed {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        match fs::metadata(entry.path()) {
            Ok(metadata) => found.push((name, metadata)),
            Err(error) => passing(error)?,
        }
    }
    Ok(found)
}

impl Store for FolderStore {
    fn place(&self) -> String {
        self.dir.display().to_string()
    }

    fn list(&mut self, prefix: &str) -> BackupResult<Vec<(String, u64)>> {
        let listing = BackupError::io(format!("listing {}", self.dir.join(prefix).display()));
        let mut found = files_below(&self.dir, prefix).map_err(listing)?;
        found.retain(|(name, _)| !name.ends_with(UNFINISHED));
        Ok(found)
    }

    fn read(&mut self, name: &str) -> BackupResult<Box<dyn Read + '_>> {
        match File::open(self.dir.join(name)) {
            Ok(file) => Ok(Box::new(io::BufReader::with_capacity(BUFFER_BYTES, file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(not_found(&self.place(), name))
            }
            Err(error) => Err(BackupError::Io { doing: format!("opening {name}"), error }),
        }
    }

    fn create(&mut self, name: &str, _bytes: u64) -> BackupResult<Box<dyn PendingFile + '_>> {
        let path = self.dir.join(name);
        let parent = path.parent().expect("a name below the folder");
        let failed = |error| BackupError::Io { doing: format!("creating {name}"), error };
        create_folder(parent).map_err(failed)?;
        let mut temporary = path.clone().into_os_string();
        temporary.push(UNFINISHED);
        let temporary = PathBuf::from(temporary);
        // What an earlier backup left there, or someone else's link: it is never followed.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut options = File::options();
        options.create_new(true).write(true).mode(0o600);
        let file = options.open(&temporary).map_err(failed)?;
        let file = PiecewiseFile::new(file).map_err(failed)?;
        Ok(Box::new(PendingPath { file: Some(file), temporary, path }))
    }

    fn remove(&mut self, name: &str) -> BackupResult<()> {
        match fs::remove_file(self.dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(BackupError::Io { doing: format!("removing {name}"), error })
            }
            _ => Ok(()),
        }
    }
}

struct PendingPath {
    /// Taken when it is finished.
    file: Option<PiecewiseFile>,
    temporary: PathBuf,
    path: PathBuf,
}

impl Write for PendingPath {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().expect("not finished").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("not finished").flush()
    }
}

impl PendingFile for PendingPath {
    fn finish(mut self: Box<Self>) -> BackupResult<()> {
        let file = self.file.take().expect("finished once");
        let named = || -> io::Result<()> {
            file.finish()?;
            fs::rename(&self.temporary, &self.path)?;
            File::open(self.path.parent().expect("a name below the folder"))?.sync_all()
        };
        let done = named().map_err(BackupError::io(format!("writing {}", self.path.display())));
        if done.is_err() {
            let _ = fs::remove_file(&self.temporary);
        }
        done
    }
}

impl Drop for PendingPath {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{get, put};

    #[test]
    fn a_file_is_there_when_it_is_finished_and_never_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = FolderStore::create(dir.path()).unwrap();
        let mut file = store.create("segments/a/1.seg", 3).unwrap();
        file.write_all(b"abc").unwrap();
        drop(file);
        assert_eq!(store.list("segments/").unwrap(), []);
        assert!(matches!(store.read("segments/a/1.seg"), Err(BackupError::NotFound { .. })));
        put(&mut store, "segments/a/1.seg", b"abc").unwrap();
        put(&mut store, "segments/b/2.seg", b"").unwrap();
        let mut list = store.list("segments/").unwrap();
        list.sort();
        assert_eq!(list, [("segments/a/1.seg".to_owned(), 3), ("segments/b/2.seg".to_owned(), 0)]);
        assert_eq!(get(&mut store, "segments/a/1.seg", 9_000).unwrap(), b"abc");
        store.remove("segments/a/1.seg").unwrap();
        store.remove("segments/a/1.seg").unwrap();
        assert_eq!(store.list("segments/a/").unwrap(), []);
    }

    /// Who can write to the place must not have files elsewhere written.
    #[test]
    fn a_link_under_a_temporary_name_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (place, victim) = (dir.path().join("place"), dir.path().join("victim"));
        let mut store = FolderStore::create(&place).unwrap();
        let planted = place.join(format!("a.json{UNFINISHED}"));
        std::os::unix::fs::symlink(&victim, planted).unwrap();
        put(&mut store, "a.json", b"abc").unwrap();
        assert!(!victim.exists());
        assert_eq!(get(&mut store, "a.json", 9_000).unwrap(), b"abc");
        assert!(!fs::symlink_metadata(place.join("a.json")).unwrap().is_symlink());
    }

    /// Who can write to the place must not have files elsewhere removed, nor keep a backup busy.
    #[test]
    fn links_lead_no_deeper_than_the_folder_of_a_history() {
        let dir = tempfile::tempdir().unwrap();
        let (place, other) = (dir.path().join("place"), dir.path().join("other"));
        let history = place.join("segments/4f1c09d2a87b4e6f");
        fs::create_dir_all(&history).unwrap();
        fs::create_dir_all(other.join("deep")).unwrap();
        let unfinished = history.join("00000000000000000001-342-0badc0de.seg.tmp");
        let mine = [other.join("mine.tmp"), other.join("deep/mine.tmp")];
        for file in [&history.join("1.seg"), &unfinished, &mine[0], &mine[1]] {
            fs::write(file, b"x").unwrap();
        }
        use std::os::unix::fs::symlink;
        for (name, to) in [("b", &other), ("loop", &place), ("nowhere", &dir.path().join("none"))] {
            symlink(to, place.join("segments").join(name)).unwrap();
        }
        symlink(&place, history.join("loop")).unwrap();
        let mut store = FolderStore::create(&place).unwrap();
        assert!(!unfinished.exists() && mine.iter().all(|file| file.exists()));
        let mut listed = store.list("segments/").unwrap();
        listed.retain(|(name, _)| !name.ends_with(LOCK));
        assert_eq!(listed, [("segments/4f1c09d2a87b4e6f/1.seg".to_owned(), 1)]);
    }

    #[test]
    fn a_folder_has_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let store = FolderStore::create(dir.path()).unwrap();
        assert!(matches!(FolderStore::create(dir.path()), Err(BackupError::Busy(_))));
        drop(store);
        FolderStore::create(dir.path()).unwrap();
    }
}
