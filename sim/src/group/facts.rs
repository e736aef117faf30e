//! What the members of a group have acknowledged, and what Raft promises about it.
//!
//! - One orderer a term.
//! - The same term and index, the same bytes.
//! - What a node has acknowledged as durable is there when it starts again; votes never go back.
//! - What is committed is in the WALs of a majority of its voters, and never changes.

use super::watched::LogFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use wellspring_journal_raft::GroupReport;
use wellspring_journal_raft::by_hand::{EntryContent, checkpoint_index, entry_content, place_of};
use wellspring_journal_raft::wal::{Entry, Vote, Wal};

/// An entry that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Acknowledged {
    term: u64,
    hash: u64,
}

/// An entry that any node has had.
#[derive(Debug)]
struct SeenEntry {
    hash: u64,
    /// The log of each of its items.
    logs: Vec<Arc<str>>,
    is_of_members: bool,
}

type Voters = Vec<BTreeSet<u64>>;

/// What a node has acknowledged.
#[derive(Debug, Clone, Default)]
struct Acknowledgements {
    vote: Vote,
    /// That of index 1 is the first.
    entries: Vec<Acknowledged>,
    /// The voters from an index on.
    voters: Vec<(u64, Voters)>,
    /// Work on the WAL did not end well: it may have been a cut, and be found or not.
    is_in_doubt: bool,
}

impl Acknowledgements {
    fn cut(&mut self, length: usize) {
        self.entries.truncate(length);
        self.voters.retain(|(index, _)| *index <= length as u64);
    }

    fn voters_at(&self, index: u64) -> Option<&Voters> {
        self.voters.iter().rev().find(|(from, _)| *from <= index).map(|(_, voters)| voters)
    }
}

