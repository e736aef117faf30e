//! The interface between the log and files. All disk access of the log uses these two traits, so
//! that crash and fault tests can replace them.

mod device;
mod disk;
mod held_folder;
mod private_file;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
pub(crate) mod small_file;

pub use device::DeviceReader;
pub use disk::{DiskStorage, create_folder};
pub use held_folder::HeldFolder;
pub use private_file::{remove_if_there, replace_private_file};
pub use small_file::{checked_lines, read_small_file, with_check};

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A flat folder of files.
pub trait Storage: Send + Sync + Debug + 'static {
    /// The folder's name in messages.
    fn name(&self) -> String;

    /// Locks the folder for this process until the storage is dropped or unlocked.
    ///
    /// # Errors
    /// `WouldBlock` if another process has locked it.
    fn lock(&self) -> io::Result<()>;

    /// Unlocks the folder.
    fn unlock(&self);

    /// Checks that the folder still exists under its name. Does not wait for a device. A storage
    /// that cannot be removed can keep the default.
    ///
    /// # Errors
    /// `NotFound` if it was removed, renamed or replaced, or an error of the file system.
    fn require_folder(&self) -> io::Result<()> {
        Ok(())
    }

    /// Checks that the folder still exists under its name, and that the lock is held. Does not wait
    /// for a device. A storage that cannot be removed can keep the default.
    ///
    /// # Errors
    /// Those of [`require_folder`](Self::require_folder), and `NotFound` if it was unlocked.
    fn still_locked(&self) -> io::Result<()> {
        Ok(())
    }

    /// The names of all files, in unspecified order.
    ///
    /// # Errors
    /// An error of the file system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Length of a file in bytes, without opening it if the storage can do that.
    ///
    /// # Errors
    /// `NotFound`, or an error of the file system.
    fn file_bytes(&self, name: &str) -> io::Result<u64> {
        self.open(name)?.len()
    }

    /// Checks that an open file still has this name, so that it is there at the next opening. Does
    /// not wait for a device. The default suits a storage whose files only this process removes.
    ///
    /// # Errors
    /// `NotFound` if no file has the name, or another one; or an error of the file system.
    fn still_named(&self, _name: &str, _file: &dyn StorageFile) -> io::Result<()> {
        Ok(())
    }

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`, or an error of the file system.
    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// Creates an empty file, replacing one with that name.
    ///
    /// # Errors
    /// Those of [`require_folder`](Self::require_folder): nothing is changed in another folder that
    /// has got the name, here and below.
    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>>;

    /// Renames a file, replacing one with the new name. Durable after [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// An error of the file system.
    fn sync_dir(&self) -> io::Result<()>;
}

/// One file.
pub trait StorageFile: Send + Sync + Debug {
    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    ///
    /// # Errors
    /// An error of the file system.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// A reader of what the device holds, rather than the page cache, for checks of bytes that no
    /// longer change. `None` if there is no difference, or no descriptor left.
    fn past_cache(&self) -> Option<DeviceReader> {
        None
    }

    /// What tells the file from every other one, whatever their names: device and inode. `None` if
    /// the storage has nothing like it.
    ///
    /// # Errors
    /// An error of the file system.
    fn inode(&self) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }

    /// Writes all of `bytes`. May extend the file.
    ///
    /// # Errors
    /// An error of the file system; some of the bytes may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// An error of the file system.
    fn len(&self) -> io::Result<u64>;

    /// Whether it is empty.
    ///
    /// # Errors
    /// An error of the file system.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Truncates or extends (with zeros) to `len` bytes.
    ///
    /// # Errors
    /// An error of the file system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// A barrier: once it returns, everything written before survives a power loss.
    ///
    /// # Errors
    /// An error of the file system. Everything written since the last successful barrier is then
    /// permanently in doubt.
    fn sync_data(&self) -> io::Result<()>;
}

/// Writes a whole file atomically: after a crash, either the old or the new content exists.
///
/// # Errors
/// An error of the file system; the old content is unchanged.
pub fn replace_file(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    write_under(storage, &temporary, |file| file.write_all_at(bytes, 0))?;
    storage.rename(&temporary, name)?;
    storage.sync_dir()
}

/// Whether there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    // A limit on file sizes (`ulimit -f`) also counts as a full disk.
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Creates a temporary file, written by `write`, durably; releases its space on failure.
///
/// # Errors
/// Those of `write`, or an error of the file system.
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
/// `UnexpectedEof` if the file is too short, or an error of the file system.
pub fn read_exact_at(file: &dyn StorageFile, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    if file.read_at(&mut bytes, offset)? < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}
