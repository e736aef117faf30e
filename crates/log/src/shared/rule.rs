//! The one rule over a shared log: which claims and batches take effect.
//!
//! Every node reads the same entries in the same order and applies the same rule, so all agree on
//! who leads and what the log holds, whatever the engine did to offers on the way:
//!
//! - The first **founding** counts; nothing counts before it.
//! - A **claim** counts iff its epoch is greater than the epoch in force.
//! - A **batch** counts iff its epoch is the one in force, its first position is the next one, and
//!   it names the batch before it by its chain. One in parts counts where the last of its parts
//!   arrives.
//! - A **beat** shows that the leader in force is alive, and who it is. A **probe** does nothing.
//! - Everything else is void.
//!
//! Why this is enough. After a claim is delivered, only batches of its epoch count, and the
//! claimant judges only after its own claim has been delivered *to it*: so it knows everything that
//! counted before, and everything that counts from then on is its own, in its order, without gaps.
//! A batch of an older leader that arrives late is void, a batch that arrives twice is not next the
//! second time, and what follows one that was lost is not next either.
//!
//! Parts may arrive in any order and several times, mixed with beats, probes and what is void: all
//! parts say which batch they are of, and a leader never makes two batches of the same position, so
//! the order in which an engine brings them decides nothing. A claim voids the parts that wait.

use super::entry::{BatchId, BatchPart, Claim, ClusterId, Entry, EntryFault};
use crate::plants::{Plant, planted};
use crate::shared::entry::ENTRY_HEADER_BYTES;
use std::sync::Arc;
use wellspring_types::Position;

/// Epochs are below this: a lease's token is `epoch · 2^32 + n` and must fit into 53 bits.
pub const EPOCH_LIMIT: u64 = 1 << 21;

/// A node whose claim counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Its name.
    pub node: String,
    /// Which process of that node.
    pub start: u64,
    /// Where its clients reach it.
    pub url: String,
    /// The epoch it leads in.
    pub epoch: u64,
}

impl Claimant {
    fn of(claim: &Claim<'_>) -> Claimant {
        Claimant {
            node: claim.node.to_owned(),
            start: claim.start,
            url: claim.url.to_owned(),
            epoch: claim.epoch,
        }
    }
}

/// A batch that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedBatch {
    /// What it says of itself.
    pub batch: BatchId,
    /// The entries that carried it, in the order of its parts.
    pub entries: Vec<Arc<[u8]>>,
}

impl AcceptedBatch {
    /// Its records, in as many pieces as it had parts; a piece may end within a record.
    pub fn body_slices(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| &entry[ENTRY_HEADER_BYTES..])
    }
}

/// What an entry does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The log begins.
    Founded {
        /// The cluster it belongs to.
        cluster: ClusterId,
        /// Its name.
        log: String,
    },
    /// A claim took effect: from now on this node leads.
    Led(Claimant),
    /// The leader in force is alive.
    Alive,
    /// A part of a batch that is not whole yet.
    Part,
    /// A batch counts.
    Accepted(AcceptedBatch),
    /// Nothing: a probe with this tag.
    Probe(u64),
    /// Nothing, for every reader alike.
    Void(VoidReason),
}

/// Why an entry has no effect. Each is expected of an engine, and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VoidReason {
    /// It stands before the founding.
    NotFounded,
    /// The log is founded already.
    SecondFounding,
    /// A claim of an epoch that is in force or was.
    ClaimTooLate,
    /// A claim of an epoch that no lease's token could hold.
    EpochTooLarge,
    /// A beat or batch of a leader that leads no more.
    OldEpoch,
    /// A beat or batch of an epoch nobody has claimed: its claim was lost, and its writer at fault.
    FutureEpoch,
    /// A batch that does not begin at the next position: repeated, or one before it was lost.
    NotNext,
    /// A batch that names another batch before it.
    OtherPast,
    /// A part that was there already.
    Repeated,
    /// The parts do not make the batch they say they do.
    PartsDiffer,
}

impl VoidReason {
    /// A word for figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            VoidReason::NotFounded => "not-founded",
            VoidReason::SecondFounding => "second-founding",
            VoidReason::ClaimTooLate => "claim-too-late",
            VoidReason::EpochTooLarge => "epoch-too-large",
            VoidReason::OldEpoch => "old-epoch",
            VoidReason::FutureEpoch => "future-epoch",
            VoidReason::NotNext => "not-next",
            VoidReason::OtherPast => "other-past",
            VoidReason::Repeated => "repeated",
            VoidReason::PartsDiffer => "parts-differ",
        }
    }
}

/// A batch whose parts are not all there.
#[derive(Debug, Clone)]
struct Pending {
    batch: BatchId,
    parts: Vec<Option<Arc<[u8]>>>,
    missing: usize,
}

/// Where a reader of a shared log stands.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    cluster: Option<ClusterId>,
    epoch: u64,
    head: Position,
    chain: u32,
    leader: Option<Claimant>,
    pending: Option<Pending>,
}

impl Rule {
    /// Where a reader stands after a batch that counted, whose epoch, [last
    /// position](BatchId::last) and [chain](BatchId::chain) these are. Who leads is not known until
    /// the next claim or beat.
    #[must_use]
    pub fn at(epoch: u64, head: Position, chain: u32, cluster: Option<ClusterId>) -> Rule {
        Rule { cluster, epoch, head, chain, leader: None, pending: None }
    }

