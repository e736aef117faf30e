//! Moves events from a log to a destination in batches, with one thread and one subscription.

use super::destination::{BatchLimits, DeliveryEnd, Destination};
use crate::backoff::Backoff;
use crate::control::Control;
use crate::cursor::{Cursor, CursorStore};
use crate::fault::{Fault, StopCode};
use crate::status::{ConnectorState, Counters, Status};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::{Clock, Log, Subscription};
use wellspring_types::{HistoryId, Position, Query};

/// Maximum wait for an event before the pump checks whether to stop.
const IDLE_WAIT: Duration = Duration::from_millis(50);
/// Time between two checks of an idle destination, in µs.
const LOOK_US: u64 = 1_000_000;
/// Minimum time between two saves of a cursor, in µs. After a crash, everything delivered since the
/// last save is delivered again.
const SAVE_US: u64 = 1_000_000;
/// The same for a cursor that only backs up the destination's own.
const WITNESS_US: u64 = 30_000_000;
/// Positions without a matching event after which the cursor moves on all the same: otherwise the
/// sink would hold the beginning of its log for ever.
const PASSED_OVER_EVENTS: u64 = 4_096;
/// First and longest wait after a fault that resolves by itself.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Where the cursor is stored.
pub enum CursorKeeper {
    /// In the destination, together with the records. The local store holds a recent copy: if the
    /// destination has lost its cursor or has an older one, the sink stops instead of delivering
    /// again.
    Destination(Box<dyn CursorStore>),
    /// In the local store, shortly after delivery.
    Store(Box<dyn CursorStore>),
}

/// Settings of a pump.
pub struct PumpSettings {
    /// The log.
    pub log: Log,
    /// The events to deliver.
    pub query: Query,
    /// Number of times a start position was set for the sink.
    pub generation: u64,
    /// The history of the log in which this generation delivers. `None`: not known yet, so that of
    /// the log.
    pub history: Option<HistoryId>,
    /// The start position of this generation.
    pub start: Position,
    /// Events that an operator skips.
    pub skip: BTreeSet<Position>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Moves events from a log to a destination.
pub struct Pump {
    settings: PumpSettings,
    destination: Box<dyn Destination>,
    keeper: CursorKeeper,
    status: Arc<Status>,
    control: Arc<Control>,
    saved: SavedCursor,
}

/// The state of the cursor's store.
#[derive(Default)]
struct SavedCursor {
    /// The cursor of what is delivered but not saved yet.
    due: Option<Cursor>,
    /// The position of the last one that was due.
    position: Position,
    /// Time of the last save, µs on the monotonic clock.
    at_us: u64,
}

/// Why an attempt ended without a fault.
enum AttemptEnd {
    /// The pump was asked to stop.
    Stopped,
    /// The log was closed.
    LogClosed,
}

/// A filled batch.
#[derive(Default)]
struct Batch {
    /// A cursor for each of its events, including skipped ones.
    cursors: Vec<Cursor>,
    bytes: u64,
    record_bytes: usize,
    skipped: u64,
    /// The fault that kept the next event out.
    fault: Option<Fault>,
}

impl Pump {
    /// A pump that has not started.
    pub fn new(
        settings: PumpSettings,
        destination: Box<dyn Destination>,
        keeper: CursorKeeper,
        status: Arc<Status>,
        control: Arc<Control>,
    ) -> Pump {
        Pump { settings, destination, keeper, status, control, saved: SavedCursor::default() }
    }

    /// Delivers until the pump is asked to stop, the log is closed or an operator must intervene.
    /// The status shows the progress.
    pub fn run(mut self) {
        let seed = self.settings.clock.monotonic_us();
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1, seed);
        loop {
            let before = self.status.position();
            let ended = self.attempt();
            let saved = self.save(true);
            match ended.and_then(|end| saved.map(|()| end)) {
                Ok(AttemptEnd::Stopped | AttemptEnd::LogClosed) => {
                    self.status.set_state(ConnectorState::Ended);
                    return;
                }
                Err(fault) => {
                    self.status.set_fault(&fault);
                    if let Fault::Stop { .. } = fault {
                        return;
                    }
                }
            }
            if self.status.position() > before {
                backoff.reset();
            }
            Counters::add(&self.status.counters.restarts, 1);
            if self.control.sleep(backoff.next_wait()) {
                self.status.set_state(ConnectorState::Ended);
                return;
            }
        }
    }

