//! Handing records over to the leader. A node that does not lead a shared log gives what its
//! batcher accepted to the node that does, a piece at a time under a request key of the piece. A
//! piece whose outcome is unknown is sent again, the same bytes under the same key, until a leader
//! says that it is stored.

use crate::append::Appended;
use crate::error::AppendError;
use crate::log::Log;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_format::record::{RequestKey, SERVER_KEYS};

/// Maximum length of a node's name in a key, in bytes.
const NAME_BYTES: usize = 120;

/// A piece of pushed records, to be stored by another node.
#[derive(Debug, Clone)]
pub struct HandedPiece<'a> {
    /// Encoded records, as producers wrote them, for [`Log::take_handed_over`].
    pub records: &'a [u8],
    /// Number of records.
    pub events: u32,
    /// Its unique key, which stays the same when the piece is sent again.
    pub key: RequestKey,
}

/// The outcome of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandOverOutcome {
    /// It is durable.
    Stored,
    /// Unknown: it is stored, or may be. The same piece is sent again with the same key.
    Unknown,
    /// This attempt has had no effect and never will: the leader said so, or there is none. The
    /// records may be split differently, and even stored on this node.
    NotTaken,
    /// It will never be accepted, for this reason. The batcher ends, because nothing may be stored
    /// after a gap.
    Refused(String),
}

impl HandOverOutcome {
    /// Translates the outcome of [`Log::take_handed_over`] for the sender.
    #[must_use]
    pub fn of(outcome: &Result<Appended, AppendError>) -> HandOverOutcome {
        let Err(error) = outcome else { return HandOverOutcome::Stored };
        match error {
            AppendError::Unknown { .. } => HandOverOutcome::Unknown,
            AppendError::Invalid(_)
            | AppendError::KeyReused { .. }
            | AppendError::IdReused { .. }
            | AppendError::Conflict(_) => HandOverOutcome::Refused(error.to_string()),
            AppendError::NotLeading { .. }
            | AppendError::Overloaded
            | AppendError::StorageFull
            | AppendError::Unavailable { .. }
            | AppendError::SetBack
            | AppendError::Fenced(_)
            | AppendError::Closed { .. }
            | AppendError::Read(_)
            | AppendError::Stopped(_) => HandOverOutcome::NotTaken,
        }
    }
}

/// A connection to the leader. Used on the batcher's thread, for one piece after another, while
/// this node does not lead.
///
/// It may block, but not for ever: closing the batcher waits for it to return. `Stored` says
/// nothing about this node's copy, which follows later. If `stored` of a batcher is to imply that
/// [`Log::head`] includes the piece, the hand-over must wait for that before it returns `Stored`.
pub trait HandOver: Send + 'static {
    /// Sends a piece to the current leader.
    fn hand_over(&mut self, piece: HandedPiece<'_>) -> HandOverOutcome;
}

/// Generates the keys of one batcher's pieces.
#[derive(Debug)]
pub(super) struct Keys {
    prefix: String,
    sequence: u64,
}

impl Keys {
    /// For a new batcher in front of a log.
    pub(super) fn new(log: &Log) -> Keys {
        static BATCHERS: AtomicU64 = AtomicU64::new(1);
        let batcher = BATCHERS.fetch_add(1, Ordering::Relaxed);
        let (node, start) = match &log.sequencer().process {
            Some(process) => (process.node.as_str(), process.start),
            None => ("", RandomState::new().hash_one(batcher)),
        };
        // Informative; the rest is unique by itself.
        let mut name = String::new();
        for letter in node.chars().map(|letter| if letter.is_control() { '_' } else { letter }) {
            if name.len() + letter.len_utf8() > NAME_BYTES {
                break;
            }
            name.push(letter);
        }
        Keys {
            prefix: format!("{SERVER_KEYS}handed-over/{name}/{start:016x}/{batcher}"),
            sequence: 0,
        }
    }

    /// The key of the next piece.
    pub(super) fn next(&mut self, records: &[u8], events: u32) -> RequestKey {
        self.sequence += 1;
        let mut digest = [0; 16];
        digest[..8].copy_from_slice(&(records.len() as u64).to_le_bytes());
        digest[8..12].copy_from_slice(&events.to_le_bytes());
        digest[12..].copy_from_slice(&crc32c::crc32c(records).to_le_bytes());
        RequestKey { key: format!("{}/{}", self.prefix, self.sequence), digest }
    }
}
