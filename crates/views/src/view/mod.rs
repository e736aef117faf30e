//! What a view is: a decision, a fold and an answer. The shell around it (threads,
//! disk, clock, log) is the server's.
//!
//! ```text
//! command ─► decide(folded, staged) ─► events + condition ─► the log ─► apply ─► folded ─► answer
//!               ▲          │
//!               └─ staged ◄┘   what was decided and is not folded yet
//! ```
//!
//! Everything here is a function of its arguments: no clock (time comes in the event
//! or the question), no disk, no randomness (it comes in the context). A view at
//! position N is a function of events 1…N alone.

mod chunked;
pub mod packed;
mod written;

pub use chunked::Chunked;
pub use written::{event, json};

use std::fmt;
use std::io;
use wellspring_types::{Event, Position, Query, QueryItem};

/// An event as it lies in the log.
pub trait Recorded {
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

/// Names what is decided for one append, one decision or several, until the shell has settled it.
pub type Ticket = u64;

/// What a decision comes to.
#[derive(Debug, Clone)]
pub struct Decision<O> {
    /// The events to append, all or none; empty if nothing has to happen.
    pub events: Vec<Event>,
    /// The append condition: what nobody may have appended [after](After) the position that was
    /// folded when it was decided (anyone may append a view's events). Up to there the fold knows
    /// better: what it made nothing of forbids nothing. Empty: nothing is forbidden.
    pub unless: Vec<QueryItem>,
    /// What to answer once the events are durable and folded.
    pub outcome: O,
}

/// After which position nobody may have appended what a decision names
/// ([`Decision::unless`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// After the one that was folded. The view's own events on their way stand in the way too, so
    /// items name what a decision is about: a code, an account.
    Folded,
    /// For each item named, after the last of the view's own events that has a position and was
    /// appended on that very item, or the folded one if that is later; of several items, the
    /// earliest of these. The view knows its own events, and judges by itself whether they stand in
    /// the way. Nothing of others that matches an item lies between two decisions that name it, so
    /// each has seen all there is before it.
    ///
    /// A view's own event that matches an item must come of a decision that names that item:
    /// whatever touches a thing names the thing in the same words. One that names others is a
    /// conflict, and decided again once it is folded.
    OwnLast,
}

/// Why a snapshot cannot be read. The view is then rebuilt from the log.
#[derive(Debug)]
pub enum SnapshotFault {
    /// It ends early, or could not be read.
    Io(io::Error),
    /// It holds something that no snapshot of this version holds.
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

/// A view: the one writer of what is folded. Readers share [`Folded`](Self::Folded),
/// which they read without waiting for the writer.
///
/// Two properties that every view's tests must show:
/// - **Disposable**: folding the log anew gives the same answers, byte for byte.
/// - **Idempotent**: applying an event whose effect is there already changes nothing.
///   A snapshot is taken by an ordinary reader while the fold goes on, so it may hold
///   effects of events after its position, and they are applied again when it is read.
pub trait View: Sized + Send + 'static {
    /// Names the view in files, figures and answers.
    const NAME: &'static str;
    /// Version of the fold and of the snapshot's form. A snapshot of another version is discarded.
    const VERSION: u32;
    /// What the append condition of a decision leaves out.
    const AFTER: After = After::Folded;

    /// What is folded, shared with readers.
    type Folded: Send + Sync + 'static;
    /// What has been decided and is not folded yet. Decisions see it, answers do not.
    type Staged: Default + Send + 'static;
    /// What a client wants to happen.
    type Command: Send + 'static;
    /// What a decision needs that no event holds: randomness, rules of the shell.
    type Context: Send + Sync + 'static;
    /// What became of a command.
    type Outcome: Send + 'static;
    /// Why a command is refused. A retry does not help until something changes.
    type Refusal: Send + 'static;

    /// A view of no events.
    fn new() -> Self;

    /// A view of no events, under these rules of the shell. What is folded is a function of the
    /// events and of them.
    fn begin(_context: &Self::Context) -> Self {
        Self::new()
    }

    /// Reads a snapshot of this version under these rules, whatever those were under which it was
    /// written.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn resume(_context: &Self::Context, input: &mut impl io::Read) -> Result<Self, SnapshotFault> {
        Self::decode(input)
    }

    /// The events that concern it.
    fn concern() -> Query;

    /// The readers' side.
    fn folded(&self) -> &std::sync::Arc<Self::Folded>;

    /// Folds the next event. Events that make no sense here (anyone may append to a log) change
    /// nothing.
    fn apply(&mut self, event: &impl Recorded);

    /// Shows readers what has been applied, before they are told that everything up to `position`
    /// is folded. For a view whose readers see versions of it; what changes under its readers needs
    /// none of this. After a snapshot was read, effects of later events may be there already.
    fn publish(&mut self, _position: Position) {}

    /// What an event says about the outcome of the command it came from, for a retry of that
    /// command.
    fn outcome(event: &impl Recorded) -> Option<Self::Outcome>;

    /// What keeps the outcome of a command that came to no event, so that a retry under the same
    /// key gets it: an event that the fold passes over, and [`outcome`](Self::outcome) reads.
    fn remember(_outcome: &Self::Outcome) -> Option<Event> {
        None
    }

    /// Decides one command.
    ///
    /// # Errors
    /// The refusal, if the command cannot be.
    fn decide(
        folded: &Self::Folded,
        staged: &Self::Staged,
        context: &Self::Context,
        command: &Self::Command,
    ) -> Result<Decision<Self::Outcome>, Self::Refusal>;

    /// Notes a decision as made: later ones are decided on top of it. Those of one append have one
    /// ticket.
    fn stage(staged: &mut Self::Staged, decision: &Decision<Self::Outcome>, ticket: Ticket);

    /// The log has given the decisions of a ticket a place in its order, with this position as the
    /// last: from now on others are decided on top of them. That they come to nothing is still
    /// possible.
    fn placed(_staged: &mut Self::Staged, _ticket: Ticket, _last: Position) {}

    /// Forgets the decisions of a ticket: they are folded, or were given no place.
    fn settle(staged: &mut Self::Staged, ticket: Ticket);

    /// Forgets the decisions of a ticket that had a place and have come to nothing, and with them
    /// whatever was made on top of them, perhaps outside of any decision.
    fn came_to_nothing(staged: &mut Self::Staged, ticket: Ticket) {
        Self::settle(staged, ticket);
    }

    /// As if no decision were on its way. What `staged` knows besides decisions, such as how often
    /// any came to nothing, is in it.
    fn unstaged(_staged: &Self::Staged) -> Self::Staged {
        Self::Staged::default()
    }

    /// Whether a client is told this refusal, which then must not rest on anything that may come to
    /// nothing. What only makes the caller begin again, such as "overtaken", is told to nobody and
    /// known at once.
    fn is_told(_refusal: &Self::Refusal) -> bool {
        true
    }

    /// Writes a snapshot while the fold may go on.
    ///
    /// # Errors
    /// Those of `out`.
    fn encode(folded: &Self::Folded, out: &mut impl io::Write) -> io::Result<()>;

    /// Reads a snapshot of this version.
    ///
    /// # Errors
    /// [`SnapshotFault`]; never a view that is half there.
    fn decode(input: &mut impl io::Read) -> Result<Self, SnapshotFault>;
}
