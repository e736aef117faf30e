//! The partitioned batcher: many producing threads, one flusher, no loss and no duplicates.
//!
//! Each producer owns a **partition**, a ring of bytes that only it writes. A push copies the frame
//! and moves one counter, without a lock, a system call, or a cache line that another core writes.
//! The **flusher**, a thread, takes whole partitions and passes them to a [`Sink`]; for a log that
//! is the sequencer ([`Log::batcher`](crate::Log::batcher)). Room in a ring is released only once
//! the sink has stored its content. Memory is thus bounded by the rings, and a sink that cannot
//! store for a while loses nothing.
//!
//! - **Order**: a producer's frames keep their order; for order between producers see
//!   [`Batcher::producer`].
//! - **When it flushes**: at once if it was idle or a receipt is awaited; otherwise when
//!   [`flush_age`](Options::flush_age) has passed since the last flush began, or a partition has
//!   gathered [`flush_bytes`](Options::flush_bytes). While a flush is at the device the next one
//!   gathers, so batches grow with load.
//! - **When a partition is full**: the producer waits or is refused, depending on [`Overflow`].
//!   Nothing is overwritten.
//! - **In front of a shared log**: events accepted on a node that does not lead are [handed
//!   over](HandOver) to the leader, exactly once.
//! - **What a crash loses**: at most [`Figures::lost_possible`], the newest frames of each
//!   producer.
//!
//! ```
//! use wellspring_log::batcher::{EventTemplate, Options};
//! use wellspring_log::{Log, Options as LogOptions};
//! use wellspring_types::DataKind;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let log = Log::open(dir.path(), LogOptions::default())?;
//! let batcher = log.batcher(Options::default())?;
//! let clicked = EventTemplate::new("Clicked", &["page:home"])?;
//! let mut producer = batcher.producer(0, None);
//! for _ in 0..1000 {
//!     producer.push_event(&clicked, DataKind::Json, b"{}")?;
//! }
//! batcher.close(); // stores everything that was pushed
//! assert_eq!(log.head(), 1000);
//! assert_eq!(batcher.figures().accepted, batcher.figures().stored);
//! # Ok(())
//! # }
//! ```

mod close_terms;
#[cfg(test)]
mod close_tests;
mod event;
mod figures;
mod flusher;
mod giver;
mod hand_over;
mod log_sink;
mod mark;
#[cfg(test)]
mod mark_tests;
mod pieces;
mod producer;
mod ring;
#[cfg(test)]
mod ring_tests;
mod shared;
mod sink;
mod stored_waiters;
mod sync;
#[cfg(test)]
mod tests;
mod wanted;

pub use crate::amount::Amount;
pub use close_terms::CloseOutcome;
pub use event::EventTemplate;
pub use figures::Figures;
pub use hand_over::{HandOver, HandOverOutcome, HandedPiece};
pub use mark::{Mark, MarkError, StoredMark};
pub use producer::{Producer, PushError, Receipt, Wake};
pub use sink::{Sink, SinkOutcome, Trouble};

use crate::options::Clock;
use crate::threads;
use close_terms::CloseTerms;
use flusher::Flusher;
use log_sink::LogSink;
use shared::{Frames, Link, Partition, Shared};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What happens to a push into a full partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The producer waits until there is room.
    #[default]
    Block,
    /// The push is refused and counted as shed.
    Shed,
}

/// The settings of a batcher. `Options::default()` suits most uses.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Size of each producer's partition in bytes, rounded up to a power of two from 4 KiB to 1
    /// GiB. A frame can be at most half as long.
    pub partition_bytes: usize,
    /// A partition with this many bytes is flushed at once.
    pub flush_bytes: usize,
    /// Maximum time between the starts of two flushes while there is anything to flush.
    pub flush_age: Duration,
    /// What happens to a push into a full partition.
    pub overflow: Overflow,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            partition_bytes: 8 << 20,
            flush_bytes: 1 << 20,
            flush_age: Duration::from_millis(2),
            overflow: Overflow::Block,
        }
    }
}

impl Options {
    fn capacity(&self) -> usize {
        self.partition_bytes.clamp(4 << 10, 1 << 30).next_power_of_two()
    }
}

/// Whether storing makes progress, as judged by a batcher's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreProgress {
    /// It does.
    Flowing,
    /// Events have waited for too long. They are kept and stored later; callers should not wait for
    /// them.
    Stalled,
}

/// A batcher. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Batcher {
    closer: Arc<Closer>,
}

#[derive(Debug)]
struct Closer {
    shared: Arc<Shared>,
}

impl Drop for Closer {
    fn drop(&mut self) {
        let _ = self.close(None);
    }
}

impl Closer {
    fn close(&self, patience: Option<Duration>) -> CloseOutcome {
        self.shared.close(patience);
        // A wake callback may drop the last handle on the flusher's own thread, which cannot wait
        // for itself.
        if self.shared.is_flusher() {
            return CloseOutcome::SinkAtWork;
        }
        self.shared.terms.wait()
    }
}

