//! What moves events from a log to a destination: one thread, one subscription, batch after batch.

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
use wellspring_types::{Position, Query};

/// Longest wait for an event before the pump looks whether it is to stop.
const IDLE_WAIT: Duration = Duration::from_millis(50);
/// Time between two looks at a destination that has nothing to deliver, in µs.
const LOOK_US: u64 = 1_000_000;
/// Least time between two saves of a cursor, in µs. What was delivered since the last one is
/// delivered again after a crash.
const SAVE_US: u64 = 1_000_000;
/// The same of a cursor that only witnesses that of the destination.
const WITNESS_US: u64 = 30_000_000;
/// The first wait after a fault that goes away by itself, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Who keeps the cursor.
pub enum CursorKeeper {
    /// The destination, together with what it delivers. A store of ours has one of the last minute:
    /// if the destination has lost its cursor, or has an older one, the sink stops instead of
    /// delivering again.
    Destination(Box<dyn CursorStore>),
    /// A store of ours, a little later.
    Store(Box<dyn CursorStore>),
}

/// What a pump is to do.
pub struct PumpSettings {
    /// The log.
    pub log: Log,
    /// The events to deliver.
    pub query: Query,
    /// Number of times the sink was told where to begin.
    pub generation: u64,
    /// Where it begins in this generation.
    pub start: Position,
    /// Events that a person wants passed over.
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
    saved: Saved,
}

/// What the store has of the cursor.
#[derive(Default)]
struct Saved {
    /// Delivered, and not in the store yet.
    due: Option<Cursor>,
    /// When it was saved last, µs on the monotonic clock.
    at_us: u64,
}

/// Why one attempt came to an end without a fault.
enum AttemptEnd {
    /// It was told to stop.
    Told,
    /// The log was closed.
    LogClosed,
}

/// A batch that is filled.
#[derive(Default)]
struct Batch {
    /// A cursor on each event in it, skipped ones among them.
    cursors: Vec<Cursor>,
    bytes: u64,
    record_bytes: usize,
    skipped: u64,
    /// What kept the next event out.
    fault: Option<Fault>,
}

impl Pump {
    /// A pump that has not begun.
    pub fn new(
        settings: PumpSettings,
        destination: Box<dyn Destination>,
        keeper: CursorKeeper,
        status: Arc<Status>,
        control: Arc<Control>,
    ) -> Pump {
        Pump { settings, destination, keeper, status, control, saved: Saved::default() }
    }

    /// Delivers until it is told to stop, the log is closed, or a person has to decide. How it goes
    /// is in the status.
    pub fn run(mut self) {
        let seed = self.settings.clock.monotonic_us();
        let mut backoff = Backoff::new(BACKOFF.0, BACKOFF.1, seed);
        loop {
            let before = self.status.position();
            let ended = self.attempt();
            let saved = self.save(true);
            match ended.and_then(|end| saved.map(|()| end)) {
                Ok(AttemptEnd::Told | AttemptEnd::LogClosed) => {
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

    /// Connects, and delivers until something is in the way.
    fn attempt(&mut self) -> Result<AttemptEnd, Fault> {
        let start = self.begin()?;
        let log = self.settings.log.clone();
        let mut subscription = log.subscribe(self.settings.query.clone(), start);
        self.status.set_position(start);
        self.status.set_state(ConnectorState::Running);
        let limits = self.destination.limits();
        let mut looked_us = self.settings.clock.monotonic_us();
        loop {
            if self.control.is_stopping() {
                return Ok(AttemptEnd::Told);
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

    /// Opens the destination. Gives the position behind which to go on.
    fn begin(&mut self) -> Result<Position, Fault> {
        self.status.set_state(ConnectorState::Starting);
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
                if start > head {
                    let detail = format!(
                        "the sink was to begin behind position {start}, and the log ends at {head}: it was \
                         emptied, made again or restored"
                    );
                    return Err(Fault::stop(StopCode::AnotherHistory, detail));
                }
                Ok(start)
            }
        }
    }

    /// Fills a batch; it is empty if nothing came.
    fn fill(
        &mut self,
        subscription: &mut Subscription,
        limits: BatchLimits,
    ) -> Result<Batch, Fault> {
        let mut batch = Batch::default();
        let mut wait = IDLE_WAIT;
        let mut has_lingered = false;
        loop {
            let Some(event) = subscription.next(wait)? else {
                // One sleep, and then all that came meanwhile: to be woken by every event would
                // cost the appends.
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
            batch.cursors.push(Cursor::on(self.settings.generation, &event));
            if batch.cursors.len() >= limits.events || batch.record_bytes >= limits.bytes {
                break;
            }
        }
        Ok(batch)
    }

    /// Delivers a batch; tells if that was the end.
    fn deliver(&mut self, batch: &Batch) -> Result<Option<AttemptEnd>, Fault> {
        let Some(last) = batch.cursors.last() else { return Ok(None) };
        let DeliveryEnd { through, fault } = self.destination.deliver(*last, &self.control)?;
        debug_assert!(through <= last.position);
        let upto = batch.cursors.partition_point(|cursor| cursor.position <= through);
        let ended = |is_early: bool| match fault {
            Some(fault) => Err(fault),
            None => Ok(is_early.then_some(AttemptEnd::Told)),
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
        self.saved.due = Some(reached);
        ended(reached != *last)
    }

    /// Saves the cursor, if it has moved and is ours to keep: now, or if the last time is long
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
        self.saved = Saved { due: None, at_us: now_us };
        Ok(())
    }
}

/// Makes sure that a destination knows at least what it once knew.
fn require_no_loss(kept: Option<&Cursor>, witness: Option<&Cursor>) -> Result<(), Fault> {
    let Some(witness) = witness else { return Ok(()) };
    let found = match kept {
        Some(kept) if kept.position >= witness.position => return Ok(()),
        Some(kept) => format!("has one of position {}", kept.position),
        None => "has none".to_owned(),
    };
    let detail = format!(
        "the sink had delivered up to position {}, and the destination {found}: its cursor was deleted or restored, so \
         going on would deliver events again. Tell the sink where to begin",
        witness.position
    );
    Err(Fault::stop(StopCode::AnotherHistory, detail))
}

#[cfg(test)]
#[path = "pump_tests.rs"]
mod tests;
