//! What the thread of a node does: it turns the runtime with the library and what is around it, and
//! writes the WAL when nothing else is ready. It can be done [by hand](crate::by_hand) instead.
//!
//! The library waits for each barrier before it does anything else, so a second thread for the WAL
//! would only add two changes of threads to each barrier.

use crate::checkpoint::Checkpoint;
use crate::copy_source::CopySource;
use crate::delivery::Delivery;
use crate::election::{elect, hand_over, stand_for};
use crate::elector::Elector;
use crate::frame;
use crate::group::{
    self, Checkpoints, GroupWatch, LinkNetworks, Links, LogStore, Machine, Peers, ProposalOutcome,
    Raft, StartError, WalWriter,
};
use crate::message::{Answer, AppendOutcome, Message, Offer, Question};
use crate::plants::{Plant, planted};
use crate::runtime::{BetweenTurns, HandRuntime, pause, within};
use crate::shared_node::{NOBODY, SharedNode, locked};
use crate::trim::trim;
use crate::wal::Wal;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, mpsc, oneshot};
use wellspring_log::Clock;
use wellspring_log::shared::OfferOutcome;
/// Time between two questions for the end.
const END_AGAIN: Duration = Duration::from_millis(5);

/// How a node works.
#[derive(Clone)]
pub struct RaftOptions {
    /// How long a silent orderer is waited for at least; at most twice that. At least 20 ms, and
    /// several times the longest round trip and barrier.
    pub patience: Duration,
    /// Random, other for each process: tells its offers and requests from those of others.
    pub start: u64,
    /// The clock. Only its monotonic time is used.
    pub clock: Arc<dyn Clock>,
    /// Bytes of entries that stay in the WAL although copies hold them, for nodes that were away:
    /// a node that has missed more reads the copies of others.
    pub keep_bytes: u64,
    /// The copies of other nodes.
    pub copies: Arc<dyn CopySource>,
    /// The thread that the node works on, together with its links: no thread is changed between a
    /// message and what it causes. Barriers block it. `None`: a thread of its own.
    pub runtime: Option<Handle>,
}

type Started = oneshot::Receiver<Result<Raft, StartError>>;

/// Assembles the parts of a node; its thread, or the simulator, turns them.
pub(crate) fn assemble(
    wal: Wal,
    links: Arc<dyn Links>,
    options: RaftOptions,
) -> Result<(NodeTurner, Started), StartError> {
    let RaftOptions { patience, start, clock, keep_bytes, copies, .. } = options;
    let checkpoint = wal.checkpoint().map(Checkpoint::decode);
    let is_read = checkpoint.as_ref().is_none_or(Option::is_some);
    let checkpoint = checkpoint.flatten();
    let stands_for = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.id.index);
    if !is_read || stands_for < wal.reader().purged().index {
        return Err(StartError::NoCheckpoint);
    }
    let patience = patience.max(Duration::from_millis(20));
    let node = wal.identity().node_id;
    assert_ne!(node, NOBODY, "an id of a node");
    let (inbox, arrivals) = mpsc::unbounded_channel();
    let now_us = clock.monotonic_us();
    let shared = Arc::new(SharedNode {
        node,
        generation: wal.identity().generation,
        patience,
        delivery: Arc::new(Delivery::new(start, checkpoint.as_ref())),
        reader: wal.reader(),
        full_bytes: frame::FULL_BYTES.min(wal.largest_entry_bytes()),
        peers: Arc::new(Peers::new(links, start)),
        offered: Mutex::default(),
        has_offers: Notify::new(),
        asked: Mutex::default(),
        has_asked: Notify::new(),
        has_copied: Notify::new(),
        copies,
        elector: Mutex::new(Elector::new(patience, start ^ node, now_us)),
        members: Mutex::default(),
        elector_moved: Notify::new(),
        orderer: AtomicU64::new(NOBODY),
        term: AtomicU64::new(wal.vote().term),
        orders: AtomicBool::new(false),
        lacks_room: Arc::default(),
        frames: AtomicU64::new(0),
        inbox,
        is_ending: AtomicBool::new(false),
        thread: OnceLock::new(),
        clock: Arc::clone(&clock),
    });
    let (queue, writer) = WalWriter::new(wal, Arc::clone(&shared.lacks_room));
    let checkpoints = Arc::new(Checkpoints::new(queue.clone(), checkpoint));
    let store = LogStore::new(queue, Arc::clone(&checkpoints), &writer.wal);
    let machine = Machine::new(Arc::clone(&shared.delivery), Arc::clone(&checkpoints));
    let machine = machine.ok_or(StartError::NoCheckpoint)?;
    let runtime = HandRuntime::new(clock);
    let (raft, started) = oneshot::channel();
    let trimming = (checkpoints, keep_bytes);
    let parts = (store, machine, trimming, arrivals);
    runtime.spawn(main(Arc::clone(&shared), runtime.clone(), parts, raft));
    Ok((NodeTurner { runtime, writer, shared }, started))
}

