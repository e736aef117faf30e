//! When a node stands for election. Pure: time and messages are passed in.
//!
//! The library would stand after a silence whose length it draws once a process, so that two
//! survivors may get in each other's way for ever. Here patience is drawn anew for each silence.
//! And before a node stands it asks the others whether they hear an orderer and whether its log is
//! as long as theirs (a pre-vote), so a node that returns from a partition causes no election.

use crate::members::Members;
use crate::wal::EntryId;
use std::collections::BTreeSet;
use std::time::Duration;

/// The elector of one node.
#[derive(Debug)]
pub(crate) struct Elector {
    /// Least patience with a silent orderer; at most twice that.
    patience: Duration,
    /// State of the generator.
    coins: u64,
    /// When an orderer was heard last, µs.
    heard_us: Option<u64>,
    /// When patience ends, µs.
    deadline_us: u64,
    /// The pre-vote under way.
    asked: Option<PreVote>,
}

#[derive(Debug)]
struct PreVote {
    round: u64,
    in_favour: BTreeSet<u64>,
}

/// What a node does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing before this time, µs.
    WaitUntil(u64),
    /// It asks the other voters whether they would elect it.
    Ask { round: u64 },
    /// It stands.
    Stand,
}

impl Elector {
    /// An elector of a node that has not heard an orderer yet. Different seeds make it unlikely
    /// that two nodes stand at the same time.
    pub(crate) fn new(patience: Duration, seed: u64, now_us: u64) -> Elector {
        let mut elector =
            Elector { patience, coins: seed | 1, heard_us: None, deadline_us: 0, asked: None };
        elector.draw(now_us);
        elector
    }

    /// A length of patience from now on.
    fn draw(&mut self, now_us: u64) {
        // Xorshift: nothing depends on its quality.
        self.coins ^= self.coins << 13;
        self.coins ^= self.coins >> 7;
        self.coins ^= self.coins << 17;
        let least_us = self.patience.as_micros() as u64;
        self.deadline_us = now_us + least_us + self.coins % least_us.max(1);
        self.asked = None;
    }

    /// An orderer, or this node as one, was heard.
    pub(crate) fn hears(&mut self, now_us: u64) {
        self.heard_us = Some(now_us);
        self.draw(now_us);
    }

    /// The next step of a node that does not order.
    pub(crate) fn step(&mut self, now_us: u64, node: u64, members: &Members) -> Step {
        if !members.votes(node) {
            return Step::WaitUntil(now_us + self.patience.as_micros() as u64);
        }
        if let Some(asked) = &self.asked
            && members.is_majority(|id| id == node || asked.in_favour.contains(&id))
        {
            self.draw(now_us);
            return Step::Stand;
        }
        if now_us < self.deadline_us {
            return Step::WaitUntil(self.deadline_us);
        }
        self.draw(now_us);
        let round = self.coins;
        self.asked = Some(PreVote { round, in_favour: BTreeSet::new() });
        // A node alone has a majority: it stands with the next step.
        Step::Ask { round }
    }

    /// A voter's answer to a round.
    pub(crate) fn answered(&mut self, round: u64, voter: u64, is_in_favour: bool) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.round == round)
            && is_in_favour
        {
            asked.in_favour.insert(voter);
        }
    }

    /// Whether this node would elect one whose last entry is `theirs`.
    pub(crate) fn would_elect(&self, now_us: u64, theirs: EntryId, own: EntryId) -> bool {
        let patience_us = self.patience.as_micros() as u64;
        let hears = self.heard_us.is_some_and(|heard_us| now_us < heard_us + patience_us);
        !hears && (theirs.term, theirs.index) >= (own.term, own.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn id(term: u64, index: u64) -> EntryId {
        EntryId { term, index }
    }

    fn of(voters: &[u64]) -> Members {
        let voters = vec![voters.iter().copied().collect()];
        Members { voters, learners: BTreeSet::from([9]), ..Members::default() }
    }

    #[test]
    fn a_node_stands_after_a_silence_and_with_a_majority_in_favour() {
        let voters = of(&[1, 2, 3]);
        let mut elector = Elector::new(PATIENCE, 5, 0);
        let Step::WaitUntil(due) = elector.step(0, 1, &voters) else { panic!("patience first") };
        assert!((100_000..200_000).contains(&due));
        elector.hears(90_000);
        let Step::WaitUntil(later) = elector.step(due, 1, &voters) else { panic!("heard") };
        assert!(later > due);
        let Step::Ask { round } = elector.step(later, 1, &voters) else { panic!("silence") };
        assert!(matches!(elector.step(later, 1, &voters), Step::WaitUntil(_)));
        elector.answered(round, 2, false);
        elector.answered(round + 1, 3, true);
        elector.answered(round, 9, true);
        assert!(matches!(elector.step(later, 1, &voters), Step::WaitUntil(_)), "no majority");
        elector.answered(round, 3, true);
        assert_eq!(elector.step(later, 1, &voters), Step::Stand);
        assert!(matches!(elector.step(later, 1, &voters), Step::WaitUntil(_)), "once");
    }

    #[test]
    fn one_alone_stands_and_who_has_no_vote_never() {
        let mut elector = Elector::new(PATIENCE, 5, 0);
        assert!(matches!(elector.step(300_000, 1, &of(&[1])), Step::Ask { .. }));
        assert_eq!(elector.step(300_000, 1, &of(&[1])), Step::Stand);
        for now_us in [0, 1_000_000, 9_000_000] {
            let step = elector.step(now_us, 1, &of(&[2, 3]));
            assert!(matches!(step, Step::WaitUntil(_)));
        }
    }

    #[test]
    fn nobody_is_elected_who_lacks_entries_or_while_an_orderer_is_heard() {
        let mut elector = Elector::new(PATIENCE, 5, 0);
        assert!(elector.would_elect(0, id(2, 5), id(2, 5)));
        assert!(elector.would_elect(0, id(3, 1), id(2, 5)));
        assert!(!elector.would_elect(0, id(2, 4), id(2, 5)));
        assert!(!elector.would_elect(0, id(1, 9), id(2, 5)));
        elector.hears(0);
        assert!(!elector.would_elect(99_000, id(2, 5), id(2, 5)));
        assert!(elector.would_elect(100_000, id(2, 5), id(2, 5)));
    }
}
