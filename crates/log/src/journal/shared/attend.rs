//! Time-driven tasks of a shared journal: questions, claims, heartbeats, stepping down, offers.

use super::arrivals::leader_of;
use super::offers::Purpose;
use super::{LeadOrder, SharedJournal, Stage};
use crate::error::NotConfirmed;
use crate::journal::{JournalBatch, Settlement};
use crate::plants::{Plant, planted};
use crate::role::Role;
use crate::shared::entry::{Claim, Entry};
use crate::shared::lead::{LeadAction, LeadState};
use crate::shared::rule::{Claimant, EPOCH_LIMIT};
use crate::shared::{AskId, Place, SharedOptions};
use std::sync::atomic::Ordering;

impl SharedJournal {
    pub(super) fn tell_role(&mut self, role: Role, lost: Vec<JournalBatch>) {
        self.told.push_back(Settlement::Role { role, lost });
    }

    /// The copy and the shared log no longer belong together.
    pub(super) fn detach(&mut self, reason: String) {
        if self.stage == Stage::Detached {
            return;
        }
        self.stage = Stage::Detached;
        self.offers.stop();
        self.confirmations.end(&NotConfirmed::Detached { reason: reason.clone() });
        self.tell_role(Role::Detached { reason }, Vec::new());
    }

    /// Performs the tasks that are due: questions, claims, heartbeats, stepping down, offers.
    pub(super) fn attend(&mut self) {
        let now_us = self.now_us();
        let is_lost = self.counters.is_identity_lost.swap(false, Ordering::Relaxed);
        if is_lost || self.identity_due_us.is_some_and(|due_us| now_us >= due_us) {
            self.write_identity(now_us);
        }
        self.ask(now_us);
        match self.stage {
            Stage::Detached => return,
            Stage::CatchingUp { end: Some(end) } if self.refill.is_none() && self.seen >= end => {
                self.caught_up();
            }
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
        self.tell_durable(now_us);
        self.offers.send(&mut *self.engine, self.seen, now_us);
        self.counters.repeated_offers.store(self.offers.repeated(), Ordering::Relaxed);
        self.counters.lead_timeout_us.store(self.lead.timeout_us(), Ordering::Relaxed);
    }

    pub(super) fn lead_state(&self) -> LeadState {
        match &self.stage {
            Stage::Claiming { .. } => LeadState::Claiming,
            Stage::Leading { .. } => LeadState::Leading {
                awaits_since_us: self.offers.oldest().map(|oldest| oldest.since_us),
            },
            _ if self.former_epoch == Some(self.rule.epoch()) => LeadState::FollowingFormerSelf,
            _ => LeadState::Following,
        }
    }

    pub(super) fn attend_lead(&mut self, now_us: u64) {
        if self.is_cut_off {
            // Timeouts do not expire before the engine has been asked again.
            self.lead.cut_off(now_us);
        }
        let state = self.lead_state();
        let told = self.counters.told.take(state);
        let action = match (told, state) {
            (Some(LeadOrder::Claim), LeadState::Following | LeadState::FollowingFormerSelf) => {
                self.lead.told_to_claim();
                LeadAction::Claim
            }
            (Some(LeadOrder::Resign), LeadState::Claiming | LeadState::Leading { .. }) => {
                self.step_down();
                return self.lead.resigned(now_us);
            }
            _ => self.lead.due(now_us, state, self.engine.engine_leader()),
        };
        match action {
            LeadAction::Wait { .. } => {}
            LeadAction::Claim => {
                let epoch = self.rule.epoch() + 1;
                if epoch >= EPOCH_LIMIT {
                    // It would be permanently void for every node.
                    return self.detach(format!(
                        "all epochs below {EPOCH_LIMIT} are used up: recreate the log from a backup"
                    ));
                }
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
                // Over a slow engine, beats would queue up before the batches.
                if !self.offers.has_way() {
                    return self.lead.beat_waits(now_us);
                }
                let beat = Entry::Beat(self.own_claim(self.rule.epoch()));
                let beat = beat.encode().into();
                self.offers.push(Purpose::Beat, beat);
                self.lead.offered(now_us);
            }
            LeadAction::StepDown => {
                self.step_down();
                self.lead.follows(now_us);
            }
        }
    }

    /// Gives up the lead or the claim. Offered batches stay in doubt until they arrive or another
    /// node leads.
    pub(super) fn step_down(&mut self) {
        self.stage = Stage::Following;
        self.offers.stop();
        let refused =
            if planted(Plant::HastyRefusal) { self.offers.take_batches() } else { Vec::new() };
        // The node whose claim is in force continues to lead, unless it was this process.
        let leader = self.rule.leader().filter(|leader| !self.is_me(leader)).map(leader_of);
        self.tell_role(Role::Following { leader }, refused);
    }

    /// Whether a claim comes from this process.
    pub(super) fn is_me(&self, claimant: &Claimant) -> bool {
        claimant.node == self.options.node && claimant.start == self.options.start
    }

    pub(super) fn offer_claim(&mut self, epoch: u64, now_us: u64) {
        if !self.offers.is_pending(Purpose::Claim) {
            let claim = Entry::Claim(self.own_claim(epoch)).encode().into();
            self.offers.push(Purpose::Claim, claim);
        }
        self.lead.claimed(now_us);
    }

    pub(super) fn own_claim(&self, epoch: u64) -> Claim<'_> {
        let SharedOptions { node, url, start, .. } = &self.options;
        Claim { epoch, node, start: *start, url }
    }

