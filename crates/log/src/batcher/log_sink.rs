//! The sequencer as a batcher's sink: records are staged in pieces and count as stored once the
//! journal confirms. On a node that does not lead, they are handed over to the leader, if there is
//! a connection.

use super::close_terms::CloseTerms;
use super::giver::{Giver, Place};
use super::hand_over::{HandOver, HandOverOutcome, HandedPiece};
use super::pieces::{Piece, joined, pieces};
use super::sink::{Sink, SinkOutcome, Trouble};
use super::{Batcher, Options};
use crate::error::AppendError;
use crate::log::{CommitOn, Log};
use crate::threads;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time between checks whether to keep waiting for an outcome.
const LOOK: Duration = Duration::from_millis(20);
/// Number of lead timeouts for which a batcher that closes without a limit waits for a shared log.
const CLOSE_PATIENCE: u32 = 5;
/// Amount handed over before producers get their room back.
const GIVE_BYTES: usize = 4 << 20;

/// Stores records in a log.
#[derive(Debug)]
pub(super) struct LogSink {
    here: LocalLog,
    giver: Option<Giver>,
}

/// The log on this node.
#[derive(Debug)]
struct LocalLog {
    log: Log,
    terms: Arc<CloseTerms>,
}

// Defined here because the batcher depends on the log, not the other way round.
impl Log {
    /// A batcher in front of this log, with its own thread: events are accepted in memory and
    /// stored soon after. It keeps the log open; close it before the log, or its contents are lost.
    /// In front of a shared log whose node does not lead, it waits until the node does.
    ///
    /// # Errors
    /// The system's, if it cannot create the thread. A retry may help.
    pub fn batcher(&self, options: Options) -> io::Result<Batcher> {
        self.batcher_giving(options, None)
    }

    /// As [`batcher`](Self::batcher), but while this node does not lead, accepted events are handed
    /// over to the leader. Each event is stored once, in its producer's order, regardless of
    /// changes of the lead and lost answers.
    ///
    /// # Errors
    /// The system's, if it cannot create the thread. A retry may help.
    pub fn batcher_handing_over(
        &self,
        options: Options,
        hand_over: Box<dyn HandOver>,
    ) -> io::Result<Batcher> {
        self.batcher_giving(options, Some(Giver::new(self, hand_over)))
    }

    fn batcher_giving(&self, options: Options, giver: Option<Giver>) -> io::Result<Batcher> {
        let clock = Arc::clone(&self.sequencer().options.clock);
        let terms = Arc::<CloseTerms>::default();
        let here = LocalLog { log: self.clone(), terms: Arc::clone(&terms) };
        Batcher::of_events(LogSink { here, giver }, terms, options, clock)
    }
}

impl Sink for LogSink {
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome {
        let pieces = pieces(parts);
        let (mut at, mut given) = (0, 0);
        let trouble = loop {
            let rest = &pieces[at..];
            let is_here = self.giver.is_none() || self.here.leads();
            let (stored, trouble) = match &mut self.giver {
                Some(giver) if !is_here => give(giver, &self.here, parts, rest),
                _ => self.here.store(parts, rest),
            };
            at += stored;
            match trouble {
                None if at == pieces.len() => break None,
                None => {
                    // Room is released for what was handed over before everything is.
                    given += rest[..stored].iter().map(Piece::bytes).sum::<usize>();
                    if given >= GIVE_BYTES || self.here.terms.are_over() {
                        break Some(Trouble::Busy);
                    }
                }
                // The batchers' share is used up: what was staged is stored, the rest follows in
                // the next call.
                Some(Trouble::Busy) if stored > 0 => {}
                // The lead changed meanwhile: the rest is stored the other way.
                Some(Trouble::Unavailable)
                    if self.giver.is_some() && is_here != self.here.leads() => {}
                trouble => break trouble,
            }
        };
        let stored = &pieces[..at];
        let bytes = stored.iter().map(Piece::bytes).sum();
        let events = stored.iter().map(|piece| u64::from(piece.events)).sum();
        SinkOutcome { bytes, events, trouble }
    }
}

/// Whether all outcomes have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Complete {
    Yes,
    /// The batcher is closing and its time is up.
    No,
}

/// Hands over some of the first pieces; returns how many were stored, and the trouble if none.
fn give(
    giver: &mut Giver,
    here: &LocalLog,
    parts: &[&[u8]],
    pieces: &[Piece],
) -> (usize, Option<Trouble>) {
    let Some((piece, count)) = joined(pieces) else { return (0, None) };
    match giver.give(piece.records(parts), piece.events, here) {
        Ok(()) => (count, None),
        Err(trouble) => (0, Some(trouble)),
    }
}

