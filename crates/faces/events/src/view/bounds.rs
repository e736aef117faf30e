//! Memory bounds of a request's states, and the error for exceeding one.

use super::sort_key::MAX_DEPTH;
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
    /// Values of the wrong type that were passed over.
    pub(super) ignored: &'a mut u64,
}

/// The bound that was exceeded. From then on the state lacks an event, so no answer may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overrun {
    Memory,
    Groups,
    Distinct,
    Depth,
    /// A sum exceeded the range of floating point with this event; 0: before any.
    Range(Position),
}

impl Bounds<'_> {
    /// Takes `bytes` permanently: states only grow.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Overrun> {
        *self.memory = self.memory.checked_sub(bytes).ok_or(Overrun::Memory)?;
        Ok(())
    }

    /// Counts a value of the wrong type.
    pub(super) fn ignore(&mut self) -> Result<(), Overrun> {
        *self.ignored += 1;
        Ok(())
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
        };
        Fault::of(field, 0, FaultKind::TooLarge { detail, limit: limit as u64 })
    }
}
