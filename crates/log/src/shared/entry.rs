//! The bytes of an entry of a shared log, which are opaque to the engine.
//!
//! A header of 64 bytes, little endian, then the body. Fields that a kind does not use are zero.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 4 | magic |
//! | 4 | 4 | CRC32C of bytes 8…64 |
//! | 8 | 1 | version, 1 |
//! | 9 | 1 | kind: 1 founded, 2 claim, 3 beat, 4 batch, 5 probe |
//! | 10 | 1 | flags: 1 the batch begins a segment |
//! | 11 | 1 | zero |
//! | 12 | 2 | batch: which part of it this is, from 0 |
//! | 14 | 2 | batch: number of parts |
//! | 16 | 8 | claim, beat, batch: epoch |
//! | 24 | 8 | batch: position of the first event; claim, beat: start of the process; probe: tag |
//! | 32 | 8 | batch: recorded at, µs since 1970 UTC, of the last event |
//! | 40 | 4 | batch: number of events |
//! | 44 | 4 | batch: length of the whole body (the records) |
//! | 48 | 4 | batch: CRC32C of the whole body, the commit marker of the segment's batch |
//! | 52 | 4 | batch: the chain up to the batch accepted before it, 0 for the first |
//! | 56 | 4 | length of the body of this entry |
//! | 60 | 4 | CRC32C of the body of this entry |
//!
//! Bodies. *Founded*: the cluster's id, 16 bytes, then the log's name. *Claim* and *beat*: length
//! of the node's name (1 byte), the name, then its URL. *Batch*: the records exactly as in a
//! segment (see [`record`](wellspring_format::record)), split anywhere into parts if they are
//! longer than the engine accepts. A *probe* has none.
//!
//! Magic, checksum and version have the same offsets in every version.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
pub use wellspring_format::BatchId;
use wellspring_format::record::{read_u32, read_u64};
use wellspring_types::hex;

/// Size of an entry's header.
pub const ENTRY_HEADER_BYTES: usize = 64;
/// First four bytes of every entry.
pub const ENTRY_MAGIC: u32 = 0xe57a_97d3;
/// The format version written here.
pub const ENTRY_VERSION: u8 = 1;
/// Maximum length of the name of a node or a log, in bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// Maximum length of a node's URL, in bytes.
pub const MAX_URL_BYTES: usize = 2048;

const KIND_FOUNDED: u8 = 1;
const KIND_CLAIM: u8 = 2;
const KIND_BEAT: u8 = 3;
const KIND_BATCH: u8 = 4;
const KIND_PROBE: u8 = 5;
const FLAG_BEGINS_SEGMENT: u8 = 1;

/// Identifies the cluster of a shared log: random, chosen when the log is founded. A copy never
/// follows the log of another cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::digits(&self.0))
    }
}

/// The text is not a cluster id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAClusterId;

impl fmt::Display for NotAClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cluster id is 32 hexadecimal digits")
    }
}

impl std::error::Error for NotAClusterId {}

impl FromStr for ClusterId {
    type Err = NotAClusterId;

    fn from_str(text: &str) -> Result<ClusterId, NotAClusterId> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotAClusterId);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| NotAClusterId)?;
        Ok(ClusterId(number.to_be_bytes()))
    }
}

/// A decoded entry, borrowed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The first valid entry: the log's name and its cluster.
    Founded {
        /// Random, chosen by the node that founded the log.
        cluster: ClusterId,
        /// The log's name.
        log: &'a str,
    },
    /// A node claims the lead.
    Claim(Claim<'a>),
    /// A heartbeat of the leader. It contains the same data as the claim, for nodes that have not
    /// read that.
    Beat(Claim<'a>),
    /// A batch of events, or a part of one.
    Batch(BatchPart<'a>),
    /// No content: its place answers a question for the end.
    Probe {
        /// Identifies the probe to the node that asked.
        tag: u64,
    },
}

/// A node's claim of the lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The claimed epoch, at least 1.
    pub epoch: u64,
    /// Its name, 1 to [`MAX_NAME_BYTES`].
    pub node: &'a str,
    /// Random, chosen once per process: distinguishes a process's claims from those of an earlier
    /// process of the same node.
    pub start: u64,
    /// The URL for its clients, at most [`MAX_URL_BYTES`].
    pub url: &'a str,
}

/// A batch, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPart<'a> {
    /// The batch.
    pub batch: BatchId,
    /// The index of this part, from 0.
    pub part: u16,
    /// The number of parts, at least 1.
    pub parts: u16,
    /// The bytes of this part. For a batch in one part, the complete records with a valid checksum.
    pub body: &'a [u8],
}

