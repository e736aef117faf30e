//! Storage in a folder of the operating system.

use super::{DeviceReader, HeldFolder, Storage, StorageFile};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const LOCK_FILE: &str = "LOCK";

/// Storage in a folder of the operating system.
#[derive(Debug)]
pub struct DiskStorage {
    folder: HeldFolder,
    lock: Mutex<Option<File>>,
}

/// Only the owner can read a log.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

impl DiskStorage {
    /// The folder `dir`, created by [`create_folder`] if necessary.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create(dir: &Path) -> io::Result<DiskStorage> {
        create_folder(dir)?;
        DiskStorage::existing(dir)
    }

    /// The folder `dir`, which must exist.
    ///
    /// # Errors
    /// `NotFound`, or an error of the file system.
    pub fn existing(dir: &Path) -> io::Result<DiskStorage> {
        Ok(DiskStorage { folder: HeldFolder::open(dir)?, lock: Mutex::new(None) })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of a file that is about to be created, renamed or removed.
    fn own_path(&self, name: &str) -> io::Result<PathBuf> {
        self.folder.require_named()?;
        Ok(self.path(name))
    }
}

/// Creates a folder and its missing parents: private to the owner, and durably, so that a power
/// loss cannot remove them with their later durable content.
///
/// # Errors
/// An error of the file system. Folders created before it remain; a retry creates the rest but does
/// not make the earlier ones durable again.
pub fn create_folder(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|path| !exists(path)).collect();
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(dir)?;
    // The entry of each created folder is in its parent.
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Whether the path exists; the empty path is the current folder.
fn exists(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

impl Storage for DiskStorage {
    fn name(&self) -> String {
        self.folder.path().display().to_string()
    }

    fn lock(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(FILE_MODE);
        let file = options.open(self.path(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => {
                *self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) {
        // Closing the file releases the lock.
        self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    }

    fn require_folder(&self) -> io::Result<()> {
        self.folder.require_named()
    }

    /// The file is open, so the system has it and its path in memory.
    fn still_locked(&self) -> io::Result<()> {
        self.require_folder()?;
        let lock = self.lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let held = lock.as_ref().ok_or(io::ErrorKind::NotFound)?.metadata()?;
        let named = std::fs::metadata(self.path(LOCK_FILE))?;
        if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.folder.path())? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn file_bytes(&self, name: &str) -> io::Result<u64> {
        Ok(std::fs::metadata(self.path(name))?.len())
    }

    /// One `stat` of a path that the system has in memory.
    fn still_named(&self, name: &str, file: &dyn StorageFile) -> io::Result<()> {
        let named = std::fs::metadata(self.path(name))?;
        match file.inode()? {
            Some(inode) if inode != (named.dev(), named.ino()) => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => Ok(()),
        }
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let path = self.path(name);
        // A read-only folder can still be inspected.
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(&path)?,
            other => other?,
        };
        Ok(Arc::new(DiskFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).read(true).write(true).mode(FILE_MODE);
        Ok(Arc::new(DiskFile(options.open(self.own_path(name)?)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.own_path(from)?, self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.own_path(name)?)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.folder.sync()
    }
}

#[derive(Debug)]
struct DiskFile(File);

impl StorageFile for DiskFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.0.read_at(&mut buf[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn past_cache(&self) -> Option<DeviceReader> {
        DeviceReader::of(&self.0).ok()
    }

    fn inode(&self) -> io::Result<Option<(u64, u64)>> {
        let metadata = self.0.metadata()?;
        Ok(Some((metadata.dev(), metadata.ino())))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
