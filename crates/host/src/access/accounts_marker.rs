//! A marker file in the data folder which records that there have been accounts. The last account
//! is never deleted: a folder with the marker and without accounts has lost its system log, and
//! starting would leave the server open.

use super::gate::Gate;
use crate::kept_file::FileCheck;
use crate::names::SYSTEM_LOG;
use crate::setup::SetupError;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wellspring_log::storage::DeviceReader;

/// The file, in the data folder.
pub(super) const FILE: &str = "has-accounts";
const TEXT: &str = "This data folder has had accounts. While this file exists, `wellspring \
                    serve` refuses to start without any.\n";

/// Marks a data folder that has accounts.
///
/// # Errors
/// A sentence: the file system refused.
pub fn seal(data: &Path, gate: &Gate) -> Result<(), SetupError> {
    if !gate.has_accounts() {
        return Ok(());
    }
    mark(data)
}

/// Whether a data folder is marked as having had accounts. If that cannot be read, it counts as
/// marked.
pub fn is_marked(data: &Path) -> bool {
    data.join(FILE).try_exists().unwrap_or(true)
}

/// Marks a data folder in which an account was just created.
///
/// # Errors
/// A sentence: the file system refused.
pub fn mark(data: &Path) -> Result<(), SetupError> {
    if data.join(FILE).exists() {
        return Ok(());
    }
    write(data).map_err(|error| {
        SetupError::new(format!("cannot write {}: {error}", data.join(FILE).display()))
    })
}

/// Checks that a folder with the marker still has its system log, before one is created: a restored
/// log must find its place free.
///
/// # Errors
/// A sentence: the log is missing.
pub(crate) fn check_log(data: &Path) -> Result<(), SetupError> {
    let is_there = |path: &Path| path.try_exists().map_err(|e| format!("{}: {e}", path.display()));
    let mark = data.join(FILE);
    if is_there(&mark)? && !is_there(&data.join("logs").join(SYSTEM_LOG))? {
        return Err(lost(data, &mark).into());
    }
    Ok(())
}

/// Marks a data folder that has accounts, and checks that one that had any still does.
///
/// # Errors
/// A sentence: it has none any more, or the marker cannot be written.
pub(crate) fn check(data: &Path, gate: &Gate) -> Result<(), SetupError> {
    let mark = data.join(FILE);
    let is_marked = mark.try_exists().map_err(|error| format!("{}: {error}", mark.display()))?;
    if is_marked && !gate.has_accounts() {
        return Err(lost(data, &mark).into());
    }
    seal(data, gate)
}

/// Checks the marker of a data folder that has accounts, and writes it again if it holds anything
/// else. Only its existence matters.
///
/// # Errors
/// The file system's.
pub(super) fn keep(data: &Path, gate: &Gate) -> io::Result<FileCheck> {
    if !gate.has_accounts() {
        return Ok(FileCheck::Sound);
    }
    match DeviceReader::read_file(&data.join(FILE), 2 * TEXT.len()) {
        Ok(found) if found == TEXT.as_bytes() => Ok(FileCheck::Sound),
        Ok(_) => {
            write(data)?;
            Ok(FileCheck::Mended)
        }
        // The accounts may be new to this node: another one of its cluster has created them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            write(data)?;
            Ok(FileCheck::Sound)
        }
        Err(error) => Err(error),
    }
}

fn lost(data: &Path, mark: &Path) -> String {
    let data = data.display();
    format!(
        "there were accounts in {data} and now there are none, so every client would have full \
         access: restore {data}/logs/system, or create an administrator with `wellspring user \
         add NAME --role admin --data {data}`; or remove {} to run without accounts",
        mark.display()
    )
}

fn write(data: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(data.join(FILE))?;
    file.write_all(TEXT.as_bytes())?;
    file.sync_all()?;
    fs::File::open(data)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::view::{Command, PasswordHash};
    use crate::identity::{AccountName, Grant, Role};
    use crate::testing;

    #[test]
    fn what_is_refused_makes_no_log_in_the_place_of_the_lost_one() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(check_log(dir.path()), Ok(()), "a new folder");
        write(dir.path()).unwrap();
        assert!(check_log(dir.path()).unwrap_err().to_string().contains("logs/system"));
        fs::create_dir_all(dir.path().join("logs/system")).unwrap();
        assert_eq!(check_log(dir.path()), Ok(()));
    }

    #[test]
    fn a_folder_that_has_lost_its_accounts_is_not_opened_to_everybody() {
        let dir = tempfile::tempdir().unwrap();
        let host = testing::host(dir.path(), &[]);
        check(dir.path(), &host.access).unwrap();
        assert!(!dir.path().join(FILE).exists());
        let name = AccountName::parse("ann").unwrap();
        let roles = Grant::everywhere(Role::Admin).into();
        let add = Command::AddAccount { name, password: PasswordHash::new("$x"), roles };
        super::super::offline::execute(host.access.live(), &[add]).unwrap();
        seal(dir.path(), &host.access).unwrap();
        check(dir.path(), &host.access).unwrap();
        let mark = dir.path().join(FILE);
        for text in ["", "This data folder has had accountz.", TEXT] {
            fs::write(&mark, text).unwrap();
            let expected = if text == TEXT { FileCheck::Sound } else { FileCheck::Mended };
            assert_eq!(keep(dir.path(), &host.access).unwrap(), expected, "{text:?}");
            assert_eq!(fs::read_to_string(&mark).unwrap(), TEXT);
        }
        fs::remove_file(&mark).unwrap();
        assert_eq!(keep(dir.path(), &host.access).unwrap(), FileCheck::Sound);
        assert!(is_marked(dir.path()), "the accounts may have come from another node");
        drop(host);
        let lost = tempfile::tempdir().unwrap();
        let host = testing::host(lost.path(), &[]);
        fs::copy(dir.path().join(FILE), lost.path().join(FILE)).unwrap();
        let refused = check(lost.path(), &host.access).unwrap_err();
        assert!(
            refused.to_string().contains("logs/system") && refused.to_string().contains(FILE),
            "{refused}"
        );
        fs::remove_file(lost.path().join(FILE)).unwrap();
        assert_eq!(check(lost.path(), &host.access), Ok(()));
    }
}
