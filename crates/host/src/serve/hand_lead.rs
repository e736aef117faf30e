//! At shutdown, a leader has another node take the lead first, so that clients need not wait for
//! its silence to be noticed.

use crate::cluster::PeerRequest;
use crate::http::Host;
use crate::names::SYSTEM_LOG;
use bytes::Bytes;
use std::time::Duration;

/// How long one node may take to answer that it leads.
const PATIENCE: Duration = Duration::from_secs(2);
/// Total time for all of them, one after the other.
const IN_ALL: Duration = Duration::from_secs(5);

/// Asks the other nodes to lead, one after the other, until one does. Otherwise one of them will
/// after a silence.
pub(super) async fn to_another(host: &Host) {
    let leads = host.node.get(SYSTEM_LOG).is_some_and(|system| system.role().leads());
    let Some(cluster) = host.node.cluster().filter(|_| leads) else { return };
    let members = match host.node.members() {
        Ok(members) => members,
        Err(error) => return tracing::warn!("cannot ask another node to lead: {error}"),
    };
    let asking = async {
        for member in members.iter().filter(|member| member.node != cluster.node.as_str()) {
            let content = format!(r#"{{"node":"{}"}}"#, member.node);
            let request = PeerRequest::post("/v1/cluster/lead", Bytes::from(content));
            let now_us = host.clock.wall_us();
            match cluster.peers.ask(&member.url, &request, PATIENCE, now_us).await {
                Ok(answer) if answer.status == 200 => {
                    return tracing::info!(to = member.node, "handed over the lead");
                }
                Ok(answer) => {
                    let status = answer.status;
                    tracing::warn!(to = member.node, status, "no other node took over the lead");
                }
                Err(error) => {
                    tracing::warn!(to = member.node, "cannot offer the lead: {error}");
                }
            }
        }
    };
    if tokio::time::timeout(IN_ALL, asking).await.is_err() {
        tracing::warn!("no other node took the lead within {} s", IN_ALL.as_secs());
    }
}
