//! Opening a log: lock, epoch, recovery, and the journal's thread. [`copy`] does the same for a
//! copy of a shared log, and repairs damage.

mod copy;
mod start;

pub(crate) use copy::open_shared;
use start::{StartedJournal, start};

use crate::error::{Corruption, OpenError};
use crate::floor::Floor;
use crate::index::{IndexError, SealedIndex, SegmentIndex};
use crate::journal::{CopyIdentity, FileJournal, all_lost, claim_epoch, create_segment};
use crate::options::Options;
use crate::recover;
use crate::role::Role;
use crate::segments::{
    OpenSegment, Run, build_active, check_next, knows_of_more, lost_after, open_sealed,
};
use crate::sequencer::{FullSegment, Sequencer};
use crate::storage::{Storage, StorageFile, read_exact_at};
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use wellspring_format::batch::BATCH_HEADER_BYTES;
use wellspring_format::history_of_salt;
use wellspring_format::segment::{
    SEGMENT_HEADER_BYTES, SegmentSource, index_name, is_index_name, parse_segment_name,
    segment_name,
};
use wellspring_types::{HistoryId, Position};

/// Smallest and largest configurable segment size. Offsets are u32, and a batch may exceed the size
/// by its own length.
const SEGMENT_BYTES: std::ops::RangeInclusive<u32> = 64 << 10..=2 << 30;

/// Smallest configurable limit of the active index: an empty one takes 64 KiB.
const ACTIVE_INDEX_BYTES_MIN: usize = 1 << 20;

fn io_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let doing = doing.into();
    move |error| OpenError::Io { doing, error }
}

/// An opened log, and its journal's thread unless the caller drives it.
pub(crate) type OpenedLog = (Arc<Sequencer>, Option<JoinHandle<()>>);

/// Locks the folder, recovers the log in it and starts its journal.
pub(crate) fn open(storage: Arc<dyn Storage>, options: Options) -> Result<OpenedLog, OpenError> {
    in_folder(&storage, options, |options| {
        if CopyIdentity::read(&*storage).is_ok_and(|identity| identity.is_none()) {
            return recover_and_start(&storage, options);
        }
        let what = "it holds a copy of a shared log; start with the --journal that it is a copy of";
        Err(OpenError::OtherJournal { dir: storage.name(), what: what.into() })
    })
}

/// Opens the log in a locked folder.
fn in_folder(
    storage: &Arc<dyn Storage>,
    mut options: Options,
    open: impl FnOnce(Options) -> Result<OpenedLog, OpenError>,
) -> Result<OpenedLog, OpenError> {
    options.segment_bytes =
        options.segment_bytes.clamp(*SEGMENT_BYTES.start(), *SEGMENT_BYTES.end());
    options.active_index_bytes = options.active_index_bytes.max(ACTIVE_INDEX_BYTES_MIN);
    storage.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::Locked { dir: storage.name() },
        _ => OpenError::Io { doing: format!("locking {}", storage.name()), error },
    })?;
    let opened = open(options);
    if opened.is_err() {
        storage.unlock();
    }
    opened
}

fn recover_and_start(storage: &Arc<dyn Storage>, options: Options) -> Result<OpenedLog, OpenError> {
    // Recovery precedes the epoch: a folder that is refused stays unchanged.
    let recovered = recover_segments(storage, None)?;
    if recovered.last.scanned.header.source.is_some() {
        let what = "its segments are those of a copy of a shared log";
        return Err(OpenError::OtherJournal { dir: storage.name(), what: what.into() });
    }
    let epoch = claim_epoch(&**storage, recovered.seen_epoch)?;
    if !recovered.is_new {
        recovered.last.make_durable()?;
    }
    let sync = options.sync;
    let history = match recovered.floor {
        Some(floor) => floor.history,
        None => history_of_first(&**storage)?,
    };
    // Nothing refers to them any more.
    for name in &recovered.cut_off {
        let _ = storage.remove(name);
    }
    start(storage, options, recovered, |writer| StartedJournal {
        journal: Box::new(FileJournal::new(writer, sync, epoch)),
        role: Role::Leading { epoch },
        epoch,
        shared: None,
        process: None,
        history: Arc::new(OnceLock::from(history)),
    })
}

/// The history of a log of files, which its first segment tells.
fn history_of_first(storage: &dyn Storage) -> Result<HistoryId, OpenError> {
    let file = open_file(storage, 1)?;
    let header = recover::read_header(&*file, &segment_name(1))?;
    Ok(history_of_salt(header.salt))
}

