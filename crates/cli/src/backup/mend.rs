//! `wellspring mend`: replaces damaged segments from a backup.

use super::callers_store::open_store;
use super::ends::{lost_since, renew};
use super::place::chosen;
use crate::exit::{Code, Failure, say};
use crate::folder_owner::keeping_owner;
use crate::inspect::{Place, checked, findings, has_segments, lines};
use crate::numbers::{grouped, megabytes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use wellspring_backup::catalog::candidates;
use wellspring_backup::mend::{
    FLOOR_FILE, FirstSalt, LaterEvents, MendPlan, SegmentNeed, ShortenedLog, is_marked,
    lacks_floor, later_events, mend, mend_floor, segment_needs, shorten,
};
use wellspring_backup::new_history::RenewedLog;
use wellspring_backup::{BackupError, KnownEnds, LogBackup, Manifest, Store};
use wellspring_format::segment::parse_segment_name;
use wellspring_log::inspect::{self, Report};
use wellspring_log::storage::{DiskStorage, Storage};
use wellspring_types::Position;

/// What `wellspring mend` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Replaces the damaged segments of a log with those of a backup, and keeps what was recorded after the \
backup. The result is verified before it takes the place of the damaged file, which is kept beside it \
as .seg.damaged. Segments that are missing are put back. The server must be stopped. An interrupted \
run can be repeated.

Of the backups of the log's history, the one that reaches furthest is taken. If what is intact of the \
log differs from it, nothing is changed.

If the last segment was missing, cut short or damaged up to its end, what was recorded after the backup \
is lost. The log then gets another history, so that consumers who saw more are told (409 \
another-history). So it does if nothing tells which history it had.

Damage in what was recorded after the newest backup cannot be mended. --cut ends the log before the \
damage, with another history, and keeps the files that it loses under other names: mend what a backup \
can first.

Examples:
  wellspring mend --from /backup/wellspring --data /var/lib/wellspring --log main
  wellspring mend --cut --data /var/lib/wellspring --log main")]
pub struct MendArgs {
    /// Where the backup is: a folder, a .tar file, or s3://BUCKET/PREFIX (feature s3)
    #[arg(long, value_name = "PLACE", required_unless_present = "cut")]
    from: Option<String>,
    /// Name of the backup, as `backup list` shows it [default: the one that reaches furthest]
    #[arg(long, value_name = "NAME")]
    backup: Option<String>,
    /// End the log before its first damage: what comes after it is lost
    #[arg(long, conflicts_with_all = ["from", "backup"])]
    cut: bool,
    #[command(flatten)]
    place: Place,
}

/// Mends a log.
pub(crate) fn run_mend(args: &MendArgs) -> Result<(), Failure> {
    keeping_owner(args.place.data(), || mend_locked(args))
}

fn mend_locked(args: &MendArgs) -> Result<(), Failure> {
    let dir = args.place.dir()?;
    let failed = |error| Failure::output(&dir.display().to_string(), &error);
    let storage = DiskStorage::existing(&dir).map_err(failed)?;
    storage.lock().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new(
            Code::Refused,
            format!("{} is in use by a running server; stop it first", dir.display()),
        ),
        _ => failed(error),
    })?;
    let report = if has_segments(&dir) { checked(&dir)? } else { Report::default() };
    if report.is_copy {
        let what = "it is a copy of a shared log: the server mends it";
        return Err(Failure::usage(format!("{}: {what}", dir.display())));
    }
    let head = grouped(report.head);
    let outcome = match &args.from {
        // The state after an interrupted run: only the history must be changed.
        _ if report.damage.is_empty() && is_marked(&dir, report.head) => MendResult::Ended,
        Some(from) => mend_from(args, from, &dir, report)?,
        None => cut(&args.place, &dir, &report)?,
    };
    // Another history is given by opening the log.
    storage.unlock();
    match outcome {
        MendResult::Sound => {
            let what = "nothing to mend: every event is present and unchanged";
            say(&format!("log {}: {what}", args.place.log()))
        }
        MendResult::NotCompared { reason } => say(&format!(
            "log {}: nothing to mend: everything in it is intact up to position {head}. It could \
             not be compared: {reason}",
            args.place.log()
        )),
        MendResult::Mended => conclude(&args.place, &dir),
        MendResult::Ended => conclude_renewed(&args.place, &dir),
    }
}

