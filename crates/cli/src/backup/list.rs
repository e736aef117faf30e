//! `wellspring backup list`: lists the backups in a store, finished or not.

use super::place::open_store;
use crate::exit::{Failure, say_lines};
use crate::numbers::{grouped, megabytes, moment};
use crate::table::table;
use serde_json::{Value, json};
use wellspring_backup::catalog::{self, Catalog};
use wellspring_backup::{BackupError, Manifest, Store, UnreadableManifest};
use wellspring_host::names::SYSTEM_LOG;

/// What `wellspring backup list` takes.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Where they are: a folder, a .tar file, or s3://BUCKET/PREFIX (feature s3)
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// The history is that of the log system, which distinguishes servers in one store.
const COLUMNS: [&str; 7] = ["BACKUP", "STATE", "MOMENT", "SIZE", "EVENTS", "HISTORY", "LOGS"];

/// A backup in a place.
struct ListedBackup {
    name: String,
    state: BackupState,
}

enum BackupState {
    Finished(Manifest),
    Unfinished,
    /// Its manifest cannot be read.
    Damaged(UnreadableManifest),
}

/// Lists the backups in a place, the newest last.
pub(super) fn show(args: &ListArgs) -> Result<(), Failure> {
    let mut store = open_store(&args.from)?;
    let backups = listed(&mut *store)?;
    if backups.is_empty() {
        eprintln!("{} holds no backups", store.place());
    }
    for backup in &backups {
        if let BackupState::Damaged(damaged) = &backup.state {
            eprintln!("WARNING: {}; {}", damaged.detail, damaged.remedy(&args.from));
        }
    }
    if args.json {
        let lines = backups.iter().map(|backup| backup.to_json().to_string());
        return say_lines(&lines.collect::<Vec<_>>());
    }
    say_lines(&table(&COLUMNS, backups.iter().map(ListedBackup::cells)))
}

/// All backups, finished or not, in order: names sort like backups.
fn listed(store: &mut dyn Store) -> Result<Vec<ListedBackup>, BackupError> {
    let Catalog { finished, unfinished } = Catalog::of(store)?;
    let of_finished = |name: String| {
        let state = match catalog::manifest(store, &name) {
            Ok(manifest) => BackupState::Finished(manifest),
            Err(error @ BackupError::Io { .. }) => return Err(error),
            Err(error) => BackupState::Damaged(UnreadableManifest::new(&name, &error)),
        };
        Ok(ListedBackup { name, state })
    };
    let mut all: Vec<_> = finished.into_iter().map(of_finished).collect::<Result<_, _>>()?;
    let begun = unfinished.into_iter();
    all.extend(begun.map(|name| ListedBackup { name, state: BackupState::Unfinished }));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

impl ListedBackup {
    fn cells(&self) -> Vec<String> {
        let name = self.name.clone();
        let none = || "-".to_owned();
        match &self.state {
            BackupState::Finished(manifest) => {
                let log = |name: &str, head| format!("{name} {}", grouped(head));
                let logs = manifest.logs.iter().map(|at| log(&at.name, at.head));
                let (size, events) = (megabytes(manifest.bytes()), grouped(manifest.events()));
                let logs = logs.collect::<Vec<_>>().join(", ");
                let history =
                    manifest.log(SYSTEM_LOG).map_or_else(|_| none(), |at| at.history.clone());
                let moment = moment(manifest.taken_at_us);
                vec![name, "finished".to_owned(), moment, size, events, history, logs]
            }
            BackupState::Unfinished => {
                vec![name, "unfinished".to_owned(), none(), none(), none(), none(), none()]
            }
            BackupState::Damaged(UnreadableManifest { detail, .. }) => {
                let detail = detail.clone();
                vec![name, "damaged".to_owned(), none(), none(), none(), none(), detail]
            }
        }
    }

    fn to_json(&self) -> Value {
        let name = &self.name;
        match &self.state {
            BackupState::Finished(manifest) => {
                let log = |log: &wellspring_backup::manifest::LogBackup| json!({"name": log.name, "history": log.history, "head": log.head});
                json!({
                    "name": name,
                    "state": "finished",
                    "taken_at": moment(manifest.taken_at_us),
                    "version": manifest.version,
                    "bytes": manifest.bytes(),
                    "events": manifest.events(),
                    "logs": manifest.logs.iter().map(log).collect::<Vec<_>>(),
                })
            }
            BackupState::Unfinished => json!({"name": name, "state": "unfinished"}),
            BackupState::Damaged(UnreadableManifest { detail, .. }) => {
                json!({"name": name, "state": "damaged", "detail": detail})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use wellspring_backup::store::FolderStore;

    #[test]
    fn backups_are_listed_in_one_order_whatever_became_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("backups");
        fs::create_dir(&folder).unwrap();
        let manifest = Manifest {
            format: wellspring_backup::manifest::FORMAT,
            name: "20261102T000000Z".into(),
            version: "0.1.0".into(),
            taken_at_us: 1_793_577_600_000_000,
            has_accounts: false,
            logs: Vec::new(),
        };
        fs::write(folder.join("20261102T000000Z.json"), manifest.encode()).unwrap();
        fs::write(folder.join("20261104T000000Z.json"), b"{").unwrap();
        for name in ["20261101T000000Z", "20261103T000000Z"] {
            fs::write(folder.join(format!("{name}.begun")), b"").unwrap();
        }
        let mut store = FolderStore::open(dir.path()).unwrap();
        let backups = listed(&mut store).unwrap();
        let rows: Vec<_> = backups.iter().map(ListedBackup::cells).collect();
        let starts: Vec<_> = rows.iter().map(|row| format!("{} {}", row[0], row[1])).collect();
        assert_eq!(
            starts,
            [
                "20261101T000000Z unfinished",
                "20261102T000000Z finished",
                "20261103T000000Z unfinished",
                "20261104T000000Z damaged",
            ]
        );
        assert!(rows.iter().all(|row| row.len() == COLUMNS.len()));
        assert_eq!(rows[1][2], "2026-11-02T00:00:00.000000Z");
        assert!(rows[3][6].contains("not the manifest of a backup"), "{:?}", rows[3]);
        let states: Vec<_> =
            backups.iter().map(|backup| backup.to_json()["state"].clone()).collect();
        assert_eq!(states, ["unfinished", "finished", "unfinished", "damaged"]);
    }
}
