//! What a person sees while it measures: a live view on a terminal, else a line now and then.

use crate::live::Live;
use std::io::IsTerminal as _;
use wellspring_load::engine::{Observer, Progress};
use wellspring_load::numbers;

/// Seconds between two plain lines.
const LINE_EVERY_S: u64 = 5;

/// Shows progress on standard error.
pub(crate) enum Watch {
    /// Nothing.
    Quiet,
    /// Lines.
    Plain {
        /// What is being run.
        what: String,
        /// The second of the last line.
        told_s: u64,
    },
    /// The live view.
    Live(Box<Live>),
}

impl Watch {
    /// The view that fits: none if quiet, lines if standard error is no terminal.
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            return Watch::Quiet;
        }
        let plain = Watch::Plain { what: String::new(), told_s: 0 };
        if !std::io::stderr().is_terminal() {
            return plain;
        }
        // A terminal that cannot be drawn on gets lines.
        Live::new().map_or(plain, |live| Watch::Live(Box::new(live)))
    }

    /// Takes the live view away, so that the report can be written.
    pub(crate) fn close(&mut self) {
        if let Watch::Live(live) = self {
            live.close();
        }
        *self = Watch::Quiet;
    }
}

impl Observer for Watch {
    fn progress(&mut self, progress: &Progress<'_>) {
        match self {
            Watch::Quiet => {}
            Watch::Live(live) => live.draw(progress),
            Watch::Plain { what, told_s } => {
                let second = progress.elapsed_ns / 1_000_000_000;
                if progress.warming_up || second < *told_s + LINE_EVERY_S {
                    return;
                }
                *told_s = second;
                eprintln!("{}", line(what, second, progress));
            }
        }
    }

    fn begin(&mut self, now: &str) {
        match self {
            Watch::Quiet => {}
            Watch::Live(live) => live.begin(now),
            Watch::Plain { what, told_s } => {
                now.clone_into(what);
                *told_s = 0;
                eprintln!("{now} ...");
            }
        }
    }
}

fn line(what: &str, second: u64, progress: &Progress<'_>) -> String {
    let mut line = format!(
        "{what}: {second} s, {} answered, {} failed",
        numbers::count(progress.successes),
        numbers::count(progress.failures)
    );
    if let Some(last) = progress.slices.last() {
        line.push_str(&format!(
            "; last second {}/s, p50 {}, p99 {}",
            numbers::count(last.successes),
            numbers::duration(last.p50_ns as f64),
            numbers::duration(last.p99_ns as f64)
        ));
    }
    line
}
