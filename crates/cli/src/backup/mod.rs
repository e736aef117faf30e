//! `wellspring backup`, `restore`, `mend`, and `verify --from`.

mod callers_store;
mod ends;
mod list;
mod mend;
mod place;
mod remove;
mod restore;
mod server_source;

pub(crate) use ends::lost_since;
pub(crate) use mend::{MendArgs, run_mend};
pub(crate) use place::verify_backup;
pub(crate) use restore::{RestoreArgs, run_restore};

use crate::exit::{Code, Failure};
use crate::interrupt::on_interrupt;
use crate::numbers::{counted, megabytes, rate};
use crate::progress::Progress;
use crate::server::Server;
use place::{Writer, create_store};
use server_source::ServerSource;
use wellspring_backup::prune::prune;
use wellspring_backup::take::{TakenBackup, take};
use wellspring_backup::{BackupError, ManifestFault, RateLimit, Store};
use wellspring_host::threads::yield_to_serving;

/// What `wellspring backup` takes.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = "\
A backup holds all logs of the server as they were at one moment: everything acknowledged before \
it began is in it. Each batch of events is verified on its way. Segments that an earlier backup in \
the same place has are not copied again. A backup that was interrupted cannot be restored; the next \
one uses what it left.

Not in a backup: the token secret (tokens end with a restore; passwords and API keys stay, as they \
are events), certificates, the configuration.

Needs an admin if the server has accounts. Object stores (s3://) need a program with the feature s3, \
as in packages.

Examples:
  wellspring backup --to /backup/wellspring --keep 14
  wellspring backup --to - | ssh backup@example.com 'cat > wellspring.tar'
  wellspring backup --to s3://bucket/wellspring
  wellspring backup list --from /backup/wellspring
  wellspring backup remove --from /backup/wellspring 20261125T214438Z"
)]
pub struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// Where to: a folder, s3://BUCKET/PREFIX (feature s3), or - for a tar archive on standard
    /// output
    #[arg(long, value_name = "PLACE", required = true)]
    to: Option<String>,
    /// Read at most this many bytes per second, at least 65536 [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(65_536..))]
    rate: Option<u64>,
    /// Afterwards, keep this many of the newest backups and remove the others; those that may hold
    /// the only copy of events stay, and are listed
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Subcommand)]
enum BackupCommand {
    /// List the backups in a place
    List(list::ListArgs),
    /// Remove backups by name, and the segments that only they needed
    Remove(remove::RemoveArgs),
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Failure {
        // The reader of an archive on standard output has ended.
        if let BackupError::Io { doing, error } = &error
            && error.kind() == std::io::ErrorKind::BrokenPipe
        {
            return Failure::output(doing, error);
        }
        let code = match &error {
            BackupError::Io { .. } => Code::Io,
            BackupError::Damaged { .. }
            | BackupError::DamagedSource { .. }
            | BackupError::Unfinished { .. }
            | BackupError::InUse(_)
            | BackupError::BeginningRemoved { .. }
            | BackupError::LogDeleted { .. } => Code::Refused,
            BackupError::UnreadableManifests { manifests, .. } => {
                match manifests.first().map(|manifest| manifest.fault) {
                    Some(ManifestFault::Unavailable) => Code::Io,
                    Some(ManifestFault::Newer) => Code::Data,
                    Some(ManifestFault::Damaged) | None => Code::Refused,
                }
            }
            BackupError::NotFound { .. } => Code::NoInput,
            BackupError::UnknownVersion { .. } => Code::Data,
            BackupError::Unfit(_) => Code::Usage,
            BackupError::Refused { status: Some(status), .. } => {
                Code::of_status(*status, crate::exit::InputKind::Arguments)
            }
            BackupError::Busy(_) | BackupError::Refused { status: None, .. } => Code::Unavailable,
        };
        Failure::new(code, error.to_string())
    }
}

/// Takes a backup, or lists or removes those that there are.
pub(crate) fn run(args: &BackupArgs) -> Result<(), Failure> {
    match &args.command {
        Some(BackupCommand::List(list)) => return list::show(list),
        Some(BackupCommand::Remove(remove)) => return remove::run(remove),
        None => {}
    }
    on_interrupt(|| eprintln!("\nInterrupted: this backup is unfinished and cannot be restored."));
    let to = args.to.as_deref().unwrap_or_default();
    if to == "-" && args.keep.is_some() {
        return Err(Failure::usage("--keep: an archive on standard output is one backup"));
    }
    // The server may be on this machine.
    yield_to_serving();
    let mut source = ServerSource::new(args.server.client()?);
    let mut store: Writer = create_store(to)?;
    let mut progress = Progress::start("backup", None);
    let mut shown = |done: u64, all: u64| progress.update_bytes(done, all);
    let taken = take(&mut source, &mut *store, &mut RateLimit::new(args.rate), &mut shown);
    progress.end();
    let taken = taken?;
    report(&taken, &progress, to);
    if let Some(keep) = args.keep {
        keep_newest(&mut *store, keep as usize, to)?;
    }
    Ok(())
}

/// Removes old backups, and says which stay.
fn keep_newest(store: &mut dyn Store, keep: usize, to: &str) -> Result<(), Failure> {
    let pruned = prune(store, keep).map_err(|error| {
        let Failure { code, message } = Failure::from(error);
        Failure::new(code, format!("this backup is finished, but old ones stay: {message}"))
    })?;
    if (pruned.backups.len(), pruned.segments) != (0, 0) {
        eprintln!("{}", remove::told(&pruned));
    }
    for line in remove::staying_told(&pruned.staying, to) {
        eprintln!("{line}");
    }
    Ok(())
}

fn report(taken: &TakenBackup, progress: &Progress, to: &str) {
    let TakenBackup { manifest, copied_bytes, reused_bytes, .. } = taken;
    let TakenBackup { deleted_logs, lost_ends, unreadable, .. } = taken;
    for damaged in unreadable {
        eprintln!("WARNING: {}; {}", damaged.detail, damaged.remedy(to));
    }
    for (log, lost) in lost_ends {
        eprintln!(
            "WARNING: the log {log} {lost}. If a snapshot of the server's disk was put back, its \
             consumers are not told: stop the server, and run `wellspring restore --rolled-back \
             --log {log}` with its data folder"
        );
    }
    if !deleted_logs.is_empty() {
        eprintln!(
            "Not in this backup, because deleted while it was taken: {}",
            deleted_logs.join(", ")
        );
    }
    let seconds = progress.seconds();
    let place = if to == "-" { "standard output" } else { to };
    let rate = rate(*copied_bytes, seconds).map(|rate| format!(", {}/s", megabytes(rate)));
    eprintln!(
        "Backup {} is finished: {} of {} in {place}; {} copied, {} there already, {seconds:.1} s{}",
        manifest.name,
        counted(manifest.events(), "event", "events"),
        counted(manifest.logs.len() as u64, "log", "logs"),
        megabytes(*copied_bytes),
        megabytes(*reused_bytes),
        rate.unwrap_or_default()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn a_reader_of_the_archive_that_left_is_no_error_worth_words() {
        let failed = |kind: ErrorKind| Failure::from(BackupError::io("writing -")(kind.into()));
        let gone = failed(ErrorKind::BrokenPipe);
        assert_eq!((gone.code, gone.message.as_str()), (Code::Pipe, ""));
        let full = failed(ErrorKind::StorageFull);
        assert_eq!(full.code, Code::Io);
        assert!(full.message.contains("writing -"), "{}", full.message);
    }
}
