//! `wellspring verify`: every byte of the logs in a data folder, or of a backup, or both.

use crate::backup::{lost_since, verify_backup};
use crate::exit::{Code, Failure};
use crate::inspect::{Place, checked, lines, logs_in};
use crate::numbers::counted;
use std::path::{Path, PathBuf};
use wellspring_backup::{LogBackup, Manifest};

/// What `wellspring verify` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Reads files and never writes; the server may keep running. Damage is reported only if two passes find \
it at the same place, so a write in progress is not mistaken for damage.

Events at the end of a log that are gone leave no damage. An index or a snapshot of a view that knows \
of them tells; a backup tells for certain: name both --backup and --data, and the ends of all logs are \
compared.

Examples:
  wellspring verify --data /var/lib/wellspring
  wellspring verify --backup /backup/wellspring
  wellspring verify --backup /backup/wellspring --data /var/lib/wellspring")]
pub struct VerifyArgs {
    /// Check a backup: a folder, a .tar file, or s3://BUCKET/PREFIX. With --data, also check that
    /// the logs there reach as far
    #[arg(long, value_name = "PLACE", conflicts_with = "log")]
    backup: Option<String>,
    /// Name of the backup, as `backup list` shows it [default: the newest]
    #[arg(long, value_name = "NAME", requires = "backup")]
    name: Option<String>,
    /// The server's data folder [default: ./data, without --backup]
    #[arg(long, env = "WELLSPRING_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Only this log [default: all]
    #[arg(long, value_name = "NAME")]
    log: Option<String>,
}

/// Checks everything and prints the report.
pub(crate) fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let manifest = match &args.backup {
        Some(from) => Some(verify_backup(from, args.name.as_deref())?),
        None => None,
    };
    match (&args.data, manifest) {
        (None, Some(_)) => Ok(()),
        (Some(data), manifest) => verify_data(data, args.log.as_deref(), manifest.as_ref()),
        (None, None) => verify_data(Path::new("./data"), args.log.as_deref(), None),
    }
}

/// Whether the folder of a log has nothing in it but its lock.
fn is_empty(dir: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(dir) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "LOCK"))
}

/// Checks the logs of a data folder, and that each reaches as far as in this backup.
fn verify_data(data: &Path, log: Option<&str>, backup: Option<&Manifest>) -> Result<(), Failure> {
    let names = match log {
        Some(name) => vec![name.to_owned()],
        None => logs_in(data)?,
    };
    let (mut places, mut damaged) = (0, Vec::new());
    for name in &names {
        let dir = Place::new(data, name).dir()?;
        if is_empty(&dir) {
            crate::say(&format!("log {name}: empty; a server was stopped while it made it"))?;
            continue;
        }
        let mut report = checked(&dir)?;
        if let Some(backup) = backup {
            report.damage.extend(lost_since(backup, name, &dir, &report)?);
        }
        crate::say(&format!("log {name}:"))?;
        for line in lines(&report) {
            crate::say(&line)?;
        }
        if !report.is_sound() {
            places += report.damage.len() as u64;
            damaged.push(name.as_str());
        }
    }
    let gone = backup.into_iter().flat_map(|backup| &backup.logs);
    for log in gone.filter(|log| !names.contains(&log.name)) {
        let LogBackup { name, head, .. } = log;
        crate::say(&format!("log {name}: not here; the backup has it up to position {head}"))?;
    }
    if damaged.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} in {} is damaged in {}, listed above; stop the server and run `wellspring mend` with a \
         backup, or restore one elsewhere",
        damaged.join(", "),
        data.display(),
        counted(places, "place", "places")
    );
    Err(Failure::new(Code::Refused, message))
}
