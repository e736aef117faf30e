//! The rule of a shared log, which determines the claims and batches that take effect.
//!
//! Every node reads the same entries in the same order and applies the same rule, so all agree on
//! the leader and the log's content, whatever the engine did to offers in transit:
//!
//! - The first **founding** counts; nothing counts before it.
//! - A **claim** counts iff its epoch is greater than the epoch in force.
//! - A **batch** counts iff its epoch is the one in force, its first position is the next one, and
//!   it names the batch before it by its chain. A batch in parts counts where its last part
//!   arrives.
//! - A **beat** shows that the current leader is alive, and its identity. A **probe** has no
//!   effect.
//! - Everything else is void.
//!
//! Why this is sufficient: after a claim is delivered, only batches of its epoch count, and the
//! claimant judges only after its own claim has been delivered *to it*. It thus knows everything
//! that counted before, and everything that counts from then on is its own, in its order, without
//! gaps. A late batch of an older leader is void, a repeated batch is not next the second time, and
//! a batch after a lost one is not next either.
//!
//! Parts may arrive in any order and repeatedly, mixed with beats, probes and void entries: every
//! part identifies its batch, and a leader never produces two batches for the same position, so the
//! order of delivery does not matter. A claim voids waiting parts.

use super::entry::{BatchId, BatchPart, Claim, ClusterId, Entry, EntryFault};
use crate::plants::{Plant, planted};
use crate::shared::entry::ENTRY_HEADER_BYTES;
use std::sync::Arc;
use wellspring_format::record::{read_u32, read_u64};
use wellspring_types::Position;

/// Upper bound of epochs: a lease's token is `epoch · 2^32 + n` and must fit into 53 bits.
pub const EPOCH_LIMIT: u64 = 1 << 21;

/// A node whose claim took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Its name.
    pub node: String,
    /// The process of that node.
    pub start: u64,
    /// The URL for its clients.
    pub url: String,
    /// Its epoch.
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

/// A batch that took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedBatch {
    /// Its identity.
    pub batch: BatchId,
    /// Its entries, in the order of its parts.
    pub entries: Vec<Arc<[u8]>>,
}

impl AcceptedBatch {
    /// Its records, in as many slices as it had parts; a slice may end within a record.
    pub fn body_slices(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| &entry[ENTRY_HEADER_BYTES..])
    }
}

/// The effect of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEffect {
    /// The log is founded.
    Founded {
        /// Its cluster.
        cluster: ClusterId,
        /// Its name.
        log: String,
    },
    /// A claim took effect: from now on this node leads.
    Led(Claimant),
    /// The current leader is alive.
    Alive,
    /// A part of an incomplete batch.
    Part,
    /// A batch took effect.
    Accepted(AcceptedBatch),
    /// None: a probe with this tag.
    Probe(u64),
    /// None, for every reader alike.
    Void(VoidReason),
}

/// Why an entry has no effect. An engine may cause each of these; they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VoidReason {
    /// It precedes the founding.
    NotFounded,
    /// The log is founded already.
    SecondFounding,
    /// Its epoch is not greater than the one in force.
    ClaimTooLate,
    /// Its epoch is too large for lease tokens.
    EpochTooLarge,
    /// A beat or batch of a former leader.
    OldEpoch,
    /// A beat or batch of an epoch without a claim: the claim was lost, and its writer has a bug.
    FutureEpoch,
    /// A batch that does not begin at the next position: it is repeated, or an earlier one was
    /// lost.
    NotNext,
    /// A batch that names another predecessor.
    OtherPast,
    /// A part that has already arrived.
    Repeated,
    /// The parts do not form the batch that they claim to.
    PartsDiffer,
}

impl VoidReason {
    /// Its name in figures.
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

/// An incomplete batch.
#[derive(Debug, Clone)]
struct Pending {
    batch: BatchId,
    parts: Vec<Option<Arc<[u8]>>>,
    missing: usize,
}

/// What a reader has to know of the entries before a place, to go on after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleState {
    /// The cluster of the log.
    pub cluster: ClusterId,
    /// Its name.
    pub log: String,
    /// The epoch in force, 0 before the first claim.
    pub epoch: u64,
    /// The node whose claim is in force, if that is known.
    pub leader: Option<Claimant>,
    /// Position of the last event.
    pub head: Position,
    /// The chain up to the last batch.
    pub chain: u32,
}

