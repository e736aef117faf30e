//! The file `checkpoint`: what stands for purged entries, opaque here.
//!
//! ```text
//! CRC32C of the rest u32 | version u32 | the node's id u64 | content
//! ```

use super::fault::WalFault;
use bytes::Bytes;
use std::io;
use wellspring_format::record::{read_u32, read_u64};
use wellspring_log::storage::{Storage, read_small_file, replace_file};

const FILE: &str = "checkpoint";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;
/// A thousand logs with the longest names and URLs.
const LARGEST_BYTES: usize = 8 << 20;

/// Reads it; `None` if there is none.
pub(super) fn read(storage: &dyn Storage, node_id: u64) -> Result<Option<Bytes>, WalFault> {
    let reading = WalFault::io("reading the checkpoint");
    let Some(bytes) = read_small_file(storage, FILE, LARGEST_BYTES).map_err(reading)? else {
        return Ok(None);
    };
    if bytes.len() < HEADER_BYTES || read_u32(&bytes, 0) != crc32c::crc32c(&bytes[4..]) {
        return Err(WalFault::damaged(FILE, 0, "it fails its checksum"));
    }
    let version = read_u32(&bytes, 4);
    if version != VERSION {
        return Err(WalFault::Version { file: FILE.to_owned(), version });
    }
    if read_u64(&bytes, 8) != node_id {
        return Err(WalFault::damaged(FILE, 8, "it is the file of another node"));
    }
    Ok(Some(Bytes::from(bytes).slice(HEADER_BYTES..)))
}

/// Replaces it, durably.
pub(super) fn write(storage: &dyn Storage, node_id: u64, content: &[u8]) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&node_id.to_le_bytes());
    bytes.extend_from_slice(content);
    let crc = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    if bytes.len() > LARGEST_BYTES {
        return Err(io::Error::other("the checkpoint has more than 8 MiB"));
    }
    replace_file(storage, FILE, &bytes)
}
