//! What tells that a file is another than when it was read.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file, how long, and when it, its name or who may read it was last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// That of a file as it is now. Taken before the file is read, so that what is written
    /// meanwhile is read the next time.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn of(path: &Path) -> io::Result<Stamp> {
        let metadata = fs::metadata(path)?;
        Ok(Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            // The time of status: a file of an earlier time that is moved here has a new one, and
            // one that was open to others and no longer is.
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        })
    }
}
