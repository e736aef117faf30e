//! Streams between nodes: messages of an engine over lasting connections, on the port and with the
//! TLS of everything else.
//!
//! A node dials each other one twice, so that heartbeats never wait behind data. Messages leave by
//! the stream that the other node has dialed; if there is none, by the one that this node has. So a
//! node that has closed its port, as it does before its logs are closed, still answers and is
//! answered. Which bytes are a message is the engine's business.
//!
//! The streams that a node dials, and so what arrives, are on the thread of its engine. That writes
//! messages itself unless a stream is full: between two nodes, only their two threads wake.
//!
//! ```text
//! engine ─ send ─► queue ═ stream ═ exchange ─► sink ─► engine
//! ```

mod dial;
mod exchange;
mod hello;
mod queue;

pub use hello::StreamFault;

use super::{ClusterKey, NodeName};
use crate::protocol::{Protocol, ProtocolConnection};
use crate::setup::SetupError;
use crate::threads;
use bytes::{Bytes, BytesMut};
use exchange::exchange;
use hello::{MAGIC, ReadAhead};
use queue::{Dialer, StreamQueue};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use wellspring_client::trust::Trust;
use wellspring_log::shared::entry::ClusterId;

/// Length of the header of a message, which tells the length of its body.
pub const HEADER_BYTES: usize = 32;
/// Most bytes that wait for a node, of each channel.
const QUEUED_BYTES: [usize; 2] = [4 << 20, 64 << 20];
/// How long a fault is told that does not come again, and how many are.
const REMEMBERED: Duration = Duration::from_secs(30);
const MOST_FAULTS: usize = 32;
/// How long the proofs may take.
const PROOF_PATIENCE: Duration = Duration::from_secs(5);

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Small messages that decide who orders.
    Control = 0,
    /// Data.
    Bulk = 1,
}

impl Channel {
    const ALL: [Channel; 2] = [Channel::Control, Channel::Bulk];

    fn of(byte: u8) -> Option<Channel> {
        Channel::ALL.into_iter().find(|channel| *channel as u8 == byte)
    }
}

/// A node of a group, as it introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamParty {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its generation.
    pub generation: u64,
    /// The node's id in the group.
    pub id: u64,
    /// Its name.
    pub name: NodeName,
    /// Where it can be reached.
    pub url: String,
}

/// Whether a node that dials belongs to the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// As far as this node knows.
    Belongs,
    /// This node does not know yet whether it was removed.
    Undecided,
    /// It was removed.
    Removed,
}

/// The engine, to which messages go.
pub trait StreamSink: Send + Sync {
    /// The newest entry of the group that makes this node a member, 0 if it has none. `None` while
    /// the engine starts: this node dials no other one until then, because a 0 means that it joins.
    fn member_since(&self) -> Option<u64>;

    /// Whether the node with this id belongs to the group; `since`: its
    /// [`member_since`](Self::member_since).
    fn admit(&self, id: u64, since: u64) -> Admission;

    /// Another node has proven that the group goes on without this one.
    fn excluded(&self, why: &str);

    /// Length of the body that belongs to a header; `None` if this is none.
    fn body_bytes(&self, header: &[u8; HEADER_BYTES]) -> Option<usize>;

    /// A message has arrived; whether it was one.
    fn arrived(&self, from: u64, header: &[u8; HEADER_BYTES], body: Bytes) -> bool;
}

/// Where the address of a node is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSource {
    /// The group's members, which may be older than its last start.
    Members,
    /// The node itself.
    Node,
}

/// Another node of the group.
struct Peer {
    id: u64,
    name: NodeName,
    url: Mutex<String>,
    /// Its address has changed.
    moved: [Notify; 2],
    queues: [StreamQueue; 2],
    /// It was removed from the group: its streams end.
    gone: watch::Sender<bool>,
}

impl Peer {
    /// Until it is removed from the group.
    async fn until_gone<T>(&self, doing: impl Future<Output = T>) -> Option<T> {
        let mut gone = self.gone.subscribe();
        tokio::select! {
            done = doing => Some(done),
            _ = gone.wait_for(|gone| *gone) => None,
        }
    }
}

/// Which of two nodes dials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Out,
    In,
}

struct Shared {
    key: Arc<ClusterKey>,
    trust: Trust,
    own: OnceLock<(StreamParty, Arc<dyn StreamSink>)>,
    peers: Mutex<HashMap<u64, Arc<Peer>>>,
    /// What was wrong with a stream to or from a node, and when, by its name.
    faults: Mutex<BTreeMap<(Direction, String), (String, Instant)>>,
    refused: AtomicU64,
    /// Whether messages may wait to be sent.
    is_queued: AtomicBool,
}

