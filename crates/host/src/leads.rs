//! Who leads a log, among the nodes: this node takes or gives up the lead at the request of
//! another, asks others to take it, and carries out what [placement](crate::node) has decided.

use crate::cluster::{Cluster, PeerError, PeerRequest};
use crate::http::Host;
use crate::http::work::elsewhere;
use crate::names::SYSTEM_LOG;
use crate::node::placement::CLAIM_AGAIN;
use crate::node::placement::policy::Move;
use crate::node::status::NodeStatus;
use crate::node::{Member, Node};
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use wellspring_log::Role;

/// Time between two checks of roles, in case a change is missed.
const LOOK: Duration = Duration::from_millis(10);
/// Longest time between two questions to the other nodes.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Time for the round trip, apart from what the other node waits for.
const WAY: Duration = Duration::from_secs(3);
/// How long a node that gives up a lead may take to notice it.
const GIVES_UP_WITHIN: Duration = Duration::from_millis(100);
/// Total time in which other nodes take the leads of one that stops.
const HANDS_OVER_WITHIN: Duration = Duration::from_secs(5);
/// How long one node may take to lead `system` in place of one that stops.
const STOPPING_WAIT: Duration = Duration::from_secs(2);

/// The leader of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderNode {
    /// Its name.
    pub node: String,
    /// Its URL.
    pub url: String,
    /// The epoch.
    pub epoch: u64,
    /// Whether it led before the request.
    #[serde(default)]
    pub already: bool,
}

/// Why another node does not lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLead {
    /// It cannot be reached, or is another node.
    NotReached(String),
    /// It refuses.
    Refused(String),
}

/// Why a node does not describe itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoStatus {
    /// No connection could be made: nothing listens at its address, or there is no way to it.
    NotConnected(String),
    /// It does not answer in time, or as a node of the cluster would.
    Other(String),
}

impl fmt::Display for NoStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (NoStatus::NotConnected(why) | NoStatus::Other(why)) = self;
        f.write_str(why)
    }
}

impl From<PeerError> for NoStatus {
    fn from(error: PeerError) -> NoStatus {
        match error {
            PeerError::NotSent(why) => NoStatus::NotConnected(why),
            PeerError::Unknown(why) => NoStatus::Other(why),
        }
    }
}

/// Asks another node for its description.
///
/// # Errors
/// [`NoStatus`]: it does not answer, or the address belongs to another node.
pub async fn status_of(
    cluster: &Cluster,
    (node, url): (&str, &str),
    patience: Duration,
    now_us: u64,
) -> Result<NodeStatus, NoStatus> {
    let request = PeerRequest::get("/v1/cluster/node");
    let answer = cluster.peers.ask(url, &request, patience, now_us).await?;
    if answer.status != 200 {
        return Err(NoStatus::Other(format!(
            "{url} answered {}: {}",
            answer.status,
            answer.detail()
        )));
    }
    let status: NodeStatus = serde_json::from_slice(&answer.content)
        .map_err(|error| NoStatus::Other(format!("{url} sent an unexpected answer: {error}")))?;
    match &status.node {
        Some(name) if name == node => Ok(status),
        Some(other) => Err(NoStatus::Other(format!("{url} is the node {other}"))),
        None => Err(NoStatus::Other(format!("{url} is not part of a cluster"))),
    }
}

/// Has this node lead a log: it claims, and asks the one that leads to give way.
///
/// # Errors
/// 503: it does not lead within the time that a write waits for a leader; its copy is detached.
pub async fn take(
    host: &Arc<Host>,
    cluster: &Arc<Cluster>,
    log: &str,
) -> Result<LeaderNode, Box<Problem>> {
    let role = |host: &Host| host.node.get(log).map(|log| log.role());
    let already = role(host).is_some_and(|role| role.leads());
    if log != SYSTEM_LOG && !already {
        if let Some(placement) = host.node.placement() {
            placement.name(log, cluster.node.as_str());
        }
        // Meanwhile this node claims: the other one may not live.
        tokio::spawn(ask_to_give_way(Arc::clone(host), Arc::clone(cluster), log.to_owned()));
    }
    let (node, name) = (Arc::clone(&host.node), log.to_owned());
    let patience = cluster.leader_wait.max(cluster.lead_timeout);
    let epoch = elsewhere(move || claim_until_led(&node, &name, patience)).await??;
    if !already {
        tracing::info!(log, node = %cluster.node, epoch, "took the lead on request");
    }
    Ok(LeaderNode { node: cluster.node.to_string(), url: cluster.url.clone(), epoch, already })
}

