//! Stores of backups: named files, each written completely or not at all.

mod archive;
mod folder;
mod piecewise_file;
#[cfg(feature = "s3")]
mod s3;

pub use archive::{ArchiveReader, ArchiveWriter};
pub use folder::FolderStore;
#[cfg(feature = "s3")]
pub use s3::S3Store;

use crate::fault::{BackupError, BackupResult};
use std::io::{Read, Write};

/// A store of named files. Names are like relative paths.
pub trait Store {
    /// Its location, for messages.
    fn place(&self) -> String;

    /// The files whose names begin with `prefix`, which ends with `/`: names and lengths in bytes,
    /// in any order.
    ///
    /// # Errors
    /// [`BackupError`].
    fn list(&mut self, prefix: &str) -> BackupResult<Vec<(String, u64)>>;

    /// Reads a file.
    ///
    /// # Errors
    /// [`BackupError::NotFound`] or another.
    fn read(&mut self, name: &str) -> BackupResult<Box<dyn Read + '_>>;

    /// Begins a file of exactly `bytes` bytes. It exists only once it is
    /// [finished](PendingFile::finish); dropping it before discards it.
    ///
    /// # Errors
    /// [`BackupError`].
    fn create(&mut self, name: &str, bytes: u64) -> BackupResult<Box<dyn PendingFile + '_>>;

    /// Removes a file; succeeds if it does not exist.
    ///
    /// # Errors
    /// [`BackupError`].
    fn remove(&mut self, name: &str) -> BackupResult<()>;

    /// Its interface for several writers; `None` if this process is its only writer.
    fn shared(&mut self) -> Option<&mut dyn SharedStore> {
        None
    }

    /// Ends the use of the store and makes everything durable.
    ///
    /// # Errors
    /// [`BackupError`].
    fn close(&mut self) -> BackupResult<()> {
        Ok(())
    }
}

/// A store without a lock: several processes may write to it at the same time. Reads and lists of
/// all processes show every completed write and removal.
pub trait SharedStore {
    /// Writes a small file unless one with this name exists. `content` must be unique.
    ///
    /// # Errors
    /// [`BackupError`].
    fn claim(&mut self, name: &str, content: &str) -> BackupResult<Claim>;

    /// The time a file was written, µs on the store's own clock; `None` if it does not exist.
    ///
    /// # Errors
    /// [`BackupError`].
    fn written_us(&mut self, name: &str) -> BackupResult<Option<u64>>;
}

/// The result of claiming a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It was free, and the file has been written.
    Made,
    /// Another writer has it.
    Taken,
}

/// A file that is being written.
pub trait PendingFile: Write {
    /// Makes it durable under its name.
    ///
    /// # Errors
    /// [`BackupError`]; the file does not exist then.
    fn finish(self: Box<Self>) -> BackupResult<()>;
}

/// Writes a small file.
///
/// # Errors
/// [`BackupError`].
pub(crate) fn put(store: &mut dyn Store, name: &str, content: &[u8]) -> BackupResult<()> {
    let mut file = store.create(name, content.len() as u64)?;
    file.write_all(content).map_err(BackupError::io(format!("writing {name}")))?;
    file.finish()
}

/// Reads a file of at most `most_bytes` into memory.
///
/// # Errors
/// [`BackupError::Damaged`] if it has more; or another [`BackupError`].
pub(crate) fn get(store: &mut dyn Store, name: &str, most_bytes: u64) -> BackupResult<Vec<u8>> {
    let mut content = Vec::new();
    let file = store.read(name)?;
    let failed = BackupError::io(format!("reading {name}"));
    let read = file.take(most_bytes.saturating_add(1)).read_to_end(&mut content).map_err(failed)?;
    if read as u64 > most_bytes {
        let what = format!("it has more than {most_bytes} bytes");
        return Err(BackupError::Damaged { file: name.to_owned(), what });
    }
    Ok(content)
}

fn not_found(place: &str, name: &str) -> BackupError {
    BackupError::NotFound { what: format!("there is no {name} in {place}") }
}
