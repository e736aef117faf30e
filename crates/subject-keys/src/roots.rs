//! The roots that wrap subject keys in the store, and where they come from.

use crate::fault::{KeysFault, RootFault};
use crate::key::random;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use wellspring_log::storage::{remove_if_there, replace_private_file};
use wellspring_types::hex;
use zeroize::Zeroizing;

/// Bytes of a wrapped key of 32.
pub(crate) const WRAPPED_BYTES: usize = 48;
const WORD: &str = "wellspring-key-root";
const ABOUT: &str = "# The root of the keys of data subjects. Without it everything sealed is \
                     lost: keep a second copy, apart from backups of the data.\n";

/// Where roots come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootSource {
    /// A file, which is made with the first key.
    File(PathBuf),
    /// A program of the operator, which prints the roots as the file has them.
    Command(String),
}

impl fmt::Display for RootSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RootSource::File(path) => path.display().fmt(f),
            // It may hold a token.
            RootSource::Command(_) => f.write_str("the output of --subject-key-command"),
        }
    }
}

impl RootSource {
    /// The roots; `None` if the file is not there yet.
    pub(crate) fn load(&self) -> Result<Option<KeyRoots>, KeysFault> {
        let reading = KeysFault::io("reading the root of subject keys");
        let text = match self {
            RootSource::File(path) => {
                // A crash in a rotation may have left a root there that is to be destroyed.
                remove_if_there(&temporary(&resolved(path))).map_err(&reading)?;
                match fs::read_to_string(path) {
                    Ok(text) => text,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(reading(error)),
                }
            }
            RootSource::Command(command) => {
                let output = Command::new("/bin/sh").arg("-c").arg(command).output();
                let output = output.map_err(&reading)?;
                if !output.status.success() {
                    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                    let why = format!("{self} ended with {}: {said}", output.status);
                    return Err(reading(io::Error::other(why)));
                }
                String::from_utf8_lossy(&output.stdout).into_owned()
            }
        };
        Ok(Some(KeyRoots::parse(&Zeroizing::new(text))?))
    }

    /// Replaces the file durably, and overwrites what it held before, which may be a root that is
    /// to be destroyed.
    pub(crate) fn save(&self, roots: &KeyRoots) -> io::Result<()> {
        let RootSource::File(path) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let path = &resolved(path);
        let old = fs::OpenOptions::new().write(true).open(path).ok();
        replace_private_file(path, &temporary(path), roots.text().as_bytes())?;
        if let Some(mut old) = old {
            let length = old.metadata()?.len() as usize;
            old.write_all(&vec![b'\n'; length])?;
            old.sync_all()?;
        }
        Ok(())
    }
}

/// The file itself, through a link, on the device that it leads to.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What replaces a file of roots.
fn temporary(path: &Path) -> PathBuf {
    path.with_added_extension("tmp")
}

/// One or more roots, oldest first. The newest wraps what is written.
#[derive(Clone)]
pub struct KeyRoots(Vec<Root>);

#[derive(Clone)]
struct Root {
    generation: u16,
    key: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for KeyRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.generations()).finish()
    }
}

impl KeyRoots {
    /// A first root.
    pub(crate) fn draw() -> io::Result<KeyRoots> {
        Ok(KeyRoots(vec![Root { generation: 1, key: random()? }]))
    }

    /// These and a newer one.
    pub(crate) fn with_another(&self) -> Result<KeyRoots, KeysFault> {
        let next = self.newest().checked_add(1).ok_or(KeysFault::TooManyGenerations)?;
        let key = random().map_err(KeysFault::io("drawing a root"))?;
        let mut roots = self.clone();
        roots.0.push(Root { generation: next, key });
        Ok(roots)
    }

    /// The newest alone.
    pub(crate) fn newest_alone(&self) -> KeyRoots {
        KeyRoots(self.0[self.0.len() - 1..].to_vec())
    }

