//! Chunks in progress to the disk, in order.
//!
//! Several are in progress at a time, and none can become durable behind a gap: each is staged on
//! top of the previous one, so a setback also removes all later ones.

use super::super::append::{Receiver, completion};
use super::chain::Chain;
use std::collections::VecDeque;
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::json::push_string;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{Append, AppendError, Basis, CommitOn, Log, Staged};
use wellspring_subject_keys::SealedWith;
use wellspring_types::{Invalid, Position};

/// Most chunks in progress: enough that parsing never waits for the device.
const MAX_UNDER_WAY: usize = 8;
/// A log with this many staged bytes is given time before more is staged.
const ROOM_BYTES: usize = 32 << 20;

/// Instructions for a chunk, in the order of the content.
pub(super) enum ChunkOrder {
    Stage(Box<NewChunk>),
    /// An earlier import appended it: this many events from this position on.
    Pass(Position, u64, Waypoint),
    /// This many lines of the body contain nothing further.
    Lines(u64),
}

/// A chunk that no import has appended.
pub(super) struct NewChunk {
    /// Its events, under its key.
    pub(super) append: Append,
    /// Its key is not in the log up to this position, …
    pub(super) key_absent_through: Position,
    /// … nor are its events' ids up to this one.
    pub(super) ids_absent_through: Position,
    /// The line of each event in the body, from 1.
    pub(super) lines: Vec<u64>,
    /// Its end.
    pub(super) through: Waypoint,
    /// The keys of its subjects, until its outcome is known.
    pub(super) sealed: SealedWith,
}

/// A chunk in progress.
struct Flight {
    outcome: Receiver,
    /// The lines of its events.
    lines: Vec<u64>,
    through: Waypoint,
    _sealed: SealedWith,
}

/// The end of a chunk in the body and in the content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waypoint {
    /// Number of lines of the body up to here.
    pub(super) lines: u64,
    /// The content up to here.
    pub(super) chain: Chain,
}

/// The results so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Up to here everything is durable.
    pub(super) through: Waypoint,
    /// Events appended by this request.
    pub(super) added: u64,
    /// Events that an earlier request had appended.
    pub(super) known: u64,
    /// Position of the first and the last event, of either kind.
    pub(super) positions: Option<(Position, Position)>,
}

/// Chunks in progress, and the results of earlier ones.
pub(super) struct Flights {
    log: Log,
    effects: Effects,
    under_way: VecDeque<Flight>,
    /// The number of setbacks when the newest was placed.
    setbacks: Option<u64>,
    pub(super) progress: Progress,
}

impl Flights {
    /// None yet.
    pub(super) fn new(log: Log, effects: Effects, start: Chain) -> Flights {
        let through = Waypoint { lines: 0, chain: start };
        let progress = Progress { through, added: 0, known: 0, positions: None };
        Flights { log, effects, under_way: VecDeque::new(), setbacks: None, progress }
    }

    /// Carries out orders, in order, without waiting for chunks in progress.
    ///
    /// # Errors
    /// The first failure of a chunk; give no more orders then.
    pub(super) fn carry_out(&mut self, orders: Vec<ChunkOrder>) -> Result<(), Box<Problem>> {
        for order in orders {
            match order {
                ChunkOrder::Stage(chunk) => self.stage(*chunk)?,
                ChunkOrder::Pass(first, events, through) => self.pass(first, events, through)?,
                ChunkOrder::Lines(lines) => {
                    self.settle()?;
                    self.progress.through.lines = lines;
                }
            }
        }
        Ok(())
    }

    fn stage(&mut self, chunk: NewChunk) -> Result<(), Box<Problem>> {
        let NewChunk { append, key_absent_through, ids_absent_through, lines, through, sealed } =
            chunk;
        let bytes = append.events.byte_len();
        while self.under_way.len() >= MAX_UNDER_WAY
            || (!self.under_way.is_empty() && self.log.staged_bytes() + bytes > ROOM_BYTES)
        {
            self.settle_one()?;
        }
        let setbacks = self.setbacks.filter(|_| !self.under_way.is_empty());
        let basis = Basis { setbacks, key_absent_through, ids_absent_through };
        let (done, outcome) = completion();
        let staged = self.log.stage_on(basis, append, done);
        self.under_way.push_back(Flight { outcome, lines, through, _sealed: sealed });
        match staged {
            Staged::Placed { setbacks, .. } => {
                self.setbacks = Some(setbacks);
                self.log.commit(CommitOn::JournalThread);
                Ok(())
            }
            Staged::WaitsFor { .. } => {
                self.log.commit(CommitOn::JournalThread);
                self.settle()
            }
            Staged::Answered => self.settle(),
        }
    }

    fn pass(
        &mut self,
        first: Position,
        events: u64,
        through: Waypoint,
    ) -> Result<(), Box<Problem>> {
        self.settle()?;
        self.progress.known += events;
        self.progress.count(first, first + events - 1, through);
        Ok(())
    }

    /// Waits for all chunks in progress.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn settle(&mut self) -> Result<(), Box<Problem>> {
        while !self.under_way.is_empty() {
            self.settle_one()?;
        }
        Ok(())
    }

    fn settle_one(&mut self) -> Result<(), Box<Problem>> {
        let Some(flight) = self.under_way.pop_front() else { return Ok(()) };
        let no_answer = |_| Err(AppendError::Unknown { reason: "the log gave no answer".into() });
        let outcome = flight.outcome.blocking_recv().unwrap_or_else(no_answer);
        let appended = self.effects.settle(outcome).map_err(|refused| {
            // Later chunks in progress have failed with it.
            self.under_way.clear();
            match &refused.error {
                AppendError::KeyReused { .. } => problem::OVERLOADED
                    .because("another import of the same content is in progress; try again"),
                AppendError::Invalid(invalid) if invalid.reason.is_of_time() => {
                    not_kept(invalid, &flight.lines)
                }
                // Another client has appended it meanwhile.
                &AppendError::IdReused { event, position } => {
                    let line = flight.lines.get(event).copied().unwrap_or_default();
                    let detail =
                        format!("line {line}: the event at position {position} has its id");
                    let problem = problem::ID_REUSED.because(detail).field("id");
                    problem.with("position", position.to_string()).with("line", line.to_string())
                }
                _ => refused.into(),
            }
        })?;
        let events = appended.last - appended.first + 1;
        *(if appended.replayed { &mut self.progress.known } else { &mut self.progress.added }) +=
            events;
        self.progress.count(appended.first, appended.last, flight.through);
        Ok(())
    }
}

/// The time of an event cannot be kept.
fn not_kept(invalid: &Invalid, lines: &[u64]) -> Box<Problem> {
    let event = invalid.field.strip_prefix("events[").and_then(|rest| rest.split_once(']'));
    let line = event.and_then(|(event, _)| lines.get(event.parse::<usize>().ok()?)).copied();
    let line = line.unwrap_or_default();
    let reason = format!("recorded_at {}", invalid.reason);
    let mut json = Vec::new();
    push_string(&mut json, &reason);
    problem::INVALID
        .because(format!(
            "line {line}: {reason}. Import into an empty log, or have the times kept as metadata \
             with recorded_at=metadata"
        ))
        .field("recorded_at")
        .with("line", line.to_string())
        .with("reason", String::from_utf8_lossy(&json).into_owned())
}

impl Progress {
    fn count(&mut self, first: Position, last: Position, through: Waypoint) {
        assert!(through.lines >= self.through.lines, "chunks settle in order");
        self.through = through;
        let start = self.positions.map_or(first, |(start, _)| start);
        self.positions = Some((start, last));
    }
}
