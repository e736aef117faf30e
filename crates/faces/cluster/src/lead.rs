//! Makes this node lead: the log `system` first, then all others.

use super::body::read_lead;
use super::problems::NODE_NOT_FOUND;
use super::{ClusterFace, body_of, json, own_description};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_host::cluster::Cluster;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Host, Request};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::node::Node;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_log::{Log, Role};

/// Time between two checks of roles, in case a change is missed.
const LOOK: Duration = Duration::from_millis(10);
/// Time after which a failed claim is repeated.
const CLAIM_AGAIN: Duration = Duration::from_millis(500);

/// The leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeaderNode {
    pub(super) node: String,
    pub(super) url: String,
    /// Of the log `system`.
    pub(super) epoch: u64,
    /// Whether it led everything before the request.
    #[serde(default)]
    pub(super) already: bool,
}

/// `POST /v1/cluster/lead`. The sender may name the node it means, because an address may have
/// passed to another node.
pub(super) async fn lead(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = body_of(&mut request).await?;
    let meant = read_lead(&content).map_err(|fault| of_fault(&fault, &content))?;
    let cluster = face.cluster()?;
    let is_another = |meant: &String| meant.as_str() != cluster.node.as_str();
    if let Some(meant) = meant.filter(is_another) {
        let detail = format!("{} is the node {}, not {meant:?}", cluster.url, cluster.node);
        return Err(NODE_NOT_FOUND.because(detail).field("node"));
    }
    json(&take(&face.host, cluster).await?)
}

/// Makes this node lead all logs.
///
/// # Errors
/// 503: it does not lead within the time that a write waits for a leader; a log is detached.
pub(super) async fn take(
    host: &Arc<Host>,
    cluster: &Arc<Cluster>,
) -> Result<LeaderNode, Box<Problem>> {
    let (host, cluster) = (Arc::clone(host), Arc::clone(cluster));
    elsewhere(move || {
        let patience = cluster.leader_wait.max(cluster.lead_timeout);
        let already = first_not_led(&host.node.all())?.is_none();
        claim_until_led(&host.node, patience)?;
        let leader = own_description::leader(&host, SYSTEM_LOG);
        let epoch = leader.map_or(0, |leader| leader.epoch);
        if !already {
            tracing::info!(node = %cluster.node, epoch, "took the lead on request");
        }
        Ok(LeaderNode { node: cluster.node.to_string(), url: cluster.url.clone(), epoch, already })
    })
    .await?
}

/// Claims and waits. Blocks.
fn claim_until_led(node: &Node, patience: Duration) -> Result<(), Box<Problem>> {
    let begun = Instant::now();
    let mut claimed: Option<Instant> = None;
    loop {
        if let Some((name, reason)) = node.unopened_logs().first() {
            let detail = format!("the log {name} cannot be opened on this node: {reason}");
            return Err(problem::NOT_LEADING.because(detail));
        }
        let logs = node.all();
        let missing = first_not_led(&logs)?;
        let Some((name, log)) = missing else { return Ok(()) };
        if begun.elapsed() >= patience {
            let detail = format!(
                "this node was asked to lead but does not lead {name} after {} ms: it is {}",
                patience.as_millis(),
                log.role().name()
            );
            return Err(problem::NOT_LEADING.because(detail));
        }
        let seen = log.role_changes().head();
        // The others are claimed only once `system` is led.
        let due = claimed.is_none_or(|at| at.elapsed() >= CLAIM_AGAIN);
        if name == SYSTEM_LOG {
            if due && matches!(log.role(), Role::Following { .. }) {
                log.claim_lead();
                claimed = Some(Instant::now());
            }
        } else if due {
            for (_, log) in &logs {
                if matches!(log.role(), Role::Following { .. }) {
                    log.claim_lead();
                }
            }
            claimed = Some(Instant::now());
        }
        let led_system = name == SYSTEM_LOG;
        log.role_changes().wait_past(seen, LOOK);
        if led_system && log.role().leads() {
            // The others are due at once.
            claimed = None;
        }
    }
}

/// The first log that this node does not lead, `system` before all others.
///
/// # Errors
/// One of them is detached and can never be led from here.
fn first_not_led(logs: &[(String, Log)]) -> Result<Option<&(String, Log)>, Box<Problem>> {
    for (name, log) in logs {
        if let Role::Detached { reason } = log.role() {
            let detail = format!("the copy of {name} on this node is detached: {reason}");
            return Err(problem::DETACHED.because(detail));
        }
    }
    let system = logs.iter().filter(|(name, _)| name == SYSTEM_LOG);
    let others = logs.iter().filter(|(name, _)| name != SYSTEM_LOG);
    Ok(system.chain(others).find(|(_, log)| !log.role().leads()))
}
