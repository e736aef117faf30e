//! Scrubbing: reading every durable byte of an open log from the device, so that damage shows
//! before a read needs the event, and while a backup may still have it.

use crate::error::{Corruption, OpenError, ReadError};
use crate::extent::{Extent, SegmentExtent};
use crate::floor::{FLOOR_FILE, Floor};
use crate::index::{IndexError, SegmentIndex};
use crate::journal::{CopyIdentity, EPOCH_FILE, JOURNAL_FILE, KeptFile, keep_epoch};
use crate::log::Log;
use crate::work::{Stopped, Work};
use std::io::{self, BufReader, Read};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use wellspring_format::history_of_cluster;
use wellspring_format::segment::segment_name;
use wellspring_format::segment_reader::{SegmentFault, SegmentReader};

const BUFFER_BYTES: usize = 256 << 10;

/// What a scrub found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Bytes read.
    pub bytes: u64,
    /// Segments read.
    pub segments: u64,
    /// Damage, which reads of the log report from now on, too.
    pub damage: Vec<Corruption>,
    /// What could not be read: a device's or the system's error.
    pub unread: Vec<String>,
    /// Files that were found damaged and written again from what else is known, so nothing is lost.
    /// Of indexes, also those that reads or the opening have rebuilt since the last complete scrub.
    pub mended: Vec<String>,
}

/// How a scrub ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScrubEnd {
    /// Everything was read.
    Complete(ScrubReport),
    /// It was stopped, or the log was closed meanwhile: one that is deleted loses its files, and
    /// nothing that was found of it counts.
    Stopped,
}

