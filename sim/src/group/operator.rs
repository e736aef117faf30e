//! What an operator does to the members of a group.

use super::Group;
use crate::dice::Dice;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Waker};
use wellspring_journal_raft::GroupReport;
use wellspring_journal_raft::by_hand::HandNode;

/// Entries that a learner may lack when it is made a voter.
const MOST_LAG: u64 = 3;

impl Group {
    /// Whether the group can lose the WAL of a member. A change of its voters that is under way may
    /// not be in any WAL yet, or in one that failed.
    pub(super) fn may_lose(&mut self, at: usize) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.changes.retain_mut(|change| Pin::new(change).poll(&mut context).is_pending());
        let have_stopped =
            (0..self.members.len()).any(|other| other != at && self.has_stopped(other));
        let is_sure = self.changes.is_empty() && !have_stopped;
        let may = is_sure && self.facts.may_lose(self.members[at].id, &self.lost);
        if may {
            self.wires.lose_all();
        }
        may
    }

    /// Where the group is ordered, as far as its members know.
    fn orderer(&self) -> Option<(usize, GroupReport)> {
        let orders = |(at, report): &(usize, GroupReport)| {
            report.orderer == Some(self.members[*at].id) && report.stopped.is_none()
        };
        self.reports().into_iter().filter(orders).max_by_key(|(_, report)| report.term)
    }

    /// The node that orders.
    #[must_use]
    pub fn orderer_at(&self) -> Option<usize> {
        self.orderer().map(|(at, _)| at)
    }

    fn node(&self, at: usize) -> &HandNode {
        &self.members[at].running.as_ref().expect("it reports").node
    }

    /// Ids of members as they are now.
    fn ids(&self) -> BTreeSet<u64> {
        self.members.iter().map(|member| member.id).collect()
    }

    /// Changes the members in some way; returns how.
    pub(super) fn change_members(&mut self, dice: &mut Dice) -> Option<String> {
        let (at, report) = self.orderer()?;
        let node = &self.members[at].running.as_ref()?.node;
        let id = self.members[dice.index(self.members.len())].id;
        let GroupReport { mut voters, learners, .. } = report;
        if !voters.contains(&id) && !learners.contains(&id) {
            self.changes.push(node.add_learner(id));
            return Some(format!("n{at} adds learner {id}"));
        }
        if learners.contains(&id) && dice.chance(200) {
            self.changes.push(node.remove(id));
            return Some(format!("n{at} removes learner {id}"));
        }
        let is_ready = |id: u64| {
            let reports = self.reports();
            let learner = self.number_of(id).and_then(|at| reports.get(&at));
            learner.is_some_and(|learner| learner.last.index + MOST_LAG >= report.last.index)
        };
        if voters.contains(&id) {
            voters.remove(&id);
            // Sometimes another one takes its place with the same change.
            let next = learners.iter().find(|id| is_ready(**id) && dice.chance(700));
            voters.extend(next);
        } else if is_ready(id) {
            voters.insert(id);
        }
        let voters: Vec<u64> = voters.difference(&self.lost).copied().collect();
        self.changes.push(node.change_voters(&voters));
        Some(format!("n{at} makes {voters:?} voters"))
    }

    /// Removes the nodes that are lost, ends a change that was left, and adds who is no member.
    pub(super) fn mend_members(&mut self) {
        let Some((at, report)) = self.orderer() else { return };
        let node = self.node(at);
        let GroupReport { voters, learners, .. } = report;
        let left: Vec<u64> = voters.difference(&self.lost).copied().collect();
        if left.len() < voters.len() || report.is_replacing_voters {
            drop(node.change_voters(&left));
        } else if let Some(lost) = learners.intersection(&self.lost).next() {
            drop(node.remove(*lost));
        } else {
            let all: BTreeSet<u64> = voters.union(&learners).copied().collect();
            if let Some(id) = self.ids().difference(&all).next() {
                drop(node.add_learner(*id));
            }
        }
    }

    /// Whether every node is a member, and nobody else.
    ///
    /// # Errors
    /// What is still missing.
    pub fn is_well(&self) -> Result<(), String> {
        let (_, report) = self.orderer().ok_or("the group is not ordered")?;
        let all: BTreeSet<u64> = report.voters.union(&report.learners).copied().collect();
        if all != self.ids() || report.is_replacing_voters {
            return Err(format!("the members are {report:?}"));
        }
        Ok(())
    }
}
