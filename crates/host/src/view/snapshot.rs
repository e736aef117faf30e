//! Snapshots of a view on disk: `LOG/views/NAME.snapshot`.
//!
//! ```text
//! magic "WSVIEW1\n" · version of the fold (u32) · position (u64) · anchor (u64)
//! the view's own bytes · end (u64) · its anchor (u64) · CRC-32C of everything before (u32)
//! all little-endian
//! ```
//! The view's bytes hold all events up to the position, and may hold effects of later ones, but of
//! none after the end. An anchor is taken from the event at a position: in another log, or in one
//! that was restored to another past or has lost its tail, that event differs or is missing. A
//! snapshot that does not fit is ignored, and the view is rebuilt: it never holds anything that is
//! not in the log.

use crate::kept_file::{FileCheck, KeptFile, Passed};
use crate::view::contract::View;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use wellspring_log::storage::{DeviceReader, create_folder};
use wellspring_log::{Log, ReadError};
use wellspring_types::Position;

const MAGIC: &[u8; 8] = b"WSVIEW1\n";
const BUFFER_BYTES: usize = 256 << 10;

/// Folder of the snapshots, in that of their log.
const FOLDER: &str = "views";
const SUFFIX: &str = "snapshot";
/// Bytes before the view's own: magic, version, position, anchor.
const HEAD_BYTES: u64 = 8 + 4 + 8 + 8;
/// Bytes after them: end, its anchor, checksum.
const TAIL_BYTES: u64 = 8 + 8 + 4;

/// The result of writing a snapshot.
pub(super) enum SnapshotOutcome {
    /// It is on disk.
    Whole {
        /// Its length.
        bytes: u64,
    },
    /// Nothing: snapshots are forbidden.
    Forbidden,
}

/// The snapshot file of a view.
pub(super) struct SnapshotFile {
    path: PathBuf,
    version: u32,
    forbidden: AtomicBool,
}

impl SnapshotFile {
    /// The snapshot of a view of the log in `dir`.
    pub(super) fn new(dir: &Path, name: &str, version: u32) -> SnapshotFile {
        let path = dir.join(FOLDER).join(format!("{name}.{SUFFIX}"));
        SnapshotFile { path, version, forbidden: AtomicBool::new(false) }
    }

    /// Forbids further snapshots.
    pub(super) fn forbid(&self) {
        self.forbidden.store(true, Ordering::SeqCst);
    }

    /// Writes a snapshot; the previous one stays until the new one is complete.
    ///
    /// # Errors
    /// The file system's. The previous one still exists.
    pub(super) fn write(
        &self,
        log: &Log,
        position: Position,
        encode: impl FnOnce(&mut BufWriter<ChecksumWriter<File>>) -> io::Result<()>,
    ) -> io::Result<SnapshotOutcome> {
        if self.forbidden.load(Ordering::SeqCst) {
            return Ok(SnapshotOutcome::Forbidden);
        }
        // A snapshot of another log would show its end where it never was.
        log.require_folder()?;
        let unfinished = self.path.with_extension("unfinished");
        let written = self.write_to(&unfinished, log, position, encode);
        if !matches!(written, Ok(SnapshotOutcome::Whole { .. })) {
            // On a full device it would take the room that the log needs.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    fn write_to(
        &self,
        unfinished: &Path,
        log: &Log,
        position: Position,
        encode: impl FnOnce(&mut BufWriter<ChecksumWriter<File>>) -> io::Result<()>,
    ) -> io::Result<SnapshotOutcome> {
        let anchored = |position| {
            let anchor = anchor(log, position).map_err(io::Error::other)?;
            anchor.ok_or_else(|| io::Error::other("no event exists at its position"))
        };
        let dir = self.path.parent().unwrap_or(Path::new("."));
        create_folder(dir)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let summed = ChecksumWriter::new(options.open(unfinished)?);
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, summed);
        out.write_all(MAGIC)?;
        out.write_all(&self.version.to_le_bytes())?;
        out.write_all(&position.to_le_bytes())?;
        out.write_all(&anchored(position)?.to_le_bytes())?;
        encode(&mut out)?;
        // The fold is of committed events: nothing in the bytes is later than this.
        let end = log.head();
        out.write_all(&end.to_le_bytes())?;
        out.write_all(&anchored(end)?.to_le_bytes())?;
        out.flush()?;
        let sum = out.get_ref().crc;
        out.write_all(&sum.to_le_bytes())?;
        let ChecksumWriter { inner, bytes, .. } = out.into_inner().map_err(io::Error::other)?;
        inner.sync_all()?;
        // The fold may have panicked meanwhile: then half an event may be in it.
        if self.forbidden.load(Ordering::SeqCst) {
            return Ok(SnapshotOutcome::Forbidden);
        }
        fs::rename(unfinished, &self.path)?;
        File::open(dir)?.sync_all()?;
        Ok(SnapshotOutcome::Whole { bytes })
    }

