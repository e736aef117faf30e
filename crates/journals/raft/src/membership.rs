//! Whether a node belongs to the group, as it and others see it.

use crate::members::Admission;
use crate::node::RaftNode;
use crate::shared_node::locked;

impl RaftNode {
    /// The index of the newest entry that makes this node a member, 0 if it has none.
    #[must_use]
    pub fn member_since(&self) -> u64 {
        let members = locked(&self.shared.members);
        if members.addresses.contains_key(&self.shared.node) { members.index } else { 0 }
    }

    /// Whether another node belongs to the group; `since`: what that node says of
    /// [itself](Self::member_since).
    #[must_use]
    pub fn admit(&self, node: u64, since: u64) -> Admission {
        let applied = self.shared.delivery.applied_index();
        locked(&self.shared.members).admit(node, since, applied)
    }

    /// The group goes on without this node: its logs are told so, and get nothing more.
    pub fn leave(&self, why: &str) {
        self.shared.delivery.end(why);
    }
}
