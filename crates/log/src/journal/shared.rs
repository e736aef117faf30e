//! The journal of a log beyond one machine: the order of a [shared log](crate::shared) is the commit, and
//! the segments here are its first view.
//!
//! Nothing is written into a segment before the rule has accepted it, so a copy has no tail that others do
//! not have; and nothing is answered before it has arrived, so a leader knows no more than anybody.
//! No barrier is made on the way: what a power loss takes of a copy is fetched again, from the place after
//! the last batch that is left.

use super::confirmations::Confirmations;
use super::copy::CopyIdentity;
use super::offers::{Offers, Purpose};
use super::segment_writer::{Resume, SegmentWriter};
use super::{Journal, JournalBatch, JournalError, JournalLimits, Settled};
use crate::error::NotConfirmed;
use crate::options::{Clock, SharedOptions};
use crate::plants::{Plant, planted};
use crate::role::{Leader, Role};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentSource};
use crate::shared::entry::{BatchId, Claim, ClusterId, Entry, batch_entries};
use crate::shared::lead::{LeadAction, LeadState, LeadTimer};
use crate::shared::rule::{AcceptedBatch, Claimant, Rule, Verdict, VoidReason};
use crate::shared::{Arrival, AskId, Place, PlacedEntry, SharedLog, SharedLogError};
use crate::storage::{Storage, StorageFile};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;
use wellspring_types::Position;

/// Largest batch that requests go on joining, whatever the engine takes.
const BATCH_BYTES: usize = 8 << 20;
/// A batch is cut into parts by itself only if a single request is larger.
const SMALLEST_BATCH_BYTES: usize = 4 << 10;
/// What is fetched again at a time.
const FETCH_BYTES: usize = 4 << 20;
/// Time between attempts at writing whose copy this is.
const IDENTITY_AGAIN_US: u64 = 100_000;

/// Where a copy ends, and so where it goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    /// Place of the last batch in the segments; 0 if there is none.
    pub(crate) place: Place,
    /// Its epoch, last position and chain.
    pub(crate) epoch: u64,
    pub(crate) head: Position,
    pub(crate) chain: u32,
}

/// Figures about the shared log, since it was opened.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    /// Entries that had no effect.
    pub(crate) void_entries: AtomicU64,
    /// Entries that this node offered again.
    pub(crate) repeated_offers: AtomicU64,
    /// Batches of other nodes applied here.
    pub(crate) foreign_batches: AtomicU64,
    /// Set to have this node claim the lead now.
    pub(crate) claim_now: AtomicBool,
}

/// What the journal is at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// `end`: where the shared log ended when that was asked.
    CatchingUp {
        end: Option<Place>,
    },
    Following,
    Claiming {
        epoch: u64,
    },
    Leading {
        epoch: u64,
    },
    Detached,
}

/// A batch that has arrived and is not in the segments yet.
#[derive(Debug)]
enum Arrived {
    Own(JournalBatch, BatchId),
    Foreign(Arc<AcceptedBatch>),
}

/// See the module.
pub(crate) struct SharedJournal {
    engine: Box<dyn SharedLog>,
    writer: SegmentWriter,
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    options: SharedOptions,
    entry_bytes: usize,
    identity: Option<CopyIdentity>,
    /// When to try again to write it, if it could not be written.
    identity_due_us: Option<u64>,
    rule: Rule,
    lead: LeadTimer,
    stage: Stage,
    /// The last entry that arrived stands here.
    seen: Place,
    /// Everything up to here is in the segments.
    applied: Place,
    /// Place of the last batch in the segments.
    last_batch: Place,
    /// The last batch of the copy, which the entry at its place must be: else there are two pasts.
    anchor: Option<Origin>,
    offers: Offers,
    /// The epoch in which an earlier process of this node led, if that was in force when it was opened.
    former_epoch: Option<u64>,
    /// The chain after the last batch that was offered.
    offered_chain: u32,
    arrived: Option<Arrived>,
    /// To be told, oldest first.
    told: VecDeque<Settled>,
    confirmations: Arc<Confirmations>,
    counters: Arc<SharedCounters>,
    next_ask: u64,
    /// The question that this journal asks for itself while it catches up.
    own_ask: Option<AskId>,
    asked_at_us: u64,
}

