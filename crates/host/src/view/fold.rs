//! Folding: applies the log's events to the view, in order, each once.

use super::snapshot::SnapshotOutcome;
use super::stored_record::StoredRecord;
use super::{Live, lock};
use crate::view::contract::View;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wellspring_log::{CompiledQuery, ReadError, ReadOptions};
use wellspring_types::Position;

/// How long the thread lets events gather before it folds them. A caller that waits for one folds
/// it itself.
const GATHER: Duration = Duration::from_millis(2);
/// Longest sleep. Only matters for closing a view whose log stays open.
const SLEEP: Duration = Duration::from_millis(200);
/// Positions folded before the progress is published.
const PUBLISH_EVENTS: u64 = 4_096;
/// Positions that a thread which folds to the head folds before it lets others in.
const TURN_EVENTS: u64 = 16 * PUBLISH_EVENTS;
/// A thread with other work folds at most this many positions.
const INLINE_EVENTS: u64 = 2_048;
/// And at most this many bytes of events: a graph's events can hold thousands of nodes each.
const INLINE_BYTES: usize = 64 << 10;
/// Positions folded, or time spent folding, that make another snapshot worth writing; also at the
/// end. The time matters where events are large, as a graph's may be: a thousand of them can be a
/// million nodes.
const SNAPSHOT_EVENTS: u64 = 1_000_000;
const SNAPSHOT_FOLD_US: u64 = 5_000_000;
const LAST_SNAPSHOT_EVENTS: u64 = 10_000;
const LAST_SNAPSHOT_FOLD_US: u64 = 200_000;
/// Snapshots take at most this fraction of the time.
const SNAPSHOT_SHARE: u64 = 50;
/// Interval at which the progress of a rebuild is logged, in µs.
const TELL_US: u64 = 5_000_000;
/// Pause after a failed read.
const PAUSE: Duration = Duration::from_secs(1);

/// The state of the fold.
pub(super) enum Writer<V> {
    /// Not started.
    Unread,
    /// Folding.
    At(Folding<V>),
    /// The fold panicked and may hold half an event: it has stopped for good.
    Broken(String),
}

/// Why folding stopped.
enum FoldFault {
    /// The log cannot be read. A retry helps once that is repaired.
    Read(ReadError),
    /// The fold panicked. A retry does not help.
    Panicked(String),
}

/// A view and its progress.
pub(super) struct Folding<V> {
    view: V,
    position: Position,
    query: Arc<CompiledQuery>,
}

/// The message of a panic.
fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the fold panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
}

/// The result of a run.
enum Folded {
    UpToTheHead,
    /// The view was closed during its rebuild: it must never become ready.
    GivenUp,
}

/// The limits of one run.
#[derive(Debug, Clone, Copy)]
struct RunLimits {
    /// Positions passed.
    positions: u64,
    /// Bytes of the events' data. An event beyond that is left for later.
    bytes: usize,
}

/// When the next snapshot is due.
struct SnapshotDue {
    at: Position,
    at_fold_us: u64,
    not_before_us: u64,
}

