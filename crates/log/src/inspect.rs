//! Inspecting a log that is not open. Nothing here writes, and a folder in use by a running process
//! may be inspected too (its last batch may then be incomplete, which is reported as a torn end).

mod identity;
mod lost_end;

pub use identity::history;
pub use lost_end::evidence_of_lost_end;

use lost_end::{note_lost_end, verify_end};

use crate::error::{Corruption, LostEnd, OpenError};
use crate::floor::Floor;
use crate::index::{SegmentIndex, TermKind, TermPage};
use crate::journal::{CopyIdentity, all_lost, was_claimed};
use crate::query::CompiledQuery;
use crate::recover::{self, ScannedSegment, Tail};
use crate::role::Leader;
use crate::segments::{OpenSegment, build_active, knows_of_more, open_sealed};
use crate::shared::Place;
use crate::shared::entry::ClusterId;
use crate::storage::{DiskStorage, Storage};
use crate::work::Work;
use std::io;
use std::path::Path;
use std::sync::Arc;
use wellspring_format::segment::{index_name, parse_segment_name, segment_name};
use wellspring_types::{Position, Query};

/// The log's name in its [journal](crate::shared) if the folder holds a copy of a shared log;
/// `None` if it holds a log of files, or nothing.
///
/// # Errors
/// The folder cannot be read, or its metadata is damaged.
pub fn copied_log(dir: &Path) -> io::Result<Option<String>> {
    let storage = DiskStorage::existing(dir)?;
    Ok(CopyIdentity::read(&storage)?.map(|identity| identity.log))
}

/// A segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its name.
    pub name: String,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Position of its first event.
    pub base: Position,
    /// Epoch of the writer that made it.
    pub epoch: u64,
    /// Its index file.
    pub index: IndexFile,
}

/// The state of a segment's index file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexFile {
    /// A valid header that belongs to the segment.
    Present {
        /// Number of events it covers, in this segment and those that share it.
        events: u32,
    },
    /// The index of an earlier segment also covers this one.
    Shared,
    /// There is none: normal for the last segment; otherwise it is rebuilt at the next opening.
    Missing,
}

/// A batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchInfo {
    /// Offset of its header in the segment.
    pub offset: u64,
    /// Length of header and records.
    pub bytes: u64,
    /// Position of its first event.
    pub first: Position,
    /// Position of its last event.
    pub last: Position,
    /// Epoch of its writer.
    pub epoch: u64,
    /// When its last event was recorded, µs since 1970 UTC.
    pub recorded_at_us: u64,
}

/// The result of [`verify`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments read.
    pub segments: u64,
    /// Batches with valid checksums.
    pub batches: u64,
    /// Events with valid checksums.
    pub events: u64,
    /// Bytes of batches read.
    pub bytes: u64,
    /// Indexes compared with their segments, posting by posting.
    pub indexes: u64,
    /// Indexes that are missing or disagree with their segment. Harmless: they are rebuilt.
    pub stale_indexes: Vec<String>,
    /// Whether the last segment ends with a write interrupted by a crash. Harmless: it was never
    /// acknowledged.
    pub torn_end: bool,
    /// Damage to events.
    pub damage: Vec<Corruption>,
    /// Evidence that the last segments are gone.
    pub lost_end: Option<LostEnd>,
    /// Position of its first event, 1 unless the beginning was cut off.
    pub first: Position,
    /// Position of the last event in its segments.
    pub head: Position,
    /// Base of the last segment.
    pub last_base: Position,
    /// Number of bytes of the last segment, up to the end of its last event; 0 if it is damaged.
    pub last_bytes: u64,
    /// Whether it is the copy of a shared log, whose end may be cut off and fetched again.
    pub is_copy: bool,
}

impl Report {
    /// Whether every acknowledged event exists unchanged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.lost_end.is_none()
    }
}

/// The contents of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// No log yet.
    Nothing,
    /// A log of files: this is its only copy.
    Files,
    /// The copy of a [shared log](crate::shared).
    Copy(CopyFound),
}

/// The copy of a shared log in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFound {
    /// Identifies the shared log. `None` if the file that says so is missing or damaged, which is
    /// harmless: the shared log has the same information.
    pub of: Option<CopyOf>,
    /// Position of its last intact event, 0 if there is none.
    pub head: Position,
    /// Epoch of its last batch.
    pub epoch: u64,
    /// Place of its last batch in the shared log.
    pub place: Place,
}

/// The shared log that a folder is a copy of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOf {
    /// Random, chosen when the shared log was created.
    pub cluster: ClusterId,
    /// The shared log's name.
    pub log: String,
    /// The last known leader.
    pub leader: Option<Leader>,
}

