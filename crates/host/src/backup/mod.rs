//! Backups that the server takes of itself, and what a backup from outside reads.

mod config;
mod destination;
mod lost_ends;

pub use config::BackupConfig;

use crate::access::sealed;
use crate::node::Node;
use crate::stats::family::{Family, Kind};
use crate::threads::spawn_yielding;
use destination::Destination;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;
use tokio::sync::watch;
use wellspring_backup::catalog;
use wellspring_backup::prune::prune;
use wellspring_backup::retention::{StayReason, by_reason};
use wellspring_backup::source::OpenLogs;
use wellspring_backup::take::{TakenBackup, take};
use wellspring_backup::{BackupError, Pace, Store, UnreadableManifest};
use wellspring_log::Clock;

/// How long a failed backup waits for another attempt.
const RETRY_S: u64 = 300;
/// Between two looks whether the server stops.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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
    pub(crate) fn open(config: BackupConfig) -> Result<Backups, String> {
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
    ) -> Result<(), String> {
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
    /// Tells of backups in the place that are of no use.
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
    logs.with_accounts(sealed::is_marked(node.data()))
}

struct Schedule {
    backups: Arc<Backups>,
    node: Arc<Node>,
    clock: Arc<dyn Clock>,
    destination: Destination,
    stopping: watch::Receiver<bool>,
}

impl Schedule {
    fn run(&self) {
        let Backups { config, counts, .. } = &*self.backups;
        self.look();
        let every_us = config.backup_every_s * 1_000_000;
        // From here on in time that no clock set by hand can stretch.
        let newest_us = counts.newest_us.load(Relaxed);
        let now_us = self.clock.wall_us();
        if newest_us > now_us {
            tracing::warn!(to = config.backup_to, "the newest backup is dated in the future");
        }
        let age_us = now_us.checked_sub(newest_us).unwrap_or(every_us);
        let wait_us = every_us.saturating_sub(age_us);
        let mut due_us = self.clock.monotonic_us().saturating_add(wait_us);
        while !*self.stopping.borrow() {
            if self.clock.monotonic_us() < due_us {
                sleep(LOOK_EVERY);
                continue;
            }
            counts.running.store(1, Relaxed);
            let begun_us = self.clock.monotonic_us();
            let taken = self.take();
            counts.running.store(0, Relaxed);
            let wait_us = match taken {
                Ok(taken) => {
                    self.note(&taken, self.clock.monotonic_us() - begun_us);
                    every_us
                }
                Err(error) => {
                    counts.failures.fetch_add(1, Relaxed);
                    self.look();
                    tracing::error!(%error, to = config.backup_to, "a scheduled backup failed");
                    every_us.min(RETRY_S * 1_000_000)
                }
            };
            due_us = self.clock.monotonic_us().saturating_add(wait_us);
        }
    }

    /// Looks for the newest backup, unless one is known: the figure outlives a restart.
    fn look(&self) {
        let Backups { config, counts, .. } = &*self.backups;
        if counts.newest_us.load(Relaxed) > 0 {
            return;
        }
        match self.newest_us() {
            Ok(newest_us) => counts.newest_us.store(newest_us, Relaxed),
            Err(error) => tracing::error!(%error, to = config.backup_to, "cannot read backups"),
        }
    }

    fn note(&self, taken: &TakenBackup, duration_us: u64) {
        let Backups { config, counts, .. } = &*self.backups;
        counts.newest_us.store(taken.manifest.taken_at_us, Relaxed);
        counts.taken.fetch_add(1, Relaxed);
        counts.copied_bytes.fetch_add(taken.copied_bytes, Relaxed);
        counts.last_duration_us.store(duration_us, Relaxed);
        tracing::info!(
            name = taken.manifest.name,
            to = config.backup_to,
            events = taken.manifest.events(),
            copied_bytes = taken.copied_bytes,
            reused_bytes = taken.reused_bytes,
            "a scheduled backup is finished"
        );
        for (log, lost) in &taken.lost_ends {
            lost_ends::tell(log, lost);
        }
        self.backups.note_unreadable(&taken.unreadable);
    }

    /// The moment that the newest backup of this server shows, µs since 1970 UTC; 0 if there is
    /// none.
    fn newest_us(&self) -> Result<u64, BackupError> {
        let Some(mut store) = self.destination.existing()? else { return Ok(0) };
        let histories = self.node.all().into_iter().filter_map(|(_, log)| log.history());
        let histories: Vec<_> = histories.map(|history| history.to_string()).collect();
        let newest = catalog::newest_with(&mut *store, &histories)?;
        Ok(newest.map_or(0, |manifest| manifest.taken_at_us))
    }

    fn take(&self) -> Result<TakenBackup, BackupError> {
        let config = &self.backups.config;
        let mut store = self.destination.create()?;
        let rate = Some(config.backup_bytes_per_s).filter(|&rate| rate > 0);
        let mut source = source(&self.node, &self.clock);
        let taken = take(&mut source, &mut *store, &mut Pace::new(rate), &mut |_, _| ())?;
        self.remove_old(&mut *store);
        Ok(taken)
    }

    /// Removes old backups. The new one is whole, whatever becomes of them.
    fn remove_old(&self, store: &mut dyn Store) {
        let Backups { config, counts, .. } = &*self.backups;
        let to = &config.backup_to;
        let pruned = match prune(store, config.backup_keep) {
            Ok(pruned) => pruned,
            Err(error) => {
                counts.failed_removals.fetch_add(1, Relaxed);
                tracing::error!(%error, to, "old backups could not be removed");
                return;
            }
        };
        if !pruned.backups.is_empty() {
            tracing::info!(backups = ?pruned.backups, bytes = pruned.bytes, "old backups removed");
        }
        for (reason, backups) in by_reason(&pruned.staying) {
            let remedy = format!("wellspring backup remove --from {to} NAME");
            let told = "backups stay until they are named";
            match reason {
                StayReason::OtherServer => tracing::info!(to, ?backups, %reason, remedy, "{told}"),
                _ => tracing::warn!(to, ?backups, %reason, remedy, "{told}"),
            }
        }
    }
}