/// A broken promise: its name, and how it was broken.
pub type Broken = (&'static str, String);

/// See the module's documentation.
#[derive(Default)]
pub struct GroupFacts {
    /// By the id of the node; also of nodes that are gone.
    by_node: BTreeMap<u64, Acknowledgements>,
    /// By index and term.
    seen: BTreeMap<(u64, u64), SeenEntry>,
    committed: Vec<Acknowledged>,
    /// The voters from an index on.
    committed_voters: Vec<(u64, Voters)>,
    orderers: BTreeMap<u64, u64>,
    told: LogFacts,
    /// The first promise that was broken.
    pub broken: Option<Broken>,
}

fn hash(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    entry.body.hash(&mut hasher);
    hasher.finish()
}

/// Whether a node with the first vote may have the second one later. A majority's choice replaces
/// another vote in the same term.
fn may_follow(before: Vote, vote: Vote) -> bool {
    let is_same = before.voted_for == vote.voted_for && before.is_committed <= vote.is_committed;
    let is_chosen = vote.is_committed && !before.is_committed;
    vote.term > before.term
        || vote.term == before.term && (is_same || is_chosen || before.voted_for.is_none())
}

impl GroupFacts {
    /// Facts that tell `told` what is committed.
    #[must_use]
    pub fn new(told: LogFacts) -> GroupFacts {
        GroupFacts { told, ..GroupFacts::default() }
    }

    fn breaks(&mut self, promise: &'static str, what: String) {
        self.broken.get_or_insert((promise, what));
    }

    /// Number of committed entries.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.committed.len() as u64
    }

    /// What happened: terms with an orderer, changes of the members that were committed.
    #[must_use]
    pub fn happened(&self) -> [usize; 2] {
        let ids = (1..).zip(&self.committed).map(|(index, entry)| (index, entry.term));
        let changes = ids.filter(|id| self.seen.get(id).is_some_and(|seen| seen.is_of_members));
        [self.orderers.len(), changes.count()]
    }

    /// Whether any node has an entry.
    #[must_use]
    pub fn is_founded(&self) -> bool {
        self.by_node.values().any(|node| !node.entries.is_empty())
    }

    /// Work on the WAL of a node did not end well.
    pub fn doubt(&mut self, node: u64) {
        self.by_node.entry(node).or_default().is_in_doubt = true;
    }

    /// A node is gone for good, or came back without its memory.
    pub fn forget(&mut self, node: u64) {
        self.by_node.remove(&node);
    }

    /// Whether the group can lose this node for good, of which some are lost already.
    #[must_use]
    pub fn may_lose(&self, node: u64, lost: &BTreeSet<u64>) -> bool {
        let is_sure = |(id, of): (&u64, &Acknowledgements)| *id == node || !of.is_in_doubt;
        let mut left = self.by_node.iter().filter(|(id, _)| !lost.contains(id));
        if self.committed.is_empty() || !left.all(is_sure) {
            return false;
        }
        let decided = self.committed.len() as u64;
        // A node whose own last entry removes it never stands, and is ahead of the others: all that
        // stay are needed then.
        let removes_itself = |(id, of): (&u64, &Acknowledgements)| {
            let later = of.voters.iter().filter(|(index, _)| *index > decided);
            later.map(|(_, sets)| sets).any(|sets| sets.iter().all(|set| !set.contains(id)))
        };
        if self.by_node.iter().any(removes_itself) {
            return false;
        }
        let sets = self.by_node.values().flat_map(|of| {
            let now = of.voters.iter().rev().find(|(index, _)| *index <= decided);
            now.into_iter().chain(of.voters.iter().filter(move |(index, _)| *index > decided))
        });
        sets.flat_map(|(_, sets)| sets).all(|set| {
            let is_spare = set.len() >= 3 && set.is_disjoint(lost);
            is_spare || !set.contains(&node) && set.is_disjoint(lost)
        })
    }

    /// A node has opened its WAL.
    pub fn opened(&mut self, node: u64, wal: &Wal) {
        let before = self.by_node.remove(&node).unwrap_or_default();
        self.by_node.insert(node, Acknowledgements::default());
        self.worked(node, wal);
        let now = &self.by_node[&node];
        let differs = before.entries.iter().zip(&now.entries).position(|(a, b)| a != b);
        let kept = differs.unwrap_or(now.entries.len());
        // What is committed is never cut off.
        let committed = before.entries.iter().zip(&self.committed).take_while(|(a, b)| a == b);
        let must = if before.is_in_doubt { committed.count() } else { before.entries.len() };
        let is_vote_kept = may_follow(before.vote, now.vote);
        if kept < must {
            let what = format!("{node} acknowledged {must} entries and has {kept} of them");
            self.breaks("what a node acknowledged is there", what);
        } else if !is_vote_kept {
            let what = format!("{node} voted {:?} and has {:?}", before.vote, now.vote);
            self.breaks("votes never go back", what);
        }
    }

    /// A node has worked on its WAL.
    pub fn worked(&mut self, node: u64, wal: &Wal) {
        let (reader, vote) = (wal.reader(), wal.vote());
        let last = reader.last();
        let mut of = self.by_node.remove(&node).unwrap_or_default();
        if !may_follow(of.vote, vote) {
            self.breaks("votes never go back", format!("{node}: {:?}, {vote:?}", of.vote));
        }
        of.vote = vote;
        self.fill(node, &mut of, reader.purged().index as usize);
        let length = of.entries.len().min(last.index as usize);
        if let Some(at) = (length..of.entries.len().min(self.committed.len()))
            .find(|at| of.entries[*at] == self.committed[*at])
        {
            let what = format!("{node} cuts off committed entry {}", at + 1);
            self.breaks("what is committed never changes", what);
        }
        of.cut(length);
        let from = length as u64 + 1;
        let entries = reader.read(from..last.index + 1, usize::MAX);
        for entry in entries.expect("reads do not fail") {
            self.acknowledges(node, &mut of, &entry);
        }
        self.by_node.insert(node, of);
    }

    /// Entries up to an index were purged, or a checkpoint of another node stands for them: they
    /// are committed.
    fn fill(&mut self, node: u64, of: &mut Acknowledgements, purged: usize) {
        let Some(committed) = self.committed.get(..purged) else {
            let what = format!("{node} has purged up to {purged}");
            return self.breaks("only what is committed is purged", what);
        };
        let mine = of.entries.iter().zip(committed).take_while(|(a, b)| a == b).count();
        if mine == purged {
            return;
        }
        of.cut(mine);
        of.entries.extend_from_slice(&committed[mine..]);
        let filled = mine as u64 + 1..=purged as u64;
        let voters = self.committed_voters.iter().filter(|(index, _)| filled.contains(index));
        of.voters.extend(voters.cloned());
    }

    fn acknowledges(&mut self, node: u64, of: &mut Acknowledgements, entry: &Entry) {
        let (index, term, hash) = (entry.id.index, entry.id.term, hash(entry));
        of.entries.push(Acknowledged { term, hash });
        let mut seen = SeenEntry { hash, logs: Vec::new(), is_of_members: false };
        match entry_content(entry) {
            Some(EntryContent::Voters(voters)) => {
                seen.is_of_members = true;
                of.voters.push((index, voters));
            }
            Some(EntryContent::Frame(logs)) => seen.logs = logs,
            Some(EntryContent::Blank) => {}
            None => self.breaks("entries can be read", format!("entry {index} at {node}")),
        }
        if self.seen.entry((index, term)).or_insert(seen).hash != hash {
            let what = format!("entry {index} of term {term} differs at {node}");
            self.breaks("the same term and index, the same bytes", what);
        }
    }

    /// A node was turned. `applied`: the index up to which its deliveries were checked.
    pub fn turned(&mut self, node: u64, wal: &Wal, report: &GroupReport, applied: &mut u64) {
        if report.orderer == Some(node) {
            let first = *self.orderers.entry(report.term).or_insert(node);
            if first != node {
                let what = format!("{first} and {node} order in term {}", report.term);
                self.breaks("one orderer a term", what);
            }
        }
        let stands_for = checkpoint_index(wal);
        if stands_for > wal.reader().last().index {
            // Another node's: the WAL is to follow.
            *applied = stands_for.min(self.committed()).max(*applied);
        }
        while *applied < report.applied && self.broken.is_none() {
            *applied += 1;
            self.applied(node, *applied);
        }
    }

    fn applied(&mut self, node: u64, index: u64) {
        let own = self.by_node[&node].entries.get(index as usize - 1).copied();
        let Some(own) = own else {
            let what = format!("{node} applies entry {index}, which is not in its WAL");
            return self.breaks("what is committed is durable", what);
        };
        if let Some(first) = self.committed.get(index as usize - 1) {
            if *first != own {
                let what = format!("{node} applies another entry {index}: {own:?}, {first:?}");
                self.breaks("what is committed never changes", what);
            }
            return;
        }
        self.committed.push(own);
        if !self.is_with_majority(node, index, own) {
            let what = format!("entry {index}, applied by {node}, is not with a majority");
            self.breaks("what is committed is durable", what);
        }
        for (item, log) in self.seen[&(index, own.term)].logs.iter().enumerate() {
            self.told.committed(log, place_of(index, item));
        }
        if let Some(voters) = self.by_node[&node].voters.iter().find(|(of, _)| *of == index) {
            self.committed_voters.push(voters.clone());
        }
    }

    /// Whether a majority has the entry: of the voters then, or of those that an orderer has
    /// already set for what comes later, and so for this entry, too.
    fn is_with_majority(&self, node: u64, index: u64, entry: Acknowledged) -> bool {
        let has = |id: &u64| {
            self.by_node.get(id).and_then(|of| of.entries.get(index as usize - 1)) == Some(&entry)
        };
        let decides = |voters: &Voters| {
            voters.iter().all(|set| 2 * set.iter().filter(|id| has(id)).count() > set.len())
        };
        let then = self.by_node[&node].voters_at(index).into_iter();
        let later = self.by_node.values().flat_map(|of| &of.voters);
        then.chain(later.filter(|(from, _)| *from > index).map(|(_, voters)| voters)).any(decides)
    }
}
