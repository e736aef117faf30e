//! The WAL against a plain list, over a disk that refuses, tears, rots and loses power.

use super::record::{FileHeader, file_name, file_number};
use super::sector::blocks_up_to;
use super::*;
use crate::plants::{Plant, plant};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use wellspring_log::shared::entry::ClusterId;
use wellspring_log::storage::Storage as _;
use wellspring_log::storage::simulated::{Faults, SECTOR_BYTES, SimulatedStorage};
use wellspring_types::random::SplitMix64;

type Files = BTreeMap<String, Vec<u8>>;

/// What a WAL should hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Model {
    purged: EntryId,
    entries: Vec<Entry>,
    vote: Vote,
}

impl Model {
    fn last(&self) -> EntryId {
        self.entries.last().map_or(self.purged, |entry| entry.id)
    }

    fn of(wal: &Wal) -> Model {
        let reader = wal.reader();
        let entries = reader.read(0..u64::MAX, usize::MAX).expect("entries are read");
        Model { purged: reader.purged(), entries, vote: wal.vote() }
    }

    fn cut(&mut self, last: u64) {
        self.entries.retain(|entry| entry.id.index <= last);
    }

    fn purge(&mut self, upto: EntryId) {
        if upto.index > self.purged.index {
            self.entries.retain(|entry| entry.id.index > upto.index);
            self.purged = upto;
        }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Append(Vec<Entry>),
    Cut(u64),
    Purge(EntryId),
    Vote(Vote),
}

/// What happened, so that no test is empty.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    acknowledged: usize,
    failed: usize,
    refused: usize,
    reopened: usize,
    in_part: usize,
    rotten: usize,
    reused: usize,
}

pub(super) fn identity() -> Identity {
    Identity { cluster: ClusterId([7; 16]), generation: 1, node: "a".into(), node_id: 77 }
}

pub(super) fn open(disk: &SimulatedStorage, options: WalOptions) -> Result<Wal, WalFault> {
    Wal::open(Arc::new(disk.clone()), options).map(|wal| wal.expect("it has an identity"))
}

struct World {
    disk: SimulatedStorage,
    wal: Option<Wal>,
    options: WalOptions,
    model: Model,
    random: SplitMix64,
    coverage: Coverage,
}

impl World {
    fn new(seed: u64) -> World {
        let disk = SimulatedStorage::new(seed);
        Wal::create(Arc::new(disk.clone()), &identity()).expect("a new WAL");
        let mut random = SplitMix64::new(seed ^ 0x5eed);
        let file_bytes = 4096 * (2 + random.below(4));
        let recent_bytes = random.below(3) as usize * 2_000;
        let options = WalOptions { file_bytes, recent_bytes };
        let wal = Some(open(&disk, options).expect("it opens"));
        let (model, coverage) = Default::default();
        World { disk, wal, options, model, random, coverage }
    }

    fn wal(&mut self) -> &mut Wal {
        self.wal.as_mut().expect("it is open")
    }

    /// Noise, zeros, or something that a client has copied from the disk.
    fn body(&mut self) -> Bytes {
        let most = [0, 40, 600, 600, 3_000][self.random.below(5) as usize];
        let len = self.random.below(most + 1) as usize;
        match self.random.below(16) {
            0..4 => vec![0; len].into(),
            4 => {
                let files = self.disk.contents();
                let at = self.random.below(files.len() as u64) as usize;
                let file = files.into_values().nth(at).expect("a file");
                let from = self.random.below(file.len() as u64) as usize / SECTOR_BYTES;
                let from = (from * SECTOR_BYTES).min(file.len());
                file[from..(from + len).min(file.len())].to_vec().into()
            }
            _ => (0..len).map(|_| self.random.next_u64() as u8).collect(),
        }
    }

    fn change(&mut self) -> Change {
        let last = self.model.last();
        let term = self.model.vote.term;
        let between = self.model.purged.index..=last.index;
        let index = between.start() + self.random.below(between.end() - between.start() + 1);
        match self.random.below(10) {
            0..6 => {
                let count = 1 + self.random.below(8);
                let entry = |index| Entry { id: EntryId { term, index }, body: self.body() };
                Change::Append((last.index + 1..=last.index + count).map(entry).collect())
            }
            6 => Change::Cut(index),
            7 => {
                let beyond = EntryId { term, index: last.index + 1 + self.random.below(20) };
                let known = self.model.entries.iter().find(|entry| entry.id.index == index);
                let is_beyond = self.random.below(6) == 0;
                Change::Purge(known.map(|entry| entry.id).filter(|_| !is_beyond).unwrap_or(beyond))
            }
            _ => Change::Vote(Vote {
                term: term + self.random.below(2),
                voted_for: (self.random.below(3) > 0).then(|| self.random.below(3)),
                is_committed: self.random.below(2) == 0,
            }),
        }
    }

