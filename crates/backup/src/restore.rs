//! Restores a backup to a data folder, completely or up to a position or a moment.
//!
//! Everything is verified while it is written. The logs are written into a temporary folder, which
//! is then renamed, so the restored folder is complete or absent.

use crate::cut::{self, BatchShare, Cut};
use crate::data_folders::folder_of_logs;
use crate::fault::{BackupError, BackupResult};
use crate::known_ends::{KnownEnds, LogEnd};
use crate::manifest::{LogBackup, Manifest, SegmentBackup};
use crate::store::Store;
use crate::take::Progress;
use crate::verify::{check_end, check_history};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use wellspring_format::history_of_salt;
use wellspring_format::segment::{draw_salt, segment_name};
use wellspring_format::segment_copy::SegmentCopy;
use wellspring_format::segment_reader::SegmentReader;
use wellspring_log::Floor;
use wellspring_log::storage::{DiskStorage, Storage as _, create_folder};
use wellspring_types::{HistoryId, Position};

const BUFFER_BYTES: usize = 1 << 20;
/// The folder, in a data folder, into which logs are written before the rename. A server does not
/// start while it exists.
pub const UNFINISHED: &str = "logs.restoring";

/// The history of a restored log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryChoice {
    /// A new one: consumers may have seen events that the restored log lacks.
    New,
    /// The backup's. Valid only if nothing was appended after the backup, for example when a
    /// stopped server moves to another machine. Refused if the store has later events.
    Kept,
}

/// What to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreRequest {
    /// Only these logs; if empty, all.
    pub logs: Vec<String>,
    /// The part of each log to restore.
    pub cut: Cut,
    /// Logs that [`Cut::At`] must leave an event, if they are restored and the backup has one.
    pub never_empty: Vec<String>,
    /// Their history.
    pub history: HistoryChoice,
}

/// A restored log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredLog {
    /// Its name.
    pub name: String,
    /// Its last position.
    pub head: Position,
    /// Number of the backup's events that were left out.
    pub left_out: u64,
    /// The id of the history in the backup.
    pub history_before: String,
    /// The id of its new history.
    pub history: String,
}

/// Restores a backup into the data folder `data`. `prepare` is called before the final rename; a
/// server that starts before then refuses the folder. To restore all logs, the folder must have
/// none; named logs may be added to those of a stopped server.
///
/// # Errors
/// [`BackupError`]. The folder then has none of the restored logs.
pub fn restore(
    store: &mut dyn Store,
    manifest: &Manifest,
    data: &Path,
    wanted: &RestoreRequest,
    prepare: &dyn Fn() -> Result<(), String>,
    progress: Progress<'_>,
) -> BackupResult<Vec<RestoredLog>> {
    let chosen: Vec<&LogBackup> = match wanted.logs.as_slice() {
        [] => manifest.logs.iter().collect(),
        names => names.iter().map(|name| manifest.log(name)).collect::<BackupResult<_>>()?,
    };
    cut::check(wanted.cut, store, manifest, &chosen, &wanted.never_empty)?;
    if wanted.history == HistoryChoice::Kept {
        refuse_later_events(store, manifest, &chosen)?;
    }
    let logs = data.join("logs");
    let failed = |doing: &str| BackupError::io(format!("{doing} {}", data.display()));
    create_folder(data).map_err(failed("creating"))?;
    let _lock = lock(data)?;
    check_vacant(data, &wanted.logs)?;
    let unfinished = data.join(UNFINISHED);
    clear(&unfinished).map_err(failed("clearing"))?;
    create_folder(&unfinished).map_err(failed("writing to"))?;
    let mut restoring = Restoring {
        store,
        wanted,
        done_bytes: 0,
        all_bytes: chosen.iter().flat_map(|log| &log.segments).map(|s| s.bytes).sum(),
        progress,
    };
    let written: BackupResult<Vec<_>> =
        chosen.iter().map(|log| restoring.log(log, &unfinished.join(&log.name))).collect();
    let restored = match written {
        Ok(restored) => restored,
        Err(error) => {
            let _ = clear(&unfinished);
            return Err(error);
        }
    };
    let prepared = sync_folder(&unfinished).and_then(|()| prepare().map_err(BackupError::Unfit));
    let placed = prepared
        .and_then(|()| place(&unfinished, &logs, &wanted.logs).map_err(failed("writing to")))
        .and_then(|()| sync_folder(data));
    if let Err(error) = placed {
        let _ = clear(&unfinished);
        return Err(error);
    }
    Ok(restored)
}

