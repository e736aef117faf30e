//! Who belongs to the group, and how that is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Who a member is and where it was when it was founded or joined. A node that has moved since says
/// so itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberAddress {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
}

/// The members of the group, as the newest entry about them says that is durable here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// The index of that entry, 0 if there is none.
    pub(crate) index: u64,
    /// Those who vote: one set, or two while one replaces the other; each has to have a majority.
    pub(crate) voters: Vec<BTreeSet<u64>>,
    /// Those who get entries and do not vote.
    pub(crate) learners: BTreeSet<u64>,
    /// Of all of them.
    pub(crate) addresses: BTreeMap<u64, MemberAddress>,
}

impl Members {
    /// All who vote.
    pub(crate) fn all_voters(&self) -> BTreeSet<u64> {
        self.voters.iter().flatten().copied().collect()
    }

    pub(crate) fn votes(&self, node: u64) -> bool {
        self.voters.iter().any(|voters| voters.contains(&node))
    }

    /// Those who vote once a change that was left half-way has ended.
    fn next_voters(&self) -> BTreeSet<u64> {
        self.voters.last().cloned().unwrap_or_default()
    }

    /// The change by which a learner votes.
    pub(crate) fn with_voter(&self, node: u64) -> ChangeOfMembers {
        let mut voters = self.next_voters();
        voters.insert(node);
        ChangeOfMembers::Voters(voters)
    }

    /// The change by which a node is no member.
    pub(crate) fn without(&self, node: u64) -> ChangeOfMembers {
        if !self.votes(node) {
            return ChangeOfMembers::RemoveLearner(node);
        }
        let mut voters = self.next_voters();
        voters.remove(&node);
        ChangeOfMembers::Voters(voters)
    }

    /// Whether those for whom this is true decide.
    pub(crate) fn is_majority(&self, is_in: impl Fn(u64) -> bool) -> bool {
        let has_majority = |voters: &BTreeSet<u64>| {
            2 * voters.iter().filter(|v| is_in(**v)).count() > voters.len()
        };
        !self.voters.is_empty() && self.voters.iter().all(has_majority)
    }

    /// Whether a node belongs to the group, which has been a member since the entry of this index,
    /// or was none yet at 0. Members that are not committed may be replaced by those before.
    pub(crate) fn admit(&self, node: u64, since: u64, committed: u64) -> Admission {
        // A newer entry than this node knows may name it, and one that it has not got yet.
        if self.addresses.contains_key(&node) || since == 0 || since > self.index {
            Admission::Belongs
        } else if self.index <= committed {
            Admission::Removed
        } else {
            Admission::Undecided
        }
    }
}

/// A change of the members.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangeOfMembers {
    AddLearner(u64, MemberAddress),
    RemoveLearner(u64),
    Voters(BTreeSet<u64>),
}

/// Whether a node belongs to the group, as another one sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// As far as known.
    Belongs,
    /// Whether it was removed is not known before more is committed here.
    Undecided,
    /// It was a member, and was removed.
    Removed,
}

/// Whether an orderer may make these the voters. The library lets no node stand for election that
/// its own last entry has removed. If no other node received that entry, the others have shorter
/// logs and do not get this node's vote. So those that stay must be a majority without it.
pub(crate) fn may_replace(members: &Members, orderer: u64, voters: &BTreeSet<u64>) -> bool {
    voters.contains(&orderer) || members.is_majority(|id| voters.contains(&id))
}

/// Why the members are not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembersError {
    /// This node does not order, or stopped before the change was committed, which has been undone.
    /// Of a change of voters, the first half may be left: the report says so.
    NotOrdering {
        /// Who does, if this node knows.
        orderer: Option<u64>,
    },
    /// The change before this one is not committed.
    UnderWay,
    /// This node is to vote and is no member: it has to be a learner first.
    NoMember {
        /// The node.
        node: u64,
    },
    /// Nobody would vote.
    NoVoters,
    /// This node would vote no more, and those that stay are no majority of the present voters.
    /// First, add others or have another node order.
    RemovesOrderer,
    /// The node stopped ordering, or its engine stopped, while the change was under way: it may
    /// have happened, may happen yet, or not at all.
    Unknown,
}

