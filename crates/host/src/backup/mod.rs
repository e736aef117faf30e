//! Backups that the server takes of itself, and what a backup from outside reads.

mod config;
mod destination;
mod known_place;
mod lost_ends;
mod schedule;

pub use config::BackupConfig;

use crate::access::accounts_marker;
use crate::node::Node;
use crate::setup::SetupError;
use crate::stats::family::{Family, Kind};
use crate::threads::spawn_yielding;
use destination::Destination;
use schedule::Schedule;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::watch;
use wellspring_backup::UnreadableManifest;
use wellspring_backup::source::OpenLogs;
use wellspring_log::Clock;

/// Figures of the backups of this process.
#[derive(Debug, Default)]
struct Counts {
    /// The moment that the newest backup shows, µs since 1970 UTC; 0 if there is none.
    newest_us: AtomicU64,
    taken: AtomicU64,
    failures: AtomicU64,
    copied_bytes: AtomicU64,
    last_duration_us: AtomicU64,
    /// Backups in the place whose manifests could not be read when it was last looked at.
    unreadable: AtomicU64,
    failed_removals: AtomicU64,
    running: AtomicU64,
}

/// The backups that the server takes of itself.
pub struct Backups {
    config: BackupConfig,
    destination: Option<Destination>,
    counts: Counts,
}

impl Backups {
    /// Those that the settings ask for.
    ///
    /// # Errors
    /// A sentence about the settings.
    pub(crate) fn open(config: BackupConfig) -> Result<Backups, SetupError> {
        let destination = config.destination()?;
        Ok(Backups { config, destination, counts: Counts::default() })
    }

    /// Takes backups until the server stops, if the settings ask for any.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(crate) fn start(
        self: &Arc<Backups>,
        node: &Arc<Node>,
        clock: &Arc<dyn Clock>,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), SetupError> {
        let Some(destination) = self.destination.clone() else { return Ok(()) };
        let schedule = Schedule {
            backups: Arc::clone(self),
            node: Arc::clone(node),
            clock: Arc::clone(clock),
            destination,
            stopping,
        };
        spawn_yielding("backup".to_owned(), move || schedule.run()).map(drop)
    }

    /// The figures; none if there are no scheduled backups.
    pub(crate) fn families(&self) -> Vec<Family> {
        if self.destination.is_none() {
            return Vec::new();
        }
        let Counts { newest_us, taken, failures, copied_bytes, last_duration_us, .. } =
            &self.counts;
        let Counts { unreadable, failed_removals, running, .. } = &self.counts;
        vec![
            Family::gauge(
                "wellspring_backup_last_success_timestamp_seconds",
                "The moment that the newest backup of this server in that place shows; 0 if there is none.",
                newest_us.load(Relaxed) as f64 / 1e6,
            ),
            Family::new(
                Kind::Counter,
                "wellspring_backups_total",
                "Scheduled backups since the start, finished or failed.",
            )
            .with(vec![("outcome", "finished".to_owned())], taken.load(Relaxed))
            .with(vec![("outcome", "failed".to_owned())], failures.load(Relaxed)),
            Family::new(
                Kind::Counter,
                "wellspring_backup_bytes_total",
                "Bytes copied by scheduled backups since the start.",
            )
            .with(Vec::new(), copied_bytes.load(Relaxed)),
            Family::gauge(
                "wellspring_backup_last_duration_seconds",
                "How long the last finished scheduled backup took.",
                last_duration_us.load(Relaxed) as f64 / 1e6,
            ),
            Family::gauge(
                "wellspring_backup_unreadable_manifests",
                "Backups in that place that are of no use, because their manifests are damaged, at the last look.",
                unreadable.load(Relaxed),
            ),
            Family::new(
                Kind::Counter,
                "wellspring_backup_failed_removals_total",
                "Scheduled backups since the start after which old ones could not be removed.",
            )
            .with(Vec::new(), failed_removals.load(Relaxed)),
            Family::gauge(
                "wellspring_backup_running",
                "1 while a scheduled backup is being taken.",
                running.load(Relaxed),
            ),
        ]
    }
}

impl Backups {
    /// Warns about backups in the place with a damaged manifest.
    fn note_unreadable(&self, unreadable: &[UnreadableManifest]) {
        let to = &self.config.backup_to;
        self.counts.unreadable.store(unreadable.len() as u64, Relaxed);
        for manifest in unreadable {
            let (backup, error, remedy) = (&manifest.name, &manifest.detail, manifest.remedy(to));
            tracing::error!(to, backup, error, remedy, "the manifest of a backup cannot be read");
        }
    }
}

/// What a backup reads of this process.
pub fn source(node: &Arc<Node>, clock: &Arc<dyn Clock>) -> OpenLogs {
    let listed = Arc::clone(node);
    let (gate, version) = (node.head_gate(), env!("CARGO_PKG_VERSION"));
    let logs = OpenLogs::new(gate, Arc::clone(clock), version, move || listed.all());
    logs.with_accounts(accounts_marker::is_marked(node.data()))
}
