//! The other nodes' own descriptions: all are asked at once, and those that do not answer soon
//! count as unreachable.

use super::document::NodeLine;
use super::members::Members;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use wellspring_host::cluster::Cluster;
use wellspring_host::cluster::peers::PeerRequest;
use wellspring_host::http::Host;
use wellspring_host::node::status::NodeStatus;

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// All nodes, by name: this one, and the others by their own descriptions.
pub(super) async fn ask_all(
    host: &Arc<Host>,
    members: &Members,
    own: &NodeStatus,
) -> Vec<NodeLine> {
    let Some(cluster) = host.node.cluster() else { return Vec::new() };
    let mut asked = JoinSet::new();
    let mut lines = vec![NodeLine::of(own.clone())];
    for (node, url) in members.iter().filter(|(node, _)| *node != cluster.node.as_str()) {
        let (cluster, now_us) = (Arc::clone(cluster), host.wall_us());
        let (node, url) = (node.to_owned(), url.to_owned());
        asked.spawn(async move {
            match ask(&cluster, &node, &url, now_us).await {
                Ok(status) => NodeLine::of(status),
                Err(error) => NodeLine::unreachable(node, url, error),
            }
        });
    }
    while let Some(line) = asked.join_next().await {
        lines.extend(line.ok());
    }
    lines.sort_by(|one, other| one.node.cmp(&other.node));
    lines
}

/// A node's own description.
///
/// # Errors
/// A sentence: it does not answer, or is another node.
async fn ask(cluster: &Cluster, node: &str, url: &str, now_us: u64) -> Result<NodeStatus, String> {
    let request = PeerRequest::get("/v1/cluster/node");
    let answer = cluster.peers.ask(url, &request, PATIENCE, now_us).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status != 200 {
        return Err(format!("{url} answered {}: {}", answer.status, detail(&answer.content)));
    }
    let status: NodeStatus = serde_json::from_slice(&answer.content)
        .map_err(|error| format!("{url} sent an unexpected answer: {error}"))?;
    match &status.node {
        Some(name) if name == node => Ok(status),
        Some(other) => Err(format!("{url} is the node {other}")),
        None => Err(format!("{url} is not part of a cluster")),
    }
}

/// The detail of a problem, if it is one.
fn detail(content: &Bytes) -> String {
    let problem: serde_json::Value = serde_json::from_slice(content).unwrap_or_default();
    problem["detail"].as_str().unwrap_or("no reason given").to_owned()
}