/// Marks that the flusher's thread has dropped everything.
struct ThreadEnd(Arc<CloseTerms>);

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        self.0.set_gone();
    }
}

impl Batcher {
    /// Starts a batcher and its thread, which flushes to `sink`.
    ///
    /// # Errors
    /// The system's, if it cannot create the thread. A retry may help.
    pub fn start(sink: impl Sink, options: Options, clock: Arc<dyn Clock>) -> io::Result<Batcher> {
        Batcher::begin(sink, Frames::Any, Arc::default(), options, clock)
    }

    /// A batcher whose sink accepts only events.
    fn of_events(
        sink: LogSink,
        terms: Arc<CloseTerms>,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Batcher> {
        Batcher::begin(sink, Frames::Events, terms, options, clock)
    }

    fn begin(
        sink: impl Sink,
        frames: Frames,
        terms: Arc<CloseTerms>,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Batcher> {
        let end = ThreadEnd(Arc::clone(&terms));
        let shared = Arc::new(Shared::new(options, frames, terms));
        let flusher = Flusher::new(Arc::clone(&shared), sink, clock);
        let thread = threads::spawn("wellspring-flush", move || {
            let _end = end;
            flusher.run();
        })?;
        shared.set_flusher(thread.thread().clone());
        Ok(Batcher { closer: Arc::new(Closer { shared }) })
    }

    /// Creates a partition and its producer. Their number is unlimited; each takes
    /// [`partition_bytes`](Options::partition_bytes) of address space, and memory as it is used.
    ///
    /// If a thread pushes first to a producer with a lower `order` and then to one with a higher,
    /// the two pushes are stored in this order. Between producers with the same `order` there is no
    /// guarantee.
    ///
    /// After [`Producer::want_wake`], `wake` is called on the flusher's thread; it must not block.
    #[must_use]
    pub fn producer(&self, order: u8, wake: Option<Wake>) -> Producer {
        let shared = &self.closer.shared;
        let (writer, reader) = ring::ring(shared.options.capacity());
        let link = Arc::new(Link::new(reader.gauge(), wake));
        shared.admit(Partition { reader, link: Arc::clone(&link), order });
        Producer::new(writer, link, Arc::clone(shared))
    }

    /// The current point in time, for [`stored`](Self::stored): every push to any producer of this
    /// batcher that happened before this call is before it. Allocates nothing if everything is
    /// stored.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.closer.shared.mark()
    }

    /// A future that is ready once everything before `mark`, which must come from this batcher, is
    /// stored. For a log's batcher, [`Log::head`](crate::Log::head) then includes it and a later
    /// snapshot shows it, unless it was [handed over](HandOver): then the leader shows it.
    ///
    /// Its first poll requests a flush, as does each poll after something was stored. While the
    /// device is full it stays pending without wake-ups, so a caller that has to answer needs a
    /// timeout. Dropping it ends the wait.
    #[must_use]
    pub fn stored(&self, mark: Mark) -> StoredMark {
        StoredMark::new(Arc::clone(&self.closer.shared), mark)
    }

    /// The reason why every push is refused now, if so.
    #[must_use]
    pub fn refusal(&self) -> Option<PushError> {
        self.closer.shared.refusal()
    }

    /// Sets whether storing makes progress. When it stops, all producers that asked are woken, to
    /// learn it from [`Producer::progress`].
    pub fn set_progress(&self, progress: StoreProgress) {
        self.closer.shared.set_progress(progress);
    }

    /// Counts since the start.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.closer.shared.figures()
    }

    /// Refuses further pushes, stores everything accepted, and ends the thread. If the sink cannot
    /// store (its trouble lasts longer than a second), [`Figures::lost_possible`] shows afterwards
    /// what is lost.
    ///
    /// Waits as long as the sink takes: for a device without limit, for an unresponsive shared log
    /// five lead timeouts. A limit given earlier to [`close_within`](Self::close_within) applies
    /// here too.
    ///
    /// Stop the producers first: a concurrent push may be accepted too late to be stored.
    pub fn close(&self) {
        let _ = self.closer.close(None);
    }

    /// As [`close`](Self::close), but returns within `patience` plus a tenth of a second, and keeps
    /// trying for that time if the sink is in trouble. [`Figures::lost_possible`] shows what is not
    /// stored by then; of that, anything the sink has passed on without learning its outcome may
    /// still be stored.
    ///
    /// The wait for a shared log ends with the limit, so the thread has ended then. A sink that
    /// hangs (on a device, or in a [hand-over](HandOver) without a limit) keeps the thread, and
    /// with it a handle of the log, until it returns. That handle does not keep the folder locked:
    /// [`Log::close`](crate::Log::close) releases it.
    pub fn close_within(&self, patience: Duration) -> CloseOutcome {
        self.closer.close(Some(patience))
    }
}
