//! Logs the state of a node of a cluster: its leader, whether it can reach the journal, and
//! detached copies. No request may fail because of any of these, so no other line would tell.

use crate::cluster::{Cluster, EngineReach};
use crate::http::Host;
use crate::names::SYSTEM_LOG;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::{Leader, Role};

/// Time between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The state of a node within the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WatchedNode {
    /// The leader of `system`.
    leader: Option<Leader>,
    /// Why the journal cannot be reached, if so.
    lost: Option<String>,
    /// Logs whose copies are detached, with the reasons.
    detached: BTreeSet<(String, String)>,
}

impl WatchedNode {
    fn of(host: &Host, cluster: &Cluster) -> WatchedNode {
        let mut watched = WatchedNode::default();
        for (name, log) in host.node.all() {
            let leader = match log.role() {
                Role::Leading { epoch } => {
                    Some(Leader { node: cluster.node.to_string(), url: cluster.url.clone(), epoch })
                }
                Role::Following { leader } => leader,
                Role::Detached { reason } => {
                    watched.detached.insert((name.clone(), reason));
                    None
                }
                Role::CatchingUp { .. } | Role::Claiming { .. } => None,
            };
            if name == SYSTEM_LOG {
                watched.leader = leader;
            }
        }
        if let EngineReach::Lost { reason } = cluster.engine.status().reach {
            watched.lost = Some(reason);
        }
        watched
    }

    /// The events to log, in the order in which they are logged.
    fn changes(&self, before: &WatchedNode) -> Vec<Change> {
        let mut changes = Vec::new();
        match (&before.lost, &self.lost) {
            (None, Some(reason)) => changes.push(Change::JournalLost(reason.clone())),
            (Some(_), None) => changes.push(Change::JournalReached),
            _ => {}
        }
        for (log, reason) in self.detached.difference(&before.detached) {
            changes.push(Change::Detached(log.clone(), reason.clone()));
        }
        match &self.leader {
            Some(leader) if before.leader.as_ref() != Some(leader) => {
                changes.push(Change::Leads(leader.clone()));
            }
            None if before.leader.is_some() => changes.push(Change::NobodyLeads),
            _ => {}
        }
        changes
    }
}

/// An event to log about a node.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    JournalLost(String),
    JournalReached,
    Detached(String, String),
    Leads(Leader),
    NobodyLeads,
}

impl Change {
    fn tell(&self, cluster: &Cluster) {
        match self {
            Change::JournalLost(reason) => tracing::warn!(
                "cannot reach the journal: {reason}; local reads continue, and the node keeps \
                 retrying"
            ),
            Change::JournalReached => tracing::info!("connected to the journal again"),
            Change::Detached(log, reason) => tracing::error!(
                log,
                "the copy of the log is detached: {reason}; an operator must decide \
                 (docs/cluster.md, Detached)"
            ),
            Change::Leads(leader) if cluster.is_at(&leader.node, &leader.url) => {
                tracing::info!(epoch = leader.epoch, "this node leads the log system");
            }
            Change::Leads(Leader { node, url, epoch }) => {
                tracing::info!(node, url, epoch, "another node leads the log system");
            }
            Change::NobodyLeads => tracing::warn!("no leader of the log system is known"),
        }
    }
}

/// Watches while the server runs, if the node is part of a cluster. Call it within a runtime.
pub(crate) fn start(host: &Arc<Host>) {
    let Some(cluster) = host.node.cluster().map(Arc::clone) else { return };
    let host = Arc::clone(host);
    tracing::info!(node = cluster.node.as_str(), url = cluster.url, "joined a cluster");
    tokio::spawn(async move {
        let mut before = WatchedNode::default();
        loop {
            let now = WatchedNode::of(&host, &cluster);
            now.changes(&before).iter().for_each(|change| change.tell(&cluster));
            // A node that claims the lead knows no leader for a moment, which is not worth a line.
            before = WatchedNode {
                leader: now.leader.clone().or(before.leader.filter(|_| is_claiming(&host))),
                ..now
            };
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
}

fn is_claiming(host: &Host) -> bool {
    let system = host.node.get(SYSTEM_LOG);
    system.is_some_and(|system| matches!(system.role(), Role::Claiming { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let leader =
            |node: &str, epoch| Leader { node: node.into(), url: "http://x".into(), epoch };
        let at_first = WatchedNode::default();
        let led = WatchedNode { leader: Some(leader("a", 1)), ..WatchedNode::default() };
        assert_eq!(led.changes(&at_first), [Change::Leads(leader("a", 1))]);
        assert_eq!(led.changes(&led), []);
        let again = WatchedNode { leader: Some(leader("a", 2)), ..led.clone() };
        assert_eq!(again.changes(&led), [Change::Leads(leader("a", 2))], "a new epoch is news");
        let lost = WatchedNode {
            leader: None,
            lost: Some("refused".into()),
            detached: BTreeSet::from([("main".to_owned(), "why".to_owned())]),
        };
        let told = [
            Change::JournalLost("refused".into()),
            Change::Detached("main".into(), "why".into()),
            Change::NobodyLeads,
        ];
        assert_eq!(lost.changes(&led), told);
        let other_words = WatchedNode { lost: Some("timed out".into()), ..lost.clone() };
        assert_eq!(other_words.changes(&lost), []);
        assert_eq!(led.changes(&lost), [Change::JournalReached, Change::Leads(leader("a", 1))]);
    }
}
