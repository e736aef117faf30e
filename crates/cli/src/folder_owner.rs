//! Who owns what a tool writes in a data folder: the folder's owner, even if root runs the tool, so
//! that the server can open it.

use crate::exit::Failure;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

/// What the tools write in a data folder.
const WRITTEN: [&str; 3] = ["logs", "has-accounts", "token-secret"];

/// Does work on a data folder; afterwards, failed or not, what root owns of the logs and beside
/// them belongs to the owner of the folder.
///
/// # Errors
/// Those of the work, or of the file system.
pub(crate) fn keeping_owner<T>(
    data: &Path,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let done = work();
    let given = give(data).map_err(|error| Failure::output(&data.display().to_string(), &error));
    done.and_then(|done| given.map(|()| done))
}

fn give(data: &Path) -> io::Result<()> {
    let Some(owner) = there(fs::metadata(data))? else { return Ok(()) };
    if owner.uid() == 0 {
        return Ok(());
    }
    WRITTEN.iter().try_for_each(|name| give_tree(&data.join(name), &owner))
}

fn give_tree(path: &Path, owner: &Metadata) -> io::Result<()> {
    let Some(link) = there(fs::symlink_metadata(path))? else { return Ok(()) };
    if link.uid() == 0 {
        match lchown(path, Some(owner.uid()), Some(owner.gid())) {
            // Only root gives files away, and only root has made them.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            given => given?,
        }
    }
    // `logs` may be a link to a folder elsewhere.
    let Some(itself) = there(fs::metadata(path))? else { return Ok(()) };
    if !itself.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        give_tree(&entry?.path(), owner)?;
    }
    Ok(())
}

/// `None` for what is not there.
fn there(found: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match found {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    #[test]
    fn what_root_writes_belongs_to_the_owner_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        if chown(&data, Some(65_534), Some(65_534)).is_err() {
            // Only root can make the case.
            return;
        }
        let written = ["logs", "logs/main", "logs/main/epoch", "has-accounts"];
        let work = || {
            fs::create_dir_all(data.join("logs/main")).unwrap();
            fs::write(data.join("logs/main/epoch"), "1").unwrap();
            fs::write(data.join("has-accounts"), "").unwrap();
            fs::write(data.join("notes"), "root's own").unwrap();
            Err::<(), _>(Failure::usage("it failed on the way"))
        };
        assert_eq!(keeping_owner(&data, work).unwrap_err().message, "it failed on the way");
        let owner = |name: &str| {
            let metadata = fs::metadata(data.join(name)).unwrap();
            (metadata.uid(), metadata.gid())
        };
        assert_eq!(written.map(owner), [(65_534, 65_534); 4]);
        assert_eq!(owner("notes").0, 0, "no file of the tools");
    }
}
