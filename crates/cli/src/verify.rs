//! `wellspring verify`: every byte of the logs in a data folder, or of a backup, or both.

use crate::backup::{lost_since, verify_backup};
use crate::exit::{Code, Failure, say};
use crate::inspect::{
    Place, checked, has_segments, is_empty, is_gone, lines, logs_in, no_such_log,
};
use crate::numbers::counted;
use std::env;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use wellspring_backup::{KnownEnds, LogBackup, Manifest};
use wellspring_log::inspect::Report;
use wellspring_log::storage::HeldFolder;

/// What `wellspring verify` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Reads files and never writes; the server may keep running. Damage is reported only if two passes find \
it at the same place, so a write in progress is not mistaken for damage.

Events at the end of a log that are gone leave no damage. An index or a snapshot of a view that knows \
of them tells; a backup tells for certain: name both --from and --data, and the ends of all logs are \
compared.

Examples:
  wellspring verify --data /var/lib/wellspring
  wellspring verify --from /backup/wellspring
  wellspring verify --from /backup/wellspring --data /var/lib/wellspring")]
pub struct VerifyArgs {
    /// Check a backup: a folder, a .tar file, or s3://BUCKET/PREFIX (feature s3). With --data, also
    /// check that the logs there reach as far
    #[arg(long, value_name = "PLACE", conflicts_with = "log")]
    from: Option<String>,
    /// Name of the backup, as `backup list` shows it [default: the newest]
    #[arg(long, value_name = "NAME", requires = "from")]
    backup: Option<String>,
    /// The server's data folder [default without --from: that of WELLSPRING_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Only this log [default: all]
    #[arg(long, value_name = "NAME")]
    log: Option<String>,
}

/// Checks everything and prints the report.
pub(crate) fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let backup = match &args.from {
        Some(from) => Some(verify_backup(from, args.backup.as_deref())?),
        None => None,
    };
    // A variable for the server's sake does not ask for a comparison with its folder.
    let default = || env::var_os("WELLSPRING_DATA").map_or("./data".into(), PathBuf::from);
    let checked = match (&args.data, &backup) {
        (None, Some(_)) => Ok(()),
        (Some(data), backup) => verify_data(data, args.log.as_deref(), backup.as_ref()),
        (None, None) => verify_data(&default(), args.log.as_deref(), None),
    };
    let unread = backup
        .iter()
        .flat_map(|(checked, known)| newer_unreadable(checked, known))
        .collect::<Vec<_>>();
    if unread.is_empty() {
        return checked;
    }
    let newer =
        format!("newer backups have damaged manifests, listed above: {}", unread.join(", "));
    Err(match checked {
        Ok(()) => Failure::new(Code::Refused, newer),
        Err(Failure { code, message }) => Failure::new(code, format!("{message}\n{newer}")),
    })
}

/// The unreadable backups after the checked one.
fn newer_unreadable<'a>(
    checked: &'a Manifest,
    known: &'a KnownEnds,
) -> impl Iterator<Item = &'a str> {
    let names = known.unreadable().iter().map(|damaged| damaged.name.as_str());
    names.filter(|name| *name > checked.name.as_str())
}

/// Attempts to read a log without a segment, because a server is creating it, and the time between
/// them.
const MADE_TRIES: u32 = 40;
const MADE_PAUSE: Duration = Duration::from_millis(50);

/// The result of examining a log.
enum LogFinding {
    /// Its folder is empty.
    Empty,
    /// It was deleted after the logs were listed.
    Deleted,
    /// It was read.
    Read(Report),
}

/// Reads a log of a data folder, and compares its end with those in backups. `is_listed`: it is
/// not the command that names the log.
fn look(place: &Place, known: Option<&KnownEnds>, is_listed: bool) -> Result<LogFinding, Failure> {
    let unless_deleted = |is_gone: bool, failure| {
        if is_listed && is_gone { Ok(LogFinding::Deleted) } else { Err(failure) }
    };
    let dir = match place.dir() {
        Ok(dir) => dir,
        Err(failure) => return unless_deleted(true, failure),
    };
    if is_empty(&dir) {
        return Ok(LogFinding::Empty);
    }
    let Ok(folder) = HeldFolder::open(&dir) else {
        return unless_deleted(!dir.exists(), no_such_log(place.data(), place.log()));
    };
    let read_once = || {
        checked(&dir).and_then(|mut report| {
            if let Some(known) = known
                && report.is_sound()
            {
                report.lost_end = lost_since(known, place.log(), &dir, &report)?;
            }
            Ok(report)
        })
    };
    let mut tries = 1;
    let read = loop {
        let had_segments = has_segments(&dir);
        let read = read_once();
        // A folder without files is being removed, or a server begins anew what it began there.
        let is_removed = folder.require_named().is_err();
        if read.is_ok() || had_segments || is_removed || tries == MADE_TRIES {
            break read;
        }
        tries += 1;
        sleep(MADE_PAUSE);
    };
    match read {
        // What misses its files misses them because the log was deleted.
        Ok(report) if is_listed && !report.is_sound() && is_gone(&folder) => {
            Ok(LogFinding::Deleted)
        }
        Ok(report) => Ok(LogFinding::Read(report)),
        Err(failure) => unless_deleted(is_gone(&folder), failure),
    }
}

