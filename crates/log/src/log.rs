//! The log: the handle that a program opens, appends to and reads from.

use crate::amount::Amount;
use crate::append::{Append, Appended, Basis, Completion, Staged, StoredRequest, Unjudged};
use crate::error::{AppendError, Corruption, NotConfirmed, OpenError, ReadError};
use crate::extent::{Extent, ExtentMark};
use crate::feed::Feed;
use crate::head_gate::HeldHeads;
use crate::histogram::Histogram;
use crate::index::Terms;
use crate::journal::LeadOrder;
use crate::lease::Leases;
use crate::open;
use crate::options::{Driver, Options};
use crate::query::CompiledQuery;
use crate::read::Snapshot;
use crate::role::Role;
use crate::sequencer::{Sequencer, Turn, judge};
use crate::shared::{Place, SharedLog, SharedOptions};
use crate::storage::{DiskStorage, Storage};
use crate::subscription::Subscription;
use crate::threads::lock;
use crate::work::Work;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use wellspring_format::record::RequestKey;
use wellspring_types::{HistoryId, Position, Query};

/// Figures about a log, for metrics and people. Counters start when it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Position of the first event, 1 unless the beginning was cut off.
    pub first: Position,
    /// Last durable position.
    pub head: Position,
    /// Bytes of all files of the log.
    pub disk_bytes: u64,
    /// Of these, bytes of segments.
    pub segment_bytes: u64,
    /// Of these, bytes of sealed indexes.
    pub sealed_index_bytes: u64,
    /// Segment files.
    pub segments: u64,
    /// Approximate memory of all indexes, including the active one, in bytes.
    pub index_memory_bytes: u64,
    /// Approximate memory of the active index, in bytes.
    pub active_index_memory_bytes: u64,
    /// Terms in the indexes.
    pub terms: Terms,
    /// Encoded size of what is staged but not durable yet, in bytes.
    pub staged_bytes: u64,
    /// Appends made (requests, not events), without replays.
    pub appends: u64,
    /// Events appended.
    pub events: u64,
    /// Appends refused because their condition failed.
    pub conflicts: u64,
    /// Appends answered as replays.
    pub replays: u64,
    /// Group commits made durable.
    pub batches: u64,
    /// Events per group commit.
    pub batch_events: Histogram,
    /// Size of each group commit as written, in bytes.
    pub batch_bytes: Histogram,
    /// Duration of each barrier, µs.
    pub barriers_us: Histogram,
    /// When the last durable event was recorded, µs since 1970 UTC; 0 if there is none.
    pub last_recorded_at_us: u64,
    /// The epoch in which this process leads the log, or led it last.
    pub epoch: u64,
    /// Failed attempts to write an index, which stays in memory until one succeeds.
    pub index_write_failures: u64,
    /// Indexes of full segments that are not written yet.
    pub indexes_unwritten: u64,
    /// Whether the last batch found the device full.
    pub storage_full: bool,
    /// Whether the log no longer accepts appends: the journal failed, or the log is closed.
    pub closed: bool,
    /// Segments found damaged since the log was opened.
    pub damaged_segments: u64,
    /// Damaged indexes that were rebuilt, at the opening and since.
    pub indexes_mended: u64,
    /// Panics of the threads that write and merge indexes. They lose nothing; the work is repeated.
    pub background_panics: u64,
    /// Outcomes of appends with [`Ack::Accepted`](crate::Ack::Accepted).
    pub accepted: AcceptedStats,
}

/// Figures about the shared log that a log is a copy of. Counters start when it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedStats {
    /// Everything up to this place is in the copy.
    pub place: Place,
    /// Entries without effect: repeated, late, or from a former leader. Many waste space.
    pub void_entries: u64,
    /// Entries that this node has offered repeatedly.
    pub repeated_offers: u64,
    /// Batches of other nodes applied here.
    pub foreign_batches: u64,
    /// Failed attempts to repair damaged segments. They are repeated every second.
    pub mend_failures: u64,
    /// The silence after which a leader is considered gone, over the engine as it is.
    pub lead_timeout: std::time::Duration,
}

