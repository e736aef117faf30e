//! The nodes of a cluster: their states, and transferring the lead.
//!
//! - `members`: which nodes there are.
//! - `other_nodes`: what the others say, asked all at once.
//! - `document`: that and this node's own description as one answer.
//! - `lead`: this node takes the lead of a log, or gives way to another.
//! - `transfer`: another takes the lead of `system`.
//! - `pins`: which node is to lead a log.
//! - `group`: a group of nodes is founded, and joined.
//! - `forget`: a node that is no more comes off the list, and leaves the group.
//! - `batches`: what the copies here have, for nodes whose copies lack it.
//! - `records`: what another node has accepted is stored here.

#![forbid(unsafe_code)]

mod batches;
mod body;
mod document;
mod forget;
mod group;
mod lead;
mod members;
mod other_nodes;
mod pins;
mod problems;
mod records;
mod transfer;

use batches::{AFTER, JOURNAL_LOG};
use body::MAX_BODY_BYTES;
use bytes::Bytes;
use document::Sight;
use forget::NODE;
use members::Members;
use problems::{NO_CLUSTER, NODE_LEADS, NODE_NOT_FOUND};
use records::{LOG, PIECE, PIECE_DIGEST, PIECE_INCARNATION};
use std::pin::Pin;
use std::sync::Arc;
use wellspring_host::access::principal::Verdict;
use wellspring_host::cluster::{Cluster, Group};
use wellspring_host::declare::{Role, routes};
use wellspring_host::http::content::{expect_json, expect_json_of_pages};
use wellspring_host::http::contract::{AnsweredBy, SYSTEM_POSITION};
use wellspring_host::http::declared_problems::{APPENDING, READING};
use wellspring_host::http::face::{Face, ServedRoute};
use wellspring_host::http::{Answer, Host, JSON, Request, Response};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::protocol::{Protocol, ProtocolConnection};
use wellspring_host::settings::NoSettings;
use wellspring_host::setup::SetupError;
use wellspring_host::wire::effects::Repeat;
use wellspring_host::wire::problem::{
    self, CLUSTER_FOUNDED, DETACHED, Kind, LAST_VOTER, LOG_NOT_FOUND, MEMBERS_CHANGING, NO_GROUP,
    NO_MAJORITY, NODE_UNREACHABLE, NOT_LEADING, Problem, WAITING_FOR_CLUSTER,
};

/// The media type of records.
const OCTETS: &str = "application/octet-stream";

/// The face.
pub struct ClusterFace {
    host: Arc<Host>,
}

