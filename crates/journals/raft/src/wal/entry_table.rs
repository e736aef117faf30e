//! The entries that the WAL keeps: where they are, and the recent ones in memory.

use super::fault::WalFault;
use super::record::{Entry, EntryId, RecordHeader, RecordKind, file_name};
use super::record_reader::read_record;
use super::sector::{SectorReader, Source, place_of};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_log::storage::StorageFile;

/// As many of the last entries stay in memory, whatever their size: the sector in which the last
/// write ended has records of fewer, and it may be written over while others read.
const LEAST_RECENT: usize = 16;

/// A file, and where its entries are that are not void.
#[derive(Debug)]
pub(super) struct TableFile {
    pub(super) number: u32,
    /// The last entry before the file.
    pub(super) base: EntryId,
    pub(super) file: Arc<dyn StorageFile>,
    /// The index of the first of `offsets`.
    first: u64,
    /// A column: 4 bytes an entry.
    offsets: Vec<u32>,
}

impl TableFile {
    pub(super) fn new(number: u32, base: EntryId, file: Arc<dyn StorageFile>) -> TableFile {
        TableFile { number, base, file, first: base.index + 1, offsets: Vec::new() }
    }
}

/// All files, the oldest first, and the ends of what they have.
#[derive(Debug, Default)]
pub(super) struct EntryTable {
    pub(super) files: VecDeque<TableFile>,
    pub(super) purged: EntryId,
    pub(super) last: EntryId,
    recent: VecDeque<Entry>,
    recent_bytes: usize,
}

/// Where the next entry of a read is.
enum EntryPlace {
    Memory(Vec<Entry>),
    File { number: u32, file: Arc<dyn StorageFile>, offsets: Vec<u32> },
}

impl EntryTable {
    /// Adds an entry of the newest file.
    pub(super) fn push(&mut self, id: EntryId, offset: u64) {
        let file = self.files.back_mut().expect("an entry is in a file");
        if file.offsets.is_empty() {
            file.first = id.index;
        }
        assert_eq!(file.first + file.offsets.len() as u64, id.index, "indexes are dense");
        file.offsets.push(u32::try_from(offset).expect("files are shorter than 4 GiB"));
        self.last = id;
    }

    /// Keeps an entry in memory, and of the entries before as many as `most_bytes` allows.
    pub(super) fn remember(&mut self, entry: Entry, most_bytes: usize) {
        self.recent_bytes += entry.body.len();
        self.recent.push_back(entry);
        while self.recent_bytes > most_bytes && self.recent.len() > LEAST_RECENT {
            let oldest = self.recent.pop_front();
            self.recent_bytes -= oldest.map_or(0, |oldest| oldest.body.len());
        }
    }

    /// Voids all entries after this one.
    pub(super) fn cut(&mut self, last: EntryId) {
        for file in &mut self.files {
            let stay = (last.index + 1).saturating_sub(file.first);
            file.offsets.truncate(usize::try_from(stay).unwrap_or(usize::MAX));
        }
        while let Some(voided) = self.recent.pop_back_if(|entry| entry.id.index > last.index) {
            self.recent_bytes -= voided.body.len();
        }
        self.last = last;
    }

    /// Forgets entries up to this one.
    pub(super) fn purge(&mut self, upto: EntryId) {
        while let Some(purged) = self.recent.pop_front_if(|entry| entry.id.index <= upto.index) {
            self.recent_bytes -= purged.body.len();
        }
        if upto.index > self.last.index {
            self.cut(upto);
        }
        self.purged = upto;
    }

    /// Where the entry of this index is, and those after it in the same file.
    fn place(&self, index: u64, end: u64) -> Option<EntryPlace> {
        if index > self.last.index || index >= end || index <= self.purged.index {
            return None;
        }
        let count = (end - index).min(LARGEST_RUN as u64) as usize;
        if let Some(first) = self.recent.front().map(|entry| entry.id.index)
            && first <= index
        {
            let from = (index - first) as usize;
            return Some(EntryPlace::Memory(
                self.recent.iter().skip(from).take(count).cloned().collect(),
            ));
        }
        let file = (self.files.iter())
            .find(|file| (file.first..file.first + file.offsets.len() as u64).contains(&index));
        let file = file.expect("an entry that is kept is in a file");
        let from = (index - file.first) as usize;
        let offsets = file.offsets[from..].iter().take(count).copied().collect();
        Some(EntryPlace::File { number: file.number, file: Arc::clone(&file.file), offsets })
    }
}

