//! Founding a group, and joining one: what `wellspring cluster init` and `join` ask a node to do.
//!
//! A founding counts on a node once it has accepted it, durably and only one ever. It begins once
//! all have accepted: so of two at once at most one begins anywhere. They are asked in the order of
//! their URLs, and of two foundings of the same nodes the second one stops at the first node.
//! Repeated, a founding goes on where it stopped, and tells all nodes where each is by now.

use super::group::{Founding, GroupError, GroupMember, GroupStage, GroupState, MemberEntry};
use super::{Cluster, PeerAnswer, PeerRequest};
use crate::random;
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::Mutex;
use wellspring_client::endpoint::Endpoint;
use wellspring_types::hex;

/// Largest body of a request of this kind, in bytes.
pub const MAX_BODY_BYTES: usize = 64 << 10;
/// Most nodes that found a group.
const MAX_NODES: usize = 9;
/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Entries of the group that a learner may lack when it begins to vote.
const MOST_BEHIND: u64 = 100;

/// Where a node describes itself as a member.
pub const MEMBER_PATH: &str = "/v1/cluster/member";
/// Where a node founds a group with others.
pub const INIT_PATH: &str = "/v1/cluster/init";
/// Where a node is told its group.
pub const FOUND_PATH: &str = "/v1/cluster/found";

/// `POST /v1/cluster/init`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitRequest {
    /// The URLs of all nodes.
    nodes: Vec<String>,
    /// An even number of nodes is intended.
    #[serde(default)]
    even: bool,
}

/// `POST /v1/cluster/join`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The URL of the node that joins.
    node: String,
    /// It does not vote.
    #[serde(default)]
    learner: bool,
    /// It takes the place of the member of its name, which is lost.
    #[serde(default)]
    replace: bool,
}

/// `POST /v1/cluster/found`, from node to node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundRequest {
    founding: Founding,
    /// All have accepted it.
    begin: bool,
}

/// `GET /v1/cluster/member`, for nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberDocument {
    node: String,
    url: String,
    stage: GroupStage,
    applied_index: u64,
    /// The newest entry that it has which makes it a member, or 0.
    #[serde(default)]
    member_since: u64,
    /// Whether its copies may lack events whose entries were dropped.
    lacks_copies: bool,
    founding: Option<Founding>,
}

/// What became of a request to found or join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Founded {
    cluster: String,
    /// The names of the nodes that founded it, or of the one that joins.
    nodes: Vec<String>,
    /// `founded`, `learner` or `voter`.
    state: &'static str,
    /// Whether nothing was left to do.
    already: bool,
    /// The last entry of the group that the joining node has applied.
    applied_index: Option<u64>,
    /// And the last one of the group.
    last_index: Option<u64>,
}

/// Reads a body.
///
/// # Errors
/// 400, with what is wrong.
pub fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Box<Problem>> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => problem::BAD_REQUEST.because(error.to_string()),
        _ => problem::MALFORMED_JSON.because(error.to_string()),
    })
}

fn json<'a, T: Deserialize<'a>>(url: &str, answer: &'a PeerAnswer) -> Result<T, Box<Problem>> {
    if answer.status != 200 {
        let detail = format!("{url} answered {}: {}", answer.status, answer.detail());
        return Err(match answer.status {
            409 => problem::CLUSTER_FOUNDED.because(detail),
            _ => problem::NODE_UNREACHABLE.because(detail),
        });
    }
    serde_json::from_slice(&answer.content).map_err(|error| {
        problem::NODE_UNREACHABLE.because(format!("{url} sent an unexpected answer: {error}"))
    })
}

impl Cluster {
    async fn ask_member(
        &self,
        url: &str,
        request: &PeerRequest,
    ) -> Result<PeerAnswer, Box<Problem>> {
        let now_us = crate::clock::system().wall_us();
        let answer = self.peers.ask(url, request, PATIENCE, now_us).await;
        answer.map_err(|error| problem::NODE_UNREACHABLE.because(error.to_string()))
    }

    async fn member_at(&self, url: &str) -> Result<MemberDocument, Box<Problem>> {
        json(url, &self.ask_member(url, &PeerRequest::get(MEMBER_PATH)).await?)
    }

