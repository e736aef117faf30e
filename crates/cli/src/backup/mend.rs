//! `wellspring mend`: damaged segments from a backup.

use super::ends::lost_since;
use super::place::{chosen, open_store};
use crate::exit::{Code, Failure};
use crate::inspect::{Place, checked, lines};
use crate::numbers::megabytes;
use std::collections::BTreeSet;
use wellspring_backup::mend::mend;
use wellspring_log::segment::{parse_segment_name, segment_name};
use wellspring_log::storage::{DiskStorage, Storage};
use wellspring_types::Position;

/// What `wellspring mend` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Replaces the damaged segments of a log with those of a backup, and keeps what was recorded after the \
backup. The result is verified before it takes the place of the damaged file, which is kept beside it \
as .seg.damaged. Segments that are missing are put back. The server must be stopped.

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
    let mut store = open_store(&args.from)?;
    let manifest = chosen(&mut *store, args.backup.as_deref())?;
    let mut report = checked(&dir)?;
    report.damage.extend(lost_since(&manifest, args.place.log(), &dir, &report)?);
    let bases: BTreeSet<_> =
        report.damage.iter().filter_map(|damage| parse_segment_name(&damage.file)).collect();
    if bases.is_empty() {
        let what = "nothing to mend: every event is present and unchanged";
        return crate::say(&format!("log {}: {what}", args.place.log()));
    }
    let log = manifest.log(args.place.log())?;
    // A missing segment first: without it the next one seems to begin at a wrong position.
    let is_missing = |base: &Position| !dir.join(segment_name(*base)).exists();
    let missing: Vec<_> =
        log.segments.iter().map(|segment| segment.base).filter(is_missing).collect();
    let bases = if missing.is_empty() { bases.into_iter().collect() } else { missing };
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
    let report = checked(&dir)?;
    for line in lines(&report) {
        crate::say(&line)?;
    }
    match report.is_sound() {
        true => Ok(()),
        false => Err(Failure::new(
            Code::Refused,
            "the log is still damaged, as listed above: run `wellspring mend` again for what this \
             run has uncovered, or restore the backup to another folder",
        )),
    }
}
