//! A folder that is kept open, so that it is told from another one that gets its path.
//!
//! One `stat` before a file is created, renamed or removed tells whether the path still names the
//! folder. What remains is the moment between the look and the write, and what faces and commands
//! write rarely. Files relative to the open folder (`openat`) would let a server go on in a folder
//! that its operator has moved away.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A folder that is kept open. Files in it are written by its path, and the path may come to name
/// another folder, even that of another process: [`require_named`](Self::require_named) tells.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    handle: File,
}

impl HeldFolder {
    /// The folder that has this path now.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, or another error of the file system.
    pub fn open(path: &Path) -> io::Result<HeldFolder> {
        if !fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(HeldFolder { path: path.to_owned(), handle: File::open(path)? })
    }

    /// Its path when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the path still names it. Two calls that do not wait for a device.
    ///
    /// # Errors
    /// `NotFound` if it was moved, removed or replaced; or an error of the file system.
    pub fn require_named(&self) -> io::Result<()> {
        let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let held = id(self.handle.metadata()?);
        match fs::metadata(&self.path).map(id) {
            Ok(named) if named == held => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                let what = format!(
                    "{} is no longer the folder that this process opened: it was moved, removed or \
                     replaced",
                    self.path.display()
                );
                Err(io::Error::new(io::ErrorKind::NotFound, what))
            }
        }
    }

    /// Makes creations, renames and removals in it durable. Needs no descriptor.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_moved_removed_or_replaced_is_not_named_any_more() {
        let root = tempfile::tempdir().unwrap();
        let (path, away) = (root.path().join("folder"), root.path().join("away"));
        assert_eq!(HeldFolder::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir(&path).unwrap();
        let folder = HeldFolder::open(&path).unwrap();
        folder.require_named().unwrap();
        fs::rename(&path, &away).unwrap();
        let lost = |folder: &HeldFolder| {
            let error = folder.require_named().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(error.to_string().contains("is no longer the folder"), "{error}");
        };
        lost(&folder);
        fs::create_dir(&path).unwrap();
        lost(&folder);
        fs::remove_dir(&path).unwrap();
        fs::rename(&away, &path).unwrap();
        folder.require_named().unwrap();
        fs::remove_dir(&path).unwrap();
        lost(&folder);
        fs::write(&path, "").unwrap();
        assert_eq!(HeldFolder::open(&path).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }
}