/// What mending has changed.
enum MendResult {
    /// Nothing: no damage was found.
    Sound,
    /// The same, but no backup is of this log's history: it has another one since it was mended.
    NotCompared { reason: BackupError },
    /// It has what the backup has, and what came later.
    Mended,
    /// It may have had later events, so it has to get another history.
    Ended,
}

fn cut(place: &Place, dir: &Path, report: &Report) -> Result<MendResult, Failure> {
    let Some(ShortenedLog { kept_as, .. }) = shorten(dir)? else {
        return match (&report.lost_end, report.damage.first()) {
            (None, None) => Ok(MendResult::Sound),
            (Some(lost), None) => {
                let what = format!("log {} {lost}; {}", place.log(), go_on(place));
                Err(Failure::new(Code::Refused, what))
            }
            (_, Some(damage)) => Err(Failure::new(
                Code::Refused,
                format!("{damage}: there is nothing to cut before; restore a backup"),
            )),
        };
    };
    for kept_as in kept_as {
        say(&format!("cut off: kept as {}", kept_as.display()))?;
    }
    Ok(MendResult::Ended)
}

fn mend_from(
    args: &MendArgs,
    from: &str,
    dir: &Path,
    mut report: Report,
) -> Result<MendResult, Failure> {
    let name = args.place.log();
    let mut store = open_store(from)?;
    if lacks_floor(dir)?
        && let Some(manifest) = with_floor(args, &mut *store)?
    {
        mend_floor(manifest.log(name)?, dir)?;
        say(&format!("mended {}: from the backup {}", FLOOR_FILE, manifest.name))?;
        report = checked(dir)?;
        if report.is_sound() {
            return Ok(MendResult::Mended);
        }
    }
    let history = inspect::history(dir)?.map(|history| history.to_string());
    let backups = match &args.backup {
        Some(named) => vec![chosen(&mut *store, Some(named))?],
        None => match candidates(&mut *store, name, history.as_deref()) {
            Err(reason @ BackupError::Unfit(_)) if history.is_some() && report.is_sound() => {
                return Ok(MendResult::NotCompared { reason });
            }
            found => found?,
        },
    };
    let (manifest, needs) = fitting(&mut *store, name, dir, backups)?;
    let log = manifest.log(name)?;
    if report.is_sound() && has_segments(dir) {
        let known = KnownEnds::of(&mut *store)?;
        report.lost_end = lost_since(&known, name, dir, &report)?;
    }
    if let (true, Some(lost)) = (needs.is_empty() && report.damage.is_empty(), &report.lost_end) {
        let backup = &manifest.name;
        let what = format!("log {name} {lost}, and the backup {backup} does not have them");
        return Err(Failure::new(Code::Refused, format!("{what}; {}", go_on(&args.place))));
    }
    if needs.is_empty() && report.is_sound() {
        return Ok(MendResult::Sound);
    }
    let later = later_events(&mut *store, log, dir, &needs, report.lost_end.as_ref())?;
    let first_salt = match (history, later) {
        // It keeps the backup's history for now: the mark stays until it gets another.
        (Some(_), _) | (None, LaterEvents::Unknown) => FirstSalt::OfBackup,
        (None, LaterEvents::Kept) => FirstSalt::New,
    };
    let plan = MendPlan { first_salt, later };
    let mending = Mending { name: &manifest.name, log, dir, plan };
    let is_salted = first_salt == FirstSalt::New && needs.contains_key(&1);
    mending.mend_all(&mut *store, needs)?;
    if is_salted {
        say(&format!(
            "log {name}: nothing told its history, so it has another one: consumers that come with \
             one of before get 409 another-history"
        ))?;
    }
    Ok(match later {
        LaterEvents::Kept => MendResult::Mended,
        LaterEvents::Unknown => {
            say(&format!(
                "log {name}: what was recorded after the backup {} is lost",
                manifest.name
            ))?;
            MendResult::Ended
        }
    })
}

