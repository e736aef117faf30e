//! The settings of scheduled backups.

use super::destination::Destination;
use crate::settings::section;
use std::path::PathBuf;

section! {
    /// Settings of scheduled backups.
    BackupConfig from BackupConfigArgs under "Backups and checks":
    /// Where to keep scheduled backups of all logs: a folder, best on another device, or
    /// s3://BUCKET/PREFIX. Empty for none.
    backup_to: String = "WELLSPRING_BACKUP_TO", String::new();
    /// Time between two backups, in seconds, at least 60.
    backup_every_s: u64 = "WELLSPRING_BACKUP_EVERY_S", 86_400;
    /// Number of backups to keep.
    backup_keep: usize = "WELLSPRING_BACKUP_KEEP", 14;
    /// Maximum rate at which a scheduled backup reads, in bytes per second; 0 for no limit.
    backup_bytes_per_s: u64 = "WELLSPRING_BACKUP_BYTES_PER_S", 64 << 20;
    /// Rate at which every log is read in the background and checked for damage, in bytes per
    /// second; 0 for never.
    scrub_bytes_per_s: u64 = "WELLSPRING_SCRUB_BYTES_PER_S", 8 << 20;
    /// Time between the ends of two such passes at least, in seconds.
    scrub_every_s: u64 = "WELLSPRING_SCRUB_EVERY_S", 86_400;
}

impl BackupConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self, is_shared: bool) -> Result<(), String> {
        const LONGEST_S: u64 = 366 * 86_400;
        const SLOWEST_BYTES: u64 = 64 << 10;
        if !(60..=LONGEST_S).contains(&self.backup_every_s) {
            return Err(format!("backup_every_s must be from 60 to {LONGEST_S}"));
        }
        if self.scrub_every_s > LONGEST_S {
            return Err(format!("scrub_every_s must be at most {LONGEST_S}"));
        }
        for (name, rate) in [
            ("backup_bytes_per_s", self.backup_bytes_per_s),
            ("scrub_bytes_per_s", self.scrub_bytes_per_s),
        ] {
            if (1..SLOWEST_BYTES).contains(&rate) {
                return Err(format!("{name} must be 0 or at least {SLOWEST_BYTES}"));
            }
        }
        if self.backup_keep == 0 {
            return Err("backup_keep must be at least 1".to_owned());
        }
        if self.destination()?.is_some() && is_shared {
            return Err("backup_to cannot be combined with --journal: back up the database that \
                        the journal names"
                .to_owned());
        }
        Ok(())
    }

    /// Where backups go, if anywhere.
    ///
    /// # Errors
    /// A sentence about the setting.
    pub(super) fn destination(&self) -> Result<Option<Destination>, String> {
        match self.backup_to.as_str() {
            "" => Ok(None),
            url if url.starts_with("s3://") && cfg!(feature = "s3") => {
                Ok(Some(Destination::ObjectStore(url.to_owned())))
            }
            url if url.starts_with("s3://") => Err(format!(
                "backup_to {url}: this program was built without support for object stores; build \
                 it with --features s3"
            )),
            // A folder of this name would be made where the server happens to run.
            "-" => {
                Err("backup_to -: must be a folder or s3://BUCKET/PREFIX; standard output is for \
                        `wellspring backup --to -`"
                    .to_owned())
            }
            url if url.contains("://") => {
                Err(format!("backup_to {url}: must be a folder or s3://BUCKET/PREFIX"))
            }
            path => Ok(Some(Destination::Folder(PathBuf::from(path)))),
        }
    }
}
