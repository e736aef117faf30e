//! `DELETE /v1/cluster/nodes/{node}`: removes a node from the list of those that have joined.

use super::ClusterFace;
use super::problems::{NODE_LEADS, NODE_NOT_FOUND};
use std::sync::Arc;
use wellspring_host::cluster::node_auth::NodeName;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::node::NodeError;
use wellspring_host::wire::effects::StepRefusal;
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::Problem;

pub(super) static NODE: Segment<NodeName> = Segment {
    name: "node",
    what: "Name of the node.",
    values: Values::Text(None),
    read: |text| NodeName::parse(text).map_err(|_| unknown(text)),
};

/// Removes a node from the list. Answered by the leader of the log `system`.
pub(super) async fn forget(face: Arc<ClusterFace>, request: Box<Request>) -> Answer {
    let node = request.segment(&NODE)?;
    let cluster = face.cluster()?;
    if node == cluster.node {
        let detail = format!("{node} leads; transfer the lead to another node and stop it first");
        return Err(NODE_LEADS.because(detail).field("node"));
    }
    let host = Arc::clone(&face.host);
    let name = node.to_string();
    let forgotten = elsewhere(move || host.node.forget_member(&name)).await?;
    match request.effects.settle(forgotten) {
        Ok(position) => Ok(Response::empty(204).at(position)),
        Err(StepRefusal { error: NodeError::NotFound, .. }) => Err(unknown(node.as_str())),
        Err(refused) => Err(refused.into()),
    }
}

fn unknown(node: &str) -> Box<Problem> {
    NODE_NOT_FOUND.because(format!("no node {node:?} has joined")).field("node")
}