impl<V: View> Live<V> {
    /// The thread's main loop.
    pub(super) fn run(self: Arc<Self>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.keep_folding())) {
            self.break_down(&mut lock(&self.writer), &describe(&*panic));
        }
    }

    fn keep_folding(&self) {
        let begun = self.begin();
        let mut due = SnapshotDue {
            at: begun + SNAPSHOT_EVENTS,
            at_fold_us: SNAPSHOT_FOLD_US,
            not_before_us: 0,
        };
        loop {
            let closing = self.closing.load(Ordering::Acquire);
            match self.fold_all() {
                Ok(Folded::UpToTheHead) => *lock(&self.fault) = None,
                Ok(Folded::GivenUp) => return,
                Err(FoldFault::Panicked(reason)) => return self.fail(reason),
                Err(FoldFault::Read(error)) => {
                    tracing::error!(view = V::NAME, %error, "a view has stopped");
                    self.fail(error.to_string());
                    if closing {
                        return;
                    }
                    std::thread::park_timeout(PAUSE);
                    continue;
                }
            }
            if !self.caught_up.swap(true, Ordering::AcqRel) {
                tracing::debug!(view = V::NAME, position = self.position(), "a view is ready");
                self.position.rouse();
            }
            if closing {
                return self.save_last();
            }
            self.save_if_due(&mut due);
            self.log.feed().wait_past(self.position(), SLEEP);
            if !self.closing.load(Ordering::Acquire) {
                std::thread::park_timeout(GATHER);
            }
        }
    }

    /// Reads the snapshot, or starts from the beginning. Returns where it starts.
    fn begin(&self) -> Position {
        let read =
            catch_unwind(AssertUnwindSafe(|| self.snapshots.read::<V>(&self.log, &self.context)));
        let (view, position) = match read.unwrap_or_else(|panic| Err(describe(&*panic))) {
            Ok(Some(found)) => found,
            Ok(None) => (V::with_context(&self.context), 0),
            Err(reason) => {
                tracing::warn!(view = V::NAME, %reason, "a snapshot cannot be used; rebuilding \
                                                         the view");
                (V::with_context(&self.context), 0)
            }
        };
        self.snapshot_position.store(position, Ordering::Relaxed);
        let _ = self.folded.set(Arc::clone(view.folded()));
        let mut writer = lock(&self.writer);
        assert!(matches!(*writer, Writer::Unread), "a view begins once");
        let mut folding =
            Folding { view, position, query: Arc::new(CompiledQuery::new(&V::query())) };
        // Before any other thread can fold: what it publishes then is later.
        folding.publish(self);
        *writer = Writer::At(folding);
        position
    }

    /// Folds up to the head, wherever that is by then.
    fn fold_all(&self) -> Result<Folded, FoldFault> {
        let mut told_us = self.clock.monotonic_us();
        while self.position() < self.log.head() {
            if self.closing.load(Ordering::Relaxed) && !self.caught_up.load(Ordering::Relaxed) {
                // Not even rebuilt: the next start continues from the last snapshot.
                return Ok(Folded::GivenUp);
            }
            let turn = RunLimits { positions: TURN_EVENTS, bytes: usize::MAX };
            self.advance(&mut lock(&self.writer), turn)?;
            let now_us = self.clock.monotonic_us();
            if now_us - told_us > TELL_US {
                told_us = now_us;
                let (position, head) = (self.position(), self.log.head());
                tracing::info!(view = V::NAME, position, head, "a view is being rebuilt");
            }
        }
        Ok(Folded::UpToTheHead)
    }

    /// Folds on this thread if that is little work and no other thread is folding.
    pub(super) fn fold_here(&self) {
        if self.log.head().saturating_sub(self.position()) > INLINE_EVENTS {
            self.nudge();
            return;
        }
        let Ok(mut writer) = self.writer.try_lock() else { return };
        let turn = RunLimits { positions: INLINE_EVENTS, bytes: INLINE_BYTES };
        if let Err(FoldFault::Read(error)) = self.advance(&mut writer, turn) {
            tracing::error!(view = V::NAME, %error, "a view has stopped");
        }
        // The view's thread folds the rest; it wakes when the head moves.
    }

    /// Folds the available events, but no more. A panic stops the view.
    fn advance(&self, writer: &mut Writer<V>, most: RunLimits) -> Result<(), FoldFault> {
        let folding = match writer {
            Writer::Unread => return Ok(()),
            Writer::Broken(reason) => return Err(FoldFault::Panicked(reason.clone())),
            Writer::At(folding) => folding,
        };
        match catch_unwind(AssertUnwindSafe(|| folding.advance(self, most))) {
            Ok(advanced) => advanced.map_err(FoldFault::Read),
            Err(panic) => {
                let reason = describe(&*panic);
                self.break_down(writer, &reason);
                Err(FoldFault::Panicked(reason))
            }
        }
    }

    /// Stops folding for good.
    fn break_down(&self, writer: &mut Writer<V>, reason: &str) {
        tracing::error!(view = V::NAME, reason, "the fold of a view panicked; the view stops");
        *writer = Writer::Broken(reason.to_owned());
        // The fold may hold half an event.
        self.snapshots.forbid();
        self.fail(reason.to_owned());
    }

    /// Tells every waiter why folding has stopped.
    fn fail(&self, reason: String) {
        *lock(&self.fault) = Some(reason);
        self.position.rouse();
    }

    /// Has the thread fold now.
    pub(super) fn nudge(&self) {
        if let Some(thread) = &*lock(&self.thread) {
            thread.thread().unpark();
        }
    }

    fn save_if_due(&self, due: &mut SnapshotDue) {
        let begin_us = self.clock.monotonic_us();
        let is_due = self.position() >= due.at || self.counters.fold_us() >= due.at_fold_us;
        if !self.has_lost_snapshot() && (!is_due || begin_us < due.not_before_us) {
            return;
        }
        self.save();
        let end_us = self.clock.monotonic_us();
        due.at = self.position() + SNAPSHOT_EVENTS;
        due.at_fold_us = self.counters.fold_us() + SNAPSHOT_FOLD_US;
        due.not_before_us = end_us + (end_us - begin_us) * SNAPSHOT_SHARE;
    }

    /// Whether the snapshot on disk has been removed since this was last asked.
    fn has_lost_snapshot(&self) -> bool {
        let is_lost = self.is_snapshot_lost.swap(false, Ordering::AcqRel);
        if is_lost {
            self.snapshot_position.store(0, Ordering::Relaxed);
        }
        is_lost
    }

    /// Writes the last snapshot, if it saves the next start much time.
    fn save_last(&self) {
        self.has_lost_snapshot();
        let saved = self.snapshot_position.load(Ordering::Relaxed);
        if self.position().saturating_sub(saved) > LAST_SNAPSHOT_EVENTS
            || self.counters.unsaved_fold_us() > LAST_SNAPSHOT_FOLD_US
        {
            self.save();
        }
    }

    /// Writes a snapshot if there is anything new, as an ordinary reader: waiters may fold
    /// meanwhile.
    fn save(&self) {
        let (position, fold_us) = (self.position(), self.counters.fold_us());
        let saved = self.snapshot_position.load(Ordering::Relaxed);
        let Some(folded) = self.folded.get() else { return };
        if position <= saved {
            return;
        }
        let begun_us = self.clock.monotonic_us();
        let encode = |out: &mut io::BufWriter<_>| V::encode(folded, out);
        match self.snapshots.write(&self.log, position, encode) {
            Ok(SnapshotOutcome::Whole { bytes }) => {
                self.snapshot_position.store(position, Ordering::Relaxed);
                let took_us = self.clock.monotonic_us().saturating_sub(begun_us);
                self.counters.snapshot(bytes, took_us, fold_us);
                tracing::debug!(view = V::NAME, position, bytes, "wrote a snapshot");
            }
            Ok(SnapshotOutcome::Forbidden) => {}
            Err(error) => tracing::warn!(view = V::NAME, %error, "cannot write a snapshot"),
        }
    }
}

