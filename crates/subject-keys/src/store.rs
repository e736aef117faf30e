//! The file `store`: a header, then slots. Slots are overwritten in place, as a file that only
//! grows could not forget.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | `WSKEYS\n` and a zero byte |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | CRC32C of bytes 0 to 12 and 16 to 24 |
//! | 16 | 8 | id of the store: random |
//! | 4096 | | [slots](crate::slot) |
//!
//! What a device keeps of overwritten slots (flash memory and copy-on-write file systems do) dies
//! with the generation of the root that wrapped them.

use crate::fault::KeysFault;
use crate::key::random;
use crate::slot::{SLOT_BYTES, Slot};
use std::io;
use std::sync::Arc;
use wellspring_format::record::{read_u32, read_u64};
use wellspring_log::storage::{Storage, StorageFile, replace_file};

const STORE: &str = "store";
/// What `replace_file` writes first.
const TEMPORARY: &str = "store.tmp";
const MAGIC: &[u8; 8] = b"WSKEYS\n\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 4096;
/// Where the id of the store ends.
const ID_END: usize = 24;
/// Slots read at a time.
const READ_SLOTS: usize = 4096;

/// The open file. It has one writer.
#[derive(Debug)]
pub(crate) struct KeyStore {
    storage: Arc<dyn Storage>,
    file: Arc<dyn StorageFile>,
    slots: u32,
    /// Tells its copies from those of another store.
    pub(crate) id: u64,
    /// Number of the last change.
    pub(crate) change: u64,
    /// Whether adding slots or replacing the file may have been cut short.
    is_unsettled: bool,
}

fn header(id: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..ID_END].copy_from_slice(&id.to_le_bytes());
    let crc = checksum(&bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn checksum(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..ID_END])
}

fn offset(slot: u32) -> u64 {
    HEADER_BYTES as u64 + u64::from(slot) * SLOT_BYTES as u64
}

fn decode(number: u32, bytes: &[u8]) -> Result<Slot, KeysFault> {
    Slot::decode(bytes).ok_or(KeysFault::Damaged { offset: offset(number) })
}

/// Checks the header of a store.
fn check_header(bytes: &[u8]) -> Result<(), KeysFault> {
    if bytes.len() < ID_END || &bytes[..8] != MAGIC || read_u32(bytes, 12) != checksum(bytes) {
        return Err(KeysFault::Damaged { offset: 0 });
    }
    match read_u32(bytes, 8) {
        VERSION => Ok(()),
        version => Err(KeysFault::Version(version)),
    }
}

impl KeyStore {
    /// Whether there is one.
    pub(crate) fn exists(storage: &dyn Storage) -> Result<bool, KeysFault> {
        let names = storage.list().map_err(KeysFault::io("listing the folder of subject keys"))?;
        Ok(names.iter().any(|name| name == STORE))
    }

    /// Makes an empty one, durably.
    pub(crate) fn create(storage: Arc<dyn Storage>) -> Result<KeyStore, KeysFault> {
        let making = KeysFault::io("making the store of subject keys");
        let id = u64::from_le_bytes(*random().map_err(&making)?);
        replace_file(&*storage, STORE, &header(id)).map_err(&making)?;
        let file = storage.open(STORE).map_err(&making)?;
        Ok(KeyStore { storage, file, slots: 0, id, change: 0, is_unsettled: false })
    }

