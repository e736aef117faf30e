//! `wellspring mend`: damaged segments from a backup.

use super::ends::{lost_since, renew};
use super::place::{chosen, open_store};
use crate::exit::{Code, Failure};
use crate::folder_owner::keeping_owner;
use crate::inspect::{Place, checked, findings, is_empty, lines};
use crate::numbers::{grouped, megabytes};
use std::collections::BTreeSet;
use std::path::Path;
use wellspring_backup::LogBackup;
use wellspring_backup::mend::{LaterEvents, check_same_history, later_events, mark_lost_end, mend};
use wellspring_backup::renew::RenewedLog;
use wellspring_log::inspect::Report;
use wellspring_log::segment::{parse_segment_name, segment_name};
use wellspring_log::storage::{DiskStorage, Storage};
use wellspring_types::Position;

/// What `wellspring mend` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Replaces the damaged segments of a log with those of a backup, and keeps what was recorded after the \
backup. The result is verified before it takes the place of the damaged file, which is kept beside it \
as .seg.damaged. Segments that are missing are put back. The server must be stopped.

If the last segment was missing or cut short, what was recorded after the backup is lost. The log then \
gets another history, so that consumers who saw more are told (409 another-history).

Damage in what was recorded after the newest backup cannot be mended: restore the backup instead.

Examples:
  wellspring mend --from /backup/wellspring --data /var/lib/wellspring --log main")]
pub struct MendArgs {
    /// Where the backup is: a folder, a .tar file, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Name of the backup, as `backup list` shows it [default: the newest]
    #[arg(long, value_name = "NAME")]
    backup: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Mends a log.
pub(crate) fn run_mend(args: &MendArgs) -> Result<(), Failure> {
    keeping_owner(args.place.data(), || mend_log(args))
}

fn mend_log(args: &MendArgs) -> Result<(), Failure> {
    let dir = args.place.dir()?;
    let name = args.place.log();
    let failed = |error| Failure::output(&dir.display().to_string(), &error);
    let storage = DiskStorage::existing(&dir).map_err(failed)?;
    storage.lock().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new(
            Code::Refused,
            format!("{} is in use by a running server; stop it first", dir.display()),
        ),
        _ => failed(error),
    })?;
    let mut store = open_store(&args.from)?;
    let manifest = chosen(&mut *store, args.backup.as_deref())?;
    let log = manifest.log(name)?;
    check_same_history(log, &dir)?;
    let is_begun = !is_empty(&dir);
    let mut report = if is_begun { checked(&dir)? } else { Report::default() };
    if is_begun && report.is_sound() {
        report.lost_end = lost_since(&manifest, name, &dir, &report)?;
    }
    let bases = to_mend(log, &dir, &report);
    if bases.is_empty() {
        let Some(lost) = &report.lost_end else {
            let what = "nothing to mend: every event is present and unchanged";
            return crate::say(&format!("log {name}: {what}"));
        };
        let backup = &manifest.name;
        let what = format!("log {name} {lost}, and the backup {backup} does not have them");
        return Err(Failure::new(Code::Refused, format!("{what}; {}", go_on(&args.place))));
    }
    let later = later_events(log, &dir, &bases, report.lost_end.as_ref())?;
    if later == LaterEvents::Unknown {
        mark_lost_end(log, &dir)?;
    }
    for base in bases {
        let mended = mend(&mut *store, log, &dir, base)?;
        let kept = mended.kept_as.map_or_else(String::new, |kept_as| {
            format!("; the damaged file is kept as {}", kept_as.display())
        });
        crate::say(&format!(
            "mended {}: {} from the backup {}, {} recorded later{kept}",
            mended.file.display(),
            megabytes(mended.from_backup_bytes),
            manifest.name,
            megabytes(mended.own_bytes)
        ))?;
    }
    storage.unlock();
    match later {
        LaterEvents::Kept => conclude(&args.place, &dir),
        LaterEvents::Unknown => conclude_renewed(&args.place, &dir, &manifest.name),
    }
}

/// The bases of the segments to mend. Missing ones first: without one, the next seems to begin at a
/// wrong position.
fn to_mend(log: &LogBackup, dir: &Path, report: &Report) -> Vec<Position> {
    let is_missing = |base: &Position| !dir.join(segment_name(*base)).exists();
    let missing: Vec<_> =
        log.segments.iter().map(|segment| segment.base).filter(is_missing).collect();
    if !missing.is_empty() {
        return missing;
    }
    let damaged = report.damage.iter().filter_map(|damage| parse_segment_name(&damage.file));
    let cut_short = report.lost_end.iter().filter(|lost| lost.head < log.head);
    let bases: BTreeSet<_> = damaged.chain(cut_short.map(|lost| lost.last_base)).collect();
    bases.into_iter().collect()
}

/// Says what the mended log is like.
fn conclude(place: &Place, dir: &Path) -> Result<(), Failure> {
    let report = checked(dir)?;
    for line in lines(&report) {
        crate::say(&line)?;
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

/// Gives a log whose end was put back another history, because it may have had more events, and
/// says so.
fn conclude_renewed(place: &Place, dir: &Path, backup: &str) -> Result<(), Failure> {
    let RenewedLog { head, history_before, history } = renew(dir)?;
    let report = checked(dir)?;
    for line in findings(&report) {
        crate::say(&line)?;
    }
    let (name, head) = (place.log(), grouped(head));
    crate::say(&format!(
        "log {name} now ends at position {head}; what was recorded after the backup {backup} is lost. \
         It has the history {history}, before {history_before}: consumers that saw more get 409 \
         another-history. Take a backup soon: the earlier ones are of the history before"
    ))?;
    match report.is_sound() {
        true => crate::say(&format!("sound up to position {head}")),
        false => Err(Failure::new(Code::Refused, "the log is still damaged, as listed above")),
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
