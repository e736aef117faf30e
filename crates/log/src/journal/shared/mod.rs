//! The journal of a log beyond one machine: the order of a [shared log](crate::shared) is the
//! commit, and the segments here are its first view.
//!
//! A batch is written into a segment only after the rule has accepted it, so a copy has no tail
//! that other copies lack. A batch is answered only after it has arrived, so a leader is not ahead
//! of the others. Commits make no barrier: what a power loss removes from a copy is fetched again,
//! from the place after the last remaining batch.
//!
//! A node's role changes while the log is open (`sequencer/role.rs`): what was only staged is taken
//! back, offers stay in doubt until they arrive or are overtaken, leases end; readers,
//! subscriptions and views notice nothing. Each entry says whether its batch begins a segment, so
//! copies have the same segments. What an opening or a read finds rotten is fetched again from the
//! place that segments and batches name.
//!
//! The engine is polled and never waited for: an appending thread sends its own batch and takes
//! what has arrived, and the journal's thread sleeps without a lock.
//!
//! - [`attend`]: time-driven tasks.
//! - [`arrivals`]: arriving entries.
//! - [`offers`]: offered entries that have not arrived.
//! - [`confirmations`]: questions for the end, one round for all waiting requests.
//! - [`copy`]: the identity of a copy.
//! - [`trimmed`]: entries that the engine has dropped: what it is told before, and how a copy that
//!   lacks them is completed.

mod arrivals;
mod attend;
mod confirmations;
mod copy;
mod offers;
mod trimmed;

pub(crate) use confirmations::Confirmations;
pub(crate) use copy::{CopyIdentity, JOURNAL_FILE};

use crate::journal::{
    Journal, JournalBatch, JournalError, JournalLimits, Resume, SegmentWriter, Settlement,
};
use crate::options::Clock;
use crate::plants::{Plant, planted};
use crate::shared::entry::{BatchId, batch_entries};
use crate::shared::lead::{LeadState, LeadTimer};
use crate::shared::rule::{AcceptedBatch, Rule};
use crate::shared::{
    Arrival, AskId, Fetched, OfferOutcome, Place, SharedLog, SharedLogError, SharedOptions,
};
use crate::storage::{Storage, StorageFile};
use offers::Offers;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;
use trimmed::{DurableCopy, Refill};
use wellspring_format::history_of_cluster;
use wellspring_format::segment::SEGMENT_HEADER_BYTES;
use wellspring_types::{HistoryId, Position};

/// Maximum batch size that requests join, whatever the engine accepts.
const BATCH_BYTES: usize = 8 << 20;
/// Smaller batches are split into parts only if a single request is larger.
const SMALLEST_BATCH_BYTES: usize = 4 << 10;
/// Amount fetched at a time for repairs.
const FETCH_BYTES: usize = 4 << 20;

/// Where a copy ends and so resumes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    /// Place of the last batch in the segments; 0 if there is none.
    pub(crate) place: Place,
    /// Its epoch, last position and chain.
    pub(crate) epoch: u64,
    pub(crate) head: Position,
    pub(crate) chain: u32,
}

/// Figures about the shared log since it was opened.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    /// The engine's generation.
    pub(crate) generation: u64,
    /// Entries without effect.
    pub(crate) void_entries: AtomicU64,
    /// Entries that this node offered repeatedly.
    pub(crate) repeated_offers: AtomicU64,
    /// Batches of other nodes applied here.
    pub(crate) foreign_batches: AtomicU64,
    /// The lead timeout over the engine as it is, in µs.
    pub(crate) lead_timeout_us: AtomicU64,
    /// The pending order about the lead.
    pub(crate) told: OrderSlot,
    /// A check found the file with the copy's identity damaged; the journal writes it again.
    pub(crate) is_identity_lost: AtomicBool,
}

impl SharedCounters {
    pub(crate) fn lead_timeout(&self) -> Duration {
        Duration::from_micros(self.lead_timeout_us.load(Ordering::Relaxed))
    }
}

