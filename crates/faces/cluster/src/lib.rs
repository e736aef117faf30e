//! The nodes of a cluster: their states, and transferring the lead.
//!
//! - `members`: which nodes there are.
//! - `other_nodes`: what the others say, asked all at once.
//! - `document`: that and this node's own description as one answer.
//! - `lead`: this node takes the lead of a log, or gives way to another.
//! - `transfer`: another takes the lead of `system`.
//! - `pins`: which node is to lead a log.
//! - `forget`: a node that is no more comes off the list.
//! - `records`: what another node has accepted is stored here.

#![forbid(unsafe_code)]

mod body;
mod document;
mod forget;
mod lead;
mod members;
mod other_nodes;
mod pins;
mod problems;
mod records;
mod transfer;

use body::MAX_BODY_BYTES;
use bytes::Bytes;
use document::Sight;
use forget::NODE;
use members::Members;
use problems::{NO_CLUSTER, NODE_LEADS, NODE_NOT_FOUND, NODE_UNREACHABLE};
use records::{LOG, PIECE, PIECE_DIGEST, PIECE_INCARNATION};
use std::sync::Arc;
use wellspring_host::access::principal::Verdict;
use wellspring_host::cluster::Cluster;
use wellspring_host::declare::{Role, routes};
use wellspring_host::http::content::{expect_json, expect_json_of_pages};
use wellspring_host::http::contract::{AnsweredBy, SYSTEM_POSITION};
use wellspring_host::http::declared_problems::{APPENDING, READING};
use wellspring_host::http::face::{Face, ServedRoute};
use wellspring_host::http::{Answer, Host, JSON, Request, Response};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::settings::NoSettings;
use wellspring_host::setup::SetupError;
use wellspring_host::wire::effects::Repeat;
use wellspring_host::wire::problem::{self, DETACHED, Kind, LOG_NOT_FOUND, NOT_LEADING, Problem};

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
        POST "/v1/cluster/records/{log}" Node Node records::take:
            "Receives events that another node has accepted, one piece under a key: each piece \
             is stored once, however often it is sent."
            .at(&LOG) .headers[&PIECE, &PIECE_DIGEST, &PIECE_INCARNATION] .takes[(OCTETS, "")] .answered(AnsweredBy::AnyNode)
            .fails[&[&LOG_NOT_FOUND]] => [200 JSON "ClusterPiece"];
    };

    fn open(_: NoSettings, host: &Arc<Host>) -> Result<ClusterFace, SetupError> {
        Ok(ClusterFace { host: Arc::clone(host) })
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
