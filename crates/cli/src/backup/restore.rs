//! `wellspring restore`: creates a data folder from a backup.

use super::callers_store::open_store;
use super::ends::renew;
use super::place::{chosen, shared_damage};
use crate::exit::{Code, Failure, say};
use crate::folder_owner::keeping_owner;
use crate::inspect::{Place, logs_in};
use crate::numbers::{counted, grouped, megabytes, moment, rate};
use crate::progress::Progress;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wellspring_backup::new_history::RenewedLog;
use wellspring_backup::restore::{HistoryChoice, RestoreRequest, RestoredLog, restore};
use wellspring_backup::store::ArchiveReader;
use wellspring_backup::{BackupError, Cut, Manifest, Store};
use wellspring_host::access::{accounts_marker, has_token_secret};
use wellspring_host::clock::parse_rfc3339;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_log::storage::create_folder;
use wellspring_types::Position;

/// The archive from standard input while it is restored from.
const SPOOL: &str = "logs.restoring.tar";

/// What `wellspring restore` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Writes a data folder that holds the logs of a backup, and verifies every byte on the way. The folder \
must hold no logs yet; there is a whole restored folder or none. Start the server on it afterwards.

A restored log has another history than before, so that consumers who may have seen events that it \
lacks are told (409 another-history). --keep-history is for a server that was stopped before the \
backup, and moves.

A folder that a snapshot of its disk has put back cannot tell that it was: --rolled-back gives its \
logs other histories, and copies nothing. Run it before the server starts. A log that has lost its \
last segments goes on without them in the same way.

Credentials that were revoked after the backup are valid again: see docs/production.md.

Examples:
  wellspring restore --from /backup/wellspring --data /var/lib/wellspring
  wellspring restore --from /backup/wellspring --data d --time 2026-11-25T21:44:38Z
  wellspring restore --from /backup/wellspring --data d --log main --position 858
  wellspring restore --from - --data d < wellspring.tar
  wellspring restore --rolled-back --data /var/lib/wellspring")]
