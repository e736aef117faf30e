//! The library's network over links: a question that travels, and its answer.

use super::{Types, entry_id, log_id, raft_vote, vote_of, wal_entries};
use crate::checkpoint::Checkpoint;
use crate::members::MemberAddress;
use crate::message::{Answer, AppendOutcome, Message, Question};
use crate::plants::{Plant, planted};
use crate::runtime::within;
use openraft::error::{
    Fatal, InstallSnapshotError, NetworkError, RPCError, RaftError, ReplicationClosed,
    StreamingError,
};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RaftNetwork, RaftNetworkFactory, Snapshot};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the answer to a checkpoint is waited for: the receiver writes it to its disk.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The links of a node to the others. Messages may be lost, doubled, delayed and reordered.
pub trait Links: Send + Sync + 'static {
    /// Sends a message to a node with the next [flush](Self::flush), or drops it. Never blocks.
    fn send(&self, to: u64, message: Message);

    /// Sends what waits. Never blocks.
    fn flush(&self) {}

    /// These are the members now, and where they were when they became members.
    fn members_are(&self, _members: &BTreeMap<u64, MemberAddress>) {}
}

/// Asks other nodes.
pub(crate) struct Peers {
    pub(crate) links: Arc<dyn Links>,
    open: Mutex<OpenRequests>,
}

#[derive(Default)]
struct OpenRequests {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
}

/// A request; its entry is removed when the caller stops waiting.
struct OpenRequest<'a>(&'a Peers, u64);

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.open().waiting.remove(&self.1);
    }
}

impl Peers {
    /// `first`: requests of the process have greater numbers, so that answers to an earlier one
    /// are not taken for theirs.
    pub(crate) fn new(links: Arc<dyn Links>, first: u64) -> Peers {
        let open = OpenRequests { last: first, ..OpenRequests::default() };
        Peers { links, open: Mutex::new(open) }
    }

    fn open(&self) -> MutexGuard<'_, OpenRequests> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a node. It may never answer.
    pub(crate) async fn ask(&self, node: u64, question: Question) -> Option<Answer> {
        let (sender, receiver) = oneshot::channel();
        let request = {
            let mut open = self.open();
            open.last = open.last.wrapping_add(1);
            let is_old = planted(Plant::OldRound) && question == Question::End;
            let request = if is_old { 0 } else { open.last };
            open.waiting.insert(request, sender);
            request
        };
        let _open = OpenRequest(self, request);
        self.links.send(node, Message::Ask { request, question });
        receiver.await.ok()
    }

    /// An answer has arrived.
    pub(crate) fn answered(&self, request: u64, answer: Answer) {
        let waiting = self.open().waiting.remove(&request);
        // Nobody waits for the second of two, or for a late one.
        waiting.map(|waiting| waiting.send(answer));
    }
}

/// Makes the library's connections.
pub(crate) struct LinkNetworks(pub(crate) Arc<Peers>);

impl RaftNetworkFactory<Types> for LinkNetworks {
    type Network = LinkNetwork;

    async fn new_client(&mut self, node: u64, _: &MemberAddress) -> LinkNetwork {
        LinkNetwork { peers: Arc::clone(&self.0), node }
    }
}

/// The library's connection to one node.
pub(crate) struct LinkNetwork {
    peers: Arc<Peers>,
    node: u64,
}

type AskError<E = openraft::error::Infallible> = RPCError<u64, MemberAddress, RaftError<u64, E>>;

fn no_answer<E: std::error::Error>() -> AskError<E> {
    NetworkError::new(&io::Error::other("no usable answer")).into()
}