async fn ask_to_give_way(host: Arc<Host>, cluster: Arc<Cluster>, log: String) {
    let leader = host.node.get(&log).and_then(|known| host.node.leader_of(&log, &known));
    let other = leader.filter(|leader| !cluster.is_at(&leader.node, &leader.url));
    let Some(other) = other else { return };
    let request = lead_request(cluster.node.as_str(), &log);
    let asked = cluster.peers.ask(&other.url, &request, cluster.lead_timeout, host.wall_us()).await;
    if let Err(error) = asked {
        tracing::debug!(log, leader = other.node, %error, "the leader was not asked to give way");
    }
}

/// Gives up the lead of a log in favour of another node, and knows from now on where it goes.
pub async fn give_way(host: &Arc<Host>, log: &str, to: &str) {
    if let Some(placement) = host.node.placement() {
        placement.name(log, to);
    }
    let Some(log) = host.node.get(log).filter(|log| log.role().leads()) else { return };
    log.resign();
    let deadline = Instant::now() + GIVES_UP_WITHIN;
    while log.role().leads() && Instant::now() < deadline {
        let changes = log.role_changes();
        let seen = changes.head();
        if log.role().leads() {
            let _ = timeout_at(deadline.min(Instant::now() + LOOK), changes.past(seen)).await;
        }
    }
}

/// Claims and waits; the epoch. The node that orders leads `system`, where nodes order themselves:
/// so this one takes that over. Blocks.
fn claim_until_led(node: &Node, name: &str, patience: Duration) -> Result<u64, Box<Problem>> {
    let begun = Instant::now();
    let mut claimed: Option<Instant> = None;
    loop {
        let log = node.get(name);
        let role = log.as_ref().map(|log| log.role());
        let why = match &role {
            Some(Role::Leading { epoch }) => return Ok(*epoch),
            Some(Role::Detached { reason }) => {
                let detail = format!("the copy of {name} on this node is detached: {reason}");
                return Err(problem::DETACHED.because(detail));
            }
            Some(role) => format!("it is {}", role.name()),
            None => "it does not have that log".to_owned(),
        };
        if begun.elapsed() >= patience {
            let waited = patience.as_millis();
            let detail =
                format!("this node was asked to lead {name} but does not after {waited} ms: {why}");
            return Err(problem::NOT_LEADING.because(detail));
        }
        let Some(log) = log else {
            std::thread::sleep(LOOK);
            continue;
        };
        let seen = log.role_changes().head();
        let is_due = claimed.is_none_or(|at| at.elapsed() >= CLAIM_AGAIN);
        if is_due && matches!(role, Some(Role::Following { .. })) {
            match node.group().filter(|_| name == SYSTEM_LOG) {
                Some(group) => group.take_over().map_err(|error| {
                    problem::NOT_LEADING.because(format!("this node cannot lead {name}: {error}"))
                })?,
                None => log.claim_lead(),
            }
            claimed = Some(Instant::now());
        }
        log.role_changes().wait_past(seen, LOOK);
    }
}

fn lead_request(node: &str, log: &str) -> PeerRequest {
    // An address may have passed to another node, which must not lead in this one's place.
    let content = match log {
        // As earlier versions know it.
        SYSTEM_LOG => serde_json::json!({ "node": node }),
        _ => serde_json::json!({ "node": node, "log": log }),
    };
    PeerRequest::post("/v1/cluster/lead", Bytes::from(content.to_string()))
}

/// Asks another node to lead a log.
///
/// # Errors
/// [`NoLead`].
pub async fn ask_to_lead(
    host: &Host,
    cluster: &Cluster,
    (node, url): (&str, &str),
    log: &str,
    patience: Duration,
) -> Result<LeaderNode, NoLead> {
    let not_reached = |why: &dyn fmt::Display| NoLead::NotReached(format!("{node}: {why}"));
    let request = lead_request(node, log);
    let answer = cluster.peers.ask(url, &request, patience, host.wall_us()).await;
    let answer = answer.map_err(|error| not_reached(&error))?;
    if answer.status != 200 {
        let detail = format!("{node} does not lead: {}", answer.detail());
        return Err(match answer.status {
            404 => NoLead::NotReached(detail),
            _ => NoLead::Refused(detail),
        });
    }
    serde_json::from_slice(&answer.content).map_err(|error| not_reached(&error))
}

/// How long another node may take to lead.
pub fn patience(cluster: &Cluster) -> Duration {
    cluster.leader_wait.max(cluster.lead_timeout) + WAY
}

