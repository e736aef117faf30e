//! Files in a data folder that belong to another user than the server's, as when root has put them
//! there.

use rustix::process::{getegid, geteuid};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where to look, in a data folder.
const PLACES: [&str; 3] = ["logs", "has-accounts", "token-secret"];

/// What to add to an error of the file system in a data folder: who owns the files, and the remedy.
/// Empty unless the error is a lack of permission and a file belongs to another user.
pub(crate) fn remedy(data: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => other_owner_remedy(data),
        _ => String::new(),
    }
}

/// What to add to a lack of permission in a data folder: who owns the files, and the remedy. Empty
/// unless a file belongs to another user than the one that this thread runs as.
#[must_use]
pub fn other_owner_remedy(data: &Path) -> String {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let found = PLACES.iter().find_map(|place| foreign_file(&data.join(place), uid));
    let Some((path, owner)) = found else { return String::new() };
    format!(
        "; {} belongs to the user with the id {owner}, and this process runs as {uid}: `chown -R \
         {uid}:{gid} {}`",
        path.display(),
        data.display()
    )
}

/// The first file or folder from here downwards that belongs to another user than this one, with
/// its owner. Links below are not followed: they may lead anywhere, and around.
fn foreign_file(path: &Path, uid: u32) -> Option<(PathBuf, u32)> {
    let metadata = fs::metadata(path).ok()?;
    if metadata.uid() != uid {
        return Some((path.to_owned(), metadata.uid()));
    }
    let mut below: Vec<PathBuf> = if metadata.is_dir() {
        fs::read_dir(path).ok()?.flatten().map(|entry| entry.path()).collect()
    } else {
        Vec::new()
    };
    below.retain(|path| !path.is_symlink());
    below.sort();
    below.iter().find_map(|path| foreign_file(path, uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    #[test]
    fn an_error_for_lack_of_permission_names_the_file_and_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        fs::create_dir_all(data.join("logs/main")).unwrap();
        let file = data.join("logs/main/epoch");
        fs::write(&file, "1").unwrap();
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        std::os::unix::fs::symlink("/", data.join("logs/link")).unwrap();
        assert_eq!(remedy(data, &denied), "", "all are its own");
        if chown(&file, Some(65_534), None).is_err() {
            // Only root can make the case.
            return;
        }
        let told = remedy(data, &denied);
        for part in [file.to_str().unwrap(), "user with the id 65534", "`chown -R "] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(remedy(data, &io::ErrorKind::StorageFull.into()), "");
    }
}