/// Turns the runtime of a node, which ends with it, and writes its WAL.
pub(crate) struct NodeTurner {
    pub(crate) runtime: HandRuntime,
    pub(crate) writer: WalWriter,
    pub(crate) shared: Arc<SharedNode>,
}

impl NodeTurner {
    pub(crate) async fn serve(mut self) {
        let _ = self.shared.thread.set(thread::current().id());
        let (runtime, shared) = (self.runtime.clone(), Arc::clone(&self.shared));
        let between = || {
            // Only now: what was committed has been told here before others hear of it, and what
            // goes to one node goes at once.
            shared.peers.links.flush();
            if shared.is_ending.load(Ordering::Acquire) {
                BetweenTurns::Ended
            } else if self.writer.work() {
                BetweenTurns::Worked
            } else {
                BetweenTurns::Idle
            }
        };
        runtime.serve(between).await;
    }
}

impl Drop for NodeTurner {
    /// Tells all logs that nothing is committed here any more; also if something panicked.
    fn drop(&mut self) {
        self.shared.delivery.end("this node's part of the group has stopped");
        self.runtime.end();
    }
}

#[allow(clippy::disallowed_methods)] // the door for threads
pub(crate) fn serve_alone(serving: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let thread = thread::Builder::new().name("raft-node".to_owned());
    thread.spawn(move || runtime.block_on(serving)).map(drop)
}

/// What the library and the tasks around it take.
type Parts = (LogStore, Machine, (Arc<Checkpoints>, u64), mpsc::UnboundedReceiver<(u64, Message)>);

/// Starts the library and the tasks around it.
async fn main(
    shared: Arc<SharedNode>,
    runtime: HandRuntime,
    parts: Parts,
    started: oneshot::Sender<Result<Raft, StartError>>,
) {
    let (store, machine, (checkpoints, keep_bytes), arrivals) = parts;
    let networks = LinkNetworks(Arc::clone(&shared.peers));
    match group::start(shared.node, shared.patience, networks, store, machine).await {
        Err(error) => drop(started.send(Err(error))),
        Ok(raft) => {
            runtime.spawn(watch(Arc::clone(&shared), raft.clone()));
            runtime.spawn(receive(Arc::clone(&shared), runtime.clone(), raft.clone(), arrivals));
            runtime.spawn(elect(Arc::clone(&shared), runtime.clone(), raft.clone()));
            runtime.spawn(propose(Arc::clone(&shared), runtime.clone(), raft.clone()));
            runtime.spawn(find_ends(Arc::clone(&shared), raft.clone()));
            runtime.spawn(trim(Arc::clone(&shared), raft.clone(), checkpoints, keep_bytes));
            let _ = started.send(Ok(raft));
        }
    }
}

/// Follows what the library knows of the group.
async fn watch(shared: Arc<SharedNode>, raft: Raft) {
    let mut watch = GroupWatch::new(&raft);
    loop {
        let now = watch.now();
        shared.term.store(now.term, Ordering::Release);
        shared.orders.store(now.orders, Ordering::Release);
        let orderer = now.orderer.unwrap_or(NOBODY);
        let orderer_before = shared.orderer.swap(orderer, Ordering::AcqRel);
        let members_before = std::mem::replace(&mut *locked(&shared.members), now.members.clone());
        if members_before != now.members {
            shared.peers.links.members_are(&now.members.addresses);
        }
        if orderer_before != orderer || members_before != now.members {
            shared.has_offers.notify_one();
            shared.elector_moved.notify_one();
        }
        if let Some(why) = now.stopped {
            tracing::error!(node = shared.node, why, "the group's engine has stopped here");
            shared.delivery.end(&format!("the group's engine has stopped here: {why}"));
            return;
        }
        if !watch.changes().await {
            return;
        }
    }
}

