//! Backups of the store of keys, apart from those of the data. The newest opens every older backup
//! of the data, as keys are added and destroyed and never changed, so older ones have no use but to
//! bring erased subjects back: two are kept, and after an erasure one.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use wellspring_log::storage::replace_private_file;
use wellspring_subject_keys::StoreCopy;

const SUFFIX: &str = ".wsk";

/// Whether earlier copies may hold keys that were erased since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlierCopies {
    One,
    None,
}

/// Writes a copy of the store, made at this time (µs since 1970 UTC), into a folder, durably, and
/// removes older ones of the same store.
///
/// # Errors
/// The file system's; or an older copy is longer. A store only grows, so this one has lost keys,
/// and its copy must not replace those that have them.
pub(crate) fn write(
    folder: &Path,
    copy: &StoreCopy,
    now_us: u64,
    earlier: EarlierCopies,
) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let prefix = format!("subject-keys-{:016x}-", copy.store);
    let mut older = copies(folder, &prefix)?;
    for older in &older {
        let (had, has) = (fs::metadata(older)?.len(), copy.bytes.len() as u64);
        if had > has {
            return Err(io::Error::other(format!(
                "the store of keys has {has} bytes and its backup {} has {had}: it has lost keys. \
                 Stop the server and put that backup in its place",
                older.display()
            )));
        }
    }
    // One name: what a crash has left is written again.
    let temporary = folder.join(format!("{prefix}.tmp"));
    let name = format!("{prefix}{now_us:020}{SUFFIX}");
    replace_private_file(&folder.join(&name), &temporary, &copy.bytes)?;
    older.retain(|copy| !copy.ends_with(&name));
    let keep = match earlier {
        EarlierCopies::One => 1,
        EarlierCopies::None => 0,
    };
    for old in older.iter().rev().skip(keep) {
        fs::remove_file(old)?;
    }
    fs::File::open(folder)?.sync_all()
}

/// The copies of a store in a folder, oldest first.
fn copies(folder: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut copies = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && name.ends_with(SUFFIX) {
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
        let write = |store: u64, at: u8, earlier| {
            let copy = StoreCopy { store, change: 1, bytes: vec![at] };
            super::write(&folder, &copy, at.into(), earlier).unwrap();
        };
        let kept = |store: u64| {
            let copies = copies(&folder, &format!("subject-keys-{store:016x}-")).unwrap();
            copies.iter().map(|copy| fs::read(copy).unwrap()).collect::<Vec<_>>()
        };
        for at in [9, 10, 11] {
            write(7, at, EarlierCopies::One);
        }
        write(8, 1, EarlierCopies::One);
        assert_eq!(kept(7), [[10], [11]]);
        // What a crash has left of a copy goes with the others.
        fs::write(folder.join(format!("subject-keys-{:016x}-.tmp", 7)), "half").unwrap();
        write(7, 12, EarlierCopies::None);
        assert_eq!((kept(7), kept(8)), (vec![vec![12]], vec![vec![1]]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        // A store that was cut short replaces nothing.
        let cut = StoreCopy { store: 7, change: 2, bytes: Vec::new() };
        for earlier in [EarlierCopies::One, EarlierCopies::None] {
            let refused = super::write(&folder, &cut, 13, earlier).unwrap_err().to_string();
            assert!(refused.contains("it has lost keys"), "{refused}");
        }
        assert_eq!(kept(7), [[12]]);
    }
}
