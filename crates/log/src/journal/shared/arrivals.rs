//! Processes entries that arrive from a shared log.

use super::copy::CopyIdentity;
use super::offers::Purpose;
use super::{ArrivedBatch, Origin, SharedJournal, Stage};
use crate::journal::{JournalBatch, JournalError, Settlement};
use crate::plants::{Plant, planted};
use crate::role::{Leader, Role};
use crate::shared::Place;
use crate::shared::entry::{BatchId, ClusterId, Entry};
use crate::shared::rule::{AcceptedBatch, Claimant, EntryEffect, VoidReason};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wellspring_format::history_of_cluster;
use wellspring_format::record::RecordView;
use wellspring_format::segment::SegmentSource;
use wellspring_types::Position;

/// Time between attempts to write the identity of the copy.
const IDENTITY_AGAIN_US: u64 = 100_000;

impl SharedJournal {
    /// The copy now has everything that the shared log held when it was opened.
    pub(super) fn caught_up(&mut self) {
        if self.rule.cluster().is_some() {
            self.stage = Stage::Following;
            // Only for a leader found at the opening: a later claim under this node's name comes
            // from another live process, and the two would claim alternately for ever.
            let me = &self.options;
            let former = self.rule.leader().filter(|l| l.node == me.node && l.start != me.start);
            self.former_epoch = former.map(|former| former.epoch);
            let leader = self.rule.leader().map(leader_of);
            self.lead.follows(self.now_us());
            self.tell_role(Role::Following { leader }, Vec::new());
        } else if !self.offers.is_pending(Purpose::Founding) {
            let cluster = self.options.new_cluster();
            let founded = Entry::Founded { cluster, log: &self.options.log };
            self.offers.push(Purpose::Founding, founded.encode().into());
        }
    }

    /// Processes an entry.
    pub(super) fn entry(&mut self, place: Place, entry: Arc<[u8]>) {
        if place <= self.seen {
            return;
        }
        if let Some(anchor) = self.anchor.take() {
            match same_batch(place, &entry, &anchor) {
                Ok(()) => self.seen = place,
                Err(reason) => self.detach(reason),
            }
            return;
        }
        let knew_leader = self.rule.leader().is_some();
        let verdict = match self.rule.judge(Arc::clone(&entry)) {
            Ok(verdict) => verdict,
            Err(fault) => {
                return self.detach(format!("the entry at place {} is invalid: {fault}", place.0));
            }
        };
        self.seen = place;
        self.offers.arrived(place);
        let now_us = self.now_us();
        match verdict {
            EntryEffect::Founded { cluster, log } => self.founded(cluster, log),
            EntryEffect::Led(claimant) => self.led(&claimant, now_us),
            EntryEffect::Alive => {
                self.alive(now_us);
                if !knew_leader {
                    self.met_leader(now_us);
                }
            }
            EntryEffect::Part => self.alive(now_us),
            EntryEffect::Accepted(accepted) => {
                self.alive(now_us);
                self.accepted(accepted);
                return;
            }
            EntryEffect::Probe(_) => {}
            EntryEffect::Void(reason) => self.void(&entry, reason, place),
        }
        self.applied = place;
    }

    pub(super) fn alive(&mut self, now_us: u64) {
        match self.stage {
            Stage::Leading { .. } => {
                let awaits_since_us = self.offers.oldest().map(|oldest| oldest.since_us);
                self.lead.delivered(now_us, awaits_since_us);
            }
            _ if self.rule.leader().is_some_and(|leader| self.is_me(leader)) => {
                self.lead.past_lead_arrives(now_us);
            }
            _ => self.lead.leader_lives(now_us),
        }
    }

    /// A heartbeat has revealed the leader to a copy that resumed after its claim.
    pub(super) fn met_leader(&mut self, now_us: u64) {
        let Some(claimant) = self.rule.leader().cloned() else { return };
        if self.stage == Stage::Following {
            self.tell_role(Role::Following { leader: Some(leader_of(&claimant)) }, Vec::new());
        }
        self.note_leader(claimant, now_us);
    }

