//! Removing a member of the group: what `wellspring cluster remove` and `join --replace` ask of the
//! node that orders.

use super::Cluster;
use super::group::{Group, GroupError, GroupState, MemberState};
use crate::wire::problem::{self, Problem};
use serde::Deserialize;
use std::sync::Arc;

/// `POST /v1/cluster/remove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveRequest {
    /// The name of the node.
    pub node: String,
}

/// What became of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It was removed.
    Removed,
    /// The group has none of this name.
    NoMember,
    /// It is this node, which orders: another one has to before.
    OrdersHere,
}

impl Cluster {
    /// Removes a member from the group. Only where the group is ordered.
    ///
    /// # Errors
    /// Why it stays.
    pub async fn remove(self: &Arc<Self>, node: &str) -> Result<Removal, Box<Problem>> {
        let state = self.group()?.state();
        let Some(member) = state.member(node) else { return Ok(Removal::NoMember) };
        may_remove(&state, member)?;
        if state.orders && node == self.node.as_str() {
            return Ok(Removal::OrdersHere);
        }
        let id = member.id;
        self.on_group(move |group| group.remove(id)).await?;
        Ok(Removal::Removed)
    }

    /// Has the group do something that blocks.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) async fn on_group(
        self: &Arc<Self>,
        change: impl FnOnce(&dyn Group) -> Result<(), GroupError> + Send + 'static,
    ) -> Result<(), Box<Problem>> {
        let cluster = Arc::clone(self);
        let changed =
            tokio::task::spawn_blocking(move || cluster.engine.group().map_or(Ok(()), change));
        let changed = changed.await.map_err(|e| problem::INTERNAL.because(e.to_string()))?;
        changed.map_err(|error| match error {
            GroupError::UnderWay => problem::MEMBERS_CHANGING.because(error.to_string()),
            error => problem::NOT_LEADING.because(error.to_string()),
        })
    }
}

/// Whether those that stay could go on.
fn may_remove(state: &GroupState, member: &MemberState) -> Result<(), Box<Problem>> {
    let rest = || state.members.iter().filter(|other| other.votes && other.id != member.id);
    let (node, count) = (&member.node, rest().count());
    if count == 0 {
        let detail = format!("{node} is the only voter; let another node join first");
        return Err(problem::LAST_VOTER.because(detail).field("node"));
    }
    let lost: Vec<&str> =
        rest().filter(|other| !other.reachable).map(|other| &*other.node).collect();
    if 2 * lost.len() >= count {
        let (reached, lost) = (count - lost.len(), lost.join(", "));
        let detail = format!(
            "without {node}, {reached} of {count} voters would be reachable; not reached: {lost}"
        );
        return Err(problem::NO_MAJORITY.because(detail).field("node"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::group::GroupStage;
    use super::*;

    #[test]
    fn those_that_stay_have_a_majority_that_is_reached() {
        let refused = |members: &str, node: &str| {
            let member = |(id, text): (usize, &str)| MemberState {
                node: text[..1].to_owned(),
                id: id as u64,
                url: String::new(),
                votes: !text.contains('l'),
                reachable: !text.contains('x'),
            };
            let members = members.split(' ').enumerate().map(member).collect();
            let state = GroupState {
                stage: GroupStage::Member,
                cluster: None,
                orderer: None,
                orders: true,
                term: 1,
                last_index: 1,
                applied_index: 1,
                member_since: 1,
                dropped_index: 0,
                kept_bytes: 0,
                lacks_copies: false,
                frames: 0,
                refused_streams: 0,
                stopped: None,
                members,
            };
            may_remove(&state, state.member(node).unwrap()).err()
        };
        for (members, node) in
            [("a b c", "c"), ("a b cx", "c"), ("a b cx d e", "b"), ("a bl", "b"), ("a bxl", "b")]
        {
            assert!(refused(members, node).is_none(), "{members} without {node}");
        }
        for (members, node, kind) in [
            ("a", "a", &problem::LAST_VOTER),
            ("a bl", "a", &problem::LAST_VOTER),
            ("a b cx", "b", &problem::NO_MAJORITY),
            ("a bx", "a", &problem::NO_MAJORITY),
            ("a bx cx d el", "e", &problem::NO_MAJORITY),
        ] {
            let problem = refused(members, node).unwrap();
            assert_eq!(problem.kind, kind, "{members} without {node}");
        }
        let told = refused("a bx c", "c").unwrap().detail;
        assert_eq!(told, "without c, 1 of 2 voters would be reachable; not reached: b");
    }
}
