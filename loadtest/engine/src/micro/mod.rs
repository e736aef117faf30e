//! Micro-benchmarks measured by other tools: `go test -bench` and Criterion.
//!
//! Both become a [`MicroReport`]: time per operation with its interval, bytes and
//! allocations where known. Reading is tolerant: lines and files that are not
//! understood are skipped, and named if they looked like results.

mod criterion;
mod go_bench;
mod go_names;
mod render;
mod report;

pub use criterion::read_criterion;
pub use go_bench::{parse_go_bench, read_go_bench};
pub use render::{render_markdown, render_text};
pub use report::{Basis, FORMAT, MicroBenchmark, MicroReport, Source, Spread};

use std::path::PathBuf;

/// Why nothing could be imported.
#[derive(Debug)]
pub enum ImportError {
    /// The file or folder could not be read.
    Unreadable(PathBuf, std::io::Error),
    /// It was read, but is not what it should be; the text says what to do.
    Nothing(String),
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImportError::Unreadable(path, error) => {
                write!(f, "{} could not be read: {error}", path.display())
            }
            ImportError::Nothing(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ImportError::Unreadable(_, error) => Some(error),
            ImportError::Nothing(_) => None,
        }
    }
}