    pub(super) fn note_leader(&mut self, claimant: Claimant, now_us: u64) {
        if let Some(identity) = &mut self.identity {
            identity.leader = Some(claimant);
            // A hint: without it, a restart waits for the leader to fall silent or to show itself.
            self.write_identity(now_us);
        }
    }

    pub(super) fn founded(&mut self, cluster: ClusterId, log: String) {
        let identity = CopyIdentity { cluster, log, leader: None };
        if identity.log != self.options.log {
            let found = &identity.log;
            let reason = format!("the shared log is that of the log {found}, not of this one");
            return self.detach(reason);
        }
        if let Some(known) = self.identity.as_ref().filter(|known| known.cluster != cluster) {
            let known = known.cluster;
            let reason = format!("the copy is of cluster {known}, the shared log of {cluster}");
            return self.detach(reason);
        }
        let _ = self.history.set(history_of_cluster(cluster.0, self.engine.generation()));
        self.identity = Some(identity);
        self.write_identity(self.now_us());
        self.offers.stop();
    }

    /// Writes the identity of the copy and its leader; retries later if that fails, for example on
    /// a full disk. A copy opened without the file asks the shared log for it.
    pub(super) fn write_identity(&mut self, now_us: u64) {
        let written =
            self.identity.as_ref().map_or(Ok(()), |identity| identity.write(&*self.storage));
        self.identity_due_us = written.is_err().then_some(now_us + IDENTITY_AGAIN_US);
    }

    /// A claim took effect. Batches offered before that have not arrived will never count.
    pub(super) fn led(&mut self, claimant: &Claimant, now_us: u64) {
        if planted(Plant::KeepsLead) && matches!(self.stage, Stage::Leading { .. }) {
            return;
        }
        let lost = self.offers.take_batches();
        let is_mine = self.is_me(claimant);
        self.note_leader(claimant.clone(), now_us);
        // While it catches up, this node reads history; even a claim of its own comes from an
        // earlier life.
        if let Stage::CatchingUp { end } = self.stage {
            if !lost.is_empty() {
                self.tell_role(Role::CatchingUp { place: self.applied, end }, lost);
            }
            return;
        }
        if is_mine {
            // Asked to resign, it had given up this claim, which was in flight.
            let was_given_up = self.lead.has_resigned(now_us);
            let epoch = claimant.epoch;
            self.stage = Stage::Leading { epoch };
            self.offered_chain = self.rule.chain();
            self.lead.began_to_lead(now_us);
            self.tell_role(Role::Leading { epoch }, lost);
            if was_given_up {
                self.step_down();
                self.lead.resigned(now_us);
            }
        } else {
            self.stage = Stage::Following;
            self.lead.another_leads(now_us);
            self.tell_role(Role::Following { leader: Some(leader_of(claimant)) }, lost);
        }
    }

    pub(super) fn accepted(&mut self, accepted: AcceptedBatch) {
        let id = accepted.batch;
        let own = self.offers.oldest().is_some_and(|oldest| oldest.id == id);
        self.arrived = Some(match own.then(|| self.offers.pop_oldest()).flatten() {
            Some(under_way) => ArrivedBatch::Own(under_way.batch, id),
            None => {
                if let Err(position) = check_records(&accepted) {
                    return self.detach(format!(
                        "the batch of position {} holds no good record for position {position}: the program \
                         that wrote it is newer than this one, which is to be replaced then, or at fault; \
                         report that",
                        id.first
                    ));
                }
                self.counters.foreign_batches.fetch_add(1, Ordering::Relaxed);
                ArrivedBatch::Foreign(Arc::new(accepted))
            }
        });
    }

    pub(super) fn void(&mut self, entry: &[u8], reason: VoidReason, place: Place) {
        self.counters.void_entries.fetch_add(1, Ordering::Relaxed);
        if reason == VoidReason::OtherPast {
            // Only the current leader produces such a batch, and it does not follow this copy's.
            let place = place.0;
            return self.detach(format!("the batch at place {place} follows another history"));
        }
        // A repeated part has lost nothing: offering its batch from the beginning would repeat it
        // again.
        if reason != VoidReason::Repeated
            && let Ok(Entry::Batch(part)) = Entry::decode(entry)
            && part.batch.epoch == self.rule.epoch()
            && part.batch.first > self.rule.head()
        {
            self.offers.void(part.batch.first);
        }
    }

