//! The folder of a demo.

use crate::exit::{Code, Failure};
use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The user that runs PostgreSQL passes through it, and sees nothing in it.
const MODE: u32 = 0o711;
/// Folders of demos that were killed and whose process had this one's number.
const TRIES: u32 = 100;

/// The folder of a demo. One that was made for it is removed when this is dropped.
pub(super) struct DemoFolder {
    path: PathBuf,
    fate: Fate,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Removed,
}

impl DemoFolder {
    /// The folder that was named, or a new one.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn open(named: Option<&Path>) -> Result<DemoFolder, Failure> {
        let failed = |path: &Path, error: io::Error| {
            Failure::new(Code::Io, format!("making the folder {}: {error}", path.display()))
        };
        if let Some(path) = named {
            let made = DirBuilder::new().recursive(true).mode(MODE).create(path);
            let path =
                made.and_then(|()| fs::canonicalize(path)).map_err(|error| failed(path, error))?;
            return Ok(DemoFolder { path, fate: Fate::Kept });
        }
        let base = env::temp_dir();
        for number in 0..TRIES {
            let path = base.join(format!("wellspring-demo-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(MODE).create(&path) {
                Ok(()) => {
                    // Independent of the umask.
                    fs::set_permissions(&path, fs::Permissions::from_mode(MODE))
                        .map_err(|error| failed(&path, error))?;
                    return Ok(DemoFolder { path, fate: Fate::Removed });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        Err(failed(&base, ErrorKind::AlreadyExists.into()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is kept when the demo ends.
    pub(super) fn is_kept(&self) -> bool {
        self.fate == Fate::Kept
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if self.fate == Fate::Removed
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            eprintln!("wellspring: {} could not be removed: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_its_own_is_removed_and_a_named_one_stays() {
        let own = DemoFolder::open(None).unwrap();
        let path = own.path().to_owned();
        assert!(path.is_dir() && !own.is_kept());
        drop(own);
        assert!(!path.exists());
        let parent = tempfile::tempdir().unwrap();
        let named = DemoFolder::open(Some(&parent.path().join("x/y"))).unwrap();
        let path = named.path().to_owned();
        drop(named);
        assert!(path.is_dir());
    }
}
