//! `wellspring journal`: checks copies of shared logs in the data folder of a stopped server, and
//! moves them aside.

use crate::argument_error::ArgumentError;
use crate::confirmation;
use crate::exit::{Code, Failure, say};
use crate::inspect::{checked, lines, no_such_log};
use crate::numbers::counted;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use wellspring_host::names::{NAME_RULE, is_name};
use wellspring_log::inspect::{self, CopyFound, CopyOf, Holding};
use wellspring_log::storage::{DiskStorage, Storage};

/// Follows the name of a copy that was set aside, before a number. No log can have such a name.
const SET_ASIDE: &str = ".set-aside-";

/// What `wellspring journal` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A server started with --journal keeps a copy of each log in its data folder; the log itself is in the \
journal, for example in PostgreSQL. A copy whose history differs from that of its log is detached: it \
can be read but accepts nothing. The server reports this in its log lines and at /health/ready. \
`reset-copy` makes that server fetch the log again.

`check` only reads; the server may keep running. It names the id of each shared log (\"of the cluster \
...\"), assigned when the log was founded: each log has its own, the same on all nodes. \"indexes \
compared\" counts the sealed segments whose index was rebuilt from their events and found equal; the \
newest segment has none yet. `reset-copy` requires the server to be stopped.

Examples:
  wellspring journal check --data ./data
  wellspring journal reset-copy --data ./data --log main")]
pub struct JournalArgs {
    #[command(subcommand)]
    what: JournalCommand,
}

#[derive(Debug, clap::Subcommand)]
enum JournalCommand {
    /// Say what each log in a data folder is, and check it
    ///
    /// A log is either a log of files or a copy of a shared log: of which one, and up to where. The
    /// server may keep running.
    Check {
        #[command(flatten)]
        data: Data,
        /// Check this log only [default: all]
        #[arg(long, value_parser = name)]
        log: Option<String>,
    },
    /// Set a copy aside, so that the next start fetches the log again
    ///
    /// Deletes nothing. Stop the server first.
    ResetCopy {
        #[command(flatten)]
        data: Data,
        /// Name of the log
        #[arg(long, value_parser = name)]
        log: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Which data folder.
#[derive(Debug, clap::Args)]
struct Data {
    /// The server's data folder
    #[arg(long, env = "WELLSPRING_DATA", default_value = "./data", value_name = "DIR")]
    data: PathBuf,
}

fn name(text: &str) -> Result<String, ArgumentError> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("not a valid name of a log: {NAME_RULE}").into())
    }
}

impl Data {
    fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// The folder of a log.
    fn dir(&self, log: &str) -> Result<PathBuf, Failure> {
        let dir = self.logs().join(log);
        if dir.is_dir() { Ok(dir) } else { Err(no_such_log(&self.data, log)) }
    }