/// The streams of a node. They end when this is dropped.
pub struct Streams {
    shared: Arc<Shared>,
    runtime: Handle,
    _stop: oneshot::Sender<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streams {
    /// Streams of a node that belongs to no group yet. `authorities`: as for
    /// [`Peers`](super::Peers).
    ///
    /// # Errors
    /// The system provides no thread.
    pub fn start(
        key: Arc<ClusterKey>,
        authorities: Option<PathBuf>,
    ) -> Result<Arc<Streams>, SetupError> {
        // The engine is a task among those of the streams, which are looked at after each of its
        // barriers.
        let runtime = Builder::new_current_thread().enable_all().event_interval(1).build();
        let runtime = runtime.map_err(|e| format!("cannot start the runtime of streams: {e}"))?;
        let (handle, (stop, stopped)) = (runtime.handle().clone(), oneshot::channel());
        threads::spawn("cluster-streams".to_owned(), move || {
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        let shared = Shared {
            key,
            trust: authorities.map_or_else(Trust::default, Trust::of_authorities),
            own: OnceLock::new(),
            peers: Mutex::default(),
            faults: Mutex::default(),
            refused: AtomicU64::new(0),
            is_queued: AtomicBool::new(false),
        };
        Ok(Arc::new(Streams { shared: Arc::new(shared), runtime: handle, _stop: stop }))
    }

    /// The runtime of the thread of streams, on which the engine may work.
    pub fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// This node belongs to a group now. Only the first call counts.
    pub fn begin(&self, own: StreamParty, sink: Arc<dyn StreamSink>) {
        let _ = self.shared.own.set((own, sink));
    }

    /// Knows where a node is, and dials it from now on.
    pub fn know(&self, id: u64, name: &NodeName, url: &str, source: AddressSource) {
        let _ = know(&self.shared, &self.runtime, (id, name, url), source);
    }

    /// A node was removed from the group: its streams end, and it is not dialed any more.
    pub fn forget(&self, id: u64) {
        if let Some(peer) = lock(&self.shared.peers).remove(&id) {
            peer.gone.send_replace(true);
            lock(&self.shared.faults).retain(|(_, node), _| node != peer.name.as_str());
        }
    }

    /// Queues a message to a node, or drops it. Never blocks.
    pub fn send(&self, to: u64, channel: Channel, message: Bytes) {
        if let Some(peer) = lock(&self.shared.peers).get(&to) {
            peer.queues[channel as usize].push(message);
            self.shared.is_queued.store(true, Ordering::Release);
        }
    }

    /// Sends what is queued. Never blocks.
    pub fn flush(&self) {
        if self.shared.is_queued.swap(false, Ordering::AcqRel) {
            let peers = lock(&self.shared.peers);
            peers.values().flat_map(|peer| &peer.queues).for_each(StreamQueue::flush);
        }
    }

    /// Where a node is, as far as known.
    pub fn address(&self, id: u64) -> Option<String> {
        lock(&self.shared.peers).get(&id).map(|peer| lock(&peer.url).clone())
    }

    /// Whether messages to a node leave.
    pub fn reaches(&self, id: u64) -> bool {
        let peers = lock(&self.shared.peers);
        peers.get(&id).is_some_and(|peer| peer.queues.iter().all(StreamQueue::is_open))
    }

    /// What is wrong with the streams to other nodes, a sentence for each.
    pub fn faults(&self) -> Vec<String> {
        let faults = lock(&self.shared.faults);
        let recent = faults.iter().filter(|(_, (_, at))| at.elapsed() < REMEMBERED);
        recent.map(|((_, node), (why, _))| format!("{node}: {why}")).collect()
    }

    /// Streams that this node has refused, or that others have refused it.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// The protocol of the streams that other nodes dial.
    pub fn protocol(&self) -> Arc<dyn Protocol> {
        let (shared, runtime) = (Arc::clone(&self.shared), self.runtime.clone());
        Arc::new(StreamProtocol { shared, runtime })
    }
}

fn know(
    shared: &Arc<Shared>,
    runtime: &Handle,
    (id, name, url): (u64, &NodeName, &str),
    source: AddressSource,
) -> Option<Arc<Peer>> {
    shared.own.get().filter(|(own, _)| own.id != id)?;
    let mut peers = lock(&shared.peers);
    if let Some(peer) = peers.get(&id) {
        let mut known = lock(&peer.url);
        if source == AddressSource::Node && *known != url {
            tracing::info!(node = %name, url, "a node has another address than before");
            url.clone_into(&mut known);
            peer.moved.iter().for_each(Notify::notify_one);
        }
        drop(known);
        return Some(Arc::clone(peer));
    }
    let peer = Arc::new(Peer {
        id,
        name: name.clone(),
        url: Mutex::new(url.to_owned()),
        moved: Default::default(),
        queues: QUEUED_BYTES.map(StreamQueue::new),
        gone: watch::Sender::new(false),
    });
    peers.insert(id, Arc::clone(&peer));
    for channel in Channel::ALL {
        let (shared, peer) = (Arc::clone(shared), Arc::clone(&peer));
        runtime.spawn(async move {
            peer.until_gone(dial::keep_dialing(&shared, &peer, channel)).await;
        });
    }
    Some(peer)
}

impl Shared {
    /// Remembers what is wrong with a node's streams, and logs what is new.
    fn failed(&self, direction: Direction, node: &str, fault: &StreamFault) {
        if fault.is_refusal() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        let why = fault.to_string();
        if let Some((_, sink)) = self.own.get().filter(|_| fault.excludes_this_node()) {
            sink.excluded(&format!("{node}: {why}"));
        }
        if matches!(fault, StreamFault::Removed { own: false }) {
            // That it still dials is its own trouble.
            return tracing::debug!(node, why, "no stream with a node");
        }
        {
            let mut faults = lock(&self.faults);
            faults.retain(|_, (_, at)| at.elapsed() < REMEMBERED);
            let key = (direction, node.to_owned());
            // Names of strangers are theirs to choose.
            if faults.len() >= MOST_FAULTS && !faults.contains_key(&key) {
                return;
            }
            let before = faults.insert(key, (why.clone(), Instant::now()));
            if before.is_some_and(|(before, _)| before == why) {
                return;
            }
        }
        if fault.is_refusal() {
            tracing::warn!(node, why, "no stream with a node");
        } else {
            tracing::info!(node, why, "no stream with a node");
        }
    }

    fn succeeded(&self, direction: Direction, node: &str) {
        lock(&self.faults).remove(&(direction, node.to_owned()));
    }
}

struct StreamProtocol {
    shared: Arc<Shared>,
    runtime: Handle,
}

impl Protocol for StreamProtocol {
    fn magic(&self) -> &'static [u8] {
        MAGIC
    }

    fn serve(&self, connection: ProtocolConnection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (shared, runtime) = (Arc::clone(&self.shared), self.runtime.clone());
        Box::pin(async move {
            let ProtocolConnection { stream, read, client } = connection;
            let mut stream = ReadAhead { stream, read: BytesMut::from(read) };
            let own = shared.own.get();
            let admit =
                |id, since| own.map_or(Admission::Belongs, |(_, sink)| sink.admit(id, since));
            let (key, party) = (shared.key.nodes(), own.map(|(own, _)| own));
            let accepting = hello::accept(key, party, admit, &mut stream);
            let accepted = tokio::time::timeout(PROOF_PATIENCE, accepting).await;
            let Ok(accepted) = accepted else { return };
            let at = || client.map_or_else(|| "unknown".to_owned(), |client| client.to_string());
            let (channel, party, sink) = match (accepted.outcome, accepted.party, own) {
                (Ok(channel), Some(party), Some((_, sink))) => (channel, party, sink),
                (Err(StreamFault::Io(_) | StreamFault::NoGroup), ..) => return,
                (Err(fault), party, _) => {
                    let name = party.map_or_else(at, |party| format!("{}", party.name));
                    shared.failed(Direction::In, &name, &fault);
                    return;
                }
                (Ok(_), ..) => return,
            };
            let address = (party.id, &party.name, &*party.url);
            shared.succeeded(Direction::In, party.name.as_str());
            let peer = know(&shared, &runtime, address, AddressSource::Node);
            let Some(peer) = peer else { return };
            let queue = &peer.queues[channel as usize];
            let lasting = exchange(stream, &party, queue, Dialer::Other, &**sink);
            if let Some(Err(fault)) = peer.until_gone(lasting).await {
                tracing::debug!(node = %party.name, %fault, "a stream from a node has ended");
                if fault.is_refusal() {
                    shared.failed(Direction::In, party.name.as_str(), &fault);
                }
            }
        })
    }
}