impl From<CopyIdentity> for CopyOf {
    fn from(identity: CopyIdentity) -> CopyOf {
        let CopyIdentity { cluster, log, leader } = identity;
        let leader =
            leader.map(|leader| Leader { node: leader.node, url: leader.url, epoch: leader.epoch });
        CopyOf { cluster, log, leader }
    }
}

fn existing(dir: &Path) -> Result<DiskStorage, OpenError> {
    DiskStorage::existing(dir)
        .map_err(|error| OpenError::Io { doing: format!("opening {}", dir.display()), error })
}

fn listed(storage: &dyn Storage) -> Result<Vec<String>, OpenError> {
    storage
        .list()
        .map_err(|error| OpenError::Io { doing: format!("listing {}", storage.name()), error })
}

/// Position of the first event of a log.
fn first(storage: &dyn Storage) -> Result<Position, OpenError> {
    Ok(Floor::read(storage)?.map_or(1, |floor| floor.first))
}

/// Bases of the segments, without what was cut off.
fn bases(storage: &dyn Storage) -> Result<Vec<Position>, OpenError> {
    let (names, first) = (listed(storage)?, first(storage)?);
    let mut bases: Vec<Position> = names.iter().filter_map(|n| parse_segment_name(n)).collect();
    bases.retain(|&base| base >= first);
    bases.sort_unstable();
    if bases.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "no segment files in it");
        return Err(OpenError::Io { doing: format!("reading {}", storage.name()), error });
    }
    Ok(bases)
}

fn open(
    storage: &dyn Storage,
    name: &str,
) -> Result<Arc<dyn crate::storage::StorageFile>, OpenError> {
    storage.open(name).map_err(|error| OpenError::Io { doing: format!("opening {name}"), error })
}

/// What the folder `dir` holds. Reads one segment.
///
/// # Errors
/// [`OpenError`] if a file cannot be read. Damage is not an error: the copy may be truncated there,
/// and a log of files is recognized by its intact parts.
pub fn holding(dir: &Path) -> Result<Holding, OpenError> {
    holding_on(&existing(dir)?)
}

/// As [`holding`], for a storage supplied by the caller.
///
/// # Errors
/// As [`holding`].
pub fn holding_on(storage: &dyn Storage) -> Result<Holding, OpenError> {
    let failed = |doing: &str| {
        let doing = format!("{doing} in {}", storage.name());
        move |error| OpenError::Io { doing, error }
    };
    let (of, is_named) = match CopyIdentity::read(storage) {
        Ok(identity) => (identity.map(CopyOf::from), false),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => (None, true),
        Err(error) => return Err(failed("reading journal")(error)),
    };
    let mut bases: Vec<Position> = storage
        .list()
        .map_err(failed("listing files"))?
        .iter()
        .filter_map(|name| parse_segment_name(name))
        .collect();
    bases.sort_unstable();
    // A crash may leave an empty file where one was being created.
    let mut lengths = bases
        .iter()
        .map(|&base| open(storage, &segment_name(base))?.len().map_err(failed("measuring")));
    let lengths: Vec<u64> = lengths.by_ref().collect::<Result<_, OpenError>>()?;
    let mut lengths = lengths.into_iter();
    bases.retain(|_| lengths.next() != Some(0));
    let has_segments = !bases.is_empty();
    // Opening truncates damage, from the last segment backwards.
    let mut last = None;
    while let (None, Some(base)) = (&last, bases.pop()) {
        let name = segment_name(base);
        last = match recover::scan_good(&*open(storage, &name)?, &name) {
            Ok(found) if found.batches > 0 || bases.is_empty() => Some(found),
            Ok(_) | Err(OpenError::Corrupt(_)) => None,
            Err(other) => return Err(other),
        };
    }
    let was_claimed = was_claimed(storage).map_err(failed("reading epoch"))?;
    let is_copy = match &last {
        Some(found) => found.header.source.is_some(),
        None => of.is_some() || is_named,
    };
    Ok(match last {
        // Only a log of files claims its epoch here.
        _ if was_claimed => Holding::Files,
        last if is_copy => {
            let (head, epoch, place) =
                last.map_or_else(Default::default, |last| (last.next - 1, last.epoch, last.place));
            Holding::Copy(CopyFound { of, head, epoch, place })
        }
        _ if has_segments => Holding::Files,
        _ => Holding::Nothing,
    })
}

