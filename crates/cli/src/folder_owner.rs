//! Runs the work in a data folder with the rights of the folder's owner, even if root runs the
//! tool. So the server can open what the tool writes, and symlinks planted by the owner give no
//! access that the owner does not have without root.
//!
//! The thread that does the work takes the effective user and group of the folder's owner, or of
//! the nearest existing parent, and threads that it starts inherit them. Only files that the
//! command names elsewhere (backups, the password file) are read as root, one operation at a time.
//! Working as root and changing the owner afterwards would give away the target of a planted
//! symlink.

use crate::exit::{Code, Failure};
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups, getuid};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use wellspring_host::foreign_files::other_owner_remedy;

/// The group to work with in a folder of root's group, whose rights would exceed the owner's: the
/// customary group without any.
const NO_GROUP: u32 = 65_534;
/// The text of the system's "permission denied" in an error.
const DENIED: &str = "(os error 13)";

/// Does work on a data folder. If root runs the tool and the folder is another user's, this thread,
/// and those that the work starts, have only the rights of that user meanwhile. What only the
/// caller may read is to be read [`as_caller`].
///
/// # Errors
/// Those of the work; the system does not let the thread become the owner, or the owner cannot
/// reach the folder.
pub(crate) fn keeping_owner<T>(
    data: &Path,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let shown = data.display();
    let failed = |doing: &str, error: &io::Error| {
        Failure::new(Code::Io, format!("{doing} {shown}: {error}"))
    };
    let owner = other_owner(data).map_err(|error| failed("looking at", &error))?;
    let Some(owner) = owner else { return work() };
    let uid = owner.uid();
    let _as_owner = AsOwner::begin(&owner).map_err(|error| {
        let doing = format!("becoming the user with the id {uid}, who owns");
        let Failure { code, message } = failed(&doing, &error);
        Failure::new(code, format!("{message}; run this as that user"))
    })?;
    if let Err(error) = fs::metadata(data)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        let message = format!(
            "the user with the id {uid} owns {shown} and cannot reach it: {error}; a folder above \
             it keeps that user out, and this works as that user"
        );
        return Err(Failure::new(Code::NoInput, message));
    }
    work().map_err(|Failure { code, mut message }| {
        if message.contains(DENIED) {
            message.push_str(&other_owner_remedy(data));
        }
        Failure { code, message }
    })
}

/// Reads what the command names, outside the data folder, with the rights of the caller, whatever
/// the work on the folder is done as.
pub(crate) fn as_caller<T>(read: impl FnOnce() -> T) -> T {
    let _back = Back::begin();
    read()
}

/// The owner of a folder that is not root's, for root; of the nearest one above it that exists, if
/// it does not.
fn other_owner(data: &Path) -> io::Result<Option<Metadata>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let path = std::path::absolute(data)?;
    let found = path.ancestors().find_map(|path| fs::metadata(path).ok());
    Ok(found.filter(|owner| owner.uid() != 0))
}

/// This thread has the rights of a folder's owner, until it is dropped.
struct AsOwner {
    group_before: Gid,
    groups_before: Vec<Gid>,
}

impl AsOwner {
    fn begin(owner: &Metadata) -> io::Result<AsOwner> {
        let gid = if owner.gid() == 0 { NO_GROUP } else { owner.gid() };
        // Dropped if a step fails, which undoes those before it.
        let before = AsOwner { group_before: getegid(), groups_before: getgroups()? };
        set::groups(&[])?;
        set::group(Gid::from_raw(gid))?;
        set::user(Uid::from_raw(owner.uid()))?;
        Ok(before)
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        // The user first, who may set the others. A failure leaves fewer rights, not more.
        let _ = set::user(Uid::ROOT);
        let _ = set::group(self.group_before);
        let _ = set::groups(&self.groups_before);
    }
}

/// This thread is the caller again, until it is dropped.
struct Back {
    owner: Uid,
}

impl Back {
    /// `None` if the thread already is the caller, or cannot become it: then the read fails.
    fn begin() -> Option<Back> {
        let owner = geteuid();
        let is_caller = owner.is_root() || !getuid().is_root();
        (!is_caller && set::user(Uid::ROOT).is_ok()).then_some(Back { owner })
    }
}