/// An order about the lead. A later order replaces an earlier one.
#[derive(Debug, Default)]
pub(crate) struct OrderSlot(AtomicU8);

/// The orders of an [`OrderSlot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeadOrder {
    Claim = 1,
    Resign = 2,
}

impl OrderSlot {
    pub(crate) fn tell(&self, order: LeadOrder) {
        self.0.store(order as u8, Ordering::Relaxed);
    }

    /// Takes the order that a node in this state can settle. An order to claim stays while a claim
    /// is in flight: that claim was offered before the order, and may lose.
    fn take(&self, state: LeadState) -> Option<LeadOrder> {
        let told = match state {
            LeadState::Claiming => {
                let resign = LeadOrder::Resign as u8;
                let taken =
                    self.0.compare_exchange(resign, 0, Ordering::Relaxed, Ordering::Relaxed);
                taken.unwrap_or(0)
            }
            _ => self.0.swap(0, Ordering::Relaxed),
        };
        let order = [LeadOrder::Claim, LeadOrder::Resign];
        order.into_iter().find(|order| *order as u8 == told)
    }
}

/// The state of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// `end`: where the shared log ended when that was asked.
    CatchingUp {
        end: Option<Place>,
    },
    Following,
    Claiming {
        epoch: u64,
    },
    Leading {
        epoch: u64,
    },
    Detached,
}

/// A batch that has arrived and is not in the segments yet.
#[derive(Debug)]
enum ArrivedBatch {
    Own(JournalBatch, BatchId),
    Foreign(Arc<AcceptedBatch>),
}

/// The journal; see the module's documentation.
pub(crate) struct SharedJournal {
    engine: Box<dyn SharedLog>,
    writer: SegmentWriter,
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    options: SharedOptions,
    entry_bytes: usize,
    identity: Option<CopyIdentity>,
    /// The history that the identity names, for readers of the log.
    history: Arc<OnceLock<HistoryId>>,
    /// When to retry writing it after a failure.
    identity_due_us: Option<u64>,
    rule: Rule,
    lead: LeadTimer,
    stage: Stage,
    /// Place of the last entry that arrived.
    seen: Place,
    /// Everything up to this place is in the segments.
    applied: Place,
    /// Place of the last batch in the segments.
    last_batch: Place,
    /// The last batch of the copy. The entry at its place must equal it; otherwise the histories
    /// differ.
    anchor: Option<Origin>,
    /// What the copy lacks, if the engine has dropped it.
    refill: Option<Refill>,
    durable: Option<DurableCopy>,
    offers: Offers,
    /// The epoch in which an earlier process of this node led, if that was in force at the opening.
    former_epoch: Option<u64>,
    /// The chain after the last offered batch.
    offered_chain: u32,
    arrived: Option<ArrivedBatch>,
    /// Outcomes to report, oldest first.
    told: VecDeque<Settlement>,
    confirmations: Arc<Confirmations>,
    counters: Arc<SharedCounters>,
    next_ask: u64,
    /// The first of this journal's own questions while it catches up, and when the last was asked.
    own_ask: Option<(AskId, u64)>,
    /// Whether the engine was unavailable when last asked, so that nothing can be heard.
    is_cut_off: bool,
    /// When the question that others wait for was asked.
    asked_at_us: u64,
}

