//! The contract of a view: a decision, a fold and queries. The server provides the shell around it
//! (threads, disk, clock, log).
//!
//! ```text
//! command ─► decide(folded, staged) ─► events + condition ─► the log ─► apply ─► folded ─► answer
//!               ▲          │
//!               └─ staged ◄┘   decided, not folded yet
//! ```
//!
//! Everything here is a function of its arguments: no clock (events and queries carry the time), no
//! disk, no randomness (the context carries it). A view at position N is a function of events 1…N
//! alone.

mod chunked;
pub mod packed;
mod written;

pub use chunked::ChunkedArray;
pub use written::{event, json};

use std::fmt;
use std::io;
use wellspring_types::{Event, Position, Query, QueryItem};

/// An event as it is stored in the log.
pub trait LogEvent {
    /// Its position.
    fn position(&self) -> Position;
    /// When it was recorded, µs since 1970 UTC; never decreases along positions.
    fn recorded_at_us(&self) -> u64;
    /// Its type.
    fn event_type(&self) -> &str;
    /// Its tags.
    fn tags(&self) -> impl Iterator<Item = &str>;
    /// Its payload.
    fn data(&self) -> &[u8];
}

/// Identifies the decisions of one append until the shell settles them.
pub type Ticket = u64;

/// The result of deciding a command.
#[derive(Debug, Clone)]
pub struct Decision<O> {
    /// The events to append, all or none; empty if nothing needs to change.
    pub events: Vec<Event>,
    /// The append condition: events that must not have been appended [after](ConditionStart) the
    /// position that was folded at the decision. (Any client may append a view's events.) Up to
    /// that position the fold is authoritative: events that it ignored forbid nothing. Empty: no
    /// condition.
    pub unless: Vec<QueryItem>,
    /// The answer once the events are durable and folded.
    pub outcome: O,
}

/// The position after which [`Decision::unless`] applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStart {
    /// The folded position. The view's own pending events also conflict, so items name the
    /// decision's subject: a code, an account.
    Folded,
    /// For each item named, the position of the view's own last event that was appended on that
    /// very item and has a position, or the folded position if that is later; of several items, the
    /// earliest. The view knows its own events and judges them itself. No foreign event that
    /// matches an item lies between two decisions that name it, so each decision has seen
    /// everything before it.
    ///
    /// Every decision that affects a subject must name it in the same words: a view's own event
    /// that matches an item must come from a decision that names that item. An event from a
    /// decision that names other items is a conflict, and the command is decided again once it is
    /// folded.
    OwnLast,
}

/// Why a snapshot cannot be read. The view is then rebuilt from the log.
#[derive(Debug)]
pub enum SnapshotFault {
    /// It ends early or could not be read.
    Io(io::Error),
    /// Its content is not valid for this version.
    Malformed(&'static str),
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotFault::Io(error) => write!(f, "{error}"),
            SnapshotFault::Malformed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for SnapshotFault {}

impl From<io::Error> for SnapshotFault {
    fn from(error: io::Error) -> SnapshotFault {
        SnapshotFault::Io(error)
    }
}

/// A view: the one writer of the folded state. Readers share [`Folded`](Self::Folded) and never
/// wait for the writer.
///
/// Two properties that every view's tests must show:
/// - **Disposable**: folding the log again gives the same answers, byte for byte.
/// - **Idempotent**: applying an event again changes nothing. An ordinary reader takes a snapshot
///   while the fold continues, so it may include effects of events after its position, and those
///   events are applied again after it is read.
pub trait View: Sized + Send + 'static {
    /// The view's name in files, figures and answers.
    const NAME: &'static str;
    /// Version of the fold and of the snapshot format. A snapshot of another version is discarded.
    const VERSION: u32;
    /// The position after which a decision's append condition applies.
    const CONDITION_START: ConditionStart = ConditionStart::Folded;

    /// The folded state, shared with readers.
    type Folded: Send + Sync + 'static;
    /// The pending decisions, which are not folded yet. Decisions see them; queries do not.
    type Staged: Default + Send + 'static;
    /// A change requested by a client.
    type Command: Send + 'static;
    /// Inputs of a decision that are not in any event: randomness, rules of the server.
    type Context: Send + Sync + 'static;
    /// The result of a command.
    type Outcome: Send + 'static;
    /// Why a command is refused. A retry fails until something changes.
    type Refusal: Send + 'static;

    /// An empty view.
    fn new() -> Self;

    /// An empty view under these rules of the server. The folded state is a function of the events
    /// and the rules.
    fn with_context(_context: &Self::Context) -> Self {
        Self::new()
    }

    /// Reads a snapshot of this version under these rules, whatever rules were in force when it was
    /// written.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn restore(_context: &Self::Context, input: &mut impl io::Read) -> Result<Self, SnapshotFault> {
        Self::decode(input)
    }

