//! The log itself: what a program opens, appends to and reads from.

use crate::amount::Amount;
use crate::append::{Append, Appended, Basis, Completion, Staged, StoredRequest, Unjudged};
use crate::error::{AppendError, Corruption, NotConfirmed, OpenError, ReadError};
use crate::feed::Feed;
use crate::histogram::Histogram;
use crate::index::Terms;
use crate::journal::Order;
use crate::lease::Leases;
use crate::open;
use crate::options::{Driver, Options};
use crate::query::CompiledQuery;
use crate::read::Snapshot;
use crate::record::RequestKey;
use crate::role::Role;
use crate::sequencer::{Sequencer, Turn, judge};
use crate::shared::SharedOptions;
use crate::shared::{Place, SharedLog};
use crate::storage::{DiskStorage, Storage};
use crate::subscription::Subscription;
use crate::threads::lock;
use crate::work::Work;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use wellspring_types::{Position, Query};

/// Figures about a log, for metrics and people. All counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogStats {
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
    /// Rough bytes of memory that all indexes occupy, the active one included.
    pub index_memory_bytes: u64,
    /// Rough bytes of memory that the active index occupies.
    pub active_index_memory_bytes: u64,
    /// Terms in the indexes.
    pub terms: Terms,
    /// Encoded bytes staged and not yet durable.
    pub staged_bytes: u64,
    /// Appends made (requests, not events), replays not counted.
    pub appends: u64,
    /// Events appended.
    pub events: u64,
    /// Appends refused because their condition failed.
    pub conflicts: u64,
    /// Appends answered as replays.
    pub replays: u64,
    /// Group commits made durable.
    pub batches: u64,
    /// Events of each group commit.
    pub batch_events: Histogram,
    /// Bytes of each group commit as written.
    pub batch_bytes: Histogram,
    /// Time of each barrier, µs.
    pub barriers_us: Histogram,
    /// When the last durable event was recorded, µs since 1970 UTC; 0 if there is none.
    pub last_recorded_at_us: u64,
    /// The epoch in which this process leads the log, or led it last.
    pub epoch: u64,
    /// Attempts at writing an index that failed. They are made again; until then the index stays
    /// in memory.
    pub index_write_failures: u64,
    /// Indexes of full segments that could not be written so far.
    pub indexes_unwritten: u64,
    /// Whether the last batch found no room on the device.
    pub storage_full: bool,
    /// Whether the log takes no appends any more: the journal failed, or the log is closed.
    pub closed: bool,
    /// Segments in which damage was met since the log was opened.
    pub damaged_segments: u64,
    /// Indexes that were damaged and have been made anew, at the opening and since.
    pub indexes_mended: u64,
    /// Panics of the threads that write and merge indexes. Nothing is lost by one; the work is
    /// tried again.
    pub background_panics: u64,
    /// What became of appends with [`Ack::Accepted`](crate::Ack::Accepted).
    pub accepted: AcceptedStats,
}

/// Figures about the shared log that a log is a copy of. All counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedStats {
    /// Everything up to here is in the copy.
    pub place: Place,
    /// Entries that had no effect: repeated, late, or of a leader that leads no more. A few are no
    /// trouble; many cost the engine room.
    pub void_entries: u64,
    /// Entries that this node has offered again.
    pub repeated_offers: u64,
    /// Batches of other nodes that were applied here.
    pub foreign_batches: u64,
    /// Attempts at mending damaged segments that failed. They are made again every second.
    pub mend_failures: u64,
}

/// What became of events appended with [`Ack::Accepted`](crate::Ack::Accepted). What is neither
/// stored nor dropped is still in memory, or a device has failed and nobody knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptedStats {
    /// Answered when staged.
    pub accepted: Amount,
    /// Of these, made durable.
    pub stored: Amount,
    /// Of these, dropped because the journal refused them afterwards (a full disk).
    pub dropped: Amount,
}

/// An open log. Cheap to clone; the last clone to go closes it.
#[derive(Debug, Clone)]
pub struct Log {
    sequencer: Arc<Sequencer>,
    closer: Arc<Closer>,
}