    fn has_spare(&self) -> bool {
        self.disk.list().expect("names").iter().any(|name| name == "spare")
    }

    fn fault(&mut self) -> Faults {
        let mut faults = Faults::default();
        let after = Some(self.random.below(7));
        match self.random.below(12) {
            0 | 1 => faults.power_fails_after = after,
            2 => faults.sync_fails_after = Some(self.random.below(3)),
            3 => faults.write_fails_after = Some(self.random.below(3)),
            4 => {
                let used: usize = self.disk.contents().values().map(Vec::len).sum();
                faults.capacity_bytes = Some(used as u64 + self.random.below(8_192));
            }
            5 => faults.descriptors = Some(self.disk.open_files()),
            6 => faults.reads_fail = true,
            _ => {}
        }
        faults
    }

    fn make(&mut self, change: &Change) -> Result<(), WalFault> {
        match change {
            Change::Append(entries) => self.wal().append(entries),
            Change::Cut(last) => self.wal().truncate_after(*last),
            Change::Purge(upto) => self.wal().purge(*upto),
            Change::Vote(vote) => self.wal().set_vote(*vote),
        }
    }

    /// What the WAL may hold after each step of a change; last, what it must hold when it succeeds.
    fn outcomes(&self, change: &Change) -> Vec<Model> {
        let mut models = vec![self.model.clone()];
        let mut next = self.model.clone();
        match change {
            Change::Append(entries) => {
                for entry in entries {
                    next.entries.push(entry.clone());
                    models.push(next.clone());
                }
                return models;
            }
            Change::Cut(last) => next.cut(*last),
            Change::Purge(upto) => next.purge(*upto),
            Change::Vote(vote) => next.vote = *vote,
        }
        models.push(next);
        models
    }

    fn step(&mut self) -> Result<(), String> {
        let change = self.change();
        let mut outcomes = self.outcomes(&change);
        let faults = self.fault();
        self.disk.set_faults(faults);
        let had_spare = self.has_spare();
        let made = self.make(&change);
        self.disk.set_faults(Faults::default());
        self.coverage.reused += usize::from(had_spare && !self.has_spare());
        match made {
            Ok(()) => {
                self.coverage.acknowledged += 1;
                outcomes.drain(..outcomes.len() - 1);
                self.model = outcomes[0].clone();
            }
            Err(WalFault::Io { .. }) => {
                self.coverage.refused += 1;
                let found = Model::of(self.wal());
                if !outcomes.contains(&found) {
                    return Err(format!("{change:?} was refused, and left {found:?}"));
                }
                self.model = found;
                outcomes = vec![self.model.clone()];
            }
            Err(WalFault::Failed { .. }) => {
                self.coverage.failed += 1;
                if !matches!(self.make(&change), Err(WalFault::Ended)) {
                    return Err(format!("{change:?} after a failure"));
                }
                return self.reopen(&outcomes);
            }
            Err(other) => return Err(format!("{change:?}: {other}")),
        }
        if faults.power_fails_after.is_some() || self.random.below(12) == 0 {
            return self.reopen(&outcomes);
        }
        self.check()
    }

    /// A power loss, or the end of the process.
    fn reopen(&mut self, outcomes: &[Model]) -> Result<(), String> {
        self.wal = None;
        if self.random.below(4) > 0 {
            self.disk = self.disk.crash();
        }
        let wal = open(&self.disk, self.options).map_err(|fault| format!("opening: {fault}"))?;
        let found = Model::of(&wal);
        let Some(at) = outcomes.iter().position(|model| *model == found) else {
            return Err(format!("found {found:?}, expected one of {outcomes:?}"));
        };
        self.coverage.reopened += 1;
        self.coverage.in_part += usize::from(at > 0 && at + 1 < outcomes.len());
        (self.wal, self.model) = (Some(wal), found);
        self.check()
    }

    fn check(&mut self) -> Result<(), String> {
        let found = Model::of(self.wal());
        if found != self.model {
            return Err(format!("holds {found:?}, expected {:?}", self.model));
        }
        let reader = self.wal().reader();
        let first = self.random.below(self.model.last().index + 3);
        let range = first..first + self.random.below(12);
        let most_bytes = self.random.below(4_000) as usize;
        let read = reader.read(range.clone(), most_bytes).map_err(|fault| fault.to_string())?;
        let mut bytes = 0;
        let expected = self.model.entries.iter().filter(|entry| range.contains(&entry.id.index));
        let expected: Vec<Entry> = expected
            .enumerate()
            .take_while(|(at, entry)| {
                bytes += entry.body.len();
                *at == 0 || bytes <= most_bytes
            })
            .map(|(_, entry)| entry.clone())
            .collect();
        // An entry that fills the answer ends it, even if empty ones follow.
        if !expected.starts_with(&read) || (read.is_empty() && !expected.is_empty()) {
            return Err(format!("{range:?} of {most_bytes} bytes: {read:?}, not {expected:?}"));
        }
        if self.random.below(5) == 0 { self.rot() } else { Ok(()) }
    }

