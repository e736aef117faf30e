//! The epoch: how often the log has been opened for writing. Claiming an epoch fences all earlier
//! writers, whose lease tokens become invalid.

use crate::error::{Corruption, OpenError};
use crate::storage::small_file::{overwrite_if_full, read_small_file};
use crate::storage::{Storage, replace_file};
use std::io;
use wellspring_format::segment::{is_index_name, segment_name};

pub(crate) const EPOCH_FILE: &str = "epoch";
/// The largest epoch: lease tokens combine it with 32 lower bits into a number that JSON represents
/// exactly.
const EPOCH_MAX: u64 = 1 << 21;
/// Size of the file: 20 digits and a newline. The same for every epoch, so that the next one can be
/// overwritten in place on a full disk.
const EPOCH_BYTES: usize = 21;

/// Whether the folder has ever held a log.
///
/// # Errors
/// An error of the file system.
pub(crate) fn was_claimed(storage: &dyn Storage) -> io::Result<bool> {
    match storage.open(EPOCH_FILE) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The evidence that a folder without segments has been a log's, if there is any among these files
/// in it.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn all_lost(
    storage: &dyn Storage,
    names: &[String],
) -> Result<Option<Corruption>, OpenError> {
    let claimed = was_claimed(storage)
        .map_err(|error| OpenError::Io { doing: "opening epoch".into(), error })?;
    let what = "all segments are missing, but the folder has been a log's; put them back, or remove \
                every other file to begin a new log";
    let is_lost = claimed || names.iter().any(|name| is_index_name(name));
    Ok(is_lost.then(|| Corruption { file: segment_name(1), offset: 0, what: what.into() }))
}

/// Claims the next epoch, which is greater than `seen`, the greatest in the headers of segments and
/// batches, in case the file was lost.
///
/// # Errors
/// [`OpenError::Io`]. On a full disk only if the file does not exist yet, or if the file system
/// needs room to overwrite a file.
pub(crate) fn claim_epoch(storage: &dyn Storage, seen: u64) -> Result<u64, OpenError> {
    let failed = |error| OpenError::Io { doing: format!("claiming {EPOCH_FILE}"), error };
    let invalid = |what: &str| failed(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
    let written = read(storage).map_err(failed)?;
    let (previous, len) = match &written {
        None => (0, 0),
        Some(text) => {
            let digits = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
            let number = digits.parse::<u64>().map_err(|_| {
                invalid(
                    "not a number; restore the file or write a number larger than any epoch used",
                )
            })?;
            (number, text.len())
        }
    };
    let previous = previous.max(seen);
    if previous >= EPOCH_MAX {
        return Err(invalid(&format!("{previous} is larger than any epoch can be ({EPOCH_MAX})")));
    }
    let epoch = previous + 1;
    let text = format!("{epoch:0width$}\n", width = EPOCH_BYTES - 1);
    let replaced = replace_file(storage, EPOCH_FILE, text.as_bytes()).or_else(|error| {
        // A file of an earlier version may be shorter; keeping its length keeps its digits
        // complete.
        let text = if len < EPOCH_BYTES { format!("{epoch}\n") } else { text };
        overwrite_if_full(storage, EPOCH_FILE, text.as_bytes(), error)
    });
    replaced.map(|()| epoch).map_err(failed)
}

/// Checks that the file holds the epoch that this process has claimed, and writes it again if not.
///
/// # Errors
/// An error of the file system.
pub(crate) fn keep_epoch(storage: &dyn Storage, epoch: u64) -> io::Result<KeptFile> {
    let text = format!("{epoch:0width$}\n", width = EPOCH_BYTES - 1);
    let written = read(storage)?;
    let holds = written.as_deref().and_then(|text| text.trim().parse::<u64>().ok());
    if holds == Some(epoch) {
        return Ok(KeptFile::Sound);
    }
    replace_file(storage, EPOCH_FILE, text.as_bytes())?;
    Ok(KeptFile::Mended)
}

/// What a check of a small file beside the segments found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptFile {
    /// The right one.
    Sound,
    /// Another one, or none; it is written again.
    Mended,
}

fn read(storage: &dyn Storage) -> io::Result<Option<String>> {
    let bytes = read_small_file(storage, EPOCH_FILE, EPOCH_BYTES)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::simulated::{Faults, SimulatedStorage};
    use std::collections::BTreeMap;

    fn folder(text: &str) -> SimulatedStorage {
        let files = BTreeMap::from([(EPOCH_FILE.to_owned(), text.as_bytes().to_vec())]);
        SimulatedStorage::with_contents(1, &files)
    }

    #[test]
    fn the_epoch_grows_beyond_the_file_and_the_headers() {
        for (text, seen, epoch) in [("7\n", 3, 8), ("7\n", 9, 10), ("00000000000000000007\n", 0, 8)]
        {
            let storage = folder(text);
            assert_eq!(claim_epoch(&storage, seen).unwrap(), epoch);
            assert_eq!(claim_epoch(&storage, 0).unwrap(), epoch + 1);
        }
        for text in ["x", "18446744073709551615", "2097152\n", ""] {
            assert!(claim_epoch(&folder(text), 0).is_err(), "{text:?}");
        }
        assert!(claim_epoch(&SimulatedStorage::new(1), u64::MAX).is_err());
    }

    #[test]
    fn a_damaged_epoch_is_written_again_by_the_process_that_claimed_it() {
        let storage = folder("00000000000000000007\n");
        assert_eq!(keep_epoch(&storage, 7).unwrap(), KeptFile::Sound);
        for text in ["00000000000000000006\n", "garbage", ""] {
            let storage = folder(text);
            assert_eq!(keep_epoch(&storage, 7).unwrap(), KeptFile::Mended, "{text:?}");
            assert_eq!(keep_epoch(&storage, 7).unwrap(), KeptFile::Sound);
            assert_eq!(claim_epoch(&storage, 0).unwrap(), 8);
        }
    }

    #[test]
    fn on_a_full_disk_the_epoch_is_written_over_and_no_crash_lowers_it() {
        for seed in 0..40 {
            // In the format of an earlier version, and in this one's.
            for text in ["7\n", "00000000000000000007\n"] {
                let mut storage = folder(text);
                let mut last = 7;
                for _ in 0..8 {
                    // One more byte, which a block has even on a full disk.
                    let used = storage.contents()[EPOCH_FILE].len() as u64;
                    let capacity_bytes = Some(used + 1);
                    storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
                    let epoch = claim_epoch(&storage, 0).unwrap();
                    assert_eq!(epoch, last + 1, "seed {seed}");
                    last = epoch;
                    storage = storage.crash();
                }
            }
        }
    }
}