impl RuleState {
    /// Encodes it: the head (8 bytes), the chain (4), the epoch (8), the length of the founding
    /// entry (4) and that entry, then the claim in force as an entry, or nothing.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let founding = Entry::Founded { cluster: self.cluster, log: &self.log }.encode();
        let mut bytes = self.head.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.chain.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&(founding.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&founding);
        if let Some(Claimant { node, start, url, epoch }) = &self.leader {
            let claim = Claim { epoch: *epoch, node, start: *start, url };
            bytes.extend_from_slice(&Entry::Claim(claim).encode());
        }
        bytes
    }

    /// Decodes it; `None` if the bytes are not such a state.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<RuleState> {
        let (numbers, entries) = bytes.split_at_checked(24)?;
        let (founding, claim) = entries.split_at_checked(read_u32(numbers, 20) as usize)?;
        let Ok(Entry::Founded { cluster, log }) = Entry::decode(founding) else { return None };
        let epoch = read_u64(numbers, 12);
        let leader = match claim {
            [] => None,
            claim => match Entry::decode(claim) {
                Ok(Entry::Claim(claim)) if claim.epoch == epoch => Some(Claimant::of(&claim)),
                _ => return None,
            },
        };
        let (head, chain) = (read_u64(numbers, 0), read_u32(numbers, 8));
        Some(RuleState { cluster, log: log.to_owned(), epoch, leader, head, chain })
    }
}

