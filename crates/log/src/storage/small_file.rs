//! Small text files beside the segments. They are read as the device has them, and a checked one
//! ends with the line `check 9b2f01aa`: the CRC32C of the lines before it.

use super::{Storage, is_full};
use std::io;

/// Reads a file up to a length; `None` if there is none of the name.
///
/// # Errors
/// An error of the file system.
pub fn read_small_file(
    storage: &dyn Storage,
    name: &str,
    largest_bytes: usize,
) -> io::Result<Option<Vec<u8>>> {
    let file = match storage.open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; largest_bytes];
    let len = match file.past_cache() {
        Some(device) => device.read_at(&mut bytes, 0)?,
        None => file.read_at(&mut bytes, 0)?,
    };
    bytes.truncate(len);
    Ok(Some(bytes))
}

/// Overwrites a file in place if it could not be replaced because the disk is full. A crash leaves
/// the old bytes or the new ones, as a sector is written as a whole: if they have the same length.
///
/// # Errors
/// The `error` of the replacement, if the disk is not full or there is no such file; or an error of
/// the file system.
pub(crate) fn overwrite_if_full(
    storage: &dyn Storage,
    name: &str,
    bytes: &[u8],
    error: io::Error,
) -> io::Result<()> {
    if !is_full(&error) {
        return Err(error);
    }
    let file = storage.open(name).map_err(|_| error)?;
    file.write_all_at(bytes, 0)?;
    file.sync_data()
}

/// The lines with their check.
#[must_use]
pub fn with_check(lines: String) -> String {
    let check = crc32c::crc32c(lines.as_bytes());
    lines + &format!("check {check:08x}\n")
}

/// The lines before the check; `None` if they are damaged.
#[must_use]
pub fn checked_lines(bytes: &[u8]) -> Option<std::str::Lines<'_>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (lines, check) = text.strip_suffix('\n')?.rsplit_once("check ")?;
    let is_sound = check.len() == 8
        && u32::from_str_radix(check, 16).ok()? == crc32c::crc32c(lines.as_bytes());
    is_sound.then(|| lines.lines())
}