    /// Reads the snapshot, if there is one.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn read<V: View>(
        &self,
        log: &Log,
        context: &V::Context,
    ) -> Result<Option<(V, Position)>, String> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mut input = ChecksumWriter::new(BufReader::with_capacity(BUFFER_BYTES, file));
        let mut magic = [0; 8];
        fill(&mut input, &mut magic)?;
        if &magic != MAGIC {
            return Err("it is not a snapshot".to_owned());
        }
        let (mut version, mut position, mut known) = ([0; 4], [0; 8], [0; 8]);
        fill(&mut input, &mut version)?;
        if u32::from_le_bytes(version) != self.version {
            return Err(format!("it has version {}", u32::from_le_bytes(version)));
        }
        fill(&mut input, &mut position)?;
        fill(&mut input, &mut known)?;
        let position = Position::from_le_bytes(position);
        fits(log, position, u64::from_le_bytes(known))?;
        let view = V::restore(context, &mut input).map_err(|fault| fault.to_string())?;
        let (mut end, mut known) = ([0; 8], [0; 8]);
        fill(&mut input, &mut end)?;
        fill(&mut input, &mut known)?;
        fits(log, Position::from_le_bytes(end), u64::from_le_bytes(known))?;
        let (sum, mut stored) = (input.crc, [0; 4]);
        fill(&mut input, &mut stored)?;
        let ends = input.read(&mut [0]).is_ok_and(|more| more == 0);
        if u32::from_le_bytes(stored) != sum || !ends {
            return Err("its checksum is wrong".to_owned());
        }
        Ok(Some((view, position)))
    }
}

/// A snapshot found in a folder, whether or not its view is open.
pub(crate) struct FoundSnapshot {
    path: PathBuf,
    /// Name of the view.
    pub(crate) view: String,
}

impl FoundSnapshot {
    /// The snapshots of the log in `dir`, in no particular order; none if they cannot be listed.
    pub(crate) fn list(dir: &Path) -> Vec<FoundSnapshot> {
        let entries = fs::read_dir(dir.join(FOLDER)).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let path = entry.path();
            let view = path.file_stem()?.to_str()?.to_owned();
            let is_one = path.extension().is_some_and(|suffix| suffix == SUFFIX);
            is_one.then_some(FoundSnapshot { path, view })
        });
        // A file system lists them in any order, and messages name one of them.
        let mut found: Vec<FoundSnapshot> = found.collect();
        found.sort_by(|one, other| one.view.cmp(&other.view));
        found
    }

    /// The last event that the log had when it was written. Not verified.
    fn end(&self) -> io::Result<Position> {
        let file = File::open(&self.path)?;
        let from = file.metadata()?.len().checked_sub(TAIL_BYTES);
        let mut end = [0; 8];
        file.read_exact_at(&mut end, from.ok_or(io::ErrorKind::UnexpectedEof)?)?;
        Ok(Position::from_le_bytes(end))
    }

    /// As a file to be checked, with a name that begins with that of its log's folder. A damaged
    /// one is removed, and `removed` is told.
    pub(crate) fn kept_file(
        self,
        folder: &str,
        removed: impl FnOnce() + Send + 'static,
    ) -> KeptFile {
        let name = format!("{folder}/{FOLDER}/{}.{SUFFIX}", self.view);
        KeptFile::new(name, move |passed| {
            let file = match File::open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(FileCheck::Sound);
                }
                Err(error) => return Err(error),
            };
            if is_whole(&file, passed)? {
                return Ok(FileCheck::Sound);
            }
            // Unless its view has just replaced it.
            if fs::metadata(&self.path)?.ino() == file.metadata()?.ino() {
                fs::remove_file(&self.path)?;
                removed();
            }
            Ok(FileCheck::Mended)
        })
    }
}

