//! The settings of scheduled backups.

use super::destination::Destination;
use crate::settings::section;
use crate::setup::SetupError;
use std::path::{Path, PathBuf};
use wellspring_backup::Nesting;

section! {
    /// Settings of scheduled backups.
    BackupConfig from BackupConfigArgs under "Backups and checks":
    /// Where to keep scheduled backups of all logs: a folder, best on another device, or
    /// s3://BUCKET/PREFIX, in a build with the feature s3. Empty for none.
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
    /// Checks the settings, for a server with this data folder.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self, is_shared: bool, data: &Path) -> Result<(), SetupError> {
        const LONGEST_S: u64 = 366 * 86_400;
        const SLOWEST_BYTES: u64 = 64 << 10;
        if !(60..=LONGEST_S).contains(&self.backup_every_s) {
            return Err(format!("backup_every_s must be from 60 to {LONGEST_S}").into());
        }
        if self.scrub_every_s > LONGEST_S {
            return Err(format!("scrub_every_s must be at most {LONGEST_S}").into());
        }
        for (name, rate) in [
            ("backup_bytes_per_s", self.backup_bytes_per_s),
            ("scrub_bytes_per_s", self.scrub_bytes_per_s),
        ] {
            if (1..SLOWEST_BYTES).contains(&rate) {
                return Err(format!("{name} must be 0 or at least {SLOWEST_BYTES}").into());
            }
        }
        if self.backup_keep == 0 {
            return Err("backup_keep must be at least 1".into());
        }
        let destination = self.destination()?;
        if let Some(Destination::Folder(dir)) = &destination {
            check_apart(dir, data)?;
        }
        if destination.is_some() && is_shared {
            return Err("backup_to cannot be combined with --journal: back up the database that \
                        the journal names"
                .into());
        }
        Ok(())
    }

    /// Where backups go, if anywhere.
    ///
    /// # Errors
    /// A sentence about the setting.
    pub(super) fn destination(&self) -> Result<Option<Destination>, SetupError> {
        match self.backup_to.as_str() {
            "" => Ok(None),
            url if url.starts_with("s3://") && cfg!(feature = "s3") => {
                Ok(Some(Destination::ObjectStore(url.to_owned())))
            }
            url if url.starts_with("s3://") => Err(format!(
                "backup_to {url}: this program was built without support for object stores; build \
                 it with --features s3"
            )
            .into()),
            // A folder of this name would be made where the server happens to run.
            "-" => {
                Err("backup_to -: must be a folder or s3://BUCKET/PREFIX; standard output is for \
                        `wellspring backup --to -`"
                    .into())
            }
            url if url.contains("://") => {
                Err(format!("backup_to {url}: must be a folder or s3://BUCKET/PREFIX").into())
            }
            path => Ok(Some(Destination::Folder(PathBuf::from(path)))),
        }
    }
}

/// Refuses a folder of backups that holds the data or is among it: what takes the one takes both.
fn check_apart(place: &Path, data: &Path) -> Result<(), SetupError> {
    // The logs may be elsewhere, by a link.
    for folder in [data.to_owned(), data.join("logs")] {
        let fault = match Nesting::of(place, &folder) {
            Nesting::Apart => continue,
            Nesting::Same => "is",
            Nesting::Inside => "is in",
            Nesting::Contains => "holds",
        };
        return Err(format!(
            "backup_to {}: {fault} the data folder {}; keep backups elsewhere, best on another \
             device",
            place.display(),
            folder.display()
        )
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::HostConfig;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn checked(data: &Path, place: &Path) -> Result<(), crate::setup::SetupError> {
        let [data, place] = [data, place].map(|path| path.to_str().unwrap());
        HostConfig::loaded(&["--data", data, "--backup-to", place]).map(drop)
    }

    #[test]
    fn backups_are_kept_apart_from_the_data() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("data")).unwrap();
        fs::create_dir_all(at("device/logs")).unwrap();
        symlink(at("data"), at("link")).unwrap();
        symlink(at("device/logs"), at("data/logs")).unwrap();
        for (place, fault) in [
            ("data", "is the data folder "),
            ("link", "is the data folder "),
            ("data/backups", "is in the data folder "),
            ("link/none/at/all", "is in the data folder "),
            (".", "holds the data folder "),
            ("device", "holds the data folder "),
            ("device/logs/x", "is in the data folder "),
        ] {
            let told = checked(&at("data"), &at(place)).unwrap_err();
            assert!(
                told.to_string().contains("backup_to ") && told.to_string().contains(fault),
                "{place}: {told}"
            );
        }
        for place in ["data-backups", "device/backups", "none", "link/../backups"] {
            assert_eq!(checked(&at("data"), &at(place)), Ok(()), "{place}");
        }
    }
}
