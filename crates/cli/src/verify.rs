//! `wellspring verify`: every byte of the logs in a data folder, or of a backup, or both.

use crate::backup::{lost_since, verify_backup};
use crate::exit::{Code, Failure};
use crate::inspect::{Place, checked, is_empty, lines, logs_in};
use crate::numbers::counted;
use std::env;
use std::path::{Path, PathBuf};
use wellspring_backup::{KnownEnds, LogBackup, Manifest};

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
    /// Check a backup: a folder, a .tar file, or s3://BUCKET/PREFIX. With --data, also check that
    /// the logs there reach as far
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
    match (&args.data, backup) {
        (None, Some(_)) => Ok(()),
        (Some(data), backup) => verify_data(data, args.log.as_deref(), backup.as_ref()),
        (None, None) => verify_data(&default(), args.log.as_deref(), None),
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
    let (mut places, mut damaged, mut short) = (0, Vec::new(), Vec::new());
    for name in &names {
        let dir = Place::new(data, name).dir()?;
        if is_empty(&dir) {
            crate::say(&format!("log {name}: empty; a server was stopped while it made it"))?;
            continue;
        }
        let mut report = checked(&dir)?;
        if let Some((_, known)) = backup
            && report.is_sound()
        {
            report.lost_end = lost_since(known, name, &dir, &report)?;
        }
        crate::say(&format!("log {name}:"))?;
        for line in lines(&report) {
            crate::say(&line)?;
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
        crate::say(&format!("log {name}: not here; the backup has it up to position {head}"))?;
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
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Code::Refused, failed.join("\n"))),
    }
}
