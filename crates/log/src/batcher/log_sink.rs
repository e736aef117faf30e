//! The sequencer as a batcher's sink: records go to staging in pieces, and are
//! stored when the journal says so.

use super::sink::{Sink, Stored, Trouble};
use crate::error::AppendError;
use crate::log::Log;
use crate::record::RecordView;
use std::sync::mpsc;

/// Most of a piece: how long other appends may have to wait for the staging lock.
const PIECE_BYTES: usize = 256 << 10;
const PIECE_EVENTS: u32 = 1000;

/// Stores records in a log.
#[derive(Debug)]
pub(crate) struct LogSink {
    log: Log,
}

/// Records staged together.
struct Piece {
    bytes: usize,
    events: u32,
    /// `None` until it is known.
    outcome: Option<Result<(), AppendError>>,
}

impl LogSink {
    pub(crate) fn new(log: Log) -> LogSink {
        LogSink { log }
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

impl Sink for LogSink {
    fn store(&mut self, parts: &[&[u8]]) -> Stored {
        let (tell, told) = mpsc::channel();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut setbacks = None;
        'staging: for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let (bytes, events) = piece(rest);
                assert!(events > 0, "a partition of a log holds records");
                let (records, after) = rest.split_at(bytes);
                rest = after;
                let (tell, index) = (tell.clone(), pieces.len());
                let done = Box::new(move |outcome: Result<_, _>| {
                    let _ = tell.send((index, outcome.map(|_| ())));
                });
                let outcome =
                    match self.log.sequencer().stage_records(records, events, setbacks, done) {
                        Ok(so_far) => {
                            setbacks = Some(so_far);
                            None
                        }
                        Err(refused) => Some(Err(refused)),
                    };
                let ends = outcome.is_some();
                pieces.push(Piece { bytes, events, outcome });
                if ends {
                    break 'staging;
                }
            }
        }
        drop(tell);
        self.log.commit(crate::CommitOn::ThisThread);
        // Ends when every staged piece has been answered: the senders are gone then.
        for (index, outcome) in told {
            pieces[index].outcome = Some(outcome);
        }
        account(&pieces)
    }
}

/// The stored beginning, and why it ends there. A journal that refuses a batch drops all
/// that is staged after it, and nothing is staged after that (others may commit, and find
/// the disk full, between two pieces): nothing that is stored lies behind a gap.
fn account(pieces: &[Piece]) -> Stored {
    let mut stored = Stored { bytes: 0, events: 0, trouble: None };
    for piece in pieces {
        match &piece.outcome {
            Some(Ok(())) => {
                stored.bytes += piece.bytes;
                stored.events += u64::from(piece.events);
            }
            Some(Err(AppendError::Overloaded)) => stored.trouble = Some(Trouble::Busy),
            Some(Err(AppendError::StorageFull)) => stored.trouble = Some(Trouble::Full),
            Some(Err(error)) => stored.trouble = Some(Trouble::Closed(error.to_string())),
            None => stored.trouble = Some(Trouble::Closed("the log gave no answer".to_owned())),
        }
        if stored.trouble.is_some() {
            break;
        }
    }
    stored
}
