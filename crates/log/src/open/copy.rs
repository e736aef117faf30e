//! Opening a copy of a shared log. Damage of any kind is truncated, and the rest is fetched again
//! from the place after the last remaining batch: the shared log is authoritative.

use super::{
    OpenedLog, RecoveredSegments, StartedJournal, in_folder, io_error, recover_segments, start,
};
use crate::error::{Corruption, OpenError};
use crate::journal::{CopyIdentity, Journal, Origin, SharedJournal, was_claimed};
use crate::options::{Options, Sync};
use crate::recover;
use crate::role::Role;
use crate::sequencer::NodeProcess;
use crate::shared::entry::{Entry, MAX_NAME_BYTES, MAX_URL_BYTES};
use crate::shared::rule::RuleState;
use crate::shared::{Fetched, Place, SharedOptions};
use crate::shared::{SharedLimits, SharedLog};
use crate::storage::Storage;
use std::io;
use std::sync::Arc;
use wellspring_format::segment::{
    SegmentSource, index_name, is_index_name, parse_segment_name, segment_name,
};
use wellspring_types::Position;

/// Large enough for a claim with the longest names.
const SMALLEST_ENTRY_BYTES: usize = 4 << 10;

/// Locks the folder, repairs the copy in it and starts following the shared log.
pub(crate) fn open_shared(
    storage: Arc<dyn Storage>,
    options: Options,
    shared: SharedOptions,
    mut engine: Box<dyn SharedLog>,
) -> Result<OpenedLog, OpenError> {
    check(&options, &shared, engine.limits())?;
    in_folder(&storage, options, |options| {
        refuse_files(&*storage)?;
        let mut identity = CopyIdentity::read(&*storage).unwrap_or_default();
        let recovered = recover_copy(&storage)?;
        let scanned = &recovered.last.scanned;
        let head = scanned.next - 1;
        let origin = match head {
            0 => Origin::default(),
            _ => Origin { place: scanned.place, epoch: scanned.epoch, head, chain: scanned.chain },
        };
        if head > 0 && identity.is_none() {
            identity = Some(founding(&mut *engine, &storage.name())?);
        }
        if let Some(identity) = &identity
            && identity.log != shared.log
        {
            let what = format!("it is a copy of the log {}, not of {}", identity.log, shared.log);
            return Err(OpenError::OtherJournal { dir: storage.name(), what });
        }
        recovered.last.cut_torn()?;
        let clock = Arc::clone(&options.clock);
        let folder = Arc::clone(&storage);
        let process = NodeProcess { node: shared.node.clone(), start: shared.start };
        start(&storage, options, recovered, |writer| {
            let journal =
                SharedJournal::new(engine, writer, folder, clock, shared, identity, origin);
            StartedJournal {
                role: Role::CatchingUp { place: journal.place(), end: None },
                epoch: origin.epoch,
                shared: Some((journal.confirmations(), journal.counters())),
                history: journal.history(),
                journal: Box::new(journal),
                process: Some(process),
            }
        })
    })
}

fn check(options: &Options, shared: &SharedOptions, limits: SharedLimits) -> Result<(), OpenError> {
    let invalid = |what: &str| {
        let error = io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        Err(OpenError::Io { doing: "opening a shared log".into(), error })
    };
    if limits.entry_bytes < SMALLEST_ENTRY_BYTES || limits.window == 0 {
        return invalid(
            "the engine must accept entries of at least 4 KiB, and at least one at a time",
        );
    }
    let is_name = |name: &str| (1..=MAX_NAME_BYTES).contains(&name.len());
    if options.sync != Sync::Always {
        return invalid(
            "delayed barriers are not supported: the engine decides when a batch is durable",
        );
    }
    if !is_name(&shared.log) || shared.log.contains(char::is_control) {
        return invalid("the log's name must have 1 to 255 bytes without control characters");
    }
    if !is_name(&shared.node) || shared.node.contains(char::is_whitespace) {
        return invalid("the node's name must have 1 to 255 bytes without spaces");
    }
    if shared.url.len() > MAX_URL_BYTES || shared.url.contains(char::is_whitespace) {
        return invalid("the node's URL must have at most 2048 bytes without spaces");
    }
    Ok(())
}

/// Refuses the folder of a log of files before anything in it is truncated: there is no other copy.
fn refuse_files(storage: &dyn Storage) -> Result<(), OpenError> {
    let mut names = storage.list().map_err(io_error(format!("listing {}", storage.name())))?;
    names.retain(|name| parse_segment_name(name).is_some());
    let mut headers = names.iter().filter_map(|name| {
        let file = storage.open(name).ok()?;
        recover::read_header(&*file, name).ok()
    });
    // All segments are of one kind; damaged ones do not show it.
    let of_files = headers.next().is_some_and(|header| header.source.is_none());
    if of_files || was_claimed(storage).map_err(io_error("opening epoch"))? {
        let what = "it holds a log of files, not a copy of a shared log";
        return Err(OpenError::OtherJournal { dir: storage.name(), what: what.into() });
    }
    Ok(())
}

