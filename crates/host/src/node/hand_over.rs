//! Hands events accepted by a follower to the leader: piece by piece, over HTTP.

use super::Node;
use super::entry::Entry;
use super::members::Members;
use super::placement::Placement;
use super::shared::leader_of;
use crate::cluster::{Cluster, node_auth};
use crate::names::SYSTEM_LOG;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wellspring_client::endpoint::Endpoint;
use wellspring_client::{Answer, Client, ClientError, Request};
use wellspring_log::batcher::{HandOver, HandOverOutcome, HandedPiece};
use wellspring_log::{Clock, Log, RequestKey};
use wellspring_types::{Position, hex};

/// The header with the key of a piece.
pub const PIECE: &str = "wellspring-piece";
/// The header with its digest.
pub const PIECE_DIGEST: &str = "wellspring-piece-digest";
/// The header with the incarnation of the log: events accepted for a dropped log must not enter its
/// successor of the same name.
pub const PIECE_INCARNATION: &str = "wellspring-piece-incarnation";
/// How long the leader may take to store a piece. Afterwards its outcome is unknown, and it is sent
/// again.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long this node's copy may take to show a stored piece.
const SHOW_WAIT: Duration = Duration::from_secs(1);

/// The leader's answer for a piece.
#[derive(Debug, Serialize, Deserialize)]
pub struct PieceAnswer {
    /// The outcome.
    pub outcome: PieceOutcome,
    /// The position of its last event, if it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// The reason if it is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The outcome of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PieceOutcome {
    /// It is durable.
    Stored,
    /// Unknown.
    Unknown,
    /// Nothing happened.
    NotTaken,
    /// It will never be accepted.
    Refused,
}

/// The channel from one log's batcher to the leader.
pub(super) struct ToLeader {
    cluster: Arc<Cluster>,
    name: String,
    incarnation: u64,
    log: Log,
    /// The log `system`, unless this is it.
    system: Option<Log>,
    members: Arc<Members>,
    placement: Arc<Placement>,
    clock: Arc<dyn Clock>,
    /// The client of the last node, with its URL.
    client: Option<(String, Client)>,
}

impl ToLeader {
    fn new(node: &Node, cluster: &Arc<Cluster>, name: &str, entry: &Entry) -> ToLeader {
        let shared = node.shared.as_ref();
        ToLeader {
            cluster: Arc::clone(cluster),
            name: name.to_owned(),
            incarnation: entry.incarnation,
            log: entry.log.clone(),
            system: node.get(SYSTEM_LOG),
            members: shared.map(|shared| Arc::clone(&shared.members)).unwrap_or_default(),
            placement: shared.map(|shared| Arc::clone(&shared.placement)).unwrap_or_default(),
            clock: Arc::clone(&node.opening.options.clock),
            client: None,
        }
    }

    fn send(&mut self, url: &str, piece: &HandedPiece<'_>) -> Result<Answer, ClientError> {
        let target = format!("/v1/cluster/records/{}", self.name);
        let now_us = self.clock.wall_us();
        let signature = self.cluster.peers.signature(("POST", &target), None, now_us);
        let incarnation = self.incarnation.to_string();
        let digest = hex::digits(&piece.key.digest);
        let headers = [
            ("Content-Type", "application/octet-stream"),
            (node_auth::HEADER, &*signature),
            (PIECE, &*piece.key.key),
            (PIECE_DIGEST, &*digest),
            (PIECE_INCARNATION, &*incarnation),
        ];
        let request =
            Request { method: "POST", path: &target, headers: &headers, body: Some(piece.records) };
        self.client(url)?.call(&request)
    }

