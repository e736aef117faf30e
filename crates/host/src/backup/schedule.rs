//! The schedule: when a backup is due, and how soon one that failed is tried again.

use super::destination::Destination;
use super::known_place::KnownPlace;
use super::{Backups, lost_ends, source};
use crate::names::SYSTEM_LOG;
use crate::node::Node;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::Duration;
use tokio::sync::watch;
use wellspring_backup::catalog;
use wellspring_backup::prune::prune;
use wellspring_backup::retention::{StayReason, by_reason};
use wellspring_backup::take::{TakenBackup, take};
use wellspring_backup::{BackupError, BackupResult, RateLimit, Store};
use wellspring_log::Clock;

/// The first pause after a place that another process works on.
const BUSY_PAUSE_S: u64 = 60;
/// The first pause after any other failure.
const FIRST_PAUSE_S: u64 = 300;
/// The longest pause after a failure. The alert on failures looks two hours back.
const LONGEST_PAUSE_S: u64 = 3600;
/// Between two looks whether the server stops.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The pause after a failure, the `failures`th in a row: twice as long each time, and never longer
/// than the time between two backups.
fn pause_s(error: &BackupError, failures: u32, every_s: u64) -> u64 {
    let first_s = match error {
        BackupError::Busy(_) => BUSY_PAUSE_S,
        _ => FIRST_PAUSE_S,
    };
    let doubled = 1 << failures.saturating_sub(1).min(10);
    (first_s * doubled).min(LONGEST_PAUSE_S).min(every_s)
}

/// The schedule, on a thread of its own.
pub(super) struct Schedule {
    pub(super) backups: Arc<Backups>,
    pub(super) node: Arc<Node>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) destination: Destination,
    pub(super) stopping: watch::Receiver<bool>,
}

impl Schedule {
    /// Takes backups until the server stops.
    pub(super) fn run(&self) {
        let every_s = self.backups.config.backup_every_s;
        self.look();
        let mut due_us = self.clock.monotonic_us().saturating_add(self.first_wait_us());
        let mut failures = 0;
        while !*self.stopping.borrow() {
            if self.clock.monotonic_us() < due_us {
                sleep(LOOK_EVERY);
                continue;
            }
            let wait_s = match self.attempt() {
                Ok(()) => {
                    failures = 0;
                    every_s
                }
                Err(error) => {
                    failures += 1;
                    let retry_in_s = pause_s(&error, failures, every_s);
                    let to = &self.backups.config.backup_to;
                    tracing::error!(%error, to, retry_in_s, "a scheduled backup failed");
                    retry_in_s
                }
            };
            due_us = self.clock.monotonic_us().saturating_add(wait_s * 1_000_000);
        }
    }

    /// How long the first backup waits, by the age of the newest there is. From then on in time
    /// that no clock set by hand can stretch.
    fn first_wait_us(&self) -> u64 {
        let Backups { config, counts, .. } = &*self.backups;
        let every_us = config.backup_every_s * 1_000_000;
        let newest_us = counts.newest_us.load(Relaxed);
        let now_us = self.clock.wall_us();
        if newest_us > now_us {
            tracing::warn!(to = config.backup_to, "the newest backup is dated in the future");
        }
        every_us.saturating_sub(now_us.checked_sub(newest_us).unwrap_or(every_us))
    }

    /// Takes a backup, and counts it.
    fn attempt(&self) -> BackupResult<()> {
        let counts = &self.backups.counts;
        counts.running.store(1, Relaxed);
        let begun_us = self.clock.monotonic_us();
        let taken = self.take();
        counts.running.store(0, Relaxed);
        match taken {
            Ok(taken) => {
                self.note(&taken, self.clock.monotonic_us() - begun_us);
                Ok(())
            }
            Err(error) => {
                counts.failures.fetch_add(1, Relaxed);
                self.look();
                Err(error)
            }
        }
    }

    /// Looks for the newest backup, unless one is known: the figure outlives a restart.
    fn look(&self) {
        let Backups { config, counts, .. } = &*self.backups;
        if counts.newest_us.load(Relaxed) > 0 {
            return;
        }
        match self.newest_us() {
            Ok(0) => {}
            Ok(newest_us) => {
                counts.newest_us.store(newest_us, Relaxed);
                self.remember_place();
            }
            Err(error) => tracing::error!(%error, to = config.backup_to, "cannot read backups"),
        }
    }