/// Reads the segments of a folder; creates the first one, with this source, in an empty folder.
fn recover_segments(
    storage: &Arc<dyn Storage>,
    source: Option<SegmentSource>,
) -> Result<RecoveredSegments, OpenError> {
    let folder = list_folder(&**storage)?;
    let bases = &folder.bases;
    let (mut sealed, mut unsealed) = (Vec::new(), Vec::new());
    let mut seen_epoch = 0;
    let mut rest = bases.as_slice();
    while rest.len() > 1 {
        let (run, epoch) = open_full(storage, &folder, rest, &mut unsealed)?;
        seen_epoch = seen_epoch.max(epoch);
        rest = &rest[run.segments().len()..];
        remove_covered(&**storage, &folder, &run);
        sealed.push(run);
    }
    let last = match bases.last() {
        Some(&base) => {
            check_successor(&**storage, &folder)?;
            open_last(&**storage, base)?
        }
        None => {
            if let Some(lost) = all_lost(&**storage, &folder.indexes)? {
                return Err(OpenError::Corrupt(lost));
            }
            // Created before the epoch file: a folder with an epoch and without segments has lost
            // them.
            create_segment(&**storage, 1, 1, source)
                .map_err(io_error("creating the first segment"))?;
            open_last(&**storage, 1)?
        }
    };
    seen_epoch = seen_epoch.max(last.scanned.epoch);
    // A new folder's segment has epoch 1, which is claimed next.
    let is_new = bases.is_empty();
    let seen_epoch = if is_new { 0 } else { seen_epoch };
    let Folder { floor, cut_off, .. } = folder;
    Ok(RecoveredSegments { list: sealed, unsealed, last, seen_epoch, is_new, floor, cut_off })
}

/// The files of a log in a folder.
struct Folder {
    /// Bases of segments, ascending.
    bases: Vec<Position>,
    /// Names of indexes, ascending.
    indexes: Vec<String>,
    /// Where the log begins, if its beginning was cut off.
    floor: Option<Floor>,
    /// Files of what was cut off, which a crash has left.
    cut_off: Vec<String>,
}

fn list_folder(storage: &dyn Storage) -> Result<Folder, OpenError> {
    let names = storage.list().map_err(io_error(format!("listing {}", storage.name())))?;
    for name in names.iter().filter(|name| name.ends_with(".tmp")) {
        // An unfinished file left by a crash.
        let _ = storage.remove(name);
    }
    let floor = Floor::read(storage)?;
    let first = floor.map_or(1, |floor| floor.first);
    let is_cut_off = |name: &String| {
        let is_before = parse_segment_name(name).is_some_and(|base| base < first);
        is_before || is_index_name(name) && *name < index_name(first)
    };
    let (cut_off, names): (Vec<_>, Vec<_>) = names.into_iter().partition(is_cut_off);
    let mut bases: Vec<Position> = names.iter().filter_map(|n| parse_segment_name(n)).collect();
    bases.sort_unstable();
    if bases.first().is_some_and(|&base| base != first) || floor.is_some() && bases.is_empty() {
        return Err(missing(first));
    }
    let mut indexes: Vec<String> = names.into_iter().filter(|name| is_index_name(name)).collect();
    indexes.sort_unstable();
    Ok(Folder { bases, indexes, floor, cut_off })
}

/// Checks that the last segment has no index, which is written only once the next segment holds a
/// batch.
fn check_successor(storage: &dyn Storage, folder: &Folder) -> Result<(), OpenError> {
    let last = folder.bases.last().copied().unwrap_or(1);
    let index = index_name(last);
    match folder.indexes.iter().find(|name| **name >= index) {
        None => Ok(()),
        Some(found) => Err(OpenError::EndLost(lost_after(storage, last, found)?)),
    }
}

fn missing(base: Position) -> OpenError {
    let what = format!("the segment that holds position {base} is missing");
    OpenError::Corrupt(Corruption { file: segment_name(base), offset: 0, what })
}

fn open_file(storage: &dyn Storage, base: Position) -> Result<Arc<dyn StorageFile>, OpenError> {
    let name = segment_name(base);
    storage.open(&name).map_err(io_error(format!("opening {name}")))
}

/// Removes the indexes that a run's index has replaced, in case a crash left them.
fn remove_covered(storage: &dyn Storage, folder: &Folder, run: &Run) {
    for segment in &run.segments()[1..] {
        let name = index_name(segment.base());
        if folder.indexes.binary_search(&name).is_ok() {
            let _ = storage.remove(&name);
        }
    }
}

/// Opens the first of these segments, which is not the last of the log, together with the others
/// that its index covers. A usable index tells what they hold; otherwise the segment is read and
/// indexed again. Also returns the greatest epoch in their headers.
fn open_full(
    storage: &Arc<dyn Storage>,
    folder: &Folder,
    bases: &[Position],
    unsealed: &mut Vec<FullSegment>,
) -> Result<(Arc<Run>, u64), OpenError> {
    let (base, next_base) = (bases[0], bases[1]);
    let name = segment_name(base);
    let file = open_file(&**storage, base)?;
    let header = recover::read_header(&*file, &name)?;
    let first = OpenSegment::new(base, Some(file));
    if let Some(index) = open_sealed(&**storage, base, header.salt)? {
        // The end of a copy may be cut off and fetched again.
        if header.source.is_none() && knows_of_more(&index, bases) {
            let last = bases[bases.len() - 1];
            let lost = lost_after(&**storage, last, &index_name(base))?;
            return Err(OpenError::EndLost(lost));
        }
        if let Some((run, epoch)) = open_run(storage, bases, &first, index)? {
            return Ok((run, epoch.max(header.epoch)));
        }
    }
    if folder.indexes.binary_search(&index_name(base)).is_ok() {
        first.count_mended();
    }
    let segments = vec![first];
    let (index, (_, scanned)) = build_active(&segments)?;
    let scanned = &scanned[0];
    check_next(&name, scanned, next_base)?;
    let index = SegmentIndex::Active(index);
    let run = Arc::new(Run::of(Arc::clone(storage), segments, index));
    // If the index cannot be written (a full disk), the one in memory is used, and writing is
    // retried while the log is open. No barrier has made a segment of a copy durable yet.
    let is_copy = header.source.is_some();
    if (is_copy && run.sync().is_err()) || run.seal(scanned.end).is_err() {
        unsealed.push((Arc::clone(&run), scanned.end));
    }
    Ok((run, header.epoch))
}

