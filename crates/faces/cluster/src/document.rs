//! The document of `GET /v1/cluster`.

use serde::Serialize;
use wellspring_host::node::status::{EngineState, LogState, NodeStatus};
use wellspring_log::Leader;

/// The nodes, and the logs of the answering one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ClusterDocument {
    node: Option<String>,
    /// What orders the logs: `files` of the server, or an engine.
    journal: String,
    engine: Option<EngineState>,
    leader: Option<LeaderLine>,
    nodes: Vec<NodeLine>,
    logs: Vec<LogState>,
}

/// The leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct LeaderLine {
    node: String,
    url: String,
    epoch: u64,
}

/// A node as seen from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NodeLine {
    pub(super) node: String,
    pub(super) url: String,
    version: Option<String>,
    pub(super) reachable: bool,
    /// Why it is not reachable.
    error: Option<String>,
    pub(super) role: Option<String>,
    /// Head of its log `system`.
    pub(super) position: Option<u64>,
    /// The last entry of the group that it has applied, if the nodes are one.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_index: Option<u64>,
}

impl NodeLine {
    /// A node that has answered.
    pub(super) fn of(status: NodeStatus) -> NodeLine {
        NodeLine {
            node: status.node.unwrap_or_default(),
            url: status.url.unwrap_or_default(),
            version: Some(status.version),
            reachable: true,
            error: None,
            role: Some(status.role),
            position: Some(status.position),
            applied_index: status.engine.and_then(|engine| Some(engine.group?.applied_index)),
        }
    }

    /// A node that has not.
    pub(super) fn unreachable(node: String, url: String, error: String) -> NodeLine {
        let (version, role, position, error) = (None, None, None, Some(error));
        let (reachable, applied_index) = (false, None);
        NodeLine { node, url, version, reachable, error, role, position, applied_index }
    }
}

/// What the reader of a document may see.
pub(super) struct Sight<'a> {
    /// Whether a log is visible.
    pub(super) log: &'a dyn Fn(&str) -> bool,
    /// Whether internal addresses are visible, which error messages contain.
    pub(super) troubles: bool,
}

/// The document, restricted to what its reader may see.
pub(super) fn of(
    own: NodeStatus,
    leader: Option<Leader>,
    nodes: Vec<NodeLine>,
    sight: &Sight<'_>,
) -> ClusterDocument {
    let NodeStatus { node, mut engine, logs, .. } = own;
    if let Some(engine) = engine.as_mut().filter(|_| !sight.troubles) {
        engine.trouble = None;
    }
    let leader = leader.map(|Leader { node, url, epoch }| LeaderLine { node, url, epoch });
    ClusterDocument {
        node,
        journal: engine.as_ref().map_or("files", |engine| &engine.kind).to_owned(),
        engine,
        leader,
        nodes,
        logs: logs.into_iter().filter(|log| (sight.log)(&log.log)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(node: Option<&str>) -> NodeStatus {
        let log = |log: &str| LogState {
            log: log.into(),
            role: "leading".into(),
            epoch: Some(3),
            incarnation: 1,
            leader: node.map(str::to_owned),
            pinned_to: None,
            rate: 7,
            is_full: false,
            place: node.map(|_| 44),
            head: 12,
            void_entries: 1,
            foreign_batches: 2,
            repeated_offers: 0,
        };
        NodeStatus {
            node: node.map(str::to_owned),
            url: node.map(|node| format!("http://{node}:1")),
            version: "0.1.0".into(),
            start: None,
            role: "leading".into(),
            epoch: Some(3),
            position: 9,
            takes_leads: true,
            silent_ms: 4,
            unopened: Vec::new(),
            engine: node.map(|_| EngineState {
                kind: "postgres".into(),
                connected: true,
                trouble: None,
                durable: "one server".into(),
                reconnects: 0,
                group: None,
            }),
            logs: vec![log("main"), log("system")],
        }
    }

    #[test]
    fn a_cluster_says_who_leads_and_who_answers() {
        let own = status(Some("a"));
        let nodes = vec![
            NodeLine::of(own.clone()),
            NodeLine::unreachable("b".into(), "http://b:1".into(), "refused".into()),
        ];
        let leader = Some(Leader { node: "a".into(), url: "http://a:1".into(), epoch: 3 });
        let sight = Sight { log: &|log| log != "system", troubles: true };
        let document = of(own, leader, nodes, &sight);
        let expected = json!({
            "node": "a", "journal": "postgres",
            "engine": {"kind": "postgres", "connected": true, "trouble": null, "durable": "one server", "reconnects": 0},
            "leader": {"node": "a", "url": "http://a:1", "epoch": 3},
            "nodes": [
                {"node": "a", "url": "http://a:1", "version": "0.1.0", "reachable": true, "error": null,
                 "role": "leading", "position": 9},
                {"node": "b", "url": "http://b:1", "version": null, "reachable": false, "error": "refused",
                 "role": null, "position": null},
            ],
            "logs": [{"log": "main", "incarnation": 1, "role": "leading", "epoch": 3, "leader": "a", "pinned_to": null,
                      "place": 44, "head": 12, "rate": 7, "is_full": false,
                      "void_entries": 1, "foreign_batches": 2, "repeated_offers": 0}],
        });
        assert_eq!(serde_json::to_value(&document).unwrap(), expected);
    }

    #[test]
    fn a_server_alone_has_no_nodes() {
        let sight = Sight { log: &|_| true, troubles: true };
        let document = serde_json::to_value(of(status(None), None, Vec::new(), &sight)).unwrap();
        assert_eq!((&document["node"], &document["journal"]), (&json!(null), &json!("files")));
        assert_eq!((&document["engine"], &document["nodes"]), (&json!(null), &json!([])));
        assert_eq!(document["logs"][0]["place"], json!(null));
    }

    #[test]
    fn troubles_are_for_operators() {
        let mut own = status(Some("a"));
        own.engine.as_mut().unwrap().trouble = Some("db.internal refused".into());
        let seen = |troubles| {
            let document = of(own.clone(), None, Vec::new(), &Sight { log: &|_| true, troubles });
            document.engine.and_then(|engine| engine.trouble)
        };
        assert_eq!((seen(false), seen(true).is_some()), (None, true));
    }
}