impl SharedJournal {
    /// A journal that resumes where a copy ends. Appends are refused until it leads.
    pub(crate) fn new(
        mut engine: Box<dyn SharedLog>,
        writer: SegmentWriter,
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        options: SharedOptions,
        identity: Option<CopyIdentity>,
        origin: Origin,
    ) -> SharedJournal {
        let limits = engine.limits();
        let lead_timeout = options.lead_timeout.max(limits.lead_timeout_min);
        let lead_timeout_us = lead_timeout.as_micros() as u64;
        let now_us = clock.monotonic_us();
        let cluster = identity.as_ref().map(|identity| identity.cluster);
        let generation = engine.generation();
        let leader = identity.as_ref().and_then(|identity| identity.leader.clone());
        // A copy without a batch reads the founding entry again, to check that it is the same.
        let rule = match origin.place {
            Place(0) => Rule::default(),
            _ => Rule::at(origin.epoch, origin.head, origin.chain, cluster).led_by(leader),
        };
        // The entry of the last batch arrives once more, for comparison. An engine that is
        // unreachable now says later that it has dropped entries.
        let before = Place(origin.place.0.saturating_sub(1));
        let mut gap = engine.gap_after(before).unwrap_or_default();
        let is_kept = gap.is_none() && origin.place > Place(0);
        let anchor = is_kept.then_some(origin);
        if gap.is_some() {
            gap = engine.gap_after(origin.place).unwrap_or_default();
        }
        let after = if is_kept { before } else { origin.place };
        let late = u64::from(planted(Plant::ResumesLate) && origin.place > Place(0));
        engine.follow(gap.as_ref().map_or(Place(after.0 + late), |gap| gap.place.max(after)));
        let mut journal = SharedJournal {
            writer,
            storage,
            clock,
            entry_bytes: limits.entry_bytes,
            history: Arc::new(
                cluster
                    .map_or_else(OnceLock::new, |id| history_of_cluster(id.0, generation).into()),
            ),
            identity,
            identity_due_us: None,
            rule,
            lead: LeadTimer::new(options.claims, lead_timeout_us, options.start, now_us),
            options,
            stage: Stage::CatchingUp { end: None },
            seen: after,
            applied: origin.place,
            last_batch: origin.place,
            anchor,
            refill: None,
            durable: DurableCopy::new(limits.retention, now_us),
            offers: Offers::new(limits.window, (lead_timeout_us / 2).max(1)),
            former_epoch: None,
            offered_chain: origin.chain,
            arrived: None,
            told: VecDeque::new(),
            confirmations: Arc::default(),
            counters: Arc::new(SharedCounters { generation, ..SharedCounters::default() }),
            next_ask: 1,
            own_ask: None,
            is_cut_off: false,
            asked_at_us: 0,
            engine,
        };
        if let Some(gap) = gap {
            journal.gap(gap);
        }
        journal
    }

    pub(crate) fn confirmations(&self) -> Arc<Confirmations> {
        Arc::clone(&self.confirmations)
    }

    pub(crate) fn counters(&self) -> Arc<SharedCounters> {
        Arc::clone(&self.counters)
    }

    /// The log's history, once this node knows which shared log it follows.
    pub(crate) fn history(&self) -> Arc<OnceLock<HistoryId>> {
        Arc::clone(&self.history)
    }

    fn now_us(&self) -> u64 {
        self.clock.monotonic_us()
    }
}

impl Journal for SharedJournal {
    fn limits(&self) -> JournalLimits {
        let body_bytes = self.entry_bytes.saturating_sub(crate::shared::entry::ENTRY_HEADER_BYTES);
        JournalLimits {
            batch_bytes: body_bytes.clamp(SMALLEST_BATCH_BYTES, BATCH_BYTES),
            settles_at_once: false,
            lends_threads: self.engine.lends_threads(),
            close_patience: self.options.lead_timeout,
        }
    }

    fn takes_another(&self) -> bool {
        matches!(self.stage, Stage::Leading { .. })
            && self.told.is_empty()
            && self.arrived.is_none()
            && self.offers.has_room()
    }

    fn offer(&mut self, batch: JournalBatch) -> Result<(), (JournalBatch, JournalError)> {
        // Space first: what has been sent can no longer be refused.
        if let Err(error) = self.writer.reserve(&batch) {
            return Err((batch, error));
        }
        let id = BatchId {
            epoch: match self.stage {
                Stage::Leading { epoch } if planted(Plant::EagerLeader) => epoch,
                _ => self.rule.epoch(),
            },
            first: batch.first,
            count: batch.count,
            recorded_at_us: batch.recorded_at_us,
            begins_segment: batch.offset as usize == SEGMENT_HEADER_BYTES,
            body_bytes: batch.body_bytes() as u32,
            body_crc: crc32c::crc32c(batch.body()),
            previous: self.offered_chain,
        };
        self.offered_chain = id.chain();
        let entries = batch_entries(&id, batch.body(), self.entry_bytes);
        let now_us = self.now_us();
        self.offers.push_batch(batch, id, entries, now_us);
        self.lead.offered(now_us);
        self.offers.send(&mut *self.engine, self.seen, now_us);
        Ok(())
    }

