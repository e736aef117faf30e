//! A node of the group: one thread turns the runtime with the library and what is around it, and
//! writes the WAL when nothing else is ready. What it does can be done [by hand](crate::by_hand)
//! instead.
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
    self, Checkpoints, FoundError, GroupWatch, LinkNetworks, Links, LogStore, Machine, Peers,
    ProposalOutcome, Raft, StartError, WalWriter,
};
use crate::members::{
    ChangeOfMembers, MemberAddress, Members, MembersChange, MembersError, may_replace,
};
use crate::message::{Answer, AppendOutcome, Message, Offer, Question};
use crate::plants::{Plant, planted};
use crate::runtime::{Between, HandRuntime, pause, within};
use crate::shared_log::{LeadChoice, RaftLog};
use crate::shared_node::{NOBODY, SharedNode, locked};
use crate::trim::trim;
use crate::wal::{EntryId, Wal};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc as blocking};
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

/// What a node knows of its group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupReport {
    /// The node that orders, as far as this one knows.
    pub orderer: Option<u64>,
    /// The current term.
    pub term: u64,
    /// The last entry that is durable here.
    pub last: EntryId,
    /// The index of the last entry that was delivered here.
    pub applied: u64,
    /// The index of the last entry that was dropped because copies hold it, 0 if there is none.
    pub purged: u64,
    /// Bytes of entries in the WAL.
    pub kept_bytes: u64,
    /// Whether the disk has no room for entries: this node takes no part until it has.
    pub lacks_room: bool,
    /// Whether a copy here may lack what was dropped: others have it, and this node does not count
    /// as one that has. So for some seconds after each start.
    pub lacks_copies: bool,
    /// Frames that this node has proposed.
    pub frames: u64,
    /// Who votes, as the newest entry about members says that is durable here.
    pub voters: BTreeSet<u64>,
    /// Who gets entries and does not vote.
    pub learners: BTreeSet<u64>,
    /// Who they are and where they were when they became members.
    pub addresses: BTreeMap<u64, MemberAddress>,
    /// Whether one set of voters is being replaced by another: both decide. Whoever orders can end
    /// a change that was left, by another one.
    pub is_replacing_voters: bool,
    /// Why nothing is committed here any more, if so: the node has to be started again.
    pub stopped: Option<String>,
}

/// A node of the group, which works until it is dropped.
pub struct RaftNode {
    pub(crate) shared: Arc<SharedNode>,
    pub(crate) runtime: HandRuntime,
    pub(crate) raft: Raft,
    /// Its sender is dropped when nothing is turned any more.
    pub(crate) has_ended: Option<Mutex<blocking::Receiver<()>>>,
}

impl fmt::Debug for RaftNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaftNode").field("node", &self.shared.node).finish_non_exhaustive()
    }
}

