//! Visitors as hashes that identify repeated visits within a day, and nothing else.
//!
//! Each UTC day a new key of the hash is generated and the old one overwritten: from then on no
//! address can be recovered from a hash. It is stored in the data folder, so that a
//! restart counts no visitor twice.
//!
//! The nodes of a cluster must give a visitor the same name, so there the keys are derived from the
//! shared key: its holders can derive the keys of all days again.
//!
//! A click finds the day's key in memory and never touches the disk; [`VisitorKeys::turn`]
//! maintains the file, even without visits.

use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_host::cluster::ClusterKey;
use wellspring_host::kept_file::{FileCheck, KeptFile};
use wellspring_host::random;
use wellspring_log::storage::DeviceReader;
use wellspring_types::hex;

/// Length of a UTC day, µs.
const DAY_US: u64 = 86_400_000_000;
/// Time after which a failed replacement is retried, in µs.
const RETRY_US: u64 = 60_000_000;
/// The file, in the data folder.
const FILE: &str = "links-visitor-key";
/// Most bytes of a file that are overwritten; the key's is shorter.
const SCRUBBED_BYTES: u64 = 4096;

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
    /// Whether it is the key at this time, in µs since 1970 UTC. A clock that is set back a little
    /// past midnight does not change the key twice.
    fn is_for(&self, now_us: u64) -> bool {
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
            digits.copy_from_slice(&hex::of_byte(byte));
        }
        name
    }

    /// The key of a day that all nodes of a cluster share.
    fn derived(cluster: &ClusterKey, day: u64, generation: u32) -> VisitorKey {
        VisitorKey { day, generation, secret: *cluster.visitors(day) }
    }

    /// A random key. If the system provides no random bytes, one that at least cannot be turned
    /// back into this one.
    fn next(&self, day: u64) -> VisitorKey {
        let fresh = random::bytes::<32>().unwrap_or_else(|error| {
            tracing::error!(%error, "no random bytes for the visitor key; hashing the old key \
                                     instead");
            [0; 32]
        });
        let hash = Sha256::new_with_prefix(self.secret).chain_update(fresh);
        let secret = hash.chain_update(day.to_le_bytes()).finalize().into();
        VisitorKey { day, generation: self.generation.wrapping_add(1), secret }
    }
}

/// The keys that hash visitors: one a day.
pub(crate) struct VisitorKeys {
    source: Source,
    current: Mutex<VisitorKey>,
    /// The generation of the current key.
    generation: AtomicU32,
}

/// The source of the keys.
enum Source {
    /// Random, stored in a file.
    Drawn {
        /// Path of the file.
        path: PathBuf,
        /// Locked before the current key.
        on_disk: Mutex<KeyOnDisk>,
    },
    /// Derived from the key of a cluster, and stored nowhere.
    Derived(Arc<ClusterKey>),
}

/// What is known of the file.
struct KeyOnDisk {
    /// The generation of the key in the file, if this process wrote it.
    generation: Option<u32>,
    /// When a failed replacement is retried, in µs since 1970 UTC.
    retry_at_us: u64,
}

