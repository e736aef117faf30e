//! The generations of the secret that signs tokens, where the nodes of a cluster derive it from the
//! key they share: then a number tells which it is, and a rotation is an event that all of them
//! see.

use super::decide::{Outcome, decision};
use super::event::{Fact, TOKEN_SECRET_ROTATED};
use crate::view::Decision;
use serde::{Deserialize, Serialize};
use wellspring_types::QueryItem;

/// Which generations count: one signs, and the one before it still verifies until it is retired or
/// the next rotation comes. They are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenGenerations {
    signs: u64,
    /// That one, or the one before it.
    oldest: u64,
}

impl TokenGenerations {
    /// The one that signs.
    #[must_use]
    pub fn signs(self) -> u64 {
        self.signs
    }

    /// The oldest that verifies: the one that signs, or the one before it.
    #[must_use]
    pub fn oldest(self) -> u64 {
        self.oldest
    }

    /// Whether tokens of a generation count. Those of a later one do: whoever could sign them has
    /// seen a rotation that is not folded here yet.
    #[must_use]
    pub fn count(self, generation: u64) -> bool {
        generation >= self.oldest
    }

    /// Another signs from now on. One that has signed before never does again.
    pub(super) fn rotate(&mut self, to: u64) {
        if to > self.signs {
            *self = TokenGenerations { signs: to, oldest: to - 1 };
        }
    }

    /// Those before this one no longer verify, as far as they do not sign.
    pub(super) fn retire(&mut self, before: u64) {
        self.oldest = self.oldest.max(before.min(self.signs));
    }

    /// Whether they are what a fold comes to.
    pub(super) fn are_sound(self) -> bool {
        self.oldest <= self.signs && self.signs - self.oldest <= 1
    }
}

/// The next generation is to sign. Two rotations at once are two, one after the other.
pub(super) fn decide_rotation(now: TokenGenerations) -> Decision<Outcome> {
    // Not before so many rotations that no clock counts that far.
    let next = now.signs.saturating_add(1);
    let fact = Some(Fact::TokenSecretRotated(next)).filter(|_| next > now.signs);
    decision(fact, unless_rotated(), Outcome::TokenSecretRotated(next))
}

/// The one that signs is to be the only one.
pub(super) fn decide_retirement(now: TokenGenerations) -> Decision<Outcome> {
    let fact = Some(Fact::TokenSecretRetired(now.signs)).filter(|_| now.oldest < now.signs);
    decision(fact, unless_rotated(), Outcome::TokenSecretRetired(now.signs))
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