    async fn tell_founding(
        &self,
        url: &str,
        request: &FoundRequest,
    ) -> Result<MemberDocument, Box<Problem>> {
        let body = serde_json::to_vec(request).unwrap_or_default();
        let request = PeerRequest::post(FOUND_PATH, Bytes::from(body));
        json(url, &self.ask_member(url, &request).await?)
    }

    /// The group, if the engine is one.
    ///
    /// # Errors
    /// 409: it is another one.
    pub fn group(&self) -> Result<&dyn super::Group, Box<Problem>> {
        self.engine.group().ok_or_else(|| {
            problem::NO_GROUP.because(format!(
                "the journal of this node is {}, whose nodes need neither init nor join",
                self.engine.status().kind
            ))
        })
    }

    /// This node as a member.
    ///
    /// # Errors
    /// 409: there are no members.
    pub fn member(&self) -> Result<MemberDocument, Box<Problem>> {
        let group = self.group()?;
        let state = group.state();
        Ok(MemberDocument {
            node: self.node.to_string(),
            url: self.url.clone(),
            stage: state.stage,
            applied_index: state.applied_index,
            member_since: state.member_since,
            lacks_copies: state.lacks_copies,
            founding: group.founding(),
        })
    }

    /// Carries out what another node asks. Blocks.
    ///
    /// # Errors
    /// 409: this node belongs to another group.
    pub fn found(&self, request: &FoundRequest) -> Result<MemberDocument, Box<Problem>> {
        let group = self.group()?;
        let failed = |error: GroupError| match error {
            GroupError::Belongs { .. } => {
                problem::CLUSTER_FOUNDED.because(format!("{}: {error}", self.node))
            }
            error => problem::INTERNAL.because(error.to_string()),
        };
        group.accept(&request.founding).map_err(failed)?;
        if request.begin {
            group.begin().map_err(failed)?;
        }
        self.member()
    }

    /// Founds a group of these nodes.
    ///
    /// # Errors
    /// Which node does not take part, and why; a repetition goes on.
    pub async fn init(&self, request: &InitRequest) -> Result<Founded, Box<Problem>> {
        self.group()?;
        let urls = checked(request)?;
        let mut nodes = Vec::new();
        for url in &urls {
            nodes.push(self.member_at(url).await?);
        }
        let names: BTreeSet<&str> = nodes.iter().map(|node| &*node.node).collect();
        if names.len() < nodes.len() {
            let detail = "two of these URLs are of the same node, or two nodes have one name";
            return Err(problem::BAD_REQUEST.because(detail).field("nodes"));
        }
        let mut founding = match nodes.iter().find_map(|node| node.founding.clone()) {
            Some(known) => resumed(known, &names)?,
            None => new_founding(&nodes)?,
        };
        for member in &mut founding.members {
            // It may have moved since, and so may all others.
            let node = nodes.iter().find(|node| node.node == member.node);
            node.inspect(|node| member.url.clone_from(&node.url));
        }
        let already = nodes.iter().all(|node| node.stage == GroupStage::Member);
        for begin in [false, true] {
            for node in &nodes {
                let request = FoundRequest { founding: founding.clone(), begin };
                self.tell_founding(&node.url, &request).await?;
            }
        }
        Ok(Founded {
            cluster: founding.cluster,
            nodes: founding.members.into_iter().map(|member| member.node).collect(),
            state: "founded",
            already,
            applied_index: None,
            last_index: None,
        })
    }