    fn note(&self, taken: &TakenBackup, duration_us: u64) {
        // Before the backup is told: a server killed in between would not know its place.
        self.remember_place();
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
    fn newest_us(&self) -> BackupResult<u64> {
        let Some(mut store) = self.destination.existing()? else { return Ok(0) };
        let newest = catalog::newest_with(&mut *store, &self.histories())?;
        Ok(newest.map_or(0, |manifest| manifest.taken_at_us))
    }

    /// The ids of the histories of all logs.
    fn histories(&self) -> Vec<String> {
        let histories = self.node.all().into_iter().filter_map(|(_, log)| log.history());
        histories.map(|history| history.to_string()).collect()
    }

    /// The place, as far as it is one of this server.
    fn known_place(&self) -> Option<KnownPlace<'_>> {
        let history = self.node.get(SYSTEM_LOG)?.history()?.to_string();
        let place = &self.backups.config.backup_to;
        Some(KnownPlace { data: self.node.data(), place, history })
    }

    /// Records that the place has had a backup of this server.
    fn remember_place(&self) {
        let written = match self.known_place() {
            Some(known) => self.node.require_folder().and_then(|()| known.record()),
            None => Ok(()),
        };
        if let Err(error) = written {
            let to = &self.backups.config.backup_to;
            tracing::warn!(%error, to, "cannot record that the place has backups of this server");
        }
    }

    /// Refuses a place that has had backups of this server and has none now: a disk that is not
    /// mounted leaves an empty folder, and a backup in there is none.
    fn refuse_another_place(&self) -> BackupResult<()> {
        if !self.known_place().is_some_and(|known| known.is_recorded()) {
            return Ok(());
        }
        if let Some(mut store) = self.destination.existing()?
            && catalog::may_have(&mut *store, &self.histories())?
        {
            return Ok(());
        }
        let to = &self.backups.config.backup_to;
        let what = format!(
            "{to} holds no backup of this server, and has had some; nothing was written. Check that \
             the disk or share is mounted there. If the place is meant to be a new one, take one \
             backup by hand, and the schedule goes on: `wellspring backup --to {to}`"
        );
        Err(BackupError::NotFound { what })
    }

