//! The folder in which the tools keep state between commands, private to its owner.

use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The folder for one kind of state, e.g. `logins`; it may not exist yet. `None` if the environment
/// names no place. State, not configuration: people put configuration under version control.
pub(crate) fn of(kind: &str) -> Option<PathBuf> {
    // The specification says to ignore relative paths.
    let absolute =
        |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))?;
    Some(state.join("wellspring").join(kind))
}

/// Creates a folder and its parents with mode 0700; existing ones are left unchanged.
///
/// # Errors
/// Those of the system.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file with this content and mode 0600, replacing an existing one atomically. Its folder
/// must exist. A concurrent reader sees the old content or the new.
///
/// # Errors
/// Those of the system. The old file is unchanged then.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension(format!("{}.unfinished", std::process::id()));
    // One left behind by a killed process with the same id.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write(&unfinished, content).and_then(|()| fs::rename(&unfinished, path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    // A new file: no other user can have chosen its mode or its target.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
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
        let folder = dir.path().join("wellspring").join("logins");
        make(&folder).unwrap();
        make(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let path = folder.join("a.json");
        replace(&path, b"first").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"first".to_vec(), 0o600));
        // A file readable by others becomes private, and what a killed process left is no obstacle.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let left = path.with_extension(format!("{}.unfinished", std::process::id()));
        fs::write(&left, "half").unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"second".to_vec(), 0o600));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // Nothing can be renamed onto a folder that is not empty: nothing is left of the attempt.
        let full = folder.join("full");
        fs::create_dir_all(full.join("x")).unwrap();
        replace(&full, b"third").unwrap_err();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        replace(&folder.join("none").join("b.json"), b"").unwrap_err();
    }
}
