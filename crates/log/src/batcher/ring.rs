//! One producer, one consumer, frames of bytes, no lock: the partition.
//!
//! Places are byte counts since the ring was created and only grow; a place modulo the capacity is
//! its offset. A frame is always contiguous: one that does not fit before the end of the ring
//! starts at the beginning again, and `skip_at` tells the consumer where the lap's content ends (as
//! in a bip buffer, S. Cooke 2003).
//!
//! Access to bytes: the consumer owns those from `head` to `tail`, the producer the rest. The
//! producer moves `tail` (`Release`) after writing, the consumer moves `head` (`Release`) after
//! reading; each loads the other's counter with `Acquire`. Each caches the last value it saw, so
//! that the producer touches the consumer's cache line only when the ring seems full.
//!
//! `skip_at` needs no ordering of its own. It is written before the `tail` that makes it relevant,
//! and overwritten only at the end of the lap after next, by which time `head` must have left the
//! lap it describes: the consumer has read it.

use super::sync::{Arc, AtomicU64, Bytes, Chunk, Ordering};

/// The producer's counters, read by the consumer, on a separate pair of cache lines (processors
/// prefetch the neighbour).
#[derive(Debug)]
#[repr(align(128))]
struct ProducerCounters {
    tail: AtomicU64,
    skip_at: AtomicU64,
}

/// The consumer's counters.
#[derive(Debug)]
#[repr(align(128))]
struct ConsumerCounters {
    head: AtomicU64,
}

/// The state shared by both ends.
#[derive(Debug)]
struct Ring {
    written: ProducerCounters,
    released: ConsumerCounters,
    bytes: Bytes,
    capacity: u64,
}

/// No room: the consumer must release something first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoRoom;

/// The producer's end.
#[derive(Debug)]
pub(super) struct Writer {
    ring: Arc<Ring>,
    tail: u64,
    head_seen: u64,
}

/// The consumer's end.
#[derive(Debug)]
pub(super) struct Reader {
    ring: Arc<Ring>,
    head: u64,
    tail_seen: u64,
}

/// Observes both ends from outside without affecting them.
#[derive(Debug)]
pub(super) struct Gauge {
    ring: Arc<Ring>,
}

impl Gauge {
    /// The place after everything published before this call, or later.
    pub(super) fn tail(&self) -> u64 {
        self.ring.written.tail.load(Ordering::Acquire)
    }

    /// The place before which everything has been released. Everything that the consumer did before
    /// the release is visible.
    pub(super) fn released(&self) -> u64 {
        self.ring.released.head.load(Ordering::Acquire)
    }
}

/// Creates a ring of `capacity` bytes, a power of two.
pub(super) fn ring(capacity: usize) -> (Writer, Reader) {
    assert!(capacity.is_power_of_two(), "the capacity of a ring is a power of two");
    let ring = Arc::new(Ring {
        written: ProducerCounters { tail: AtomicU64::new(0), skip_at: AtomicU64::new(u64::MAX) },
        released: ConsumerCounters { head: AtomicU64::new(0) },
        bytes: Bytes::zeroed(capacity),
        capacity: capacity as u64,
    });
    let writer = Writer { ring: Arc::clone(&ring), tail: 0, head_seen: 0 };
    (writer, Reader { ring, head: 0, tail_seen: 0 })
}

/// Space for one or more frames being filled. Invisible to the consumer until published.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    writer: &'a mut Writer,
    at: u64,
    end: u64,
    /// Whether it starts at the beginning of the ring, leaving bytes at the end unused.
    skips: bool,
}

impl Writer {
    /// The longest frame that can ever fit: half the ring, so that it fits before or after the
    /// content.
    pub(super) fn longest(&self) -> usize {
        self.ring.capacity as usize / 2
    }

