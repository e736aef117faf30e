//! An open consumer: its state under a lock, who waits for its events, and its checkpoints.
//!
//! It is open while this node leads the log, from the first tick or request on. It is closed when
//! its definition changes, when it is deleted, and when the lead ends: then nothing is taken from
//! it, settled or saved any more, and a request opens it again from what its checkpoints say.

use super::definition::ConsumerDefinition;
use super::fence::{DeliveryFence, StateFence};
use super::scan::Scanner;
use super::status::shown_worker;
use super::stored::{self, ParkedEvent, RestoredConsumer};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};
use wellspring_consumers::{ChainFault, Checkpoint, Consumer, DeliveryId, DeliveryRefusal};
use wellspring_log::{Append, AppendError, Appended, Clock, CommitOn, Completion, EncodedEvents};
use wellspring_log::{Log, RecordView, Staged};
use wellspring_types::{Position, limits};

/// Time for which a settlement may be in memory alone, µs; see [`OpenConsumer::save_if_due`].
const SAVE_AFTER_US: u64 = 1_000_000;
/// The same where checkpoints would be large beside what is settled.
const SAVE_LARGE_AFTER_US: u64 = 5_000_000;
/// Checkpoints take at most this fraction of the bytes delivered, until the time above.
const SAVED_SHARE: u64 = 50;
/// Time between two looks at an append that is on its way.
const STAGED_PAUSE: Duration = Duration::from_millis(1);
/// About the bytes of a key in a checkpoint.
const KEY_BYTES: u64 = 40;

/// See the module.
pub(crate) struct OpenConsumer {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) log: Log,
    /// The epoch in which this node leads the log.
    pub(super) epoch: u64,
    pub(super) definition: ConsumerDefinition,
    pub(super) clock: Arc<dyn Clock>,
    state: Mutex<ConsumerState>,
    /// What the first pull in line reads with; the others wait for it in order.
    pub(super) scanner: tokio::sync::Mutex<Scanner>,
    /// Tells the first pull in line that something may be ready, or due earlier.
    pub(super) news: Notify,
    /// Pulls that wait for events.
    pub(super) waiting: AtomicUsize,
    /// How far the checkpoints are.
    saved: watch::Sender<SaveProgress>,
    /// Bytes of events delivered, and of checkpoints.
    pub(super) delivered_bytes: AtomicU64,
    pub(super) checkpoint_bytes: AtomicU64,
    nonces: RandomState,
    nonces_drawn: AtomicU64,
}

/// What the lock of a consumer protects.
pub(super) struct ConsumerState {
    pub(super) consumer: Consumer,
    /// Whether nothing is to be done with it any more.
    pub(super) is_closed: bool,
    /// Deliveries that a staged append settles, each with a position before that append.
    staged: HashMap<DeliveryId, Position>,
    /// Number of the last checkpoint that was built.
    built: u64,
    /// Since when something is not saved, µs.
    unsaved_since_us: Option<u64>,
    /// Bytes delivered when the last checkpoint was built.
    delivered_bytes_at_build: u64,
    /// Why events are parked that the next checkpoint parks.
    reasons: Vec<ParkedEvent>,
}

/// Which checkpoints are durable, and which are not.
#[derive(Debug, Default)]
struct SaveProgress {
    /// Number of the last one that is durable.
    recorded: u64,
    /// Those that were not stored, and why the last of them was not.
    failures: u64,
    error: Option<AppendError>,
}

/// A consumer was closed meanwhile: open it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

/// Whether a consumer was closed.
#[derive(Debug)]
pub(super) enum CloseVerdict<T> {
    /// With this to be saved.
    Closed(Option<Checkpoint>),
    /// For this reason it was not.
    Refused(T),
    /// Something is on its way: ask again.
    NotYet,
}

/// Why something is not saved.
#[derive(Debug)]
pub(super) enum NotSaved {
    Closed,
    /// The log has not taken the checkpoint. The next one says it again.
    Refused(AppendError),
}

