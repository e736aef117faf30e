//! Append requests and their outcomes: the types that the log and its sequencer share.

use crate::error::AppendError;
use crate::fence::Fence;
use crate::work::Stopped;
use std::sync::Arc;
use wellspring_format::record::{EncodedEvents, RequestKey};
use wellspring_types::{AppendCondition, Position};

/// When an append is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// Once it survives a power loss (under [`Sync::Always`](crate::Sync::Always)).
    #[default]
    Durable,
    /// Once it is staged in memory: a crash can lose it.
    Accepted,
}

/// A request to append.
#[derive(Debug, Clone, Default)]
pub struct Append {
    /// The events to append, at least one.
    pub events: EncodedEvents,
    /// The append condition.
    pub condition: Option<AppendCondition>,
    /// When to answer.
    pub ack: Ack,
    /// Makes retries safe.
    pub key: Option<RequestKey>,
    /// A right that must be held where it is staged.
    pub fence: Option<Arc<dyn Fence>>,
}

/// The result of an append.
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

/// An append as stored under its [`RequestKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRequest {
    /// Position of its first event.
    pub first: Position,
    /// Number of its events, at least 1, at consecutive positions.
    pub events: u64,
    /// The digest that its caller supplied.
    pub digest: [u8; 16],
}

/// The state that an append was decided on, as far as the append does not say so itself.
/// `Basis::default()` is right for an append that depends only on its condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Basis {
    /// The setback count at which the staged appends it depends on were placed
    /// ([`Staged::Placed`]). If a later setback has discarded staged appends, the append is refused
    /// with [`AppendError::SetBack`].
    pub setbacks: Option<u64>,
    /// The request key is known to be absent from the log up to this position; 0 if nothing is
    /// known.
    pub key_absent_through: Position,
    /// The ids of the events are known to be absent from the log up to this position; 0 if nothing
    /// is known.
    pub ids_absent_through: Position,
}

/// Called once with the outcome, on a thread of the log or of the caller. Must not block.
pub type Completion = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;

/// The result of staging an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staged {
    /// `done` has been called.
    Answered,
    /// Its events have these positions, unless they are discarded. `done` is called after a commit,
    /// when the outcome is known.
    Placed {
        /// Position of its first event.
        first: Position,
        /// Position of its last event.
        last: Position,
        /// The current setback count, to be passed in the [`Basis`] of appends that depend on this
        /// one.
        setbacks: u64,
    },
    /// It has no positions: a staged event of another append refuses it, or makes it look like a
    /// retry. `done` is called after a commit, when that event's outcome is known.
    WaitsFor {
        /// The event's position.
        position: Position,
    },
}

/// An append that was not judged because its [`Work`](crate::Work) stopped first. It had no effect
/// and can be staged again.
#[must_use = "its completion waits for an answer"]
pub struct Unjudged {
    /// The append.
    pub append: Append,
    /// The completion, which has not been called.
    pub done: Completion,
    /// Why the work stopped.
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