    /// Changes acknowledged bytes: the WAL must not open.
    fn rot(&mut self) -> Result<(), String> {
        let files = self.disk.contents();
        let end = self.wal().end_of_records();
        let ranges = acknowledged_bytes(&files, end);
        let (name, range) = &ranges[self.random.below(ranges.len() as u64) as usize];
        let at = range.start + self.random.below((range.end - range.start) as u64) as usize;
        let mut rotten = files.clone();
        let bytes = rotten.get_mut(name).expect("the file");
        let len = if self.random.below(2) == 0 { 1 } else { self.random.below(40) as usize + 1 };
        for byte in &mut bytes[at..(at + len).min(range.end)] {
            *byte ^= 1 + self.random.below(255) as u8;
        }
        self.coverage.rotten += 1;
        match open(&SimulatedStorage::with_contents(1, &rotten), self.options) {
            Err(WalFault::Damaged(corruption)) if corruption.file == *name => Ok(()),
            Err(WalFault::Version { .. }) if len > 1 => Ok(()),
            other => Err(format!("rot of {name} at {at}, {len} bytes: {:?}", other.map(drop))),
        }
    }
}

/// The bytes that nothing may change: whole sectors.
pub(super) fn acknowledged_bytes(files: &Files, end: u64) -> Vec<(String, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    for (name, bytes) in files {
        match file_number(name) {
            Some(number) => {
                let next = files.get(&file_name(number + 1)).map(|next| {
                    let header = next[..SECTOR_BYTES].try_into().expect("a sector");
                    FileHeader::decode(header, number + 1, identity().node_id).expect("a header")
                });
                let end = next.map_or(end, |next| next.end_before);
                // The last block may have sectors behind the records.
                let sectors = 1 + end.div_ceil(500) as usize;
                assert!(sectors * SECTOR_BYTES <= blocks_up_to(end) as usize);
                found.push((name.clone(), 0..(sectors * SECTOR_BYTES).min(bytes.len())));
            }
            None if name == "state" => {
                found.push((name.clone(), 0..SECTOR_BYTES));
                found.push((name.clone(), 4096..4096 + SECTOR_BYTES));
            }
            None => {}
        }
    }
    found
}

fn run(seed: u64) -> Result<Coverage, String> {
    let mut world = World::new(seed);
    for step in 0..60 {
        world.step().map_err(|what| format!("seed {seed}, step {step}: {what}"))?;
    }
    Ok(world.coverage)
}

#[test]
fn the_wal_holds_what_a_plain_list_does() {
    let mut sum = Coverage::default();
    // More of them than a build has time for, when asked for.
    let seeds = std::env::var("WELLSPRING_WAL_SEEDS").map_or(1_000, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let coverage = run(seed).unwrap_or_else(|what| panic!("{what}"));
        sum.acknowledged += coverage.acknowledged;
        sum.failed += coverage.failed;
        sum.refused += coverage.refused;
        sum.reopened += coverage.reopened;
        sum.in_part += coverage.in_part;
        sum.rotten += coverage.rotten;
        sum.reused += coverage.reused;
    }
    println!("{sum:?}");
    let Coverage { acknowledged, failed, refused, reopened, in_part, rotten, reused } = sum;
    assert!(acknowledged > 30_000 && failed > 1_000 && refused > 500 && reopened > 4_000);
    assert!(in_part > 20 && rotten > 5_000 && reused > 500, "{sum:?}");
}

#[test]
fn every_planted_bug_is_found() {
    for bug in [
        Plant::AckBeforeBarrier,
        Plant::VoteNotDurable,
        Plant::ForgetsCut,
        Plant::TakesRotForTorn,
        Plant::TakesFormerLife,
        Plant::ReusesEarly,
    ] {
        plant(Some(bug));
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let found = (0..200).find_map(|seed| match std::panic::catch_unwind(|| run(seed)) {
            Ok(Ok(_)) => None,
            Ok(Err(what)) => Some(what),
            Err(_) => Some(format!("seed {seed}: a panic")),
        });
        std::panic::set_hook(hook);
        plant(None);
        let found = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        println!("{bug:?}: {}", &found[..found.len().min(100)]);
    }
}
