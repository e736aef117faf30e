//! Handing records over to the node that leads, where this one does not.

use crate::append::Appended;
use crate::error::AppendError;
use crate::log::Log;
use crate::record::RequestKey;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of a node's name in a key.
const NAME_BYTES: usize = 120;

/// A piece of what producers pushed, to be stored by another node.
#[derive(Debug, Clone)]
pub struct HandedPiece<'a> {
    /// Encoded records, as producers wrote them: [`Log::take_handed_over`] takes them.
    pub records: &'a [u8],
    /// How many they are.
    pub events: u32,
    /// Its name: the same whenever the same piece comes again, and no other piece's ever.
    pub key: RequestKey,
}

/// What became of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandOverOutcome {
    /// It is durable.
    Stored,
    /// Nothing is known: it may be stored, or come to be. The same piece comes again with the same
    /// key.
    Unknown,
    /// Nothing happened, and nothing of this attempt ever will: the leader said so, or there is
    /// none. It may be cut anew, and even stored here.
    NotTaken,
    /// It will never be taken. The batcher ends, since nothing may be stored behind a gap; this is
    /// why.
    Refused(String),
}

impl HandOverOutcome {
    /// What the outcome of [`Log::take_handed_over`] means to the giver.
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
            | AppendError::LeaseLost
            | AppendError::Closed { .. }
            | AppendError::Read(_)
            | AppendError::Stopped(_) => HandOverOutcome::NotTaken,
        }
    }
}

/// A way to the node that leads. Used on the batcher's thread, for one piece after another, while
/// this node does not lead.
///
/// It may wait, but not for ever: a batcher that closes does not end before it returns. `Stored`
/// says nothing about this node's copy, which follows by and by: where `stored` of a batcher is to
/// mean that [`Log::head`] includes it, the hand-over waits for that before it says `Stored`.
pub trait HandOver: Send + 'static {
    /// Gives a piece to whoever leads now.
    fn hand_over(&mut self, piece: HandedPiece<'_>) -> HandOverOutcome;
}

/// Draws the keys of one batcher's pieces.
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
        // It is for people: the rest alone is unique.
        let mut name = String::new();
        for letter in node.chars().map(|letter| if letter.is_control() { '_' } else { letter }) {
            if name.len() + letter.len_utf8() > NAME_BYTES {
                break;
            }
            name.push(letter);
        }
        Keys { prefix: format!("handed-over/{name}/{start:016x}/{batcher}"), sequence: 0 }
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
