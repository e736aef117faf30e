//! `wellspring backup remove`: removes backups.

use super::place::reopen_store;
use crate::exit::Failure;
use crate::numbers::{counted, megabytes};
use wellspring_backup::prune::{Pruned, remove};
use wellspring_backup::retention::{StayReason, StayingBackup, by_reason};

/// What `wellspring backup remove` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Removes these backups, whatever history they are of, and then every segment that no remaining backup \
names. If one of the names is unknown, nothing is removed. `backup --keep` leaves backups that have \
another history of any log than the newest, and says so.

Examples:
  wellspring backup remove --from /backup/wellspring 20261125T214438Z 20261126T214438Z")]
pub(super) struct RemoveArgs {
    /// Where they are: a folder, or s3://BUCKET/PREFIX (feature s3)
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Names of backups, as `backup list` shows them
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// Removes backups.
pub(super) fn run(args: &RemoveArgs) -> Result<(), Failure> {
    let mut names = args.names.clone();
    names.sort_unstable();
    names.dedup();
    let pruned = remove(&mut *reopen_store(&args.from)?, &names)?;
    eprintln!("{}", told(&pruned));
    Ok(())
}

/// One line about what was removed.
pub(super) fn told(pruned: &Pruned) -> String {
    let Pruned { backups, segments, bytes, .. } = pruned;
    let segments = counted(*segments, "segment", "segments");
    let freed = format!("{segments} that no backup needs, {}", megabytes(*bytes));
    match backups.as_slice() {
        [] => format!("Removed {freed}"),
        names => {
            let count = counted(names.len() as u64, "backup", "backups");
            format!("Removed {count}: {}; and {freed}", names.join(", "))
        }
    }
}

/// The backups that retention never removes: one line for each reason.
pub(super) fn staying_told(staying: &[StayingBackup], place: &str) -> Vec<String> {
    let line = |(reason, names): (&StayReason, Vec<&str>)| {
        let names = names.join(" ");
        let stay = if names.contains(' ') { "stay" } else { "stays" };
        let remove = format!("`wellspring backup remove --from {place} {names}`");
        format!("{names} {stay}, not counted: {reason}. If not needed, remove with {remove}")
    };
    by_reason(staying).into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_without_a_backup_are_told_too() {
        let told = |backups: &[&str], segments| {
            let backups = backups.iter().map(|&name| name.to_owned()).collect();
            told(&Pruned { backups, segments, bytes: 2_000_000, ..Pruned::default() })
        };
        assert_eq!(told(&[], 1), "Removed 1 segment that no backup needs, 2.0 MB");
        assert_eq!(
            told(&["a", "b"], 3),
            "Removed 2 backups: a, b; and 3 segments that no backup needs, 2.0 MB"
        );
    }

    #[test]
    fn backups_that_stay_are_told_by_reason_with_the_command_that_removes_them() {
        let of = |name: &str, reason: &StayReason| StayingBackup {
            name: name.to_owned(),
            reason: reason.clone(),
        };
        let restored = StayReason::OtherHistory { log: "main".to_owned() };
        let staying = [of("1", &restored), of("2", &StayReason::OtherServer), of("3", &restored)];
        let lines = staying_told(&staying, "/backup");
        assert_eq!(lines.len(), 2, "{lines:?}");
        let of_main = lines.iter().find(|line| line.starts_with("1 3 stay, ")).unwrap();
        for part in ["the log main has another history now", "remove --from /backup 1 3`"] {
            assert!(of_main.contains(part), "{of_main}");
        }
        assert!(lines.iter().any(|line| line.starts_with("2 stays, ")), "{lines:?}");
        assert_eq!(staying_told(&[], "/backup"), [] as [String; 0]);
    }

    #[test]
    fn a_place_that_cannot_be_changed_or_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let from = |path: std::path::PathBuf| {
            let from = path.display().to_string();
            run(&RemoveArgs { from, names: vec!["20261125T214438Z".into()] }).unwrap_err()
        };
        let none = dir.path().join("none");
        assert_eq!(from(none.clone()).code, crate::exit::Code::NoInput);
        assert!(!none.exists(), "a wrong name makes no folder");
        let tar = dir.path().join("a.tar");
        std::fs::write(&tar, b"").unwrap();
        assert_eq!(from(tar).code, crate::exit::Code::Usage);
    }
}
