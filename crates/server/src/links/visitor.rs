//! Visitors by a hash that says who came twice on a day, and nothing else.
//!
//! The key of the hash is drawn anew each UTC day and the old one is overwritten: from
//! then on not even we can tell which address a hash was made of. It lies in a file of
//! the data folder, so that a restart counts nobody twice.

use crate::random;
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Length of a UTC day, µs.
const DAY_US: u64 = 86_400_000_000;
/// The file, in the data folder.
const FILE: &str = "links-visitor-key";

/// Sixteen hexadecimal digits.
pub(crate) type VisitorName = [u8; 16];

/// The secret of one day.
#[derive(Clone, Copy)]
pub(crate) struct VisitorKey {
    /// Days since 1970 UTC.
    day: u64,
    /// Counts the keys of this process.
    generation: u32,
    secret: [u8; 32],
}

impl VisitorKey {
    /// Whether it is the key at this time, µs since 1970 UTC. A clock that is set back a
    /// little past midnight does not change the key twice.
    pub(crate) fn is_for(&self, now_us: u64) -> bool {
        let today = now_us / DAY_US;
        today == self.day || today + 1 == self.day
    }

    /// The first eight bytes of SHA-256 over the key and the address' octets.
    pub(crate) fn name(&self, address: Option<IpAddr>) -> VisitorName {
        let mut hash = Sha256::new_with_prefix(self.secret);
        match address {
            Some(IpAddr::V4(address)) => hash.update(address.octets()),
            Some(IpAddr::V6(address)) => hash.update(address.octets()),
            None => {}
        }
        let mut name = [0; 16];
        for (digits, byte) in name.chunks_exact_mut(2).zip(hash.finalize()) {
            digits.copy_from_slice(&[hex_digit(byte >> 4), hex_digit(byte & 15)]);
        }
        name
    }

    /// A key nobody knows. Should the system give no randomness, one that at least cannot be
    /// turned back into this one.
    fn next(&self, day: u64) -> VisitorKey {
        let fresh = random::bytes::<32>().unwrap_or_else(|error| {
            tracing::error!(%error, "no randomness for the key of visitors; the old key is hashed");
            [0; 32]
        });
        let hash = Sha256::new_with_prefix(self.secret).chain_update(fresh);
        let secret = hash.chain_update(day.to_le_bytes()).finalize().into();
        VisitorKey { day, generation: self.generation.wrapping_add(1), secret }
    }
}

fn hex_digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value & 15)]
}

/// The keys of visitors: one a day.
pub(crate) struct VisitorKeys {
    path: PathBuf,
    current: Mutex<VisitorKey>,
}

