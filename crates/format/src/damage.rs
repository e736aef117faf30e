//! Damage, and where it is.

use std::fmt;

/// Damage in stored bytes. A retry does not help; `wellspring verify` reports the extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The file, relative to the log's folder.
    pub file: String,
    /// Byte offset in it.
    pub offset: u64,
    /// What was expected there.
    pub what: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at byte {}: {}", self.file, self.offset, self.what)
    }
}