    /// Connects and delivers until interrupted.
    fn attempt(&mut self) -> Result<AttemptEnd, Fault> {
        let start = self.begin()?;
        let log = self.settings.log.clone();
        let mut subscription = log.subscribe(self.settings.query.clone(), start);
        self.status.set_position(start);
        self.saved.position = start;
        self.status.set_state(ConnectorState::Running);
        let limits = self.destination.limits();
        let mut looked_us = self.settings.clock.monotonic_us();
        loop {
            if self.control.is_stopping() {
                return Ok(AttemptEnd::Stopped);
            }
            let batch = self.fill(&mut subscription, limits)?;
            let now_us = self.settings.clock.monotonic_us();
            if batch.cursors.is_empty() {
                if let Some(fault) = batch.fault {
                    return Err(fault);
                }
                if log.feed().is_closed() {
                    return Ok(AttemptEnd::LogClosed);
                }
                self.status.set_position(subscription.position());
                self.pass_over(subscription.position())?;
                if now_us.saturating_sub(looked_us) >= LOOK_US {
                    self.destination.look()?;
                    looked_us = now_us;
                }
            } else if let Some(end) = self.deliver(&batch)? {
                return Ok(end);
            }
            self.save(false)?;
            if let Some(fault) = batch.fault {
                return Err(fault);
            }
        }
    }

    /// Where the cursors of this generation count from.
    fn origin(&self) -> Cursor {
        let PumpSettings { log, generation, history, .. } = &self.settings;
        Cursor::start(*generation, history.or_else(|| log.history()))
    }

    /// Opens the destination; returns the position after which to continue.
    fn begin(&mut self) -> Result<Position, Fault> {
        self.status.set_state(ConnectorState::Starting);
        // Before the destination is opened, which would fence a server that goes on in the history.
        self.origin().require_fit(&self.settings.log)?;
        let generation = self.settings.generation;
        let of_generation = |cursor: &Cursor| cursor.generation == generation;
        let kept = self.destination.open()?.filter(of_generation);
        let cursor = match &self.keeper {
            CursorKeeper::Destination(witness) => {
                let witness = witness.load().filter(of_generation);
                require_no_loss(kept.as_ref(), witness.as_ref())?;
                kept
            }
            CursorKeeper::Store(store) => store.load().filter(of_generation),
        };
        match cursor {
            Some(cursor) => {
                cursor.require_fit(&self.settings.log)?;
                Ok(cursor.position)
            }
            None => {
                let (start, head) = (self.settings.start, self.settings.log.head());
                if start == 0 {
                    // The beginning, wherever that is by now.
                    return Ok(self.settings.log.snapshot().first() - 1);
                }
                if start > head {
                    let detail = format!(
                        "the sink was to start after position {start}, and the log ends at {head}: it was \
                         emptied, created again or restored"
                    );
                    return Err(Fault::stop(StopCode::AnotherHistory, detail));
                }
                Ok(start)
            }
        }
    }

