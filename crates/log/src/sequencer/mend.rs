//! Rewrites damaged segments of an open copy from the shared log. A log of files has no such
//! source: its damage stays until an operator restores it.
//!
//! The rule is applied again to the entries after the batch before the segment, or to the batches
//! that another copy has, so the same batches are accepted as before; their records have the same
//! offsets, so the index stays valid.

use super::Sequencer;
use super::commit::Committer;
use crate::error::{Corruption, OpenError};
use crate::journal::{JournalBatch, Resume, SealedBy};
use crate::plants::{Plant, planted};
use crate::recover;
use crate::role::Role;
use crate::shared::rule::{AcceptedBatch, EntryEffect, Rule};
use crate::shared::{Fetched, Place};
use crate::storage::StorageFile;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wellspring_format::batch::BATCH_HEADER_BYTES;
use wellspring_format::segment::{
    Features, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentSource, segment_name,
};
use wellspring_types::Position;

/// Time between checks for damage.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// Ends with `.tmp`, like all names that opening removes.
const MENDED_NAME: &str = "mended.tmp";

/// The end of the log before a segment.
struct PrecedingEnd {
    place: Place,
    epoch: u64,
    chain: u32,
}

/// A segment being rewritten.
struct Rewrite {
    file: Arc<dyn StorageFile>,
    resume: Resume,
}

impl Sequencer {
    /// Repairs damaged segments of a copy if a check is due; returns the time until the next check.
    pub(super) fn mend_if_due(&self, committer: &mut Committer) -> Option<Duration> {
        self.confirmations.as_ref()?;
        let now_us = self.clock().monotonic_us();
        if now_us < committer.look_for_damage_us {
            return Some(Duration::from_micros(committer.look_for_damage_us - now_us));
        }
        committer.look_for_damage_us = now_us + LOOK_AFTER.as_micros() as u64;
        if planted(Plant::NeverMends) {
            return Some(LOOK_AFTER);
        }
        if let Role::Detached { .. } = self.role() {
            // The shared log has another history: an operator must decide which is right.
            return None;
        }
        for base in self.segments.damaged() {
            if self.mend(committer, base).is_err() {
                let _ = self.storage.remove(MENDED_NAME);
                self.mend_failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                break;
            }
        }
        Some(LOOK_AFTER)
    }

    fn mend(&self, committer: &mut Committer, base: Position) -> io::Result<()> {
        let (segment, next_base) = self.segments.segment(base).ok_or_else(gone)?;
        let head = self.feed.head();
        let last = next_base.map_or(head, |next| head.min(next - 1));
        let before = self.before(base)?;
        // An index identifies its segments by their salts, so the salt is kept if it can be read.
        let old = segment
            .file()
            .ok()
            .and_then(|file| recover::read_header(&**file, &segment.name()).ok());
        let salt = old.map_or(before.place.0 ^ base, |header| header.salt);
        let epoch = old.map_or(before.epoch, |header| header.epoch);
        let source = Some(SegmentSource { after: before.place, chain: before.chain });
        let file = self.storage.create(MENDED_NAME)?;
        let header = SegmentHeader { base, salt, epoch, source, features: Features::None };
        file.write_all_at(&header.encode(), 0)?;
        let resume = Resume { header, end: SEGMENT_HEADER_BYTES as u64, last_crc: 0 };
        let mut rewrite = Rewrite { file, resume };
        let mut rule = Rule::at(before.epoch, base - 1, before.chain, Some(Default::default()));
        let mut after = before.place;
        while rule.head() < last {
            let fetched = committer.journal.fetch(after).map_err(io::Error::other)?;
            let (entries, is_accepted) = match fetched {
                Fetched::Entries(entries) => (entries, false),
                Fetched::Accepted(batches) => (batches, true),
            };
            if entries.is_empty() {
                return Err(gone());
            }
            for (place, entry) in entries {
                after = place;
                let judged =
                    if is_accepted { rule.judge_accepted(entry) } else { rule.judge(entry) };
                let verdict = judged.map_err(|fault| io::Error::other(fault.to_string()))?;
                if let EntryEffect::Accepted(accepted) = verdict {
                    rewrite.write(&accepted, place)?;
                }
                if rule.head() >= last {
                    break;
                }
            }
        }
        let is_active = base == committer.journal.end().0;
        let is_same = match next_base {
            _ if is_active => committer.journal.end().1 == rewrite.resume.end,
            Some(next) => self.chain_before(next).is_none_or(|chain| chain == rule.chain()),
            None => true,
        };
        if !is_same {
            return Err(io::Error::other("the shared log and the copy have different histories"));
        }
        rewrite.file.sync_data()?;
        self.storage.rename(MENDED_NAME, &segment_name(base))?;
        self.storage.sync_dir()?;
        self.segments.replace_file(base, Arc::clone(&rewrite.file));
        if is_active {
            committer.journal.replace_active(rewrite.file, rewrite.resume);
        }
        Ok(())
    }

    /// The chain up to the segment with this base according to the segment itself, if it can be
    /// read.
    fn chain_before(&self, base: Position) -> Option<u32> {
        let (segment, _) = self.segments.segment(base)?;
        let header = recover::read_header(&**segment.file().ok()?, &segment.name()).ok()?;
        header.source.map(|source| source.chain)
    }

    /// The end of the segment before the one with this base.
    fn before(&self, base: Position) -> io::Result<PrecedingEnd> {
        let Some(previous) = self.segments.base_before(base) else {
            return Ok(PrecedingEnd { place: Place(0), epoch: 0, chain: 0 });
        };
        let (segment, _) = self.segments.segment(previous).ok_or_else(gone)?;
        let file = segment.file().map_err(|error| io::Error::other(error.to_string()))?;
        // Up to its last batch only: damage of the zeros after it does not matter.
        let damage = match recover::scan_good(&**file, &segment.name()) {
            Ok(scanned) if scanned.next == base => {
                let recover::ScannedSegment { place, epoch, chain, .. } = scanned;
                return Ok(PrecedingEnd { place, epoch, chain });
            }
            Ok(scanned) => {
                let what = format!("the batches end before position {base}");
                Corruption { file: segment.name(), offset: scanned.end, what }
            }
            Err(OpenError::Corrupt(damage)) => damage,
            Err(other) => return Err(io::Error::other(other.to_string())),
        };
        // That segment is repaired first.
        Err(io::Error::other(segment.damaged(damage).to_string()))
    }
}

fn gone() -> io::Error {
    io::Error::other("the shared log does not keep what the segment held")
}

impl Rewrite {
    fn write(&mut self, accepted: &AcceptedBatch, place: Place) -> io::Result<()> {
        let id = &accepted.batch;
        let mut bytes = vec![0; BATCH_HEADER_BYTES];
        accepted.body_slices().for_each(|piece| bytes.extend_from_slice(piece));
        let mut batch = JournalBatch {
            segment_base: self.resume.header.base,
            offset: self.resume.end as u32,
            first: id.first,
            count: id.count,
            recorded_at_us: id.recorded_at_us,
            features: Features::None,
            bytes,
        };
        let known = SealedBy {
            epoch: id.epoch,
            place,
            previous_crc: self.resume.last_crc,
            synced_to: SEGMENT_HEADER_BYTES as u32,
        };
        self.resume.last_crc = batch.seal(self.resume.header.salt, &known);
        self.file.write_all_at(&batch.bytes, self.resume.end)?;
        self.resume.end += batch.bytes.len() as u64;
        Ok(())
    }
}