impl VisitorKeys {
    /// Today's key from the data folder, or a new one.
    ///
    /// # Errors
    /// The file can be neither read nor written, or the system gives no randomness.
    pub(crate) fn open(data: &Path, now_us: u64) -> io::Result<VisitorKeys> {
        let path = data.join(FILE);
        let kept = match fs::read(&path) {
            Ok(bytes) => read(&bytes).filter(|key| key.is_for(now_us)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let key = match kept {
            Some(key) => key,
            None => {
                let secret = random::bytes()?;
                let key = VisitorKey { day: now_us / DAY_US, generation: 0, secret };
                write(&path, &key)?;
                key
            }
        };
        Ok(VisitorKeys { path, current: Mutex::new(key) })
    }

    /// The key at this time, µs since 1970 UTC. The first to ask on a new day replaces it, which
    /// takes a small file; a thread keeps its copy while [`VisitorKey::is_for`] says so.
    pub(crate) fn at(&self, now_us: u64) -> VisitorKey {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !current.is_for(now_us) {
            *current = current.next(now_us / DAY_US);
            if let Err(error) = write(&self.path, &current) {
                tracing::warn!(%error, "the key of visitors was not kept: a restart may count them twice");
                // Yesterday's must not stay.
                let _ = fs::remove_file(&self.path);
            }
        }
        *current
    }
}

/// A line: the day as a number, and the secret in hexadecimal digits.
fn read(bytes: &[u8]) -> Option<VisitorKey> {
    let (day, digits) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once(' ')?;
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut secret = [0; 32];
    for (at, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(VisitorKey { day: day.parse().ok()?, generation: 0, secret })
}

/// Replaces the file as a whole; for the owner only. Not forced to the device: a power cut may
/// cost the key, and then some visitors count twice on that day.
fn write(path: &Path, key: &VisitorKey) -> io::Result<()> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let digits = key.secret.iter().flat_map(|byte| [hex_digit(byte >> 4), hex_digit(byte & 15)]);
    let digits: String = digits.map(char::from).collect();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(format!("{} {digits}\n", key.day).as_bytes())?;
    drop(file);
    fs::rename(&new, path)
}

/// Who visits over one connection: hashed once for each key.
#[derive(Debug)]
pub(crate) struct Visitor {
    peer: Option<IpAddr>,
    /// Whose name was last asked for, by which generation of keys, and what it was.
    known: Option<(Option<IpAddr>, u32, VisitorName)>,
}

impl Visitor {
    /// Whoever is at the other end.
    pub(crate) fn at(peer: Option<IpAddr>) -> Visitor {
        Visitor { peer, known: None }
    }

    /// The other end of the connection.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// The name of the client behind a request, who is at `address`.
    pub(crate) fn name(&mut self, key: &VisitorKey, address: Option<IpAddr>) -> VisitorName {
        match self.known {
            Some((known, generation, name)) if known == address && generation == key.generation => {
                name
            }
            _ => {
                let name = key.name(address);
                self.known = Some((address, key.generation, name));
                name
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const NOON_US: u64 = 20_000 * DAY_US + DAY_US / 2;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_name_is_the_keyed_hash_of_the_octets() {
        let key = VisitorKey { day: 0, generation: 0, secret: [7; 32] };
        let mut bytes = vec![7; 32];
        bytes.extend_from_slice(&[203, 0, 113, 9]);
        let hash = Sha256::digest(&bytes);
        let expected: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(key.name(address("203.0.113.9")), expected.as_bytes());
        assert_ne!(key.name(address("203.0.113.8")), expected.as_bytes());
        assert_ne!(key.name(address("2001:db8::1")), key.name(address("2001:db8::2")));
    }

    #[test]
    fn a_restart_on_the_same_day_knows_its_visitors_and_the_next_day_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let open = |now_us| VisitorKeys::open(dir.path(), now_us).unwrap();
        let who = address("203.0.113.9");
        let first = open(NOON_US).at(NOON_US).name(who);
        let file = dir.path().join(FILE);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let keys = open(NOON_US + 1);
        assert_eq!(keys.at(NOON_US + DAY_US / 2 - 1).name(who), first);
        let before = fs::read(&file).unwrap();
        let second = keys.at(NOON_US + DAY_US / 2).name(who);
        assert_ne!(second, first, "midnight");
        let after = fs::read(&file).unwrap();
        assert_ne!(after, before, "yesterday's key is gone");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "and lies nowhere else");
        assert_eq!(open(NOON_US + DAY_US).at(NOON_US + DAY_US).name(who), second);
        assert_eq!(keys.at(NOON_US).name(who), second, "a clock set back a little");
        assert_ne!(open(NOON_US + 9 * DAY_US).at(NOON_US + 9 * DAY_US).name(who), second);
    }

    #[test]
    fn a_file_that_is_no_key_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        for rubbish in
            ["", "20000", "20000 xyz\n", "x 00\n", &format!("20000 {}\n", "+0".repeat(32))]
        {
            fs::write(dir.path().join(FILE), rubbish).unwrap();
            let name = |keys: VisitorKeys| keys.at(NOON_US).name(None);
            let made = name(VisitorKeys::open(dir.path(), NOON_US).unwrap());
            assert_eq!(name(VisitorKeys::open(dir.path(), NOON_US).unwrap()), made, "{rubbish:?}");
        }
    }

    #[test]
    fn a_connection_remembers_a_name_only_for_its_key_and_address() {
        let dir = tempfile::tempdir().unwrap();
        let keys = VisitorKeys::open(dir.path(), NOON_US).unwrap();
        let (today, mut visitor) = (keys.at(NOON_US), Visitor::at(address("203.0.113.9")));
        let peer = visitor.peer();
        assert_eq!(visitor.name(&today, peer), today.name(peer));
        assert_eq!(visitor.name(&today, peer), today.name(peer));
        let other = address("198.51.100.1");
        assert_eq!(visitor.name(&today, other), today.name(other));
        let tomorrow = keys.at(NOON_US + DAY_US);
        assert_eq!(visitor.name(&tomorrow, other), tomorrow.name(other));
    }
}