impl SharedJournal {
    /// A journal that goes on where a copy ends. Appends are refused until it leads.
    pub(crate) fn new(
        mut engine: Box<dyn SharedLog>,
        writer: SegmentWriter,
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        options: SharedOptions,
        (identity, origin): (Option<CopyIdentity>, Origin),
    ) -> SharedJournal {
        let limits = engine.limits();
        let lead_timeout = options.lead_timeout.max(limits.lead_timeout_min);
        let lead_timeout_us = lead_timeout.as_micros() as u64;
        let now_us = clock.monotonic_us();
        let cluster = identity.as_ref().map(|identity| identity.cluster);
        let leader = identity.as_ref().and_then(|identity| identity.leader.clone());
        // A copy without a batch reads the founding again, to see that it is the same one.
        let rule = match origin.place {
            Place(0) => Rule::default(),
            _ => Rule::at(origin.epoch, origin.head, origin.chain, cluster).led_by(leader),
        };
        // An engine that cannot be reached now is asked by and by.
        let first_kept = engine.first_kept().unwrap_or_default();
        let is_kept = first_kept < origin.place;
        let anchor = is_kept.then_some(origin);
        // The entry of the last batch comes once more, to be compared.
        let after = if is_kept { Place(origin.place.0 - 1) } else { origin.place };
        let late = u64::from(planted(Plant::ResumesLate) && origin.place > Place(0));
        engine.follow(Place(after.0 + late));
        let mut journal = SharedJournal {
            writer,
            storage,
            clock,
            entry_bytes: limits.entry_bytes,
            identity,
            identity_due_us: None,
            rule,
            lead: LeadTimer::new(lead_timeout_us, options.start, now_us),
            options,
            stage: Stage::CatchingUp { end: None },
            seen: after,
            applied: origin.place,
            last_batch: origin.place,
            anchor,
            offers: Offers::new(limits.window, (lead_timeout_us / 2).max(1)),
            former_epoch: None,
            offered_chain: origin.chain,
            arrived: None,
            told: VecDeque::new(),
            confirmations: Arc::default(),
            counters: Arc::default(),
            next_ask: 1,
            own_ask: None,
            asked_at_us: 0,
            engine,
        };
        if first_kept > origin.place {
            let (reaches, kept) = (origin.place.0, first_kept.0);
            journal.detach(format!(
                "the copy reaches to place {reaches}, but the shared log keeps only what stands after {kept}"
            ));
        }
        journal
    }

    pub(crate) fn confirmations(&self) -> Arc<Confirmations> {
        Arc::clone(&self.confirmations)
    }

    pub(crate) fn counters(&self) -> Arc<SharedCounters> {
        Arc::clone(&self.counters)
    }

    fn now_us(&self) -> u64 {
        self.clock.monotonic_us()
    }

    fn tell_role(&mut self, role: Role, lost: Vec<JournalBatch>) {
        self.told.push_back(Settled::Role { role, lost });
    }

    /// The copy and the shared log do not belong together any more.
    fn detach(&mut self, reason: String) {
        if self.stage == Stage::Detached {
            return;
        }
        self.stage = Stage::Detached;
        self.offers.stop();
        self.confirmations.end(&NotConfirmed::Detached { reason: reason.clone() });
        self.tell_role(Role::Detached { reason }, Vec::new());
    }

    /// Does what time asks for: questions, claims, beats, stepping down, offers.
    fn attend(&mut self) {
        let now_us = self.now_us();
        if self.identity_due_us.is_some_and(|due_us| now_us >= due_us) {
            self.write_identity(now_us);
        }
        self.ask(now_us);
        match self.stage {
            Stage::Detached => return,
            Stage::CatchingUp { end: Some(end) } if self.seen >= end => self.caught_up(),
            Stage::CatchingUp { .. } => {}
            Stage::Following | Stage::Claiming { .. } | Stage::Leading { .. } => {
                self.attend_lead(now_us);
            }
        }
        if planted(Plant::ReusePosition)
            && let Stage::Leading { epoch } = self.stage
            && self.offers.is_in_doubt()
        {
            let lost = self.offers.take_batches();
            self.offered_chain = self.rule.chain();
            self.tell_role(Role::Leading { epoch }, lost);
        }
        self.offers.send(&mut *self.engine, self.seen, now_us);
        self.counters.repeated_offers.store(self.offers.repeated(), Ordering::Relaxed);
    }

