//! What a request's states may hold in memory, and what passes it.

use super::sort_key::MAX_DEPTH;
use wellspring_json::{Fault, FaultKind};

/// Bytes that all states of one request may hold together, by estimate.
pub const MAX_STATE_BYTES: usize = 16 << 20;
/// Most groups of one projection, all levels of nesting counted together.
pub const MAX_GROUPS: usize = 10_000;
/// Most values one `distinct` may hold.
pub const MAX_DISTINCT: usize = 10_000;

/// What is left of the bounds while one event is folded into one projection.
pub(super) struct Bounds<'a> {
    /// Bytes left to the whole request.
    pub(super) memory: &'a mut usize,
    /// Groups left to this projection.
    pub(super) groups: &'a mut usize,
}

/// The bound that was passed. The state is short of an event from then on, so no answer may be
/// given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overrun {
    Memory,
    Groups,
    Distinct,
    Depth,
    /// A sum left the range of floating point.
    Range,
}

impl Bounds<'_> {
    /// Takes `bytes` more, for good: states only grow.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Overrun> {
        *self.memory = self.memory.checked_sub(bytes).ok_or(Overrun::Memory)?;
        Ok(())
    }

    /// Takes one more group with a key of `bytes`.
    pub(super) fn charge_group(&mut self, bytes: usize) -> Result<(), Overrun> {
        *self.groups = self.groups.checked_sub(1).ok_or(Overrun::Groups)?;
        self.charge(bytes)
    }
}

impl Overrun {
    /// As a fault of the reducer at `field`.
    pub(super) fn fault(self, field: &str) -> Box<Fault> {
        let narrow = "narrow the query or reduce to less";
        let (limit, detail) = match self {
            Overrun::Memory => (
                MAX_STATE_BYTES,
                format!("makes the states grow past {MAX_STATE_BYTES} bytes; {narrow}"),
            ),
            Overrun::Groups => {
                (MAX_GROUPS, format!("makes more than {MAX_GROUPS} groups; {narrow}"))
            }
            Overrun::Distinct => {
                (MAX_DISTINCT, format!("finds more than {MAX_DISTINCT} distinct values; {narrow}"))
            }
            Overrun::Depth => (
                MAX_DEPTH,
                format!("finds a value nested more than {MAX_DEPTH} deep; point further into it"),
            ),
            Overrun::Range => {
                let what = "is a sum beyond the range of floating point (±1.8e308)";
                return Fault::of(field, 0, FaultKind::Rule(what.to_owned()));
            }
        };
        Fault::of(field, 0, FaultKind::TooLarge { detail, limit: limit as u64 })
    }
}
