//! Refuses to start under a name that another running node has.

use crate::cluster::PeerRequest;
use crate::http::Host;
use crate::setup::SetupError;
use serde::Deserialize;
use std::time::Duration;

/// How long the other one may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The relevant part of a node's own description.
#[derive(Debug, Deserialize)]
struct NodeDocument {
    node: Option<String>,
}

/// Makes sure that no other process answers under this node's name at the URL where the last one of
/// that name joined.
///
/// # Errors
/// A sentence: one does.
pub(super) async fn refuse(host: &Host) -> Result<(), SetupError> {
    let Some(cluster) = host.node.cluster() else { return Ok(()) };
    let Ok(members) = host.node.members() else { return Ok(()) };
    let name = cluster.node.as_str();
    let other = members.iter().find(|member| member.node == name && member.url != cluster.url);
    let Some(other) = other else { return Ok(()) };
    let question = PeerRequest::get("/v1/cluster/node");
    let now_us = host.clock.wall_us();
    let asked = cluster.peers.ask(&other.url, &question, PATIENCE, now_us).await;
    let told =
        asked.ok().and_then(|answer| serde_json::from_slice::<NodeDocument>(&answer.content).ok());
    match told {
        Some(told) if told.node.as_deref() == Some(name) => Err(format!(
            "another node named {name} answers at {}; give each node a unique name (--node)",
            other.url
        )
        .into()),
        _ => Ok(()),
    }
}
