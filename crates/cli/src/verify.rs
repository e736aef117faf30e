//! `wellspring verify`: every byte of a log in a data folder, or of a backup.

use crate::backup::verify_backup;
use crate::exit::{Code, Failure};
use crate::inspect::{Place, checked, lines, logs_in};
use crate::numbers::counted;
use std::path::PathBuf;

/// What `wellspring verify` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Reads files and never writes; the server may keep running. Damage is reported only if two passes find \
it at the same place, so a write in progress is not mistaken for damage.")]
pub struct VerifyArgs {
    /// Check a backup instead: a folder, a .tar file, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["data", "log"])]
    backup: Option<String>,
    /// Name of the backup, as `backup list` shows it [default: the newest]
    #[arg(long, value_name = "NAME", requires = "backup")]
    name: Option<String>,
    /// The server's data folder
    #[arg(long, env = "WELLSPRING_DATA", default_value = "./data", value_name = "DIR")]
    data: PathBuf,
    /// Only this log [default: all]
    #[arg(long, value_name = "NAME")]
    log: Option<String>,
}

/// Checks everything and prints the report.
pub(crate) fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    if let Some(from) = &args.backup {
        return verify_backup(from, args.name.as_deref());
    }
    let names = match &args.log {
        Some(name) => vec![name.clone()],
        None => logs_in(&args.data)?,
    };
    let (mut places, mut damaged) = (0, Vec::new());
    for name in &names {
        let report = checked(&Place::new(&args.data, name).dir()?)?;
        crate::say(&format!("log {name}:"))?;
        for line in lines(&report) {
            crate::say(&line)?;
        }
        if !report.is_sound() {
            places += report.damage.len() as u64;
            damaged.push(name.as_str());
        }
    }
    if damaged.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} in {} is damaged in {}, listed above; stop the server and run `wellspring mend` with a \
         backup, or restore one elsewhere",
        damaged.join(", "),
        args.data.display(),
        counted(places, "place", "places")
    );
    Err(Failure::new(Code::Refused, message))
}
