//! Gives pieces to the node that leads, each exactly once: a piece of which nothing is known comes
//! again, the same bytes with the same key, until somebody who leads says that it is stored.

use super::hand_over::{HandOver, HandOverOutcome, HandedPiece, Keys};
use super::sink::Trouble;
use crate::log::Log;
use crate::threads;
use std::time::Duration;

/// Pause before a piece of which nothing is known comes again: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// See the module.
pub(super) struct Giver {
    hand_over: Box<dyn HandOver>,
    keys: Keys,
}

impl std::fmt::Debug for Giver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Giver").field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// What a giver needs of the sink that it gives for.
pub(super) trait Place {
    /// Whether this node leads.
    fn leads(&self) -> bool;

    /// Stores a piece here, whoever was given it before.
    fn take(&self, piece: &HandedPiece<'_>) -> HandOverOutcome;

    /// Whether somebody who has been waiting for an answer since then, in µs, is to wait no longer.
    fn gives_up(&self, since_us: u64) -> bool;
}

impl Giver {
    pub(super) fn new(log: &Log, hand_over: Box<dyn HandOver>) -> Giver {
        Giver { hand_over, keys: Keys::new(log) }
    }

    /// Gives a piece away.
    ///
    /// # Errors
    /// Why it is not stored. Unless the batcher ends, nothing of it ever will be by this.
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
            // Who leads knows everything that came before it did, so also what became of this
            // piece.
            let outcome = match in_doubt && here.leads() {
                true => here.take(&piece),
                false => self.hand_over.hand_over(piece.clone()),
            };
            match outcome {
                HandOverOutcome::Stored => return Ok(()),
                HandOverOutcome::Refused(reason) => return Err(Trouble::Closed(reason)),
                HandOverOutcome::NotTaken if !in_doubt => return Err(Trouble::Unavailable),
                // That this attempt came to nothing says nothing about those before it.
                HandOverOutcome::NotTaken | HandOverOutcome::Unknown => in_doubt = true,
            }
            if here.gives_up(since_us) {
                let why = "the batcher was closed before it was known what became of a piece";
                return Err(Trouble::Closed(why.to_owned()));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