    /// Writes a batch that has arrived into its segment.
    pub(super) fn write(
        &mut self,
        batch: &mut JournalBatch,
        id: &BatchId,
    ) -> Result<(), JournalError> {
        if batch.segment_base != self.writer.base() {
            self.end_segment_durably();
            let source = SegmentSource { after: self.last_batch, chain: id.previous };
            self.writer
                .begin_segment(batch.segment_base, id.epoch, Some(source))
                .map_err(passes)?;
        }
        self.writer.reserve(batch)?;
        // A copy that has a batch of an epoch knows who leads in it, also after a restart: no
        // engine would tell it again. Both wait for room.
        if self.identity_due_us.is_some() {
            self.write_identity(self.now_us());
            if self.identity_due_us.is_some() {
                return Err(JournalError::Full);
            }
        }
        self.writer.write(batch, id.epoch, self.seen).map_err(JournalError::Retry)?;
        self.writer.prepare_ahead();
        self.applied = self.seen;
        self.last_batch = self.seen;
        Ok(())
    }

    /// The next outcome to report. A role change reported before a batch arrived precedes it, and
    /// nothing arrives while a batch waits to be written.
    pub(super) fn settled(&mut self) -> Result<Option<Settlement>, JournalError> {
        if let Some(told) = self.told.pop_front() {
            return Ok(Some(told));
        }
        match self.arrived.take() {
            None => Ok(None),
            Some(ArrivedBatch::Own(mut batch, id)) => match self.write(&mut batch, &id) {
                Ok(()) => Ok(Some(Settlement::Durable(batch))),
                Err(error) => {
                    self.arrived = Some(ArrivedBatch::Own(batch, id));
                    Err(error)
                }
            },
            Some(ArrivedBatch::Foreign(accepted)) => {
                self.arrived = Some(ArrivedBatch::Foreign(Arc::clone(&accepted)));
                Ok(Some(Settlement::Foreign(accepted)))
            }
        }
    }
}

pub(super) fn leader_of(claimant: &Claimant) -> Leader {
    let Claimant { node, url, epoch, .. } = claimant;
    Leader { node: node.clone(), url: url.clone(), epoch: *epoch }
}

/// Whether a batch contains the records that it claims to. Its checksums only show that it is as
/// its writer wrote it.
///
/// # Errors
/// The first position without a valid record.
fn check_records(accepted: &AcceptedBatch) -> Result<(), Position> {
    let pieces: Vec<&[u8]> = accepted.body_slices().collect();
    let body = match pieces.as_slice() {
        [whole] => Cow::Borrowed(*whole),
        pieces => Cow::Owned(pieces.concat()),
    };
    let (mut rest, last) = (&*body, accepted.batch.last());
    for position in accepted.batch.first..=last {
        let record = RecordView::length(rest).and_then(|len| rest.split_at_checked(len));
        let (record, behind) = record.ok_or(position)?;
        let record = RecordView::verify(record).map_err(|_| position)?;
        if record.position() != position {
            return Err(position);
        }
        rest = behind;
    }
    if rest.is_empty() { Ok(()) } else { Err(last + 1) }
}

/// Nothing breaks a copy permanently: failed operations are retried.
fn passes(error: JournalError) -> JournalError {
    match error {
        JournalError::Refused(error) | JournalError::Unknown(error) => JournalError::Retry(error),
        error => error,
    }
}

/// Whether the entry at a place is the last batch of a copy.
fn same_batch(place: Place, entry: &[u8], copy: &Origin) -> Result<(), String> {
    let expected = copy.place.0;
    if place != copy.place {
        return Err(format!("there is no entry at place {expected}, where the copy ends"));
    }
    match Entry::decode(entry) {
        Ok(Entry::Batch(part))
            if part.batch.chain() == copy.chain && part.batch.last() == copy.head =>
        {
            Ok(())
        }
        Ok(_) => Err(format!("the entry at place {expected} differs from the copy's")),
        Err(fault) => Err(format!("the entry at place {expected} is invalid: {fault}")),
    }
}