impl Drop for Back {
    fn drop(&mut self) {
        if set::user(self.owner).is_err() {
            // Never on as root, in a folder of another user.
            std::process::abort();
        }
    }
}

/// Effective ids of this thread alone. The real and the saved user stay root's, so there is a way
/// back.
#[cfg(target_os = "linux")]
mod set {
    use super::{Gid, Uid, io};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    pub(super) fn user(uid: Uid) -> io::Result<()> {
        Ok(set_thread_res_uid(None, Some(uid), None)?)
    }

    pub(super) fn group(gid: Gid) -> io::Result<()> {
        Ok(set_thread_res_gid(None, Some(gid), None)?)
    }

    pub(super) fn groups(groups: &[Gid]) -> io::Result<()> {
        Ok(set_thread_groups(groups)?)
    }
}

/// Threads have no ids of their own here.
#[cfg(not(target_os = "linux"))]
mod set {
    use super::{Gid, Uid, io};

    pub(super) fn user(_: Uid) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn group(_: Gid) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn groups(_: &[Gid]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;

    const NOBODY: u32 = 65_534;

    /// A data folder of another user, in a folder that lets everyone through; only root can make
    /// the case.
    fn others_folder() -> Option<(tempfile::TempDir, PathBuf)> {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let data = dir.path().join("data");
        fs::create_dir_all(data.join("logs")).unwrap();
        for path in [&data, &data.join("logs")] {
            chown(path, Some(NOBODY), Some(0)).ok()?;
        }
        Some((dir, data))
    }

    #[test]
    fn what_root_writes_belongs_to_the_owner_and_planted_links_lead_nowhere() {
        let Some((dir, data)) = others_folder() else { return };
        let secret = dir.path().join("secret");
        fs::write(&secret, "precious").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&secret, data.join("logs/epoch.tmp")).unwrap();
        let written = data.join("logs/main");
        let done = keeping_owner(&data, || {
            fs::create_dir(&written).unwrap();
            std::thread::scope(|scope| {
                let inherited = scope.spawn(|| fs::write(written.join("epoch"), "1"));
                inherited.join().unwrap().unwrap();
            });
            assert!(fs::write(data.join("logs/epoch.tmp"), "").is_err());
            assert_eq!(as_caller(|| fs::read_to_string(&secret)).unwrap(), "precious");
            assert!(fs::read(&secret).is_err(), "only for the one read");
            let panicked = catch_unwind(AssertUnwindSafe(|| as_caller(|| panic!("in a read"))));
            assert!(panicked.is_err() && fs::read(&secret).is_err(), "nor after a panic");
            Err::<(), _>(Failure::usage("it failed on the way"))
        });
        assert_eq!(done.unwrap_err().message, "it failed on the way");
        for path in [&written, &written.join("epoch")] {
            let metadata = fs::metadata(path).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY), "{}", path.display());
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "precious");
        assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
        assert!(geteuid().is_root() && getegid().is_root());
    }

    #[test]
    fn what_the_owner_cannot_open_is_told_with_the_remedy() {
        let Some((dir, data)) = others_folder() else { return };
        let epoch = data.join("logs/epoch");
        fs::write(&epoch, "1").unwrap();
        fs::set_permissions(&epoch, fs::Permissions::from_mode(0o600)).unwrap();
        let open = || {
            let opened = fs::read(&epoch);
            opened.map_err(|error| Failure::output(&epoch.display().to_string(), &error))
        };
        let told = keeping_owner(&data, open).unwrap_err().message;
        let remedy = format!("`chown -R {NOBODY}:{NOBODY} {}`", data.display());
        let owned = format!("{} belongs to the user with the id 0", epoch.display());
        assert!(told.contains(&remedy) && told.contains(&owned), "{told}");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let told = keeping_owner(&data, || -> Result<(), Failure> { panic!("not reached") });
        let Failure { code, message } = told.unwrap_err();
        assert!(message.contains("a folder above it keeps that user out"), "{message}");
        assert_eq!(code, Code::NoInput);
        let inner = data.join("not/there");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let made = keeping_owner(&inner, || {
            fs::create_dir_all(&inner).unwrap();
            Ok(fs::metadata(&inner).unwrap().uid())
        });
        assert_eq!(made.unwrap(), NOBODY, "as the owner of the folder that it is made in");
    }
}
