//! `DELETE /v1/cluster/nodes/{node}`: removes a node from the list of those that have joined.
//! `POST /v1/cluster/remove`: and from the group of nodes, where they are one.

use super::ClusterFace;
use super::group::content_of;
use super::problems::{NODE_LEADS, NODE_NOT_FOUND};
use super::transfer;
use std::sync::Arc;
use wellspring_host::cluster::Group;
use wellspring_host::cluster::founding::read;
use wellspring_host::cluster::node_auth::NodeName;
use wellspring_host::cluster::removal::{Removal, RemoveRequest};
use wellspring_host::http::contract::Segment;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::node::NodeError;
use wellspring_host::wire::effects::StepRefusal;
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem::{BAD_REQUEST, NOT_LEADING, Problem};

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
    let group = cluster.engine.group().map(Group::state);
    if group.is_some_and(|group| group.member(node.as_str()).is_some()) {
        let detail = format!("{node} is a member of the cluster: use wellspring cluster remove");
        return Err(BAD_REQUEST.because(detail).field("node"));
    }
    take_off(&face, &request, node.as_str()).await
}

/// Removes a node for good. Answered by the leader of the log `system`, which orders.
pub(super) async fn remove(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let content = content_of(&mut request).await?;
    let RemoveRequest { node } = read(&content)?;
    let cluster = face.cluster()?;
    request.still_may()?;
    let is_former = face.host.node.has_forgotten(&node);
    let removal = cluster.remove(&node).await?;
    if removal == Removal::OrdersHere {
        let (other, url) = transfer::follower(&face).await?;
        transfer::have_lead(&face, cluster, (&other, &url)).await?;
        return Err(NOT_LEADING.because(format!("{other} orders now, and can remove {node}")));
    }
    match take_off(&face, &request, &node).await {
        Err(problem)
            if problem.kind == &NODE_NOT_FOUND && (removal == Removal::Removed || is_former) =>
        {
            Ok(Response::empty(204))
        }
        done => done,
    }
}

/// Removes a node from the list.
async fn take_off(face: &ClusterFace, request: &Request, node: &str) -> Answer {
    let (host, name) = (Arc::clone(&face.host), node.to_owned());
    let forgotten = elsewhere(move || host.node.forget_member(&name)).await?;
    match request.effects.settle(forgotten) {
        Ok(position) => Ok(Response::empty(204).at(position)),
        Err(StepRefusal { error: NodeError::NotFound, .. }) => {
            Err(face.members()?.lack(node).field("node"))
        }
        Err(refused) => Err(refused.into()),
    }
}

fn unknown(node: &str) -> Box<Problem> {
    NODE_NOT_FOUND.because(format!("no node {node:?} has joined")).field("node")
}
