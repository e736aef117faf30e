//! The secret that signs tokens: 256 random bits in a file of the data folder, readable by the
//! owner only. During a rotation there are two: the new one signs, both verify.
//!
//! ```text
//! 64 hexadecimal digits, a line: signs
//! 64 hexadecimal digits, a line, if there is a second: verifies only
//! ```

use crate::kept_file::FileCheck;
use crate::random;
use ring::hmac;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wellspring_log::storage::{DeviceReader, replace_private_file};
use wellspring_types::hex;
use zeroize::Zeroizing;

/// The file, in the data folder.
pub(super) const FILE: &str = "token-secret";
/// The temporary file that replaces it.
const NEW_FILE: &str = "token-secret.new";
/// Longest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1_024;

type Secret = Zeroizing<[u8; 32]>;

/// The current secrets.
pub(crate) struct Secrets {
    signs: hmac::Key,
    /// The previous secret, while its tokens are valid.
    before: Option<hmac::Key>,
    /// Both, as the file has them: a key of `ring` cannot be written.
    kept: Vec<Secret>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", if self.before.is_some() { "two" } else { "one" })
    }
}

/// Whether a data folder has a secret, so that the tokens it has signed are valid.
pub fn has_token_secret(data: &Path) -> bool {
    path(data).exists()
}

impl Secrets {
    /// The secrets of a data folder; generates one if there is none.
    ///
    /// # Errors
    /// The file can be neither read nor written, is readable by others, or has unknown content.
    pub(crate) fn open(data: &Path) -> io::Result<Secrets> {
        let _turn = turn(data)?;
        let secrets = match read(data) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let secrets = vec![draw()?];
                replace(data, &secrets)?;
                secrets
            }
            read => read?,
        };
        Secrets::of(secrets)
    }

    /// As [`open`](Self::open), but generates none.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is no file.
    pub(super) fn read(data: &Path) -> io::Result<Secrets> {
        Secrets::of(read(data)?)
    }

    /// Generates a new signing secret; the previous one still verifies. An older one is dropped.
    ///
    /// # Errors
    /// As [`open`](Self::open). The file is unchanged then.
    pub(crate) fn rotate(data: &Path) -> io::Result<Secrets> {
        let _turn = turn(data)?;
        let mut secrets = read(data)?;
        secrets.insert(0, draw()?);
        secrets.truncate(2);
        replace(data, &secrets)?;
        Secrets::of(secrets)
    }

    /// Drops the secret that only verifies: a rotation ends.
    ///
    /// # Errors
    /// As [`open`](Self::open). The file is unchanged then.
    pub(crate) fn retire(data: &Path) -> io::Result<Secrets> {
        let _turn = turn(data)?;
        let mut secrets = read(data)?;
        secrets.truncate(1);
        replace(data, &secrets)?;
        Secrets::of(secrets)
    }

    fn of(secrets: Vec<Secret>) -> io::Result<Secrets> {
        let key = |secret: &Secret| hmac::Key::new(hmac::HMAC_SHA256, &**secret);
        let signs = secrets.first().map(key).ok_or_else(malformed)?;
        Ok(Secrets { signs, before: secrets.get(1).map(key), kept: secrets })
    }

    /// Compares the file, as the device has it, with these secrets, and writes it again if it holds
    /// anything else. Only for a file that no other process has replaced since they were read.
    ///
    /// # Errors
    /// The file can be neither read nor written.
    pub(super) fn keep(&self, data: &Path) -> io::Result<FileCheck> {
        let _turn = turn(data)?;
        let found = Zeroizing::new(DeviceReader::read_file(&path(data), MAX_FILE_BYTES as usize)?);
        if **found == *text_of(&self.kept).as_bytes() {
            return Ok(FileCheck::Sound);
        }
        replace(data, &self.kept)?;
        Ok(FileCheck::Mended)
    }

    /// Whether the secrets are the same. Compared by their signatures, as `ring` does not expose
    /// them.
    pub(super) fn is_same(&self, other: &Secrets) -> bool {
        let mark = |key: &hmac::Key| hmac::sign(key, b"");
        let before = |secrets: &Secrets| secrets.before.as_ref().map(mark);
        let is_before_same = match (before(self), before(other)) {
            (Some(one), Some(other)) => one.as_ref() == other.as_ref(),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_before_same && mark(&self.signs).as_ref() == mark(&other.signs).as_ref()
    }

    /// HMAC-SHA-256 of a message.
    pub(super) fn sign(&self, message: &[u8]) -> hmac::Tag {
        hmac::sign(&self.signs, message)
    }

    /// Whether a tag is of this message under any of the secrets; compares in constant time.
    pub(super) fn verifies(&self, message: &[u8], tag: &[u8]) -> bool {
        let by = |key: &hmac::Key| hmac::verify(key, message, tag).is_ok();
        by(&self.signs) || self.before.as_ref().is_some_and(by)
    }
}

