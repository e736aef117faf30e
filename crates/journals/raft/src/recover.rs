//! After the loss of a majority for good: a node goes on alone, in the next generation of its
//! cluster. It works on the WAL of a node that does not run.
//!
//! What it has in its WAL is committed by that, whether a majority had it or not. What only lost
//! nodes had is gone. One write decides: the identity names the new generation, and says that the
//! node is about to go on alone. Two steps follow, a new term and an entry that makes the node the
//! only member. If they are interrupted, the next opening of the WAL repeats them.

use crate::checkpoint::Checkpoint;
use crate::frame::index_of;
use crate::group;
use crate::members::{MemberAddress, Members};
use crate::wal::{Entry, EntryId, Identity, Vote, Wal, WalFault, WalOptions};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use wellspring_log::shared::Place;
use wellspring_log::shared::rule::RuleState;
use wellspring_log::storage::Storage;

/// Bytes of entries that are looked through at a time.
const READ_BYTES: usize = 4 << 20;

/// What the WAL of a node has, to compare it with those of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalReport {
    /// Whose it is.
    pub identity: Identity,
    /// The current term.
    pub term: u64,
    /// The last entry.
    pub last: EntryId,
    /// The last entry that was dropped because copies hold it.
    pub purged: EntryId,
    /// The members, as the newest entry about them says, with whether they vote.
    pub members: BTreeMap<u64, (MemberAddress, bool)>,
    /// The position that the copies of logs have to reach, because the entries up to it were
    /// dropped.
    pub dropped_heads: BTreeMap<Arc<str>, u64>,
    /// The last place that the copies were to reach.
    pub copied: Place,
}

impl WalReport {
    /// Whether the entry of a place is in the WAL, or was.
    #[must_use]
    pub fn reaches(&self, place: Place) -> bool {
        index_of(place) <= self.last.index
    }
}

