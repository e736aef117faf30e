//! The WAL of one node, open for writing.

use super::checkpoint_file;
use super::entry_table::{TableFile, WalReader};
use super::fault::WalFault;
use super::identity::Identity;
use super::node_state::{NodeState, STATE_FILE, StateFile, Vote};
use super::record::{
    Entry, EntryId, FileHeader, MAX_ENTRY_BYTES, RECORD_HEADER_BYTES, RecordHeader, RecordKind,
    file_name, file_number,
};
use super::recovery::{Recovered, recover};
use super::sector::{BLOCK_BYTES, SectorWriter, blocks_up_to, capacity};
use crate::plants::{Plant, planted};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use wellspring_format::batch::SECTOR_BYTES;
use wellspring_log::storage::{Storage, StorageFile};

/// A file that was purged and waits to be used again, or one that is being made.
const SPARE: &str = "spare";
/// A file grows by its own length, between these.
const LEAST_GROWTH_BYTES: u64 = 64 << 10;
const MOST_GROWTH_BYTES: u64 = 4 << 20;

/// Sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalOptions {
    /// Length to which a file grows, in bytes: a multiple of 4,096, at most 2 GiB. A longer file of
    /// an earlier opening stays valid.
    pub file_bytes: u64,
    /// Most bytes of recent entries that stay in memory; at least 16 entries do.
    pub recent_bytes: usize,
}

impl Default for WalOptions {
    /// Files of 64 MiB, and 16 MiB of recent entries.
    fn default() -> WalOptions {
        WalOptions { file_bytes: 64 << 20, recent_bytes: 16 << 20 }
    }
}

/// Keeps the folder locked.
#[derive(Debug)]
struct FolderLock(Arc<dyn Storage>);

