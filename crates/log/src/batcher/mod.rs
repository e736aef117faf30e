//! The partitioned batcher: many producing threads, one flusher, nothing lost
//! and nothing twice.
//!
//! Each producer owns a **partition**, a ring of bytes that only it writes: to
//! push is to copy the frame and move one counter, without a lock, a system
//! call, or a cache line that another core writes. The **flusher**, a thread,
//! takes whole partitions and hands them to a [`Sink`]; for a log that is the
//! sequencer ([`Log::batcher`](crate::Log::batcher)). Room in a ring is given
//! back only when the sink has stored what was there. So memory is bounded by
//! the rings, and a sink that cannot store for a while loses nothing.
//!
//! - **Order**: of one producer's frames always; between producers see
//!   [`Batcher::producer`].
//! - **When it flushes**: at once if it was idle or someone waits for a receipt;
//!   else when [`flush_age`](Options::flush_age) has passed since the last flush
//!   began, or a partition has gathered [`flush_bytes`](Options::flush_bytes).
//!   While a flush is at the device the next one gathers, so batches grow with load.
//! - **When a partition is full**: the producer waits or is refused, as
//!   [`Overflow`] says. Nothing is overwritten.
//! - **In front of a log of several nodes**: what a node accepts that does not lead is
//!   [handed over](HandOver) to the one that does, once, whatever happens on the way.
//! - **What a crash takes**: at most what [`Figures::lost_possible`] says, the newest of
//!   each producer.
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
pub use sink::{Sink, Stored, Trouble};

use crate::options::Clock;
use crate::threads;
use close_terms::CloseTerms;
use flusher::Flusher;
use log_sink::LogSink;
use shared::{Frames, Link, Partition, Shared};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What becomes of a push that finds its partition full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The producer waits until there is room.
    #[default]
    Block,
    /// The push is refused and counted as shed.
    Shed,
}

/// How a batcher works. `Options::default()` is right for most.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Size of each producer's partition in bytes, rounded up to a power of two from 4 KiB to 1
    /// GiB. A frame may be half as long.
    pub partition_bytes: usize,
    /// A partition that has gathered this much is flushed at once.
    pub flush_bytes: usize,
    /// Longest time between the beginnings of two flushes while there is something to flush.
    pub flush_age: Duration,
    /// What becomes of a push that finds its partition full.
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

/// Whether what is accepted comes to be stored, in the eyes of a batcher's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreProgress {
    /// It does.
    Flowing,
    /// Something has waited for too long. It is kept, and stored when that ends; nobody is to wait
    /// for it meanwhile.
    Stalled,
}

/// A batcher. Clones are the same one; the last to go closes it.
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
        // A wake may drop the last handle on the flusher's own thread, which cannot wait for
        // itself.
        if self.shared.is_flusher() {
            return CloseOutcome::SinkAtWork;
        }
        self.shared.terms.wait()
    }
}

/// When the flusher's thread has let go of everything.
struct ThreadEnd(Arc<CloseTerms>);

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        self.0.set_gone();
    }
}

impl Batcher {
    /// Starts a batcher, and its thread, that flushes to `sink`.
    ///
    /// # Errors
    /// The system's, if it gives no thread. A retry may help.
    pub fn start(sink: impl Sink, options: Options, clock: Arc<dyn Clock>) -> io::Result<Batcher> {
        Batcher::begin(sink, Frames::Any, Arc::default(), options, clock)
    }

    /// A batcher whose sink takes nothing but events.
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

    /// A new partition and the right to push to it. Any number may be made; each takes
    /// [`partition_bytes`](Options::partition_bytes) of address space, and memory as far as it is
    /// used.
    ///
    /// Whoever pushes first to a producer with a lower `order` and then to one with a higher finds
    /// the two stored in this order. Between producers with the same `order` nothing is promised.
    ///
    /// `wake` is called, on the flusher's thread, after [`Producer::want_wake`]; it must not block.
    #[must_use]
    pub fn producer(&self, order: u8, wake: Option<Wake>) -> Producer {
        let shared = &self.closer.shared;
        let (writer, reader) = ring::ring(shared.options.capacity());
        let link = Arc::new(Link::new(reader.gauge(), wake));
        shared.admit(Partition { reader, link: Arc::clone(&link), order });
        Producer::new(writer, link, Arc::clone(shared))
    }

    /// This moment, for [`stored`](Self::stored): all that any producer of this batcher has pushed
    /// lies before it, as far as the push happened before this call (the caller has been told of
    /// it, however indirectly). Allocates nothing if everything is stored.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.closer.shared.mark()
    }

    /// A future that is ready when everything before `mark`, which must be one of this batcher, is
    /// stored. For a log's batcher [`Log::head`](crate::Log::head) then includes it: a snapshot
    /// taken after that shows it, unless it was [handed over](HandOver): then the node that leads
    /// shows it.
    ///
    /// Its first poll asks for a flush at once, and so does each that follows something being
    /// stored. While the device is full it stays pending and nothing is woken, so a caller that
    /// has to answer needs a timeout. Dropped, it no longer waits.
    #[must_use]
    pub fn stored(&self, mark: Mark) -> StoredMark {
        StoredMark::new(Arc::clone(&self.closer.shared), mark)
    }

    /// Why nothing is taken now, if so: what every producer would be refused with.
    #[must_use]
    pub fn refusal(&self) -> Option<PushError> {
        self.closer.shared.refusal()
    }

    /// Says whether storing goes on. When it does not any more, all producers that asked are woken,
    /// to find it out by [`Producer::progress`].
    pub fn set_progress(&self, progress: StoreProgress) {
        self.closer.shared.set_progress(progress);
    }

    /// Counts since it was started.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.closer.shared.figures()
    }

    /// Takes no more, stores what has been accepted, and ends the thread. If the sink cannot store
    /// (its trouble lasts over a second), [`Figures::lost_possible`] says afterwards what is lost.
    ///
    /// Waits as long as the sink takes: for a device as long as that does, for a shared log that
    /// does not answer five lead timeouts. [`close_within`](Self::close_within) has a limit of its
    /// own, which counts here, too, once it was given.
    ///
    /// Let producers end first: a push that runs at the same time as this may be accepted too late
    /// to be stored.
    pub fn close(&self) {
        let _ = self.closer.close(None);
    }

    /// As [`close`](Self::close), but returns within `patience` and a tenth of a second, and tries
    /// as long to store what a sink in trouble does not take. What is not stored by then is told by
    /// [`Figures::lost_possible`]; of that, what the sink has passed on without having heard of it
    /// again may yet come to be stored.
    ///
    /// The wait for a shared log ends with it, so that the thread has ended then. A sink that does
    /// not return (a device that does not, or a [hand-over](HandOver) without a limit) keeps the
    /// thread, and with it its handle on the log, until it does. The handle alone keeps no folder
    /// locked: [`Log::close`](crate::Log::close) gives it free.
    pub fn close_within(&self, patience: Duration) -> CloseOutcome {
        self.closer.close(Some(patience))
    }
}
