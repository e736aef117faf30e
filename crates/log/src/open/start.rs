//! Starts a recovered log: its segments, its journal, and the journal's thread.

use super::{OpenedLog, RecoveredSegments, io_error};
use crate::error::OpenError;
use crate::feed::Feed;
use crate::head_gate::DurableEnd;
use crate::journal::{Confirmations, Journal, Resume, SegmentWriter, SharedCounters};
use crate::lease::Leases;
use crate::options::{Driver, Options};
use crate::role::Role;
use crate::segments::{Run, Segments};
use crate::sequencer::{
    Committer, Counters, JournalWaker, Merger, NodeProcess, Replays, Sealer, SegmentTail,
    Sequencer, StagedMark, Staging,
};
use crate::storage::Storage;
use crate::subscription::Interests;
use crate::{recover, threads};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use wellspring_types::HistoryId;

/// The journal of a starting log, and the log's role.
pub(super) struct StartedJournal {
    pub(super) journal: Box<dyn Journal>,
    pub(super) role: Role,
    pub(super) epoch: u64,
    pub(super) shared: Option<(Arc<Confirmations>, Arc<SharedCounters>)>,
    /// The node process of a shared log.
    pub(super) process: Option<NodeProcess>,
    /// The log's history, now or later.
    pub(super) history: Arc<OnceLock<HistoryId>>,
}

pub(super) fn start(
    storage: &Arc<dyn Storage>,
    options: Options,
    recovered: RecoveredSegments,
    journal: impl FnOnce(SegmentWriter) -> StartedJournal,
) -> Result<OpenedLog, OpenError> {
    let RecoveredSegments { mut list, unsealed, last, floor, .. } = recovered;
    let scanned = last.scanned;
    let base = scanned.header.base;
    let file = Some(Arc::clone(&last.file));
    list.push(Arc::new(Run::new(Arc::clone(storage), base, file, last.index)));
    if let Some(floor) = floor {
        list[0].segments()[0].begins_the_log(floor.removed_until_us);
    }
    let segments = Arc::new(Segments::new(list));
    let resume = Resume { header: scanned.header, end: scanned.end, last_crc: scanned.last_crc };
    let writer = SegmentWriter::resume(
        Arc::clone(storage),
        Arc::clone(&segments),
        &options,
        resume,
        last.file,
    )
    .map_err(io_error("reading the last segment"))?;
    let recorded_at_us = last_recorded_at_us(&scanned, &segments)?;
    let barriers_us = writer.barriers_us();
    let StartedJournal { journal, role, epoch, shared, process, history } = journal(writer);
    let is_copy = shared.is_some();
    let mark = StagedMark::new(scanned.next, role.leads());
    let limits = journal.limits();
    let places = Feed::at(journal.place().0);
    let staging = Staging {
        next: scanned.next,
        recorded_at_us,
        queue: VecDeque::new(),
        in_flight: VecDeque::new(),
        staged_bytes: 0,
        ingest_bytes: 0,
        tail: SegmentTail { base, writer: last.writer, end: scanned.end },
        earlier: Vec::new(),
        role,
        closed: None,
        spare: Vec::new(),
    };
    let committer = Committer {
        journal,
        segment_base: base,
        segment_end: scanned.end,
        last_sync_us: 0,
        seal_again_us: 0,
        refused_bytes: 0,
        room_again_us: 0,
        look_for_damage_us: 0,
        thread_due_us: u64::MAX,
    };
    let feed = Feed::at(scanned.next - 1);
    let counters = Arc::new(Counters::new(barriers_us, recorded_at_us));
    let replays = Replays::new(
        Arc::clone(&segments),
        feed.clone(),
        Arc::clone(&counters),
        options.staged_bytes,
        options.driver,
    );
    let merger = Merger::new(Arc::clone(storage), Arc::clone(&segments), options.driver);
    let sealer = Sealer::with_failed(unsealed, merger, options.driver, is_copy);
    let leases = Arc::new(Leases::new(Arc::clone(&options.clock), epoch));
    if is_copy {
        let nobody = leases.suspend();
        debug_assert!(nobody.is_empty());
    }
    let (confirmations, shared_counters) = shared.unzip();
    let sequencer = Arc::new(Sequencer {
        interests: Interests::new(feed.clone(), Arc::clone(&segments)),
        leases,
        storage: Arc::clone(storage),
        segments,
        feed,
        durable_end: DurableEnd::at(base, scanned.end),
        history,
        epoch: AtomicU64::new(epoch),
        limits,
        role_changes: Feed::at(0),
        places,
        owed_wakes: Mutex::default(),
        confirmations,
        shared_counters,
        process,
        mend_failures: AtomicU64::new(0),
        counters,
        staging: Mutex::new(staging),
        mark,
        replays: Arc::new(replays),
        sealer: Arc::new(sealer),
        committer: Mutex::new(committer),
        journal_thread: OnceLock::new(),
        journal_waker: JournalWaker::new(),
        closing: AtomicBool::new(false),
        options,
    });
    let thread = match sequencer.options.driver {
        Driver::Threads => Some(start_journal(&sequencer)?),
        Driver::Turns { .. } => None,
    };
    sequencer.sealer.merge();
    Ok((sequencer, thread))
}

/// Starts the thread that commits when no caller does.
fn start_journal(sequencer: &Arc<Sequencer>) -> Result<JoinHandle<()>, OpenError> {
    if sequencer.limits.lends_threads {
        sequencer.journal_waker.commits_on_wake(Arc::downgrade(sequencer));
    }
    let running = Arc::clone(sequencer);
    let thread = threads::spawn("wellspring-journal", move || running.run())
        .map_err(io_error("starting the journal's thread"))?;
    sequencer.journal_waker.unparks(thread.thread().clone());
    let _ = sequencer.journal_thread.set(thread.thread().clone());
    sequencer.sealer.set_journal_thread(thread.thread().clone());
    Ok(thread)
}

/// The recording time of the last event. If the last segment is empty, the previous one has it.
fn last_recorded_at_us(
    scanned: &recover::ScannedSegment,
    segments: &Arc<Segments>,
) -> Result<u64, OpenError> {
    if scanned.batches > 0 || scanned.next <= 1 {
        return Ok(scanned.recorded_at_us);
    }
    let feed = Feed::at(scanned.next - 1);
    let last = crate::read::Snapshot::new(&feed, segments)
        .at(scanned.next - 1, |record| record.recorded_at_us());
    let last = last
        .map_err(|error| io_error("reading the last event")(io::Error::other(error.to_string())))?;
    Ok(last.unwrap_or(0))
}