/// Identifies the log of a copy whose identity file is lost, from the first entry of the shared
/// log.
fn founding(engine: &mut dyn SharedLog, dir: &str) -> Result<CopyIdentity, OpenError> {
    let failed = |what: String| OpenError::Io {
        doing: format!("determining which shared log {dir} is a copy of"),
        error: io::Error::other(what),
    };
    let gap = engine.gap_after(Place(0)).map_err(|error| failed(error.to_string()))?;
    if let Some(state) = gap.and_then(|gap| gap.state)
        && let Some(RuleState { cluster, log, .. }) = RuleState::decode(&state)
    {
        return Ok(CopyIdentity { cluster, log, leader: None });
    }
    let first = engine.fetch(Place(0), 1).map_err(|error| failed(error.to_string()))?;
    let entries = match &first {
        Fetched::Entries(entries) => &entries[..],
        Fetched::Accepted(_) => &[],
    };
    match entries.first().map(|(_, entry)| Entry::decode(entry)) {
        Some(Ok(Entry::Founded { cluster, log })) => {
            Ok(CopyIdentity { cluster, log: log.to_owned(), leader: None })
        }
        _ => Err(failed(
            "the file journal is missing or damaged, and the shared log does not keep its beginning; \
             remove the folder to fetch everything again"
                .into(),
        )),
    }
}

/// Recovers a copy, truncating damage until the rest is valid.
fn recover_copy(storage: &Arc<dyn Storage>) -> Result<RecoveredSegments, OpenError> {
    loop {
        match recover_segments(storage, Some(SegmentSource::default())) {
            Ok(recovered) => {
                let scanned = &recovered.last.scanned;
                let base = scanned.header.base;
                if scanned.batches > 0 || base == 1 {
                    return Ok(recovered);
                }
                // An empty segment does not know the place of the batch before it.
                drop(recovered);
                remove_from(&**storage, base)?;
            }
            Err(OpenError::Corrupt(corruption)) => cut(&**storage, &corruption)?,
            // What is gone is fetched again.
            Err(OpenError::EndLost(lost)) => {
                remove_indexes_from(&**storage, lost.last_base)?;
            }
            Err(other) => return Err(other),
        }
    }
}

/// Truncates a copy where it is damaged.
///
/// # Errors
/// The damage itself if there is nothing to truncate, or an error of the file system.
fn cut(storage: &dyn Storage, corruption: &Corruption) -> Result<(), OpenError> {
    let Some(base) = parse_segment_name(&corruption.file) else {
        return Err(OpenError::Corrupt(corruption.clone()));
    };
    let name = segment_name(base);
    let good = storage.open(&name).ok().and_then(|file| {
        let good = recover::scan_good(&*file, &name).ok()?;
        (good.batches > 0 && good.header.base == base).then_some((file, good.end))
    });
    match good {
        Some((file, end)) => {
            let before = file.len().map_err(io_error(format!("reading {name}")))?;
            let removed = remove_from(storage, base + 1)? + remove_indexes_from(storage, base)?;
            if before == end && removed == 0 {
                return Err(OpenError::Corrupt(corruption.clone()));
            }
            file.set_len(end).map_err(io_error(format!("truncating {name}")))
        }
        None if remove_from(storage, base)? == 0 => Err(OpenError::Corrupt(corruption.clone())),
        None => Ok(()),
    }
}

/// Removes all segments from this base on, and the indexes that may cover them. Returns the number
/// of files.
fn remove_from(storage: &dyn Storage, base: Position) -> Result<usize, OpenError> {
    let names = storage.list().map_err(io_error("listing the folder"))?;
    let is_later = |name: &&String| parse_segment_name(name).is_some_and(|of| of >= base);
    let mut removed = 0;
    for name in names.iter().filter(is_later) {
        storage.remove(name).map_err(io_error(format!("removing {name}")))?;
        removed += 1;
    }
    if removed > 0 {
        // The previous segment becomes the last one, which has no index.
        let last = names.iter().filter_map(|name| parse_segment_name(name));
        let last = last.filter(|&of| of < base).max().unwrap_or(1);
        removed += remove_indexes_from(storage, last)?;
    }
    Ok(removed)
}

fn remove_indexes_from(storage: &dyn Storage, base: Position) -> Result<usize, OpenError> {
    let first = index_name(base);
    let names = storage.list().map_err(io_error("listing the folder"))?;
    let mut removed = 0;
    for name in names.iter().filter(|name| is_index_name(name) && **name >= first) {
        storage.remove(name).map_err(io_error(format!("removing {name}")))?;
        removed += 1;
    }
    storage.sync_dir().map_err(io_error("making removals durable"))?;
    Ok(removed)
}
