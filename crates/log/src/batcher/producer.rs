//! The producer's side: copy a frame and move one counter.

use super::event::EventTemplate;
use super::ring::{NoRoom, Reservation, Writer};
use super::shared::{Frames, Link, Shared};
use super::{Overflow, StoreProgress};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wellspring_types::{DataKind, Invalid};

/// Called on the flusher's thread when something that a producer asked about may have changed.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Number of yields before a blocked producer parks.
const YIELDS: u32 = 16;
/// Maximum sleep of a blocked producer before it checks again.
const NAP: Duration = Duration::from_millis(5);

/// Why a push was refused. None of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushError {
    /// The partition is full. The same push may succeed later.
    NoRoom,
    /// It can never fit: send less at a time.
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The device is full. The same push succeeds once there is room.
    StorageFull,
    /// Pushes are no longer accepted. A retry does not help.
    Closed {
        /// The reason.
        reason: String,
    },
    /// An event violates a limit. A retry does not help.
    Invalid(Invalid),
    /// The batcher's sink is a log, which accepts events, not arbitrary frames.
    EventsOnly,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PushError::NoRoom => write!(f, "too many events are waiting to be stored"),
            PushError::TooLarge { bytes, limit } => {
                write!(f, "{bytes} bytes at once exceed the limit of {limit}")
            }
            PushError::StorageFull => write!(f, "no space left on the device"),
            PushError::Closed { reason } => write!(f, "no more events are accepted: {reason}"),
            PushError::Invalid(invalid) => invalid.fmt(f),
            PushError::EventsOnly => write!(f, "the batcher accepts only events: use push_event"),
        }
    }
}

impl std::error::Error for PushError {}

impl From<NoRoom> for PushError {
    fn from(_: NoRoom) -> PushError {
        PushError::NoRoom
    }
}

/// The end of a push in its partition, for asking its own producer whether it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receipt(u64);

/// A producer pushes to one partition. It belongs to one thread at a time and can be moved to
/// another.
#[derive(Debug)]
pub struct Producer {
    writer: Writer,
    link: Arc<Link>,
    shared: Arc<Shared>,
    /// The place at which the flusher was last notified that enough has gathered.
    told_at: u64,
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.link.finished.store(true, Ordering::Release);
        self.shared.wake_if_asleep();
    }
}

/// What to do about a full partition.
enum Relief {
    TryAgain,
    Refused,
}

impl Producer {
    pub(super) fn new(writer: Writer, link: Arc<Link>, shared: Arc<Shared>) -> Producer {
        Producer { writer, link, shared, told_at: 0 }
    }

