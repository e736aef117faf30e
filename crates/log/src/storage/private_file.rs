//! Files beside a log that only their owner may read: keys, secrets, logins.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a whole file with mode 0600 through a temporary one, atomically and durably. What a crash
/// has left under the temporary name is removed first: it may be readable by others, or hold what
/// was to be destroyed.
///
/// # Errors
/// Those of the file system. The old file is unchanged unless only the last barrier failed, and
/// nothing is left under the temporary name.
pub fn replace_private_file(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_if_there(temporary)?;
    let write = || {
        // A new file: no other user can have chosen its mode or its target.
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(temporary, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(temporary);
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes a file, which may be missing.
///
/// # Errors
/// Those of the file system.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all_and_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (path, temporary) = (dir.path().join("a"), dir.path().join("a.tmp"));
        let replace = |bytes| replace_private_file(&path, &temporary, bytes).unwrap();
        replace(b"first");
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"first".to_vec(), 0o600));
        // A file readable by others becomes private, and what a killed process left is no obstacle.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&temporary, "half").unwrap();
        replace(b"second");
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"second".to_vec(), 0o600));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        // Nothing can be renamed onto a folder that is not empty: nothing is left of the attempt.
        let full = dir.path().join("full");
        fs::create_dir_all(full.join("x")).unwrap();
        replace_private_file(&full, &temporary, b"third").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        let nowhere = dir.path().join("none").join("b");
        replace_private_file(&nowhere, &temporary, b"").unwrap_err();
    }
}