    fn next(&mut self, waker: &Waker) -> Result<Settlement, JournalError> {
        match self.settled() {
            Ok(None) => self.attend(),
            Ok(Some(settled)) => return Ok(settled),
            Err(error) => {
                // A leader that cannot write its own batches steps down like one that is not heard,
                // and does not claim what it cannot read.
                if !matches!(self.stage, Stage::Leading { .. }) {
                    self.lead.cut_off(self.clock.monotonic_us());
                }
                self.attend();
                return self.told.pop_front().ok_or(error);
            }
        }
        if let Some(settled) = self.told.pop_front() {
            return Ok(settled);
        }
        if self.stage == Stage::Detached {
            return Ok(Settlement::Nothing);
        }
        if self.refill.is_some() {
            return self.refill();
        }
        let now_us = self.now_us();
        let mut arrival = self.engine.next(waker);
        if let Ok(Arrival::Offer { id, outcome }) = arrival {
            self.offers.outcome(id, outcome, self.seen, now_us);
            if !matches!(outcome, OfferOutcome::Placed(_)) {
                return Ok(Settlement::Passed);
            }
            // The entry itself likely arrives with it, which settles something.
            arrival = self.engine.next(waker);
        }
        self.is_cut_off = matches!(arrival, Err(SharedLogError::Unavailable { .. }));
        match arrival {
            Ok(Arrival::Entry { place, entry }) => self.entry(place, entry),
            Ok(Arrival::Offer { id, outcome }) => {
                self.offers.outcome(id, outcome, self.seen, now_us);
            }
            Ok(Arrival::End { id, end }) => self.answered(id, end),
            Ok(Arrival::Gap(start)) => self.gap(start),
            Ok(Arrival::Nothing) => return Ok(Settlement::Nothing),
            Err(SharedLogError::Unavailable { .. }) => {
                self.lead.cut_off(now_us);
                return Ok(Settlement::Nothing);
            }
            Err(SharedLogError::Unusable { reason }) => self.detach(reason),
        }
        Ok(self.settled()?.unwrap_or(Settlement::Passed))
    }

    fn keep(&mut self, batch: &mut JournalBatch) -> Result<(), JournalError> {
        let Some(ArrivedBatch::Foreign(accepted)) = self.arrived.take() else {
            unreachable!("a batch is kept that was told");
        };
        let written = self.write(batch, &accepted.batch);
        if written.is_err() {
            self.arrived = Some(ArrivedBatch::Foreign(accepted));
        }
        written
    }

    fn end(&self) -> (Position, u64) {
        self.writer.end()
    }

    fn place(&self) -> Place {
        self.applied
    }

    fn has_room(&mut self, bytes: u64) -> bool {
        self.writer.has_room(bytes)
    }

    fn sync(&mut self) -> Result<(), io::Error> {
        if self.writer.unsynced() {
            self.writer.barrier()?;
        }
        Ok(())
    }

    fn unsynced(&self) -> bool {
        // No request waits for a barrier of a copy.
        false
    }

    fn fetch(&mut self, after: Place) -> Result<Fetched, SharedLogError> {
        self.engine.fetch(after, FETCH_BYTES)
    }

    fn replace_active(&mut self, file: Arc<dyn StorageFile>, at: Resume) {
        self.writer.replace_active(file, at);
    }

    fn due_in(&mut self) -> Option<Duration> {
        let now_us = self.now_us();
        let due_us = self.next_due_us(now_us);
        (due_us != u64::MAX).then(|| Duration::from_micros(due_us))
    }
}
