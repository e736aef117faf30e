//! `POST /v1/cluster/transfer`: transfers the lead of the log `system`, and so placement.

use super::body::read_transfer;
use super::document::NodeLine;
use super::other_nodes;
use super::{ClusterFace, json};
use std::sync::Arc;
use wellspring_host::cluster::{Cluster, Group};
use wellspring_host::http::{Answer, Request};
use wellspring_host::leads::{self, LeaderNode, NoLead};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::problem::{self, NODE_UNREACHABLE, Problem, of_fault};

/// Has the named node lead, or a follower that is up to date.
pub(super) async fn transfer(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = super::body_of(&mut request).await?;
    let to = read_transfer(&content).map_err(|fault| of_fault(&fault, &content))?;
    let cluster = Arc::clone(face.cluster()?);
    let members = face.members()?;
    request.still_may()?;
    let (node, url) = match to {
        Some(node) => {
            let url = members.known_url(&node)?.to_owned();
            (node, url)
        }
        None => follower(&face).await?,
    };
    // The supposed leader is asked as well: it may be gone.
    if node == cluster.node.as_str() {
        return json(&leads::take(&face.host, &cluster, SYSTEM_LOG).await?);
    }
    json(&have_lead(&face, &cluster, (&node, &url)).await?)
}

/// Name and URL of a follower that could take over.
pub(super) async fn follower(face: &ClusterFace) -> Result<(String, String), Box<Problem>> {
    let own = face.host.node.status();
    let mut lines = other_nodes::ask_all(&face.host, &face.members()?, &own).await;
    if let Some(group) = face.cluster()?.engine.group().map(Group::state) {
        lines.retain(|line| group.member(&line.node).is_some_and(|member| member.votes));
    }
    let chosen = choose(&lines)
        .ok_or_else(|| NODE_UNREACHABLE.because("no reachable follower could take over"))?;
    Ok((chosen.node.clone(), chosen.url.clone()))
}

/// Has another node lead the log `system`.
pub(super) async fn have_lead(
    face: &ClusterFace,
    cluster: &Cluster,
    node: (&str, &str),
) -> Result<LeaderNode, Box<Problem>> {
    let patience = leads::patience(cluster);
    let asked = leads::ask_to_lead(&face.host, cluster, node, SYSTEM_LOG, patience).await;
    asked.map_err(|no_lead| match no_lead {
        NoLead::NotReached(why) => NODE_UNREACHABLE.because(why),
        NoLead::Refused(why) => problem::NOT_LEADING.because(why),
    })
}

/// The follower that is furthest ahead.
fn choose(lines: &[NodeLine]) -> Option<&NodeLine> {
    let follows = |line: &&NodeLine| line.reachable && line.role.as_deref() == Some("following");
    lines.iter().filter(follows).max_by_key(|line| line.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(node: &str, role: &str, position: u64) -> NodeLine {
        let status = json!({"node": node, "url": "http://x:1", "version": "0", "start": null, "role": role,
            "epoch": 1, "position": position, "engine": null, "logs": []});
        NodeLine::of(serde_json::from_value(status).unwrap())
    }

    #[test]
    fn the_one_that_follows_and_is_furthest_takes_over() {
        let gone = NodeLine::unreachable("d".into(), "http://d:1".into(), "refused".into());
        let lines = [
            line("a", "leading", 99),
            line("b", "following", 7),
            line("c", "following", 9),
            line("e", "catching-up", 50),
            gone.clone(),
        ];
        assert_eq!(choose(&lines).map(|line| line.node.as_str()), Some("c"));
        assert_eq!(choose(&[line("a", "leading", 9), gone]), None);
    }
}