    /// Asks for the end: for itself while it catches up, otherwise for those that want it
    /// confirmed. A question without an answer is asked again; an answer to the first one counts
    /// nevertheless, because an engine may never answer sooner.
    pub(super) fn ask(&mut self, now_us: u64) {
        let patience_us = (self.lead.timeout_us() / 2).max(1);
        // Each has its own timer: questions of others must not delay this node's.
        let silent = |asked_at_us: u64| now_us.saturating_sub(asked_at_us) >= patience_us;
        if matches!(self.stage, Stage::CatchingUp { end: None })
            && self.own_ask.is_none_or(|(_, asked_at_us)| silent(asked_at_us))
        {
            let id = self.new_ask_id();
            self.engine.ask_end(id);
            let first = self.own_ask.map_or(id, |(first, _)| first);
            self.own_ask = Some((first, now_us));
        }
        if self.confirmations.wants_question()
            || (silent(self.asked_at_us) && self.confirmations.waits())
        {
            let id = self.new_ask_id();
            self.asked_at_us = now_us;
            // The round ends before the engine is asked: the answer covers no later request.
            self.confirmations.ask(id);
            self.engine.ask_end(id);
        }
    }

    fn new_ask_id(&mut self) -> AskId {
        let id = AskId(self.next_ask);
        self.next_ask += 1;
        id
    }

    pub(super) fn answered(&mut self, id: AskId, end: Option<Place>) {
        let Some(end) = end else {
            // Asked again after the timeout.
            return;
        };
        if self.own_ask.is_some_and(|(first, _)| first <= id) {
            self.own_ask = None;
            if let Some(anchor) = self.anchor.filter(|anchor| end < anchor.place) {
                self.detach(format!(
                    "the copy reaches place {}, but the shared log ends at {}",
                    anchor.place.0, end.0
                ));
            } else if matches!(self.stage, Stage::CatchingUp { .. }) {
                self.stage = Stage::CatchingUp { end: Some(end) };
                let place = self.applied;
                self.tell_role(Role::CatchingUp { place, end: Some(end) }, Vec::new());
            }
        }
        self.confirmations.answer(id, end);
    }

    /// Time until the next task is due.
    pub(super) fn next_due_us(&mut self, now_us: u64) -> u64 {
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
        let others = [self.offers.due_in_us(now_us), self.trim_due_in_us(now_us)];
        others.into_iter().flatten().fold(lead, u64::min)
    }
}
