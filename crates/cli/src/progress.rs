//! Progress of a long job: a bar on a terminal, otherwise a line every few seconds.

use crate::numbers::{grouped, megabytes};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use wellspring_log::{Clock, SystemClock};

const LINE_EVERY_US: u64 = 5_000_000;

/// Progress of one job.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    doing: &'static str,
    /// The counted things, in the plural.
    things: &'static str,
    total_bytes: Option<u64>,
    started_us: u64,
    line_us: u64,
}

impl Progress {
    /// Starts; `total_bytes` is the size of the input, if known.
    pub(crate) fn start(doing: &'static str, total_bytes: Option<u64>) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| bar(doing, total_bytes));
        let now = SystemClock.monotonic_us();
        Progress { bar, doing, things: "events", total_bytes, started_us: now, line_us: now }
    }

    /// The same, of other things than events.
    pub(crate) fn of(self, things: &'static str) -> Progress {
        Progress { things, ..self }
    }

    /// Seconds since it began, never zero.
    pub(crate) fn seconds(&self) -> f64 {
        (SystemClock.monotonic_us() - self.started_us).max(1) as f64 / 1e6
    }

    /// Shows the progress.
    pub(crate) fn update(&mut self, bytes: u64, count: u64) {
        let rate = grouped((count as f64 / self.seconds()) as u64);
        let message = format!("{} {}, {rate}/s", grouped(count), self.things);
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
            bar.set_message(message);
            return;
        }
        let now = SystemClock.monotonic_us();
        if now - self.line_us >= LINE_EVERY_US {
            self.line_us = now;
            let part = match self.total_bytes {
                Some(total) if total > 0 => format!(" ({}%)", bytes * 100 / total),
                _ => String::new(),
            };
            eprintln!("{}: {message}{part}", self.doing);
        }
    }

    /// Shows how many bytes are done, of how many.
    pub(crate) fn update_bytes(&mut self, done: u64, all: u64) {
        let rate = megabytes((done as f64 / self.seconds()) as u64);
        if let Some(bar) = &self.bar {
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(format!("{}, {rate}/s", megabytes(done)));
            return;
        }
        let now = SystemClock.monotonic_us();
        if now - self.line_us >= LINE_EVERY_US {
            self.line_us = now;
            let part = (done * 100).checked_div(all).unwrap_or(100);
            eprintln!(
                "{}: {} of {} ({part}%), {rate}/s",
                self.doing,
                megabytes(done),
                megabytes(all)
            );
        }
    }

    /// Writes a line without breaking the bar.
    pub(crate) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(doing: &'static str, total_bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match total_bytes {
        Some(total) => (
            ProgressBar::new(total),
            // Fits into 80 columns.
            "{prefix} [{bar:20}] {percent:>3}%  {msg}, ETA {eta}",
        ),
        None => (ProgressBar::new_spinner(), "{prefix} {spinner} {msg}  {bytes}  {elapsed}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(doing);
    bar
}