    /// Takes the next step of having a node join: accepts it, and has it vote once it has caught
    /// up. To be repeated until it does. Only where the group is ordered.
    ///
    /// # Errors
    /// Why the node does not join.
    pub async fn join(
        self: &std::sync::Arc<Self>,
        request: &JoinRequest,
    ) -> Result<Founded, Box<Problem>> {
        // Two that have one name must not both find it free.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
        let _one = ONE_AT_A_TIME.lock().await;
        let mut state = self.group()?.state();
        let known = self.group()?.founding();
        let (Some(known), GroupStage::Member) = (known, state.stage) else {
            let detail = "this node belongs to no cluster itself";
            return Err(problem::WAITING_FOR_CLUSTER.because(detail));
        };
        let url = url_of(&request.node, "node")?;
        let mut node = self.member_at(&url).await?;
        let refused = |detail: String| problem::CLUSTER_FOUNDED.because(detail).field("node");
        let name = node.node.clone();
        let joining = match &node.founding {
            Some(theirs) => {
                may_go_on(&state, &known, theirs, &node)?;
                theirs.clone()
            }
            None => {
                match state.member(&name) {
                    Some(before) if request.replace && before.reachable => {
                        let at = &before.url;
                        let detail = format!("{name} is not lost: it is reached at {at}");
                        return Err(refused(detail));
                    }
                    Some(_) if request.replace => {
                        self.remove(&name).await?;
                        state = self.group()?.state();
                    }
                    Some(_) => {
                        return Err(refused(format!(
                            "the cluster has a member {name} already, whose data this node does \
                             not have; if that is lost, replace it (--replace), else give this \
                             one another name (--node)"
                        )));
                    }
                    None => {}
                }
                let members = state.members.iter().map(|member| GroupMember {
                    id: member.id,
                    node: member.node.clone(),
                    url: member.url.clone(),
                });
                let own = GroupMember { id: draw_id()?, node: node.node.clone(), url: node.url };
                let (cluster, generation) = (known.cluster.clone(), known.generation);
                let members = members.chain([own]).collect();
                Founding { cluster, generation, entry: MemberEntry::Joins, members }
            }
        };
        let request_of_node = FoundRequest { founding: joining.clone(), begin: true };
        node = self.tell_founding(&url, &request_of_node).await?;
        let own = joining.members.into_iter().find(|member| member.node == node.node);
        let own = own.ok_or_else(|| problem::INTERNAL.because("it is not among the members"))?;
        let is_near = !node.lacks_copies && node.applied_index + MOST_BEHIND >= state.applied_index;
        let before = state.member_with_id(own.id);
        let learner = request.learner;
        let is_due = before.is_none_or(|member| !member.votes && !learner && is_near);
        let (is_member, id) = (before.is_some(), own.id);
        if is_due {
            self.on_group(
                move |group| {
                    if is_member { group.promote(own.id) } else { group.add(&own) }
                },
            )
            .await?;
        }
        let now = self.group()?.state();
        let votes = now.member_with_id(id).is_some_and(|member| member.votes);
        Ok(Founded {
            cluster: known.cluster,
            nodes: vec![node.node],
            state: if votes { "voter" } else { "learner" },
            already: !is_due,
            applied_index: Some(node.applied_index),
            last_index: Some(now.applied_index),
        })
    }
}

/// Whether a node that has accepted to join may go on.
fn may_go_on(
    state: &GroupState,
    known: &Founding,
    theirs: &Founding,
    node: &MemberDocument,
) -> Result<(), Box<Problem>> {
    let name = &node.node;
    let refused = |detail: String| Err(problem::CLUSTER_FOUNDED.because(detail).field("node"));
    if theirs.cluster != known.cluster {
        return refused(format!("{name} belongs to the cluster {}", theirs.cluster));
    }
    if theirs.generation != known.generation {
        return refused(format!("{name} is of generation {} of the cluster", theirs.generation));
    }
    let own = theirs.members.iter().find(|member| member.node == *name);
    let is_member = own.is_some_and(|own| state.member_with_id(own.id).is_some());
    // The others no longer rely on what it acknowledged under its id.
    if node.member_since > 0 && !is_member {
        return refused(format!(
            "{name} was removed from the cluster: it joins again on an empty data folder"
        ));
    }
    if !is_member && state.member(name).is_some() {
        return refused(format!(
            "the cluster has another member {name} meanwhile: start this node on an empty folder, \
             under another name"
        ));
    }
    Ok(())
}

fn url_of(text: &str, field: &str) -> Result<String, Box<Problem>> {
    let url = text.trim_end_matches('/').to_owned();
    let wrong = |error| problem::BAD_REQUEST.because(format!("{text}: {error}")).field(field);
    Endpoint::parse(&url).map(|_| url.clone()).map_err(wrong)
}

