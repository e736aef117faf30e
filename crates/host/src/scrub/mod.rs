//! Reading the data folder in the background, again and again, so that damage shows while a backup
//! may still have what is damaged: every log, and every other file that the server keeps.
//!
//! One thread reads at one rate for all logs. Sealed segments and indexes are read with direct I/O,
//! so a block that rots under a cached page is found and the cache stays the server's; where the
//! file system refuses that, the range is dropped from the cache first. The segment that is being
//! written is read through the cache. Batches, sections of indexes and the epoch are checked by
//! their checksums; that an index agrees with its segment is for `wellspring verify`.
//!
//! Each other file that is kept has a check, made by the room that owns it (`kept_file`), which
//! mends what it finds:
//!
//! | file | told by | then |
//! |---|---|---|
//! | `epoch` | the epoch that the process has claimed | written again |
//! | `journal` of a copy | its checksum, and the log's history | written again by the journal |
//! | `views/*.snapshot` | the checksum at its end | removed; an open view writes another |
//! | `token-secret` | the secret in memory, if nothing but the content has changed since it was read; also if it holds no secret at all | written again |
//! | `links-visitor-key` | the key in memory; only this process writes the file | written again |
//! | `has-accounts` | its text, and that there are accounts | written again |
//!
//! Mended damage is a warning until a whole pass finds none (`mended`). No check tells a digit of
//! `token-secret` that changed together with the file's time of change, which is adopted as a
//! rotation; nor rot of a key file or of digits of `epoch` while no server runs.
//!
//! Each pass also compares the inode of every open segment with that of its name, because a segment
//! that is removed or replaced under a server reads well until the server ends. If the data folder
//! itself is no longer the one that was opened (`log/storage/held_folder.rs`), nothing is written
//! into it. A log that is closed during a pass loses its files under the scrub, so that is asked
//! last, and then nothing that was found of it counts.

mod mended;

use crate::backup::BackupConfig;
use crate::kept_file::{FileCheck, KeptFile, Passed};
use crate::node::Node;
use crate::setup::SetupError;
use crate::stats::family::{Family, Kind};
use crate::threads::spawn_yielding;
use crate::wire::problem::Problem;
use mended::{MendedFile, MendedFiles};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;
use tokio::sync::watch;
use wellspring_backup::RateLimit;
use wellspring_log::{Clock, Log, ScrubEnd, ScrubReport};

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
    /// Files found damaged and mended.
    mended_files: AtomicU64,
}

/// The passes over the data folder.
pub(crate) struct Scrubs {
    bytes_per_s: u64,
    every_s: u64,
    counts: Counts,
    mended: MendedFiles,
}

/// Lists the files that belong to no log: of the node itself, and of its faces.
pub(crate) type OtherFiles = Box<dyn Fn() -> Vec<KeptFile> + Send>;

/// What a checked file belongs to.
enum FileOwner<'a> {
    /// A log, by its name.
    Log(&'a str, &'a Log),
    /// The node, or one of its faces.
    Node(&'a Node),
}

impl FileOwner<'_> {
    fn log_name(&self) -> Option<&str> {
        match self {
            FileOwner::Log(name, _) => Some(name),
            FileOwner::Node(_) => None,
        }
    }

    /// Checks that the folder that holds the file is still this server's.
    fn require_folder(&self) -> io::Result<()> {
        match self {
            FileOwner::Log(_, log) => log.require_folder(),
            FileOwner::Node(node) => node.require_folder(),
        }
    }

    /// Whether it is a log that was deleted meanwhile.
    fn is_gone(&self) -> bool {
        match self {
            FileOwner::Log(_, log) => log.feed().is_closed(),
            FileOwner::Node(_) => false,
        }
    }
}

/// What a pass reads.
struct Scope {
    node: Arc<Node>,
    other_files: OtherFiles,
    stopping: watch::Receiver<bool>,
}

impl Scrubs {
    /// Those that the settings ask for.
    pub(crate) fn new(config: &BackupConfig) -> Scrubs {
        Scrubs {
            bytes_per_s: config.scrub_bytes_per_s,
            every_s: config.scrub_every_s,
            counts: Counts::default(),
            mended: MendedFiles::default(),
        }
    }

    /// Makes passes until the server stops, if the settings ask for any.
    ///
    /// # Errors
    /// The system provides no thread.
    pub(crate) fn start(
        self: &Arc<Scrubs>,
        node: &Arc<Node>,
        other_files: OtherFiles,
        clock: &Arc<dyn Clock>,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), SetupError> {
        if self.bytes_per_s == 0 {
            return Ok(());
        }
        let scrubs = Arc::clone(self);
        let scope = Scope { node: Arc::clone(node), other_files, stopping };
        let clock = Arc::clone(clock);
        let run = move || scrubs.run(&scope, &*clock);
        spawn_yielding("scrub".to_owned(), run).map(drop)
    }