impl RaftNetwork<Types> for LinkNetwork {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, AskError> {
        let question = Question::Append {
            vote: vote_of(&request.vote),
            before: entry_id(request.prev_log_id),
            entries: wal_entries(request.entries),
            committed: entry_id(request.leader_commit),
        };
        match self.peers.ask(self.node, question).await {
            Some(Answer::Appended(outcome)) => Ok(match outcome {
                AppendOutcome::Appended => AppendEntriesResponse::Success,
                AppendOutcome::AppendedUpTo(id) => {
                    AppendEntriesResponse::PartialSuccess(log_id(id))
                }
                AppendOutcome::Conflict => AppendEntriesResponse::Conflict,
                AppendOutcome::LaterVote(vote) => {
                    AppendEntriesResponse::HigherVote(raft_vote(vote))
                }
            }),
            _ => Err(no_answer()),
        }
    }

    async fn install_snapshot(
        &mut self,
        _: InstallSnapshotRequest<Types>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, AskError<InstallSnapshotError>> {
        Err(no_answer())
    }

    async fn full_snapshot(
        &mut self,
        vote: openraft::Vote<u64>,
        snapshot: Snapshot<Types>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<u64>, StreamingError<Types, Fatal<u64>>> {
        let checkpoint = snapshot.snapshot.into_inner().into();
        let question = Question::Install { vote: vote_of(&vote), checkpoint };
        match within(INSTALL_TIMEOUT, self.peers.ask(self.node, question)).await {
            Ok(Some(Answer::Installed(vote))) => Ok(SnapshotResponse::new(raft_vote(vote))),
            // `Unreachable` would have the library wait at random.
            _ => Err(NetworkError::new(&io::Error::other("no usable answer")).into()),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _: RPCOption,
    ) -> Result<VoteResponse<u64>, AskError> {
        let (vote, last) = (vote_of(&request.vote), entry_id(request.last_log_id));
        match self.peers.ask(self.node, Question::Elect { vote, last }).await {
            Some(Answer::Elected { vote, is_granted, last }) => {
                Ok(VoteResponse::new(raft_vote(vote), log_id(last), is_granted))
            }
            _ => Err(no_answer()),
        }
    }
}

/// Answers what the library of another node asks; `None` if it has stopped here.
pub(crate) async fn answer(raft: &super::Raft, question: Question) -> Option<Answer> {
    match question {
        Question::Append { vote, before, entries, committed } => {
            let request = AppendEntriesRequest::<Types> {
                vote: raft_vote(vote),
                prev_log_id: log_id(before),
                entries: super::raft_entries(entries).ok()?,
                leader_commit: log_id(committed),
            };
            let outcome = match raft.append_entries(request).await.ok()? {
                AppendEntriesResponse::Success => AppendOutcome::Appended,
                AppendEntriesResponse::PartialSuccess(id) => {
                    AppendOutcome::AppendedUpTo(entry_id(id))
                }
                AppendEntriesResponse::Conflict => AppendOutcome::Conflict,
                AppendEntriesResponse::HigherVote(vote) => AppendOutcome::LaterVote(vote_of(&vote)),
            };
            Some(Answer::Appended(outcome))
        }
        Question::Elect { vote, last } => {
            let request = VoteRequest::new(raft_vote(vote), log_id(last));
            let VoteResponse { vote, vote_granted: is_granted, last_log_id } =
                raft.vote(request).await.ok()?;
            Some(Answer::Elected { vote: vote_of(&vote), is_granted, last: entry_id(last_log_id) })
        }
        Question::Install { vote, checkpoint } => {
            let snapshot = super::machine::snapshot_of(&Checkpoint::decode(checkpoint)?).ok()?;
            let installed = raft.install_full_snapshot(raft_vote(vote), snapshot).await.ok()?;
            Some(Answer::Installed(vote_of(&installed.vote)))
        }
        Question::End => Some(Answer::End(confirmed_end(raft).await)),
        Question::WouldElect { .. } => unreachable!("the elector answers it"),
    }
}

/// The index of the last committed entry, if a majority confirms after this call that this node
/// orders.
pub(crate) async fn confirmed_end(raft: &super::Raft) -> Option<u64> {
    if planted(Plant::EndUnconfirmed) {
        return Some(entry_id(raft.metrics().borrow().last_applied).index);
    }
    let (read, _) = raft.get_read_log_id().await.ok()?;
    Some(entry_id(read).index)
}