    fn lead_state(&self) -> LeadState {
        match &self.stage {
            Stage::Claiming { .. } => LeadState::Claiming,
            Stage::Leading { .. } => LeadState::Leading,
            _ if self.former_epoch == Some(self.rule.epoch()) => LeadState::FollowingFormerSelf,
            _ => LeadState::Following,
        }
    }

    fn attend_lead(&mut self, now_us: u64) {
        let state = self.lead_state();
        let asked_to = self.counters.claim_now.swap(false, Ordering::Relaxed);
        let action = match state {
            LeadState::Following if asked_to => LeadAction::Claim,
            _ => self.lead.due(now_us, state, self.engine.engine_leader()),
        };
        match action {
            LeadAction::Wait { .. } => {}
            LeadAction::Claim => {
                let epoch = self.rule.epoch() + 1;
                self.stage = Stage::Claiming { epoch };
                self.offer_claim(epoch, now_us);
                self.tell_role(Role::Claiming { epoch }, Vec::new());
                if planted(Plant::EagerLeader) {
                    let lost = self.offers.take_batches();
                    self.offer_claim(epoch, now_us);
                    self.stage = Stage::Leading { epoch };
                    self.offered_chain = self.rule.chain();
                    self.lead.began_to_lead(now_us);
                    self.tell_role(Role::Leading { epoch }, lost);
                }
            }
            LeadAction::ClaimAgain => {
                if let Stage::Claiming { epoch } = self.stage {
                    self.offer_claim(epoch, now_us);
                }
            }
            LeadAction::Beat => {
                let beat = Entry::Beat(self.own_claim(self.rule.epoch()));
                let beat = beat.encode().into();
                self.offers.push(Purpose::Beat, beat);
                self.lead.offered(now_us);
            }
            LeadAction::StepDown => {
                self.stage = Stage::Following;
                self.offers.stop();
                self.lead.follows(now_us);
                let refused = match planted(Plant::HastyRefusal) {
                    true => self.offers.take_batches(),
                    false => Vec::new(),
                };
                self.tell_role(Role::Following { leader: None }, refused);
            }
        }
    }

    fn offer_claim(&mut self, epoch: u64, now_us: u64) {
        if !self.offers.is_pending(Purpose::Claim) {
            let claim = Entry::Claim(self.own_claim(epoch)).encode().into();
            self.offers.push(Purpose::Claim, claim);
        }
        self.lead.claimed(now_us);
    }

