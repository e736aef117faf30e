//! Backups in a folder.

use super::{PendingFile, Store, not_found};
use crate::fault::{BackupError, Outcome};
use crate::places::folder_of_logs;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use wellspring_log::storage::create_folder;

const LOCK: &str = "LOCK";
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes between two requests to the system to begin writing: otherwise all of a large file would
/// be written at its end, and appends of a log on the same device would wait for it.
const FLUSH_BYTES: u64 = 8 << 20;

/// A folder that holds backups. Only its owner can read what is written to it.
#[derive(Debug)]
pub struct FolderStore {
    dir: PathBuf,
    /// Held while it is written to.
    _lock: Option<File>,
}

impl FolderStore {
    /// The folder for writing, created if necessary. Locked against other writers.
    ///
    /// # Errors
    /// [`BackupError::Unfit`] if another process writes to it, or an error of the file system.
    pub fn create(dir: &Path) -> Outcome<FolderStore> {
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
                // What a killed process was writing has a name that may never come again.
                remove_unfinished(dir).map_err(BackupError::io(format!("clearing {shown}")))?;
                Ok(FolderStore { dir: dir.to_owned(), _lock: Some(lock) })
            }
            Err(TryLockError::WouldBlock) => Err(BackupError::Unfit(format!(
                "another process is writing a backup to {shown}; wait for it, or choose another folder"
            ))),
            Err(TryLockError::Error(error)) => {
                Err(BackupError::Io { doing: format!("locking {shown}"), error })
            }
        }
    }

    /// The folder for reading.
    ///
    /// # Errors
    /// [`BackupError::NotFound`] if it does not exist or holds no backups.
    pub fn open(dir: &Path) -> Outcome<FolderStore> {
        if !dir.join("backups").is_dir() {
            let what = format!("{} holds no backups", dir.display());
            return Err(BackupError::NotFound { what });
        }
        Ok(FolderStore { dir: dir.to_owned(), _lock: None })
    }
}

/// Removes unfinished files below a folder that is locked.
fn remove_unfinished(dir: &Path) -> io::Result<()> {
    for part in ["backups", "segments"] {
        let mut folders = vec![dir.join(part)];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "tmp") {
                    fs::remove_file(path)?;
                }
            }
        }
    }
    Ok(())
}

/// Every file below a folder, with its length.
fn collect(dir: &Path, prefix: &str, found: &mut Vec<(String, u64)>) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // A link to a folder elsewhere is a folder.
        let metadata = fs::metadata(entry.path())?;
        if metadata.is_dir() {
            collect(&entry.path(), &format!("{prefix}{name}/"), found)?;
        } else if !name.ends_with(".tmp") {
            found.push((format!("{prefix}{name}"), metadata.len()));
        }
    }
    Ok(())
}

impl Store for FolderStore {
    fn place(&self) -> String {
        self.dir.display().to_string()
    }

    fn list(&mut self, prefix: &str) -> Outcome<Vec<(String, u64)>> {
        let mut found = Vec::new();
        let dir = self.dir.join(prefix);
        collect(&dir, prefix, &mut found)
            .map_err(BackupError::io(format!("listing {}", dir.display())))?;
        Ok(found)
    }

    fn read(&mut self, name: &str) -> Outcome<Box<dyn Read + '_>> {
        match File::open(self.dir.join(name)) {
            Ok(file) => Ok(Box::new(io::BufReader::with_capacity(BUFFER_BYTES, file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(not_found(&self.place(), name))
            }
            Err(error) => Err(BackupError::Io { doing: format!("opening {name}"), error }),
        }
    }

    fn create(&mut self, name: &str, _bytes: u64) -> Outcome<Box<dyn PendingFile + '_>> {
        let path = self.dir.join(name);
        let parent = path.parent().expect("a name below the folder");
        let failed = |error| BackupError::Io { doing: format!("creating {name}"), error };
        create_folder(parent).map_err(failed)?;
        let mut temporary = path.clone().into_os_string();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        let file = options.open(&temporary).map_err(failed)?;
        let flusher = Flusher::of(&file).map_err(failed)?;
        let flushed = Flushed { file, written: 0, flusher };
        let file = BufWriter::with_capacity(BUFFER_BYTES, flushed);
        Ok(Box::new(PendingPath { file: Some(file), temporary, path }))
    }

    fn remove(&mut self, name: &str) -> Outcome<()> {
        match fs::remove_file(self.dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(BackupError::Io { doing: format!("removing {name}"), error })
            }
            _ => Ok(()),
        }
    }
}

/// A file whose bytes are handed to the device as they come.
struct Flushed {
    file: File,
    written: u64,
    flusher: Flusher,
}

/// A thread that has the device write what is in memory, while more comes.
struct Flusher {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    #[allow(clippy::disallowed_methods)] // ends with its file
    fn of(file: &File) -> io::Result<Flusher> {
        let file = file.try_clone()?;
        // One request waits at most: it covers what came meanwhile.
        let (wake, woken) = sync_channel(1);
        let run = move || {
            // The last barrier, when the file is finished, tells of errors.
            woken.iter().for_each(|()| drop(file.sync_data()));
        };
        let thread = thread::Builder::new().name("backup-flush".into()).spawn(run)?;
        Ok(Flusher { wake: Some(wake), thread: Some(thread) })
    }

    fn flush(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.wake.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Write for Flushed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let got = self.file.write(bytes)?;
        let before = self.written / FLUSH_BYTES;
        self.written += got as u64;
        if self.written / FLUSH_BYTES > before {
            self.flusher.flush();
        }
        Ok(got)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct PendingPath {
    /// Taken when it is finished.
    file: Option<BufWriter<Flushed>>,
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
    fn finish(mut self: Box<Self>) -> Outcome<()> {
        let file = self.file.take().expect("finished once");
        let named = || -> io::Result<()> {
            let flushed = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            flushed.file.sync_all()?;
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
        assert_eq!(get(&mut store, "segments/a/1.seg").unwrap(), b"abc");
        store.remove("segments/a/1.seg").unwrap();
        store.remove("segments/a/1.seg").unwrap();
        assert_eq!(store.list("segments/a/").unwrap(), []);
    }

    #[test]
    fn a_folder_has_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let store = FolderStore::create(dir.path()).unwrap();
        assert!(matches!(FolderStore::create(dir.path()), Err(BackupError::Unfit(_))));
        drop(store);
        FolderStore::create(dir.path()).unwrap();
    }
}