impl<V: View> Folding<V> {
    /// Folds the available events, but no more, and publishes the result.
    fn advance(&mut self, live: &Live<V>, most: RunLimits) -> Result<(), ReadError> {
        let snapshot = live.log.snapshot();
        // Nothing that the view folds is ever cut off: `Node::views_before`.
        self.position = self.position.max(snapshot.first() - 1);
        let mut end = snapshot.head().min(self.position + most.positions);
        if end <= self.position {
            return Ok(());
        }
        let begun_us = live.clock.monotonic_us();
        let (mut applied, mut bytes) = (0, 0);
        let options = ReadOptions { after: Some(self.position), ..ReadOptions::default() };
        let mut events = snapshot.read_compiled(Arc::clone(&self.query), options);
        let mut published = self.position;
        while let Some(record) = events.next()? {
            if record.position() > end {
                break;
            }
            bytes += record.data().len();
            if bytes > most.bytes {
                end = self.position;
                break;
            }
            let position = record.position();
            assert!(position > self.position, "each event is folded once, in order");
            self.view.apply(&StoredRecord(record));
            self.position = position;
            applied += 1;
            if self.position - published >= PUBLISH_EVENTS {
                published = self.position;
                self.publish(live);
            }
        }
        self.position = end.max(self.position);
        self.publish(live);
        live.counters.folded(applied, live.clock.monotonic_us().saturating_sub(begun_us));
        Ok(())
    }

    /// Publishes the fold, then its position.
    fn publish(&mut self, live: &Live<V>) {
        self.view.publish(self.position);
        live.position.publish(self.position);
    }
}
