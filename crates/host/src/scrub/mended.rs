//! The files that passes have found damaged and mended: a warning until a whole pass finds none.

use crate::wire::problem::{self, Problem};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MendedFile {
    /// The log that it belongs to, if any.
    pub(super) log: Option<String>,
    /// Its path in the data folder.
    pub(super) name: String,
}

/// What the last passes have mended.
#[derive(Debug, Default)]
pub(super) struct MendedFiles(Mutex<Passes>);

#[derive(Debug, Default)]
struct Passes {
    /// Of the last complete pass.
    last: Vec<MendedFile>,
    /// Of the pass under way.
    current: Vec<MendedFile>,
}

impl MendedFiles {
    fn lock(&self) -> MutexGuard<'_, Passes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pass under way has mended a file.
    pub(super) fn add(&self, file: MendedFile) {
        self.lock().current.push(file);
    }

    /// The pass under way is complete.
    pub(super) fn end_pass(&self) {
        let mut passes = self.lock();
        passes.last = std::mem::take(&mut passes.current);
    }

    /// A warning about each file.
    pub(super) fn warnings(&self) -> Vec<Problem> {
        let passes = self.lock();
        let new = passes.current.iter().filter(|file| !passes.last.contains(file));
        passes.last.iter().chain(new).map(warning).collect()
    }
}

fn warning(file: &MendedFile) -> Problem {
    let detail = format!(
        "{} was damaged and has been mended; no data was lost. See the server's log, and check the \
         device",
        file.name
    );
    let mut warning = *problem::MENDED.because(detail);
    warning.log = file.log.as_deref().map(Box::from);
    warning
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &MendedFiles) -> Vec<String> {
        files.warnings().iter().map(|w| w.detail.split(' ').next().unwrap().to_owned()).collect()
    }

    fn file(name: &str) -> MendedFile {
        MendedFile { log: Some("main".to_owned()), name: name.to_owned() }
    }

    #[test]
    fn a_warning_stays_until_a_whole_pass_finds_nothing() {
        let files = MendedFiles::default();
        files.add(file("a"));
        assert_eq!(names(&files), ["a"], "at once");
        files.end_pass();
        assert_eq!(names(&files), ["a"]);
        files.add(file("a"));
        files.add(file("b"));
        assert_eq!(names(&files), ["a", "b"], "each once");
        files.end_pass();
        files.end_pass();
        assert_eq!(names(&files), [""; 0]);
    }
}