/// The segments of the log in `dir`, in order. Reads headers only.
///
/// # Errors
/// [`OpenError`] for the first file that cannot be read.
pub fn segments(dir: &Path) -> Result<Vec<SegmentFile>, OpenError> {
    let storage = existing(dir)?;
    let mut found = Vec::new();
    // The position after the events of the last index.
    let mut covered_until = None;
    for base in bases(&storage)? {
        let name = segment_name(base);
        let file = open(&storage, &name)?;
        let header = recover::read_header(&*file, &name)?;
        let file_bytes = file
            .len()
            .map_err(|error| OpenError::Io { doing: format!("reading {name}"), error })?;
        let index = match covered_until {
            Some(end) if base < end => IndexFile::Shared,
            _ => match open_sealed(&storage, base, header.salt)? {
                Some(index) => {
                    covered_until = Some(base + u64::from(index.len()));
                    IndexFile::Present { events: index.len() }
                }
                None => IndexFile::Missing,
            },
        };
        found.push(SegmentFile { name, file_bytes, base: header.base, epoch: header.epoch, index });
    }
    Ok(found)
}

/// The batches of one segment of the log in `dir`, in order, up to the first damaged one.
///
/// # Errors
/// [`OpenError`]; batches visited before are valid.
pub fn batches(
    dir: &Path,
    base: Position,
    visit: &mut dyn FnMut(BatchInfo),
) -> Result<ScannedSegment, OpenError> {
    let storage = existing(dir)?;
    let name = segment_name(base);
    recover::scan(&*open(&storage, &name)?, &name, &mut |batch| {
        visit(BatchInfo {
            offset: batch.offset,
            bytes: batch.header.total_bytes(),
            first: batch.header.first,
            last: batch.header.last(),
            epoch: batch.header.epoch,
            recorded_at_us: batch.header.recorded_at_us,
        });
        Ok(())
    })
}

/// Scans a segment in the file of this name, whatever the name, in the folder `dir`.
///
/// # Errors
/// [`OpenError`], [`OpenError::Corrupt`] if acknowledged bytes are damaged.
pub fn scan_file(dir: &Path, name: &str) -> Result<ScannedSegment, OpenError> {
    recover::scan(&*open(&existing(dir)?, name)?, name, &mut |batch| {
        batch.records_of(name).try_for_each(|found| found.map(drop)).map_err(OpenError::Corrupt)
    })
}