    fn own_claim(&self, epoch: u64) -> Claim<'_> {
        let SharedOptions { node, url, start, .. } = &self.options;
        Claim { epoch, node, start: *start, url }
    }

    /// Asks for the end: for itself while it catches up, else for those that want it confirmed. A
    /// question that gets no answer is asked again.
    fn ask(&mut self, now_us: u64) {
        let patience_us = (self.options.lead_timeout.as_micros() as u64 / 2).max(1);
        let silent = now_us.saturating_sub(self.asked_at_us) >= patience_us;
        if matches!(self.stage, Stage::CatchingUp { end: None })
            && (self.own_ask.is_none() || silent)
        {
            self.own_ask = Some(self.new_ask(now_us));
        }
        if self.confirmations.wants_question() || (silent && self.confirmations.asked().is_some()) {
            let id = self.new_ask(now_us);
            self.confirmations.ask(id);
        }
    }

    fn new_ask(&mut self, now_us: u64) -> AskId {
        let id = AskId(self.next_ask);
        self.next_ask += 1;
        self.asked_at_us = now_us;
        self.engine.ask_end(id);
        id
    }

    fn answered(&mut self, id: AskId, end: Option<Place>) {
        let Some(end) = end else {
            // Asked again when it has been silent for long enough.
            return;
        };
        if self.own_ask == Some(id) {
            self.own_ask = None;
            if let Some(anchor) = self.anchor.filter(|anchor| end < anchor.place) {
                self.detach(format!(
                    "the copy reaches to place {}, but the shared log ends at {}",
                    anchor.place.0, end.0
                ));
            } else if matches!(self.stage, Stage::CatchingUp { .. }) {
                self.stage = Stage::CatchingUp { end: Some(end) };
                let place = self.applied;
                self.tell_role(Role::CatchingUp { place, end: Some(end) }, Vec::new());
            }
        } else {
            self.confirmations.answer(id, end);
        }
    }

    /// Everything is here that the shared log held when it was opened.
    fn caught_up(&mut self) {
        if self.rule.cluster().is_some() {
            self.stage = Stage::Following;
            // Only what was found here: a later claim in this node's name is that of another process that
            // lives, and the two would claim in turns for ever.
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

    /// An entry has arrived.
    fn entry(&mut self, place: Place, entry: Arc<[u8]>) {
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
            Err(fault) => return self.detach(format!("the entry at place {}: {fault}", place.0)),
        };
        self.seen = place;
        self.offers.arrived(place);
        let now_us = self.now_us();
        match verdict {
            Verdict::Founded { cluster, log } => self.founded(cluster, log),
            Verdict::Led(claimant) => self.led(&claimant, now_us),
            Verdict::Alive => {
                self.alive(now_us);
                if !knew_leader {
                    self.met_leader(now_us);
                }
            }
            Verdict::Part => self.alive(now_us),
            Verdict::Accepted(accepted) => {
                self.alive(now_us);
                self.accepted(accepted);
                return;
            }
            Verdict::Probe(_) => {}
            Verdict::Void(reason) => self.void(&entry, reason, place),
        }
        self.applied = place;
    }

    fn alive(&mut self, now_us: u64) {
        match self.stage {
            Stage::Leading { .. } => self.lead.delivered(now_us),
            _ => self.lead.leader_lives(now_us),
        }
    }

    /// A beat has told who leads, to a copy that goes on behind the claim.
    fn met_leader(&mut self, now_us: u64) {
        let Some(claimant) = self.rule.leader().cloned() else { return };
        if self.stage == Stage::Following {
            self.tell_role(Role::Following { leader: Some(leader_of(&claimant)) }, Vec::new());
        }
        self.note_leader(claimant, now_us);
    }

    fn note_leader(&mut self, claimant: Claimant, now_us: u64) {
        if let Some(identity) = &mut self.identity {
            identity.leader = Some(claimant);
            // A hint: without it a restart waits for the leader to be silent, or to show itself.
            self.write_identity(now_us);
        }
    }

    fn founded(&mut self, cluster: ClusterId, log: String) {
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
        self.identity = Some(identity);
        self.write_identity(self.now_us());
        self.offers.stop();
    }

    /// Writes whose copy this is and who leads; tries again by and by if that is not possible, on a full disk for
    /// example. A copy that is opened without the file asks the shared log for it.
    fn write_identity(&mut self, now_us: u64) {
        let written =
            self.identity.as_ref().map_or(Ok(()), |identity| identity.write(&*self.storage));
        self.identity_due_us = written.is_err().then_some(now_us + IDENTITY_AGAIN_US);
    }

    /// A claim took effect. What was offered before and has not arrived never will count.
    fn led(&mut self, claimant: &Claimant, now_us: u64) {
        if planted(Plant::KeepsLead) && matches!(self.stage, Stage::Leading { .. }) {
            return;
        }
        let lost = self.offers.take_batches();
        let is_mine = claimant.node == self.options.node && claimant.start == self.options.start;
        self.note_leader(claimant.clone(), now_us);
        // While it catches up, this node reads what was; even a claim of its own is another life's.
        if let Stage::CatchingUp { .. } = self.stage {
            return;
        }
        if is_mine {
            let epoch = claimant.epoch;
            self.stage = Stage::Leading { epoch };
            self.offered_chain = self.rule.chain();
            self.lead.began_to_lead(now_us);
            self.tell_role(Role::Leading { epoch }, lost);
        } else {
            self.stage = Stage::Following;
            self.lead.leader_lives(now_us);
            self.tell_role(Role::Following { leader: Some(leader_of(claimant)) }, lost);
        }
    }

    fn accepted(&mut self, accepted: AcceptedBatch) {
        let id = accepted.batch;
        let own = self.offers.oldest().is_some_and(|oldest| oldest.id == id);
        self.arrived = Some(match own.then(|| self.offers.pop_oldest()).flatten() {
            Some(under_way) => Arrived::Own(under_way.batch, id),
            None => {
                self.counters.foreign_batches.fetch_add(1, Ordering::Relaxed);
                Arrived::Foreign(Arc::new(accepted))
            }
        });
    }

    fn void(&mut self, entry: &[u8], reason: VoidReason, place: Place) {
        self.counters.void_entries.fetch_add(1, Ordering::Relaxed);
        if reason == VoidReason::OtherPast {
            // Only the leader in force makes such a batch, and it does not follow what is here.
            let place = place.0;
            return self.detach(format!("the batch at place {place} follows another past"));
        }
        // A part that arrives once more has lost nothing: to offer its batch from the beginning would repeat it again.
        if reason != VoidReason::Repeated
            && let Ok(Entry::Batch(part)) = Entry::decode(entry)
            && part.batch.epoch == self.rule.epoch()
            && part.batch.first > self.rule.head()
        {
            self.offers.void(part.batch.first);
        }
    }

    /// Writes a batch that has arrived into its segment.
    fn write(&mut self, batch: &mut JournalBatch, id: &BatchId) -> Result<(), JournalError> {
        if batch.segment_base != self.writer.base() {
            let source = SegmentSource { after: self.last_batch, chain: id.previous };
            self.writer
                .begin_segment(batch.segment_base, id.epoch, Some(source))
                .map_err(passes)?;
        }
        self.writer.reserve(batch)?;
        self.writer.write(batch, id.epoch, self.seen).map_err(JournalError::Retry)?;
        self.writer.prepare_ahead();
        self.applied = self.seen;
        self.last_batch = self.seen;
        Ok(())
    }

    /// What is to be told next. A role that was told of before a batch arrived comes before it, and nothing
    /// arrives while a batch waits to be written.
    fn settled(&mut self) -> Result<Option<Settled>, JournalError> {
        if let Some(told) = self.told.pop_front() {
            return Ok(Some(told));
        }
        match self.arrived.take() {
            None => Ok(None),
            Some(Arrived::Own(mut batch, id)) => match self.write(&mut batch, &id) {
                Ok(()) => Ok(Some(Settled::Durable(batch))),
                Err(error) => {
                    self.arrived = Some(Arrived::Own(batch, id));
                    Err(error)
                }
            },
            Some(Arrived::Foreign(accepted)) => {
                self.arrived = Some(Arrived::Foreign(Arc::clone(&accepted)));
                Ok(Some(Settled::Foreign(accepted)))
            }
        }
    }

    /// How long until time asks for something.
    fn next_due_us(&mut self, now_us: u64) -> u64 {
        let lead = match self.stage {
            Stage::Following | Stage::Claiming { .. } | Stage::Leading { .. } => {
                let (state, engine) = (self.lead_state(), self.engine.engine_leader());
                match self.lead.due(now_us, state, engine) {
                    LeadAction::Wait { due_in_us } => due_in_us,
                    _ => 0,
                }
            }
            Stage::CatchingUp { .. } => self.options.lead_timeout.as_micros() as u64 / 2,
            Stage::Detached => u64::MAX,
        };
        self.offers.due_in_us(now_us).map_or(lead, |offers| offers.min(lead))
    }
}