    fn take(&self) -> BackupResult<TakenBackup> {
        let config = &self.backups.config;
        self.refuse_another_place()?;
        let mut store = self.destination.create()?;
        let rate = Some(config.backup_bytes_per_s).filter(|&rate| rate > 0);
        let mut source = source(&self.node, &self.clock);
        let taken = take(&mut source, &mut *store, &mut RateLimit::new(rate), &mut |_, _| ())?;
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

#[cfg(test)]
mod tests {
    use super::super::Counts;
    use super::*;
    use crate::config::HostConfig;
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::AtomicU64;
    use tempfile::TempDir;
    use wellspring_backup::store::FolderStore;
    use wellspring_log::SystemClock;

    /// Time passes when the test says so.
    struct HandClock(AtomicU64);

    impl Clock for HandClock {
        fn wall_us(&self) -> u64 {
            SystemClock.wall_us()
        }

        fn monotonic_us(&self) -> u64 {
            self.0.load(Relaxed)
        }
    }

    fn shown(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    /// The logs of a server, and its settings, with backups to `place`.
    fn server(data: &Path, place: &Path) -> (Arc<Node>, HostConfig) {
        let flags = ["--data", shown(data), "--backup-to", shown(place)];
        let config = HostConfig::for_tests(&flags);
        (Arc::new(config.node(Arc::new(SystemClock))), config)
    }

    /// The schedule of a server that has just started.
    fn schedule(node: &Arc<Node>, place: &Path) -> Schedule {
        let flags = ["--data", shown(node.data()), "--backup-to", shown(place)];
        let backups = Backups::open(HostConfig::for_tests(&flags).backup).unwrap();
        let destination = backups.destination.clone().unwrap();
        let (stop, stopping) = watch::channel(false);
        std::mem::forget(stop);
        let schedule = Schedule {
            backups: Arc::new(backups),
            node: Arc::clone(node),
            clock: Arc::new(SystemClock),
            destination,
            stopping,
        };
        schedule.look();
        schedule
    }

    fn by_hand(node: &Arc<Node>, place: &Path) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut store = FolderStore::create(place).unwrap();
        let mut source = source(node, &clock);
        take(&mut source, &mut store, &mut RateLimit::new(None), &mut |_, _| ()).unwrap();
    }

    #[test]
    fn a_place_without_its_backups_is_another_one_until_there_is_one_by_hand() {
        let dir = TempDir::new().unwrap();
        let [data, place, away] = ["data", "place", "away"].map(|name| dir.path().join(name));
        let (node, _) = server(&data, &place);
        // The first one may make the folder.
        let running = schedule(&node, &place);
        running.attempt().unwrap();
        let newest_us = running.backups.counts.newest_us.load(Relaxed);
        fs::rename(&place, &away).unwrap();
        let refused = |schedule: &Schedule| {
            let failures = schedule.backups.counts.failures.load(Relaxed);
            let error = schedule.attempt().unwrap_err().to_string();
            for part in ["holds no backup of this server", "mounted", "`wellspring backup --to "] {
                assert!(error.contains(part), "{part}: {error}");
            }
            assert_eq!(schedule.backups.counts.failures.load(Relaxed), failures + 1);
        };
        refused(&running);
        assert!(!place.exists(), "nothing is made where the disk is not mounted");
        assert_eq!(running.backups.counts.newest_us.load(Relaxed), newest_us);
        fs::create_dir(&place).unwrap();
        refused(&running);
        let restarted = schedule(&node, &place);
        refused(&restarted);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        assert_eq!(restarted.backups.counts.newest_us.load(Relaxed), 0);
        // Another server's backups are not its own.
        let (other, _) = server(&dir.path().join("other"), &place);
        by_hand(&other, &place);
        refused(&restarted);
        // The disk is back.
        fs::remove_dir_all(&place).unwrap();
        fs::rename(&away, &place).unwrap();
        restarted.attempt().unwrap();
        // A damaged manifest may be that of its own backup.
        for manifest in fs::read_dir(place.join("backups")).unwrap() {
            fs::write(manifest.unwrap().path(), b"{").unwrap();
        }
        restarted.attempt().unwrap();
        // A new disk, on purpose.
        fs::remove_dir_all(&place).unwrap();
        refused(&restarted);
        by_hand(&node, &place);
        restarted.attempt().unwrap();
        // Another place has had none.
        schedule(&node, &dir.path().join("elsewhere")).attempt().unwrap();
    }

    #[test]
    fn a_start_that_finds_its_backups_remembers_the_place() {
        let dir = TempDir::new().unwrap();
        let [data, place] = ["data", "place"].map(|name| dir.path().join(name));
        let (node, _) = server(&data, &place);
        by_hand(&node, &place);
        let started = schedule(&node, &place);
        fs::remove_dir_all(&place).unwrap();
        started.attempt().unwrap_err();
        // The record is that of the log system: restored, it is another server's.
        let known = started.known_place().unwrap();
        KnownPlace { history: "0000000000000001".to_owned(), ..known }.record().unwrap();
        started.attempt().unwrap();
    }

    #[test]
    fn pauses_after_failures_grow_up_to_the_time_between_two_backups() {
        let busy = BackupError::Busy(String::new());
        let other = BackupError::NotFound { what: String::new() };
        let pauses = |error, every_s| [1, 2, 3, 4, 5, 99].map(|at| pause_s(error, at, every_s));
        assert_eq!(pauses(&busy, 86_400), [60, 120, 240, 480, 960, 3600]);
        assert_eq!(pauses(&other, 86_400), [300, 600, 1200, 2400, 3600, 3600]);
        assert_eq!(pauses(&other, 500), [300, 500, 500, 500, 500, 500]);
        assert_eq!(pauses(&busy, 60), [60; 6]);
    }

    #[test]
    fn a_backup_that_met_another_process_is_taken_a_minute_later() {
        let dir = TempDir::new().unwrap();
        let [data, place] = ["data", "place"].map(|name| dir.path().join(name));
        let (node, config) = server(&data, &place);
        let backups = Arc::new(Backups::open(config.backup).unwrap());
        let other = FolderStore::create(&place).unwrap();
        let hand = Arc::new(HandClock(AtomicU64::new(1)));
        let clock: Arc<dyn Clock> = Arc::clone(&hand) as Arc<dyn Clock>;
        let (stop, stopping) = watch::channel(false);
        backups.start(&node, &clock, stopping).unwrap();
        let counts = || {
            let Counts { taken, failures, .. } = &backups.counts;
            (taken.load(Relaxed), failures.load(Relaxed))
        };
        let reaches = |wanted: (u64, u64)| {
            let is_reached = |_: &u32| {
                sleep(Duration::from_millis(50));
                counts() == wanted
            };
            assert!((0..600).any(|at| is_reached(&at)), "{wanted:?}: {:?}", counts());
        };
        reaches((0, 1));
        drop(other);
        hand.0.fetch_add(59_000_000, Relaxed);
        sleep(3 * LOOK_EVERY);
        assert_eq!(counts(), (0, 1));
        hand.0.fetch_add(2_000_000, Relaxed);
        reaches((1, 1));
        stop.send(true).unwrap();
    }
}