/// Reads and checks every byte of the log in `dir`. `progress` is called with the bytes of segment
/// files read so far and in total.
///
/// # Errors
/// [`OpenError::Io`] if a file cannot be read, [`OpenError::UnknownVersion`]; damage is in the
/// report.
pub fn verify(dir: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, OpenError> {
    verify_on(&existing(dir)?, progress)
}

/// As [`verify`], for a storage supplied by the caller.
///
/// # Errors
/// As [`verify`].
pub fn verify_on(
    storage: &dyn Storage,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, OpenError> {
    let bases = match bases(storage) {
        Err(OpenError::Io { error, doing }) if error.kind() == io::ErrorKind::NotFound => {
            let names = listed(storage)?;
            let lost = all_lost(storage, &names)?.ok_or(OpenError::Io { error, doing })?;
            return Ok(Report { damage: vec![lost], ..Report::default() });
        }
        Err(OpenError::Corrupt(floor)) => {
            return Ok(Report { damage: vec![floor], ..Report::default() });
        }
        bases => bases?,
    };
    let last_base = *bases.last().expect("there are segments");
    let first = first(storage)?;
    let mut report = Report { first, last_base, ..Report::default() };
    let mut expected = first;
    let mut lengths = Vec::new();
    for base in &bases {
        lengths.push(open(storage, &segment_name(*base))?.len().unwrap_or(0));
    }
    let total = lengths.iter().sum();
    let mut read = 0;
    for (i, (&base, len)) in bases.iter().zip(lengths).enumerate() {
        let last = i + 1 == bases.len();
        let next = verify_segment(storage, base, expected, last, &mut report)?;
        // After damage, the next segment determines where the log continues.
        expected = next.or(bases.get(i + 1).copied()).unwrap_or(expected);
        read += len;
        progress(read, total);
    }
    report.head = expected - 1;
    let mut unverified = bases.as_slice();
    while unverified.len() > 1 {
        let covered = verify_index(storage, unverified, &mut report)?;
        unverified = &unverified[covered..];
    }
    if !report.is_copy {
        verify_end(storage, &bases, &mut report)?;
    }
    Ok(report)
}

/// Checks one segment; returns the position after it, or `None` if it is damaged.
fn verify_segment(
    storage: &dyn Storage,
    base: Position,
    expected: Position,
    last: bool,
    report: &mut Report,
) -> Result<Option<Position>, OpenError> {
    let name = segment_name(base);
    let file = open(storage, &name)?;
    report.segments += 1;
    if base != expected {
        let what = format!("position {expected} is missing: the segment begins at {base}");
        report.damage.push(Corruption { file: name.clone(), offset: 0, what });
    }
    let mut recorded_at_us = 0;
    let scanned = recover::scan(&*file, &name, &mut |batch| {
        for found in batch.records_of(&name) {
            let (offset, record) = found.map_err(OpenError::Corrupt)?;
            if record.recorded_at_us() < recorded_at_us {
                let what = "recorded earlier than the event before it".into();
                report.damage.push(Corruption { file: name.clone(), offset, what });
            }
            recorded_at_us = record.recorded_at_us();
            report.events += 1;
        }
        report.batches += 1;
        report.bytes += batch.header.total_bytes();
        Ok(())
    });
    let scanned = match scanned {
        Ok(scanned) => scanned,
        Err(OpenError::Corrupt(corruption)) => {
            report.damage.push(corruption);
            return Ok(None);
        }
        Err(other) => return Err(other),
    };
    report.is_copy |= scanned.header.source.is_some();
    if last {
        report.last_bytes = scanned.end;
    }
    if scanned.tail == Tail::Torn {
        report.torn_end = last;
        if !last {
            let what = "a full segment ends within a batch".into();
            report.damage.push(Corruption { file: name, offset: scanned.end, what });
        }
    }
    Ok(Some(scanned.next))
}

/// Compares the index of the first of these segments with one rebuilt from the segments that it
/// covers, and returns their number.
fn verify_index(
    storage: &dyn Storage,
    bases: &[Position],
    report: &mut Report,
) -> Result<usize, OpenError> {
    let name = index_name(bases[0]);
    let segment_of = |&base: &Position| -> Result<Arc<OpenSegment>, OpenError> {
        let file = open(storage, &segment_name(base))?;
        Ok(OpenSegment::new(base, Some(file)))
    };
    let first = segment_of(&bases[0])?;
    let file = first.file().expect("just opened");
    let header = match recover::read_header(&**file, &first.name()) {
        // The report already contains it.
        Err(OpenError::Corrupt(_)) => return Ok(1),
        header => header?,
    };
    report.is_copy |= header.source.is_some();
    let sealed = open_sealed(storage, bases[0], header.salt)?;
    if sealed.as_ref().is_some_and(|index| !report.is_copy && knows_of_more(index, bases)) {
        note_lost_end(storage, bases, Some(&name), report)?;
    }
    let covered = sealed.as_ref().and_then(|sealed| sealed.segments().ok());
    let named = covered.as_ref().filter(|covered| {
        covered.len() < bases.len()
            && covered.iter().zip(bases).all(|(extent, &base)| extent.base == base)
    });
    let (Some(sealed), Some(covered)) = (sealed, named) else {
        report.stale_indexes.push(name);
        return Ok(1);
    };
    let segments: Vec<_> =
        bases[..covered.len()].iter().map(segment_of).collect::<Result<_, _>>()?;
    let active = match build_active(&segments) {
        Ok((active, _)) => active,
        // The report already contains it.
        Err(OpenError::Corrupt(_)) => return Ok(covered.len()),
        Err(other) => return Err(other),
    };
    let count = active.len();
    let (sealed, active) = (SegmentIndex::Sealed(sealed), SegmentIndex::Active(active));
    report.indexes += 1;
    if !agree(&sealed, &active, count) {
        report.stale_indexes.push(name);
    }
    Ok(covered.len())
}

/// Whether two indexes list the same offsets, and the same events for every type and tag.
fn agree(one: &SegmentIndex, other: &SegmentIndex, count: u32) -> bool {
    let offsets = (0..count).all(|rel| match (one.offset(rel), other.offset(rel)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    });
    let terms = |index: &SegmentIndex| {
        Some((index.types(count).ok()?, index.page(TermKind::Tag, &TermPage::ALL, count).ok()?))
    };
    let (Some(mine), Some(theirs)) = (terms(one), terms(other)) else { return false };
    if !offsets || mine != theirs {
        return false;
    }
    let rels = |index: &SegmentIndex, query: &Query| -> Option<Vec<u32>> {
        let query = CompiledQuery::shared(query);
        let mut cursor = index.cursor(&query, 0..count, false);
        let mut all = Vec::new();
        while cursor.next_chunk(&mut all, 4096, &mut Work::unbounded()).ok()? {}
        Some(all)
    };
    let types = mine.0.iter().map(|(term, _)| Query::item(&[term], &[]));
    let tags = mine.1.iter().map(|(term, _)| Query::item(&[], &[term]));
    types.chain(tags).all(|query| {
        let found = rels(one, &query);
        found.is_some() && found == rels(other, &query)
    })
}
