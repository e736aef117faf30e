//! From codes to links, for codes that are not at their counter's place: aliases,
//! deterministic codes, and whatever others have appended. One writer, readers without a lock.
//!
//! Open addressing with linear probing, in levels: when one is three quarters full
//! the next, four times as large, takes what comes. Nothing is ever moved, so a
//! reader needs no care; a code is looked for in each level, the largest first.

use super::Code;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const FIRST_SLOTS: usize = 1 << 10;
const LEVELS: usize = 14;

/// Code plus one, 0 while free; and its link.
type Slot = (AtomicU64, AtomicU64);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Different in every process, so that nobody can choose aliases that are all looked for in one
    /// place. What is answered does not depend on it.
    hasher: RandomState,
    levels: [OnceLock<Box<[Slot]>>; LEVELS],
}

/// The writer's part.
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
        // Most codes are in the last: it is larger than all others together.
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

    /// Adds a code that is not there. Only the one writer calls this.
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
        // Publishes the link with the key.
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