    /// The same, knowing whose claim was seen last; it counts if it is that of the epoch in force.
    #[must_use]
    pub fn led_by(mut self, leader: Option<Claimant>) -> Rule {
        self.leader = leader.filter(|leader| leader.epoch == self.epoch);
        self
    }

    /// The epoch in force, 0 before the first claim.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Position of the last event that counted.
    #[must_use]
    pub fn head(&self) -> Position {
        self.head
    }

    /// The chain up to the last batch that counted, 0 before the first.
    #[must_use]
    pub fn chain(&self) -> u32 {
        self.chain
    }

    /// Whose claim is in force, if it was read here.
    #[must_use]
    pub fn leader(&self) -> Option<&Claimant> {
        self.leader.as_ref()
    }

    /// The cluster the log belongs to, once it is founded.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// Whether a batch in parts is half there: then what is told by [`at`](Self::at) is not all of
    /// the state.
    #[must_use]
    pub fn awaits_parts(&self) -> bool {
        self.pending.is_some()
    }

    /// Applies the next entry.
    ///
    /// # Errors
    /// [`EntryFault`] if the bytes cannot be read. Nothing has changed then, and reading must not
    /// go on: who can read them may find that they count.
    pub fn judge(&mut self, entry: Arc<[u8]>) -> Result<Verdict, EntryFault> {
        let decoded = Entry::decode(&entry)?;
        if let Entry::Probe { tag } = decoded {
            return Ok(Verdict::Probe(tag));
        }
        if let Entry::Founded { cluster, log } = decoded {
            if self.cluster.is_some() {
                return Ok(Verdict::Void(VoidReason::SecondFounding));
            }
            self.cluster = Some(cluster);
            return Ok(Verdict::Founded { cluster, log: log.to_owned() });
        }
        if self.cluster.is_none() {
            return Ok(Verdict::Void(VoidReason::NotFounded));
        }
        Ok(match decoded {
            Entry::Claim(claim) => {
                if claim.epoch <= self.epoch {
                    return Ok(Verdict::Void(VoidReason::ClaimTooLate));
                }
                if claim.epoch >= EPOCH_LIMIT {
                    return Ok(Verdict::Void(VoidReason::EpochTooLarge));
                }
                let claimant = Claimant::of(&claim);
                self.epoch = claim.epoch;
                self.pending = None;
                self.leader = Some(claimant.clone());
                Verdict::Led(claimant)
            }
            Entry::Beat(claim) => match self.epoch_void(claim.epoch) {
                Some(reason) => Verdict::Void(reason),
                None => {
                    // Who goes on behind a claim learns here whose it was.
                    self.leader.get_or_insert_with(|| Claimant::of(&claim));
                    Verdict::Alive
                }
            },
            Entry::Batch(part) => match self.batch_void(&part.batch) {
                Some(reason) => Verdict::Void(reason),
                None => {
                    let BatchPart { batch, part, parts, .. } = part;
                    self.take_part(batch, part, parts, entry)
                }
            },
            Entry::Founded { .. } | Entry::Probe { .. } => unreachable!("answered above"),
        })
    }

    fn epoch_void(&self, epoch: u64) -> Option<VoidReason> {
        match epoch.cmp(&self.epoch) {
            _ if planted(Plant::NoEpoch) => None,
            std::cmp::Ordering::Less => Some(VoidReason::OldEpoch),
            std::cmp::Ordering::Greater => Some(VoidReason::FutureEpoch),
            std::cmp::Ordering::Equal => None,
        }
    }

    fn batch_void(&self, batch: &BatchId) -> Option<VoidReason> {
        if let Some(reason) = self.epoch_void(batch.epoch) {
            Some(reason)
        } else if planted(Plant::NoDense) {
            None
        } else if batch.first != self.head + 1 {
            Some(VoidReason::NotNext)
        } else if batch.previous != self.chain && !planted(Plant::NoEpoch) {
            Some(VoidReason::OtherPast)
        } else {
            None
        }
    }

    /// Takes a part of a batch that may count.
    fn take_part(&mut self, batch: BatchId, part: u16, parts: u16, entry: Arc<[u8]>) -> Verdict {
        if parts == 1 {
            return self.accept(AcceptedBatch { batch, entries: vec![entry] });
        }
        let same =
            |pending: &Pending| pending.batch == batch && pending.parts.len() == parts.into();
        let mut pending = self.pending.take().filter(same).unwrap_or_else(|| Pending {
            batch,
            parts: vec![None; parts.into()],
            missing: parts.into(),
        });
        let slot = &mut pending.parts[usize::from(part)];
        if slot.is_some() {
            self.pending = Some(pending);
            return Verdict::Void(VoidReason::Repeated);
        }
        *slot = Some(entry);
        pending.missing -= 1;
        if pending.missing > 0 {
            self.pending = Some(pending);
            return Verdict::Part;
        }
        let entries = pending.parts.into_iter().flatten().collect();
        let accepted = AcceptedBatch { batch, entries };
        let bytes: usize = accepted.body_slices().map(<[u8]>::len).sum();
        let crc = accepted.body_slices().fold(0, crc32c::crc32c_append);
        if bytes != batch.body_bytes as usize || crc != batch.body_crc {
            return Verdict::Void(VoidReason::PartsDiffer);
        }
        self.accept(accepted)
    }

    fn accept(&mut self, accepted: AcceptedBatch) -> Verdict {
        self.head = accepted.batch.last();
        self.chain = accepted.batch.chain();
        self.pending = None;
        Verdict::Accepted(accepted)
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rule_model_tests.rs"]
mod model;