/// Refuses to keep the history of a log if the store has later events of it: their positions would
/// be assigned to other events.
fn refuse_later_events(
    store: &mut dyn Store,
    manifest: &Manifest,
    chosen: &[&LogBackup],
) -> BackupResult<()> {
    let known = KnownEnds::of(store)?;
    for log in chosen {
        let Some(lost) = known.lost_end(&log.history, LogEnd::in_backup(log)) else { continue };
        let up_to = match lost.known_end {
            Some(end) => format!("at least up to position {end}"),
            None => "with later events".to_owned(),
        };
        return Err(BackupError::Unfit(format!(
            "the backup {} has the log {} up to position {}, and {} in {} has it {up_to}, in the \
             same history: --keep-history would give the positions after {} to other events. \
             Restore the backup that has them, or leave out --keep-history",
            manifest.name,
            log.name,
            log.head,
            lost.known_from,
            store.place(),
            log.head,
        )));
    }
    Ok(())
}

/// Renames the restored logs to their final paths: all at once, or those with these names beside
/// others. If one rename fails, the earlier ones are undone.
fn place(unfinished: &Path, logs: &Path, names: &[String]) -> io::Result<()> {
    if names.is_empty() || !logs.is_dir() {
        return fs::rename(unfinished, logs);
    }
    for (at, name) in names.iter().enumerate() {
        if let Err(error) = fs::rename(unfinished.join(name), logs.join(name)) {
            for moved in &names[..at] {
                let _ = fs::rename(logs.join(moved), unfinished.join(moved));
            }
            return Err(error);
        }
    }
    File::open(logs)?.sync_all()?;
    fs::remove_dir(unfinished)
}

/// Prevents other restores into the folder while the result lives.
fn lock(data: &Path) -> BackupResult<File> {
    let folder =
        File::open(data).map_err(BackupError::io(format!("opening {}", data.display())))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => {
            Err(BackupError::InUse(format!("another restore into {} is running", data.display())))
        }
        Err(TryLockError::Error(error)) => {
            Err(BackupError::Io { doing: format!("locking {}", data.display()), error })
        }
    }
}