fn leader_of(claimant: &Claimant) -> Leader {
    let Claimant { node, url, epoch, .. } = claimant;
    Leader { node: node.clone(), url: url.clone(), epoch: *epoch }
}

/// Nothing breaks a copy for good: what failed is tried again.
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
        return Err(format!("nothing stands at place {expected}, to which the copy reaches"));
    }
    match Entry::decode(entry) {
        Ok(Entry::Batch(part))
            if part.batch.chain() == copy.chain && part.batch.last() == copy.head =>
        {
            Ok(())
        }
        Ok(_) => Err(format!("another entry stands at place {expected} than the copy has")),
        Err(fault) => Err(format!("the entry at place {expected}: {fault}")),
    }
}

impl Journal for SharedJournal {
    fn limits(&self) -> JournalLimits {
        let body_bytes = self.entry_bytes.saturating_sub(crate::shared::entry::ENTRY_HEADER_BYTES);
        JournalLimits {
            batch_bytes: body_bytes.clamp(SMALLEST_BATCH_BYTES, BATCH_BYTES),
            settles_at_once: false,
            close_patience: self.options.lead_timeout,
        }
    }

    fn takes_another(&self) -> bool {
        matches!(self.stage, Stage::Leading { .. })
            && self.told.is_empty()
            && self.arrived.is_none()
            && self.offers.has_room()
    }