/// Has others lead what this node leads, because it is about to stop: clients need not wait for its
/// silence to be noticed. The leader of `system` hands that over, and its successor finds that this
/// node takes no leads.
pub(crate) async fn hand_over(host: &Host) {
    let (Some(cluster), Some(placement)) = (host.node.cluster(), host.node.placement()) else {
        return;
    };
    placement.leave();
    let leads = |log: &str| host.node.get(log).is_some_and(|log| log.role().leads());
    let deadline = Instant::now() + HANDS_OVER_WITHIN;
    let handing = async {
        for member in others(host, cluster) {
            if !leads(SYSTEM_LOG) {
                break;
            }
            let at = (&*member.node, &*member.url);
            match ask_to_lead(host, cluster, at, SYSTEM_LOG, STOPPING_WAIT).await {
                Ok(_) => tracing::info!(to = member.node, "handed over the log system"),
                Err(why) => tracing::warn!(to = member.node, ?why, "cannot hand over"),
            }
        }
        let led = || host.node.all().into_iter().any(|(_, log)| log.role().leads());
        while !leads(SYSTEM_LOG) && led() {
            sleep(LOOK).await;
        }
    };
    if timeout_at(deadline, handing).await.is_err() {
        let waited = HANDS_OVER_WITHIN.as_secs();
        tracing::warn!("other nodes did not take all leads within {waited} s");
    }
}

fn others(host: &Host, cluster: &Cluster) -> Vec<Member> {
    let members = host.node.members().unwrap_or_else(|error| {
        tracing::warn!("the nodes are not known: {error}");
        Vec::new()
    });
    members.into_iter().filter(|member| member.node != cluster.node.as_str()).collect()
}

/// Serves placement while the server runs. Call it within a runtime.
pub(crate) fn start(host: &Arc<Host>) {
    let (Some(cluster), Some(placement)) = (host.node.cluster(), host.node.placement()) else {
        return;
    };
    if let Some(moves) = placement.take_moves() {
        tokio::spawn(carry_out(Arc::clone(host), Arc::clone(cluster), moves));
        tokio::spawn(keep_asking(Arc::clone(host), Arc::clone(cluster)));
    }
}

/// Carries out moves, each as it comes.
async fn carry_out(host: Arc<Host>, cluster: Arc<Cluster>, mut moves: UnboundedReceiver<Move>) {
    while let Some(due) = moves.recv().await {
        let (host, cluster) = (Arc::clone(&host), Arc::clone(&cluster));
        tokio::spawn(async move {
            let outcome = carry_out_one(&host, &cluster, &due).await;
            if let Err(NoLead::NotReached(why) | NoLead::Refused(why)) = &outcome {
                tracing::warn!(log = due.log, to = due.to, "the lead was not taken: {why}");
            }
            if let Some(placement) = host.node.placement() {
                placement.settled(&due, outcome.ok().map(|leader| leader.epoch));
            }
        });
    }
}

async fn carry_out_one(
    host: &Arc<Host>,
    cluster: &Arc<Cluster>,
    due: &Move,
) -> Result<LeaderNode, NoLead> {
    if due.to == cluster.node.as_str() {
        let taken = take(host, cluster, &due.log).await;
        return taken.map_err(|problem| NoLead::Refused(problem.detail));
    }
    let member = others(host, cluster).into_iter().find(|member| member.node == due.to);
    let Some(member) = member else {
        return Err(NoLead::NotReached(format!("no node {} has joined", due.to)));
    };
    let at = (&*member.node, &*member.url);
    ask_to_lead(host, cluster, at, &due.log, patience(cluster)).await
}

/// Asks the other nodes for their state while this one leads `system`: at once when it begins to,
/// and then several times in a lead timeout.
async fn keep_asking(host: Arc<Host>, cluster: Arc<Cluster>) {
    let beat = (cluster.lead_timeout / 4).min(ASK_AGAIN);
    while let Some(system) = host.node.get(SYSTEM_LOG) {
        let (begun, changes) = (Instant::now(), system.role_changes());
        let seen = changes.head();
        if let Role::Leading { epoch } = system.role() {
            let mut asked = JoinSet::new();
            for member in others(&host, &cluster) {
                asked.spawn(ask(Arc::clone(&host), Arc::clone(&cluster), member, beat));
            }
            let mut have_heard = true;
            while let Some(answered) = asked.join_next().await {
                have_heard &= answered.unwrap_or(true);
            }
            if !have_heard {
                // It will have in a moment.
                sleep(LOOK).await;
                continue;
            }
            host.node.placement().inspect(|placement| placement.asked(epoch));
        }
        let moved = timeout_at(begun + beat, changes.past(seen)).await;
        if changes.is_closed() {
            return;
        }
        if matches!(moved, Ok(Err(_))) {
            // It has too many waiters.
            sleep(beat).await;
        }
    }
}

/// Asks a node. Returns false if it has not heard yet that this one leads `system`.
async fn ask(host: Arc<Host>, cluster: Arc<Cluster>, member: Member, patience: Duration) -> bool {
    let at = (&*member.node, &*member.url);
    let status = status_of(&cluster, at, patience, host.wall_us()).await;
    match (status, host.node.placement()) {
        (Ok(status), Some(placement)) => placement.heard_from(&host.node, &status),
        (Err(NoStatus::NotConnected(_)), Some(placement)) => {
            placement.not_connected(&member.node);
            true
        }
        _ => true,
    }
}
