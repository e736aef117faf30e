//! Memory bounds of a request's states, and the error for exceeding one.

use super::sort_key::MAX_DEPTH;
use super::value_path::ValuePath;
use wellspring_json::{Fault, FaultKind};
use wellspring_types::Position;

/// Maximum memory of all states of one request together, an estimate in bytes.
pub const MAX_STATE_BYTES: usize = 16 << 20;
/// Maximum number of groups of one projection, across all levels of nesting.
pub const MAX_GROUPS: usize = 10_000;
/// Maximum number of values of one `distinct`.
pub const MAX_DISTINCT: usize = 10_000;

/// The remaining budget while one event is folded into one projection.
pub(super) struct Bounds<'a> {
    /// Bytes left for the whole request.
    pub(super) memory: &'a mut usize,
    /// Groups left for this projection.
    pub(super) groups: &'a mut usize,
    /// Events without a usable value.
    pub(super) passed_over: &'a mut PassedOver,
}

/// What is done about an event without a value that a reducer can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// It is counted.
    PassOver,
    /// It is an error.
    Refuse,
}

/// The events of a projection without a usable value.
#[derive(Debug, Clone)]
pub(super) struct PassedOver {
    pub(super) strictness: Strictness,
    /// How many there are.
    pub(super) events: u64,
    /// The first of them; 0: there is none.
    pub(super) first: Position,
    last: Position,
}

impl PassedOver {
    pub(super) fn new(strictness: Strictness) -> PassedOver {
        PassedOver { strictness, events: 0, first: 0, last: 0 }
    }

    /// Counts an event once, however many of its groups have no value.
    fn note(&mut self, position: Position) {
        if self.last != position {
            self.events += 1;
            self.last = position;
        }
        if self.first == 0 {
            self.first = position;
        }
    }
}

/// What stands where a reducer looks for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The data is not JSON.
    NotJson,
    Nothing,
    Null,
    Boolean,
    Text,
    Array,
    Object,
    /// Text that is not Unicode, or a number that no group can be named by.
    Unreadable,
}

impl Unusable {
    fn name(self) -> &'static str {
        match self {
            Unusable::NotJson => "data that is not JSON",
            Unusable::Nothing => "no value",
            Unusable::Null => "null",
            Unusable::Boolean => "a boolean",
            Unusable::Text => "text",
            Unusable::Array => "a list",
            Unusable::Object => "an object",
            Unusable::Unreadable => "text that is not Unicode",
        }
    }
}

/// Why a projection ends without an answer: a bound was exceeded, or a strict one found no value.
/// From then on the state lacks an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Overrun {
    Memory,
    Groups,
    Distinct,
    Depth,
    /// A sum exceeded the range of floating point with this event; 0: before any.
    Range(Position),
    /// This event has no usable value at these pointers, and the projection is strict.
    Unusable {
        position: Position,
        pointers: String,
        found: Unusable,
    },
}

impl Bounds<'_> {
    /// Takes `bytes` permanently: states only grow.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Overrun> {
        *self.memory = self.memory.checked_sub(bytes).ok_or(Overrun::Memory)?;
        Ok(())
    }

    /// Counts an event without a usable value.
    pub(super) fn pass_over(
        &mut self,
        position: Position,
        path: &ValuePath,
        found: Unusable,
    ) -> Result<(), Overrun> {
        match self.passed_over.strictness {
            Strictness::PassOver => {
                self.passed_over.note(position);
                Ok(())
            }
            Strictness::Refuse => {
                Err(Overrun::Unusable { position, pointers: path.to_string(), found })
            }
        }
    }

    /// Takes one more group with a key of `bytes`.
    pub(super) fn charge_group(&mut self, bytes: usize) -> Result<(), Overrun> {
        *self.groups = self.groups.checked_sub(1).ok_or(Overrun::Groups)?;
        self.charge(bytes)
    }
}

impl Overrun {
    /// The fault of the reducer at `field`.
    pub(super) fn fault(self, field: &str) -> Box<Fault> {
        let narrow = "narrow the query or choose a smaller reduction";
        let (limit, detail) = match self {
            Overrun::Memory => (
                MAX_STATE_BYTES,
                format!("needs states of more than {MAX_STATE_BYTES} bytes; {narrow}"),
            ),
            Overrun::Groups => {
                (MAX_GROUPS, format!("produces more than {MAX_GROUPS} groups; {narrow}"))
            }
            Overrun::Distinct => {
                (MAX_DISTINCT, format!("finds more than {MAX_DISTINCT} distinct values; {narrow}"))
            }
            Overrun::Depth => (
                MAX_DEPTH,
                format!(
                    "finds a value nested more than {MAX_DEPTH} levels deep; use a more specific pointer"
                ),
            ),
            Overrun::Range(position) => {
                let from = match position {
                    0 => "its init".to_owned(),
                    _ => format!(
                        "the event at position {position}; a query that leaves that event out, or \
                         after: {position} with the sum up to it as init, goes on"
                    ),
                };
                let what = format!(
                    "produces a sum beyond the range of floating point (±1.8e308) from {from}"
                );
                return Fault::of(field, 0, FaultKind::Rule(what));
            }
            Overrun::Unusable { position, pointers, found } => {
                let what = format!(
                    "finds {} at {pointers} in the event at position {position}, and the \
                     projection is strict; add a pointer to where that event has the value, narrow \
                     the query, or leave out strict",
                    found.name()
                );
                return Fault::of(field, 0, FaultKind::Rule(what));
            }
        };
        Fault::of(field, 0, FaultKind::TooLarge { detail, limit: limit as u64 })
    }
}
