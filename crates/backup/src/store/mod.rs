//! Where backups are kept: files by name, written whole or not at all.

mod archive;
mod folder;
mod piecewise_file;
#[cfg(feature = "s3")]
mod s3;

pub use archive::{ArchiveReader, ArchiveWriter};
pub use folder::FolderStore;
#[cfg(feature = "s3")]
pub use s3::S3Store;

use crate::fault::{BackupError, Outcome};
use std::io::{Read, Write};

/// Files by name. Names are like relative paths.
pub trait Store {
    /// Where it is, for messages.
    fn place(&self) -> String;

    /// The files whose names begin with `prefix`, which ends with `/`: names and lengths in bytes,
    /// in any order.
    ///
    /// # Errors
    /// [`BackupError`].
    fn list(&mut self, prefix: &str) -> Outcome<Vec<(String, u64)>>;

    /// Reads a file.
    ///
    /// # Errors
    /// [`BackupError::NotFound`] or another.
    fn read(&mut self, name: &str) -> Outcome<Box<dyn Read + '_>>;

    /// Begins a file of exactly `bytes` bytes. It has no name before it is
    /// [finished](PendingFile::finish); dropped before that, it never existed.
    ///
    /// # Errors
    /// [`BackupError`].
    fn create(&mut self, name: &str, bytes: u64) -> Outcome<Box<dyn PendingFile + '_>>;

    /// Removes a file; one that does not exist is removed already.
    ///
    /// # Errors
    /// [`BackupError`].
    fn remove(&mut self, name: &str) -> Outcome<()>;

    /// What several writers of the store need, if it can have several; `None` if this process is
    /// its only writer.
    fn shared(&mut self) -> Option<&mut dyn SharedStore> {
        None
    }

    /// Ends the use of the store: what was written is there for good.
    ///
    /// # Errors
    /// [`BackupError`].
    fn close(&mut self) -> Outcome<()> {
        Ok(())
    }
}

/// A store that nothing locks: several processes may write to it at a time. What one of them has
/// written or removed, all of them see from then on, in reads and in lists.
pub trait SharedStore {
    /// Writes a small file, unless there is one of the name. `content` is another one each time.
    ///
    /// # Errors
    /// [`BackupError`].
    fn claim(&mut self, name: &str, content: &str) -> Outcome<Claim>;

    /// When a file was written, in µs of the store's own clock; `None` if it does not exist.
    ///
    /// # Errors
    /// [`BackupError`].
    fn written_us(&mut self, name: &str) -> Outcome<Option<u64>>;
}

/// Whether a name was free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It was, and the file is there now.
    Made,
    /// Another writer has it.
    Taken,
}

/// A file that is being written.
pub trait PendingFile: Write {
    /// Gives it its name, durably.
    ///
    /// # Errors
    /// [`BackupError`]; the file does not exist then.
    fn finish(self: Box<Self>) -> Outcome<()>;
}

/// Writes a small file.
///
/// # Errors
/// [`BackupError`].
pub(crate) fn put(store: &mut dyn Store, name: &str, content: &[u8]) -> Outcome<()> {
    let mut file = store.create(name, content.len() as u64)?;
    file.write_all(content).map_err(BackupError::io(format!("writing {name}")))?;
    file.finish()
}

/// Reads a file of at most so many bytes into memory.
///
/// # Errors
/// [`BackupError::Damaged`] if it has more; or another [`BackupError`].
pub(crate) fn get(store: &mut dyn Store, name: &str, most_bytes: u64) -> Outcome<Vec<u8>> {
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
