//! The trace of a history, line by line.

use std::fmt::Write as _;

/// The lines so far.
#[derive(Debug, Default)]
pub struct Trace {
    text: String,
    aloud: bool,
}

impl Trace {
    /// An empty trace. `aloud`: whether each line is printed immediately.
    #[must_use]
    pub fn new(aloud: bool) -> Trace {
        Trace { text: String::new(), aloud }
    }

    /// Adds a line.
    pub fn line(&mut self, step: u64, now_us: u64, what: std::fmt::Arguments<'_>) {
        let begin = self.text.len();
        let _ = writeln!(self.text, "{step:>5} {:>9}.{:03} {what}", now_us / 1000, now_us % 1000);
        if self.aloud {
            print!("{}", &self.text[begin..]);
        }
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The last lines of a trace.
#[must_use]
pub fn last(text: &str, lines: usize) -> &str {
    let text = text.trim_end();
    let mut from = text.len();
    for _ in 0..lines {
        match text[..from].rfind('\n') {
            Some(at) => from = at,
            None => return text,
        }
    }
    text[from..].trim_start_matches('\n')
}
