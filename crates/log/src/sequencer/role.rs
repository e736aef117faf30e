//! Role changes of an open log: this node takes the lead, or loses it. Readers, subscriptions and
//! views are unaffected.
//!
//! | the role becomes | what was only staged | batches offered and lost | batches offered, in doubt |
//! |---|---|---|---|
//! | leading | none | `NotLeading` | none: everything before the claim is settled |
//! | following, claiming | `NotLeading` | `NotLeading` | wait until they arrive or are overtaken |
//! | detached | `NotLeading` | `NotLeading` | `Unknown` |
//!
//! `NotLeading` is definite: none of the request is in the log, or ever will be.

use super::Sequencer;
use super::commit::{Answer, Committer};
use super::stage::not_leading;
use super::wakes::PlaceNews;
use crate::error::AppendError;
use crate::journal::JournalBatch;
use crate::plants::{Plant, planted};
use crate::role::Role;
use crate::shared::Place;
use crate::threads::lock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether a lead begins: always, except with planted bugs.
fn leads_anew(epoch: u64, last: &AtomicU64) -> bool {
    let is_planted = planted(Plant::ReusePosition) || planted(Plant::EagerLeader);
    !is_planted || last.load(Ordering::Relaxed) != epoch
}

impl Sequencer {
    /// Changes the role; returns the answers to send. `lost` are the batches, oldest of all offered
    /// ones, that will never be durable.
    pub(super) fn change_role(
        &self,
        committer: &mut Committer,
        role: Role,
        lost: Vec<JournalBatch>,
    ) -> Vec<Answer> {
        let mut staging = lock(&self.staging);
        let refused = not_leading(&role);
        let mut answers = Vec::new();
        for batch in &lost {
            let in_flight = staging.in_flight.pop_front().expect("a batch that was offered");
            assert_eq!(in_flight.first, batch.first, "batches are lost in order");
            answers.push(Answer { waiters: in_flight.waiters, verdict: Err(refused.clone()) });
        }
        if let Role::Detached { reason } = &role {
            let unknown = AppendError::Unknown { reason: reason.clone() };
            for in_flight in std::mem::take(&mut staging.in_flight) {
                let verdict = Err(unknown.clone());
                answers.push(Answer { waiters: in_flight.waiters, verdict });
            }
            let queue = std::mem::take(&mut staging.queue);
            staging.staged_bytes = 0;
            staging.ingest_bytes = 0;
            self.mark.set_back(staging.next);
            answers.extend(queue.into_iter().map(|gathering| Answer {
                waiters: gathering.waiters,
                verdict: Err(refused.clone()),
            }));
        } else if !lost.is_empty() || !staging.queue.is_empty() {
            answers.extend(self.take_back(committer, &mut staging, lost, &refused));
        }
        let woken = match &role {
            Role::Leading { epoch } if leads_anew(*epoch, &self.epoch) => {
                assert!(staging.queue.is_empty() && staging.in_flight.is_empty(), "nothing staged");
                assert_eq!(staging.next, self.feed.head() + 1, "everything before is applied");
                self.epoch.store(*epoch, Ordering::Release);
                self.leases.begin_epoch(*epoch)
            }
            Role::Leading { .. } => Vec::new(),
            _ => self.leases.suspend(),
        };
        assert!(staging.queue.is_empty(), "a change of role leaves nothing staged behind it");
        self.mark.set_leads(role.leads());
        let is_last = matches!(role, Role::Detached { .. });
        staging.role = role;
        drop(staging);
        self.role_changes.advance(self.role_changes.head() + 1);
        let mut owed = lock(&self.owed_wakes);
        owed.leases.extend(woken);
        // Waiters for a place check the role again; so do waiters that begin just now, if this is
        // the last role.
        let news = if is_last { PlaceNews::LastRole } else { PlaceNews::OtherRole };
        owed.places = owed.places.max(news);
        answers
    }

    /// This node's current role.
    pub(crate) fn role(&self) -> Role {
        match &lock(&self.staging).role {
            Role::CatchingUp { end, .. } => {
                Role::CatchingUp { place: Place(self.places.head()), end: *end }
            }
            role => role.clone(),
        }
    }
}