/// Why bytes are not a valid entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFault {
    /// Foreign bytes: they do not begin like an entry.
    NotAnEntry,
    /// An entry of an unsupported version.
    Version(u8),
    /// An entry whose bytes were changed, truncated or extended.
    Damaged,
    /// The checksums are right, but the content is invalid.
    Malformed(&'static str),
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryFault::NotAnEntry => f.write_str(
                "it is not an entry of Wellspring: something else writes into this shared log; \
                 find it and stop it, or give this log a place of its own",
            ),
            EntryFault::Version(version) => write!(
                f,
                "it has version {version}, while this program supports version {ENTRY_VERSION}: \
                 run the newer program on every node"
            ),
            EntryFault::Damaged => f.write_str(
                "its bytes were changed in transit or in storage: restore the shared log \
                 from an intact copy",
            ),
            EntryFault::Malformed(what) => {
                write!(f, "{what}: the program that wrote it is at fault; report this")
            }
        }
    }
}

impl std::error::Error for EntryFault {}

impl Entry<'_> {
    /// Decodes an entry and checks everything that does not need other entries.
    ///
    /// # Errors
    /// [`EntryFault`].
    pub fn decode(bytes: &[u8]) -> Result<Entry<'_>, EntryFault> {
        if bytes.len() < 4 || read_u32(bytes, 0) != ENTRY_MAGIC {
            return Err(EntryFault::NotAnEntry);
        }
        let Some((header, body)) = bytes.split_first_chunk::<ENTRY_HEADER_BYTES>() else {
            return Err(EntryFault::Damaged);
        };
        if read_u32(header, 4) != crc32c::crc32c(&header[8..]) {
            return Err(EntryFault::Damaged);
        }
        if header[8] != ENTRY_VERSION {
            return Err(EntryFault::Version(header[8]));
        }
        if read_u32(header, 56) as usize != body.len()
            || read_u32(header, 60) != crc32c::crc32c(body)
        {
            return Err(EntryFault::Damaged);
        }
        decode_kind(header, body)
    }

    /// Encodes it.
    ///
    /// # Panics
    /// If a name or URL is too long, or a body exceeds 4 GiB: callers check their input.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let body = match self {
            Entry::Batch(part) => part.body.len(),
            _ => 0,
        };
        let mut bytes = Vec::with_capacity(ENTRY_HEADER_BYTES + body);
        bytes.resize(ENTRY_HEADER_BYTES, 0);
        match self {
            Entry::Founded { cluster, log } => {
                assert!(!log.is_empty() && log.len() <= MAX_NAME_BYTES, "a log's name is checked");
                bytes[9] = KIND_FOUNDED;
                bytes.extend_from_slice(&cluster.0);
                bytes.extend_from_slice(log.as_bytes());
            }
            Entry::Claim(claim) | Entry::Beat(claim) => {
                let node = claim.node.len();
                assert!(node > 0 && node <= MAX_NAME_BYTES, "a node's name is checked");
                assert!(claim.url.len() <= MAX_URL_BYTES, "a node's URL is checked");
                let is_claim = matches!(self, Entry::Claim(_));
                bytes[9] = if is_claim { KIND_CLAIM } else { KIND_BEAT };
                bytes[16..24].copy_from_slice(&claim.epoch.to_le_bytes());
                bytes[24..32].copy_from_slice(&claim.start.to_le_bytes());
                bytes.push(node as u8);
                bytes.extend_from_slice(claim.node.as_bytes());
                bytes.extend_from_slice(claim.url.as_bytes());
            }
            Entry::Batch(part) => {
                bytes[9] = KIND_BATCH;
                encode_batch(part, &mut bytes);
            }
            Entry::Probe { tag } => {
                bytes[9] = KIND_PROBE;
                bytes[24..32].copy_from_slice(&tag.to_le_bytes());
            }
        }
        seal(&mut bytes);
        bytes
    }
}

