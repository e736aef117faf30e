//! `POST /v1/cluster/transfer`: transfers the lead.

use super::body::read_transfer;
use super::document::NodeLine;
use super::lead::{self, LeaderNode};
use super::other_nodes::{self, detail};
use super::problems::{NODE_NOT_FOUND, NODE_UNREACHABLE};
use super::{ClusterFace, json, own_description};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use wellspring_host::cluster::Cluster;
use wellspring_host::cluster::peers::PeerRequest;
use wellspring_host::http::{Answer, Request};
use wellspring_host::wire::problem::{self, Problem, of_fault};

/// Time for the round trip, apart from what the other node waits for.
const WAY: Duration = Duration::from_secs(3);

/// Has the named node lead, or a follower that is up to date.
pub(super) async fn transfer(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = super::body_of(&mut request).await?;
    let to = read_transfer(&content).map_err(|fault| of_fault(&fault, &content))?;
    let cluster = Arc::clone(face.cluster()?);
    let members = face.members()?;
    request.still_may()?;
    let (node, url) = match to {
        Some(node) => {
            let url = members.url(&node).map(str::to_owned);
            let url = url.ok_or_else(|| {
                let known: Vec<&str> = members.iter().map(|(node, _)| node).collect();
                let detail =
                    format!("no node {node:?} has joined; known nodes: {}", known.join(", "));
                NODE_NOT_FOUND.because(detail).field("to")
            })?;
            (node, url)
        }
        None => {
            let own = own_description::status(&face.host);
            let lines = other_nodes::ask_all(&face.host, &members, &own).await;
            let chosen = choose(&lines)
                .ok_or_else(|| NODE_UNREACHABLE.because("no reachable follower could take over"))?;
            (chosen.node.clone(), chosen.url.clone())
        }
    };
    // The supposed leader is asked as well: it may be gone.
    if node == cluster.node.as_str() {
        return json(&lead::take(&face.host, &cluster).await?);
    }
    json(&ask_to_lead(&face, &cluster, &node, &url).await?)
}

/// The follower that is furthest ahead.
fn choose(lines: &[NodeLine]) -> Option<&NodeLine> {
    let follows = |line: &&NodeLine| line.reachable && line.role.as_deref() == Some("following");
    lines.iter().filter(follows).max_by_key(|line| line.position)
}

/// Asks another node to take the lead.
///
/// # Errors
/// 503: it cannot be reached, or does not take the lead.
async fn ask_to_lead(
    face: &ClusterFace,
    cluster: &Cluster,
    node: &str,
    url: &str,
) -> Result<LeaderNode, Box<Problem>> {
    // An address may have passed to another node, which must not lead in this one's place.
    let content = Bytes::from(serde_json::json!({ "node": node }).to_string());
    let request = PeerRequest::post("/v1/cluster/lead", content);
    let patience = cluster.leader_wait.max(cluster.lead_timeout) + WAY;
    let answer = cluster.peers.ask(url, &request, patience, face.host.wall_us()).await;
    let answer = answer.map_err(|error| NODE_UNREACHABLE.because(format!("{node}: {error}")))?;
    if answer.status != 200 {
        let detail = format!("{node} does not lead: {}", detail(&answer.content));
        let kind = if answer.status == 404 { &NODE_UNREACHABLE } else { &problem::NOT_LEADING };
        return Err(kind.because(detail));
    }
    serde_json::from_slice(&answer.content).map_err(|error| {
        NODE_UNREACHABLE.because(format!("{node} sent an unexpected answer: {error}"))
    })
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