impl FolderLock {
    fn new(storage: Arc<dyn Storage>) -> Result<FolderLock, WalFault> {
        storage.lock().map_err(WalFault::io("locking the folder of the WAL"))?;
        Ok(FolderLock(storage))
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// The file that is being written.
#[derive(Debug)]
struct CurrentFile {
    writer: SectorWriter,
    file: Arc<dyn StorageFile>,
    /// Its length.
    bytes: u64,
    /// The number of the last write.
    write: u32,
}

/// The WAL of one node; see [the room](super). It has one writer.
#[derive(Debug)]
pub struct Wal {
    lock: FolderLock,
    options: WalOptions,
    identity: Identity,
    goes_on_alone: bool,
    state: StateFile,
    checkpoint: Option<Bytes>,
    kept: WalReader,
    /// `None` until something is written: an opening never writes into a file of an earlier one.
    current: Option<CurrentFile>,
    newest: u32,
    link: u32,
    /// Bytes of records in the newest file.
    end: u64,
    has_spare: bool,
    /// Whether a write or a barrier failed in this process.
    has_failed: bool,
}

/// The first file is made when there is an identity. One that waits to be used again has numbers of
/// a former node in its sectors.
fn refuse_orphans(storage: &dyn Storage) -> Result<(), WalFault> {
    let names = storage.list().map_err(WalFault::io("listing the folder of the WAL"))?;
    match names.into_iter().find(|name| file_number(name).is_some() || name == SPARE) {
        Some(file) => Err(WalFault::Orphaned { file }),
        None => Ok(()),
    }
}

impl Wal {
    /// Creates the WAL of a new node, durably: empty, and without a vote.
    ///
    /// # Errors
    /// [`WalFault::HasIdentity`], [`WalFault::Orphaned`], [`WalFault::NodeName`], or
    /// [`WalFault::Io`]: a retry begins again.
    pub fn create(storage: Arc<dyn Storage>, identity: &Identity) -> Result<(), WalFault> {
        let lock = FolderLock::new(storage)?;
        let storage = &*lock.0;
        if Identity::read(storage)?.is_some() {
            return Err(WalFault::HasIdentity);
        }
        refuse_orphans(storage)?;
        let making = WalFault::io("making a WAL");
        StateFile::create(storage, identity.node_id).map_err(making)?;
        identity.write(storage, false)
    }

    /// Opens the WAL in this folder; `None` if the folder belongs to no node. Reads all files, and
    /// what is found is durable.
    ///
    /// # Errors
    /// [`WalFault::Damaged`]: the node must not vote. [`WalFault::Orphaned`],
    /// [`WalFault::Version`], or [`WalFault::Io`], where a retry may help.
    pub fn open(storage: Arc<dyn Storage>, options: WalOptions) -> Result<Option<Wal>, WalFault> {
        let is_size = options.file_bytes.is_multiple_of(BLOCK_BYTES as u64)
            && (BLOCK_BYTES as u64..=2 << 30).contains(&options.file_bytes);
        assert!(is_size, "a size of files that the options allow");
        let lock = FolderLock::new(storage)?;
        let storage = &*lock.0;
        let Some((identity, goes_on_alone)) = Identity::read(storage)? else {
            return refuse_orphans(storage).map(|()| None);
        };
        let state = StateFile::open(storage, identity.node_id)?;
        let checkpoint = checkpoint_file::read(storage, identity.node_id)?;
        let recovered = recover(storage, identity.node_id, &state.state)?;
        let Recovered { kept, newest, link, end } = recovered;
        // A node stores no entry of a term that it does not know.
        if state.state.vote.term < kept.last.term {
            let what = format!("its term is before that of entry {}", kept.last.index);
            return Err(WalFault::damaged(STATE_FILE, 0, what));
        }
        let names = storage.list().map_err(WalFault::io("listing the folder of the WAL"))?;
        let has_spare = names.iter().any(|name| name == SPARE);
        let (kept, current) = (WalReader::new(kept), None);
        Ok(Some(Wal {
            lock,
            options,
            identity,
            goes_on_alone,
            state,
            checkpoint,
            kept,
            current,
            newest,
            link,
            end,
            has_spare,
            has_failed: false,
        }))
    }

    /// Most bytes of an entry's body that fit into a file.
    #[must_use]
    pub fn largest_entry_bytes(&self) -> usize {
        let room = capacity(self.options.file_bytes).saturating_sub(RECORD_HEADER_BYTES as u64);
        usize::try_from(room).unwrap_or(usize::MAX).min(MAX_ENTRY_BYTES)
    }

    /// Whose WAL it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether a [generation](Self::begin_generation) has begun that the node is not alone in yet.
    #[must_use]
    pub fn goes_on_alone(&self) -> bool {
        self.goes_on_alone
    }

    /// The WAL is that of a generation from now on, durably. `alone`: the node is still to become
    /// its only member.
    ///
    /// # Errors
    /// [`WalFault::Io`]: either may be found at the next opening.
    pub fn begin_generation(&mut self, generation: u64, alone: bool) -> Result<(), WalFault> {
        let identity = Identity { generation, ..self.identity.clone() };
        identity.write(&*self.lock.0, alone)?;
        (self.identity, self.goes_on_alone) = (identity, alone);
        Ok(())
    }

    /// The durable vote.
    #[must_use]
    pub fn vote(&self) -> Vote {
        self.state.state.vote
    }

    /// The checkpoint, if there is one.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Bytes> {
        self.checkpoint.clone()
    }

    /// Replaces the checkpoint, durably: the content is its maker's, and has to stand for every
    /// entry that is purged later.
    ///
    /// # Errors
    /// [`WalFault::Io`]: the one before stays, and a retry helps once there is room.
    pub fn set_checkpoint(&mut self, content: Bytes) -> Result<(), WalFault> {
        let node_id = self.identity.node_id;
        let written = checkpoint_file::write(&*self.lock.0, node_id, &content);
        written.map_err(WalFault::io("writing the checkpoint"))?;
        self.checkpoint = Some(content);
        Ok(())
    }

    /// A reader, which sees what is durable.
    #[must_use]
    pub fn reader(&self) -> WalReader {
        self.kept.clone()
    }

    /// Replaces the vote, durably. Needs no room on the disk.
    ///
    /// # Errors
    /// [`WalFault::Failed`] or [`WalFault::Ended`]: the vote must not be told to anyone.
    ///
    /// # Panics
    /// If the term is before that of the last vote.
    pub fn set_vote(&mut self, vote: Vote) -> Result<(), WalFault> {
        assert!(vote.term >= self.vote().term, "votes do not go back");
        self.require_sound()?;
        let set = self.state.set(NodeState { vote, ..self.state.state });
        self.or_end("writing the vote", set)
    }

    /// Adds entries with one write and one barrier for each file that they go to, normally one.
    /// When it returns, all of them are durable.
    ///
    /// # Errors
    /// [`WalFault::Io`]: a file could not be made or grow. The entries up to
    /// [`last`](WalReader::last) are added; a retry of the others helps once there is room.
    /// [`WalFault::TooLong`]: none is added. [`WalFault::Failed`] or [`WalFault::Ended`]: some may
    /// be found at the next opening, and none of them may be told to anyone.
    ///
    /// # Panics
    /// If the indexes do not continue after the last entry, or a term is before that of the entry
    /// before.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), WalFault> {
        self.require_sound()?;
        let mut last = self.kept.last();
        let most = self.largest_entry_bytes();
        for Entry { id, body } in entries {
            assert_eq!(id.index, last.index + 1, "indexes are dense");
            assert!(id.term >= last.term, "terms do not go back");
            if body.len() > most {
                return Err(WalFault::TooLong { bytes: body.len() });
            }
            last = *id;
        }
        let mut rest = entries;
        while !rest.is_empty() {
            let lengths = rest.iter().map(|entry| entry.body.len());
            let (now, later) = rest.split_at(self.make_room(lengths)?);
            let records = now.iter().map(|entry| (RecordKind::Entry, entry.id, &*entry.body));
            let offsets = self.write(records)?;
            let mut kept = self.kept.lock();
            for (entry, offset) in now.iter().zip(offsets) {
                kept.push(entry.id, offset);
                kept.remember(entry.clone(), self.options.recent_bytes);
            }
            rest = later;
        }
        Ok(())
    }

