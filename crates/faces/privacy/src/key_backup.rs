//! Backups of the store of keys, apart from those of the data. The newest opens every older backup
//! of the data, as keys are added and destroyed and never changed, so older ones have no use but to
//! bring erased subjects back: two are kept, and after an erasure one.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "subject-keys-";
const SUFFIX: &str = ".wsk";

/// Whether earlier copies may hold keys that were erased since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlierCopies {
    One,
    None,
}

/// Writes a copy of the store, made at this time (µs since 1970 UTC), into a folder, durably, and
/// removes older ones.
///
/// # Errors
/// The file system's.
pub(crate) fn write(
    folder: &Path,
    now_us: u64,
    bytes: &[u8],
    earlier: EarlierCopies,
) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let name = format!("{PREFIX}{now_us:020}{SUFFIX}");
    let temporary = folder.join(format!("{name}.tmp"));
    let _ = fs::remove_file(&temporary);
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, folder.join(&name))?;
    let mut copies = copies(folder)?;
    copies.retain(|copy| !copy.ends_with(&name));
    let keep = match earlier {
        EarlierCopies::One => 1,
        EarlierCopies::None => 0,
    };
    for old in copies.iter().rev().skip(keep) {
        fs::remove_file(old)?;
    }
    fs::File::open(folder)?.sync_all()
}

/// The copies in a folder, oldest first.
fn copies(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut copies = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            copies.push(entry.path());
        }
    }
    copies.sort();
    Ok(copies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_copies_are_kept_and_after_an_erasure_one() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("keys");
        let names = || {
            let copies = copies(&folder).unwrap();
            copies.iter().map(|copy| fs::read(copy).unwrap()).collect::<Vec<_>>()
        };
        for change in [9, 10, 11] {
            write(&folder, change, &[change as u8], EarlierCopies::One).unwrap();
        }
        assert_eq!(names(), [[10], [11]]);
        write(&folder, 12, &[12], EarlierCopies::None).unwrap();
        assert_eq!(names(), [[12]]);
        fs::write(folder.join("other"), "stays").unwrap();
        write(&folder, 12, &[13], EarlierCopies::None).unwrap();
        assert_eq!(names(), [[13]]);
        assert!(folder.join("other").exists());
    }
}