impl RaftNode {
    /// Starts a node on its WAL. A node that belongs to no group waits until one is
    /// [founded](Self::found) here, or an orderer writes to it. Blocks for a moment, and must not be
    /// called on the thread of the runtime.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        wal: Wal,
        links: Arc<dyn Links>,
        options: RaftOptions,
    ) -> Result<RaftNode, StartError> {
        let given = options.runtime.clone();
        let (turner, started) = assemble(wal, links, options)?;
        let (shared, runtime) = (Arc::clone(&turner.shared), turner.runtime.clone());
        let (ending, has_ended) = blocking::channel();
        let serving = async move {
            turner.serve().await;
            drop(ending);
        };
        match given {
            Some(given) => drop(given.spawn(serving)),
            None => serve_alone(serving).map_err(StartError::Thread)?,
        }
        match started.blocking_recv().unwrap_or_else(|_| Err(StartError::stopped())) {
            Ok(raft) => {
                let has_ended = Some(Mutex::new(has_ended));
                Ok(RaftNode { shared, runtime, raft, has_ended })
            }
            Err(error) => {
                end(&shared, &runtime);
                Err(error)
            }
        }
    }

    /// The node's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.node
    }

    /// Founds a group of these voters, of which this node is one. Nodes that found the same group
    /// at once found one.
    ///
    /// # Errors
    /// [`FoundError`].
    pub fn found_at(&self, voters: BTreeMap<u64, MemberAddress>) -> Result<(), FoundError> {
        let stopped = || FoundError::Refused("the engine has stopped".to_owned());
        self.begin_founding(voters).blocking_recv().map_err(|_| stopped())?
    }

    pub(crate) fn begin_founding(
        &self,
        voters: BTreeMap<u64, MemberAddress>,
    ) -> oneshot::Receiver<Result<(), FoundError>> {
        let (done, result) = oneshot::channel();
        let raft = self.raft.clone();
        self.runtime.spawn(async move {
            let _ = done.send(group::found(&raft, voters).await);
        });
        result
    }

    /// [`found_at`](Self::found_at) with empty addresses.
    ///
    /// # Errors
    /// [`FoundError`].
    pub fn found(&self, voters: &[u64]) -> Result<(), FoundError> {
        self.found_at(voters.iter().map(|id| (*id, MemberAddress::default())).collect())
    }

    /// Adds a node that gets entries and does not vote. Only where the group is ordered. Does
    /// nothing if it is a member already.
    pub fn add_learner_at(&self, node: u64, at: MemberAddress) -> MembersChange {
        self.change_members(move |_| ChangeOfMembers::AddLearner(node, at))
    }

    /// [`add_learner_at`](Self::add_learner_at) with an empty address.
    pub fn add_learner(&self, node: u64) -> MembersChange {
        self.add_learner_at(node, MemberAddress::default())
    }

    /// Removes a node that does not vote. Only where the group is ordered.
    pub fn remove_learner(&self, node: u64) -> MembersChange {
        self.change_members(move |_| ChangeOfMembers::RemoveLearner(node))
    }

    /// Replaces the voters. Only where the group is ordered. New ones have to be learners, which
    /// should have caught up: until they have, nothing may be committed. Former ones are members
    /// no more; if the orderer is one of them, it stops ordering, and those that stay have to be a
    /// majority without it.
    pub fn change_voters(&self, voters: &[u64]) -> MembersChange {
        let voters = voters.iter().copied().collect();
        self.change_members(move |_| ChangeOfMembers::Voters(voters))
    }

    /// Makes a learner vote. As [`change_voters`](Self::change_voters); ends a change of voters that
    /// was left half-way.
    pub fn promote(&self, node: u64) -> MembersChange {
        self.change_members(move |members| members.with_voter(node))
    }

    /// Removes a member, whether it votes or not. As [`promote`](Self::promote).
    pub fn remove(&self, node: u64) -> MembersChange {
        self.change_members(move |members| members.without(node))
    }

    /// Asks the node that orders to hand that over to this one, which has to vote. Writes wait
    /// meanwhile, for about an election; nothing is lost or doubted. Returns at once; does nothing
    /// if no node orders. If this one lags, or a message is lost, the other goes on: ask again.
    pub fn take_over(&self) {
        let term = self.shared.term.load(Ordering::Acquire);
        let orderer = self.shared.orderer().filter(|orderer| *orderer != self.id());
        if let Some(orderer) = orderer.filter(|_| self.shared.has_room()) {
            self.shared.peers.links.send(orderer, Message::HandOver { term });
            self.shared.peers.links.flush();
        }
    }

    fn change_members(
        &self,
        change: impl FnOnce(&Members) -> ChangeOfMembers + Send + 'static,
    ) -> MembersChange {
        let (done, result) = oneshot::channel();
        let (shared, raft) = (Arc::clone(&self.shared), self.raft.clone());
        self.runtime.spawn(async move {
            // The library would look first whether the members are committed here; and it takes a
            // change from an orderer that the one before has removed, which stops ordering.
            let orderer = shared.orderer();
            let orderer = orderer.filter(|id| locked(&shared.members).votes(*id));
            let change = change(&locked(&shared.members));
            let is_allowed = match &change {
                ChangeOfMembers::Voters(voters) if !voters.is_empty() => {
                    may_replace(&locked(&shared.members), shared.node, voters)
                }
                _ => true,
            };
            let changed = if orderer != Some(shared.node) {
                Err(MembersError::NotOrdering { orderer })
            } else if is_allowed {
                group::change_members(&raft, change).await
            } else {
                Err(MembersError::RemovesOrderer)
            };
            // Nobody may wait for it.
            let _ = done.send(changed);
        });
        MembersChange(result)
    }

    /// Takes a message from another node.
    pub fn arrived(&self, from: u64, message: Message) {
        // Only a node that has stopped takes none.
        let _ = self.shared.inbox.send((from, message));
    }

    /// A log over the group. It replaces an earlier connection of the same log.
    #[must_use]
    pub fn connect(&self, log: &str, lead: LeadChoice) -> RaftLog {
        RaftLog::new(Arc::clone(&self.shared), log, lead)
    }

    /// The log of this name is gone for ever: its entries hold nothing back.
    pub fn forget(&self, log: &str) {
        self.shared.delivery.forget(log);
    }

    /// What this node knows of its group.
    #[must_use]
    pub fn report(&self) -> GroupReport {
        let shared = &self.shared;
        let members = locked(&shared.members);
        GroupReport {
            orderer: shared.orderer(),
            term: shared.term.load(Ordering::Acquire),
            last: shared.reader.last(),
            applied: shared.delivery.applied_index(),
            purged: shared.reader.purged().index,
            kept_bytes: shared.reader.kept_bytes(),
            lacks_room: shared.lacks_room.load(Ordering::Acquire),
            lacks_copies: shared.delivery.lacks_copies(),
            frames: shared.frames.load(Ordering::Relaxed),
            voters: members.all_voters(),
            learners: members.learners.clone(),
            addresses: members.addresses.clone(),
            is_replacing_voters: members.voters.len() > 1,
            stopped: shared.delivery.ended(),
        }
    }
}

impl Drop for RaftNode {
    fn drop(&mut self) {
        end(&self.shared, &self.runtime);
        let is_turned_here = self.shared.thread.get() == Some(&thread::current().id());
        if let Some(has_ended) = self.has_ended.take().filter(|_| !is_turned_here) {
            let _ = locked(&has_ended).recv();
        }
    }
}

/// Has a node end, soon.
fn end(shared: &SharedNode, runtime: &HandRuntime) {
    shared.is_ending.store(true, Ordering::Release);
    // So that it looks.
    runtime.spawn(async {});
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
    async fn serve(mut self) {
        let _ = self.shared.thread.set(thread::current().id());
        let (runtime, shared) = (self.runtime.clone(), Arc::clone(&self.shared));
        let between = || {
            // Only now: what was committed has been told here before others hear of it, and what
            // goes to one node goes at once.
            shared.peers.links.flush();
            if shared.is_ending.load(Ordering::Acquire) {
                Between::Ended
            } else if self.writer.work() {
                Between::Worked
            } else {
                Between::Idle
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
fn serve_alone(serving: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
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