    /// The events that the view folds.
    fn query() -> Query;

    /// The readers' side.
    fn folded(&self) -> &std::sync::Arc<Self::Folded>;

    /// Folds the next event. Ignores invalid events: any client may append to a log.
    fn apply(&mut self, event: &impl LogEvent);

    /// Makes the applied events visible to readers, before they are told that everything up to
    /// `position` is folded. Needed only if readers see versions of the state. After reading a
    /// snapshot, effects of later events may already be visible.
    fn publish(&mut self, _position: Position) {}

    /// The outcome of the command that an event came from, for a retry of that command.
    fn outcome(event: &impl LogEvent) -> Option<Self::Outcome>;

    /// An event that preserves the outcome of a command without events, so that a retry with the
    /// same key gets the same answer. The fold ignores it; [`outcome`](Self::outcome) reads it.
    fn remember(_outcome: &Self::Outcome) -> Option<Event> {
        None
    }

    /// Decides one command.
    ///
    /// # Errors
    /// The refusal of the command.
    fn decide(
        folded: &Self::Folded,
        staged: &Self::Staged,
        context: &Self::Context,
        command: &Self::Command,
    ) -> Result<Decision<Self::Outcome>, Self::Refusal>;

    /// The sealed parts of `wellspring_format` that go with the last event that a command is
    /// decided to, if it has any.
    fn sealed_parts(_command: &Self::Command) -> &[u8] {
        &[]
    }

    /// Records a decision, on which later ones build. The decisions of one append share a ticket.
    fn stage(staged: &mut Self::Staged, decision: &Decision<Self::Outcome>, ticket: Ticket);

    /// The log has assigned positions to the decisions of a ticket, the last of which is this one:
    /// later decisions now build on them. They may still be discarded.
    fn placed(_staged: &mut Self::Staged, _ticket: Ticket, _last: Position) {}

    /// Forgets the decisions of a ticket: they are folded, or got no position.
    fn settle(staged: &mut Self::Staged, ticket: Ticket);

    /// Forgets the decisions of a ticket that had a position and were discarded, and everything
    /// that was built on them, even outside of decisions.
    fn discarded(staged: &mut Self::Staged, ticket: Ticket) {
        Self::settle(staged, ticket);
    }

    /// The state without pending decisions. It retains whatever else `staged` records, such as how
    /// often decisions were discarded.
    fn without_pending(_staged: &Self::Staged) -> Self::Staged {
        Self::Staged::default()
    }

    /// Whether clients receive this refusal. If so, it must not depend on decisions that may still
    /// be discarded. A refusal that only makes the caller start over, such as "overtaken", is never
    /// sent, so it takes effect at once.
    fn is_final(_refusal: &Self::Refusal) -> bool {
        true
    }

    /// Writes a snapshot while the fold may continue.
    ///
    /// # Errors
    /// Those of `out`.
    fn encode(folded: &Self::Folded, out: &mut impl io::Write) -> io::Result<()>;

    /// Reads a snapshot of this version.
    ///
    /// # Errors
    /// [`SnapshotFault`]; never returns a partial view.
    fn decode(input: &mut impl io::Read) -> Result<Self, SnapshotFault>;
}