    /// Voids the entries after this index, durably, by a record of 40 bytes behind them.
    ///
    /// # Errors
    /// [`WalFault::Io`]: nothing is changed. [`WalFault::Failed`] or [`WalFault::Ended`]: they may
    /// be found at the next opening or not. [`WalFault::Damaged`]: the entry of this index cannot
    /// be read.
    ///
    /// # Panics
    /// If the index is before that of the last purged entry.
    pub fn truncate_after(&mut self, index: u64) -> Result<(), WalFault> {
        self.require_sound()?;
        let (purged, last) = (self.kept.purged(), self.kept.last());
        assert!(index >= purged.index, "purged entries are committed");
        if index >= last.index {
            return Ok(());
        }
        let stays =
            if index == purged.index { purged } else { self.kept.read(index..index + 1, 0)?[0].id };
        if !planted(Plant::ForgetsCut) {
            self.make_room([0].into_iter())?;
            self.write([(RecordKind::Cut, stays, &[][..])].into_iter())?;
        }
        self.kept.lock().cut(stays);
        Ok(())
    }

    /// Forgets the entries up to this one, durably, and gives back the files that have no others.
    /// It may be beyond the last entry, which is then the next one's predecessor. Does nothing if
    /// so many are purged already.
    ///
    /// # Errors
    /// [`WalFault::Failed`] or [`WalFault::Ended`]: they may be found at the next opening or not.
    pub fn purge(&mut self, upto: EntryId) -> Result<(), WalFault> {
        self.require_sound()?;
        let before = self.kept.last();
        if upto.index > self.kept.purged().index {
            if planted(Plant::ReusesEarly) {
                self.kept.lock().purge(upto);
                let given = self.give_back_files();
                self.or_end("giving back files of the WAL", given)?;
            }
            let set = self.state.set(NodeState { purged: upto, ..self.state.state });
            self.or_end("writing the purge", set)?;
            self.kept.lock().purge(upto);
        }
        if upto.index > before.index {
            // Within a file, indexes are dense.
            self.current = None;
        }
        let given = self.give_back_files();
        self.or_end("giving back files of the WAL", given)
    }

    /// Removes the oldest files as long as all of their entries are purged, or keeps one as spare.
    fn give_back_files(&mut self) -> io::Result<()> {
        let storage = Arc::clone(&self.lock.0);
        let mut has_spare = self.has_spare;
        let mut given = 0;
        loop {
            let mut kept = self.kept.lock();
            let purged = kept.purged;
            let has_no_others = |next: &TableFile| next.base.index <= purged.index;
            if !kept.files.get(1).is_some_and(has_no_others) {
                break;
            }
            let oldest = kept.files.pop_front().expect("there are two");
            let name = file_name(oldest.number);
            if !has_spare && oldest.file.len()? == self.options.file_bytes {
                storage.rename(&name, SPARE)?;
                has_spare = true;
            } else {
                storage.remove(&name)?;
            }
            given += 1;
        }
        if given > 0 {
            // Before a file is used again it must have lost its name for good.
            storage.sync_dir()?;
            self.has_spare = has_spare;
        }
        Ok(())
    }

    /// Makes room for at least one of the records with bodies of these lengths; returns for how
    /// many.
    fn make_room(
        &mut self,
        mut lengths: impl ExactSizeIterator<Item = usize>,
    ) -> Result<usize, WalFault> {
        let total = |body: usize| (RECORD_HEADER_BYTES + body) as u64;
        let most = capacity(self.options.file_bytes);
        let first = total(lengths.next().expect("a record"));
        if self.current.is_none() || self.end + first > most {
            self.begin_file()?;
        }
        let (mut end, mut count) = (self.end + first, 1);
        for length in lengths {
            if end + total(length) > most {
                break;
            }
            end += total(length);
            count += 1;
        }
        self.grow(blocks_up_to(end))?;
        Ok(count)
    }