impl Face for ClusterFace {
    const NAME: &'static str = "cluster";
    const PROBLEMS: &'static [&'static Kind] = problems::ALL;
    type Settings = NoSettings;
    const ROUTES: &'static [ServedRoute<ClusterFace>] = routes! { |face| face;
        GET "/v1/cluster" Node Account cluster:
            "The nodes of the cluster, the leader, the journal that orders their logs, and the \
             logs of this node."
            .fails[READING] => [200 JSON "Cluster"];
        GET "/v1/cluster/node" Node Node node: "The state of a node, for the other nodes."
            => [200 JSON "ClusterNode"];
        POST "/v1/cluster/lead" Node Node lead::lead:
            "Says which node is to lead a log: that node takes the lead, the one that has it gives way."
            .may_take[(JSON, "ClusterLeadOf")] .answered(AnsweredBy::AnyNode)
            .fails[&[&NO_CLUSTER, &NODE_NOT_FOUND, &NOT_LEADING, &DETACHED]] => [200 JSON "ClusterLead"];
        POST "/v1/cluster/transfer" Node Admin transfer::transfer:
            "Transfers the lead of the log system to the named node, or to a follower that is up to date."
            .may_take[(JSON, "ClusterTransfer")] .answered(AnsweredBy::AnyNode)
            .fails[READING, &[&NO_CLUSTER, &NODE_NOT_FOUND, &NODE_UNREACHABLE, &NOT_LEADING, &DETACHED]]
            => [200 JSON "ClusterLead"];
        PUT "/v1/cluster/leads/{log}" Node Admin pins::put:
            "Pins a log to a node: that node leads it whenever it can."
            .at(&LOG) .takes[(JSON, "ClusterPinTo")] .repeat(Repeat::Safe)
            .fails[APPENDING, &[&NO_CLUSTER, &NODE_NOT_FOUND, &LOG_NOT_FOUND]] => [200 JSON "ClusterPin" + SYSTEM_POSITION];
        DELETE "/v1/cluster/leads/{log}" Node Admin pins::delete:
            "Lifts the pin of a log."
            .at(&LOG) .repeat(Repeat::Safe) .fails[APPENDING, &[&NO_CLUSTER, &LOG_NOT_FOUND]] => [204 + SYSTEM_POSITION];
        DELETE "/v1/cluster/nodes/{node}" Node Admin forget::forget:
            "Removes a node from the list of nodes that have joined. A running node joins \
             again when it starts."
            .at(&NODE) .fails[APPENDING, &[&NO_CLUSTER, &NODE_NOT_FOUND, &NODE_LEADS]] => [204 + SYSTEM_POSITION];
        GET "/v1/cluster/member" Node Node group::member: "This node as a member of the group, for the other nodes."
            .fails[&[&NO_CLUSTER, &NO_GROUP]] => [200 JSON "ClusterMember"];
        POST "/v1/cluster/found" Node Node group::found: "Tells a node the group to which it belongs from now on."
            .takes[(JSON, "ClusterFound")] .answered(AnsweredBy::AnyNode)
            .fails[&[&NO_CLUSTER, &NO_GROUP, &CLUSTER_FOUNDED]] => [200 JSON "ClusterMember"];
        POST "/v1/cluster/init" Node Admin group::init:
            "Founds a cluster of the nodes at these URLs. A node that waits for it answers without credentials."
            .takes[(JSON, "ClusterInit")] .answered(AnsweredBy::AnyNode)
            .fails[&[&NO_CLUSTER, &NO_GROUP, &CLUSTER_FOUNDED, &NODE_UNREACHABLE]] => [200 JSON "ClusterFounded"];
        POST "/v1/cluster/join" Node Admin group::join:
            "Has a node join the cluster, step by step: repeat it until the state is `voter`, or `learner` if that was asked for."
            .takes[(JSON, "ClusterJoin")]
            .fails[&[&NO_CLUSTER, &NO_GROUP, &CLUSTER_FOUNDED, &LAST_VOTER, &NO_MAJORITY, &MEMBERS_CHANGING, &NODE_UNREACHABLE, &NOT_LEADING, &WAITING_FOR_CLUSTER]]
            => [200 JSON "ClusterFounded"];
        POST "/v1/cluster/remove" Node Admin forget::remove:
            "Removes a node from the cluster for good, and from the list of nodes. Repeated, it succeeds."
            .takes[(JSON, "ClusterRemove")]
            .fails[APPENDING, &[&NO_CLUSTER, &NO_GROUP, &NODE_NOT_FOUND, &LAST_VOTER, &NO_MAJORITY, &MEMBERS_CHANGING]]
            => [204 + SYSTEM_POSITION];
        GET "/v1/cluster/batches/{log}" Node Node batches::batches:
            "The batches that the copy of a log on this node has after a place, for a node whose \
             copy lacks them."
            .at(&JOURNAL_LOG) .headers[&AFTER] .answered(AnsweredBy::AnyNode)
            .fails[READING, &[&NO_CLUSTER, &LOG_NOT_FOUND]] => [200 OCTETS ""];
        POST "/v1/cluster/records/{log}" Node Node records::take:
            "Receives events that another node has accepted, one piece under a key: each piece \
             is stored once, however often it is sent."
            .at(&LOG) .headers[&PIECE, &PIECE_DIGEST, &PIECE_INCARNATION] .takes[(OCTETS, "")] .answered(AnsweredBy::AnyNode)
            .fails[&[&LOG_NOT_FOUND]] => [200 JSON "ClusterPiece"];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<ClusterFace, SetupError> {
        Ok(ClusterFace { host: Arc::clone(host) })
    }

    fn protocols(self: &Arc<Self>) -> Vec<Arc<dyn Protocol>> {
        let group = self.host.node.group();
        let streams = |group: &dyn Group| {
            Arc::new(UntilStopped(group.protocol(), Arc::clone(&self.host))) as Arc<dyn Protocol>
        };
        group.map(streams).into_iter().collect()
    }
}

