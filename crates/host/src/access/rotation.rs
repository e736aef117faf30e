//! The secrets in use. They are rotated while tokens are verified: here, or by another process that
//! replaces their file.

use super::token_secret::{self, Secrets};
use crate::kept_file::FileCheck;
use crate::stamp::Stamp;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The secrets in use, and their file.
#[derive(Debug)]
pub(crate) struct InUse {
    secrets: RwLock<Arc<Secrets>>,
    generation: AtomicU64,
    /// The file as last read. Locked while it is replaced or read.
    seen: Mutex<Option<Stamp>>,
}

/// The result of checking the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reread {
    /// The secrets are unchanged.
    Same,
    /// The secrets have changed and are now in use.
    Changed,
}

impl InUse {
    /// The secrets of a data folder; generates one if there is none.
    ///
    /// # Errors
    /// As [`Secrets::open`].
    pub(crate) fn open(data: &Path) -> io::Result<InUse> {
        Secrets::open(data)?;
        // The file exists now. It is stamped first and read afterwards, never the other way round.
        let stamp = Stamp::of(&token_secret::path(data))?;
        let in_use = InUse::of(Secrets::open(data)?);
        *in_use.seen() = Some(stamp);
        Ok(in_use)
    }

    /// These secrets, without a file.
    pub(crate) fn of(secrets: Secrets) -> InUse {
        InUse {
            secrets: RwLock::new(Arc::new(secrets)),
            generation: AtomicU64::new(0),
            seen: Mutex::default(),
        }
    }

    /// The secrets.
    pub(crate) fn now(&self) -> Arc<Secrets> {
        Arc::clone(&self.secrets.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts the replacements.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Generates a new secret, which signs from now on ([`Secrets::rotate`]).
    ///
    /// # Errors
    /// As [`Secrets::open`]. Nothing has changed then.
    pub(crate) fn rotate(&self, data: &Path) -> io::Result<()> {
        let _seen = self.seen();
        self.replace(Secrets::rotate(data)?);
        Ok(())
    }

    /// Drops the secret that only verifies ([`Secrets::retire`]).
    ///
    /// # Errors
    /// As [`Secrets::open`]. Nothing has changed then.
    pub(crate) fn retire(&self, data: &Path) -> io::Result<()> {
        let _seen = self.seen();
        self.replace(Secrets::retire(data)?);
        Ok(())
    }

    /// Reads the file if it has changed since it was read.
    ///
    /// # Errors
    /// As [`Secrets::open`], once for each wrong file: the previous secrets stay in use. A missing
    /// file is wrong, too, and no secret is generated.
    pub(crate) fn reread(&self, data: &Path) -> io::Result<Reread> {
        let mut seen = self.seen();
        let stamp = Stamp::of(&token_secret::path(data));
        let found = stamp.as_ref().ok().copied();
        if found == *seen {
            return Ok(Reread::Same);
        }
        *seen = found;
        stamp?;
        Ok(self.replace(Secrets::read(data)?))
    }

    /// Checks that the file still holds what was read, and writes the secrets in use again if not.
    /// A file that another process has replaced is not judged here but by
    /// [`reread`](Self::reread), and neither is a missing one, with which an operator ends all
    /// tokens.
    ///
    /// # Errors
    /// The file can be neither read nor written.
    pub(crate) fn keep(&self, data: &Path) -> io::Result<FileCheck> {
        let mut seen = self.seen();
        let stamp = match Stamp::of(&token_secret::path(data)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileCheck::Sound),
            stamp => Some(stamp?),
        };
        if stamp != *seen {
            return Ok(FileCheck::Sound);
        }
        let check = self.now().keep(data)?;
        if check == FileCheck::Mended {
            *seen = Some(Stamp::of(&token_secret::path(data))?);
        }
        Ok(check)
    }

    fn replace(&self, secrets: Secrets) -> Reread {
        let mut held = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        if held.is_same(&secrets) {
            return Reread::Same;
        }
        *held = Arc::new(secrets);
        // Set after the secrets: a verification under the new number uses the new secrets.
        self.generation.fetch_add(1, Ordering::Release);
        Reread::Changed
    }

    fn seen(&self) -> MutexGuard<'_, Option<Stamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn signed(secrets: &InUse) -> Vec<u8> {
        secrets.now().sign(b"m").as_ref().to_vec()
    }

