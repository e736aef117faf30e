//! The seam between the log and files. Everything the log does to a disk goes
//! through these two traits, so that crash and fault tests can stand in for one.

mod disk;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

pub use disk::{DiskStorage, create_folder};

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A folder of files, flat.
pub trait Storage: Send + Sync + Debug + 'static {
    /// What to call the folder in messages.
    fn name(&self) -> String;

    /// Takes the folder for this process alone until the storage is dropped or unlocked.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it.
    fn lock(&self) -> io::Result<()>;

    /// Gives the folder back.
    fn unlock(&self);

    /// Makes sure that the folder is still the one that was taken, and under its name. Does not
    /// wait for a device. A storage that cannot be taken away needs not say anything.
    ///
    /// # Errors
    /// `NotFound` if it was unlocked, removed, renamed or replaced, or whatever the file system
    /// says.
    fn still_locked(&self) -> io::Result<()> {
        Ok(())
    }

    /// The names of all files, in no order.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Length of a file in bytes, without a descriptor for it if the storage can tell.
    ///
    /// # Errors
    /// `NotFound`, or whatever the file system says.
    fn file_bytes(&self, name: &str) -> io::Result<u64> {
        self.open(name)?.len()
    }

    /// Opens a file that exists, for reading and writing.
    ///
    /// # Errors
    /// `NotFound`, or whatever the file system says.
    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// Makes an empty file, replacing one of that name.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// Renames a file, replacing one of the new name. Durable after [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// Whatever the file system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// Whatever the file system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn sync_dir(&self) -> io::Result<()>;
}

/// One file.
pub trait StorageFile: Send + Sync + Debug {
    /// Reads as many bytes as there are, up to `buf.len()`; short only at the end of the file.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes`. May extend the file.
    ///
    /// # Errors
    /// Whatever the file system says; some of the bytes may have been written then.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn len(&self) -> io::Result<u64>;

    /// Whether it holds no bytes.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) to `len` bytes.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The barrier: when it returns, everything written before survives a power loss.
    ///
    /// # Errors
    /// Whatever the file system says. What was written since the last good barrier is then in doubt
    /// for ever.
    fn sync_data(&self) -> io::Result<()>;
}

/// Writes a whole file so that after a crash either the old or the new content is there.
///
/// # Errors
/// Whatever the file system says; the old content then still stands.
pub fn replace_file(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    write_under(storage, &temporary, |file| file.write_all_at(bytes, 0))?;
    storage.rename(&temporary, name)?;
    storage.sync_dir()
}

/// Makes a temporary file whose content is what `write` writes, durably; on failure its space is
/// given back.
///
/// # Errors
/// Those of `write`, and whatever the file system says.
pub(crate) fn write_under<E: From<io::Error>>(
    storage: &dyn Storage,
    temporary: &str,
    write: impl FnOnce(&dyn StorageFile) -> Result<(), E>,
) -> Result<Arc<dyn StorageFile>, E> {
    let write_durably = || {
        let file = storage.create(temporary)?;
        write(&*file)?;
        file.sync_data()?;
        Ok(file)
    };
    write_durably().inspect_err(|_| {
        let _ = storage.remove(temporary);
    })
}

/// Reads exactly `len` bytes at `offset`.
///
/// # Errors
/// `UnexpectedEof` if the file ends before, or whatever the file system says.
pub fn read_exact_at(file: &dyn StorageFile, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    if file.read_at(&mut bytes, offset)? < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}