/// Closes the log when the last handle goes.
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
    /// Returns when the journal's thread has ended, also if another caller has asked for that.
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
        // An answer may drop the last handle on the journal's own thread, which cannot wait for
        // itself, nor for a caller who waits for it.
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
    /// Opens the log in `dir`, making it if it is not there, and recovers it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(dir: &Path, options: Options) -> Result<Log, OpenError> {
        let storage = DiskStorage::create(dir)
            .map_err(|error| OpenError::Io { doing: format!("making {}", dir.display()), error })?;
        Log::open_on(Arc::new(storage), options)
    }

    /// Opens the log that lies in a storage of the caller's.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_on(storage: Arc<dyn Storage>, options: Options) -> Result<Log, OpenError> {
        Ok(Log::of(open::open(storage, options)?))
    }

    /// Opens this node's copy of a log that several nodes agree on, and follows it. The log is
    /// [catching up](Role::CatchingUp) at first: what is in the copy can be read at once, but a
    /// view should be opened only when it has caught up, since a power loss may have taken more of
    /// the copy than of the view. What is damaged in the copy is cut off and fetched again. An
    /// example stands [there](crate::shared).
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

    fn of((sequencer, thread): open::Opened) -> Log {
        let closer = Closer { sequencer: Arc::clone(&sequencer), journal: Mutex::new(thread) };
        Log { sequencer, closer: Arc::new(closer) }
    }

    /// What this node is to the log. Of a log of files it is always the leader.
    #[must_use]
    pub fn role(&self) -> Role {
        self.sequencer.role()
    }

    /// How often the role has changed, as something to wait for.
    #[must_use]
    pub fn role_changes(&self) -> &Feed {
        &self.sequencer.role_changes
    }

    /// Has this node claim the lead now, whether or not the leader is alive: to move it here.
    /// Whether it leads then is told by [`role`](Self::role). A node that is catching up claims
    /// when it has caught up. Does nothing on a log of files.
    pub fn claim_lead(&self) {
        self.tell(Order::Claim);
    }

    /// Has this node give up the lead, or a claim that has not been delivered. What is only staged
    /// is refused with [`AppendError::NotLeading`]; what was offered stays in doubt until it
    /// arrives or another leads. It does not claim by itself before it has heard of another leader,
    /// or for twice the lead timeout. Does nothing if it neither leads nor claims, nor on a log of
    /// files.
    pub fn resign(&self) {
        self.tell(Order::Resign);
    }

    fn tell(&self, order: Order) {
        if let Some(counters) = &self.sequencer.shared_counters {
            counters.told.tell(order);
            self.sequencer.wake();
        }
    }

    /// Does the next thing that the log has to do by itself, on this thread and without waiting:
    /// for a log that is [driven by turns](Driver::Turns).
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
        })
    }

    /// Appends and waits for the outcome. Commits on the calling thread when no other is
    /// committing.
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

    /// Judges and stages the append; `done` is called with the outcome, perhaps before this
    /// returns. Costs microseconds, or what its condition costs to judge (see
    /// [`stage_within`](Self::stage_within)); never waits for the device.
    pub fn submit(&self, append: Append, done: Completion) {
        if self.sequencer.submit(append, Basis::default(), done) != Staged::Answered {
            self.sequencer.wake();
        }
    }

    /// As [`submit`](Self::submit), but leaves the commit to the caller: unless
    /// [`commit`](Self::commit) is called soon, `done` may wait for the next append.
    pub fn stage(&self, append: Append, done: Completion) -> Staged {
        self.stage_on(Basis::default(), append, done)
    }

    /// As [`stage`](Self::stage), for an append that was decided on top of others that are staged:
    /// it is refused if these have come to nothing meanwhile.
    pub fn stage_on(&self, basis: Basis, append: Append, done: Completion) -> Staged {
        self.sequencer.submit(append, basis, done)
    }

    /// As [`stage`](Self::stage), but judges the append within `work`: on a few steps where it must
    /// not take long, then on a thread of its own with a deadline and a flag.
    ///
    /// # Errors
    /// The append, if the work ended before it was judged. Nothing was done, and `done` is kept.
    pub fn stage_within(
        &self,
        append: Append,
        work: &mut Work,
        done: Completion,
    ) -> Result<Staged, Box<Unjudged>> {
        self.sequencer.submit_within(append, Basis::default(), work, done)
    }

    /// Commits what is staged: on this thread, waiting for the device, or on the journal's.
    pub fn commit(&self, on: CommitOn) {
        match on {
            CommitOn::ThisThread => self.sequencer.commit_inline(),
            CommitOn::JournalThread => self.sequencer.wake(),
        }
    }

    /// What decides.
    pub(crate) fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    /// What an earlier, durable append with this key came to; `None` if there was none.
    ///
    /// # Errors
    /// [`AppendError::KeyReused`] if it had another digest, [`AppendError::Read`].
    pub fn find_request(&self, key: &RequestKey) -> Result<Option<Appended>, AppendError> {
        judge::find_request(&self.snapshot(), key)
    }

    /// The durable append with this key, whatever it appended; `None` if there is none.
    ///
    /// # Errors
    /// [`ReadError`]: damage, or the system's, where a retry may help.
    pub fn request_with_key(&self, key: &str) -> Result<Option<StoredRequest>, ReadError> {
        judge::stored_request(&self.snapshot(), key)
    }

    /// The last durable position; 0 if the log is empty.
    #[must_use]
    pub fn head(&self) -> Position {
        self.sequencer.feed.head()
    }

    /// The head, once it is confirmed that it is the end of the log: everything that anybody was
    /// told is durable before this is first polled lies at or before it. With the journal of files
    /// that is a look at the sequencer, which takes microseconds and is ready at once; a journal
    /// that others write too has to ask them.
    ///
    /// # Errors
    /// [`NotConfirmed`]. Reads of what there is go on.
    pub async fn confirm(&self) -> Result<Position, NotConfirmed> {
        self.sequencer.confirmed().await
    }

    /// The log as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.sequencer.snapshot()
    }

    /// Matching events after `after`, then those to come.
    #[must_use]
    pub fn subscribe(&self, query: Query, after: Position) -> Subscription {
        let segments = Arc::clone(&self.sequencer.segments);
        let interest = self.sequencer.interests.of(&query);
        let query = CompiledQuery::shared(&query);
        Subscription::new(self.sequencer.feed.clone(), segments, query, interest, after)
    }

    /// The head as something to wait for.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.sequencer.feed
    }

    /// The log's leases.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.sequencer.leases
    }

    /// Encoded bytes staged and not yet durable. Costs a lock that is held for microseconds.
    #[must_use]
    pub fn staged_bytes(&self) -> usize {
        self.sequencer.staged_bytes()
    }

    /// How often what was staged has come to nothing since the log was opened. As long as this is
    /// what [`Staged::Placed`] told, positions up to the head are whose they were. Costs nothing.
    #[must_use]
    pub fn setbacks(&self) -> u64 {
        self.sequencer.mark.setbacks()
    }

    /// Segments of the log; each holds two descriptors. Asks no device.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.sequencer.segments.count()
    }

    /// Figures about the log. Asks the file system how large it is.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        let sequencer = &self.sequencer;
        let counters = &sequencer.counters;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let disk = sequencer.disk_usage();
        let indexes = sequencer.segments.index_usage();
        LogStats {
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
            epoch: sequencer.epoch.load(Ordering::Relaxed),
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

    /// What became of appends with [`Ack::Accepted`](crate::Ack::Accepted). Asks no device.
    #[must_use]
    pub fn accepted_stats(&self) -> AcceptedStats {
        let counters = &self.sequencer.counters;
        // `accepted` last: it must not be the smallest.
        let (stored, dropped) = (counters.accepted_stored.get(), counters.accepted_dropped.get());
        AcceptedStats { accepted: counters.accepted.get(), stored, dropped }
    }

    /// Why the log takes no appends any more, if so.
    #[must_use]
    pub fn closed_reason(&self) -> Option<String> {
        self.sequencer.closed_reason()
    }

    /// The first damage that reads have met in each segment since the log was opened, by position.
    /// Damage of an index alone is none: the index is made anew. Asks no device.
    #[must_use]
    pub fn damage(&self) -> Vec<Corruption> {
        self.sequencer.segments.damage()
    }

    /// How often an index was found damaged, at the opening or since, and made anew. Asks no
    /// device.
    #[must_use]
    pub fn indexes_mended(&self) -> u64 {
        self.sequencer.segments.indexes_mended()
    }

    /// Panics of the threads that write and merge indexes, since the log was opened.
    #[must_use]
    pub fn background_panics(&self) -> u64 {
        self.sequencer.sealer.panics()
    }

    /// Whether the last batch found no room on the device. Appends find out whether there is room
    /// again, and so does the journal's thread every second; reads go on.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.sequencer.mark.is_full()
    }

    /// Takes no further appends, makes durable what is staged, and releases the folder. Reads go
    /// on.
    ///
    /// Of a shared log what was offered is waited for as long as the lead timeout, and then is
    /// [unknown](AppendError::Unknown): this returns also while the engine is away. A device that
    /// does not return is waited for.
    pub fn close(&self) {
        self.closer.close();
    }
}

/// Where to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOn {
    /// On the calling thread: quickest for a single client, but the thread waits for the device.
    ThisThread,
    /// On the journal's own thread: the caller goes on at once.
    JournalThread,
}
