//! Damaged snapshots: reading gives an error or a working view, never a panic, a hang or a huge
//! allocation.

use super::history::{World, any_history};
use super::oracle::Oracle;
use super::properties::{config, folded};
use super::questions::{codes, encoded};
use proptest::prelude::*;
use std::io::{self, Read};
use wellspring_face_links::view::{Bucket, Folded, Links, ListRequest, StatsRequest};
use wellspring_host::view::contract::View;

/// A reader that fails the test if more than a MiB is requested at once.
struct FrugalReader<'a>(&'a [u8]);

impl Read for FrugalReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        assert!(into.len() <= 1 << 20, "{} bytes at once", into.len());
        self.0.read(into)
    }
}

/// Runs every query.
fn ask(folded: &Folded, oracle: &Oracle) {
    let list = ListRequest { limit: 1_000, scan_limit: 1_000, ..ListRequest::default() };
    let _ = folded.list(&list);
    for code in codes(oracle) {
        for bucket in [Bucket::Hour, Bucket::Day] {
            let _ = folded.stats(code, &StatsRequest { bucket, from_us: Some(1), to_us: None });
        }
        let _ = folded.lookup(code, 1, &mut Vec::new());
    }
}

/// Reads a snapshot and uses the resulting view.
fn try_out(bytes: &[u8], world: &World) -> bool {
    let Ok(mut view) = Links::decode(&mut FrugalReader(bytes)) else { return false };
    ask(view.folded(), &world.oracle);
    world.journal.entries.iter().for_each(|entry| view.apply(entry));
    ask(view.folded(), &world.oracle);
    let again = encoded(&view);
    // An impossible day may precede the real ones; this detects it.
    let _ = Links::decode(&mut FrugalReader(&again));
    true
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_damaged_snapshot_does_no_harm(
        steps in any_history(60),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..40),
    ) {
        let mut world = World::run(&steps);
        world.fold_all();
        let whole = encoded(&world.live);
        prop_assert!(try_out(&whole, &world));
        for (at, byte, kind) in damages {
            let (mut bytes, at) = (whole.clone(), at.index(whole.len()));
            match kind {
                0 => bytes[at] ^= 1 << (byte % 8),
                1 => bytes[at] = byte,
                2 => _ = bytes.splice(at..at, [byte, 0xff, 0xff, 0xff, 0x7f]),
                _ => {
                    bytes.truncate(at);
                    prop_assert!(!try_out(&bytes, &world), "cut at {}", at);
                    continue;
                }
            }
            try_out(&bytes, &world);
        }
    }

    #[test]
    fn rubbish_is_no_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let world = World::new();
        try_out(&bytes, &world);
    }
}

#[test]
fn every_cut_is_noticed() {
    let mut world = World::new();
    for step in super::regressions::varied() {
        world.step(&step);
    }
    let whole = encoded(&folded(&world.journal.entries));
    for length in 0..whole.len() {
        assert!(Links::decode(&mut FrugalReader(&whole[..length])).is_err(), "cut at {length}");
    }
}

/// Damages every byte of a snapshot in turn.
#[test]
fn no_damaged_byte_does_harm() {
    let mut world = World::new();
    for step in super::regressions::varied() {
        world.step(&step);
    }
    let whole = encoded(&folded(&world.journal.entries));
    let registers = whole.len() > 2_048;
    assert!(registers, "a day with many visitors");
    for at in 0..whole.len() {
        // Registers and letters of long texts are all alike, so a sample suffices.
        if at % 61 != 0
            && at >= 20
            && whole[at - 20..at].iter().all(|&byte| !(12..=0x7f).contains(&byte))
        {
            continue;
        }
        for with in [
            &[0xff][..],
            &[0],
            &[0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ] {
            let mut bytes = whole.clone();
            bytes.splice(at..=at, with.iter().copied());
            try_out(&bytes, &world);
        }
    }
}