/// The URLs, in the order in which all ask.
fn checked(request: &InitRequest) -> Result<Vec<String>, Box<Problem>> {
    let wrong = |detail: String| problem::BAD_REQUEST.because(detail).field("nodes");
    let urls: Result<BTreeSet<String>, _> =
        request.nodes.iter().map(|url| url_of(url, "nodes")).collect();
    let urls = urls?;
    let count = urls.len();
    if count < request.nodes.len() {
        return Err(wrong("a URL is given twice".to_owned()));
    }
    if !(1..=MAX_NODES).contains(&count) {
        return Err(wrong(format!("a cluster is founded by 1 to {MAX_NODES} nodes, not {count}")));
    }
    if count.is_multiple_of(2) && !request.even {
        return Err(wrong(format!(
            "{count} nodes survive no more failures than {}; take an odd number, or ask for an \
             even one (--even)",
            count - 1
        )));
    }
    Ok(urls.into_iter().collect())
}

/// The founding that one of these nodes has accepted before.
fn resumed(known: Founding, names: &BTreeSet<&str>) -> Result<Founding, Box<Problem>> {
    let before: BTreeSet<&str> = known.members.iter().map(|member| &*member.node).collect();
    if known.entry == MemberEntry::Founds && before == *names {
        return Ok(known);
    }
    let members: Vec<&str> = before.into_iter().collect();
    Err(problem::CLUSTER_FOUNDED.because(format!(
        "one of these nodes belongs to the cluster {} of {} already; `wellspring cluster join` \
         adds nodes to it",
        known.cluster,
        members.join(", ")
    )))
}

fn new_founding(nodes: &[MemberDocument]) -> Result<Founding, Box<Problem>> {
    let member = |node: &MemberDocument| {
        Ok(GroupMember { id: draw_id()?, node: node.node.clone(), url: node.url.clone() })
    };
    Ok(Founding {
        cluster: hex::digits(&drawn::<16>()?),
        generation: 1,
        entry: MemberEntry::Founds,
        members: nodes.iter().map(member).collect::<Result<_, Box<Problem>>>()?,
    })
}

fn drawn<const N: usize>() -> Result<[u8; N], Box<Problem>> {
    random::bytes().map_err(|error| problem::INTERNAL.because(error.to_string()))
}

/// Random, not 0, and a number of JSON.
fn draw_id() -> Result<u64, Box<Problem>> {
    Ok((u64::from_le_bytes(drawn()?) >> 11).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(nodes: &[&str], even: bool) -> InitRequest {
        InitRequest { nodes: nodes.iter().map(|&node| node.to_owned()).collect(), even }
    }

    #[test]
    fn an_odd_number_of_different_nodes_founds_a_group() {
        let urls = checked(&request(&["http://b:1", "http://a:1/", "http://c:1"], false)).unwrap();
        assert_eq!(urls, ["http://a:1", "http://b:1", "http://c:1"]);
        for (nodes, even, part) in [
            (&["http://a:1", "http://b:1"][..], false, "--even"),
            (&["http://a:1", "http://a:1"], true, "twice"),
            (&[], false, "1 to 9"),
            (&["nonsense"], false, "nonsense"),
        ] {
            let refused = checked(&request(nodes, even)).unwrap_err();
            assert!(refused.detail.contains(part), "{}", refused.detail);
            assert_eq!(refused.field.as_deref(), Some("nodes"));
        }
        assert!(checked(&request(&["http://a:1", "http://b:1"], true)).is_ok());
    }

    #[test]
    fn a_founding_goes_on_only_with_the_same_nodes() {
        let member = |node: &str| MemberDocument {
            node: node.to_owned(),
            url: format!("http://{node}:1"),
            stage: GroupStage::Waiting,
            applied_index: 0,
            member_since: 0,
            lacks_copies: false,
            founding: None,
        };
        let founding = new_founding(&["a", "b", "c"].map(member)).unwrap();
        let names = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        let again = resumed(founding.clone(), &names(&["a", "b", "c"])).unwrap();
        assert_eq!(again, founding);
        for other in [&["a", "b"][..], &["a", "b", "d"]] {
            assert!(resumed(founding.clone(), &names(other)).is_err());
        }
        let joined = Founding { entry: MemberEntry::Joins, ..founding };
        assert!(resumed(joined, &names(&["a", "b", "c"])).is_err());
    }
}