impl VisitorKeys {
    /// Today's key from the data folder, or a new one.
    ///
    /// # Errors
    /// The file can be neither read nor written, or the system provides no random bytes.
    pub(crate) fn open(data: &Path, now_us: u64) -> io::Result<VisitorKeys> {
        let path = data.join(FILE);
        let kept = match fs::read(&path) {
            Ok(bytes) => read(&bytes).filter(|key| key.is_for(now_us)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // A leftover of a replacement from a crash.
        remove(&replacement(&path))?;
        let key = match kept {
            Some(key) => key,
            None => {
                let secret = random::bytes()?;
                let key = VisitorKey { day: now_us / DAY_US, generation: 0, secret };
                replace(&path, &key)?;
                key
            }
        };
        let generation = AtomicU32::new(key.generation);
        let on_disk = Mutex::new(KeyOnDisk { generation: Some(key.generation), retry_at_us: 0 });
        let source = Source::Drawn { path, on_disk };
        Ok(VisitorKeys { source, current: Mutex::new(key), generation })
    }

    /// The keys of a cluster. A key stored before the node joined it is overwritten.
    ///
    /// # Errors
    /// The old file can be neither overwritten nor removed.
    pub(crate) fn of_cluster(
        data: &Path,
        cluster: Arc<ClusterKey>,
        now_us: u64,
    ) -> io::Result<VisitorKeys> {
        let path = data.join(FILE);
        remove(&replacement(&path))?;
        remove(&path)?;
        let key = VisitorKey::derived(&cluster, now_us / DAY_US, 0);
        let (source, generation) = (Source::Derived(cluster), AtomicU32::new(key.generation));
        Ok(VisitorKeys { source, current: Mutex::new(key), generation })
    }

    /// The key at this time, in µs since 1970 UTC. The first call on a new day generates it; a
    /// thread keeps its copy while it [`is_current`](Self::is_current). A clock that goes back
    /// never restores an old key.
    pub(crate) fn at(&self, now_us: u64) -> VisitorKey {
        let mut current = lock(&self.current);
        if !current.is_for(now_us) {
            let day = now_us / DAY_US;
            *current = match &self.source {
                Source::Drawn { .. } => current.next(day),
                Source::Derived(cluster) => {
                    VisitorKey::derived(cluster, day, current.generation.wrapping_add(1))
                }
            };
            self.generation.store(current.generation, Ordering::Release);
        }
        *current
    }

    /// Whether a copy is the key at this time, in µs since 1970 UTC.
    #[inline]
    pub(crate) fn is_current(&self, copy: &VisitorKey, now_us: u64) -> bool {
        copy.is_for(now_us) && copy.generation == self.generation.load(Ordering::Acquire)
    }

    /// Makes the file hold the key at this time, in µs since 1970 UTC, and no other. Call it
    /// repeatedly: a failed replacement is retried after a minute.
    pub(crate) fn turn(&self, now_us: u64) {
        let Source::Drawn { path, on_disk } = &self.source else { return };
        let mut on_disk = lock(on_disk);
        let key = self.at(now_us);
        let is_early = (1..=RETRY_US).contains(&on_disk.retry_at_us.saturating_sub(now_us));
        if on_disk.generation == Some(key.generation) || is_early {
            return;
        }
        on_disk.generation = match replace(path, &key) {
            Ok(()) => Some(key.generation),
            Err(error) => {
                tracing::warn!(%error, "the visitor key was not stored: a restart may count \
                                        visitors twice");
                on_disk.retry_at_us = now_us + RETRY_US;
                // Yesterday's key must not stay.
                for path in [path, &replacement(path)] {
                    if let Err(error) = remove(path) {
                        tracing::error!(%error, path = %path.display(), "cannot remove an old visitor key");
                    }
                }
                None
            }
        };
    }

    /// Compares the file with the key in use, and writes it again if it holds anything else. Only
    /// this process writes it.
    fn keep(&self) -> io::Result<FileCheck> {
        let Source::Drawn { path, on_disk } = &self.source else { return Ok(FileCheck::Sound) };
        let on_disk = lock(on_disk);
        let key = *lock(&self.current);
        if on_disk.generation != Some(key.generation) {
            // It is about to be replaced.
            return Ok(FileCheck::Sound);
        }
        match DeviceReader::read_file(path, SCRUBBED_BYTES as usize) {
            Ok(found) if found == line(&key).as_bytes() => return Ok(FileCheck::Sound),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        replace(path, &key)?;
        Ok(FileCheck::Mended)
    }
}

/// The file of the keys, to be checked; `None` if they are derived.
pub(crate) fn kept_file(keys: &Arc<VisitorKeys>) -> Option<KeptFile> {
    let Source::Drawn { .. } = keys.source else { return None };
    let keys = Arc::clone(keys);
    Some(KeptFile::new(FILE, move |_| keys.keep()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line: the day as a number, and the secret in hexadecimal digits.
fn read(bytes: &[u8]) -> Option<VisitorKey> {
    let (day, digits) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once(' ')?;
    Some(VisitorKey { day: day.parse().ok()?, generation: 0, secret: hex::read(digits)? })
}

/// The content of the file.
fn line(key: &VisitorKey) -> String {
    let mut line = format!("{} ", key.day);
    hex::push(&mut line, &key.secret);
    line.push('\n');
    line
}

/// The temporary file that replaces it.
fn replacement(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Replaces the file atomically; readable by the owner only. The new key is not synced: a power
/// failure may lose it, and then some visitors count twice on that day. The old one is overwritten
/// first, which the device may do elsewhere than where it was.
fn replace(path: &Path, key: &VisitorKey) -> io::Result<()> {
    let new = replacement(path);
    remove(&new)?;
    let line = line(key);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(line.as_bytes())?;
    drop(file);
    if let Err(error) = scrub(path) {
        tracing::warn!(%error, "the old visitor key was unlinked but not overwritten");
    }
    fs::rename(&new, path)
}

/// Overwrites a file and removes it; it may be missing.
fn remove(path: &Path) -> io::Result<()> {
    let scrubbed = scrub(path);
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => scrubbed,
    }
}

/// Overwrites a file with zeros, down to the device; it may be missing.
fn scrub(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len().min(SCRUBBED_BYTES);
    file.write_all(&vec![b'0'; length as usize])?;
    file.sync_data()
}

/// Names that a thread caches. A power of two.
const NAMES: usize = 256;

/// The names of recent clients, hashed once for each key as long as no other client takes their
/// slot. They are dropped with the first visit under another key.
#[derive(Debug, Clone, Default)]
pub(crate) struct VisitorNames {
    /// The generation of the key that made them.
    generation: u32,
    /// Indexed by [`place_of`]. Empty until used.
    known: Vec<Option<(Option<IpAddr>, VisitorName)>>,
}

impl VisitorNames {
    /// The name of the client at `address`.
    pub(crate) fn of(&mut self, key: &VisitorKey, address: Option<IpAddr>) -> VisitorName {
        if self.generation != key.generation || self.known.is_empty() {
            self.generation = key.generation;
            self.known.clear();
            self.known.resize(NAMES, None);
        }
        let slot = &mut self.known[place_of(address)];
        match *slot {
            Some((known, name)) if known == address => name,
            _ => {
                let name = key.name(address);
                *slot = Some((address, name));
                name
            }
        }
    }
}

/// The slot of an address among [`NAMES`]. A collision only costs a hash.
fn place_of(address: Option<IpAddr>) -> usize {
    let bits = match address {
        Some(IpAddr::V4(address)) => u64::from(address.to_bits()),
        Some(IpAddr::V6(address)) => {
            let bits = address.to_bits();
            (bits >> 64) as u64 ^ bits as u64
        }
        None => 0,
    };
    // In a product with an odd number the upper bits depend on all others.
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize & (NAMES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const NOON_US: u64 = 20_000 * DAY_US + DAY_US / 2;

    fn path_of(keys: &VisitorKeys) -> &Path {
        match &keys.source {
            Source::Drawn { path, .. } => path,
            Source::Derived(_) => panic!("it has no file"),
        }
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_name_is_the_keyed_hash_of_the_octets() {
        let key = VisitorKey { day: 0, generation: 0, secret: [7; 32] };
        let mut bytes = vec![7; 32];
        bytes.extend_from_slice(&[203, 0, 113, 9]);
        let hash = Sha256::digest(&bytes);
        let expected = hex::digits(&hash[..8]);
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
        keys.turn(NOON_US + DAY_US / 2 - 1);
        assert_eq!(keys.at(NOON_US + DAY_US / 2 - 1).name(who), first);
        let before = fs::read(&file).unwrap();
        // A reader with the old file open sees that it was overwritten.
        let mut old = fs::File::open(&file).unwrap();
        let second = keys.at(NOON_US + DAY_US / 2).name(who);
        assert_ne!(second, first, "midnight");
        assert_eq!(fs::read(&file).unwrap(), before, "a click leaves the disk alone");
        keys.turn(NOON_US + DAY_US / 2);
        let mut left = Vec::new();
        io::Read::read_to_end(&mut old, &mut left).unwrap();
        assert_eq!(left, vec![b'0'; before.len()], "yesterday's key is overwritten");
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
    fn a_file_that_rots_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let keys = VisitorKeys::open(dir.path(), NOON_US).unwrap();
        let file = dir.path().join(FILE);
        let good = fs::read(&file).unwrap();
        assert_eq!(keys.keep().unwrap(), FileCheck::Sound);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&file, bad).unwrap();
            assert_eq!(keys.keep().unwrap(), FileCheck::Mended, "byte {at}");
            assert!(fs::read(&file).unwrap() == good, "byte {at}");
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(keys.keep().unwrap(), FileCheck::Mended);
        assert_eq!(keys.keep().unwrap(), FileCheck::Sound);
        // A new day: the file is replaced by its own rules.
        keys.at(NOON_US + DAY_US);
        assert_eq!(keys.keep().unwrap(), FileCheck::Sound);
        keys.turn(NOON_US + DAY_US);
        assert_eq!(keys.keep().unwrap(), FileCheck::Sound);
        assert!(fs::read(&file).unwrap() != good);
    }

    #[test]
    fn midnight_replaces_the_key_on_disk_without_a_visit() {
        let dir = tempfile::tempdir().unwrap();
        let midnight_us = 20_000 * DAY_US;
        let keys = VisitorKeys::open(dir.path(), midnight_us - 50_000).unwrap();
        let file = dir.path().join(FILE);
        let yesterday = fs::read(&file).unwrap();
        keys.turn(midnight_us - 1);
        assert_eq!(fs::read(&file).unwrap(), yesterday, "not before midnight");
        keys.turn(midnight_us);
        let kept = read(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(kept.secret, keys.at(midnight_us).secret);
        assert_ne!(fs::read(&file).unwrap(), yesterday);
    }

    #[test]
    fn a_clock_that_goes_back_brings_no_key_back() {
        let dir = tempfile::tempdir().unwrap();
        let keys = VisitorKeys::open(dir.path(), NOON_US).unwrap();
        let mut copies = vec![keys.at(NOON_US)];
        for now_us in [
            NOON_US + DAY_US,
            NOON_US + 3 * DAY_US,
            NOON_US,
            NOON_US + DAY_US,
            0,
            u64::MAX,
            NOON_US,
            DAY_US,
        ] {
            let key = keys.at(now_us);
            keys.turn(now_us);
            assert_eq!(read(&fs::read(path_of(&keys)).unwrap()).unwrap().secret, key.secret);
            assert!(keys.is_current(&key, now_us));
            if copies.last().is_some_and(|last| last.secret != key.secret) {
                for old in &copies {
                    assert_ne!(old.secret, key.secret);
                    assert!(!keys.is_current(old, now_us), "a thread kept an old one");
                    assert!(
                        !keys.is_current(old, old.day * DAY_US),
                        "it is used at its time again"
                    );
                }
                copies.push(key);
            }
        }
        assert_eq!(copies.len(), 9);
    }

    #[test]
    fn a_key_that_cannot_be_kept_is_not_left_from_yesterday_and_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let keys = VisitorKeys::open(dir.path(), NOON_US).unwrap();
        // A folder in the way: the replacement cannot be written.
        let way = replacement(path_of(&keys));
        fs::create_dir(&way).unwrap();
        keys.turn(NOON_US + DAY_US);
        assert!(!path_of(&keys).exists());
        fs::remove_dir(&way).unwrap();
        keys.turn(NOON_US + DAY_US + 1);
        assert!(!path_of(&keys).exists(), "not at once");
        keys.turn(NOON_US + DAY_US + RETRY_US);
        let kept = read(&fs::read(path_of(&keys)).unwrap()).unwrap();
        assert_eq!(kept.secret, keys.at(NOON_US + DAY_US).secret);
    }

    #[test]
    fn the_nodes_of_a_cluster_give_a_visitor_the_same_name_for_a_day() {
        let nodes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let open = |key, node: usize, now_us| {
            let key = Arc::new(ClusterKey::known(key));
            VisitorKeys::of_cluster(nodes[node].path(), key, now_us).unwrap()
        };
        let who = address("203.0.113.9");
        // One was a single node before.
        VisitorKeys::open(nodes[0].path(), NOON_US).unwrap();
        let (one, other) = (open(7, 0, NOON_US), open(7, 1, NOON_US));
        let name = one.at(NOON_US).name(who);
        assert_eq!(other.at(NOON_US).name(who), name);
        assert_ne!(open(8, 1, NOON_US).at(NOON_US).name(who), name);
        let (kept, tomorrow_us) = (one.at(NOON_US), NOON_US + DAY_US);
        one.turn(tomorrow_us);
        assert!(!one.is_current(&kept, tomorrow_us));
        assert_ne!(one.at(tomorrow_us).name(who), name);
        assert_eq!(one.at(tomorrow_us).name(who), other.at(tomorrow_us).name(who));
        for node in nodes {
            assert_eq!(fs::read_dir(node.path()).unwrap().count(), 0, "nothing is kept");
        }
    }

    #[test]
    fn a_thread_remembers_a_name_only_for_its_key_and_address() {
        let dir = tempfile::tempdir().unwrap();
        let keys = VisitorKeys::open(dir.path(), NOON_US).unwrap();
        let (today, tomorrow) = (keys.at(NOON_US), keys.at(NOON_US + DAY_US));
        let mut names = VisitorNames::default();
        // More than are cached, so that some take others' slots.
        let mut addresses: Vec<_> =
            (0..1_000u32).map(|bits| Some(IpAddr::V4((0xcb00_7100 + bits).into()))).collect();
        addresses.extend([None, address("2001:db8::1"), address("2001:db8::2")]);
        for key in [&today, &tomorrow, &today] {
            for &who in addresses.iter().chain(addresses.iter().rev()) {
                assert_eq!(names.of(key, who), key.name(who), "{who:?}");
            }
        }
        let places: std::collections::HashSet<_> =
            addresses.iter().map(|&address| place_of(address)).collect();
        assert!(places.len() > NAMES / 2, "neighbours lie apart: {}", places.len());
    }
}
