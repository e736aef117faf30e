//! The other nodes' own descriptions: all are asked at once, and those that do not answer soon
//! count as unreachable.

use super::document::NodeLine;
use super::members::Members;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use wellspring_host::http::Host;
use wellspring_host::leads::status_of;
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
            match status_of(&cluster, (&node, &url), PATIENCE, now_us).await {
                Ok(status) => NodeLine::of(status),
                Err(error) => NodeLine::unreachable(node, url, error.to_string()),
            }
        });
    }
    while let Some(line) = asked.join_next().await {
        lines.extend(line.ok());
    }
    lines.sort_by(|one, other| one.node.cmp(&other.node));
    lines
}