/// The segments that an index covers, the first of which is open; `None` if they are not the ones
/// it was built for.
fn open_run(
    storage: &Arc<dyn Storage>,
    bases: &[Position],
    first: &Arc<OpenSegment>,
    index: Arc<SealedIndex>,
) -> Result<Option<(Arc<Run>, u64)>, OpenError> {
    let covered = match index.segments() {
        Ok(covered) => covered,
        Err(IndexError::Io(error)) => {
            let doing = format!("reading {}", index_name(first.base()));
            return Err(OpenError::Io { doing, error });
        }
        Err(_) => return Ok(None),
    };
    // No index covers the last segment of the log, which is being written.
    let Some(&next_base) = bases.get(covered.len()) else { return Ok(None) };
    if first.base() + u64::from(index.len()) != next_base {
        return Ok(None);
    }
    let (mut segments, mut epoch) = (Vec::with_capacity(covered.len()), 0);
    for (extent, &base) in covered.iter().zip(bases) {
        if extent.base != base {
            return Ok(None);
        }
        let segment = if segments.is_empty() {
            Arc::clone(first)
        } else {
            OpenSegment::new(base, Some(open_file(&**storage, base)?))
        };
        let name = segment.name();
        let file = segment.file().expect("just opened");
        let header = recover::read_header(&**file, &name)?;
        let len = file.len().map_err(io_error(format!("reading {name}")))?;
        if extent.end > len || extent.salt != 0 && extent.salt != header.salt {
            return Ok(None);
        }
        epoch = epoch.max(header.epoch);
        segments.push(segment);
    }
    let run = Run::of(Arc::clone(storage), segments, SegmentIndex::Sealed(index));
    run.set_events((next_base - first.base()) as u32);
    Ok(Some((Arc::new(run), epoch)))
}

/// The recovered segments of a log.
struct RecoveredSegments {
    /// All but the last.
    list: Vec<Arc<Run>>,
    /// Those whose index could not be written.
    unsealed: Vec<FullSegment>,
    last: Last,
    /// The greatest epoch in their headers.
    seen_epoch: u64,
    /// Whether the segment was just created, which is durable then.
    is_new: bool,
    /// Where the log begins, if its beginning was cut off.
    floor: Option<Floor>,
    /// Files of what was cut off.
    cut_off: Vec<String>,
}

/// The recovered segment that is being written.
struct Last {
    file: Arc<dyn StorageFile>,
    index: SegmentIndex,
    writer: crate::index::ActiveWriter,
    scanned: recover::ScannedSegment,
}

fn open_last(storage: &dyn Storage, base: Position) -> Result<Last, OpenError> {
    let name = segment_name(base);
    let file = open_file(storage, base)?;
    recover::read_header(&*file, &name)?;
    let segment = OpenSegment::new(base, Some(Arc::clone(&file)));
    let (index, (writer, mut scanned)) = build_active(&[segment])?;
    let scanned = scanned.pop().expect("one segment was read");
    Ok(Last { file, index: SegmentIndex::Active(index), writer, scanned })
}

impl Last {
    /// Makes the recovered events durable before they are reported as durable.
    ///
    /// A killed process leaves writes in the page cache that no barrier has covered, and after a
    /// failed barrier the kernel may consider them written. So everything since the last known
    /// barrier is written again, followed by a barrier. A torn end is truncated first, so that
    /// zeros follow the last batch again.
    fn make_durable(&self) -> Result<(), OpenError> {
        const CHUNK: u64 = 1 << 20;
        let doing = || "making the recovered end durable";
        self.cut_torn()?;
        let mut at = self.scanned.synced_to.min(self.scanned.end);
        while at < self.scanned.end {
            let len = CHUNK.min(self.scanned.end - at) as usize;
            let bytes = read_exact_at(&*self.file, at, len).map_err(io_error(doing()))?;
            self.file.write_all_at(&bytes, at).map_err(io_error(doing()))?;
            at += len as u64;
        }
        self.file.sync_data().map_err(io_error(doing()))
    }

    fn cut_torn(&self) -> Result<(), OpenError> {
        if self.scanned.tail == recover::Tail::Clean {
            return Ok(());
        }
        let doing =
            || format!("truncating the torn end of {}", segment_name(self.scanned.header.base));
        self.file.set_len(self.scanned.end).map_err(io_error(doing()))
    }
}

const _: () = assert!(SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES < *SEGMENT_BYTES.start() as usize);
