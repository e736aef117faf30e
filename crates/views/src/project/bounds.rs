//! What a request's states may hold in memory, and what passes it.

use super::error::ProjectError;
use super::sort_key::MAX_DEPTH;

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
    /// As an error about the reducer at `field`.
    pub(super) fn error(self, field: &str) -> ProjectError {
        let narrow = "narrow the query or reduce to less";
        match self {
            Overrun::Memory => ProjectError::limit(
                field,
                MAX_STATE_BYTES,
                format!("makes the states grow past {MAX_STATE_BYTES} bytes; {narrow}"),
            ),
            Overrun::Groups => ProjectError::limit(
                field,
                MAX_GROUPS,
                format!("makes more than {MAX_GROUPS} groups; {narrow}"),
            ),
            Overrun::Distinct => ProjectError::limit(
                field,
                MAX_DISTINCT,
                format!("finds more than {MAX_DISTINCT} distinct values; {narrow}"),
            ),
            Overrun::Depth => ProjectError::limit(
                field,
                MAX_DEPTH,
                format!("finds a value nested more than {MAX_DEPTH} deep; point further into it"),
            ),
            Overrun::Range => {
                ProjectError::rule(field, "is a sum beyond the range of floating point (±1.8e308)")
            }
        }
    }
}
