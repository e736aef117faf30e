//! Properties of every history.

use super::history::{World, any_history, mixed};
use super::journal::Entry;
use super::oracle::Oracle;
use super::questions::{answers, codes, encoded, lists, times};
use proptest::prelude::*;
use std::io::{self, Write};
use std::slice;
use std::sync::Arc;
use wellspring_face_links::view::Links;
use wellspring_host::view::contract::View;

/// Histories are long, so shrinking is limited. A seed would mean little in a year; the examples in
/// `regressions.rs` stay meaningful.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    }
}

/// A view of these events.
pub(crate) fn folded(entries: &[Entry]) -> Links {
    let mut view = Links::new();
    entries.iter().for_each(|entry| view.apply(entry));
    view
}

/// Collects a snapshot's bytes and applies events between writes.
struct FoldingWriter<'a> {
    bytes: Vec<u8>,
    view: &'a mut Links,
    coming: slice::Iter<'a, Entry>,
    turn: u64,
    /// One write in this many is followed by events.
    rarity: u64,
}

impl Write for FoldingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.turn += 1;
        let chance = mixed(self.turn);
        if chance.is_multiple_of(self.rarity) {
            let burst = (chance >> 32) as usize % 9;
            self.coming.by_ref().take(burst).for_each(|entry| self.view.apply(entry));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts a snapshot after `begun` events and finishes it after more.
fn snapshot_while_folding(entries: &[Entry], begun: usize, seed: u64) -> Vec<u8> {
    let mut view = folded(&entries[..begun]);
    let shared = Arc::clone(view.folded());
    let rarity = [2, 7, 40, 300][seed as usize % 4];
    let mut out = FoldingWriter {
        bytes: Vec::new(),
        view: &mut view,
        coming: entries[begun..].iter(),
        turn: seed,
        rarity,
    };
    Links::encode(&shared, &mut out).expect("memory takes all");
    out.bytes
}

proptest! {
    #![proptest_config(config(150))]

    /// Answers agree with the naive fold throughout the history; decisions are checked as they are
    /// made. The final state does not depend on how it was reached.
    #[test]
    fn answers_agree_with_the_naive_fold(steps in any_history(120)) {
        let mut world = World::new();
        for (at, step) in steps.iter().enumerate() {
            world.step(step);
            if at % 37 == 0 {
                let known = Oracle::of(&world.journal.entries[..world.folded as usize]);
                let times = times(&known, world.journal.now_us);
                known.check(world.live.folded(), &codes(&world.oracle), &times);
            }
        }
        world.fold_all();
        let (codes, times) = (codes(&world.oracle), times(&world.oracle, world.journal.now_us));
        world.oracle.check(world.live.folded(), &codes, &times);
        for request in lists(world.oracle.links.len()) {
            world.oracle.check_list(world.live.folded(), &request);
        }
    }

    /// A rebuilt view equals the live one, byte for byte, and applying events again changes
    /// nothing.
    #[test]
    fn a_rebuilt_view_is_the_live_one(steps in any_history(120), again in any::<u64>()) {
        let mut world = World::run(&steps);
        world.fold_all();
        let entries = &world.journal.entries;
        let (codes, times) = (codes(&world.oracle), times(&world.oracle, world.journal.now_us));
        let all = |view: &Links| answers(view.folded(), &codes, &times);
        let rebuilt = folded(entries);
        prop_assert_eq!(all(&rebuilt), all(&world.live));
        prop_assert_eq!(encoded(&rebuilt), encoded(&world.live));
        let mut twice = Links::new();
        for (at, entry) in entries.iter().enumerate() {
            twice.apply(entry);
            twice.apply(entry);
            let earlier = mixed(again ^ at as u64) as usize % (at + 1);
            twice.apply(&entries[earlier]);
        }
        entries.iter().for_each(|entry| twice.apply(entry));
        prop_assert_eq!(all(&twice), all(&rebuilt));
        prop_assert_eq!(encoded(&twice), encoded(&rebuilt));
    }

    /// A snapshot taken while folding continues, then read and folded from a position before it
    /// began, equals the rebuilt view; so do its snapshots.
    #[test]
    fn a_snapshot_goes_on_where_it_was_taken(
        steps in any_history(120),
        begun in any::<prop::sample::Index>(),
        behind in 0usize..8,
        seed in any::<u16>(),
    ) {
        let world = World::run(&steps);
        let entries = &world.journal.entries;
        let (codes, times) = (codes(&world.oracle), times(&world.oracle, world.journal.now_us));
        let begun = begun.index(entries.len() + 1);
        let bytes = snapshot_while_folding(entries, begun, seed.into());
        let mut view = Links::decode(&mut bytes.as_slice()).expect("a whole snapshot");
        entries[begun.saturating_sub(behind)..].iter().for_each(|entry| view.apply(entry));
        let rebuilt = folded(entries);
        prop_assert_eq!(answers(view.folded(), &codes, &times), answers(rebuilt.folded(), &codes, &times));
        prop_assert_eq!(encoded(&view), encoded(&rebuilt));
    }
}