    /// Maximum size of a frame, or of frames pushed together, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.writer.longest()
    }

    /// Pushes one frame; [`Overflow`] determines what happens if the partition is full. The sink
    /// must be able to tell every frame from the next. A log accepts only events.
    ///
    /// # Errors
    /// [`PushError`]; [`NoRoom`](PushError::NoRoom) only under [`Overflow::Shed`].
    #[inline]
    pub fn push(&mut self, frame: &[u8]) -> Result<Receipt, PushError> {
        loop {
            let full = match self.try_push(frame) {
                Err(PushError::NoRoom) => self.relieve(1, frame.len()),
                other => return other,
            };
            if matches!(full, Relief::Refused) {
                return Err(PushError::NoRoom);
            }
        }
    }

    /// As [`push`](Self::push), but never waits and never counts as shed.
    ///
    /// # Errors
    /// [`PushError`].
    #[inline]
    pub fn try_push(&mut self, frame: &[u8]) -> Result<Receipt, PushError> {
        if self.shared.frames == Frames::Events {
            return Err(PushError::EventsOnly);
        }
        self.place(frame.len(), 1, |room| room.put(frame))
    }

    /// Pushes one event for the log; [`Overflow`] determines what happens if the partition is full.
    /// The data is not validated: under [`DataKind::Json`] it must be one JSON value, because
    /// readers rely on that.
    ///
    /// # Errors
    /// [`PushError`]; [`NoRoom`](PushError::NoRoom) only under [`Overflow::Shed`].
    pub fn push_event(
        &mut self,
        template: &EventTemplate,
        kind: DataKind,
        data: &[u8],
    ) -> Result<Receipt, PushError> {
        self.push_events(template, kind, std::iter::once(data))
    }

    /// Pushes events for the log, all or none, next to each other.
    ///
    /// # Errors
    /// [`PushError`]; [`NoRoom`](PushError::NoRoom) only under [`Overflow::Shed`].
    pub fn push_events<'a>(
        &mut self,
        template: &EventTemplate,
        kind: DataKind,
        data: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Receipt, PushError> {
        loop {
            let full = match self.try_push_events(template, kind, data.clone()) {
                Err(PushError::NoRoom) => {
                    let bytes = data.clone().map(|data| template.frame_bytes(data)).sum();
                    self.relieve(data.clone().count() as u64, bytes)
                }
                other => return other,
            };
            if matches!(full, Relief::Refused) {
                return Err(PushError::NoRoom);
            }
        }
    }

    /// As [`push_events`](Self::push_events), but never waits and never counts as shed.
    ///
    /// # Errors
    /// [`PushError`].
    #[inline]
    pub fn try_push_events<'a>(
        &mut self,
        template: &EventTemplate,
        kind: DataKind,
        data: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Receipt, PushError> {
        let (mut bytes, mut events) = (0usize, 0);
        for data in data.clone() {
            template.check(data).map_err(PushError::Invalid)?;
            bytes = bytes.saturating_add(template.frame_bytes(data));
            events += 1;
        }
        self.place(bytes, events, |room| {
            for data in data {
                template.put(room, kind, data);
            }
        })
    }

    #[inline]
    fn place(
        &mut self,
        bytes: usize,
        events: u64,
        fill: impl FnOnce(&mut Reservation<'_>),
    ) -> Result<Receipt, PushError> {
        if let Some(refusal) = self.shared.refusal() {
            return Err(refusal);
        }
        if bytes > self.writer.longest() {
            return Err(PushError::TooLarge { bytes, limit: self.writer.longest() });
        }
        let mut room = self.writer.reserve(bytes)?;
        fill(&mut room);
        // Counted before it can be stored, so that stored never exceeds accepted.
        self.link.counts.accepted.add_alone(events, bytes as u64);
        let place = room.publish();
        self.shared.wake_if_asleep();
        if place - self.told_at >= self.shared.options.flush_bytes as u64 {
            self.told_at = place;
            self.shared.unpark();
        }
        Ok(Receipt(place))
    }

    /// Waits for room, or counts the refused push.
    #[cold]
    fn relieve(&mut self, events: u64, bytes: usize) -> Relief {
        if self.shared.options.overflow == Overflow::Shed {
            self.count_shed(events, bytes as u64);
            return Relief::Refused;
        }
        let released = self.writer.released();
        self.shared.hurry();
        for _ in 0..YIELDS {
            std::thread::yield_now();
            if self.writer.released() > released {
                return Relief::TryAgain;
            }
        }
        self.link.want_unpark();
        if self.writer.released() == released {
            std::thread::park_timeout(NAP);
        }
        Relief::TryAgain
    }

    /// Counts as shed what a caller of `try_push…` gave up.
    pub fn count_shed(&mut self, events: u64, bytes: u64) {
        self.link.counts.shed.add_alone(events, bytes);
    }

    /// Whether everything up to a receipt of this producer has been stored.
    #[must_use]
    pub fn is_stored(&self, receipt: Receipt) -> bool {
        self.writer.released() >= receipt.0
    }

    /// The reason why pushes are refused and nothing more is stored, if so.
    #[must_use]
    pub fn refusal(&self) -> Option<PushError> {
        self.shared.refusal()
    }

    /// Whether storing makes progress, as [set](super::Batcher::set_progress) by the batcher's
    /// owner.
    #[must_use]
    pub fn progress(&self) -> StoreProgress {
        self.shared.progress()
    }

    /// Requests a flush, and a call of `wake` when something has been stored or has failed to be.
    /// Call it, check once more ([`is_stored`](Self::is_stored), `try_push…`), then wait.
    pub fn want_wake(&self) {
        self.link.wanted.ask();
        self.shared.hurry();
    }

    /// Whether anything pushed has not been stored yet.
    #[must_use]
    pub fn has_unstored(&self) -> bool {
        self.writer.released() < self.writer.tail()
    }
}
