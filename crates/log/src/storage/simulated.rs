//! A disk in memory that crashes, fills up and rots on demand, for crash tests and the simulator.
//! It does everything that `docs/format.md` allows a disk to do.
//!
//! Writes since the last barrier of a file are tracked. At a [`crash`](SimulatedStorage::crash),
//! each of their 512-byte sectors survives or not at random from a seed, as do unsynced length
//! changes and directory operations.

use super::{Storage, StorageFile};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wellspring_types::random::SplitMix64;

/// The unit that a disk writes atomically.
pub const SECTOR_BYTES: usize = 512;

/// The faults that the disk injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Capacity of all files together, in bytes; writes beyond it fail with `StorageFull`.
    pub capacity_bytes: Option<u64>,
    /// This many barriers succeed, then one fails.
    pub sync_fails_after: Option<u64>,
    /// This many writes, barriers and changes of the folder succeed, then all fail, as when the
    /// power goes: a [`crash`](SimulatedStorage::crash) shows what is found afterwards.
    pub power_fails_after: Option<u64>,
    /// This many writes to files succeed, then one writes half of its bytes and fails.
    pub write_fails_after: Option<u64>,
    /// Every read fails.
    pub reads_fail: bool,
    /// Maximum number of open files; beyond it, opening and creating fail with `EMFILE`.
    pub descriptors: Option<usize>,
}

/// "Too many open files".
const EMFILE: i32 = 24;

#[derive(Debug, Default)]
struct Content {
    /// The content that readers see.
    current: Vec<u8>,
    /// The content that survives any crash.
    durable: Vec<u8>,
}

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<String, Arc<Mutex<Content>>>,
    durable_names: BTreeMap<String, Arc<Mutex<Content>>>,
    faults: Faults,
    locked: bool,
    syncs: u64,
    bytes_read: u64,
    open_files: usize,
    random: SplitMix64,
}

/// A simulated folder. Clones share it.
#[derive(Debug, Clone)]
pub struct SimulatedStorage {
    disk: Arc<Mutex<Disk>>,
    barriers: Arc<HeldBarriers>,
}

/// Barriers that wait until they are released, to simulate a slow device.
#[derive(Debug, Default)]
struct HeldBarriers {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    held: bool,
    waiting: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl SimulatedStorage {
    /// An empty folder whose random choices derive from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> SimulatedStorage {
        let disk = Disk { random: SplitMix64::new(seed | 1), ..Disk::default() };
        SimulatedStorage { disk: Arc::new(Mutex::new(disk)), barriers: Arc::default() }
    }

    /// Sets the faults to inject from now on.
    pub fn set_faults(&self, faults: Faults) {
        locked(&self.disk).faults = faults;
    }

    /// Number of barriers done so far.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        locked(&self.disk).syncs
    }

    /// Makes barriers wait until [`release_barriers`](Self::release_barriers).
    pub fn hold_barriers(&self) {
        locked(&self.barriers.state).held = true;
    }

    /// Releases the waiting barriers and later ones.
    pub fn release_barriers(&self) {
        locked(&self.barriers.state).held = false;
        self.barriers.changed.notify_all();
    }

    /// Blocks until a barrier waits.
    pub fn wait_for_held_barrier(&self) {
        let state = locked(&self.barriers.state);
        drop(self.barriers.changed.wait_while(state, |state| state.waiting == 0));
    }

    /// Number of open files.
    #[must_use]
    pub fn open_files(&self) -> usize {
        locked(&self.disk).open_files
    }

    /// Number of bytes read from files: the cost of an operation, regardless of the clock.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        locked(&self.disk).bytes_read
    }

    /// The names and contents of all files.
    #[must_use]
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let disk = locked(&self.disk);
        disk.files.iter().map(|(name, file)| (name.clone(), locked(file).current.clone())).collect()
    }

    /// A new, unlocked folder with these files, all durable.
    #[must_use]
    pub fn with_contents(seed: u64, files: &BTreeMap<String, Vec<u8>>) -> SimulatedStorage {
        let storage = SimulatedStorage::new(seed);
        {
            let mut disk = locked(&storage.disk);
            for (name, bytes) in files {
                let content = Content { current: bytes.clone(), durable: bytes.clone() };
                let file = Arc::new(Mutex::new(content));
                disk.files.insert(name.clone(), Arc::clone(&file));
                disk.durable_names.insert(name.clone(), file);
            }
        }
        storage
    }

    /// A power loss: returns the folder as it may be found afterwards. The old handle stays usable
    /// but detached.
    #[must_use]
    pub fn crash(&self) -> SimulatedStorage {
        let mut disk = locked(&self.disk);
        let mut random = disk.random.clone();
        // Directory operations reach the disk in order: either all of them or only the synced ones.
        let names = if toss(&mut random) { disk.files.clone() } else { disk.durable_names.clone() };
        let mut survivors = BTreeMap::new();
        for (name, file) in &names {
            survivors.insert(name.clone(), surviving(&locked(file), &mut random));
        }
        let seed = random.state();
        disk.random = random;
        drop(disk);
        SimulatedStorage::with_contents(seed, &survivors)
    }
}

fn toss(random: &mut SplitMix64) -> bool {
    random.next_u64() & 1 == 1
}

fn surviving(content: &Content, random: &mut SplitMix64) -> Vec<u8> {
    // One crash in three keeps everything, one nothing, and one a mixture.
    let mode = random.next_u64() % 3;
    if mode == 0 {
        return content.current.clone();
    }
    let mut bytes = content.durable.clone();
    if mode == 1 {
        return bytes;
    }
    let keep_len = toss(random);
    if keep_len {
        bytes.resize(content.current.len(), 0);
    }
    for start in (0..bytes.len()).step_by(SECTOR_BYTES) {
        let end = (start + SECTOR_BYTES).min(bytes.len()).min(content.current.len());
        if start < end && toss(random) {
            bytes[start..end].copy_from_slice(&content.current[start..end]);
        }
    }
    bytes
}