    /// Reserves `len` contiguous bytes, at most [`longest`](Self::longest).
    #[inline]
    pub(super) fn reserve(&mut self, len: usize) -> Result<Reservation<'_>, NoRoom> {
        debug_assert!(len <= self.longest(), "a frame fits before or after the content");
        let (len, capacity) = (len as u64, self.ring.capacity);
        let before_end = capacity - (self.tail & (capacity - 1));
        let at = if len <= before_end { self.tail } else { self.tail + before_end };
        let end = at + len;
        if end - self.head_seen > capacity {
            self.head_seen = self.ring.released.head.load(Ordering::Acquire);
            if end - self.head_seen > capacity {
                return Err(NoRoom);
            }
        }
        let skips = at != self.tail;
        Ok(Reservation { writer: self, at, end, skips })
    }

    /// The place after everything published.
    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    /// The place before which everything has been released.
    pub(super) fn released(&self) -> u64 {
        self.ring.released.head.load(Ordering::Acquire)
    }
}

impl Reservation<'_> {
    /// Adds a part; all parts together must have exactly the reserved length.
    #[inline]
    pub(super) fn put(&mut self, part: &[u8]) {
        let end = self.at + part.len() as u64;
        assert!(end <= self.end, "more is put than was reserved");
        let ring = &*self.writer.ring;
        // SAFETY: `reserve` has seen `head` at or past `self.end - capacity`, so
        // these bytes are the producer's, and there is one producer.
        unsafe { ring.bytes.write((self.at & (ring.capacity - 1)) as usize, part) };
        self.at = end;
    }

    /// Publishes the frames to the consumer; returns the place after them.
    #[inline]
    pub(super) fn publish(self) -> u64 {
        assert!(self.at == self.end, "less was put than was reserved");
        if self.skips {
            // Not earlier: an abandoned reservation must leave no trace.
            self.writer.ring.written.skip_at.store(self.writer.tail, Ordering::Relaxed);
        }
        self.writer.tail = self.end;
        self.writer.ring.written.tail.store(self.end, Ordering::Release);
        self.end
    }
}

impl Reader {
    pub(super) fn gauge(&self) -> Gauge {
        Gauge { ring: Arc::clone(&self.ring) }
    }

    /// Observes what has been published; [`parts`](Self::parts) returns all of it. Returns its end.
    pub(super) fn observe(&mut self) -> u64 {
        let tail = self.ring.written.tail.load(Ordering::Acquire);
        debug_assert!(tail >= self.tail_seen, "places only grow");
        self.tail_seen = tail;
        tail
    }

    /// Whether anything observed has not been released.
    pub(super) fn has_content(&self) -> bool {
        self.tail_seen > self.head
    }

    /// Number of bytes observed but not released, including unused ones at the end of a lap.
    pub(super) fn observed_bytes(&self) -> u64 {
        self.tail_seen - self.head
    }

    /// The end of the content in the head's lap, and of the lap itself.
    fn lap(&self) -> (u64, u64) {
        let lap_end = (self.head | (self.ring.capacity - 1)) + 1;
        if self.tail_seen <= lap_end {
            return (self.tail_seen, lap_end);
        }
        let skip_at = self.ring.written.skip_at.load(Ordering::Relaxed);
        let skipped = (self.head..lap_end).contains(&skip_at);
        (if skipped { skip_at } else { lap_end }, lap_end)
    }

    /// Everything observed but not released, in order: whole frames, in at most two parts.
    pub(super) fn parts(&self) -> [Chunk<'_>; 2] {
        let (content_end, lap_end) = self.lap();
        let read = |from: u64, to: u64| {
            let at = (from & (self.ring.capacity - 1)) as usize;
            // SAFETY: these bytes are between `head` and an observed `tail`: the producer wrote
            // them before it moved `tail` there and does not touch them until `head` has passed
            // them, which takes `&mut self`.
            unsafe { self.ring.bytes.read(at, (to - from) as usize) }
        };
        let rest = self.tail_seen.max(lap_end);
        [read(self.head, content_end), read(lap_end, rest)]
    }

    /// Releases the first `len` bytes of [`parts`](Self::parts).
    pub(super) fn release(&mut self, len: usize) {
        let (content_end, lap_end) = self.lap();
        let first = content_end - self.head;
        let len = len as u64;
        let head = if len <= first { self.head + len } else { lap_end + (len - first) };
        assert!(head <= self.tail_seen, "more is released than was observed");
        self.head = head;
        self.ring.released.head.store(head, Ordering::Release);
    }
}