    /// Extends the file with zeros, so that a full disk shows before anything is written.
    fn grow(&mut self, least_bytes: u64) -> Result<(), WalFault> {
        let current = self.current.as_mut().expect("a file was begun");
        while current.bytes < least_bytes {
            let step = current.bytes.clamp(LEAST_GROWTH_BYTES, MOST_GROWTH_BYTES);
            let end = (current.bytes + step).min(self.options.file_bytes.max(least_bytes));
            let zeros = vec![0; (end - current.bytes) as usize];
            let grown = current.file.write_all_at(&zeros, current.bytes);
            grown.map_err(WalFault::io("extending a file of the WAL"))?;
            current.bytes = end;
        }
        Ok(())
    }

    /// Begins the next file: its header is durable before it has its name, and its name before it
    /// has records.
    fn begin_file(&mut self) -> Result<(), WalFault> {
        let header = FileHeader {
            number: self.newest + 1,
            link: self.link,
            node_id: self.identity.node_id,
            base: self.kept.last(),
            end_before: self.end,
        };
        let (number, bytes) = (header.number, header.encode());
        let storage = Arc::clone(&self.lock.0);
        let spare = if self.has_spare { storage.open(SPARE) } else { storage.create(SPARE) };
        let making = WalFault::io("making a file of the WAL");
        let file = spare.map_err(making)?;
        let mut block = vec![0; BLOCK_BYTES];
        block[..SECTOR_BYTES].copy_from_slice(&bytes);
        file.write_all_at(&block, 0).map_err(making)?;
        let length = file.len().map_err(making)?;
        let name = file_name(number);
        let named = file.sync_data().and_then(|()| storage.rename(SPARE, &name));
        let named = named.and_then(|()| storage.sync_dir());
        let begun =
            named.and_then(|()| self.state.set(NodeState { newest: number, ..self.state.state }));
        self.or_end("beginning a file of the WAL", begun)?;
        self.has_spare = false;
        self.kept.lock().files.push_back(TableFile::new(number, header.base, Arc::clone(&file)));
        let writer = SectorWriter::new(number, &bytes);
        self.current = Some(CurrentFile { writer, file, bytes: length, write: 0 });
        (self.newest, self.end) = (number, 0);
        Ok(())
    }

    /// Writes records for which there is room, and waits for the barrier. Returns where they are.
    fn write<'a>(
        &mut self,
        records: impl ExactSizeIterator<Item = (RecordKind, EntryId, &'a [u8])>,
    ) -> Result<Vec<u64>, WalFault> {
        let current = self.current.as_mut().expect("a file was begun");
        let write = current.write + 1;
        let mut offsets = Vec::with_capacity(records.len());
        let mut left = records.len();
        for (kind, id, body) in records {
            left -= 1;
            let is_last = left == 0;
            let (body_bytes, body_crc) = (body.len() as u32, crc32c::crc32c(body));
            let link = self.link;
            let header = RecordHeader { kind, is_last, id, body_bytes, body_crc, link, write };
            let (bytes, link) = header.encode();
            offsets.push(current.writer.offset());
            current.writer.push(&bytes);
            current.writer.push(body);
            self.link = link;
        }
        let file = &current.file;
        let written = current.writer.write(write, |bytes, at| file.write_all_at(bytes, at));
        let written = if planted(Plant::AckBeforeBarrier) {
            written
        } else {
            written.and_then(|()| file.sync_data())
        };
        current.write = write;
        self.end = current.writer.offset();
        self.or_end("writing the WAL", written)?;
        Ok(offsets)
    }

    /// Bytes of records in the newest file.
    #[cfg(test)]
    pub(super) fn end_of_records(&self) -> u64 {
        self.end
    }

    fn require_sound(&self) -> Result<(), WalFault> {
        if self.has_failed { Err(WalFault::Ended) } else { Ok(()) }
    }

    /// A write or a barrier that fails ends the WAL in this process: what the page cache has is not
    /// known to be on the device, and a repeated barrier would not say so.
    fn or_end(&mut self, doing: &'static str, result: io::Result<()>) -> Result<(), WalFault> {
        result.map_err(|error| {
            self.has_failed = true;
            WalFault::Failed { doing, error }
        })
    }
}
