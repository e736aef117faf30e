//! What a data folder knows of the place of its scheduled backups: that it has had one of this
//! server. If it has none any more, the disk is not mounted, or it is another disk.
//!
//! Without the record, a schedule would create its folder below a mount point without its disk:
//! backups would go to the wrong device, and every figure would say that all is well. A damaged
//! manifest counts as a backup, because it may be one. A backup by hand begins a new place. The
//! record holds for buckets as well, and each disk of a set that takes turns passes once it has a
//! backup. What remains: a folder below the mount point that already holds backups, the first
//! backup of all, and a disk that is unmounted right after the check.

use std::fs;
use std::io;
use std::path::Path;
use wellspring_log::storage::{DiskStorage, replace_file};

/// The record, in the data folder.
const FILE: &str = "backed-up-to";

/// A place that has had a backup of this server.
pub(super) struct KnownPlace<'a> {
    /// The data folder of the server.
    pub(super) data: &'a Path,
    /// The place, as the setting names it.
    pub(super) place: &'a str,
    /// The id of the history of the log `system`, which tells the server from the one that it was
    /// before it was restored or rolled back. Backups of that one are no backups of this one.
    pub(super) history: String,
}

impl KnownPlace<'_> {
    fn text(&self) -> String {
        format!("{} {}\n", self.history, self.place)
    }

    /// Whether the data folder has this record, and no other. One that cannot be read is none.
    pub(super) fn is_recorded(&self) -> bool {
        fs::read(self.data.join(FILE)).is_ok_and(|found| found == self.text().as_bytes())
    }

    /// Records it, in place of any other.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn record(&self) -> io::Result<()> {
        if self.is_recorded() {
            return Ok(());
        }
        replace_file(&DiskStorage::existing(self.data)?, FILE, self.text().as_bytes())
    }
}
