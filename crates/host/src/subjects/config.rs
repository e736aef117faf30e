//! The settings of data subjects' keys.

use crate::settings::section;
use crate::setup::SetupError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellspring_log::storage::{DiskStorage, Storage};
use wellspring_subject_keys::{RootSource, SubjectKeys, SubjectNames};

/// The folder of the store, and the root's name in it, in the data folder.
const FOLDER: &str = "keys";
const ROOT: &str = "root";
const LONGEST_FENCE_S: u64 = 3_650 * 86_400;

section! {
    /// Settings of the keys that seal personal data.
    SubjectConfig from SubjectConfigArgs under "Personal data":
    /// File of the root that wraps the keys of data subjects, best on another device; made with
    /// the first key. Empty for keys/root in the data folder.
    subject_key_root: PathBuf = "WELLSPRING_SUBJECT_KEY_ROOT", PathBuf::new();
    /// Command that prints the root instead, for example from a vault. Empty for none.
    subject_key_command: String = "WELLSPRING_SUBJECT_KEY_COMMAND", String::new();
    /// Folder for backups of the keys, apart from those of the data: the two newest are kept, after
    /// an erasure one. Empty for none.
    subject_key_backup_to: PathBuf = "WELLSPRING_SUBJECT_KEY_BACKUP_TO", PathBuf::new();
    /// How long nothing is sealed for a subject that was erased, in seconds.
    subject_fence_s: u64 = "WELLSPRING_SUBJECT_FENCE_S", 30 * 86_400;
    /// Take data subjects that look like e-mail addresses or telephone numbers, although tags are
    /// never erased.
    [default_missing_value = "true", num_args = 0..=1] subject_allow_identifying: bool = "WELLSPRING_SUBJECT_ALLOW_IDENTIFYING", false;
}

impl SubjectConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self, data: &Path, backups: &str) -> Result<(), SetupError> {
        if self.subject_fence_s > LONGEST_FENCE_S {
            return Err(format!("subject_fence_s must be at most {LONGEST_FENCE_S}").into());
        }
        if !self.subject_key_command.is_empty() && !self.subject_key_root.as_os_str().is_empty() {
            return Err("set subject_key_root or subject_key_command, not both".into());
        }
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
        let keys = absolute(&self.subject_key_backup_to);
        let is_set = !self.subject_key_backup_to.as_os_str().is_empty();
        for (other, what) in [(data, "the data folder"), (Path::new(backups), "backup_to")] {
            let other_is_set = !other.as_os_str().is_empty();
            if is_set && other_is_set && keys.starts_with(absolute(other)) {
                return Err(format!("subject_key_backup_to must not be in {what}").into());
            }
        }
        Ok(())
    }

    /// Opens the keys of a server with this data folder.
    ///
    /// # Errors
    /// A sentence about what is missing or damaged.
    pub(crate) fn open(&self, data: &Path) -> Result<SubjectKeys, SetupError> {
        let folder = data.join(FOLDER);
        let source = if !self.subject_key_command.is_empty() {
            RootSource::Command(self.subject_key_command.clone())
        } else if self.subject_key_root.as_os_str().is_empty() {
            RootSource::File(folder.join(ROOT))
        } else {
            RootSource::File(self.subject_key_root.clone())
        };
        let has_folder = folder.is_dir();
        let opener =
            Box::new(move || Ok(Arc::new(DiskStorage::create(&folder)?) as Arc<dyn Storage>));
        let names =
            if self.subject_allow_identifying { SubjectNames::Any } else { SubjectNames::Opaque };
        SubjectKeys::open(opener, source, has_folder, names)
            .map_err(|fault| SetupError::new(fault.to_string()))
    }
}