impl LocalLog {
    /// Stages as many pieces as are accepted, commits them and waits. Returns how many were stored,
    /// and the trouble if not all.
    ///
    /// A journal that refuses a batch discards everything staged after it, and nothing more is
    /// staged then (other threads may commit, and find the disk full, between two pieces): nothing
    /// is stored after a gap.
    fn store(&self, parts: &[&[u8]], pieces: &[Piece]) -> (usize, Option<Trouble>) {
        let (tell, told) = mpsc::channel();
        let mut setbacks = None;
        let mut refused = None;
        for (index, piece) in pieces.iter().enumerate() {
            let tell = tell.clone();
            let done = Box::new(move |outcome: Result<_, _>| {
                let _ = tell.send((index, outcome.map(|_| ())));
            });
            let sequencer = self.log.sequencer();
            match sequencer.stage_records(piece.records(parts), piece.events, setbacks, done) {
                Ok(so_far) => setbacks = Some(so_far),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        drop(tell);
        self.log.commit(CommitOn::ThisThread);
        let (outcomes, complete) = self.outcomes(&told);
        let in_order = |(at, (index, outcome)): &(usize, &(usize, Result<_, _>))| {
            at == index && outcome.is_ok()
        };
        let stored = outcomes.iter().enumerate().take_while(in_order).count();
        let error = outcomes.into_iter().find_map(|(_, outcome)| outcome.err()).or(refused);
        let trouble = match error {
            None if stored < pieces.len() => {
                let why = match complete {
                    Complete::No => "the batcher was closed before the log completed the append",
                    Complete::Yes => "the log did not complete the append",
                };
                Some(Trouble::Closed(why.to_owned()))
            }
            None => None,
            // The rest is tried again at once.
            Some(AppendError::Overloaded | AppendError::SetBack) => Some(Trouble::Busy),
            Some(AppendError::StorageFull) => Some(Trouble::Full),
            // The rest waits until this node leads again; none of it is lost.
            Some(AppendError::Unavailable { .. } | AppendError::NotLeading { .. }) => {
                Some(Trouble::Unavailable)
            }
            Some(error) => Some(Trouble::Closed(error.to_string())),
        };
        (stored, trouble)
    }

    /// The outcomes of staged pieces: all of them, unless the batcher is closing and its time is
    /// up.
    fn outcomes<T>(&self, told: &mpsc::Receiver<(usize, T)>) -> (Vec<(usize, T)>, Complete) {
        let mut outcomes = Vec::new();
        let mut since_us = threads::now_us();
        let complete = loop {
            match told.recv_timeout(LOOK) {
                Ok(outcome) => {
                    outcomes.push(outcome);
                    since_us = threads::now_us();
                }
                // Every staged piece has completed, so the senders are gone.
                Err(RecvTimeoutError::Disconnected) => break Complete::Yes,
                Err(RecvTimeoutError::Timeout) if self.gives_up(since_us) => break Complete::No,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        // Two committing threads may report their batches in either order.
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        (outcomes, complete)
    }
}

impl Place for LocalLog {
    fn leads(&self) -> bool {
        self.log.sequencer().mark.leads()
    }

    fn take(&self, piece: &HandedPiece<'_>) -> HandOverOutcome {
        let (tell, told) = mpsc::channel();
        let done = Box::new(move |outcome| {
            let _ = tell.send((0, outcome));
        });
        if let Err(fault) = self.log.take_handed_over(piece.records, piece.key.clone(), done) {
            return HandOverOutcome::Refused(fault.to_string());
        }
        match self.outcomes(&told).0.pop() {
            // It would be retried for ever although nothing is accepted any more.
            Some((_, Err(error @ AppendError::Closed { .. }))) => {
                HandOverOutcome::Refused(error.to_string())
            }
            Some((_, outcome)) => HandOverOutcome::of(&outcome),
            None => HandOverOutcome::Unknown,
        }
    }

    fn gives_up(&self, since_us: u64) -> bool {
        let limits = self.log.sequencer().limits;
        let longest = limits.close_patience.saturating_mul(CLOSE_PATIENCE);
        let silent_us = threads::now_us().saturating_sub(since_us);
        let is_silent =
            |closing: Duration| closing.min(Duration::from_micros(silent_us)) >= longest;
        let is_shared = !limits.settles_at_once;
        // With a limit, the closing thread decides how long.
        let no_limit = self.terms.left().is_none();
        self.terms.are_over()
            || is_shared && no_limit && self.terms.closing_for().is_some_and(is_silent)
    }
}