    fn run(&self, scope: &Scope, clock: &dyn Clock) {
        let mut due_us = clock.monotonic_us() + FIRST_AFTER_S.min(self.every_s) * 1_000_000;
        while !*scope.stopping.borrow() {
            if clock.monotonic_us() < due_us {
                sleep(LOOK_EVERY);
                continue;
            }
            if self.pass(scope).is_continue() {
                self.mended.end_pass();
                self.counts.finished_us.store(clock.wall_us(), Relaxed);
                self.counts.passes.fetch_add(1, Relaxed);
            }
            due_us = clock.monotonic_us() + self.every_s.max(1) * 1_000_000;
        }
    }

    /// One pass over the data folder; a break if the server stops.
    fn pass(&self, scope: &Scope) -> ControlFlow<()> {
        let mut rate_limit = RateLimit::new(Some(self.bytes_per_s));
        let mut bad_files = 0;
        let mut passed = |bytes| {
            rate_limit.throttle(bytes);
            self.counts.bytes.fetch_add(bytes, Relaxed);
            if *scope.stopping.borrow() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        for (name, log) in scope.node.all() {
            bad_files += self.scrub_log(&name, &log, &mut passed);
            for file in scope.node.snapshot_files(&name) {
                bad_files += self.check_file(&FileOwner::Log(&name, &log), file, &mut passed);
            }
        }
        for file in (scope.other_files)() {
            bad_files += self.check_file(&FileOwner::Node(&scope.node), file, &mut passed);
        }
        if *scope.stopping.borrow() {
            return ControlFlow::Break(());
        }
        self.counts.bad_files.store(bad_files, Relaxed);
        ControlFlow::Continue(())
    }

    /// Reads a log; returns the number of files that need attention.
    fn scrub_log(&self, name: &str, log: &Log, passed: Passed<'_>) -> u64 {
        let mut passed = |bytes| match passed(bytes) {
            // A log that was deleted meanwhile is none to wait for.
            ControlFlow::Continue(()) if log.feed().is_closed() => ControlFlow::Break(()),
            flow => flow,
        };
        let ScrubEnd::Complete(report) = log.scrub(&mut passed) else { return 0 };
        let ScrubReport { damage, unread, mended, .. } = report;
        for what in &unread {
            tracing::error!(log = name, what, "a check could not read a file");
        }
        for file in mended {
            self.note_mended(Some(name), format!("logs/{name}/{file}"));
        }
        // Damage of segments is logged where the log is watched, however it was found.
        (damage.len() + unread.len()) as u64
    }

    /// Checks a file; returns 1 if it needs attention.
    fn check_file(&self, owner: &FileOwner<'_>, file: KeptFile, passed: Passed<'_>) -> u64 {
        let (name, log) = (file.name.clone(), owner.log_name());
        // Its path may lead into the folder of another server by now.
        match owner.require_folder().and_then(|()| file.check(passed)) {
            Ok(FileCheck::Sound) => 0,
            Ok(FileCheck::Mended) => {
                self.note_mended(log, name);
                0
            }
            Err(_) if owner.is_gone() => 0,
            Err(error) => {
                tracing::error!(log, file = name, %error, "a check could not read a file");
                1
            }
        }
    }

    fn note_mended(&self, log: Option<&str>, name: String) {
        tracing::warn!(log, file = name, "a damaged file was mended; no data was lost");
        self.counts.mended_files.fetch_add(1, Relaxed);
        self.mended.add(MendedFile { log: log.map(str::to_owned), name });
    }

    /// A warning about each file that the last pass, or the one under way, has mended.
    pub(crate) fn warnings(&self) -> Vec<Problem> {
        self.mended.warnings()
    }

    /// The figures.
    pub(crate) fn families(&self) -> Vec<Family> {
        let Counts { passes, bytes, finished_us, bad_files, mended_files } = &self.counts;
        vec![
            Family::gauge(
                "wellspring_scrub_last_finished_timestamp_seconds",
                "When a pass over every byte of the data folder last ended; 0 if none has since the start.",
                finished_us.load(Relaxed) as f64 / 1e6,
            ),
            Family::gauge(
                "wellspring_scrub_damaged_files",
                "Files that the last pass found damaged and could not mend, or could not read.",
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
                "wellspring_scrub_mended_files_total",
                "Damaged files that passes found and mended; nothing is lost with them.",
            )
            .with(Vec::new(), mended_files.load(Relaxed)),
            Family::new(
                Kind::Counter,
                "wellspring_scrub_bytes_total",
                "Bytes read by passes since the start.",
            )
            .with(Vec::new(), bytes.load(Relaxed)),
        ]
    }
}