    fn client(&mut self, url: &str) -> Result<&mut Client, ClientError> {
        let known = self.client.take().filter(|(known, _)| known == url);
        let made = match known {
            Some((_, client)) => client,
            None => {
                let no_way = |error| ClientError::Connect { address: url.to_owned(), error };
                let endpoint = Endpoint::parse(url);
                let endpoint = endpoint.map_err(|error| no_way(io::Error::other(error)))?;
                let client = Client::new(endpoint, self.cluster.peers.trust());
                let client = client.map_err(|error| no_way(io::Error::other(error)))?;
                client.with_patience(PATIENCE)
            }
        };
        Ok(&mut self.client.insert((url.to_owned(), made)).1)
    }
}

impl HandOver for ToLeader {
    fn hand_over(&mut self, piece: HandedPiece<'_>) -> HandOverOutcome {
        let log = (&*self.name, &self.log);
        let leader = leader_of(log, self.system.as_ref(), &self.members, &self.placement);
        let other = leader.filter(|leader| !self.cluster.is_at(&leader.node, &leader.url));
        let Some(leader) = other else { return HandOverOutcome::NotTaken };
        let answer = match self.send(&leader.url, &piece) {
            Ok(answer) => answer,
            Err(ClientError::Connect { .. } | ClientError::Tls { .. }) => {
                return HandOverOutcome::NotTaken;
            }
            Err(error) => {
                tracing::debug!(%error, "the outcome of handed-over events is not known yet");
                self.client = None;
                return HandOverOutcome::Unknown;
            }
        };
        let told = serde_json::from_slice::<PieceAnswer>(&answer.body);
        match (answer.head.status, told) {
            (200, Ok(told)) => self.outcome(told),
            // Refused before its content was examined: the node is stopping, or has another key.
            (400..=499 | 503, _) => {
                let status = answer.head.status;
                tracing::debug!(status, "the leader did not accept the handed-over events");
                HandOverOutcome::NotTaken
            }
            _ => HandOverOutcome::Unknown,
        }
    }
}

impl ToLeader {
    fn outcome(&self, told: PieceAnswer) -> HandOverOutcome {
        match told.outcome {
            PieceOutcome::Stored => {
                // Clients that wait for it read it here.
                if let Some(position) = told.position.filter(|position| self.log.head() < *position)
                {
                    self.cluster.engine.nudge();
                    self.log.feed().wait_past(position - 1, SHOW_WAIT);
                }
                HandOverOutcome::Stored
            }
            PieceOutcome::Unknown => HandOverOutcome::Unknown,
            PieceOutcome::NotTaken => HandOverOutcome::NotTaken,
            PieceOutcome::Refused => HandOverOutcome::Refused(told.reason.unwrap_or_default()),
        }
    }
}

impl Entry {
    /// Starts the batcher in front of the log.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(super) fn start_batcher(
        &self,
        name: &str,
        node: &Node,
    ) -> std::io::Result<wellspring_log::batcher::Batcher> {
        match node.cluster() {
            None => self.log.batcher(node.batching),
            Some(cluster) => {
                let to_leader = ToLeader::new(node, cluster, name, self);
                self.log.batcher_handing_over(node.batching, Box::new(to_leader))
            }
        }
    }
}

impl PieceAnswer {
    /// The result of accepting a piece.
    #[must_use]
    pub fn of(
        taken: &Result<wellspring_log::Appended, wellspring_log::AppendError>,
    ) -> PieceAnswer {
        let reason = taken.as_ref().err().map(ToString::to_string);
        let position = taken.as_ref().ok().map(|appended| appended.last);
        let outcome = match HandOverOutcome::of(taken) {
            HandOverOutcome::Stored => PieceOutcome::Stored,
            HandOverOutcome::Unknown => PieceOutcome::Unknown,
            HandOverOutcome::NotTaken => PieceOutcome::NotTaken,
            HandOverOutcome::Refused(_) => PieceOutcome::Refused,
        };
        PieceAnswer { outcome, position, reason }
    }
}

/// The key of a piece from its headers.
#[must_use]
pub fn piece_key(key: &str, digest: &str) -> Option<RequestKey> {
    let digest = hex::read(digest)?;
    (!key.is_empty()).then(|| RequestKey { key: key.to_owned(), digest })
}