    fn counts(secrets: &InUse, tag: &[u8]) -> bool {
        secrets.now().verifies(b"m", tag)
    }

    #[test]
    fn a_rotation_here_is_in_use_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = InUse::open(dir.path()).unwrap();
        let first = signed(&secrets);
        assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Same);
        assert_eq!(secrets.generation(), 0);
        secrets.rotate(dir.path()).unwrap();
        let second = signed(&secrets);
        assert!(first != second && counts(&secrets, &first) && counts(&secrets, &second));
        assert_eq!(secrets.generation(), 1);
        // The file has changed, but not its content.
        assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Same);
        secrets.retire(dir.path()).unwrap();
        assert!(!counts(&secrets, &first) && counts(&secrets, &second));
        assert_eq!(secrets.generation(), 2);
        secrets.retire(dir.path()).unwrap();
        assert_eq!(secrets.generation(), 2, "there was nothing to retire");
    }

    #[test]
    fn a_rotation_elsewhere_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (InUse::open(dir.path()).unwrap(), InUse::open(dir.path()).unwrap());
        let first = signed(&here);
        assert!(counts(&there, &first));
        there.rotate(dir.path()).unwrap();
        there.rotate(dir.path()).unwrap();
        assert!(!counts(&here, &signed(&there)) && counts(&here, &first));
        assert_eq!(here.reread(dir.path()).unwrap(), Reread::Changed);
        assert!(counts(&here, &signed(&there)) && !counts(&here, &first));
        assert_eq!(here.generation(), 1);
        assert_eq!(here.reread(dir.path()).unwrap(), Reread::Same);
    }

    #[test]
    fn a_file_that_is_wrong_changes_nothing_and_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = InUse::open(dir.path()).unwrap();
        let (tag, path) = (signed(&secrets), token_secret::path(dir.path()));
        let good = fs::read(&path).unwrap();
        fs::write(&path, "rubbish").unwrap();
        assert_eq!(secrets.reread(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Same, "told once");
        fs::remove_file(&path).unwrap();
        assert_eq!(secrets.reread(dir.path()).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Same, "told once");
        assert!(!path.exists(), "none is drawn");
        assert!(counts(&secrets, &tag) && secrets.generation() == 0);
        fs::write(&path, good).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = secrets.reread(dir.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "others may read it now");
    }

    #[test]
    fn a_file_that_rots_is_written_again_and_one_that_was_replaced_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = InUse::open(dir.path()).unwrap();
        secrets.rotate(dir.path()).unwrap();
        assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Same);
        let (tag, path) = (signed(&secrets), token_secret::path(dir.path()));
        let good = fs::read(&path).unwrap();
        assert_eq!(secrets.keep(dir.path()).unwrap(), FileCheck::Sound);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            // Rot leaves the times of a file alone.
            *secrets.seen() = Some(Stamp::of(&path).unwrap());
            assert_eq!(secrets.keep(dir.path()).unwrap(), FileCheck::Mended, "byte {at}");
            assert!(fs::read(&path).unwrap() == good, "byte {at}");
            assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Same);
            assert_eq!(secrets.keep(dir.path()).unwrap(), FileCheck::Sound);
        }
        assert!(counts(&secrets, &tag));
        InUse::open(dir.path()).unwrap().rotate(dir.path()).unwrap();
        let rotated = fs::read(&path).unwrap();
        assert_eq!(secrets.keep(dir.path()).unwrap(), FileCheck::Sound);
        assert!(fs::read(&path).unwrap() == rotated, "another process rotates");
        assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Changed);
        fs::remove_file(&path).unwrap();
        assert_eq!(secrets.keep(dir.path()).unwrap(), FileCheck::Sound);
        assert!(!path.exists(), "an operator ends all tokens");
    }

    #[test]
    fn rotations_at_once_follow_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = InUse::open(dir.path()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let elsewhere = InUse::open(dir.path()).unwrap();
                    for _ in 0..5 {
                        elsewhere.rotate(dir.path()).unwrap();
                    }
                });
            }
        });
        assert_eq!(secrets.reread(dir.path()).unwrap(), Reread::Changed);
        assert!(counts(&InUse::open(dir.path()).unwrap(), &signed(&secrets)));
    }
}