    fn offer(&mut self, batch: JournalBatch) -> Result<(), (JournalBatch, JournalError)> {
        // Room first: what is sent off cannot be refused any more.
        if let Err(error) = self.writer.reserve(&batch) {
            return Err((batch, error));
        }
        let id = BatchId {
            epoch: match self.stage {
                Stage::Leading { epoch } if planted(Plant::EagerLeader) => epoch,
                _ => self.rule.epoch(),
            },
            first: batch.first,
            count: batch.count,
            recorded_at_us: batch.recorded_at_us,
            begins_segment: batch.offset as usize == SEGMENT_HEADER_BYTES,
            body_bytes: batch.body_bytes() as u32,
            body_crc: crc32c::crc32c(batch.body()),
            previous: self.offered_chain,
        };
        self.offered_chain = id.chain();
        let entries = batch_entries(&id, batch.body(), self.entry_bytes);
        self.offers.push_batch(batch, id, entries);
        let now_us = self.now_us();
        self.lead.offered(now_us);
        self.offers.send(&mut *self.engine, self.seen, now_us);
        Ok(())
    }

    fn next(&mut self, waker: &Waker) -> Result<Settled, JournalError> {
        match self.settled() {
            Ok(None) => self.attend(),
            Ok(Some(settled)) => return Ok(settled),
            Err(error) => {
                // A leader that cannot write what it led to steps down like one that is not heard.
                self.attend();
                return self.told.pop_front().ok_or(error);
            }
        }
        if let Some(settled) = self.told.pop_front() {
            return Ok(settled);
        }
        if self.stage == Stage::Detached {
            return Ok(Settled::Nothing);
        }
        let now_us = self.now_us();
        match self.engine.next(waker) {
            Ok(Arrival::Entry { place, entry }) => self.entry(place, entry),
            Ok(Arrival::Offer { id, outcome }) => {
                self.offers.outcome(id, outcome, self.seen, now_us);
            }
            Ok(Arrival::End { id, end }) => self.answered(id, end),
            Ok(Arrival::Nothing) => return Ok(Settled::Nothing),
            Err(SharedLogError::Unavailable { .. }) => {
                self.lead.cut_off(now_us);
                return Ok(Settled::Nothing);
            }
            Err(SharedLogError::Unusable { reason }) => self.detach(reason),
        }
        Ok(self.settled()?.unwrap_or(Settled::Passed))
    }

    fn keep(&mut self, batch: &mut JournalBatch) -> Result<(), JournalError> {
        let Some(Arrived::Foreign(accepted)) = self.arrived.take() else {
            unreachable!("a batch is kept that was told");
        };
        let written = self.write(batch, &accepted.batch);
        if written.is_err() {
            self.arrived = Some(Arrived::Foreign(accepted));
        }
        written
    }

    fn end(&self) -> (Position, u64) {
        self.writer.end()
    }

    fn place(&self) -> Place {
        self.applied
    }

    fn has_room(&mut self, bytes: u64) -> bool {
        self.writer.has_room(bytes)
    }

    fn sync(&mut self) -> Result<(), io::Error> {
        if self.writer.unsynced() {
            self.writer.barrier()?;
        }
        Ok(())
    }

    fn unsynced(&self) -> bool {
        // Nobody waits for a barrier of a copy.
        false
    }

    fn fetch(&mut self, after: Place) -> Result<Vec<PlacedEntry>, SharedLogError> {
        self.engine.fetch(after, FETCH_BYTES)
    }

    fn replace_active(&mut self, file: Arc<dyn StorageFile>, at: Resume) {
        self.writer.replace_active(file, at);
    }

    fn due_in(&mut self) -> Option<Duration> {
        let now_us = self.now_us();
        let due_us = self.next_due_us(now_us);
        (due_us != u64::MAX).then(|| Duration::from_micros(due_us))
    }
}
