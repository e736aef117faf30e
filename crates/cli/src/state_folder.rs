//! The folder in which the tools keep state between commands, private to its owner.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use wellspring_log::storage::replace_private_file;

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
    // Commands that run at the same time must not write to each other's.
    let unfinished = path.with_extension(format!("{}.unfinished", std::process::id()));
    replace_private_file(path, &unfinished, content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_folder_and_its_files_are_their_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("wellspring").join("logins");
        make(&folder).unwrap();
        make(&folder).unwrap();
        let path = folder.join("a.json");
        replace(&path, b"first").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
    }
}
