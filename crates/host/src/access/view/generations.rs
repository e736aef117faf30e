//! The generations of the secret that signs tokens, for clusters whose nodes derive it from their
//! shared key. A number identifies a generation, and a rotation is an event that every node sees.

use super::decide::{AccessOutcome, decision};
use super::event::{Fact, TOKEN_SECRET_ROTATED};
use crate::view::contract::Decision;
use serde::{Deserialize, Serialize};
use wellspring_types::QueryItem;

/// The valid generations, counted from 0: one signs, and the one before it verifies until it is
/// retired or the next rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenGenerations {
    signs: u64,
    /// The signing generation or the one before it.
    oldest: u64,
}

impl TokenGenerations {
    /// The generation that signs.
    #[must_use]
    pub fn signs(self) -> u64 {
        self.signs
    }

    /// The oldest generation that verifies: the signing one or the one before it.
    #[must_use]
    pub fn oldest(self) -> u64 {
        self.oldest
    }

    /// Whether tokens of a generation are valid. Those of a later generation are: its signer has
    /// seen a rotation that is not folded here yet.
    #[must_use]
    pub fn count(self, generation: u64) -> bool {
        generation >= self.oldest
    }

    /// Makes a later generation sign. A generation that has signed before never signs again.
    pub(super) fn rotate(&mut self, to: u64) {
        if to > self.signs {
            *self = TokenGenerations { signs: to, oldest: to - 1 };
        }
        debug_assert!(self.are_sound());
    }

    /// Stops generations before this one from verifying. The signing generation always verifies.
    pub(super) fn retire(&mut self, before: u64) {
        self.oldest = self.oldest.max(before.min(self.signs));
        debug_assert!(self.are_sound());
    }

    /// Whether a fold can produce these values.
    pub(super) fn are_sound(self) -> bool {
        self.oldest <= self.signs && self.signs - self.oldest <= 1
    }
}

/// Decides that the next generation signs. Two concurrent rotations take effect one after the
/// other.
pub(super) fn decide_rotation(now: TokenGenerations) -> Decision<AccessOutcome> {
    // Saturation is out of reach in practice.
    let next = now.signs.saturating_add(1);
    let fact = Some(Fact::TokenSecretRotated(next)).filter(|_| next > now.signs);
    decision(fact, unless_rotated(), AccessOutcome::TokenSecretRotated(next))
}

/// Decides that only the signing generation verifies.
pub(super) fn decide_retirement(now: TokenGenerations) -> Decision<AccessOutcome> {
    let fact = Some(Fact::TokenSecretRetired(now.signs)).filter(|_| now.oldest < now.signs);
    decision(fact, unless_rotated(), AccessOutcome::TokenSecretRetired(now.signs))
}

fn unless_rotated() -> Vec<QueryItem> {
    vec![QueryItem::new(&[TOKEN_SECRET_ROTATED], &[])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_before_counts_until_it_is_retired_or_overtaken() {
        let mut generations = TokenGenerations::default();
        let counting = |now: TokenGenerations| (now.signs(), now.oldest());
        assert!(generations.count(0) && generations.count(1));
        generations.retire(0);
        generations.rotate(1);
        assert_eq!(counting(generations), (1, 0));
        generations.rotate(1);
        assert_eq!(counting(generations), (1, 0), "what is said twice is so once");
        generations.retire(1);
        assert_eq!(counting(generations), (1, 1));
        assert!(!generations.count(0) && generations.count(1) && generations.count(2));
        generations.rotate(2);
        generations.rotate(3);
        assert_eq!(counting(generations), (3, 2));
        generations.rotate(2);
        generations.retire(1);
        assert_eq!(counting(generations), (3, 2), "nothing goes back");
        generations.retire(9);
        assert_eq!(counting(generations), (3, 3), "the one that signs is never retired");
        generations.rotate(u64::MAX);
        assert!(generations.are_sound());
        assert_eq!(decide_rotation(generations).events.len(), 0);
    }
}
