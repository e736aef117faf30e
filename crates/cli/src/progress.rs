//! How a long job shows that it moves: a bar on a terminal, else a line every few seconds.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use wellspring_log::{Clock, SystemClock};

const LINE_EVERY_US: u64 = 5_000_000;

/// Progress of one job.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    doing: &'static str,
    /// What is counted, in the plural.
    things: &'static str,
    total_bytes: Option<u64>,
    started_us: u64,
    line_us: u64,
}

impl Progress {
    /// Begins; `total_bytes` is what the job's input holds, if that is known.
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

    /// Tells how far it is.
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

    /// Says something in between, without tearing the bar.
    pub(crate) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Takes the bar away.
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

/// A number of things: `1 event`, `252,484 events`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A number with its thousands apart: `252,484`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes for people: `31.1 MB`.
pub(crate) fn megabytes(bytes: u64) -> String {
    if bytes < 100_000 {
        return format!("{} bytes", grouped(bytes));
    }
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let indexes = [0, 1, 2, 1_000].map(|number| counted(number, "index", "indexes"));
        assert_eq!(indexes, ["0 indexes", "1 index", "2 indexes", "1,000 indexes"]);
    }

    #[test]
    fn numbers_read_well() {
        let texts = [0, 12, 999, 1000, 252_484, 1_000_000].map(grouped);
        assert_eq!(texts, ["0", "12", "999", "1,000", "252,484", "1,000,000"]);
        assert_eq!(megabytes(31_053_850), "31.1 MB");
        assert_eq!(megabytes(1500), "1,500 bytes");
    }
}
