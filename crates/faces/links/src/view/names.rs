//! Maps codes to links where the code is not stored under its counter: aliases, deterministic
//! codes, and events appended by other programs. One writer; readers take no lock.
//!
//! Open addressing with linear probing, in levels: when one is three quarters full, new codes go to
//! the next, which is four times as large. Entries never move, so readers need no synchronization
//! beyond the slot; a look-up tries each level, the largest first.

use super::Code;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const FIRST_SLOTS: usize = 1 << 10;
const LEVELS: usize = 14;

/// The code plus one (0 while the slot is free), and its link.
type Slot = (AtomicU64, AtomicU64);

/// The map; see the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Randomly seeded in every process, so that no client can choose aliases that collide. Answers
    /// do not depend on it.
    hasher: RandomState,
    levels: [OnceLock<Box<[Slot]>>; LEVELS],
}

/// The writer's state.
#[derive(Debug, Default)]
pub(super) struct NamesEnd {
    level: usize,
    used: usize,
}

impl Names {
    fn hash(&self, code: Code) -> usize {
        self.hasher.hash_one(code.number()) as usize
    }

    /// The link of a code.
    pub(super) fn get(&self, code: Code) -> Option<u64> {
        let hash = self.hash(code);
        // The last level is larger than all others together, so it holds most codes.
        for slots in self.levels.iter().rev().filter_map(OnceLock::get) {
            let mut at = hash % slots.len();
            loop {
                match slots[at].0.load(Ordering::Acquire) {
                    0 => break,
                    key if key == code.number() + 1 => {
                        return Some(slots[at].1.load(Ordering::Relaxed));
                    }
                    _ => at = (at + 1) % slots.len(),
                }
            }
        }
        None
    }

    /// Adds a code that is not in the map. Called only by the one writer.
    pub(super) fn insert(&self, end: &mut NamesEnd, code: Code, link: u64) {
        if end.used >= (FIRST_SLOTS << (2 * end.level)) / 4 * 3 {
            (end.level, end.used) = (end.level + 1, 0);
        }
        let slots = self.levels[end.level]
            .get_or_init(|| (0..FIRST_SLOTS << (2 * end.level)).map(|_| Slot::default()).collect());
        let mut at = self.hash(code) % slots.len();
        while slots[at].0.load(Ordering::Relaxed) != 0 {
            at = (at + 1) % slots.len();
        }
        slots[at].1.store(link, Ordering::Relaxed);
        // Publishes the link together with the code.
        slots[at].0.store(code.number() + 1, Ordering::Release);
        end.used += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_and_no_other() {
        let (names, mut end) = (Names::default(), NamesEnd::default());
        let code = |n: u64| Code::from_number(n * 7_919 + 3).unwrap();
        for n in 0..30_000 {
            names.insert(&mut end, code(n), n);
        }
        assert!(end.level >= 2);
        for n in 0..30_000 {
            assert_eq!(names.get(code(n)), Some(n));
            assert_eq!(names.get(Code::from_number(n * 7_919 + 4).unwrap()), None);
        }
    }
}
