//! The frequent types and tags of a sealed index that were looked up last. The same few are named
//! in one condition after the other; each look-up would read a block of the filter and one of the
//! dictionary.

use super::hash::Domain;
use super::sealed::SealedTerm;
use crate::threads::lock;
use std::sync::Mutex;

/// Number of terms kept: a few kilobytes for each index.
const KEPT: usize = 16;
/// Terms with fewer events are not kept: there may be as many as events.
const FREQUENT: u32 = 128;

/// The terms; see the module's documentation.
#[derive(Debug, Default)]
pub(super) struct RecentTerms {
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    terms: Vec<(Domain, Box<str>, SealedTerm)>,
    /// Index of the term that is replaced next.
    next: usize,
}

impl RecentTerms {
    /// A term, if it is kept; only what `pick` takes of it is copied.
    pub(super) fn find<T>(
        &self,
        domain: Domain,
        text: &str,
        pick: impl FnOnce(&SealedTerm) -> T,
    ) -> Option<T> {
        let ring = lock(&self.ring);
        let same = |term: &&(Domain, Box<str>, SealedTerm)| term.0 == domain && *term.1 == *text;
        ring.terms.iter().find(same).map(|(_, _, term)| pick(term))
    }

    /// Keeps a term that was not found here, if it is frequent.
    pub(super) fn keep(&self, domain: Domain, text: &str, term: &SealedTerm) {
        if term.list.count() < FREQUENT {
            return;
        }
        let mut ring = lock(&self.ring);
        let kept = (domain, text.into(), term.clone());
        if ring.terms.len() < KEPT {
            ring.terms.push(kept);
        } else {
            let next = ring.next;
            ring.terms[next] = kept;
            ring.next = (next + 1) % KEPT;
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let ring = lock(&self.ring);
        let one = size_of::<(Domain, Box<str>, SealedTerm)>();
        ring.terms.iter().map(|(_, text, _)| text.len() + one).sum()
    }
}