/// Checks the logs of a data folder, and that each reaches as far as backups have it reach.
fn verify_data(
    data: &Path,
    log: Option<&str>,
    backup: Option<&(Manifest, KnownEnds)>,
) -> Result<(), Failure> {
    let names = match log {
        Some(name) => vec![name.to_owned()],
        None => logs_in(data)?,
    };
    let known = backup.map(|(_, known)| known);
    let (mut places, mut damaged, mut short) = (0, Vec::new(), Vec::new());
    for name in &names {
        let report = match look(&Place::new(data, name), known, log.is_none())? {
            LogFinding::Empty => {
                say(&format!("log {name}: empty; a server was stopped while it made it"))?;
                continue;
            }
            LogFinding::Deleted => {
                say(&format!("log {name}: deleted meanwhile"))?;
                continue;
            }
            LogFinding::Read(report) => report,
        };
        say(&format!("log {name}:"))?;
        for line in lines(&report) {
            say(&line)?;
        }
        if !report.damage.is_empty() {
            places += report.damage.len() as u64;
            damaged.push(name.as_str());
        }
        if report.lost_end.is_some() {
            short.push(name.as_str());
        }
    }
    let in_backup = backup.into_iter().flat_map(|(backup, _)| &backup.logs);
    let is_here = |name: &String| {
        names.contains(name) && Place::new(data, name).dir().is_ok_and(|dir| !is_empty(&dir))
    };
    let gone: Vec<&LogBackup> = in_backup.filter(|log| !is_here(&log.name)).collect();
    for LogBackup { name, head, .. } in &gone {
        say(&format!("log {name}: not here; the backup has it up to position {head}"))?;
    }
    let shown = data.display();
    let mut failed = Vec::new();
    if !damaged.is_empty() {
        failed.push(format!(
            "{} in {shown} is damaged in {}, listed above; stop the server and run `wellspring \
             mend` with a backup, or restore one elsewhere",
            damaged.join(", "),
            counted(places, "place", "places")
        ));
    }
    if !short.is_empty() {
        failed.push(format!(
            "{} in {shown}: the last segments are missing; stop the server and put them back with \
             `wellspring mend` and a backup, or go on without them: `wellspring restore \
             --rolled-back --data {shown} --log NAME`",
            short.join(", ")
        ));
    }
    if !gone.is_empty() {
        let names: Vec<&str> = gone.iter().map(|log| log.name.as_str()).collect();
        failed.push(format!(
            "{} of the backup: not in {shown}; unless deleted since the backup, put back with \
             `wellspring restore --from PLACE --data {shown} --log NAME`",
            names.join(", ")
        ));
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(Code::Refused, failed.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use wellspring_log::{Log, Options};

    #[test]
    fn a_log_that_is_deleted_while_others_are_looked_at_is_no_failure() {
        let data = tempfile::tempdir().unwrap();
        let dir = data.path().join("logs/t1");
        fs::create_dir_all(&dir).unwrap();
        Log::open(&dir, Options::default()).unwrap().close();
        let place = Place::new(data.path(), "t1");
        let is_deleted = |is_listed| {
            look(&place, None, is_listed).map(|looked| matches!(looked, LogFinding::Deleted))
        };
        assert_eq!(is_deleted(true), Ok(false), "it is there");
        // A server removes the files one by one; what is left is damage only if it stays.
        fs::remove_file(dir.join("00000000000000000001.seg")).unwrap();
        assert_ne!(is_deleted(true), Ok(true));
        // A server that makes a log has its folder before its segment.
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("epoch.tmp"), "").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(MADE_PAUSE);
                Log::open(&dir, Options::default()).unwrap().close();
            });
            assert_eq!(is_deleted(true), Ok(false), "it is there by then");
        });
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(is_deleted(true), Ok(true));
        assert_eq!(is_deleted(false).unwrap_err().code, Code::Usage, "the command names it");
    }

    #[test]
    fn a_folder_is_gone_if_it_was_removed_emptied_or_made_anew() {
        let data = tempfile::tempdir().unwrap();
        let dir = data.path().join("t1");
        let made = || {
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("epoch"), "1").unwrap();
        };
        made();
        let folder = HeldFolder::open(&dir).unwrap();
        assert!(!is_gone(&folder));
        fs::remove_dir_all(&dir).unwrap();
        assert!(is_gone(&folder));
        made();
        assert!(is_gone(&folder), "another log of the name");
        let folder = HeldFolder::open(&dir).unwrap();
        fs::remove_file(dir.join("epoch")).unwrap();
        assert!(is_gone(&folder), "emptied");
    }
}