/// Entries that are looked up at a time.
const LARGEST_RUN: usize = 256;

/// Reads entries, on any thread, while the WAL is written.
#[derive(Debug, Clone)]
pub struct WalReader(Arc<Mutex<EntryTable>>);

impl WalReader {
    pub(super) fn new(kept: EntryTable) -> WalReader {
        WalReader(Arc::new(Mutex::new(kept)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, EntryTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last entry that was purged.
    #[must_use]
    pub fn purged(&self) -> EntryId {
        self.lock().purged
    }

    /// The last entry. It is durable, as all that a reader sees.
    #[must_use]
    pub fn last(&self) -> EntryId {
        self.lock().last
    }

    /// The entry of this index, if it is there or the last that was purged.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn id(&self, index: u64) -> Result<Option<EntryId>, WalFault> {
        let purged = self.purged();
        if index == purged.index {
            return Ok(Some(purged));
        }
        Ok(self.read(index..index + 1, 0)?.first().map(|entry| entry.id))
    }

    /// The last entry that can be purged so that whole files go, no entry after this index goes,
    /// and `keep_bytes` of entries stay.
    #[must_use]
    pub fn purgeable(&self, upto: u64, keep_bytes: u64) -> EntryId {
        let kept = self.lock();
        let mut bytes = 0;
        for file in kept.files.iter().rev() {
            bytes += file.offsets.last().copied().unwrap_or_default() as u64;
            if bytes >= keep_bytes && file.base.index <= upto {
                return file.base.max(kept.purged);
            }
        }
        kept.purged
    }

    /// Bytes of files.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let kept = self.lock();
        kept.files.iter().map(|file| u64::from(file.offsets.last().copied().unwrap_or(0))).sum()
    }

    /// The entries with these indexes, as far as they are there: from the first that is not purged,
    /// without a gap, at most `most_bytes` of bodies, but at least one. Recent ones come from
    /// memory, others from files.
    ///
    /// # Errors
    /// [`WalFault::Damaged`], or [`WalFault::Io`], where a retry may help.
    pub fn read(&self, range: Range<u64>, most_bytes: usize) -> Result<Vec<Entry>, WalFault> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        loop {
            let next = entries.last().map(|entry| entry.id.index + 1);
            let place = {
                let kept = self.lock();
                let index = next.unwrap_or_else(|| range.start.max(kept.purged.index + 1));
                kept.place(index, range.end).map(|place| (index, place))
            };
            let Some((index, place)) = place else { return Ok(entries) };
            let found = match place {
                EntryPlace::Memory(entries) => entries,
                EntryPlace::File { number, file, offsets } => {
                    let found = read_run(file, number, index, &offsets, most_bytes - bytes);
                    match found {
                        // The file was purged meanwhile, and perhaps reused.
                        Err(_) if self.purged().index >= index => continue,
                        other => other?,
                    }
                }
            };
            for entry in found {
                bytes += entry.body.len();
                if bytes > most_bytes && !entries.is_empty() {
                    return Ok(entries);
                }
                entries.push(entry);
            }
            if bytes >= most_bytes {
                return Ok(entries);
            }
        }
    }
}

/// The entries at these offsets of a file, from this index on; no more than have `most_bytes`, but
/// at least one.
fn read_run(
    file: Arc<dyn StorageFile>,
    number: u32,
    first: u64,
    offsets: &[u32],
    most_bytes: usize,
) -> Result<Vec<Entry>, WalFault> {
    let mut sectors = SectorReader::new(Source::Cache(file), number);
    let mut entries = Vec::new();
    let mut bytes = 0;
    for (index, offset) in (first..).zip(offsets) {
        let (offset, mut body) = (u64::from(*offset), Vec::new());
        let read = read_record(&mut sectors, offset, &mut body);
        let (RecordHeader { kind, id, .. }, _) = read.map_err(|none| none.fault(number))?;
        if kind != RecordKind::Entry || id.index != index {
            let what = format!("entry {index} is not where it was written");
            return Err(WalFault::damaged(&file_name(number), place_of(offset), what));
        }
        bytes += body.len();
        entries.push(Entry { id, body: Bytes::from(body) });
        if bytes >= most_bytes {
            break;
        }
    }
    Ok(entries)
}