/// Outcomes of events appended with [`Ack::Accepted`](crate::Ack::Accepted). Events neither stored
/// nor dropped are still in memory, or their outcome is unknown after a device failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptedStats {
    /// Answered once staged.
    pub accepted: Amount,
    /// Of these, made durable.
    pub stored: Amount,
    /// Of these, dropped because the journal refused them later (a full disk).
    pub dropped: Amount,
}

/// An open log. Cheap to clone; dropping the last clone closes it.
#[derive(Debug, Clone)]
pub struct Log {
    sequencer: Arc<Sequencer>,
    closer: Arc<Closer>,
}

/// Closes the log when the last handle is dropped.
#[derive(Debug)]
struct Closer {
    sequencer: Arc<Sequencer>,
    journal: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.close();
    }
}

impl Closer {
    /// Returns once the journal's thread has ended, even if another caller has initiated that.
    fn close(&self) {
        lock(&self.sequencer.staging).closed.get_or_insert_with(|| "it has been closed".into());
        let was_closing = self.sequencer.closing.swap(true, Ordering::SeqCst);
        if let Driver::Turns { .. } = self.sequencer.options.driver {
            if !was_closing {
                self.sequencer.end_by_turns();
            }
            return;
        }
        self.sequencer.wake();
        // A completion may drop the last handle on the journal's own thread, which cannot wait for
        // itself or for a caller that waits for it.
        let own = std::thread::current().id();
        if self.sequencer.journal_thread.get().is_some_and(|thread| thread.id() == own) {
            return;
        }
        let mut journal = lock(&self.journal);
        if let Some(thread) = journal.take() {
            let _ = thread.join();
        }
    }
}

