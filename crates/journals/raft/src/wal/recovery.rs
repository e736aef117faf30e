//! What the files have after a crash: see [the room](super) for what is torn and what is rot.

use super::entry_table::{EntryTable, TableFile};
use super::fault::WalFault;
use super::node_state::NodeState;
use super::record::{FileHeader, RecordHeader, RecordKind, file_name, file_number};
use super::record_reader::read_record;
use super::sector::{NoRecord, SectorReader, Source, place_of};
use crate::plants::{Plant, planted};
use std::sync::Arc;
use wellspring_format::batch::SECTOR_BYTES;
use wellspring_log::storage::{Storage, StorageFile};

/// What the next file has to say of those before.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    pub(super) kept: EntryTable,
    /// The number of the newest file; 0 if there is none.
    pub(super) newest: u32,
    /// The link of the next record.
    pub(super) link: u32,
    /// Bytes of records in the newest file.
    pub(super) end: u64,
}

/// A file that is to be read.
struct FileToScan {
    header: FileHeader,
    file: Arc<dyn StorageFile>,
    source: Source,
}

const READING: &str = "reading the WAL";

fn takes_rot() -> bool {
    planted(Plant::TakesRotForTorn)
}

/// Reads all files, and makes durable what the newest one has.
pub(super) fn recover(
    storage: &dyn Storage,
    node_id: u64,
    state: &NodeState,
) -> Result<Recovered, WalFault> {
    let reading = WalFault::io(READING);
    // A killed process may have left names that a power loss would take back.
    storage.sync_dir().map_err(reading)?;
    let names = storage.list().map_err(reading)?;
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    let first = numbers.first().copied().unwrap_or(1);
    let newest = numbers.last().copied().unwrap_or(0).max(state.newest);
    if let Some(missing) = (first..=newest).find(|number| numbers.binary_search(number).is_err()) {
        return Err(WalFault::damaged(&file_name(missing), 0, "the file is missing"));
    }
    let mut recovered = Recovered { newest, ..Recovered::default() };
    recovered.kept.purged = state.purged;
    let files = numbers.iter().map(|number| FileToScan::open(storage, *number, node_id));
    let mut files = files.collect::<Result<Vec<_>, _>>()?.into_iter().peekable();
    while let Some(file) = files.next() {
        let next = files.peek().map(|next| next.header);
        recovered.begin(&file)?;
        recovered.scan(file, next)?;
    }
    let kept = &mut recovered.kept;
    if kept.last.index < state.purged.index {
        kept.purge(state.purged);
    }
    if let Some(newest) = kept.files.back() {
        newest.file.sync_data().map_err(reading)?;
    }
    Ok(recovered)
}

impl FileToScan {
    fn open(storage: &dyn Storage, number: u32, node_id: u64) -> Result<FileToScan, WalFault> {
        let file = storage.open(&file_name(number)).map_err(WalFault::io(READING))?;
        let source = Source::device(&file);
        let mut header = [0; SECTOR_BYTES];
        source.fill(&mut header, 0).map_err(WalFault::io(READING))?;
        let header = FileHeader::decode(&header, number, node_id)?;
        Ok(FileToScan { header, file, source })
    }
}

impl Recovered {
    /// Checks that a file follows those before it.
    fn begin(&mut self, file: &FileToScan) -> Result<(), WalFault> {
        let FileHeader { number, base, link, .. } = file.header;
        let kept = &mut self.kept;
        let is_first = kept.files.is_empty();
        // What is missing between two files was purged before the second was made.
        let is_purged = base.index <= kept.purged.index && base.index >= kept.last.index;
        if !is_purged && (is_first || base != kept.last) || (!is_first && link != self.link) {
            let what = format!("it does not follow the file {}", file_name(number - 1));
            return Err(WalFault::damaged(&file_name(number), 0, what));
        }
        (kept.last, self.link, self.end) = (base, link, 0);
        kept.files.push_back(TableFile::new(number, base, Arc::clone(&file.file)));
        Ok(())
    }

    /// Takes the records of a file: up to where the next one says that they end, or to their end.
    fn scan(&mut self, file: FileToScan, next: Option<FileHeader>) -> Result<(), WalFault> {
        let number = file.header.number;
        let mut sectors = SectorReader::new(file.source, number);
        let mut body = Vec::new();
        // The write that may be torn.
        let mut torn = 1;
        while next.is_none_or(|next| self.end < next.end_before) {
            let (header, link) = match read_record(&mut sectors, self.end, &mut body) {
                Ok(record) => record,
                Err(NoRecord::Unwritten { place }) if next.is_none() => {
                    let bytes = file.file.len().map_err(WalFault::io(READING))?;
                    let is_followed = sectors.is_followed(place, torn, bytes);
                    if is_followed.map_err(WalFault::io(READING))? && !takes_rot() {
                        let what = "a write is missing, and a later one is there";
                        return Err(WalFault::damaged(&file_name(number), place, what));
                    }
                    return Ok(());
                }
                Err(NoRecord::Damaged { .. }) if next.is_none() && takes_rot() => return Ok(()),
                Err(none) => return Err(none.fault(number)),
            };
            if !self.is_next(&header) {
                let what = "a record does not follow the one before it";
                return Err(WalFault::damaged(&file_name(number), place_of(self.end), what));
            }
            match header.kind {
                RecordKind::Entry => self.kept.push(header.id, self.end),
                RecordKind::Cut => self.kept.cut(header.id),
            }
            self.link = link;
            self.end += header.total_bytes();
            torn = header.write.saturating_add(u32::from(header.is_last));
        }
        if next.is_some_and(|next| self.end != next.end_before) {
            let what = "the records do not end where the next file says";
            return Err(WalFault::damaged(&file_name(number), place_of(self.end), what));
        }
        Ok(())
    }

    /// Whether a record follows those before it.
    fn is_next(&self, header: &RecordHeader) -> bool {
        let (id, last) = (header.id, self.kept.last);
        let is_in_order = match header.kind {
            RecordKind::Entry => id.index == last.index + 1 && id.term >= last.term,
            RecordKind::Cut => id.index <= last.index && id.term <= last.term,
        };
        header.link == self.link && is_in_order
    }
}