impl Storage for SimulatedStorage {
    fn name(&self) -> String {
        "simulated".into()
    }

    fn lock(&self) -> io::Result<()> {
        let mut disk = locked(&self.disk);
        if disk.locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        disk.locked = true;
        Ok(())
    }

    fn unlock(&self) {
        locked(&self.disk).locked = false;
    }

    fn still_locked(&self) -> io::Result<()> {
        let held = locked(&self.disk).locked;
        if held { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(locked(&self.disk).files.keys().cloned().collect())
    }

    fn still_named(&self, name: &str, file: &dyn StorageFile) -> io::Result<()> {
        let disk = locked(&self.disk);
        let named = inode_of(disk.files.get(name).ok_or(io::ErrorKind::NotFound)?);
        match file.inode()? {
            Some(inode) if inode != named => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut disk = locked(&self.disk);
        let content = Arc::clone(disk.files.get(name).ok_or(io::ErrorKind::NotFound)?);
        take_descriptor(&mut disk)?;
        Ok(Arc::new(SimulatedFile { disk: self.clone(), content }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StorageFile>> {
        let mut disk = locked(&self.disk);
        spend_power(&mut disk)?;
        take_descriptor(&mut disk)?;
        let content = Arc::new(Mutex::new(Content::default()));
        disk.files.insert(name.to_owned(), Arc::clone(&content));
        Ok(Arc::new(SimulatedFile { disk: self.clone(), content }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = locked(&self.disk);
        spend_power(&mut disk)?;
        let content = disk.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.files.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = locked(&self.disk);
        spend_power(&mut disk)?;
        disk.files.remove(name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut disk = locked(&self.disk);
        spend_power(&mut disk)?;
        disk.durable_names = disk.files.clone();
        Ok(())
    }
}

/// An open file keeps its content, so no other one is at its place in memory.
fn inode_of(content: &Arc<Mutex<Content>>) -> (u64, u64) {
    (0, Arc::as_ptr(content).addr() as u64)
}

/// Counts an operation that changes the disk.
fn spend_power(disk: &mut Disk) -> io::Result<()> {
    match &mut disk.faults.power_fails_after {
        Some(0) => Err(io::Error::other("injected power failure")),
        Some(left) => {
            *left -= 1;
            Ok(())
        }
        None => Ok(()),
    }
}

fn take_descriptor(disk: &mut Disk) -> io::Result<()> {
    if disk.faults.descriptors.is_some_and(|most| disk.open_files >= most) {
        return Err(io::Error::from_raw_os_error(EMFILE));
    }
    disk.open_files += 1;
    Ok(())
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        locked(&self.disk.disk).open_files -= 1;
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedStorage,
    content: Arc<Mutex<Content>>,
}

impl SimulatedFile {
    fn check_room(&self, growth: u64) -> io::Result<()> {
        let disk = locked(&self.disk.disk);
        let Some(capacity) = disk.faults.capacity_bytes else { return Ok(()) };
        let used: u64 = disk.files.values().map(|file| locked(file).current.len() as u64).sum();
        if used + growth > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageFile for SimulatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if locked(&self.disk.disk).faults.reads_fail {
            return Err(io::Error::other("injected read failure"));
        }
        let content = locked(&self.content);
        let start = (offset as usize).min(content.current.len());
        let end = (start + buf.len()).min(content.current.len());
        buf[..end - start].copy_from_slice(&content.current[start..end]);
        drop(content);
        locked(&self.disk.disk).bytes_read += (end - start) as u64;
        Ok(end - start)
    }

    fn inode(&self) -> io::Result<Option<(u64, u64)>> {
        Ok(Some(inode_of(&self.content)))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_short = {
            let mut disk = locked(&self.disk.disk);
            spend_power(&mut disk)?;
            let left = disk.faults.write_fails_after;
            disk.faults.write_fails_after = left.and_then(|left| left.checked_sub(1));
            left == Some(0)
        };
        let bytes = if is_short { &bytes[..bytes.len() / 2] } else { bytes };
        let end = offset as usize + bytes.len();
        let growth = end.saturating_sub(locked(&self.content).current.len());
        if growth > 0 {
            self.check_room(growth as u64)?;
        }
        let mut content = locked(&self.content);
        if content.current.len() < end {
            content.current.resize(end, 0);
        }
        content.current[offset as usize..end].copy_from_slice(bytes);
        if is_short { Err(io::Error::other("injected short write")) } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(locked(&self.content).current.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        spend_power(&mut locked(&self.disk.disk))?;
        locked(&self.content).current.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let barriers = &self.disk.barriers;
        let mut state = locked(&barriers.state);
        if state.held {
            state.waiting += 1;
            barriers.changed.notify_all();
            let state = barriers.changed.wait_while(state, |state| state.held);
            state.unwrap_or_else(PoisonError::into_inner).waiting -= 1;
        } else {
            drop(state);
        }
        let mut disk = locked(&self.disk.disk);
        spend_power(&mut disk)?;
        disk.syncs += 1;
        match disk.faults.sync_fails_after {
            Some(0) => {
                disk.faults.sync_fails_after = None;
                return Err(io::Error::other("injected barrier failure"));
            }
            Some(n) => disk.faults.sync_fails_after = Some(n - 1),
            None => {}
        }
        drop(disk);
        let mut content = locked(&self.content);
        content.durable = content.current.clone();
        Ok(())
    }
}