impl OpenConsumer {
    /// A consumer as its events in a log say.
    ///
    /// # Errors
    /// [`ChainFault`]: its checkpoints lead nowhere.
    pub(super) fn new(
        name: &str,
        restored: RestoredConsumer,
        log: Log,
        epoch: u64,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<OpenConsumer>, ChainFault> {
        let RestoredConsumer { id, definition, state } = restored;
        let consumer = state?;
        let state = ConsumerState {
            consumer,
            is_closed: false,
            staged: HashMap::new(),
            built: 0,
            unsaved_since_us: None,
            delivered_bytes_at_build: 0,
            reasons: Vec::new(),
        };
        Ok(Arc::new(OpenConsumer {
            name: name.to_owned(),
            id,
            scanner: tokio::sync::Mutex::new(Scanner::new(&definition.query)),
            definition,
            log,
            epoch,
            clock,
            state: Mutex::new(state),
            news: Notify::new(),
            waiting: AtomicUsize::new(0),
            saved: watch::Sender::default(),
            delivered_bytes: AtomicU64::new(0),
            checkpoint_bytes: AtomicU64::new(0),
            nonces: RandomState::new(),
            nonces_drawn: AtomicU64::new(0),
        }))
    }

    /// Its state, for microseconds.
    fn state(&self) -> MutexGuard<'_, ConsumerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the consumer, at a time of the monotonic clock.
    ///
    /// # Errors
    /// [`Closed`].
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Consumer, u64) -> T) -> Result<T, Closed> {
        self.with_state(|state, now_us| act(&mut state.consumer, now_us))
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut ConsumerState, u64) -> T) -> Result<T, Closed> {
        let now_us = self.clock.monotonic_us();
        let leads = self.log.leads_in(self.epoch);
        let mut state = self.state();
        if state.is_closed || !leads {
            return Err(Closed);
        }
        let result = act(&mut state, now_us);
        for (position, worker) in state.consumer.take_parked_by_expiry() {
            let worker = shown_worker(&worker);
            let reason = "its worker was silent for too long, or held it for too long".to_owned();
            state.reasons.push(ParkedEvent { position, worker, reason });
        }
        if state.unsaved_since_us.is_none() && state.consumer.has_unsaved() {
            state.unsaved_since_us = Some(now_us);
        }
        Ok(result)
    }

    /// A nonce for a delivery: 48 bits, to be written in few digits.
    pub(super) fn nonce(&self) -> u64 {
        self.nonces.hash_one(self.nonces_drawn.fetch_add(1, Relaxed)) >> 16
    }

    /// Takes nothing, settles nothing and saves nothing from now on. Its pulls end.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.tell_closed();
    }

    fn tell_closed(&self) {
        self.news.notify_one();
        self.saved.send_modify(|_| {});
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Closes it with nothing unsaved but the checkpoint that this returns, unless `refuse` finds a
    /// reason against it. Not while an append is on its way whose outcome would be missed.
    pub(super) fn close_saving<T>(
        self: &Arc<Self>,
        refuse: impl FnOnce(&Consumer) -> Option<T>,
    ) -> CloseVerdict<T> {
        let mut state = self.state();
        if let Some(reason) = refuse(&state.consumer) {
            return CloseVerdict::Refused(reason);
        }
        if !state.staged.is_empty() {
            return CloseVerdict::NotYet;
        }
        let has_unsaved = state.consumer.has_unsaved();
        let checkpoint = state.consumer.checkpoint(self.log.head());
        if has_unsaved && checkpoint.is_none() {
            return CloseVerdict::NotYet;
        }
        // Under the same lock: an append that was staged in between would be missed.
        state.is_closed = true;
        drop(state);
        self.tell_closed();
        CloseVerdict::Closed(checkpoint)
    }

    /// Takes note why events are parked, to be written with the checkpoint that parks them.
    pub(super) fn note_parked(&self, events: Vec<ParkedEvent>) {
        if !events.is_empty() {
            self.state().reasons.extend(events);
        }
    }

    /// What identifies an event as delivered by this generation of the consumer, for receivers that
    /// know idempotency keys: the event's place, and its checksum, since a restored log may have
    /// another event there.
    pub(super) fn effect_key(&self, generation: u64, record: &RecordView<'_>) -> String {
        let (name, id) = (&self.name, &self.id);
        let (position, checksum) = (record.position(), record.checksum());
        format!("{name}-{id}-{generation}-{position}-{checksum:08x}")
    }

    /// The number of the checkpoint that says what is so now: it may not be built yet.
    pub(super) fn next_save(&self) -> u64 {
        let state = self.state();
        state.built + u64::from(state.consumer.has_unsaved())
    }

    /// Whether a worker holds a delivery with these events.
    ///
    /// # Errors
    /// [`DeliveryRefusal`].
    pub(super) fn check_held(&self, fence: &DeliveryFence) -> Result<(), DeliveryRefusal> {
        let held = self.with(|state, now_us| {
            state.extend(&fence.worker, now_us);
            state.held_by(&fence.worker, fence.delivery)
        });
        match held.unwrap_or(Err(DeliveryRefusal::Lost)) {
            Ok(events) if events == fence.events => Ok(()),
            Ok(_) => Err(DeliveryRefusal::Lost),
            Err(refusal) => Err(refusal),
        }
    }

    /// An append that settles a delivery with these events is being staged, after this position.
    ///
    /// # Errors
    /// [`DeliveryRefusal`].
    pub(super) fn begin_staged(
        &self,
        fence: &DeliveryFence,
        before: Position,
    ) -> Result<(), DeliveryRefusal> {
        let (worker, delivery) = (&*fence.worker, fence.delivery);
        let staged = self.with_state(|state, now_us| {
            let held = state.consumer.peek_held(worker, delivery);
            if held.is_some_and(|events| events != fence.events) {
                return Err(DeliveryRefusal::Lost);
            }
            state.consumer.begin_settling(worker, delivery, None, now_us)?;
            state.staged.insert(delivery, before);
            Ok(())
        });
        staged.unwrap_or(Err(DeliveryRefusal::Lost))
    }

    /// An append that was staged is durable, or was set back.
    pub(super) fn end_staged(&self, delivery: DeliveryId, is_durable: bool) {
        let now_us = self.clock.monotonic_us();
        let mut state = self.state();
        if state.staged.remove(&delivery).is_none() {
            return;
        }
        if is_durable {
            state.consumer.settled(delivery);
            state.unsaved_since_us.get_or_insert(now_us);
        } else {
            state.consumer.set_back(delivery);
        }
        drop(state);
        self.news.notify_one();
    }

    /// An earlier append has settled a delivery up to this position, which is held again, or still.
    pub(super) fn settle_found(&self, fence: &DeliveryFence, up_to: Position) {
        // One that is not held is settled already.
        let settle = |state: &mut Consumer, _| {
            if state.peek_held(&fence.worker, fence.delivery).is_some() {
                let _ = state.settle_found(&fence.worker, fence.delivery, up_to);
            }
        };
        let _ = self.with(settle);
        self.news.notify_one();
    }

    /// Waits until a checkpoint is durable.
    ///
    /// # Errors
    /// [`NotSaved`].
    pub(super) async fn saved(self: &Arc<Self>, number: u64) -> Result<(), NotSaved> {
        let mut progress = self.saved.subscribe();
        let failures = progress.borrow().failures;
        loop {
            {
                let now = progress.borrow_and_update();
                if now.recorded >= number {
                    return Ok(());
                }
                if now.failures > failures
                    && let Some(error) = &now.error
                {
                    return Err(NotSaved::Refused(error.clone()));
                }
            }
            if self.state().is_closed {
                return Err(NotSaved::Closed);
            }
            self.save();
            let _ = progress.changed().await;
        }
    }

    /// Waits until everything that is settled by now is saved, with what appends on their way
    /// settle.
    ///
    /// # Errors
    /// [`NotSaved`].
    pub(super) async fn save_settled(self: &Arc<Self>) -> Result<(), NotSaved> {
        let staged: Vec<DeliveryId> = self.state().staged.keys().copied().collect();
        while staged.iter().any(|delivery| self.state().staged.contains_key(delivery)) {
            tokio::time::sleep(STAGED_PAUSE).await;
        }
        self.saved(self.next_save()).await
    }

    /// Writes the definition and the whole state again.
    ///
    /// # Errors
    /// [`NotSaved`].
    pub(super) async fn renew(self: &Arc<Self>) -> Result<(), NotSaved> {
        let (tell, told) = oneshot::channel();
        let definition = stored::defined(&self.name, &self.id, &self.definition, None);
        self.append(definition, Box::new(move |outcome| _ = tell.send(outcome)));
        match told.await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(NotSaved::Refused(error)),
            Err(_) => return Err(NotSaved::Closed),
        }
        self.with(|state, _| state.renew()).map_err(|Closed| NotSaved::Closed)?;
        self.saved(self.next_save()).await
    }

    /// Whether everything is saved, or nothing will be any more.
    pub(super) fn is_saved(&self) -> bool {
        let state = self.state();
        let recorded = self.saved.borrow().recorded;
        state.is_closed || !state.consumer.has_unsaved() && recorded == state.built
    }

    /// Saves what is not saved, if it is urgent, or has waited for long enough.
    pub(super) fn save_if_due(self: &Arc<Self>) {
        let now_us = self.clock.monotonic_us();
        let delivered = self.delivered_bytes.load(Relaxed);
        let state = self.state();
        let Some(since_us) = state.unsaved_since_us else { return };
        let waited_us = now_us.saturating_sub(since_us);
        let bytes = KEY_BYTES * state.consumer.unsaved_keys() as u64;
        let paid = (delivered - state.delivered_bytes_at_build) / SAVED_SHARE;
        let is_due = state.consumer.is_checkpoint_urgent()
            || waited_us >= SAVE_AFTER_US && bytes <= paid
            || waited_us >= SAVE_LARGE_AFTER_US;
        drop(state);
        if is_due {
            self.save();
        }
    }

    /// Builds a checkpoint and appends it, unless there is nothing to save or another one is being
    /// appended. Does not wait.
    pub(super) fn save(self: &Arc<Self>) {
        // Read first: what is staged later comes after it.
        let head = self.log.head();
        let mut state = self.state();
        if state.is_closed || !state.consumer.has_unsaved() {
            return;
        }
        let head = state.staged.values().fold(head, |head, before| head.min(*before));
        let Some(checkpoint) = state.consumer.checkpoint(head) else { return };
        state.built += 1;
        state.unsaved_since_us = None;
        state.delivered_bytes_at_build = self.delivered_bytes.load(Relaxed);
        let number = state.built;
        let reasons = std::mem::take(&mut state.reasons);
        drop(state);
        let generation = checkpoint.generation;
        let appends = stored::checkpoint(&self.name, checkpoint, self.nonce());
        let saving = Arc::new(Saving {
            consumer: Arc::clone(self),
            number,
            generation,
            outcomes: Mutex::new(SavingOutcomes { awaited: appends.len(), error: None }),
            reasons,
        });
        for events in appends {
            self.checkpoint_bytes.fetch_add(events.byte_len() as u64, Relaxed);
            let saving = Arc::clone(&saving);
            self.append(events, Box::new(move |outcome| saving.tell(outcome)));
        }
    }

    /// Appends events of the consumer, as long as it is open.
    fn append(self: &Arc<Self>, events: EncodedEvents, done: Completion) {
        let fence = StateFence { epoch: self.epoch, consumer: Some(Arc::clone(self)) };
        let append = Append { events, fence: Some(Arc::new(fence)), ..Append::default() };
        if self.log.stage(append, done) != Staged::Answered {
            self.log.commit(CommitOn::JournalThread);
        }
    }
}