/// The streams of other nodes, for as long as the server runs.
struct UntilStopped(Arc<dyn Protocol>, Arc<Host>);

impl Protocol for UntilStopped {
    fn magic(&self) -> &'static [u8] {
        self.0.magic()
    }

    fn serve(&self, connection: ProtocolConnection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (served, mut stopping) = (self.0.serve(connection), self.1.stopping.clone());
        Box::pin(async move {
            tokio::select! {
                () = served => {}
                _ = stopping.wait_for(|&stopping| stopping) => {}
            }
        })
    }
}

impl ClusterFace {
    /// The cluster of this node.
    ///
    /// # Errors
    /// 409: there is none.
    fn cluster(&self) -> Result<&Arc<Cluster>, Box<Problem>> {
        self.host.node.cluster().ok_or_else(|| {
            problems::NO_CLUSTER.because(
                "this server is not part of a cluster: its logs are its own files; start nodes \
                 with --journal to form one",
            )
        })
    }

    /// The known nodes, by name: those in the log `system`, this one, and the leader.
    ///
    /// # Errors
    /// That log cannot be read.
    fn members(&self) -> Result<Members, Box<Problem>> {
        let node = &self.host.node;
        let mut members = Members::default();
        for member in node.members().map_err(Box::<Problem>::from)? {
            members.know(&member.node, &member.url);
        }
        // What was observed of a node is newer than its announcement, which may arrive late.
        if let Some(leader) = self.host.node.known_leader(SYSTEM_LOG) {
            members.know(&leader.node, &leader.url);
        }
        if let Some(cluster) = node.cluster() {
            members.know(cluster.node.as_str(), &cluster.url);
        }
        Ok(members)
    }
}

/// `GET /v1/cluster`.
async fn cluster(face: Arc<ClusterFace>, request: Box<Request>) -> Answer {
    let own = face.host.node.status();
    let nodes = match face.host.node.cluster() {
        None => Vec::new(),
        Some(_) => other_nodes::ask_all(&face.host, &face.members()?, &own).await,
    };
    let leader = face.host.node.known_leader(SYSTEM_LOG);
    let sight = Sight {
        log: &|log| request.principal.may_read(log),
        troubles: request.principal.may(Role::Operator, None) == Verdict::Allowed,
    };
    let document = document::of(own, leader, nodes, &sight);
    json(&document)
}

/// `GET /v1/cluster/node`.
async fn node(face: Arc<ClusterFace>, _request: Box<Request>) -> Answer {
    json(&face.host.node.status())
}

/// The body, where an empty one means `{}`; a browser page must declare its type.
async fn body_of(request: &mut Request) -> Result<Bytes, Box<Problem>> {
    let body = request.content(MAX_BODY_BYTES).await?;
    let is_nothing = body.iter().all(u8::is_ascii_whitespace);
    if is_nothing { expect_json_of_pages(request) } else { expect_json(request) }?;
    Ok(if is_nothing { Bytes::from_static(b"{}") } else { body })
}

fn json(document: &impl serde::Serialize) -> Answer {
    let text = serde_json::to_vec(document);
    let text = text.map_err(|error| problem::INTERNAL.because(error.to_string()))?;
    Ok(Response::json(200, text))
}