    /// Parses lines such as `wellspring-key-root 1 HEX CHECK`; empty ones and those that begin with
    /// `#` are skipped.
    ///
    /// # Errors
    /// [`RootFault`].
    pub fn parse(text: &str) -> Result<KeyRoots, RootFault> {
        let mut roots: Vec<Root> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let root = parse_line(line).ok_or(RootFault::Line(at + 1))?;
            if roots.last().is_some_and(|last| last.generation >= root.generation) {
                return Err(RootFault::Order);
            }
            roots.push(root);
        }
        if roots.is_empty() { Err(RootFault::Empty) } else { Ok(KeyRoots(roots)) }
    }

    /// The text that [`parse`](Self::parse) reads.
    fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(256 + 128 * self.0.len()));
        text.push_str(ABOUT);
        for root in &self.0 {
            let line = line_of(root);
            let check = crc32c::crc32c(line.as_bytes());
            let _ = writeln!(text, "{} {check:08x}", *line);
        }
        text
    }

    /// Their generations.
    pub fn generations(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|root| root.generation)
    }

    /// The newest generation.
    pub(crate) fn newest(&self) -> u16 {
        self.0[self.0.len() - 1].generation
    }

    fn cipher(&self, generation: u16) -> Option<LessSafeKey> {
        let root = self.0.iter().find(|root| root.generation == generation)?;
        let key = UnboundKey::new(&AES_256_GCM, &*root.key).expect("a key of 32 bytes");
        Some(LessSafeKey::new(key))
    }

    /// Wraps a key under the newest root.
    pub(crate) fn wrap(
        &self,
        bound: &[u8],
        key: &[u8; 32],
    ) -> io::Result<([u8; NONCE_LEN], [u8; WRAPPED_BYTES])> {
        let nonce = *random::<NONCE_LEN>()?;
        let mut wrapped = [0; WRAPPED_BYTES];
        let (text, tag) = wrapped.split_at_mut(32);
        text.copy_from_slice(key);
        let cipher = self.cipher(self.newest()).expect("the newest is there");
        let made = cipher
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(bound), text)
            .expect("32 bytes are not too long");
        tag.copy_from_slice(made.as_ref());
        Ok((nonce, wrapped))
    }

    /// Unwraps a key; `None` if it was not wrapped so.
    pub(crate) fn unwrap(
        &self,
        generation: u16,
        bound: &[u8],
        nonce: [u8; NONCE_LEN],
        wrapped: &[u8; WRAPPED_BYTES],
    ) -> Option<Zeroizing<[u8; 32]>> {
        let mut text = Zeroizing::new(*wrapped);
        let cipher = self.cipher(generation)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let key = cipher.open_in_place(nonce, Aad::from(bound), &mut *text).ok()?;
        Some(Zeroizing::new(<[u8; 32]>::try_from(&*key).expect("32 bytes")))
    }
}

fn line_of(root: &Root) -> Zeroizing<String> {
    let mut line = Zeroizing::new(String::with_capacity(128));
    let _ = write!(line, "{WORD} {} ", root.generation);
    hex::push(&mut line, &*root.key);
    line
}

fn parse_line(line: &str) -> Option<Root> {
    let mut words = line.split_ascii_whitespace();
    let (word, generation, digits, check) =
        (words.next()?, words.next()?, words.next()?, words.next());
    if word != WORD || words.next().is_some() {
        return None;
    }
    let mut key = Zeroizing::new([0; 32]);
    hex::read_into(digits, &mut *key)?;
    let root = Root { generation: generation.parse().ok().filter(|n| *n > 0)?, key };
    let expected = crc32c::crc32c(line_of(&root).as_bytes());
    (u32::from_str_radix(check?, 16).ok()? == expected).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_read_back_as_written_and_damage_is_found() {
        let two = KeyRoots::draw().unwrap().with_another().unwrap();
        let text = two.text();
        let read = KeyRoots::parse(&text).unwrap();
        assert_eq!(read.generations().collect::<Vec<_>>(), [1, 2]);
        let (nonce, wrapped) = two.wrap(b"for", &[7; 32]).unwrap();
        assert_eq!(*read.unwrap(2, b"for", nonce, &wrapped).unwrap(), [7; 32]);
        assert!(read.unwrap(1, b"for", nonce, &wrapped).is_none());
        assert!(read.unwrap(2, b"other", nonce, &wrapped).is_none());
        assert!(read.unwrap(3, b"for", nonce, &wrapped).is_none());
        let at = text.rfind(' ').unwrap() - 3;
        let other = if text.as_bytes()[at] == b'0' { "1" } else { "0" };
        let damaged = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        assert_eq!(KeyRoots::parse(&damaged).unwrap_err(), RootFault::Line(3));
        assert_eq!(KeyRoots::parse("# only\n\n").unwrap_err(), RootFault::Empty);
        let lines: Vec<&str> = text.lines().collect();
        let swapped = [lines[2], lines[1]].join("\n");
        assert_eq!(KeyRoots::parse(&swapped).unwrap_err(), RootFault::Order);
    }

    #[test]
    fn a_command_prints_roots_and_its_failure_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = RootSource::File(dir.path().join("root"));
        assert!(file.load().unwrap().is_none());
        file.save(&KeyRoots::draw().unwrap()).unwrap();
        let command = RootSource::Command(format!("cat {}/root", dir.path().display()));
        assert_eq!(command.load().unwrap().unwrap().newest(), 1);
        let failing = RootSource::Command("echo no vault >&2; exit 3".into());
        let told = failing.load().unwrap_err().to_string();
        assert!(told.contains("no vault") && told.contains('3'), "{told}");
    }
}
