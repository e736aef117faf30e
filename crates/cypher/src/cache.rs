//! Prepared statements by their text.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::procedure::Procedures;
use crate::statement::{Plan, prepare};

/// Plans by text, bounded in number and in bytes of text.
///
/// It has two generations: a requested plan moves to the young one. When that is full, it becomes
/// the old one, and plans not requested since are dropped.
pub struct PlanCache {
    most_plans: usize,
    most_bytes: usize,
    generations: Mutex<Generations>,
    /// Number of look-ups that found a plan, and of those that did not.
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Arc<str>, Arc<Plan>>,
    old: HashMap<Arc<str>, Arc<Plan>>,
    young_bytes: usize,
}

impl PlanCache {
    /// A cache for this many plans with this many bytes of text.
    pub fn new(most_plans: usize, most_bytes: usize) -> Self {
        Self {
            most_plans,
            most_bytes,
            generations: Mutex::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The plan for a text. Invalid texts are not cached.
    ///
    /// # Errors
    /// As for [`prepare`].
    pub fn get(&self, text: &str, procedures: &dyn Procedures) -> Result<Arc<Plan>> {
        if let Some(plan) = self.known(text) {
            self.hits.fetch_add(1, Relaxed);
            return Ok(plan);
        }
        self.misses.fetch_add(1, Relaxed);
        // Outside the lock, so that an expensive text delays no other thread.
        let plan = prepare(text, procedures)?;
        if text.len() <= self.most_bytes / 16 {
            self.keep(text.into(), &plan);
        }
        Ok(plan)
    }

    /// Whether the plan for a text is cached.
    pub fn has(&self, text: &str) -> bool {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.young.contains_key(text) || generations.old.contains_key(text)
    }

    /// Number of cached plans.
    pub fn len(&self) -> usize {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.young.len() + generations.old.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of look-ups that found a plan.
    pub fn hits(&self) -> u64 {
        self.hits.load(Relaxed)
    }

    /// Number of look-ups that found none, including those of invalid texts.
    pub fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    fn known(&self, text: &str) -> Option<Arc<Plan>> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = generations.young.get(text) {
            return Some(plan.clone());
        }
        let (key, plan) = generations.old.remove_entry(text)?;
        drop(generations);
        self.keep(key, &plan);
        Some(plan)
    }

    fn keep(&self, text: Arc<str>, plan: &Arc<Plan>) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let full = generations.young.len() >= self.most_plans / 2
            || generations.young_bytes + text.len() > self.most_bytes / 2;
        let mut forgotten = HashMap::new();
        if full {
            let young = std::mem::take(&mut generations.young);
            forgotten = std::mem::replace(&mut generations.old, young);
            generations.young_bytes = 0;
        }
        generations.young_bytes += text.len();
        generations.young.insert(text, plan.clone());
        drop(generations);
        // Plans are dropped outside the lock.
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::PlanCache;
    use crate::procedure::BuiltIn;
    use std::sync::Arc;

    #[test]
    fn plans_are_kept_while_they_are_asked_for() {
        let cache = PlanCache::new(8, 1 << 20);
        let kept = cache.get("RETURN 'kept'", &BuiltIn).unwrap();
        for number in 0..100 {
            cache.get(&format!("RETURN {number}"), &BuiltIn).unwrap();
            let again = cache.get("RETURN 'kept'", &BuiltIn).unwrap();
            assert!(Arc::ptr_eq(&kept, &again));
            assert!(cache.len() <= 8);
        }
        assert!(cache.get("RETURN", &BuiltIn).is_err());
        assert_eq!((cache.hits(), cache.misses()), (100, 102));
    }

    #[test]
    fn texts_are_bounded_in_bytes() {
        let cache = PlanCache::new(1_000, 4_096);
        for number in 0..100 {
            cache.get(&format!("RETURN '{number}{}'", "x".repeat(200)), &BuiltIn).unwrap();
        }
        assert!(cache.len() <= 20);
        cache.get(&format!("RETURN '{}'", "x".repeat(2_000)), &BuiltIn).unwrap();
        assert!(cache.len() <= 20);
    }
}
