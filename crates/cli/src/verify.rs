//! `wellspring verify`: every byte of a log in a data folder, or of a backup.

use crate::backup::verify_backup;
use crate::exit::{Code, Failure};
use crate::inspect::{Place, checked, lines};
use crate::numbers::counted;

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
    #[command(flatten)]
    place: Place,
}

/// Checks everything and prints the report.
pub(crate) fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    if let Some(from) = &args.backup {
        return verify_backup(from, args.name.as_deref());
    }
    let dir = args.place.dir()?;
    let report = checked(&dir)?;
    for line in lines(&report) {
        crate::say(&line)?;
    }
    if report.is_sound() {
        return Ok(());
    }
    let message = format!(
        "{} is damaged in {}, listed above; stop the server and run `wellspring mend` with a backup, or restore one elsewhere",
        dir.display(),
        counted(report.damage.len() as u64, "place", "places")
    );
    Err(Failure::new(Code::Refused, message))
}