/// A checkpoint that is being appended, in one append or several.
struct Saving {
    consumer: Arc<OpenConsumer>,
    number: u64,
    generation: u64,
    outcomes: Mutex<SavingOutcomes>,
    reasons: Vec<ParkedEvent>,
}

struct SavingOutcomes {
    /// Appends without an outcome.
    awaited: usize,
    error: Option<AppendError>,
}

impl Saving {
    fn tell(&self, outcome: Result<Appended, AppendError>) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.awaited -= 1;
        if let Err(error) = outcome {
            outcomes.error = Some(error);
        }
        if outcomes.awaited > 0 {
            return;
        }
        let error = outcomes.error.take();
        drop(outcomes);
        match error {
            None => self.end_stored(),
            Some(error) => self.end_refused(error),
        }
        self.consumer.news.notify_one();
    }

    fn end_stored(&self) {
        let consumer = &self.consumer;
        consumer.state().consumer.checkpoint_recorded(self.generation);
        for reasons in self.reasons.chunks(limits::MAX_EVENTS) {
            // For people alone: a crash may lose it.
            consumer.append(stored::parked(&consumer.name, reasons), Box::new(|_| {}));
        }
        consumer.saved.send_modify(|progress| progress.recorded = self.number);
    }

    fn end_refused(&self, error: AppendError) {
        let consumer = &self.consumer;
        tracing::warn!(consumer = consumer.name, %error, "a consumer's state is not saved yet");
        let mut state = consumer.state();
        state.consumer.checkpoint_failed(self.generation);
        state.unsaved_since_us = Some(consumer.clock.monotonic_us());
        state.reasons.extend(self.reasons.iter().cloned());
        drop(state);
        consumer.saved.send_modify(|progress| {
            progress.failures += 1;
            progress.error = Some(error);
        });
    }
}
