//! The entries that a simulated log has dropped because copies hold them: the oracle of what a
//! reader has to know in their place.

use crate::shared::entry::{BatchPart, Entry};
use crate::shared::rule::{AcceptedBatch, EntryEffect, Rule, RuleState};
use crate::shared::{LogStart, Place, PlacedEntry};
use std::collections::BTreeMap;
use std::sync::Arc;
use wellspring_types::Position;

/// What is left of dropped entries.
#[derive(Default)]
pub(super) struct Trimmed {
    /// Where the kept entries begin, and the state there.
    pub(super) start: Option<LogStart>,
    /// The rule after everything dropped.
    rule: Rule,
    /// All of them, which no node gets any more.
    pub(super) entries: Vec<PlacedEntry>,
    /// The batches that took effect, each as one entry.
    pub(super) accepted: Vec<PlacedEntry>,
    /// What copies are known to hold, by node.
    pub(super) durable: BTreeMap<u64, (Place, Arc<[u8]>)>,
}

fn whole(accepted: &AcceptedBatch) -> Arc<[u8]> {
    let body: Vec<u8> = accepted.body_slices().flatten().copied().collect();
    let part = BatchPart { batch: accepted.batch, part: 0, parts: 1, body: &body };
    Entry::Batch(part).encode().into()
}

/// The batch that takes effect with an entry.
fn judged(rule: &mut Rule, (place, entry): PlacedEntry) -> Option<PlacedEntry> {
    match rule.judge(entry) {
        Ok(EntryEffect::Accepted(accepted)) => Some((place, whole(&accepted))),
        _ => None,
    }
}

impl Trimmed {
    /// All batches that took effect, also among the entries that are kept.
    pub(super) fn accepted_with(&self, kept: Vec<PlacedEntry>) -> Vec<PlacedEntry> {
        let mut rule = self.rule.clone();
        let kept = kept.into_iter().filter_map(|entry| judged(&mut rule, entry));
        self.accepted.iter().cloned().chain(kept).collect()
    }

    pub(super) fn durable_head(&self, node: u64) -> Option<Position> {
        self.durable.get(&node).and_then(|(_, state)| RuleState::decode(state)).map(|s| s.head)
    }

    /// Applies the entries up to the place that the copies of all of these nodes hold, if these are
    /// the kept ones. Returns that place.
    ///
    /// # Panics
    /// If a copy has told another state than these entries lead to.
    pub(super) fn trim(&mut self, nodes: &[u64], entries: Vec<PlacedEntry>) -> Option<Place> {
        let told = nodes.iter().map(|node| self.durable.get(node));
        let least =
            told.collect::<Option<Vec<_>>>()?.into_iter().min_by_key(|(place, _)| *place)?;
        let (least, told) = least.clone();
        if self.start.as_ref().is_some_and(|start| start.place >= least) {
            return None;
        }
        let told = RuleState::decode(&told).expect("a state");
        for (place, entry) in entries.into_iter().take_while(|(place, _)| *place <= least) {
            self.entries.push((place, Arc::clone(&entry)));
            self.accepted.extend(judged(&mut self.rule, (place, entry)));
        }
        let state = self.rule.state(&told.log).expect("a copy tells no place within a batch");
        let leader = told.leader.clone().or(state.leader.clone());
        assert_eq!(RuleState { leader, ..told }, state, "before {least:?}");
        self.start = Some(LogStart { place: least, state: Some(state.encode().into()) });
        Some(least)
    }
}