/// Path of the file.
pub(super) fn path(data: &Path) -> PathBuf {
    data.join(FILE)
}

/// Waits until no other process replaces the file, and locks it until dropped.
fn turn(data: &Path) -> io::Result<File> {
    let folder = File::open(data)?;
    folder.lock()?;
    Ok(folder)
}

fn draw() -> io::Result<Secret> {
    random::bytes().map(Zeroizing::new)
}

fn malformed() -> io::Error {
    let reason = "token-secret is not one or two lines of 64 hexadecimal digits; \
                  remove it and a new one is drawn, and all tokens end";
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn read(data: &Path) -> io::Result<Vec<Secret>> {
    let file = File::open(path(data))?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        let reason = "other users can read token-secret: chmod 600 it, and rotate it if they may \
                      have read it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mut text = Zeroizing::new(String::with_capacity(MAX_FILE_BYTES as usize));
    let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
    read.map_err(
        |error| if error.kind() == io::ErrorKind::InvalidData { malformed() } else { error },
    )?;
    let lines = text.strip_suffix('\n').ok_or_else(malformed)?;
    let secrets: Option<Vec<Secret>> = lines.split('\n').map(read_secret).collect();
    secrets.filter(|secrets| secrets.len() <= 2).ok_or_else(malformed)
}

fn read_secret(digits: &str) -> Option<Secret> {
    let mut secret = Zeroizing::new([0; 32]);
    hex::read_into(digits, &mut *secret).map(|()| secret)
}

fn text_of(secrets: &[Secret]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(MAX_FILE_BYTES as usize));
    for secret in secrets {
        hex::push(&mut text, &**secret);
        text.push('\n');
    }
    text
}

/// Replaces the file atomically and durably: after a crash that reverted it, tokens signed with the
/// new secret would be refused.
fn replace(data: &Path, secrets: &[Secret]) -> io::Result<()> {
    replace_private_file(&path(data), &data.join(NEW_FILE), text_of(secrets).as_bytes())
}

impl Secrets {
    /// A public secret for tests and fuzzing, and the previous one.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn known(signs: &[u8], before: Option<&[u8]>) -> Secrets {
        let key = |secret| hmac::Key::new(hmac::HMAC_SHA256, secret);
        Secrets { signs: key(signs), before: before.map(key), kept: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn it_is_drawn_once_and_for_the_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::open(dir.path()).unwrap();
        let tag = secrets.sign(b"message");
        let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Secrets::open(dir.path()).unwrap();
        assert!(again.verifies(b"message", tag.as_ref()));
        assert!(!again.verifies(b"messag", tag.as_ref()));
        assert!(!again.verifies(b"message", &tag.as_ref()[..31]));
        assert!(!again.verifies(b"message", b""));
        let other = tempfile::tempdir().unwrap();
        assert!(!Secrets::open(other.path()).unwrap().verifies(b"message", tag.as_ref()));
    }

    #[test]
    fn a_rotation_has_two_and_then_one() {
        let dir = tempfile::tempdir().unwrap();
        let first = Secrets::open(dir.path()).unwrap().sign(b"m");
        let second = Secrets::rotate(dir.path()).unwrap();
        assert!(second.verifies(b"m", first.as_ref()));
        let tag = second.sign(b"m");
        assert_ne!(tag.as_ref(), first.as_ref());
        let opened = Secrets::open(dir.path()).unwrap();
        assert!(opened.verifies(b"m", first.as_ref()) && opened.verifies(b"m", tag.as_ref()));
        let third = Secrets::rotate(dir.path()).unwrap();
        assert!(!third.verifies(b"m", first.as_ref()) && third.verifies(b"m", tag.as_ref()));
        let retired = Secrets::retire(dir.path()).unwrap();
        assert!(!retired.verifies(b"m", tag.as_ref()));
        assert!(Secrets::open(dir.path()).unwrap().verifies(b"m", third.sign(b"m").as_ref()));
        assert!(!dir.path().join(NEW_FILE).exists());
    }

    #[test]
    fn a_secret_that_others_can_read_or_that_is_malformed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        Secrets::open(dir.path()).unwrap();
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Secrets::open(dir.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let good = "ab".repeat(32);
        let three = format!("{good}\n{good}\n{good}\n");
        let sign = format!("+{}\n", &good[1..]);
        let huge = "a".repeat(5000);
        for text in ["", "\n", "abc\n", &good, &three, &sign, &huge] {
            fs::write(&path, text).unwrap();
            let error = Secrets::open(dir.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text:?}");
            assert!(!error.to_string().contains("abab"));
        }
        fs::write(&path, [0xff, b'\n']).unwrap();
        assert_eq!(Secrets::open(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        fs::write(&path, format!("{good}\n")).unwrap();
        assert_eq!(format!("{:?}", Secrets::open(dir.path()).unwrap()), "Secrets(one)");
    }
}
