//! The nodes themselves as the engine: a Raft group over the streams of the host.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use wellspring_host::cluster::config::NodeIdentity;
use wellspring_host::cluster::copies::CopyReader;
use wellspring_host::cluster::group::{
    Founding, GroupError, GroupMember, GroupStage, MemberEntry, MemberState,
};
use wellspring_host::cluster::streams::{
    AddressSource, Admission, Channel, HEADER_BYTES, StreamParty, StreamSink, Streams,
};
use wellspring_host::cluster::{
    ClusterKey, Engine, EngineReach, EngineStatus, Group, GroupState, LogRows, NodeName, Peers,
};
use wellspring_host::config::HostConfig;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::protocol::Protocol;
use wellspring_host::random;
use wellspring_host::setup::SetupError;
use wellspring_journal_raft::wal::{Identity, Wal, WalOptions};
use wellspring_journal_raft::{
    CopySource, FoundError, GroupReport, LeadChoice, Links, MemberAddress, MembersError, Message,
    RaftNode, RaftOptions, recover,
};
use wellspring_log::SystemClock;
use wellspring_log::inspect::{Holding, holding};
use wellspring_log::shared::{Place, PlacedEntry, SharedLog, SharedLogError};
use wellspring_log::storage::{
    DiskStorage, checked_lines, read_small_file, replace_file, with_check,
};

/// The founding that the node has accepted, in the folder of the WAL: JSON in a line, and a check.
const FOUNDING: &str = "founding";
const LARGEST_FOUNDING: usize = 64 << 10;
/// What an operator does with a node without which the group goes on.
const REJOIN: &str = "stop this node, move its data folder away, start it on an empty one, and run \
                      `wellspring cluster join` with its URL";
/// An orderer is missed after between one and two of so many parts of a lead timeout.
const PATIENCE_PARTS: u32 = 4;

/// The engine of a node.
struct RaftEngine {
    identity: NodeIdentity,
    storage: Arc<DiskStorage>,
    streams: Arc<Streams>,
    patience: Duration,
    keep_bytes: u64,
    copies: Arc<CopyReader>,
    accepted: Mutex<Option<Founding>>,
    running: OnceLock<Arc<Running>>,
}

/// A node that takes part.
struct Running {
    node: RaftNode,
    identity: Identity,
}

/// The engine of a configuration. Takes part at once if the node belongs to a group.
pub(super) fn engine(config: &HostConfig) -> Result<Arc<dyn Engine>, SetupError> {
    let (cluster, data) = (&config.cluster, &config.process.data);
    refuse_files(config)?;
    let file = cluster.cluster_key.as_deref().ok_or("cluster_key is missing")?;
    let key = Arc::new(ClusterKey::read(file)?);
    let has_tls = config.tls.tls_cert.is_some();
    let dir = data.join("raft");
    let failed = |error: &dyn std::fmt::Display| format!("journal: {}: {error}", dir.display());
    if !data.exists() {
        wellspring_log::storage::create_folder(data).map_err(|error| failed(&error))?;
    }
    let storage = Arc::new(DiskStorage::create(&dir).map_err(|error| failed(&error))?);
    let accepted = read_founding(&storage).map_err(|error| failed(&error))?;
    let identity = cluster.identity(&config.process, has_tls)?;
    let authorities = cluster.cluster_cacert.clone();
    let peers = Peers::new(identity.name.clone(), Arc::clone(&key), authorities);
    let engine = RaftEngine {
        identity,
        keep_bytes: cluster.raft_keep_bytes,
        copies: Arc::new(CopyReader::start(peers)?),
        storage,
        streams: Streams::start(key, cluster.cluster_cacert.clone())?,
        patience: cluster.lead_timeout() / PATIENCE_PARTS,
        accepted: Mutex::new(accepted),
        running: OnceLock::new(),
    };
    if let Some(running) = engine.open().map_err(|error| failed(&error))? {
        let _ = engine.running.set(running);
    }
    Ok(Arc::new(engine))
}