/// Removes the remains of an unfinished restore.
fn clear(unfinished: &Path) -> io::Result<()> {
    match fs::remove_dir_all(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Checks that a folder can be a data folder, and that the restore would replace nothing in it.
fn check_vacant(data: &Path, named: &[String]) -> BackupResult<()> {
    let logs = data.join("logs");
    let shown = data.display();
    if folder_of_logs(data).is_some() {
        let what = format!("{shown} leads into a data folder's logs; name the data folder");
        return Err(BackupError::Unfit(what));
    }
    check_reachable(data, &logs, named)?;
    if data.join("backups").is_dir() && data.join("segments").is_dir() {
        return Err(BackupError::Unfit(format!("{shown} holds backups; name a data folder")));
    }
    refuse_running(&logs)?;
    if !named.is_empty() {
        // A dangling symlink also counts.
        let taken = named.iter().find(|name| fs::symlink_metadata(logs.join(name)).is_ok());
        return taken.map_or(Ok(()), |name| {
            Err(BackupError::Unfit(format!(
                "{} exists: move it away first",
                logs.join(name).display()
            )))
        });
    }
    match fs::read_dir(&logs).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(BackupError::Unfit(format!(
            "{} is not empty: a backup is restored into a data folder without logs; name another \
             one, or move that one away (or restore a single log with --log)",
            logs.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(BackupError::Io { doing: format!("reading {}", logs.display()), error }),
    }
}

/// Checks, before anything is copied, that the final rename can succeed: `logs` must not be on
/// another device nor, if all logs are restored, a symlink.
fn check_reachable(data: &Path, logs: &Path, named: &[String]) -> BackupResult<()> {
    let Ok(itself) = fs::symlink_metadata(logs) else { return Ok(()) };
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    let is_here = matches!((device(logs), device(data)), (Ok(one), Ok(other)) if one == other);
    if is_here && (itself.is_dir() || !named.is_empty()) {
        return Ok(());
    }
    let leads = if itself.is_symlink() { "is a link" } else { "is on another device" };
    let shown = logs.display();
    Err(BackupError::Unfit(format!(
        "{shown} {leads}, and restored logs get their place by a rename: restore into a folder on \
         the device they are to be on, and move its logs to where {shown} leads"
    )))
}

/// Refuses a data folder that a server has open.
fn refuse_running(logs: &Path) -> BackupResult<()> {
    let Ok(entries) = fs::read_dir(logs) else { return Ok(()) };
    for entry in entries.flatten() {
        let Ok(storage) = DiskStorage::existing(&entry.path()) else { continue };
        if storage.lock().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            let what = format!("a server has {} open: stop it first", logs.display());
            return Err(BackupError::InUse(what));
        }
    }
    Ok(())
}

fn sync_folder(dir: &Path) -> BackupResult<()> {
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(BackupError::io(format!("writing {}", dir.display())))
}

struct Restoring<'a> {
    store: &'a mut dyn Store,
    wanted: &'a RestoreRequest,
    done_bytes: u64,
    all_bytes: u64,
    progress: Progress<'a>,
}

/// Whether segments follow.
enum Next {
    Segment,
    End,
}

impl Restoring<'_> {
    fn log(&mut self, log: &LogBackup, dir: &Path) -> BackupResult<RestoredLog> {
        create_folder(dir).map_err(BackupError::io(format!("creating {}", dir.display())))?;
        let mut restored = RestoredLog {
            name: log.name.clone(),
            head: log.first() - 1,
            left_out: 0,
            history_before: log.history.clone(),
            history: log.history.clone(),
        };
        for segment in &log.segments {
            let next = self.segment(log, segment, dir, &mut restored)?;
            self.done_bytes += segment.bytes;
            (self.progress)(self.done_bytes, self.all_bytes);
            if let Next::End = next {
                break;
            }
        }
        if let Some(removed_until_us) = log.removed_until_us {
            restored.history = self.floor(log, dir, removed_until_us)?.to_string();
        }
        restored.left_out = log.head - restored.head;
        sync_folder(dir)?;
        Ok(restored)
    }

    /// Writes where a log begins, and so its history.
    fn floor(&self, log: &LogBackup, dir: &Path, removed_until_us: u64) -> BackupResult<HistoryId> {
        let kept = log.history.parse::<HistoryId>().map_err(|error| BackupError::Damaged {
            file: log.name.clone(),
            what: error.to_string(),
        })?;
        let history = match self.wanted.history {
            HistoryChoice::New => history_of_salt(draw_salt()),
            HistoryChoice::Kept => kept,
        };
        let writing = || BackupError::io(format!("writing to {}", dir.display()));
        let storage = DiskStorage::existing(dir).map_err(writing())?;
        let floor = Floor { history, first: log.first(), removed_until_us };
        floor.write(&storage).map_err(writing())?;
        Ok(history)
    }

    fn segment(
        &mut self,
        log: &LogBackup,
        segment: &SegmentBackup,
        dir: &Path,
        restored: &mut RestoredLog,
    ) -> BackupResult<Next> {
        let file = segment.file(&log.history);
        let of_segment = |fault| BackupError::of_segment(&file, fault);
        let damaged = |what: String| BackupError::Damaged { file: file.clone(), what };
        let path = dir.join(segment_name(segment.base));
        let writing = || BackupError::io(format!("writing {}", path.display()));
        let mut reader =
            SegmentReader::begin(self.store.read(&file)?, &file, segment.base, segment.bytes)
                .map_err(of_segment)?;
        if reader.header().source.is_some() {
            return Err(BackupError::Unfit(format!("{file} is that of a copy of a shared log")));
        }
        if segment.base == 1 {
            check_history(log, reader.header().salt).map_err(damaged)?;
        }
        // The history is derived from the salt of the first segment.
        let is_first = segment.base == 1 && self.wanted.history == HistoryChoice::New;
        let salt = is_first.then(draw_salt);
        if let Some(salt) = salt {
            restored.history = history_of_salt(salt).to_string();
        }
        let mut options = File::options();
        options.create_new(true).write(true).mode(0o600);
        let out = options.open(&path).map_err(writing())?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let mut copy = SegmentCopy::begin(out, reader.header(), salt).map_err(writing())?;
        let mut next = Next::Segment;
        while let Some(batch) = reader.next_batch().map_err(of_segment)? {
            match self.wanted.cut.of(&batch)? {
                BatchShare::All => {
                    copy.add(&batch).map_err(writing())?;
                    restored.head = batch.header.last();
                }
                BatchShare::First(events) => {
                    copy.add_part(&batch, events).map_err(writing())?;
                    restored.head = batch.header.first + u64::from(events) - 1;
                    next = Next::End;
                }
                BatchShare::Nothing => next = Next::End,
            }
            if let Next::End = next {
                break;
            }
        }
        if let Next::Segment = next {
            check_end(&reader, segment).map_err(damaged)?;
        }
        let (out, _) = copy.finish();
        finish(out).map_err(writing())?;
        Ok(next)
    }
}

fn finish(mut out: BufWriter<File>) -> io::Result<()> {
    out.flush()?;
    out.get_ref().sync_all()
}
