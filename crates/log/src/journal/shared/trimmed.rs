//! An engine that drops entries once copies hold them: what it is told, and how a copy that lacks
//! dropped entries is completed.
//!
//! The engine keeps what a reader has to know in place of the entries, the state of the rule. The
//! batches among them come from the copies of other nodes; position and chain prove each, and the
//! state proves the last. Claims are not told again, so in between the rule accepts what has been
//! accepted, and knows the epoch in force only at the end. A copy whose last batch is older than
//! the last claim takes the state as well: with the epoch of that batch it would accept late
//! batches that are void for all others.

use super::{FETCH_BYTES, SharedJournal, Stage};
use crate::journal::{JournalBatch, JournalError, Settlement};
use crate::plants::{Plant, planted};
use crate::role::Role;
use crate::shared::rule::{EntryEffect, Rule, RuleState, VoidReason};
use crate::shared::{Fetched, LogStart, Place, PlacedEntry, Retention, SharedLogError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The engine is told this soon after an opening: whether the copy is complete matters to others.
const FIRST_WITHIN_US: u64 = 2_000_000;
/// Time between attempts to fetch.
const AGAIN_US: u64 = 200_000;

/// The completion of a copy.
#[derive(Debug)]
pub(super) struct Refill {
    /// Where it ends, and the state there.
    place: Place,
    state: RuleState,
    fetched: VecDeque<PlacedEntry>,
    /// When to fetch again.
    due_us: u64,
}

/// What the engine was told to be durable.
#[derive(Debug)]
pub(super) struct DurableCopy {
    unsynced_bytes: u64,
    within_us: u64,
    told: Place,
    due_us: u64,
    /// Whether a barrier has covered what the opening found.
    has_barrier: bool,
    /// A barrier has failed: what it should have covered is in doubt while this process lives.
    has_failed: bool,
}

impl DurableCopy {
    /// `None`: the engine keeps everything.
    pub(super) fn new(retention: Retention, now_us: u64) -> Option<DurableCopy> {
        let Retention::UntilCopied { unsynced_bytes, within } = retention else { return None };
        let within_us = within.as_micros() as u64;
        let due_us = now_us + within_us.min(FIRST_WITHIN_US);
        let (told, has_barrier, has_failed) = (Place(0), false, false);
        Some(DurableCopy { unsynced_bytes, within_us, told, due_us, has_barrier, has_failed })
    }
}

impl SharedJournal {
    /// The entries up to this start were dropped before they arrived here.
    pub(super) fn gap(&mut self, start: LogStart) {
        let LogStart { place, state } = start;
        let Some(state) = state else {
            let (reaches, kept) = (self.applied.0, place.0);
            return self.detach(format!(
                "the copy reaches place {reaches}, but the shared log keeps only entries after {kept}"
            ));
        };
        let Some(state) = RuleState::decode(&state) else {
            let reason = "the state with which the kept entries begin cannot be read: a newer \
                          program wrote it, which is to be run here";
            return self.detach(reason.to_owned());
        };
        self.anchor = None;
        if self.rule.cluster().is_none() {
            self.founded(state.cluster, state.log.clone());
        }
        if matches!(self.stage, Stage::Leading { .. } | Stage::Claiming { .. }) {
            self.step_down();
        }
        if self.stage == Stage::Detached {
            return;
        }
        self.stage = Stage::CatchingUp { end: None };
        self.own_ask = None;
        self.tell_role(Role::CatchingUp { place: self.applied, end: None }, Vec::new());
        self.refill = Some(Refill { place, state, fetched: VecDeque::new(), due_us: 0 });
    }

    /// Completes the copy by a batch, or fetches more.
    pub(super) fn refill(&mut self) -> Result<Settlement, JournalError> {
        let now_us = self.now_us();
        let refill = self.refill.as_mut().expect("there is a gap");
        if self.rule.head() >= refill.state.head {
            self.end_refill();
        } else if let Some((place, entry)) = refill.fetched.pop_front() {
            match self.rule.judge_accepted(entry) {
                Ok(EntryEffect::Accepted(accepted)) => {
                    self.seen = place;
                    let lost = self.offers_before(accepted.batch.epoch);
                    if !lost.is_empty() {
                        self.tell_role(Role::CatchingUp { place: self.applied, end: None }, lost);
                    }
                    self.accepted(accepted);
                }
                Ok(EntryEffect::Void(VoidReason::OtherPast | VoidReason::OldEpoch)) => {
                    let place = place.0;
                    self.detach(format!("the batch at place {place} follows another history"));
                }
                _ => {
                    // Damaged on the way, or from a copy that has a gap itself.
                    self.counters.void_entries.fetch_add(1, Ordering::Relaxed);
                    refill.fetched.clear();
                    refill.due_us = now_us + AGAIN_US;
                }
            }
        } else if now_us < refill.due_us {
            return Ok(Settlement::Nothing);
        } else {
            match self.engine.fetch(self.last_batch, FETCH_BYTES) {
                Ok(Fetched::Accepted(batches)) if !batches.is_empty() => {
                    refill.fetched = batches.into();
                }
                Err(SharedLogError::Unusable { reason }) => self.detach(reason),
                _ => refill.due_us = now_us + AGAIN_US,
            }
        }
        Ok(self.settled()?.unwrap_or(Settlement::Passed))
    }

    /// Batches offered in an epoch before this one, which is in force: those that have not arrived
    /// never count.
    fn offers_before(&mut self, epoch: u64) -> Vec<JournalBatch> {
        match self.offers.oldest() {
            Some(oldest) if oldest.id.epoch < epoch => self.offers.take_batches(),
            _ => Vec::new(),
        }
    }

    /// The copy has all batches before the kept entries: from here on it knows what they know.
    fn end_refill(&mut self) {
        let Some(Refill { place, state, .. }) = self.refill.take() else { return };
        let (head, chain) = (self.rule.head(), self.rule.chain());
        if (head, chain) != (state.head, state.chain) {
            let (place, theirs) = (place.0, state.head);
            return self.detach(format!(
                "the copy and the shared log have different histories: before place {place} the shared \
                 log ends at position {theirs}, the copy at {head}, and their checksums differ"
            ));
        }
        let lost = self.offers_before(state.epoch);
        if !planted(Plant::StateWithoutClaim) {
            self.rule = Rule::from_state(&state);
        }
        (self.seen, self.applied) = (place, place);
        if let Some(claimant) = state.leader {
            self.note_leader(claimant, self.now_us());
        }
        self.tell_role(Role::CatchingUp { place, end: None }, lost);
    }

    /// Whether there is something to tell the engine of. Until it has been compared, a copy may
    /// belong to something else; within a batch it has no state that can be told.
    fn has_state_to_tell(&self) -> bool {
        self.anchor.is_none()
            && self.refill.is_none()
            && self.arrived.is_none()
            && self.identity.is_some()
            && self.rule.cluster().is_some()
            && !self.rule.awaits_parts()
    }

    /// Makes the copy durable if that is due, and tells the engine.
    pub(super) fn tell_durable(&mut self, now_us: u64) {
        let has_state = self.has_state_to_tell();
        let durable = self.durable.as_mut().filter(|durable| has_state && !durable.has_failed);
        let Some(durable) = durable else { return };
        let unsynced = self.writer.unsynced_bytes();
        let is_due = now_us >= durable.due_us && durable.told != self.applied;
        if !is_due && unsynced < durable.unsynced_bytes {
            return;
        }
        let Some(state) = self.identity.as_ref().and_then(|id| self.rule.state(&id.log)) else {
            return;
        };
        durable.due_us = now_us + durable.within_us;
        if (unsynced > 0 || !durable.has_barrier) && !planted(Plant::TrimsEarly) {
            if self.writer.barrier().is_err() {
                durable.has_failed = true;
                return;
            }
            durable.has_barrier = true;
        }
        durable.told = self.applied;
        self.engine.durable(self.applied, Arc::from(state.encode()));
    }

    /// Before a segment ends: later barriers will not cover it.
    pub(super) fn end_segment_durably(&mut self) {
        if let Some(durable) = &mut self.durable
            && !planted(Plant::TrimsEarly)
            && self.writer.barrier().is_err()
        {
            durable.has_failed = true;
        }
    }

    /// Time until the copy is completed further or made durable.
    pub(super) fn trim_due_in_us(&self, now_us: u64) -> Option<u64> {
        let due_us = match (&self.refill, &self.durable) {
            _ if self.stage == Stage::Detached => return None,
            (Some(refill), _) => refill.due_us,
            // An arrival changes what keeps it from telling.
            (None, Some(durable))
                if durable.told != self.applied
                    && !durable.has_failed
                    && self.has_state_to_tell() =>
            {
                durable.due_us
            }
            _ => return None,
        };
        Some(due_us.saturating_sub(now_us))
    }
}
