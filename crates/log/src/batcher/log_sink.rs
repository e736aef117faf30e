//! The sequencer as a batcher's sink: records go to staging in pieces, and are
//! stored when the journal says so.

use super::close_terms::CloseTerms;
use super::sink::{Sink, Stored, Trouble};
use super::{Batcher, Options};
use crate::error::AppendError;
use crate::log::{CommitOn, Log};
use crate::record::RecordView;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Most of a piece: how long other appends may have to wait for the staging lock.
const PIECE_BYTES: usize = 256 << 10;
const PIECE_EVENTS: u32 = 1000;

/// Time between looks whether an answer is still to be waited for.
const LOOK: Duration = Duration::from_millis(20);
/// While a batcher closes without a limit, a shared log is waited for as many lead timeouts.
const CLOSE_PATIENCE: u32 = 5;

/// Stores records in a log.
#[derive(Debug)]
pub(super) struct LogSink {
    log: Log,
    terms: Arc<CloseTerms>,
}

// The way from a log to its batcher. It stands here because the batcher rests on the log, which
// knows nothing of it.
impl Log {
    /// A batcher in front of this log, with a thread of its own: events are accepted in memory and
    /// stored soon after. It keeps the log open; close it before the log, or what it holds is lost.
    ///
    /// # Errors
    /// The system's, if it gives no thread. A retry may help.
    pub fn batcher(&self, options: Options) -> io::Result<Batcher> {
        let clock = Arc::clone(&self.sequencer().options.clock);
        let terms = Arc::<CloseTerms>::default();
        let sink = LogSink::new(self.clone(), Arc::clone(&terms));
        Batcher::of_events(sink, terms, options, clock)
    }
}

/// Of a piece, by its number: what it came to.
type Outcome = (usize, Result<(), AppendError>);

/// Records staged together.
struct Piece<'a> {
    records: &'a [u8],
    events: u32,
}

impl LogSink {
    fn new(log: Log, terms: Arc<CloseTerms>) -> LogSink {
        LogSink { log, terms }
    }

    /// Whether what was staged is not to be waited for any more.
    fn gives_up(&self) -> bool {
        let limits = self.log.sequencer().limits;
        let longest = limits.close_patience.saturating_mul(CLOSE_PATIENCE);
        let is_shared = !limits.settles_at_once;
        self.terms.are_over()
            || is_shared && self.terms.closing_for().is_some_and(|closing| closing >= longest)
    }

    /// What staged pieces came to: all of them, unless the batcher closes meanwhile and has no more time.
    fn outcomes(&self, told: &mpsc::Receiver<Outcome>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        loop {
            match told.recv_timeout(LOOK) {
                Ok(outcome) => outcomes.push(outcome),
                // Every staged piece has been answered: the senders are gone then.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if self.gives_up() => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        // Two threads that commit may tell of their batches in either order.
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        outcomes
    }
}

/// The first records of `records`, at least one: their bytes and number.
fn piece(records: &[u8]) -> (usize, u32) {
    let (mut bytes, mut events) = (0, 0);
    while let Some(len) = RecordView::length(&records[bytes..]) {
        if events > 0 && (bytes + len > PIECE_BYTES || events == PIECE_EVENTS) {
            break;
        }
        bytes += len;
        events += 1;
    }
    (bytes, events)
}

fn pieces<'a>(parts: &[&'a [u8]]) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let (bytes, events) = piece(rest);
            assert!(events > 0, "a partition of a log holds records");
            let (records, after) = rest.split_at(bytes);
            rest = after;
            pieces.push(Piece { records, events });
        }
    }
    pieces
}

impl Sink for LogSink {
    fn store(&mut self, parts: &[&[u8]]) -> Stored {
        let pieces = pieces(parts);
        let mut rest = &pieces[..];
        loop {
            let (stored, trouble) = self.store_some(rest);
            rest = &rest[stored..];
            // The share of batchers is used up: what was staged is stored, the rest comes next.
            if trouble != Some(Trouble::Busy) || stored == 0 {
                let stored = &pieces[..pieces.len() - rest.len()];
                let bytes = stored.iter().map(|piece| piece.records.len()).sum();
                let events = stored.iter().map(|piece| u64::from(piece.events)).sum();
                return Stored { bytes, events, trouble };
            }
        }
    }
}

impl LogSink {
    /// Stages as many pieces as are taken, commits them and waits: how many were stored, and why it
    /// was not all.
    ///
    /// A journal that refuses a batch drops all that is staged after it, and nothing is staged after
    /// that (others may commit, and find the disk full, between two pieces): nothing that is stored
    /// lies behind a gap.
    fn store_some(&self, pieces: &[Piece<'_>]) -> (usize, Option<Trouble>) {
        let (tell, told) = mpsc::channel();
        let mut setbacks = None;
        let mut refused = None;
        for (index, piece) in pieces.iter().enumerate() {
            let tell = tell.clone();
            let done = Box::new(move |outcome: Result<_, _>| {
                let _ = tell.send((index, outcome.map(|_| ())));
            });
            let sequencer = self.log.sequencer();
            match sequencer.stage_records(piece.records, piece.events, setbacks, done) {
                Ok(so_far) => setbacks = Some(so_far),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        drop(tell);
        self.log.commit(CommitOn::ThisThread);
        let outcomes = self.outcomes(&told);
        let in_order = |(at, (index, outcome)): &(usize, &(usize, Result<_, _>))| {
            at == index && outcome.is_ok()
        };
        let stored = outcomes.iter().enumerate().take_while(in_order).count();
        let error = outcomes.into_iter().find_map(|(_, outcome)| outcome.err()).or(refused);
        let trouble = match error {
            None if stored < pieces.len() => {
                let why = match self.gives_up() {
                    true => "the batcher was closed, and the shared log did not answer in time",
                    false => "the log gave no answer",
                };
                Some(Trouble::Closed(why.to_owned()))
            }
            None => None,
            // What is left comes again at once.
            Some(AppendError::Overloaded | AppendError::SetBack) => Some(Trouble::Busy),
            Some(AppendError::StorageFull) => Some(Trouble::Full),
            // What is left waits until this node leads again; nothing of it is lost by that.
            Some(AppendError::Unavailable { .. } | AppendError::NotLeading { .. }) => {
                Some(Trouble::Unavailable)
            }
            Some(error) => Some(Trouble::Closed(error.to_string())),
        };
        (stored, trouble)
    }
}