/// A sound snapshot that was written when its log had more events than it has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotAhead {
    /// Its path in the log's folder.
    pub file: String,
    /// Position of the last event that the log then had, durably.
    pub end: Position,
}

/// The snapshot in a log's folder that is furthest ahead of the log, which ends at `head`. In a log
/// of files with a barrier for each batch this proves that events have been lost. What cannot be
/// read or is damaged proves nothing.
#[must_use]
pub fn snapshot_ahead(dir: &Path, head: Position) -> Option<SnapshotAhead> {
    let ahead = FoundSnapshot::list(dir).into_iter().filter_map(|found| {
        let end = found.end().ok().filter(|&end| end > head)?;
        let mut passed = |_| ControlFlow::Continue(());
        let is_sound = is_whole(&File::open(&found.path).ok()?, &mut passed).ok()?;
        let file = format!("{FOLDER}/{}.{SUFFIX}", found.view);
        is_sound.then_some(SnapshotAhead { file, end })
    });
    ahead.max_by_key(|ahead| ahead.end)
}

/// Whether a snapshot of any view has the right checksum, on the device. A check that is stopped
/// has found nothing.
fn is_whole(file: &File, passed: Passed<'_>) -> io::Result<bool> {
    let reader = DeviceReader::of(file)?;
    let Some(summed) = reader.file_bytes()?.checked_sub(4) else { return Ok(false) };
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut at, mut sum) = (0, 0);
    while at < summed {
        let len = (summed - at).min(BUFFER_BYTES as u64) as usize;
        let got = reader.read_at(&mut buffer[..len], at)?;
        let is_magic = at > 0 || buffer[..got].starts_with(MAGIC);
        if got < len || !is_magic {
            return Ok(false);
        }
        sum = crc32c::crc32c_append(sum, &buffer[..len]);
        at += len as u64;
        if passed(len as u64).is_break() {
            return Ok(true);
        }
    }
    let mut stored = [0; 4];
    let got = reader.read_at(&mut stored, summed)?;
    Ok(got == stored.len()
        && summed >= HEAD_BYTES + TAIL_BYTES - 4
        && u32::from_le_bytes(stored) == sum)
}

fn fill(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), String> {
    input.read_exact(bytes).map_err(|error| error.to_string())
}

fn fits(log: &Log, position: Position, known: u64) -> Result<(), String> {
    match anchor(log, position).map_err(|error| error.to_string())? {
        Some(here) if here == known => Ok(()),
        Some(_) => Err(format!("the event at its position {position} differs")),
        None => Err(format!("no event exists at its position {position}")),
    }
}

/// A fingerprint of the event at a position; `None` if there is none.
fn anchor(log: &Log, position: Position) -> Result<Option<u64>, ReadError> {
    log.snapshot().at(position, |record| {
        let sum = crc32c::crc32c(record.event_type().as_bytes());
        let sum = crc32c::crc32c_append(sum, record.data());
        u64::from(sum) << 32 | record.recorded_at_us() & 0xffff_ffff
    })
}

/// Computes a checksum of the data written.
#[derive(Debug)]
pub(super) struct ChecksumWriter<T> {
    inner: T,
    crc: u32,
    bytes: u64,
}

impl<T> ChecksumWriter<T> {
    fn new(inner: T) -> ChecksumWriter<T> {
        ChecksumWriter { inner, crc: 0, bytes: 0 }
    }

    fn note(&mut self, bytes: &[u8]) {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<T: Write> Write for ChecksumWriter<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.note(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for ChecksumWriter<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.note(&bytes[..read]);
        Ok(read)
    }
}
