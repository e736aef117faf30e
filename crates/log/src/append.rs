//! A request to append, and what may come of it: the words that the log and its sequencer share.

use crate::error::AppendError;
use crate::lease::Fence;
use crate::record::{EncodedEvents, RequestKey};
use crate::work::Stopped;
use wellspring_types::{AppendCondition, Position};

/// When an append is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// When it survives a power loss (under [`Sync::Always`](crate::Sync::Always)).
    #[default]
    Durable,
    /// When it is staged in memory: a crash may lose it.
    Accepted,
}

/// A request to append.
#[derive(Debug, Clone, Default)]
pub struct Append {
    /// What to append: at least one event.
    pub events: EncodedEvents,
    /// What must not have happened.
    pub condition: Option<AppendCondition>,
    /// When to answer.
    pub ack: Ack,
    /// Makes a retry safe.
    pub key: Option<RequestKey>,
    /// A lease that must still be held.
    pub fence: Option<Fence>,
}

/// What an append came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Position of its first event.
    pub first: Position,
    /// Position of its last event.
    pub last: Position,
    /// Head of the log when it was answered; at least `last` for durable appends.
    pub head: Position,
    /// Whether this is the answer to an earlier attempt of the same request.
    pub replayed: bool,
}

/// An append as its [`RequestKey`] remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRequest {
    /// Position of its first event.
    pub first: Position,
    /// Number of its events, at least 1; they follow one another.
    pub events: u64,
    /// What its caller gave as digest.
    pub digest: [u8; 16],
}

/// What an append was decided on, as far as the log cannot see it in the append itself.
/// `Basis::default()` is right for an append that rests on its condition alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Basis {
    /// The number of setbacks at which the staged appends it rests on were placed
    /// ([`Staged::Placed`]). If another setback has dropped what was staged since, the append is
    /// refused with [`AppendError::SetBack`].
    pub setbacks: Option<u64>,
    /// The request key is known not to be in the log up to this position; 0 if nothing is known.
    pub key_absent_through: Position,
}

/// Called once, on a thread of the log or of the caller, with the outcome. Must not block.
pub type Completion = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;

/// What became of an append that was to be staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staged {
    /// `done` has been called.
    Answered,
    /// Its events have these positions, unless what is staged comes to nothing. `done` is called
    /// when that is known, after a commit.
    Placed {
        /// Position of its first event.
        first: Position,
        /// Position of its last event.
        last: Position,
        /// The number of setbacks so far: what must not be stored unless this append is names it as
        /// its [`Basis`].
        setbacks: u64,
    },
    /// It has no positions. It met the staged event of another append, which refuses it or of which
    /// it looks like a retry; `done` is called when it is known what becomes of that event, after a
    /// commit.
    WaitsFor {
        /// Position of that event.
        position: Position,
    },
}

/// An append that was not judged because its [`Work`](crate::Work) ended first. Nothing was done:
/// it may be staged again.
#[must_use = "its completion waits for an answer"]
pub struct Unjudged {
    /// The append as it was given.
    pub append: Append,
    /// Has not been called.
    pub done: Completion,
    /// Why the work ended.
    pub stopped: Stopped,
}

impl Unjudged {
    /// Answers it as stopped.
    pub fn refuse(self) {
        (self.done)(Err(AppendError::Stopped(self.stopped)));
    }
}

impl std::fmt::Debug for Unjudged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unjudged").field("stopped", &self.stopped).finish_non_exhaustive()
    }
}
