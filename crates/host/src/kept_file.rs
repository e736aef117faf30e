//! Files of the data folder that no log checks, as the scrub sees them: a name and a check. Each is
//! made by the room that reads and writes the file.

use std::io;
use std::ops::ControlFlow;

/// Told of bytes as they are read; may sleep, and may stop the check.
pub type Passed<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// What a check of a file found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCheck {
    /// What it should hold; or the check was stopped.
    Sound,
    /// Something else. It was written again, or removed so that its owner writes it again: nothing
    /// is lost.
    Mended,
}

type Check = Box<dyn FnOnce(Passed<'_>) -> io::Result<FileCheck> + Send>;

/// A file to be checked.
pub struct KeptFile {
    /// Its path in the data folder.
    pub(crate) name: String,
    check: Check,
}

impl KeptFile {
    /// A file with this path in the data folder. The check reads it as the device has it, and
    /// mends it; its error is the file system's.
    pub fn new(
        name: impl Into<String>,
        check: impl FnOnce(Passed<'_>) -> io::Result<FileCheck> + Send + 'static,
    ) -> KeptFile {
        KeptFile { name: name.into(), check: Box::new(check) }
    }

    /// Checks it, and mends it if that is necessary.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn check(self, passed: Passed<'_>) -> io::Result<FileCheck> {
        (self.check)(passed)
    }
}