    /// Fills a batch; empty if there are no events.
    fn fill(
        &mut self,
        subscription: &mut Subscription,
        limits: BatchLimits,
    ) -> Result<Batch, Fault> {
        let mut batch = Batch::default();
        let origin = self.origin();
        let mut wait = IDLE_WAIT;
        let mut has_lingered = false;
        loop {
            let Some(event) = subscription.next(wait)? else {
                // Sleeps once and then takes everything that arrived: waking for every event would
                // slow the appends down.
                if has_lingered || batch.cursors.is_empty() || self.control.sleep(limits.linger) {
                    break;
                }
                has_lingered = true;
                continue;
            };
            wait = Duration::ZERO;
            if self.settings.skip.contains(&event.position()) {
                batch.skipped += 1;
            } else if let Err(fault) = self.destination.push(&event) {
                batch.fault = Some(fault);
                break;
            } else {
                batch.bytes += event.data().len() as u64;
            }
            batch.record_bytes += event.byte_len();
            batch.cursors.push(origin.on(&event));
            if batch.cursors.len() >= limits.events || batch.record_bytes >= limits.bytes {
                break;
            }
        }
        Ok(batch)
    }

    /// Delivers a batch; returns the end of the attempt, if it ended.
    fn deliver(&mut self, batch: &Batch) -> Result<Option<AttemptEnd>, Fault> {
        let Some(last) = batch.cursors.last() else { return Ok(None) };
        let DeliveryEnd { through, fault } = self.destination.deliver(*last, &self.control)?;
        debug_assert!(through <= last.position);
        let upto = batch.cursors.partition_point(|cursor| cursor.position <= through);
        let ended = |is_early: bool| match fault {
            Some(fault) => Err(fault),
            None => Ok(is_early.then_some(AttemptEnd::Stopped)),
        };
        let Some(reached) = upto.checked_sub(1).map(|at| batch.cursors[at]) else {
            return ended(true);
        };
        let counters = &self.status.counters;
        if reached == *last {
            Counters::add(&counters.events, batch.cursors.len() as u64 - batch.skipped);
            Counters::add(&counters.bytes, batch.bytes);
            Counters::add(&counters.skipped, batch.skipped);
        } else {
            Counters::add(&counters.events, upto as u64);
        }
        Counters::add(&counters.batches, 1);
        self.status.set_position(reached.position);
        (self.saved.due, self.saved.position) = (Some(reached), reached.position);
        ended(reached != *last)
    }

    /// Moves the cursor over events up to a position that do not match, if they are many and this
    /// pump stores it.
    fn pass_over(&mut self, position: Position) -> Result<(), Fault> {
        let is_far = position >= self.saved.position.saturating_add(PASSED_OVER_EVENTS);
        if !is_far || matches!(self.keeper, CursorKeeper::Destination(_)) {
            return Ok(());
        }
        let origin = self.origin();
        self.saved.due = self.settings.log.snapshot().at(position, |event| origin.on(event))?;
        self.saved.position = position;
        Ok(())
    }

    /// Saves the cursor if it has moved and this pump stores it: now, or if the last save is long
    /// enough ago.
    fn save(&mut self, now: bool) -> Result<(), Fault> {
        let (store, every_us) = match &mut self.keeper {
            CursorKeeper::Store(store) => (store, SAVE_US),
            CursorKeeper::Destination(witness) => (witness, WITNESS_US),
        };
        let Some(cursor) = self.saved.due else { return Ok(()) };
        let now_us = self.settings.clock.monotonic_us();
        if !now && now_us.saturating_sub(self.saved.at_us) < every_us {
            return Ok(());
        }
        store.save(cursor)?;
        (self.saved.due, self.saved.at_us) = (None, now_us);
        Ok(())
    }
}

/// Checks that a destination has not lost its cursor.
fn require_no_loss(kept: Option<&Cursor>, witness: Option<&Cursor>) -> Result<(), Fault> {
    let Some(witness) = witness else { return Ok(()) };
    let found = match kept {
        Some(kept) if kept.position >= witness.position => return Ok(()),
        Some(kept) => format!("has a cursor at position {}", kept.position),
        None => "has no cursor".to_owned(),
    };
    let detail = format!(
        "the sink had delivered up to position {}, and the destination {found}: its cursor was deleted or restored, so \
         continuing would deliver events again. Reset the sink to a start position",
        witness.position
    );
    Err(Fault::stop(StopCode::AnotherHistory, detail))
}

#[cfg(test)]
#[path = "pump_tests.rs"]
mod tests;