pub struct RestoreArgs {
    /// Where the backup is: a folder, a .tar file, s3://BUCKET/PREFIX (feature s3), or - for
    /// standard input
    #[arg(long, value_name = "PLACE", required_unless_present = "rolled_back")]
    from: Option<String>,
    /// The data folder was put back by a snapshot of its disk, or logs go on without their lost
    /// ends: only give its logs other histories
    #[arg(long, conflicts_with_all = ["from", "backup", "position", "time", "keep_history"])]
    rolled_back: bool,
    /// The data folder to write
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Name of the backup, as `backup list` shows it [default: the newest; needed if not all are of
    /// one server]
    #[arg(long, value_name = "NAME")]
    backup: Option<String>,
    /// Restore only this log; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    log: Vec<String>,
    /// Restore the log up to this position; needs --log
    #[arg(long, value_name = "POSITION", requires = "log", conflicts_with = "time")]
    position: Option<Position>,
    /// Restore what was recorded up to this time (RFC 3339), which the backup has to cover
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Keep the history: nothing was appended after the backup
    #[arg(long, conflicts_with_all = ["position", "time"])]
    keep_history: bool,
}

impl RestoreArgs {
    fn wanted(&self) -> Result<RestoreRequest, Failure> {
        let cut = match (self.position, &self.time) {
            (Some(position), _) => Cut::After(position),
            (None, Some(time)) => Cut::At(parse_rfc3339(time).ok_or_else(|| {
                Failure::usage(format!("--time {time}: must be a time as in 2026-11-25T21:44:38Z"))
            })?),
            (None, None) => Cut::None,
        };
        let history = if self.keep_history { HistoryChoice::Kept } else { HistoryChoice::New };
        let mut logs = self.log.clone();
        logs.sort_unstable();
        logs.dedup();
        Ok(RestoreRequest { logs, cut, never_empty: Vec::new(), history })
    }
}

/// Restores a backup.
pub(crate) fn run_restore(args: &RestoreArgs) -> Result<(), Failure> {
    keeping_owner(&args.data, || match args.from.as_deref() {
        Some(from) => from_backup(args, from),
        None => rolled_back(args),
    })
}

fn from_backup(args: &RestoreArgs, from: &str) -> Result<(), Failure> {
    let wanted = args.wanted()?;
    if from != "-" {
        let mut store = open_store(from)?;
        return restored(args, &wanted, &mut *store);
    }
    let spool = args.data.join(SPOOL);
    let done = spooled(&args.data, &spool).and_then(|()| {
        let mut store = ArchiveReader::open(&spool)?;
        restored(args, &wanted, &mut store)
    });
    let _ = fs::remove_file(&spool);
    done
}

/// Gives other histories to the logs of a data folder that a snapshot of its disk has put back, or
/// that go on without their lost ends.
fn rolled_back(args: &RestoreArgs) -> Result<(), Failure> {
    let names = match args.log.as_slice() {
        [] => logs_in(&args.data)?,
        names => names.to_vec(),
    };
    let dirs: Vec<PathBuf> =
        names.iter().map(|name| Place::new(&args.data, name).dir()).collect::<Result<_, _>>()?;
    // One that fails keeps no other from its new history.
    let mut failed: Option<Failure> = None;
    for (name, dir) in names.iter().zip(&dirs) {
        match renew(dir) {
            Ok(RenewedLog { head, history_before, history }) => say(&format!(
                "{name}: up to position {}; history {history}, before {history_before}",
                grouped(head)
            ))?,
            Err(failure) => {
                let message = format!("{name} keeps its history: {}", failure.message);
                failed = Some(match failed {
                    None => Failure::new(failure.code, message),
                    Some(first) => {
                        Failure::new(first.code, format!("{}\n{message}", first.message))
                    }
                });
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Copies standard input to a file, because the manifest comes last.
fn spooled(data: &Path, spool: &Path) -> Result<(), Failure> {
    let mut options = File::options();
    options.create_new(true).write(true).mode(0o600);
    // The remains of an interrupted restore.
    let _ = fs::remove_file(spool);
    let copied = create_folder(data)
        .and_then(|()| options.open(spool))
        .and_then(|mut file| io::copy(&mut io::stdin().lock(), &mut file));
    match copied {
        Ok(0) => Err(Failure::data("standard input is empty: it must be the archive of a backup")),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::output(&spool.display().to_string(), &error)),
    }
}

fn restored(
    args: &RestoreArgs,
    wanted: &RestoreRequest,
    store: &mut dyn Store,
) -> Result<(), Failure> {
    let manifest: Manifest = chosen(store, args.backup.as_deref())?;
    let mut wanted = wanted.clone();
    if manifest.has_accounts {
        // A server that had accounts refuses to start without any.
        wanted.never_empty.push(SYSTEM_LOG.to_owned());
    }
    let mut progress = Progress::start("restore", Some(manifest.bytes()));
    let shown = &mut |done, all| progress.update_bytes(done, all);
    // Without its accounts, a server must refuse to start rather than be open to everyone.
    let prepare = || {
        if manifest.has_accounts {
            accounts_marker::mark(&args.data).map_err(|error| error.to_string())
        } else {
            Ok(())
        }
    };
    let logs = restore(store, &manifest, &args.data, &wanted, &prepare, shown);
    progress.end();
    let logs = logs.map_err(|error| match &error {
        BackupError::Damaged { .. } => {
            Failure::new(Code::Refused, format!("{error}; {}", shared_damage(&store.place())))
        }
        _ => error.into(),
    })?;
    for RestoredLog { name, head, left_out, history_before, history } in &logs {
        let left_out = match left_out {
            0 => String::new(),
            events => format!(", {} left out", counted(*events, "later event", "later events")),
        };
        let history = if history == history_before {
            format!("history {history} as before")
        } else {
            format!("history {history}, before {history_before}")
        };
        say(&format!("{name}: up to position {}{left_out}; {history}", grouped(*head)))?;
    }
    let seconds = progress.seconds();
    let events: u64 = logs.iter().map(|log| log.head).sum();
    let rate = rate(events, seconds).map(|rate| format!(", {} events/s", grouped(rate)));
    eprintln!(
        "Restored {} from {} into {}, verified: {}, {seconds:.1} s{}",
        counted(logs.len() as u64, "log", "logs"),
        manifest.name,
        args.data.display(),
        megabytes(manifest.bytes()),
        rate.unwrap_or_default()
    );
    eprintln!("{}", next_steps(&manifest, &wanted, &logs, has_token_secret(&args.data)));
    Ok(())
}

/// Advice for the operator before the server starts.
fn next_steps(
    manifest: &Manifest,
    wanted: &RestoreRequest,
    logs: &[RestoredLog],
    keeps_token_secret: bool,
) -> String {
    let moment_us = match wanted.cut {
        Cut::At(us) => us,
        Cut::None | Cut::After(_) => manifest.taken_at_us,
    };
    let mut lines = vec![match wanted.cut {
        Cut::After(_) => format!("Next, for the backup of {}:", moment(moment_us)),
        Cut::At(_) | Cut::None => format!("Next, for the state of {}:", moment(moment_us)),
    }];
    if manifest.has_accounts && logs.iter().any(|log| log.name == SYSTEM_LOG) {
        lines.push(if keeps_token_secret {
            "the folder has kept its token-secret, so tokens are valid: POST /auth/rotate, \
                 then again with {\"retire\":true}, before others reach the server"
                .to_owned()
        } else {
            "tokens have ended: everyone logs in again".to_owned()
        });
        lines.push(
            "keys and accounts that were revoked since count again: look through them".to_owned(),
        );
    }
    if logs.iter().any(|log| log.history != log.history_before) {
        lines.push(
            "consumers that come with the old history get 409 another-history; what they derived \
             may hold events that are gone"
                .to_owned(),
        );
        lines.push(
            "tokens of leases may be smaller than those given since: whatever outside of \
             Wellspring compares them has to forget the largest it has seen"
                .to_owned(),
        );
        lines.push(
            "start the server and take a backup: older ones cannot mend another history".to_owned(),
        );
    }
    lines.join("\n  - ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_steps_are_those_of_what_was_restored() {
        let manifest = Manifest {
            format: wellspring_backup::manifest::FORMAT,
            name: "20261125T214438Z".into(),
            version: "0.2.0".into(),
            taken_at_us: 1_793_577_600_000_000,
            has_accounts: true,
            logs: Vec::new(),
        };
        let wanted = |cut| RestoreRequest {
            logs: Vec::new(),
            cut,
            never_empty: Vec::new(),
            history: HistoryChoice::New,
        };
        let log = |name: &str, history: &str| RestoredLog {
            name: name.into(),
            head: 1,
            left_out: 0,
            history_before: "a".into(),
            history: history.into(),
        };
        let whole = [log("main", "b"), log("system", "c")];
        let steps =
            |cut, logs: &[RestoredLog], kept| next_steps(&manifest, &wanted(cut), logs, kept);
        let all = steps(Cut::None, &whole, false);
        for part in ["2026-11-02T00:00:00", "tokens have ended", "revoked", "409", "take a backup"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        let kept = steps(Cut::At(1_793_491_200_000_000), &whole, true);
        assert!(kept.contains("POST /auth/rotate") && !kept.contains("have ended"), "{kept}");
        assert!(kept.starts_with("Next, for the state of 2026-11-01T00:00:00"), "{kept}");
        let one = steps(Cut::After(1), &whole[..1], true);
        assert!(!one.contains("logs in") && one.contains("409"), "{one}");
        assert!(one.contains("tokens of leases"), "{one}");
        let moved = steps(Cut::None, &[log("main", "a"), log("system", "a")], true);
        assert!(!moved.contains("409") && !moved.contains("leases"), "{moved}");
    }
}