/// The state of a reader of a shared log.
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
    /// The state after a batch that took effect, given its epoch, [last position](BatchId::last)
    /// and [chain](BatchId::chain). The leader is unknown until the next claim or beat.
    #[must_use]
    pub fn at(epoch: u64, head: Position, chain: u32, cluster: Option<ClusterId>) -> Rule {
        Rule { cluster, epoch, head, chain, leader: None, pending: None }
    }

    /// The same, with the last known leader, which is used if its epoch is in force.
    #[must_use]
    pub fn led_by(mut self, leader: Option<Claimant>) -> Rule {
        self.leader = leader.filter(|leader| leader.epoch == self.epoch);
        self
    }

    /// A reader that knows this and nothing else.
    #[must_use]
    pub fn from_state(state: &RuleState) -> Rule {
        Rule::at(state.epoch, state.head, state.chain, Some(state.cluster))
            .led_by(state.leader.clone())
    }

    /// What another reader of the log of this name has to know to go on from here; `None` before
    /// the founding, and while a batch is incomplete.
    #[must_use]
    pub fn state(&self, log: &str) -> Option<RuleState> {
        let cluster = self.cluster.filter(|_| !self.awaits_parts())?;
        let (log, leader) = (log.to_owned(), self.leader.clone());
        let Rule { epoch, head, chain, .. } = *self;
        Some(RuleState { cluster, log, epoch, leader, head, chain })
    }

    /// The epoch in force, 0 before the first claim.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Position of the last event.
    #[must_use]
    pub fn head(&self) -> Position {
        self.head
    }

    /// The chain up to the last batch, 0 before the first.
    #[must_use]
    pub fn chain(&self) -> u32 {
        self.chain
    }

    /// The leader in force, if its claim was read.
    #[must_use]
    pub fn leader(&self) -> Option<&Claimant> {
        self.leader.as_ref()
    }

    /// The log's cluster, once founded.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// Whether a batch is incomplete: then [`at`](Self::at) does not capture the whole state.
    #[must_use]
    pub fn awaits_parts(&self) -> bool {
        self.pending.is_some()
    }

    /// Applies the next entry.
    ///
    /// # Errors
    /// [`EntryFault`] if the bytes cannot be read. The state is then unchanged, and reading must
    /// stop: for a reader that understands them they may take effect.
    pub fn judge(&mut self, entry: Arc<[u8]>) -> Result<EntryEffect, EntryFault> {
        let decoded = Entry::decode(&entry)?;
        if let Entry::Probe { tag } = decoded {
            return Ok(EntryEffect::Probe(tag));
        }
        if let Entry::Founded { cluster, log } = decoded {
            if self.cluster.is_some() {
                return Ok(EntryEffect::Void(VoidReason::SecondFounding));
            }
            self.cluster = Some(cluster);
            return Ok(EntryEffect::Founded { cluster, log: log.to_owned() });
        }
        if self.cluster.is_none() {
            return Ok(EntryEffect::Void(VoidReason::NotFounded));
        }
        Ok(match decoded {
            Entry::Claim(claim) => {
                if claim.epoch <= self.epoch {
                    return Ok(EntryEffect::Void(VoidReason::ClaimTooLate));
                }
                if claim.epoch >= EPOCH_LIMIT {
                    return Ok(EntryEffect::Void(VoidReason::EpochTooLarge));
                }
                let claimant = Claimant::of(&claim);
                self.epoch = claim.epoch;
                self.pending = None;
                self.leader = Some(claimant.clone());
                EntryEffect::Led(claimant)
            }
            Entry::Beat(claim) => match self.epoch_void(claim.epoch) {
                Some(reason) => EntryEffect::Void(reason),
                None => {
                    // A reader that resumed after a claim learns the leader here.
                    self.leader.get_or_insert_with(|| Claimant::of(&claim));
                    EntryEffect::Alive
                }
            },
            Entry::Batch(part) => match self.batch_void(&part.batch) {
                Some(reason) => EntryEffect::Void(reason),
                None => {
                    let BatchPart { batch, part, parts, .. } = part;
                    self.take_part(batch, part, parts, entry)
                }
            },
            Entry::Founded { .. } | Entry::Probe { .. } => unreachable!("answered above"),
        })
    }

    /// Applies the next of [the batches that took effect](super::Fetched::Accepted), told without
    /// the claims between them: it has to follow the one before by position and chain, and its
    /// epoch is in force from then on.
    ///
    /// # Errors
    /// [`EntryFault`] if the bytes cannot be read, or are not a whole batch. The state is then
    /// unchanged.
    pub fn judge_accepted(&mut self, entry: Arc<[u8]>) -> Result<EntryEffect, EntryFault> {
        let Entry::Batch(BatchPart { batch, parts: 1, .. }) = Entry::decode(&entry)? else {
            return Err(EntryFault::Malformed("it is not a whole batch"));
        };
        let void = if batch.first != self.head + 1 {
            Some(VoidReason::NotNext)
        } else if batch.previous != self.chain {
            Some(VoidReason::OtherPast)
        } else if batch.epoch < self.epoch {
            Some(VoidReason::OldEpoch)
        } else {
            None
        };
        if let Some(reason) = void {
            return Ok(EntryEffect::Void(reason));
        }
        if batch.epoch > self.epoch {
            (self.epoch, self.leader) = (batch.epoch, None);
        }
        Ok(self.accept(AcceptedBatch { batch, entries: vec![entry] }))
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

    /// Processes a part of a batch that may take effect.
    fn take_part(
        &mut self,
        batch: BatchId,
        part: u16,
        parts: u16,
        entry: Arc<[u8]>,
    ) -> EntryEffect {
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
            return EntryEffect::Void(VoidReason::Repeated);
        }
        *slot = Some(entry);
        pending.missing -= 1;
        if pending.missing > 0 {
            self.pending = Some(pending);
            return EntryEffect::Part;
        }
        let entries = pending.parts.into_iter().flatten().collect();
        let accepted = AcceptedBatch { batch, entries };
        let bytes: usize = accepted.body_slices().map(<[u8]>::len).sum();
        let crc = accepted.body_slices().fold(0, crc32c::crc32c_append);
        if bytes != batch.body_bytes as usize || crc != batch.body_crc {
            return EntryEffect::Void(VoidReason::PartsDiffer);
        }
        self.accept(accepted)
    }

    fn accept(&mut self, accepted: AcceptedBatch) -> EntryEffect {
        self.head = accepted.batch.last();
        self.chain = accepted.batch.chain();
        self.pending = None;
        EntryEffect::Accepted(accepted)
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rule_model_tests.rs"]
mod model;
