//! Hands pieces over to the leader, each exactly once: a piece with an unknown outcome is sent
//! again, with the same bytes and key, until a leader confirms that it is stored.

use super::hand_over::{HandOver, HandOverOutcome, HandedPiece, Keys};
use super::sink::Trouble;
use crate::log::Log;
use crate::threads;
use std::time::Duration;

/// First and longest pause before a piece with an unknown outcome is sent again.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// See the module's documentation.
pub(super) struct Giver {
    hand_over: Box<dyn HandOver>,
    keys: Keys,
}

impl std::fmt::Debug for Giver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Giver").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// The operations that a giver needs from its sink.
pub(super) trait Place {
    /// Whether this node leads.
    fn leads(&self) -> bool;

    /// Stores a piece on this node, whichever node it was sent to before.
    fn take(&self, piece: &HandedPiece<'_>) -> HandOverOutcome;

    /// Whether to stop waiting for an answer that has been awaited since this time, in µs.
    fn gives_up(&self, since_us: u64) -> bool;
}

impl Giver {
    pub(super) fn new(log: &Log, hand_over: Box<dyn HandOver>) -> Giver {
        Giver { hand_over, keys: Keys::new(log) }
    }

    /// Hands a piece over.
    ///
    /// # Errors
    /// Why it is not stored. Unless the batcher ends, this attempt will never store any of it.
    pub(super) fn give(
        &mut self,
        records: &[u8],
        events: u32,
        here: &impl Place,
    ) -> Result<(), Trouble> {
        let piece = HandedPiece { records, events, key: self.keys.next(records, events) };
        let (mut in_doubt, mut pause) = (false, FIRST_PAUSE);
        let since_us = threads::now_us();
        loop {
            // A leader knows everything that came before its claim, and so also the outcome of this
            // piece.
            let outcome = if in_doubt && here.leads() {
                here.take(&piece)
            } else {
                self.hand_over.hand_over(piece.clone())
            };
            match outcome {
                HandOverOutcome::Stored => return Ok(()),
                HandOverOutcome::Refused(reason) => return Err(Trouble::Closed(reason)),
                HandOverOutcome::NotTaken if !in_doubt => return Err(Trouble::Unavailable),
                // The failure of this attempt says nothing about earlier ones.
                HandOverOutcome::NotTaken | HandOverOutcome::Unknown => in_doubt = true,
            }
            if here.gives_up(since_us) {
                let why = "the batcher was closed before the outcome of a piece was known";
                return Err(Trouble::Closed(why.to_owned()));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