/// Bytes that tell of themselves as they are read.
struct Passing<'a, R> {
    source: R,
    pass: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl<R: Read> Read for Passing<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buf)?;
        match (self.pass)(got as u64) {
            ControlFlow::Continue(()) => Ok(got),
            // Not `Interrupted`, after which a read is repeated.
            ControlFlow::Break(()) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

impl Log {
    /// Reads and checks every durable byte of the log: segments, sealed indexes, the epoch; and
    /// that the files of segments still have their names. Changes nothing in a folder that has
    /// taken the place of the log's. Takes no lock that an append waits for. `pass` is told of the
    /// bytes as they are read; it may sleep, which sets the rate, and stop. Damage is recorded as
    /// if a read had met it; a damaged index is rebuilt, and a copy of a shared log fetches the
    /// segment again.
    pub fn scrub(&self, pass: &mut dyn FnMut(u64) -> ControlFlow<()>) -> ScrubEnd {
        let mut report = ScrubReport::default();
        let mut stopped = false;
        let mut counted = |bytes| {
            let flow = pass(bytes);
            stopped |= flow.is_break();
            flow
        };
        let extent = self.extent_now();
        self.scrub_segments(&extent, &mut report, &mut counted);
        self.scrub_indexes(&mut report, &mut counted);
        if stopped {
            return ScrubEnd::Stopped;
        }
        report.mended = self.sequencer().segments.take_mended();
        if extent.is_copy {
            self.keep(JOURNAL_FILE, Log::keep_identity, &mut report);
        } else {
            self.keep(EPOCH_FILE, Log::keep_epoch, &mut report);
            self.keep(FLOOR_FILE, Log::keep_floor, &mut report);
        }
        // Last, because files may go at any moment before.
        if self.feed().is_closed() { ScrubEnd::Stopped } else { ScrubEnd::Complete(report) }
    }

    /// Checks that the log's folder still has its path: what is written by the path gets into no
    /// other folder.
    ///
    /// # Errors
    /// `NotFound` if it was moved, removed or replaced; or an error of the file system.
    pub fn require_folder(&self) -> io::Result<()> {
        self.sequencer().storage.require_folder()
    }

    /// Has a small file beside the segments checked, and written again if it is not what it was.
    fn keep(&self, name: &str, check: fn(&Log) -> io::Result<KeptFile>, report: &mut ScrubReport) {
        match self.require_folder().and_then(|()| check(self)) {
            Ok(KeptFile::Sound) => {}
            Ok(KeptFile::Mended) => report.mended.push(name.to_owned()),
            Err(error) => report.unread.push(format!("{name}: {error}")),
        }
    }

    fn keep_epoch(&self) -> io::Result<KeptFile> {
        let epoch = self.sequencer().epoch.load(Ordering::Relaxed);
        keep_epoch(&*self.sequencer().storage, epoch)
    }

    fn keep_floor(&self) -> io::Result<KeptFile> {
        let sequencer = self.sequencer();
        // A cut may be writing it.
        let _alone = sequencer.sealer.own_indexes();
        let Some(&history) = sequencer.history.get() else { return Ok(KeptFile::Sound) };
        let known = sequencer.segments.floor(history);
        let Some(known) = known else { return Ok(KeptFile::Sound) };
        match Floor::read(&*sequencer.storage) {
            Ok(Some(found)) if found == known => return Ok(KeptFile::Sound),
            Err(OpenError::Io { error, .. }) => return Err(error),
            _ => {}
        }
        known.write(&*sequencer.storage)?;
        Ok(KeptFile::Mended)
    }

    /// Checks the file that says of which shared log this is a copy. The journal's thread, which
    /// knows the identity, writes it again.
    fn keep_identity(&self) -> io::Result<KeptFile> {
        let sequencer = self.sequencer();
        let (Some(known), Some(counters)) = (sequencer.history.get(), &sequencer.shared_counters)
        else {
            return Ok(KeptFile::Sound);
        };
        match CopyIdentity::read(&*sequencer.storage) {
            Ok(Some(found))
                if history_of_cluster(found.cluster.0, counters.generation) == *known =>
            {
                return Ok(KeptFile::Sound);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(other) => return Err(other),
        }
        counters.is_identity_lost.store(true, Ordering::Relaxed);
        sequencer.wake();
        Ok(KeptFile::Mended)
    }

    fn scrub_segments(
        &self,
        extent: &Extent,
        report: &mut ScrubReport,
        pass: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) {
        for segment in &extent.segments {
            let name = segment_name(segment.base());
            match self.check_name(segment, extent.is_copy) {
                Ok(()) => {}
                // The files of a log that is deleted lose their names once it is closed.
                Err(_) if self.feed().is_closed() => return,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let what = "the file was removed or replaced, so the next start will not \
                                find its events"
                        .into();
                    self.found(segment, Corruption { file: name, offset: 0, what }, report);
                    continue;
                }
                Err(error) => {
                    report.unread.push(format!("{name}: {error}"));
                    continue;
                }
            }
            match scrub_segment(segment, &name, pass) {
                Ok(bytes) => {
                    report.bytes += bytes;
                    report.segments += 1;
                }
                Err(SegmentFault::Io(error)) => match error.kind() {
                    io::ErrorKind::ConnectionAborted => return,
                    io::ErrorKind::UnexpectedEof => {
                        let what = "the file ends too early".into();
                        self.found(segment, Corruption { file: name, offset: 0, what }, report);
                    }
                    _ => report.unread.push(format!("{name}: {error}")),
                },
                Err(SegmentFault::UnknownVersion(version)) => {
                    let what = format!("its header names the format version {version}");
                    self.found(segment, Corruption { file: name, offset: 8, what }, report);
                }
                Err(SegmentFault::Corrupt(corruption)) => self.found(segment, corruption, report),
            }
        }
    }

    /// Checks that a segment can be found by its name. A copy replaces those that it fetches again,
    /// and fetches what it misses.
    fn check_name(&self, segment: &SegmentExtent, is_copy: bool) -> io::Result<()> {
        if is_copy { Ok(()) } else { segment.still_named(&*self.sequencer().storage) }
    }

    fn found(&self, segment: &SegmentExtent, corruption: Corruption, report: &mut ScrubReport) {
        segment.report_damage(corruption.clone());
        report.damage.push(corruption);
    }

    fn scrub_indexes(
        &self,
        report: &mut ScrubReport,
        pass: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) {
        for run in self.sequencer().segments.runs().iter() {
            let scrubbed = run.ask(&mut Work::unbounded(), |index, _| match index {
                SegmentIndex::Sealed(sealed) => sealed.scrub(&mut |bytes| match pass(bytes) {
                    ControlFlow::Continue(()) => Ok(()),
                    ControlFlow::Break(()) => Err(IndexError::Stopped(Stopped::Cancelled)),
                }),
                SegmentIndex::Active(_) => Ok(()),
            });
            match scrubbed {
                Ok(()) => {}
                Err(ReadError::Stopped(_)) => return,
                Err(ReadError::Corrupt(corruption)) => report.damage.push(corruption),
                Err(other) => report.unread.push(other.to_string()),
            }
        }
    }
}

/// Reads one segment to its end; returns its bytes.
fn scrub_segment(
    segment: &SegmentExtent,
    name: &str,
    pass: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<u64, SegmentFault> {
    let failed = |error: ReadError| SegmentFault::Io(io::Error::other(error.to_string()));
    let source = segment.read_past_cache().map_err(failed)?;
    let bytes = source.remaining();
    let source = BufReader::with_capacity(BUFFER_BYTES, Passing { source, pass });
    let mut reader = SegmentReader::begin(source, name, segment.base(), bytes)?;
    reader.read_to_end()?;
    if reader.next_position() != segment.next() {
        let what = format!("it ends before position {}", reader.next_position());
        let (file, offset) = (name.to_owned(), reader.offset());
        return Err(SegmentFault::Corrupt(Corruption { file, offset, what }));
    }
    Ok(bytes)
}