    /// The names of all folders of logs, in order.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let logs = self.logs();
        let failed = |error: io::Error| {
            let message = format!(
                "{} is not a data folder (--data): {}: {error}",
                self.data.display(),
                logs.display()
            );
            Failure::new(Code::NoInput, message)
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(&logs).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            names.extend(entry.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Runs the command.
pub(crate) fn run(args: &JournalArgs) -> Result<(), Failure> {
    match &args.what {
        JournalCommand::Check { data, log } => check(data, log.as_deref()),
        JournalCommand::ResetCopy { data, log, yes } => reset_copy(data, log, *yes),
    }
}

/// Whether a folder is undamaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Soundness {
    Sound,
    Damaged,
}

fn check(data: &Data, log: Option<&str>) -> Result<(), Failure> {
    let names = match log {
        Some(log) => vec![log.to_owned()],
        None => data.names()?,
    };
    let (mut logs, mut damaged) = (0, Vec::new());
    for name in &names {
        if is_name(name) {
            logs += 1;
            let dir = data.dir(name)?;
            say(&format!("{name}: {}", dir.display()))?;
            if check_one(&dir)? == Soundness::Damaged {
                damaged.push(name.as_str());
            }
        } else if name.contains(SET_ASIDE) {
            say(&format!("{name}: a copy that was set aside; the server ignores it"))?;
        }
    }
    if logs == 0 {
        return Err(Failure::new(Code::NoInput, format!("no logs in {}", data.data.display())));
    }
    if damaged.is_empty() {
        return Ok(());
    }
    let what = counted(damaged.len() as u64, "log is", "logs are");
    Err(Failure::new(Code::Refused, format!("{what} damaged, see above: {}", damaged.join(", "))))
}

fn check_one(dir: &Path) -> Result<Soundness, Failure> {
    let holding = inspect::holding(dir)?;
    for line in describe(&holding) {
        say(&format!("  {line}"))?;
    }
    let head = match &holding {
        Holding::Nothing => 0,
        Holding::Files => 1,
        Holding::Copy(found) => found.head,
    };
    if head == 0 {
        return Ok(Soundness::Sound);
    }
    let report = checked(dir)?;
    for line in lines(&report) {
        say(&format!("  {line}"))?;
    }
    if report.is_sound() {
        return Ok(Soundness::Sound);
    }
    say(&format!(
        "  {}",
        match holding {
            Holding::Copy(_) => {
                "the next start drops everything from the damage on and fetches it again"
            }
            _ => "no other copy exists: keep the folder unchanged and restore a backup elsewhere",
        }
    ))?;
    Ok(Soundness::Damaged)
}

/// The content of a folder, in words.
fn describe(holding: &Holding) -> Vec<String> {
    let CopyFound { of, head, epoch, place } = match holding {
        Holding::Nothing => return vec!["empty: no log yet".to_owned()],
        Holding::Files => {
            return vec!["a log of files, owned by the server that opens this folder".to_owned()];
        }
        Holding::Copy(found) => found,
    };
    let mut lines = Vec::new();
    match of {
        Some(CopyOf { cluster, log, .. }) => {
            lines.push(format!("a copy of the shared log {log} of the cluster {cluster}"));
        }
        None if *head == 0 => lines.push("a copy of a shared log, still empty".to_owned()),
        None => lines.push(
            "a copy of a shared log; the file journal, which names it, is missing or damaged: harmless, the \
             shared log names it, too"
                .to_owned(),
        ),
    }
    lines.push(match head {
        0 => "no events yet".to_owned(),
        _ => format!("head {head}, epoch {epoch}, at place {} of the shared log", place.0),
    });
    if let Some(leader) = of.as_ref().and_then(|of| of.leader.as_ref()) {
        lines.push(format!("last known leader: {leader}"));
    }
    lines
}

fn reset_copy(data: &Data, log: &str, yes: bool) -> Result<(), Failure> {
    let dir = data.dir(log)?;
    refuse_what_is_no_copy(log, &dir)?;
    if !yes {
        let what = format!(
            "This sets aside the copy of {log} in {}; the next start fetches the log again from its journal. \
             Events that only this copy has will not be in it.",
            dir.display()
        );
        confirmation::ask_for(&what, log)?;
    }
    let aside = set_aside(&data.logs(), log)?;
    say(&format!(
        "Renamed {} to {}; the next start fetches {log} again. The old copy stays readable (`wellspring \
         inspect --data {} --log {aside}`); remove it when it is no longer needed.",
        dir.display(),
        data.logs().join(&aside).display(),
        data.data.display()
    ))
}

fn refuse_what_is_no_copy(log: &str, dir: &Path) -> Result<(), Failure> {
    let what = match inspect::holding(dir)? {
        Holding::Copy(_) => return Ok(()),
        Holding::Files => "is a log of files, and this folder is its only copy",
        Holding::Nothing => "holds no log",
    };
    let message = format!("{log} in {} {what}; nothing was changed", dir.display());
    Err(Failure::new(Code::Refused, message))
}

/// Renames the folder of a log while no server holds it. The new name.
fn set_aside(logs: &Path, log: &str) -> Result<String, Failure> {
    let dir = logs.join(log);
    let failed = |doing: &str| {
        let doing = format!("{doing} {}", dir.display());
        move |error: io::Error| Failure::new(Code::Io, format!("{doing}: {error}"))
    };
    let storage = DiskStorage::existing(&dir).map_err(failed("opening"))?;
    storage.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Failure::new(
            Code::Unavailable,
            format!(
                "{} is in use by a running server; stop it first. Nothing was changed",
                dir.display()
            ),
        ),
        _ => failed("locking")(error),
    })?;
    // Checked again, now that no other process can change it.
    refuse_what_is_no_copy(log, &dir)?;
    let mut names = (1..).map(|number: u32| format!("{log}{SET_ASIDE}{number}"));
    let aside = names.find(|name| !logs.join(name).exists()).unwrap_or_default();
    fs::rename(&dir, logs.join(&aside)).map_err(failed("renaming"))?;
    File::open(logs).and_then(|logs| logs.sync_all()).map_err(failed("syncing the folder of"))?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;
    use wellspring_log::shared::simulated::SimulatedLog;
    use wellspring_log::{Append, EncodedEvents, Log, Options, SharedOptions};
    use wellspring_types::Event;

