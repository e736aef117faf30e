//! Which history the log in a folder has.

use super::{existing, open};
use crate::error::OpenError;
use crate::floor::Floor;
use crate::journal::CopyIdentity;
use crate::recover;
use crate::segments::first_salt_in_index;
use std::io;
use std::path::Path;
use wellspring_format::history_of_salt;
use wellspring_format::segment::segment_name;
use wellspring_types::HistoryId;

/// The history of the log of files in `dir`, from its first segment; if that is missing or its
/// header is damaged, from its index. `None` if neither tells, and for a copy of a shared log.
///
/// # Errors
/// [`OpenError`]: a file cannot be read.
pub fn history(dir: &Path) -> Result<Option<HistoryId>, OpenError> {
    let storage = existing(dir)?;
    if let Some(floor) = Floor::read(&storage)? {
        return Ok(Some(floor.history));
    }
    let name = segment_name(1);
    match open(&storage, &name).and_then(|file| recover::read_header(&*file, &name)) {
        Ok(header) => {
            return Ok(header.source.is_none().then(|| history_of_salt(header.salt)));
        }
        Err(OpenError::Corrupt(_)) => {}
        Err(OpenError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Ok(Some(_)) = CopyIdentity::read(&storage) {
        return Ok(None);
    }
    Ok(first_salt_in_index(&storage)?.map(history_of_salt))
}