    /// Opens it, and passes each slot and its number to `visit`.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        visit: &mut dyn FnMut(u32, Slot) -> Result<(), KeysFault>,
    ) -> Result<KeyStore, KeysFault> {
        let reading = KeysFault::io("reading the store of subject keys");
        let file = storage.open(STORE).map_err(&reading)?;
        let mut head = [0; ID_END];
        file.read_at(&mut head, 0).map_err(&reading)?;
        check_header(&head)?;
        let id = read_u64(&head, 16);
        let mut store = KeyStore { storage, file, slots: 0, id, change: 0, is_unsettled: true };
        let mut bytes = vec![0; READ_SLOTS * SLOT_BYTES];
        let mut number = 0;
        loop {
            let got = store.file.read_at(&mut bytes, offset(number)).map_err(&reading)?;
            // What was being added when the machine stopped may have left zeros between slots, and
            // a piece of one at the end. Nothing of it was used.
            for slot in bytes[..got].chunks_exact(SLOT_BYTES) {
                number += 1;
                if slot.iter().all(|byte| *byte == 0) {
                    continue;
                }
                let damaged = KeysFault::Damaged { offset: offset(number - 1) };
                let slot = Slot::decode(slot).ok_or(damaged)?;
                store.change = store.change.max(slot.change);
                store.slots = number;
                visit(number - 1, slot)?;
            }
            if got < bytes.len() {
                store.settle()?;
                return Ok(store);
            }
        }
    }

    /// Adds slots, durably; returns the number of the first.
    pub(crate) fn add(&mut self, slots: &[Slot]) -> Result<u32, KeysFault> {
        let writing = KeysFault::io("adding subject keys to their store");
        self.settle()?;
        let bytes: Vec<u8> = slots.iter().flat_map(Slot::encode).collect();
        self.is_unsettled = true;
        self.file.write_all_at(&bytes, offset(self.slots)).map_err(&writing)?;
        self.file.sync_data().map_err(&writing)?;
        self.is_unsettled = false;
        let first = self.slots;
        self.slots += slots.len() as u32;
        self.change += 1;
        Ok(first)
    }

    /// Overwrites a slot. Durable after [`sync`](Self::sync).
    pub(crate) fn overwrite(&mut self, number: u32, slot: &Slot) -> Result<(), KeysFault> {
        assert!(number < self.slots, "a slot of the store");
        self.settle()?;
        let writing = KeysFault::io("overwriting a subject key");
        self.file.write_all_at(&slot.encode(), offset(number)).map_err(writing)
    }

    /// Makes overwritten slots durable.
    pub(crate) fn sync(&mut self) -> Result<(), KeysFault> {
        self.settle()?;
        self.file.sync_data().map_err(KeysFault::io("overwriting a subject key"))?;
        self.change += 1;
        Ok(())
    }

    /// The slot of this number.
    pub(crate) fn read(&self, number: u32) -> Result<Slot, KeysFault> {
        decode(number, &self.slot_bytes(number)?)
    }

    fn slot_bytes(&self, number: u32) -> Result<[u8; SLOT_BYTES], KeysFault> {
        let mut bytes = [0; SLOT_BYTES];
        let reading = KeysFault::io("reading a subject key");
        self.file.read_at(&mut bytes, offset(number)).map_err(reading)?;
        Ok(bytes)
    }

    /// The bytes of a file with each slot as `change` makes it.
    pub(crate) fn rewritten(
        &self,
        change: &mut dyn FnMut(Slot) -> Result<Slot, KeysFault>,
    ) -> Result<Vec<u8>, KeysFault> {
        let mut bytes = header(self.id);
        for number in 0..self.slots {
            let slot = self.slot_bytes(number)?;
            if slot.iter().all(|byte| *byte == 0) {
                bytes.extend_from_slice(&slot);
            } else {
                bytes.extend_from_slice(&change(decode(number, &slot)?)?.encode());
            }
        }
        Ok(bytes)
    }

    /// Replaces the file by one with [rewritten](Self::rewritten) slots, durably.
    pub(crate) fn replace(&mut self, bytes: &[u8]) -> Result<(), KeysFault> {
        let writing = KeysFault::io("writing the store of subject keys again");
        self.is_unsettled = true;
        replace_file(&*self.storage, STORE, bytes).map_err(writing)?;
        self.settle()?;
        self.change += 1;
        Ok(())
    }

    /// Clears up after a change that was cut short, before another one: it is not known which file
    /// has the name, and keys that it left could never be erased. Durable after
    /// [`sync`](Self::sync).
    fn settle(&mut self) -> Result<(), KeysFault> {
        if !self.is_unsettled {
            return Ok(());
        }
        let settling = KeysFault::io("clearing up the store of subject keys");
        match self.storage.remove(TEMPORARY) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(settling(error)),
            _ => {}
        }
        self.storage.sync_dir().map_err(&settling)?;
        self.file = self.storage.open(STORE).map_err(&settling)?;
        if self.file.len().map_err(&settling)? > offset(self.slots) {
            self.file.set_len(offset(self.slots)).map_err(&settling)?;
        }
        self.is_unsettled = false;
        Ok(())
    }

    /// The file's bytes, for a backup.
    pub(crate) fn copy(&self) -> Result<Vec<u8>, KeysFault> {
        let mut bytes = vec![0; offset(self.slots) as usize];
        let got = self.file.read_at(&mut bytes, 0).map_err(KeysFault::io("reading the store"))?;
        bytes.truncate(got);
        Ok(bytes)
    }
}