/// Refuses a folder whose logs are those of a single server, or copies of another journal.
fn refuse_files(config: &HostConfig) -> Result<(), SetupError> {
    let data = &config.process.data;
    let is_member = data.join("raft").join("identity").exists();
    let Ok(folders) = std::fs::read_dir(data.join("logs")) else { return Ok(()) };
    for folder in folders.flatten().map(|entry| entry.path()) {
        let what = match holding(&folder) {
            Ok(Holding::Files) => "the log of a single server",
            Ok(Holding::Copy(_)) if !is_member => "a copy of the log of another journal",
            Ok(_) | Err(_) => continue,
        };
        return Err(format!(
            "{} holds {what}; a node of a cluster starts with an empty data folder, and \
             `wellspring export` and `import` transfer events",
            folder.display()
        )
        .into());
    }
    Ok(())
}

fn read_founding(storage: &DiskStorage) -> Result<Option<Founding>, SetupError> {
    let read = read_small_file(storage, FOUNDING, LARGEST_FOUNDING);
    let Some(bytes) = read.map_err(|error| error.to_string())? else { return Ok(None) };
    let line = checked_lines(&bytes).and_then(|mut lines| lines.next());
    let founding = line.and_then(Founding::of_line);
    founding.map(Some).ok_or_else(|| "the file founding is damaged".into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: impl std::fmt::Display) -> GroupError {
    GroupError::Failed(error.to_string())
}

fn not_changed(error: MembersError) -> GroupError {
    match error {
        MembersError::UnderWay => GroupError::UnderWay,
        error => failed(error),
    }
}

/// The streams, as the group sees them.
struct StreamLinks {
    streams: Arc<Streams>,
    /// The members of before.
    known: Mutex<BTreeSet<u64>>,
}

impl Links for StreamLinks {
    fn members_are(&self, members: &BTreeMap<u64, MemberAddress>) {
        know(&self.streams, members);
        let before = std::mem::replace(&mut *lock(&self.known), members.keys().copied().collect());
        before
            .iter()
            .filter(|id| !members.contains_key(id))
            .for_each(|id| self.streams.forget(*id));
    }

    fn send(&self, to: u64, message: Message) {
        let channel = if message.is_bulk() { Channel::Bulk } else { Channel::Control };
        self.streams.send(to, channel, message.encode());
    }

    fn flush(&self) {
        self.streams.flush();
    }
}

/// The copies of the other members.
struct OtherCopies {
    reader: Arc<CopyReader>,
    streams: Arc<Streams>,
    running: Arc<OnceLock<Weak<Running>>>,
    turn: AtomicUsize,
}

impl CopySource for OtherCopies {
    fn accepted_after(
        &self,
        log: &str,
        after: Place,
        _: usize,
    ) -> Result<Vec<PlacedEntry>, SharedLogError> {
        let none = || SharedLogError::Unavailable {
            reason: format!("no other node has the events of {log} after place {}", after.0),
        };
        let running = self.running.get().and_then(Weak::upgrade).ok_or_else(none)?;
        let report = running.node.report();
        let is_other = |id: &u64| *id != running.identity.node_id;
        let mut others: Vec<u64> = report.addresses.into_keys().filter(is_other).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % others.len().max(1);
        others.rotate_left(turn);
        // The orderer has the most to do.
        others.sort_by_key(|id| report.orderer == Some(*id));
        let urls = others.into_iter().filter_map(|id| self.streams.address(id));
        urls.filter_map(|url| self.reader.batches(&url, log, after)).next().ok_or_else(none)
    }
}

/// What arrives by streams, for the group.
struct Arrivals(Arc<OnceLock<Weak<Running>>>);

impl Arrivals {
    fn running(&self) -> Option<Arc<Running>> {
        self.0.get().and_then(Weak::upgrade)
    }
}

impl StreamSink for Arrivals {
    fn member_since(&self) -> Option<u64> {
        self.running().map(|running| running.node.member_since())
    }

    fn admit(&self, id: u64, since: u64) -> Admission {
        match self.running().map(|running| running.node.admit(id, since)) {
            Some(wellspring_journal_raft::Admission::Belongs) => Admission::Belongs,
            Some(wellspring_journal_raft::Admission::Removed) => Admission::Removed,
            Some(wellspring_journal_raft::Admission::Undecided) | None => Admission::Undecided,
        }
    }

    fn excluded(&self, why: &str) {
        let running = self.running();
        if let Some(running) = running.filter(|running| running.node.report().stopped.is_none()) {
            tracing::error!(why, "the cluster goes on without this node: {REJOIN}");
            running.node.leave(&format!("{why}; {REJOIN}"));
        }
    }

    fn body_bytes(&self, header: &[u8; HEADER_BYTES]) -> Option<usize> {
        Message::body_bytes(header).ok()
    }

    fn arrived(&self, from: u64, header: &[u8; HEADER_BYTES], body: Bytes) -> bool {
        match (Message::decode(header, body), self.running()) {
            (Ok(message), Some(running)) => {
                running.node.arrived(from, message);
                true
            }
            (Ok(_), None) => true,
            (Err(_), _) => false,
        }
    }
}

fn know(streams: &Streams, addresses: &BTreeMap<u64, MemberAddress>) {
    for (id, MemberAddress { name, url }) in addresses {
        if let Ok(name) = NodeName::parse(name) {
            streams.know(*id, &name, url, AddressSource::Members);
        }
    }
}

impl RaftEngine {
    /// Joins the group of the node in this folder; `None`: the folder belongs to no node.
    fn open(&self) -> Result<Option<Arc<Running>>, GroupError> {
        let wal = recover::open_wal(Arc::clone(&self.storage) as _, WalOptions::default());
        let Some(wal) = wal.map_err(failed)? else { return Ok(None) };
        let identity = wal.identity().clone();
        let name = self.identity.name.as_str();
        if identity.node != name {
            let before = &identity.node;
            return Err(failed(format!("the folder belongs to the node {before}, not to {name}")));
        }
        let is_new = wal.reader().last().index == 0;
        let start = u64::from_le_bytes(random::bytes().map_err(failed)?);
        let known = Arc::new(OnceLock::new());
        let party = StreamParty {
            cluster: identity.cluster,
            generation: identity.generation,
            id: identity.node_id,
            name: self.identity.name.clone(),
            url: self.identity.url.clone(),
        };
        self.streams.begin(party, Arc::new(Arrivals(Arc::clone(&known))));
        let links = StreamLinks { streams: Arc::clone(&self.streams), known: Mutex::default() };
        let clock = Arc::new(SystemClock);
        let copies = Arc::new(OtherCopies {
            reader: Arc::clone(&self.copies),
            streams: Arc::clone(&self.streams),
            running: Arc::clone(&known),
            turn: AtomicUsize::new(0),
        });
        let (patience, keep_bytes) = (self.patience, self.keep_bytes);
        let runtime = Some(self.streams.runtime());
        let options = RaftOptions { patience, start, clock, keep_bytes, copies, runtime };
        let node = RaftNode::start(wal, Arc::new(links), options).map_err(failed)?;
        let running = Arc::new(Running { node, identity });
        let _ = known.set(Arc::downgrade(&running));
        let accepted = lock(&self.accepted).clone();
        // Later, the members are those of the newest entry about them.
        if let Some(founding) = accepted.filter(|_| is_new) {
            let addresses: BTreeMap<u64, MemberAddress> =
                founding.members.iter().map(address).collect();
            know(&self.streams, &addresses);
            if founding.entry == MemberEntry::Founds {
                match running.node.found_at(addresses) {
                    // The others were faster.
                    Ok(()) | Err(FoundError::Founded) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Ok(Some(running))
    }

    fn node(&self) -> Result<&RaftNode, GroupError> {
        let running = self.running.get().map(|running| &running.node);
        running.ok_or_else(|| failed("this node waits for cluster init or join"))
    }
}

fn address(member: &GroupMember) -> (u64, MemberAddress) {
    (member.id, MemberAddress { name: member.node.clone(), url: member.url.clone() })
}

impl Engine for RaftEngine {
    fn shared_log(&self, log: &str, _: LogRows) -> Box<dyn SharedLog> {
        let running = self.running.get().expect("logs are opened once the node takes part");
        let lead = if log == SYSTEM_LOG { LeadChoice::Orderer } else { LeadChoice::Claims };
        Box::new(running.node.connect(log, lead))
    }

    fn forget(&self, log: &str) {
        if let Some(running) = self.running.get() {
            running.node.forget(log);
        }
    }

    // Entries of others come by themselves.
    fn nudge(&self) {}

    fn status(&self) -> EngineStatus {
        let report = self.report();
        let lacks_room = report.lacks_room;
        let state = self.state_of(report);
        let (reachable, voters) = state.voters();
        let lost = match (state.stage, &state.orderer) {
            _ if state.stopped.is_some() => state.stopped.clone(),
            (GroupStage::Member, _) if 2 * reachable <= voters => {
                Some(format!("{reachable} of {voters} voters reachable"))
            }
            (GroupStage::Member, Some(_)) => None,
            (GroupStage::Member, None) => Some("no node orders".to_owned()),
            _ => Some("waiting for cluster init or join".to_owned()),
        };
        let mut faults = self.streams.faults();
        if lacks_room {
            faults.push(
                "the disk has no room: this node takes no part in the group until it has"
                    .to_owned(),
            );
        }
        EngineStatus {
            kind: "raft",
            reach: lost.map_or(EngineReach::Connected, |reason| EngineReach::Lost { reason }),
            trouble: (!faults.is_empty()).then(|| faults.join("; ")),
            durable: match voters {
                0 => "nothing is durable before the node belongs to a group".to_owned(),
                1 => "an acknowledged append is on the disk of the only voter".to_owned(),
                _ => format!(
                    "an acknowledged append is on the disks of {} of {voters} voters",
                    voters / 2 + 1
                ),
            },
            reconnects: 0,
            group: Some(state),
        }
    }

    fn group(&self) -> Option<&dyn Group> {
        Some(self)
    }
}

impl RaftEngine {
    fn report(&self) -> GroupReport {
        self.running.get().map(|running| running.node.report()).unwrap_or_default()
    }

    fn state_of(&self, report: GroupReport) -> GroupState {
        let running = self.running.get();
        let own = running.map(|running| running.identity.node_id);
        let accepted = lock(&self.accepted);
        let stage = match (running, &*accepted) {
            (Some(_), _) => GroupStage::Member,
            (None, Some(_)) => GroupStage::Accepted,
            (None, None) => GroupStage::Waiting,
        };
        let members = report.addresses.iter().map(|(&id, at)| {
            let is_own = own == Some(id);
            let known = if is_own { None } else { self.streams.address(id) };
            let own_url = || if is_own { self.identity.url.clone() } else { at.url.clone() };
            MemberState {
                node: at.name.clone(),
                id,
                url: known.unwrap_or_else(own_url),
                votes: report.voters.contains(&id),
                reachable: is_own || self.streams.reaches(id),
            }
        });
        let members: Vec<MemberState> = members.collect();
        let orderer = members.iter().find(|member| report.orderer == Some(member.id));
        GroupState {
            stage,
            cluster: accepted.as_ref().map(|founding| founding.cluster.clone()),
            orders: own.is_some() && report.orderer == own,
            orderer: orderer.map(|member| member.node.clone()),
            term: report.term,
            last_index: report.last.index,
            applied_index: report.applied,
            member_since: running.map_or(0, |running| running.node.member_since()),
            dropped_index: report.purged,
            kept_bytes: report.kept_bytes,
            lacks_copies: report.lacks_copies,
            frames: report.frames,
            refused_streams: self.streams.refused(),
            stopped: report.stopped,
            members,
        }
    }
}

impl Group for RaftEngine {
    fn state(&self) -> GroupState {
        self.state_of(self.report())
    }

    fn founding(&self) -> Option<Founding> {
        let mut founding = lock(&self.accepted).clone();
        if let (Some(founding), Some(running)) = (&mut founding, self.running.get()) {
            // The majority may have been lost since.
            founding.generation = running.identity.generation;
        }
        founding
    }

    fn accept(&self, founding: &Founding) -> Result<(), GroupError> {
        let mut accepted = lock(&self.accepted);
        match &*accepted {
            Some(before) if before.cluster != founding.cluster => {
                return Err(GroupError::Belongs { cluster: before.cluster.clone() });
            }
            Some(before) if before == founding => return Ok(()),
            Some(_) | None => {}
        }
        let own = self.identity.name.as_str();
        if !founding.members.iter().any(|member| member.node == own) {
            return Err(failed(format!("the founding does not name the node {own}")));
        }
        let mut members = BTreeMap::new();
        if let Some(running) = self.running.get() {
            if running.identity.generation != founding.generation {
                return Err(GroupError::Belongs { cluster: running.identity.cluster.to_string() });
            }
            // It only tells where the others are by now, of which some may have been removed.
            members = running.node.report().addresses;
        } else {
            let text = with_check(format!("{}\n", founding.to_line()?));
            replace_file(&*self.storage, FOUNDING, text.as_bytes()).map_err(failed)?;
            *accepted = Some(founding.clone());
        }
        let is_member = |id| members.is_empty() || members.contains_key(&id);
        for member in founding.members.iter().filter(|member| is_member(member.id)) {
            if let Ok(name) = NodeName::parse(&member.node) {
                self.streams.know(member.id, &name, &member.url, AddressSource::Node);
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<(), GroupError> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = lock(&ONE_AT_A_TIME);
        if self.running.get().is_some() {
            return Ok(());
        }
        let founding = self.founding().ok_or_else(|| failed("no founding was accepted"))?;
        let name = self.identity.name.as_str();
        let own = founding.members.iter().find(|member| member.node == name);
        let identity = Identity {
            cluster: founding.cluster.parse().map_err(failed)?,
            generation: founding.generation,
            node: name.to_owned(),
            node_id: own.ok_or_else(|| failed("it is not a member"))?.id,
        };
        match Wal::create(Arc::clone(&self.storage) as _, &identity) {
            Ok(()) | Err(wellspring_journal_raft::wal::WalFault::HasIdentity) => {}
            Err(fault) => return Err(failed(fault)),
        }
        let running = self.open()?.ok_or_else(|| failed("its identity is missing"))?;
        let _ = self.running.set(running);
        tracing::info!(cluster = founding.cluster, node = name, "takes part in the cluster");
        Ok(())
    }

    fn add(&self, member: &GroupMember) -> Result<(), GroupError> {
        let (id, at) = address(member);
        self.node()?.add_learner_at(id, at).wait().map_err(not_changed)
    }

    fn promote(&self, id: u64) -> Result<(), GroupError> {
        self.node()?.promote(id).wait().map_err(not_changed)
    }

    fn remove(&self, id: u64) -> Result<(), GroupError> {
        self.node()?.remove(id).wait().map_err(not_changed)
    }

    fn take_over(&self) -> Result<(), GroupError> {
        let node = self.node()?;
        if !node.report().voters.contains(&node.id()) {
            return Err(failed(format!("the node {} does not vote", self.identity.name)));
        }
        node.take_over();
        Ok(())
    }

    fn protocol(&self) -> Arc<dyn Protocol> {
        self.streams.protocol()
    }
}