impl fmt::Display for MembersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MembersError::NotOrdering { orderer: Some(orderer) } => {
                write!(f, "node {orderer} orders, not this one")
            }
            MembersError::NotOrdering { orderer: None } => f.write_str("this node does not order"),
            MembersError::UnderWay => f.write_str("another change of the members is under way"),
            MembersError::NoMember { node } => write!(f, "node {node} is no learner yet"),
            MembersError::RemovesOrderer => {
                f.write_str("without the node that orders, the voters that stay are no majority")
            }
            MembersError::NoVoters => f.write_str("a group has at least one voter"),
            MembersError::Unknown => {
                f.write_str("the node stopped ordering; the members may have changed or not")
            }
        }
    }
}

impl std::error::Error for MembersError {}

/// A change of the members that is under way. It ends once the change is committed, which takes as
/// long as a majority cannot be reached; dropping it does not stop the change.
#[must_use]
#[derive(Debug)]
pub struct MembersChange(pub(crate) oneshot::Receiver<Result<(), MembersError>>);

impl MembersChange {
    /// Blocks until the change is committed.
    ///
    /// # Errors
    /// [`MembersError`].
    pub fn wait(self) -> Result<(), MembersError> {
        self.0.blocking_recv().unwrap_or(Err(MembersError::Unknown))
    }
}

impl Future for MembersChange {
    type Output = Result<(), MembersError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let told = Pin::new(&mut self.0).poll(context);
        told.map(|told| told.unwrap_or(Err(MembersError::Unknown)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_one_set_of_voters_replaces_another_both_decide() {
        let set = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<u64>>();
        let members = Members {
            voters: vec![set(&[1, 2, 3]), set(&[3, 4, 5])],
            learners: set(&[9]),
            ..Members::default()
        };
        assert_eq!(members.all_voters(), set(&[1, 2, 3, 4, 5]));
        assert!(members.votes(5) && !members.votes(9));
        let decide = |ids: &[u64]| members.is_majority(|id| ids.contains(&id));
        assert!(decide(&[1, 3, 4]));
        assert!(!decide(&[1, 2, 4]) && !decide(&[3, 4, 5]) && !decide(&[3, 9]));
        let new = |ids| may_replace(&members, 1, &set(ids));
        assert!(new(&[1, 7]) && new(&[2, 3, 4]) && !new(&[2, 3]) && !new(&[7]));
        assert!(!Members::default().is_majority(|_| true));
    }

    #[test]
    fn a_change_that_was_left_half_way_is_not_undone_by_the_next_one() {
        let set = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<u64>>();
        let voters = vec![set(&[1, 2, 3]), set(&[1, 2])];
        let left = Members { voters, learners: set(&[4]), ..Members::default() };
        let next = |ids| ChangeOfMembers::Voters(set(ids));
        assert_eq!(left.with_voter(4), next(&[1, 2, 4]), "3 votes no more");
        assert_eq!(left.without(3), next(&[1, 2]), "its removal ends");
        assert_eq!(left.without(2), next(&[1]));
        assert_eq!(left.without(4), ChangeOfMembers::RemoveLearner(4));
    }

    #[test]
    fn only_a_committed_entry_without_a_former_member_says_that_it_was_removed() {
        let addresses = [1, 2].map(|id| (id, MemberAddress::default())).into();
        let members = Members { index: 9, addresses, ..Members::default() };
        for (node, since, committed, admission) in [
            (2, 3, 9, Admission::Belongs),
            (3, 0, 9, Admission::Belongs),
            (3, 10, 20, Admission::Belongs),
            (3, 4, 8, Admission::Undecided),
            (3, 4, 9, Admission::Removed),
        ] {
            assert_eq!(members.admit(node, since, committed), admission, "{node} {since}");
        }
    }
}