fn encode_batch(part: &BatchPart<'_>, bytes: &mut Vec<u8>) {
    let batch = &part.batch;
    bytes[10] = if batch.begins_segment { FLAG_BEGINS_SEGMENT } else { 0 };
    bytes[12..14].copy_from_slice(&part.part.to_le_bytes());
    bytes[14..16].copy_from_slice(&part.parts.to_le_bytes());
    bytes[16..24].copy_from_slice(&batch.epoch.to_le_bytes());
    bytes[24..32].copy_from_slice(&batch.first.to_le_bytes());
    bytes[32..40].copy_from_slice(&batch.recorded_at_us.to_le_bytes());
    bytes[40..44].copy_from_slice(&batch.count.to_le_bytes());
    bytes[44..48].copy_from_slice(&batch.body_bytes.to_le_bytes());
    bytes[48..52].copy_from_slice(&batch.body_crc.to_le_bytes());
    bytes[52..56].copy_from_slice(&batch.previous.to_le_bytes());
    bytes.extend_from_slice(part.body);
}

/// Fills in the fields common to all entries.
fn seal(bytes: &mut [u8]) {
    let (header, body) = bytes.split_at_mut(ENTRY_HEADER_BYTES);
    let length = u32::try_from(body.len()).expect("a body under 4 GiB");
    header[0..4].copy_from_slice(&ENTRY_MAGIC.to_le_bytes());
    header[8] = ENTRY_VERSION;
    header[56..60].copy_from_slice(&length.to_le_bytes());
    header[60..64].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let crc = crc32c::crc32c(&header[8..]);
    header[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn decode_kind<'a>(
    header: &[u8; ENTRY_HEADER_BYTES],
    body: &'a [u8],
) -> Result<Entry<'a>, EntryFault> {
    let entry = match header[9] {
        KIND_FOUNDED => decode_founded(body)?,
        KIND_CLAIM => Entry::Claim(decode_claim(header, body)?),
        KIND_BEAT => Entry::Beat(decode_claim(header, body)?),
        KIND_BATCH => return decode_batch(header, body),
        KIND_PROBE => Entry::Probe { tag: read_u64(header, 24) },
        _ => return Err(EntryFault::Malformed("its kind is unknown")),
    };
    // A batch uses every field; the others leave these zero, so that an entry has only one
    // encoding.
    let used = match entry {
        Entry::Claim(_) | Entry::Beat(_) => 16..32,
        Entry::Probe { .. } => 24..32,
        Entry::Founded { .. } | Entry::Batch(_) => 16..16,
    };
    if (10..56).any(|at| !used.contains(&at) && header[at] != 0) {
        return Err(EntryFault::Malformed("a field that its kind does not use is not zero"));
    }
    if matches!(entry, Entry::Probe { .. }) && !body.is_empty() {
        return Err(EntryFault::Malformed("its kind has no body"));
    }
    Ok(entry)
}

fn read_epoch(header: &[u8; ENTRY_HEADER_BYTES]) -> Result<u64, EntryFault> {
    match read_u64(header, 16) {
        0 => Err(EntryFault::Malformed("its epoch is 0")),
        epoch => Ok(epoch),
    }
}

fn text<'a>(bytes: &'a [u8], most: usize, what: &'static str) -> Result<&'a str, EntryFault> {
    if bytes.len() > most {
        return Err(EntryFault::Malformed(what));
    }
    std::str::from_utf8(bytes).map_err(|_| EntryFault::Malformed(what))
}