    fn append_one(log: &Log) {
        // A copy takes appends once it leads.
        for _ in 0..2_000 {
            let mut events = EncodedEvents::new();
            events.push(&Event::json("T", &["a:1"], "1").as_ref()).unwrap();
            if log.append(Append { events, ..Append::default() }).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the log takes nothing");
    }

    fn open_copy(world: &SimulatedLog, dir: &Path) -> Log {
        let storage = Arc::new(DiskStorage::create(dir).unwrap());
        let mut node = SharedOptions::new("a", "http://127.0.0.1:1");
        node.lead_timeout = Duration::from_millis(50);
        Log::open_shared(storage, Options::default(), node, Box::new(world.connect(1))).unwrap()
    }

    fn in_folder(dir: &Path) -> Data {
        Data { data: dir.to_owned() }
    }

    fn refused(data: &Data, log: &str) -> Code {
        reset_copy(data, log, true).unwrap_err().code
    }

    #[test]
    fn a_copy_is_set_aside_fetched_again_and_never_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let data = in_folder(folder.path());
        let (world, dir) = (SimulatedLog::immediate(), folder.path().join("logs/main"));
        let log = open_copy(&world, &dir);
        append_one(&log);
        assert_eq!(refused(&data, "main"), Code::Unavailable, "a server holds it");
        drop(log);
        let Holding::Copy(found) = inspect::holding(&dir).unwrap() else { panic!("it is a copy") };
        assert_eq!(found.head, 1);
        assert_eq!(found.of.as_ref().map(|of| of.log.as_str()), Some("main"));
        let words = describe(&Holding::Copy(found)).join("\n");
        for expected in
            ["a copy of the shared log main of the cluster ", "head 1, epoch ", "known leader: a "]
        {
            assert!(words.contains(expected), "{words}");
        }
        check(&data, None).unwrap();
        for number in 1..=2 {
            reset_copy(&data, "main", true).unwrap();
            assert!(!dir.exists());
            let aside = format!("main.set-aside-{number}");
            assert!(!is_name(&aside), "no start may take it for a log");
            let Holding::Copy(kept) = inspect::holding(&data.logs().join(aside)).unwrap() else {
                panic!("it is still the copy")
            };
            assert_eq!(kept.head, 1);
            let log = open_copy(&world, &dir);
            for _ in 0..2_000 {
                if log.head() == 1 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(log.head(), 1, "it was fetched again");
        }
    }

    #[test]
    fn what_is_damaged_in_a_copy_is_told_and_the_copy_can_be_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let data = in_folder(folder.path());
        let (world, dir) = (SimulatedLog::immediate(), folder.path().join("logs/main"));
        let log = open_copy(&world, &dir);
        append_one(&log);
        append_one(&log);
        drop(log);
        let segment = dir.join(&inspect::segments(&dir).unwrap()[0].name);
        let mut bytes = fs::read(&segment).unwrap();
        bytes[64 + 70] ^= 1;
        fs::write(&segment, bytes).unwrap();
        fs::write(dir.join("journal"), "nonsense").unwrap();
        let Holding::Copy(found) = inspect::holding(&dir).unwrap() else { panic!("it is a copy") };
        assert_eq!((found.of.as_ref(), found.head), (None, 0));
        reset_copy(&data, "main", true).unwrap();
    }

    #[test]
    fn a_log_of_files_and_what_is_no_log_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let data = in_folder(folder.path());
        assert_eq!(check(&data, None).unwrap_err().code, Code::NoInput);
        let dir = folder.path().join("logs/main");
        let log = Log::open(&dir, Options::default()).unwrap();
        append_one(&log);
        drop(log);
        assert_eq!(inspect::holding(&dir).unwrap(), Holding::Files);
        assert_eq!(refused(&data, "main"), Code::Refused);
        assert!(dir.is_dir());
        check(&data, Some("main")).unwrap();
        fs::create_dir(folder.path().join("logs/empty")).unwrap();
        assert_eq!(refused(&data, "empty"), Code::Refused);
        assert_eq!(refused(&data, "absent"), Code::Usage);
        assert_eq!(check(&data, Some("absent")).unwrap_err().code, Code::Usage);
    }

    #[test]
    fn damage_is_exit_code_1() {
        let folder = tempfile::tempdir().unwrap();
        let data = in_folder(folder.path());
        let dir = folder.path().join("logs/main");
        let log = Log::open(&dir, Options::default()).unwrap();
        append_one(&log);
        append_one(&log);
        drop(log);
        let segment = dir.join(&inspect::segments(&dir).unwrap()[0].name);
        let mut bytes = fs::read(&segment).unwrap();
        bytes[64 + 70] ^= 1;
        fs::write(&segment, bytes).unwrap();
        assert_eq!(check(&data, None).unwrap_err().code, Code::Refused);
    }
}