/// The newest backup that has the log without its beginning, or the one that is named.
fn with_floor(args: &MendArgs, store: &mut dyn Store) -> Result<Option<Manifest>, Failure> {
    let name = args.place.log();
    let backups = match &args.backup {
        Some(named) => vec![chosen(store, Some(named))?],
        None => candidates(store, name, None)?,
    };
    let has_floor =
        |manifest: &Manifest| manifest.log(name).is_ok_and(|log| log.removed_until_us.is_some());
    Ok(backups.into_iter().find(has_floor))
}

/// The first of these backups whose events are those of the log, as far as the log is intact, and
/// what the log lacks of it.
fn fitting(
    store: &mut dyn Store,
    name: &str,
    dir: &Path,
    backups: Vec<Manifest>,
) -> Result<(Manifest, BTreeMap<Position, SegmentNeed>), Failure> {
    let mut refused = None;
    for manifest in backups {
        match segment_needs(store, manifest.log(name)?, dir) {
            Ok(needs) => return Ok((manifest, needs)),
            Err(error @ BackupError::Unfit(_)) => refused = refused.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused.map_or_else(|| Failure::usage("no backup"), Failure::from))
}

/// Mending a log from a backup.
struct Mending<'a> {
    /// The backup's name.
    name: &'a str,
    log: &'a LogBackup,
    dir: &'a Path,
    plan: MendPlan,
}

impl Mending<'_> {
    /// Mends what the log lacks, then what that has uncovered.
    fn mend_all(
        &self,
        store: &mut dyn Store,
        needs: BTreeMap<Position, SegmentNeed>,
    ) -> Result<(), Failure> {
        let mut bases: Vec<Position> = needs.into_keys().collect();
        let mut mended = BTreeSet::new();
        loop {
            for &base in &bases {
                self.mend(store, base)?;
                mended.insert(base);
            }
            let damage = checked(self.dir)?.damage;
            let damaged = damage.iter().filter_map(|damage| parse_segment_name(&damage.file));
            let left: BTreeSet<_> = damaged.filter(|base| !mended.contains(base)).collect();
            if left.is_empty() {
                return Ok(());
            }
            bases = left.into_iter().collect();
        }
    }

    fn mend(&self, store: &mut dyn Store, base: Position) -> Result<(), Failure> {
        let mended = mend(store, self.log, self.dir, base, self.plan)?;
        let kept =
            |kept_as: PathBuf| format!("; the damaged file is kept as {}", kept_as.display());
        say(&format!(
            "mended {}: {} from the backup {}, {} recorded later{}",
            mended.file.display(),
            megabytes(mended.from_backup_bytes),
            self.name,
            megabytes(mended.own_bytes),
            mended.kept_as.map_or_else(String::new, kept)
        ))
    }
}

/// Says what the mended log is like.
fn conclude(place: &Place, dir: &Path) -> Result<(), Failure> {
    let report = checked(dir)?;
    for line in lines(&report) {
        say(&line)?;
    }
    match &report.lost_end {
        _ if report.is_sound() => Ok(()),
        Some(_) if report.damage.is_empty() => Err(Failure::new(
            Code::Refused,
            format!("the end of the log is still missing; {}", go_on(place)),
        )),
        _ => Err(Failure::new(
            Code::Refused,
            "the log is still damaged, as listed above: run `wellspring mend` again for what this \
             run has uncovered, or restore the backup to another folder",
        )),
    }
}

/// Gives a log that may have had more events another history, and says so.
fn conclude_renewed(place: &Place, dir: &Path) -> Result<(), Failure> {
    let RenewedLog { head, history_before, history } = renew(dir)?;
    let report = checked(dir)?;
    for line in findings(&report) {
        say(&line)?;
    }
    let (name, head) = (place.log(), grouped(head));
    say(&format!(
        "log {name} now ends at position {head}. It has the history {history}, before \
         {history_before}: consumers that saw more get 409 another-history. Take a backup soon: the \
         earlier ones are of the history before"
    ))?;
    if report.is_sound() {
        say(&format!("sound up to position {head}"))
    } else {
        Err(Failure::new(Code::Refused, "the log is still damaged, as listed above"))
    }
}

/// What to do about a lost end that the backup does not have.
fn go_on(place: &Place) -> String {
    let (data, name) = (place.data().display(), place.log());
    format!(
        "put them back from a newer backup, or go on without them: \
         `wellspring restore --rolled-back --data {data} --log {name}`"
    )
}