fn decode_founded(body: &[u8]) -> Result<Entry<'_>, EntryFault> {
    let Some((cluster, log)) = body.split_first_chunk::<16>() else {
        return Err(EntryFault::Malformed("a founding without a cluster id"));
    };
    let log = text(log, MAX_NAME_BYTES, "the log's name is too long or not UTF-8")?;
    if log.is_empty() {
        return Err(EntryFault::Malformed("a founding without a log's name"));
    }
    Ok(Entry::Founded { cluster: ClusterId(*cluster), log })
}

fn decode_claim<'a>(
    header: &[u8; ENTRY_HEADER_BYTES],
    body: &'a [u8],
) -> Result<Claim<'a>, EntryFault> {
    let Some((&length, rest)) = body.split_first() else {
        return Err(EntryFault::Malformed("a claim without a node's name"));
    };
    let Some((node, url)) = rest.split_at_checked(usize::from(length)) else {
        return Err(EntryFault::Malformed("the node's name extends beyond the claim"));
    };
    if node.is_empty() {
        return Err(EntryFault::Malformed("a claim without a node's name"));
    }
    Ok(Claim {
        epoch: read_epoch(header)?,
        start: read_u64(header, 24),
        node: text(node, MAX_NAME_BYTES, "the node's name is not UTF-8")?,
        url: text(url, MAX_URL_BYTES, "the node's URL is too long or not UTF-8")?,
    })
}

fn decode_batch<'a>(
    header: &[u8; ENTRY_HEADER_BYTES],
    body: &'a [u8],
) -> Result<Entry<'a>, EntryFault> {
    if header[10] & !FLAG_BEGINS_SEGMENT != 0 || header[11] != 0 {
        return Err(EntryFault::Malformed("a flag is unknown"));
    }
    let batch = BatchId {
        epoch: read_epoch(header)?,
        first: read_u64(header, 24),
        recorded_at_us: read_u64(header, 32),
        count: read_u32(header, 40),
        body_bytes: read_u32(header, 44),
        body_crc: read_u32(header, 48),
        previous: read_u32(header, 52),
        begins_segment: header[10] & FLAG_BEGINS_SEGMENT != 0,
    };
    let part = u16::from_le_bytes([header[12], header[13]]);
    let parts = u16::from_le_bytes([header[14], header[15]]);
    if batch.first == 0 || batch.count == 0 || body.is_empty() {
        return Err(EntryFault::Malformed("a batch or part without position, events or bytes"));
    }
    if batch.first.checked_add(u64::from(batch.count)).is_none() {
        return Err(EntryFault::Malformed("the positions of the batch overflow"));
    }
    if part >= parts {
        return Err(EntryFault::Malformed("the part does not belong to its batch"));
    }
    let whole = batch.body_bytes as usize;
    if if parts == 1 { body.len() != whole } else { body.len() >= whole } {
        return Err(EntryFault::Malformed("the part's length does not fit its batch"));
    }
    if parts == 1 && read_u32(header, 60) != batch.body_crc {
        return Err(EntryFault::Malformed("the whole batch and its only part differ"));
    }
    Ok(Entry::Batch(BatchPart { batch, part, parts, body }))
}

/// The entries of a batch: one, or as many as needed for none to exceed `entry_bytes`.
///
/// # Panics
/// If `body` is not the body of the batch, or needs more than 65,535 parts: with entries of 4 KiB,
/// the minimum for an engine, that is over 250 MiB.
#[must_use]
pub fn batch_entries(batch: &BatchId, body: &[u8], entry_bytes: usize) -> Vec<Arc<[u8]>> {
    assert_eq!(body.len(), batch.body_bytes as usize, "the body of this batch");
    let room = entry_bytes.saturating_sub(ENTRY_HEADER_BYTES).max(1);
    let parts = u16::try_from(body.len().div_ceil(room)).expect("at most 65,535 parts");
    let part = |(part, body)| {
        let part = BatchPart { batch: *batch, part: part as u16, parts, body };
        Arc::from(Entry::Batch(part).encode())
    };
    body.chunks(room).enumerate().map(part).collect()
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
