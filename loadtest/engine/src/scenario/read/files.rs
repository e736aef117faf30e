//! The files that a scenario names, found beside it.

use crate::invalid::Invalid;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest data file: 1 GiB.
const MOST_DATA_BYTES: u64 = 1 << 30;

/// Where a scenario's files are looked for.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// The scenario file, or what it would be called.
    path: PathBuf,
}

impl Files {
    /// Beside this scenario file.
    pub(crate) fn beside(path: &Path) -> Self {
        Files { path: path.to_owned() }
    }

    /// The scenario's name if it has no other.
    pub(crate) fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("scenario")
    }

    /// A file's path.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }

    /// A text file.
    pub(crate) fn text(&self, name: &str) -> Result<String, Invalid> {
        let bytes = self.bytes(name, MOST_DATA_BYTES)?;
        String::from_utf8(bytes).map_err(|error| {
            Invalid::new(format!("{}: not UTF-8: {error}", self.path(name).display()))
        })
    }

    /// A file of at most this many bytes.
    pub(crate) fn bytes(&self, name: &str, most: u64) -> Result<Vec<u8>, Invalid> {
        let path = self.path(name);
        read(&path, most).map_err(|why| Invalid::new(format!("{}: {why}", path.display())))
    }
}

/// Reads a file that is one, not a device that never ends.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Invalid> {
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        return Err("not a file".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("larger than {most} bytes").into());
    }
    Ok(bytes)
}