/// Why a node does not go on alone.
#[derive(Debug)]
pub enum RecoverError {
    /// The WAL cannot be used.
    Wal(WalFault),
    /// The folder is not that of a member, or a newer program wrote it.
    Unfit(&'static str),
}

impl From<WalFault> for RecoverError {
    fn from(fault: WalFault) -> RecoverError {
        RecoverError::Wal(fault)
    }
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Wal(fault) => fault.fmt(f),
            RecoverError::Unfit(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RecoverError {}

const NO_NODE: RecoverError = RecoverError::Unfit("the folder belongs to no node of a cluster");
const NO_MEMBER: RecoverError = RecoverError::Unfit("the node is no member of its cluster yet");
const UNREADABLE: RecoverError =
    RecoverError::Unfit("a newer program wrote an entry or the checkpoint: use that one");

/// Opens the WAL in a folder, as [`Wal::open`] does, and ends a recovery that was interrupted.
///
/// # Errors
/// [`RecoverError`].
pub fn open_wal(
    storage: Arc<dyn Storage>,
    options: WalOptions,
) -> Result<Option<Wal>, RecoverError> {
    let mut wal = Wal::open(storage, options)?;
    if let Some(wal) = wal.as_mut().filter(|wal| wal.goes_on_alone()) {
        go_on_alone(wal)?;
    }
    Ok(wal)
}

/// What the WAL in a folder has. Changes nothing.
///
/// # Errors
/// [`RecoverError`].
pub fn inspect(storage: Arc<dyn Storage>) -> Result<WalReport, RecoverError> {
    let wal = Wal::open(storage, WalOptions::default())?.ok_or(NO_NODE)?;
    report(&wal)
}

/// Makes the node of a folder the only member of a generation, which has to be a greater one.
/// Repeated, it makes nothing new. What the copies lack has to be looked for before.
///
/// # Errors
/// [`RecoverError`].
pub fn recover(storage: Arc<dyn Storage>, generation: u64) -> Result<WalReport, RecoverError> {
    let mut wal = Wal::open(storage, WalOptions::default())?.ok_or(NO_NODE)?;
    let before = report(&wal)?;
    let own = before.identity.node_id;
    if !before.members.contains_key(&own) {
        return Err(NO_MEMBER);
    }
    if !wal.goes_on_alone() {
        if before.members.len() == 1 {
            return Ok(before);
        }
        assert!(generation > before.identity.generation, "generations grow");
        wal.begin_generation(generation, true)?;
    }
    go_on_alone(&mut wal)?;
    report(&wal)
}

fn go_on_alone(wal: &mut Wal) -> Result<(), RecoverError> {
    let Identity { node_id, generation, .. } = *wal.identity();
    let last = wal.reader().last();
    let own = members(wal)?.addresses.remove(&node_id).ok_or(NO_MEMBER)?;
    let term = wal.vote().term.max(last.term) + 1;
    wal.set_vote(Vote { term, voted_for: Some(node_id), is_committed: false })?;
    let id = EntryId { term, index: last.index + 1 };
    wal.append(&[Entry { id, body: group::only_member(node_id, own) }])?;
    Ok(wal.begin_generation(generation, false)?)
}

fn report(wal: &Wal) -> Result<WalReport, RecoverError> {
    let members = members(wal)?;
    let checkpoint = checkpoint(wal)?;
    let logs = checkpoint.map(|checkpoint| checkpoint.logs).unwrap_or_default();
    // Those of dropped logs have no state.
    let states = logs
        .into_iter()
        .filter_map(|(log, start)| Some((log, start.place, RuleState::decode(&start.state)?)));
    let (mut dropped_heads, mut copied) = (BTreeMap::new(), Place(0));
    for (log, place, state) in states {
        dropped_heads.insert(log, state.head);
        copied = copied.max(place);
    }
    let votes = |id| members.votes(id);
    Ok(WalReport {
        identity: wal.identity().clone(),
        term: wal.vote().term,
        last: wal.reader().last(),
        purged: wal.reader().purged(),
        members: members.addresses.iter().map(|(id, at)| (*id, (at.clone(), votes(*id)))).collect(),
        dropped_heads,
        copied,
    })
}

fn checkpoint(wal: &Wal) -> Result<Option<Checkpoint>, RecoverError> {
    let checkpoint = wal.checkpoint().map(Checkpoint::decode);
    checkpoint.map(|checkpoint| checkpoint.ok_or(UNREADABLE)).transpose()
}

/// The members as the newest entry about them says.
fn members(wal: &Wal) -> Result<Members, RecoverError> {
    let reader = wal.reader();
    let mut newest = match checkpoint(wal)? {
        None => Members::default(),
        Some(Checkpoint { members: (_, body), .. }) => group::members_in(body).ok_or(UNREADABLE)?,
    };
    let (mut next, last) = (reader.purged().index + 1, reader.last().index);
    while next <= last {
        let entries = reader.read(next..last + 1, READ_BYTES)?;
        let Some(last) = entries.last() else { break };
        next = last.id.index + 1;
        let found = entries.into_iter().filter_map(|entry| group::members_in(entry.body));
        newest = found.last().unwrap_or(newest);
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::KnownStart;
    use crate::frame::place;
    use bytes::Bytes;
    use wellspring_log::shared::entry::ClusterId;
    use wellspring_log::storage::simulated::{Faults, SimulatedStorage};

    fn address(id: u64) -> MemberAddress {
        MemberAddress { name: format!("n{id}"), url: format!("http://n{id}") }
    }

    /// One of three nodes, with two entries.
    fn node() -> SimulatedStorage {
        let disk = SimulatedStorage::new(1);
        let identity = Identity {
            cluster: ClusterId([7; 16]),
            generation: 1,
            node: "n1".to_owned(),
            node_id: 1,
        };
        Wal::create(Arc::new(disk.clone()), &identity).unwrap();
        let mut wal = Wal::open(Arc::new(disk.clone()), WalOptions::default()).unwrap().unwrap();
        wal.set_vote(Vote { term: 4, voted_for: Some(3), is_committed: true }).unwrap();
        let body =
            group::body_of_members(&[1, 2, 3], (1..=4).map(|id| (id, address(id))).collect());
        let entry = |index, body| Entry { id: EntryId { term: 3, index }, body };
        wal.append(&[entry(1, body), entry(2, Bytes::new())]).unwrap();
        disk
    }

    #[test]
    fn a_node_goes_on_alone_as_the_next_generation() {
        let disk = node();
        let before = inspect(Arc::new(disk.clone())).unwrap();
        assert_eq!((before.term, before.last), (4, EntryId { term: 3, index: 2 }));
        let votes = |report: &WalReport| {
            report.members.iter().map(|(id, (_, votes))| (*id, *votes)).collect::<Vec<_>>()
        };
        assert_eq!(votes(&before), [(1, true), (2, true), (3, true), (4, false)]);
        let after = recover(Arc::new(disk.clone()), 7).unwrap();
        assert_eq!((after.identity.generation, after.term), (7, 5));
        assert_eq!(after.last, EntryId { term: 5, index: 3 });
        assert_eq!(after.members, BTreeMap::from([(1, (address(1), true))]));
        assert_eq!(recover(Arc::new(disk.clone()), 8).unwrap(), after, "repeated");
        assert_eq!(inspect(Arc::new(disk)).unwrap(), after);
    }

    #[test]
    fn a_report_says_what_the_copies_have_to_reach() {
        let disk = node();
        let mut wal = Wal::open(Arc::new(disk.clone()), WalOptions::default()).unwrap().unwrap();
        let state = RuleState {
            cluster: ClusterId([3; 16]),
            log: "main".to_owned(),
            epoch: 1,
            leader: None,
            head: 50,
            chain: 9,
        };
        let starts = [("main", place(9, 0), state.encode()), ("dropped", Place(u64::MAX), vec![])];
        let logs = starts.map(|(log, place, state)| {
            (Arc::from(log), KnownStart { place, state: Arc::from(state) })
        });
        let body = group::only_member(1, address(1));
        let id = EntryId { term: 3, index: 2 };
        let checkpoint = Checkpoint { id, members: (id, body), logs: logs.into() };
        wal.set_checkpoint(checkpoint.encode()).unwrap();
        drop(wal);
        let report = inspect(Arc::new(disk)).unwrap();
        assert_eq!(report.dropped_heads, BTreeMap::from([(Arc::from("main"), 50)]));
        assert!(!report.reaches(report.copied) && report.reaches(place(2, 7)));
    }

    #[test]
    fn killed_at_any_point_it_is_of_the_old_generation_or_of_the_new_one() {
        let mut seen = [0, 0];
        for steps in 0.. {
            let disk = node();
            disk.set_faults(Faults { power_fails_after: Some(steps), ..Faults::default() });
            let done = recover(Arc::new(disk.clone()), 7).is_ok();
            let left = disk.crash();
            let opened = open_wal(Arc::new(left.clone()), WalOptions::default());
            drop(opened.unwrap().unwrap());
            let found = inspect(Arc::new(left.clone())).unwrap();
            match (found.identity.generation, found.members.len(), found.last.index) {
                (1, 4, 2) => seen[0] += 1,
                (7, 1, 3..) => seen[1] += 1,
                mixed => panic!("after {steps} steps: {mixed:?}"),
            }
            let again = recover(Arc::new(left), 7).unwrap();
            assert_eq!((again.identity.generation, again.members.len()), (7, 1));
            if done {
                break;
            }
        }
        assert!(seen[0] > 2 && seen[1] > 5, "{seen:?}");
    }
}
