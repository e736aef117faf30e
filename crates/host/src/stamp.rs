//! Detects that a file has changed since it was read.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identity and length of a file, and when its content, name or permissions last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// The current stamp of a file. Take it before reading the file, so that a change meanwhile is
    /// noticed next time.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn of(path: &Path) -> io::Result<Stamp> {
        let metadata = fs::metadata(path)?;
        Ok(Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            // The time of the last status change: an older file moved here has a new one, and so
            // has a file whose permissions were corrected.
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        })
    }
}
