//! Reading every log in the background, again and again, so that damage shows while a backup may
//! still have what is damaged.

use crate::backup::BackupConfig;
use crate::node::Node;
use crate::stats::family::{Family, Kind};
use crate::threads::spawn_yielding;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;
use tokio::sync::watch;
use wellspring_backup::Pace;
use wellspring_log::{Clock, ScrubEnd, ScrubReport};

/// Between two looks whether the server stops.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long after the start the first pass begins.
const FIRST_AFTER_S: u64 = 10;

/// Figures of the passes of this process.
#[derive(Debug, Default)]
struct Counts {
    passes: AtomicU64,
    bytes: AtomicU64,
    /// When the last complete pass ended, µs since 1970 UTC; 0 if none has.
    finished_us: AtomicU64,
    /// Files that the last pass found damaged or could not read.
    bad_files: AtomicU64,
}

/// The passes over all logs.
pub(crate) struct Scrubs {
    bytes_per_s: u64,
    every_s: u64,
    counts: Counts,
}

impl Scrubs {
    /// Those that the settings ask for.
    pub(crate) fn new(config: &BackupConfig) -> Scrubs {
        Scrubs {
            bytes_per_s: config.scrub_bytes_per_s,
            every_s: config.scrub_every_s,
            counts: Counts::default(),
        }
    }

    /// Makes passes until the server stops, if the settings ask for any.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(crate) fn start(
        self: &Arc<Scrubs>,
        node: &Arc<Node>,
        clock: &Arc<dyn Clock>,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), String> {
        if self.bytes_per_s == 0 {
            return Ok(());
        }
        let scrubs = Arc::clone(self);
        let (node, clock) = (Arc::clone(node), Arc::clone(clock));
        let run = move || scrubs.run(&node, &*clock, &stopping);
        spawn_yielding("scrub".to_owned(), run).map(drop)
    }

    fn run(&self, node: &Node, clock: &dyn Clock, stopping: &watch::Receiver<bool>) {
        let mut due_us = clock.monotonic_us() + FIRST_AFTER_S.min(self.every_s) * 1_000_000;
        while !*stopping.borrow() {
            if clock.monotonic_us() < due_us {
                sleep(LOOK_EVERY);
                continue;
            }
            if self.pass(node, stopping).is_continue() {
                self.counts.finished_us.store(clock.wall_us(), Relaxed);
                self.counts.passes.fetch_add(1, Relaxed);
            }
            due_us = clock.monotonic_us() + self.every_s.max(1) * 1_000_000;
        }
    }

    /// One pass over all logs; a break if the server stops.
    fn pass(&self, node: &Node, stopping: &watch::Receiver<bool>) -> ControlFlow<()> {
        let mut pace = Pace::new(Some(self.bytes_per_s));
        let mut bad_files = 0;
        for (name, log) in node.all() {
            let mut passed = |bytes| {
                pace.pass(bytes);
                self.counts.bytes.fetch_add(bytes, Relaxed);
                // A log that was deleted meanwhile is none to wait for.
                match *stopping.borrow() || log.feed().is_closed() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            match log.scrub(&mut passed) {
                ScrubEnd::Complete(report) => bad_files += tell(&name, &report),
                ScrubEnd::Stopped if *stopping.borrow() => return ControlFlow::Break(()),
                ScrubEnd::Stopped => {}
            }
        }
        self.counts.bad_files.store(bad_files, Relaxed);
        ControlFlow::Continue(())
    }

    /// The figures.
    pub(crate) fn families(&self) -> Vec<Family> {
        let Counts { passes, bytes, finished_us, bad_files } = &self.counts;
        vec![
            Family::gauge(
                "wellspring_scrub_last_finished_timestamp_seconds",
                "When a pass over every byte of all logs last ended; 0 if none has since the start.",
                finished_us.load(Relaxed) as f64 / 1e6,
            ),
            Family::gauge(
                "wellspring_scrub_damaged_files",
                "Files that the last pass found damaged, or could not read.",
                bad_files.load(Relaxed),
            ),
            Family::new(
                Kind::Counter,
                "wellspring_scrub_passes_total",
                "Complete passes since the start.",
            )
            .with(Vec::new(), passes.load(Relaxed)),
            Family::new(
                Kind::Counter,
                "wellspring_scrub_bytes_total",
                "Bytes read by passes since the start.",
            )
            .with(Vec::new(), bytes.load(Relaxed)),
        ]
    }
}

/// Logs what nothing else logs, and returns the number of files that need attention. Damage of
/// segments and rebuilt indexes are logged where the log is watched, however they were found.
fn tell(log: &str, report: &ScrubReport) -> u64 {
    for what in &report.unread {
        tracing::error!(log, what, "a check could not read a file");
    }
    if report.is_epoch_mended {
        tracing::warn!(log, "the file epoch was damaged and has been written again");
    }
    (report.damage.len() + report.unread.len()) as u64
}