/// Takes messages.
async fn receive(
    shared: Arc<SharedNode>,
    runtime: HandRuntime,
    raft: Raft,
    mut arrivals: mpsc::UnboundedReceiver<(u64, Message)>,
) {
    while let Some((from, message)) = arrivals.recv().await {
        match message {
            Message::Answer { request, answer } => shared.peers.answered(request, answer),
            Message::NotOrdering { start, offers } => shared.delivery.refused(start, offers),
            Message::HandOver { term } => {
                runtime.spawn(hand_over(Arc::clone(&shared), raft.clone(), from, term));
            }
            Message::Stand { term } => {
                runtime.spawn(stand_for(Arc::clone(&shared), raft.clone(), term));
            }
            Message::Offers(offers) if shared.is_orderer() => {
                let items = offers.into_iter().map(|Offer(item)| item);
                locked(&shared.offered).items.extend(items);
                shared.has_offers.notify_one();
            }
            Message::Offers(offers) => {
                let mut refused: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
                for Offer(item) in offers {
                    refused.entry(item.start).or_default().push(item.offer);
                }
                for (start, offers) in refused {
                    shared.peers.links.send(from, Message::NotOrdering { start, offers });
                }
            }
            Message::Ask { request, question: Question::WouldElect { last } } => {
                let would = locked(&shared.elector).would_elect(
                    shared.now_us(),
                    last,
                    shared.reader.last(),
                );
                let answer = Answer::WouldElect(would && !shared.is_orderer());
                shared.peers.links.send(from, Message::Answer { request, answer });
            }
            Message::Ask { request, question } => {
                let (shared, raft) = (Arc::clone(&shared), raft.clone());
                runtime.spawn(async move {
                    let is_append = matches!(question, Question::Append { .. });
                    // A node whose engine has stopped does not answer: an immediate error would be
                    // retried immediately.
                    let Some(answer) = group::answer(&raft, question).await else { return };
                    let is_refused =
                        matches!(answer, Answer::Appended(AppendOutcome::LaterVote(_)));
                    if is_append && !is_refused {
                        locked(&shared.elector).hears(shared.now_us());
                    }
                    shared.peers.links.send(from, Message::Answer { request, answer });
                });
            }
        }
    }
}

/// Brings offers to the orderer, or proposes them.
async fn propose(shared: Arc<SharedNode>, runtime: HandRuntime, raft: Raft) {
    loop {
        let wait = shared.patience / 4;
        let _ = within(wait, shared.has_offers.notified()).await;
        let given_up = shared.delivery.give_up(shared.now_us(), shared.patience_us());
        let given_up: BTreeSet<u64> = given_up.into_iter().collect();
        if !given_up.is_empty() {
            locked(&shared.offered).items.retain(|item| !given_up.contains(&item.offer));
        }
        match shared.orderer.load(Ordering::Acquire) {
            NOBODY => {}
            orderer if orderer == shared.node => {
                while let items @ [_, ..] = &shared.next_frame()[..] {
                    shared.delivery.leave(items.iter().map(|item| item.offer));
                    shared.frames.fetch_add(1, Ordering::Relaxed);
                    let proposed = group::propose(&raft, frame::encode(items)).await;
                    let Some(proposal) = proposed else { return };
                    let offers: Vec<u64> = items.iter().map(|item| item.offer).collect();
                    let shared = Arc::clone(&shared);
                    runtime.spawn(async move {
                        if proposal.outcome().await == ProposalOutcome::Unknown {
                            shared.delivery.settle(offers, OfferOutcome::Unknown);
                        }
                        locked(&shared.offered).under_way -= 1;
                        shared.has_offers.notify_one();
                    });
                }
            }
            orderer => {
                while let items @ [_, ..] = &shared.next_offers()[..] {
                    shared.delivery.leave(items.iter().map(|item| item.offer));
                    let offers = items.iter().cloned().map(Offer).collect();
                    shared.peers.links.send(orderer, Message::Offers(offers));
                }
            }
        }
    }
}

/// The index of the last committed entry, confirmed after this call. Repeats the question until the
/// node that orders answers it.
async fn confirmed_end(shared: &SharedNode, raft: &Raft) -> u64 {
    loop {
        let told = match shared.orderer.load(Ordering::Acquire) {
            NOBODY => None,
            orderer if orderer == shared.node => group::confirmed_end(raft).await,
            orderer => {
                let asked = shared.peers.ask(orderer, Question::End);
                match within(shared.patience / 4, asked).await {
                    Ok(Some(Answer::End(index))) => index,
                    _ => None,
                }
            }
        };
        if let Some(index) = told {
            return index;
        }
        // Ordering may be on its way to another node.
        pause(END_AGAIN).await;
    }
}

/// Finds out the end of the order for those who ask; while one question is under way, the next
/// ones gather.
async fn find_ends(shared: Arc<SharedNode>, raft: Raft) {
    loop {
        shared.has_asked.notified().await;
        let mut askers = std::mem::take(&mut *locked(&shared.asked));
        if askers.is_empty() {
            continue;
        }
        let found = within(shared.patience, confirmed_end(&shared, &raft)).await;
        if planted(Plant::EndAfterRound) {
            askers.append(&mut locked(&shared.asked));
        }
        shared.delivery.end_is(askers, found.ok());
    }
}