impl Log {
    /// Opens the log in `dir`, creating it if necessary, and recovers it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(dir: &Path, options: Options) -> Result<Log, OpenError> {
        let storage = DiskStorage::create(dir).map_err(|error| OpenError::Io {
            doing: format!("creating {}", dir.display()),
            error,
        })?;
        Log::open_on(Arc::new(storage), options)
    }

    /// Opens the log in a storage supplied by the caller.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_on(storage: Arc<dyn Storage>, options: Options) -> Result<Log, OpenError> {
        Ok(Log::of(open::open(storage, options)?))
    }

    /// Opens this node's copy of a log that several nodes agree on, and follows it. At first the
    /// log is [catching up](Role::CatchingUp): the copy can be read at once, but views should be
    /// opened only after it has caught up, because a power loss may have removed more from the copy
    /// than from a view. Damaged parts of the copy are truncated and fetched again. For an example,
    /// see [`shared`](crate::shared).
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shared(
        storage: Arc<dyn Storage>,
        options: Options,
        shared: SharedOptions,
        engine: Box<dyn SharedLog>,
    ) -> Result<Log, OpenError> {
        Ok(Log::of(open::open_shared(storage, options, shared, engine)?))
    }

    fn of(opened: open::OpenedLog) -> Log {
        let (sequencer, thread) = opened;
        let closer = Closer { sequencer: Arc::clone(&sequencer), journal: Mutex::new(thread) };
        Log { sequencer, closer: Arc::new(closer) }
    }

    /// This node's role in the log; always leader for a log of files.
    #[must_use]
    pub fn role(&self) -> Role {
        self.sequencer.role()
    }

    /// The number of role changes, as a feed to wait for.
    #[must_use]
    pub fn role_changes(&self) -> &Feed {
        &self.sequencer.role_changes
    }

    /// Makes this node claim the lead now, whether or not the leader is alive, in order to move the
    /// lead here. [`role`](Self::role) shows whether it succeeds. A node that is catching up claims
    /// once it has caught up, and a node with a claim in flight claims again if that one loses. Has
    /// no effect on a log of files.
    pub fn claim_lead(&self) {
        self.tell(LeadOrder::Claim);
    }

    /// Makes this node give up the lead, or a claim that has not been delivered. What is only
    /// staged is refused with [`AppendError::NotLeading`]; what was offered stays in doubt until it
    /// arrives or another node leads. The node does not claim on its own until it has heard of
    /// another leader, or for twice the lead timeout. Has no effect if it neither leads nor claims,
    /// or on a log of files.
    pub fn resign(&self) {
        self.tell(LeadOrder::Resign);
    }

    fn tell(&self, order: LeadOrder) {
        if let Some(counters) = &self.sequencer.shared_counters {
            counters.told.tell(order);
            self.sequencer.wake();
        }
    }

    /// Performs the next background task here, without waiting, if [turns](Driver::Turns) drive it.
    pub fn turn(&self) -> Turn {
        self.sequencer.turn()
    }

    /// Figures about the shared log that this is a copy of; `None` for a log of files.
    #[must_use]
    pub fn shared_stats(&self) -> Option<SharedStats> {
        let counters = self.sequencer.shared_counters.as_ref()?;
        Some(SharedStats {
            place: Place(self.sequencer.places.head()),
            void_entries: counters.void_entries.load(Ordering::Relaxed),
            repeated_offers: counters.repeated_offers.load(Ordering::Relaxed),
            foreign_batches: counters.foreign_batches.load(Ordering::Relaxed),
            mend_failures: self.sequencer.mend_failures.load(Ordering::Relaxed),
            lead_timeout: counters.lead_timeout(),
        })
    }

    /// Appends and waits for the outcome. Commits on the calling thread if no other is committing.
    ///
    /// # Errors
    /// [`AppendError`], which says whether a retry helps.
    pub fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let (tell, told) = mpsc::sync_channel(1);
        let done: Completion = Box::new(move |outcome| {
            let _ = tell.send(outcome);
        });
        if self.sequencer.submit(append, Basis::default(), done) != Staged::Answered {
            self.sequencer.commit_inline();
        }
        told.recv().unwrap_or_else(|_| {
            Err(AppendError::Unknown { reason: "the log stopped while appending".into() })
        })
    }

    /// Judges and stages the append; `done` is called with the outcome, possibly before this
    /// returns. Takes microseconds, plus the cost of judging its condition (see
    /// [`stage_within`](Self::stage_within)); never waits for the device.
    pub fn submit(&self, append: Append, done: Completion) {
        if self.sequencer.submit(append, Basis::default(), done) != Staged::Answered {
            self.sequencer.commit_elsewhere();
        }
    }

    /// As [`submit`](Self::submit), but leaves the commit to the caller: without a prompt
    /// [`commit`](Self::commit), `done` may have to wait for the next append.
    pub fn stage(&self, append: Append, done: Completion) -> Staged {
        self.stage_on(Basis::default(), append, done)
    }

    /// As [`stage`](Self::stage), for an append that was decided on top of staged ones: it is
    /// refused if those have been discarded meanwhile.
    pub fn stage_on(&self, basis: Basis, append: Append, done: Completion) -> Staged {
        self.sequencer.submit(append, basis, done)
    }

    /// As [`stage`](Self::stage), but judges the append within `work`: with a few steps where it
    /// must be quick, or on a separate thread with a deadline and a stop flag.
    ///
    /// # Errors
    /// The append, if the work stopped before it was judged. It had no effect, and `done` is kept.
    pub fn stage_within(
        &self,
        append: Append,
        work: &mut Work,
        done: Completion,
    ) -> Result<Staged, Box<Unjudged>> {
        self.sequencer.submit_within(append, Basis::default(), work, done)
    }

    /// Commits what is staged: on this thread, waiting for the device, or on another one.
    pub fn commit(&self, on: CommitOn) {
        match on {
            CommitOn::ThisThread => self.sequencer.commit_inline(),
            CommitOn::JournalThread => self.sequencer.commit_elsewhere(),
        }
    }

    /// Whether both are handles of one open log.
    pub fn is_same(&self, other: &Log) -> bool {
        Arc::ptr_eq(&self.sequencer, &other.sequencer)
    }

    pub(crate) fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    /// The result of an earlier durable append with this key; `None` if there was none.
    ///
    /// # Errors
    /// [`AppendError::KeyReused`] if it had another digest, [`AppendError::Read`].
    pub fn find_request(&self, key: &RequestKey) -> Result<Option<Appended>, AppendError> {
        judge::find_request(&self.snapshot(), key)
    }

    /// The durable append with this key, whatever its content; `None` if there is none.
    ///
    /// # Errors
    /// [`ReadError`]: damage, or a system error, for which a retry may help.
    pub fn request_with_key(&self, key: &str) -> Result<Option<StoredRequest>, ReadError> {
        self.snapshot().request_with_key_after(key, 0, &mut Work::unbounded())
    }

    /// The last durable position; 0 if the log is empty.
    #[must_use]
    pub fn head(&self) -> Position {
        self.sequencer.feed.head()
    }

    /// The head, once it is confirmed as the end of the log: every event reported durable to any
    /// client before this is first polled is at or before it. The journal of files only checks the
    /// sequencer, which takes microseconds and is ready at once; a journal with several writers
    /// must ask them.
    ///
    /// # Errors
    /// [`NotConfirmed`]. Known events can still be read.
    pub async fn confirm(&self) -> Result<Position, NotConfirmed> {
        self.sequencer.confirmed().await
    }

    /// Which history the log has; `None` for a copy that does not know its shared log yet.
    #[must_use]
    pub fn history(&self) -> Option<HistoryId> {
        self.sequencer.history.get().copied()
    }

    /// What is durable now: the head and the bytes of each segment that hold the events up to it.
    /// These bytes never change. With the heads of several logs held, all of them are seen in one
    /// moment. Takes a lock that is held for nanoseconds; no device access.
    #[must_use]
    pub fn mark_extent(&self, _held: &HeldHeads<'_>) -> ExtentMark {
        ExtentMark::of(&self.sequencer)
    }

    /// The same for this log alone.
    #[must_use]
    pub fn extent_now(&self) -> Extent {
        let mark = self.mark_extent(&self.sequencer.options.head_gate.hold());
        mark.resolve()
    }

    /// A snapshot of the current log.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.sequencer.snapshot()
    }

    /// Matching events after `after`, including future ones.
    #[must_use]
    pub fn subscribe(&self, query: Query, after: Position) -> Subscription {
        let segments = Arc::clone(&self.sequencer.segments);
        let interest = self.sequencer.interests.of(&query);
        let query = CompiledQuery::shared(&query);
        Subscription::new(self.sequencer.feed.clone(), segments, query, interest, after)
    }

    /// The head as a feed to wait for.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.sequencer.feed
    }

    /// The epoch in which this node leads the log, or led it last: the number of leads before it,
    /// over all nodes and restarts. It changes under the staging lock, together with the end of all
    /// leases, and only a node that leads stages; so a [`Fence`](crate::Fence) that is asked with
    /// this number there knows that what it grants ends before anything of a later epoch is staged.
    /// Elsewhere the answer may be old at once. A cheap read.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.sequencer.current_epoch()
    }

    /// The log's leases.
    #[must_use]
    pub fn leases(&self) -> &Arc<Leases> {
        &self.sequencer.leases
    }

    /// Encoded size of what is staged but not durable yet, in bytes. Takes a lock that is held for
    /// microseconds.
    #[must_use]
    pub fn staged_bytes(&self) -> usize {
        self.sequencer.staged_bytes()
    }

    /// Whether this node leads the log and has since this epoch began. A cheap read, like
    /// [`epoch`](Self::epoch).
    #[must_use]
    pub fn leads_in(&self, epoch: u64) -> bool {
        self.sequencer.mark.leads() && self.sequencer.current_epoch() == epoch
    }

    /// How often staged appends have been discarded since the log was opened. While this equals the
    /// count returned by [`Staged::Placed`], positions up to the head belong to the same appends. A
    /// cheap read.
    #[must_use]
    pub fn setbacks(&self) -> u64 {
        self.sequencer.mark.setbacks()
    }

    /// Number of segments, each of which holds two descriptors. No device access.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.sequencer.segments.count()
    }

    /// Figures about the log. Asks the file system for its size.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        let sequencer = &self.sequencer;
        let counters = &sequencer.counters;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let disk = sequencer.disk_usage();
        let indexes = sequencer.segments.index_usage();
        LogStats {
            first: self.snapshot().first(),
            head: self.head(),
            disk_bytes: disk.all_bytes,
            segment_bytes: disk.segment_bytes,
            sealed_index_bytes: disk.index_bytes,
            segments: self.segments(),
            index_memory_bytes: indexes.memory_bytes,
            active_index_memory_bytes: indexes.active_memory_bytes,
            terms: indexes.terms,
            staged_bytes: sequencer.staged_bytes() as u64,
            appends: read(&counters.appends),
            events: read(&counters.events),
            conflicts: read(&counters.conflicts),
            replays: read(&counters.replays),
            batches: read(&counters.batches),
            batch_events: counters.batch_events.read(),
            batch_bytes: counters.batch_bytes.read(),
            barriers_us: counters.barriers_us.read(),
            last_recorded_at_us: read(&counters.last_recorded_at_us),
            epoch: sequencer.current_epoch(),
            index_write_failures: sequencer.sealer.failures(),
            indexes_unwritten: sequencer.sealer.failed() as u64,
            storage_full: sequencer.mark.is_full(),
            closed: self.closed_reason().is_some(),
            damaged_segments: sequencer.segments.damage().len() as u64,
            indexes_mended: self.indexes_mended(),
            background_panics: self.background_panics(),
            accepted: self.accepted_stats(),
        }
    }

    /// Outcomes of appends with [`Ack::Accepted`](crate::Ack::Accepted). No device access.
    #[must_use]
    pub fn accepted_stats(&self) -> AcceptedStats {
        let counters = &self.sequencer.counters;
        // `accepted` is read last, so that it is never less than the others.
        let (stored, dropped) = (counters.accepted_stored.get(), counters.accepted_dropped.get());
        AcceptedStats { accepted: counters.accepted.get(), stored, dropped }
    }

    /// Why the log no longer accepts appends, if so.
    #[must_use]
    pub fn closed_reason(&self) -> Option<String> {
        self.sequencer.closed_reason()
    }

    /// The first damage that reads have found in each segment since the log was opened, by
    /// position. Does not include damaged indexes, which are rebuilt. No device access.
    #[must_use]
    pub fn damage(&self) -> Vec<Corruption> {
        self.sequencer.segments.damage()
    }

    /// How often an index was found damaged and rebuilt, at the opening or since. No device access.
    #[must_use]
    pub fn indexes_mended(&self) -> u64 {
        self.sequencer.segments.indexes_mended()
    }

    /// The indexes that were found damaged and rebuilt, each with how often. No device access.
    #[must_use]
    pub fn mended_indexes(&self) -> Vec<(String, u64)> {
        self.sequencer.segments.mended()
    }

    /// Panics of the threads that write and merge indexes since the log was opened.
    #[must_use]
    pub fn background_panics(&self) -> u64 {
        self.sequencer.sealer.panics()
    }

    /// Whether the last batch found the device full. Appends, and the journal's thread every
    /// second, detect when there is room again; reads continue.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.sequencer.mark.is_full()
    }

    /// Refuses further appends, makes what is staged durable, and releases the folder. Reads
    /// continue.
    ///
    /// For a shared log, this waits for offered batches as long as the lead timeout; after that
    /// their outcome is [unknown](AppendError::Unknown), so this returns even while the engine is
    /// unreachable. It does wait for a device that hangs.
    pub fn close(&self) {
        self.closer.close();
    }
}

/// Where to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOn {
    /// On the calling thread: fastest for a single client, but the thread waits for the device.
    ThisThread,
    /// Without waiting for the device: on the journal's thread, or on this one if the engine of a
    /// shared log settles it.
    JournalThread,
}
