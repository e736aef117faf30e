//! `POST /v1/cluster/lead`: another node says who is to lead a log. That node takes the lead; the
//! one that has it gives way.

use super::body::read_lead;
use super::problems::NODE_NOT_FOUND;
use super::{ClusterFace, body_of, json};
use std::sync::Arc;
use wellspring_host::http::{Answer, Request};
use wellspring_host::leads::{self, LeaderNode};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::problem::of_fault;

/// The log is `system` unless it is named. The sender may name the node that it means, because an
/// address may have passed to another node.
pub(super) async fn lead(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = body_of(&mut request).await?;
    let (meant, log) = read_lead(&content).map_err(|fault| of_fault(&fault, &content))?;
    let cluster = face.cluster()?;
    let own = cluster.node.as_str();
    match (meant.filter(|meant| meant != own), log) {
        (None, log) => {
            let log = log.as_deref().unwrap_or(SYSTEM_LOG);
            json(&leads::take(&face.host, cluster, log).await?)
        }
        (Some(other), Some(log)) if log != SYSTEM_LOG => {
            leads::give_way(&face.host, &log, &other).await;
            let url = face.members()?.url(&other).unwrap_or_default().to_owned();
            json(&LeaderNode { node: other, url, epoch: 0, already: false })
        }
        (Some(other), _) => {
            let detail = format!("{} is the node {own}, not {other:?}", cluster.url);
            Err(NODE_NOT_FOUND.because(detail).field("node"))
        }
    }
}
