//! Snapshots taken while the fold continues, and invalid bytes.

use super::history::{Shell, any_step};
use super::*;
use proptest::prelude::*;
use std::io::Write;

/// A disk that triggers further folding with each write.
struct FoldingDisk<'a> {
    bytes: Vec<u8>,
    view: &'a mut dyn FnMut(),
}

impl Write for FoldingDisk<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.view)();
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_048, ..ProptestConfig::default() })]

    #[test]
    fn what_is_begun_from_a_snapshot_is_what_is_rebuilt(
        steps in prop::collection::vec(any_step(), 1..80),
        from in any::<prop::sample::Index>(),
        behind in 0usize..12,
        at_a_time in 0usize..3,
    ) {
        let mut shell = Shell::default();
        steps.iter().for_each(|step| shell.step(step));
        let log = shell.log;
        let position = from.index(log.len() + 1);
        // The position is taken first, and the fold continues.
        let mut next = log.len().min(position + behind);
        let mut live = folded(&log[..next]);
        let shared = Arc::clone(live.folded());
        let mut fold_some = || {
            for stored in log[next..].iter().take(at_a_time) {
                live.apply(stored);
                next += 1;
            }
        };
        let mut disk = FoldingDisk { bytes: Vec::new(), view: &mut fold_some };
        Catalogue::encode(&shared, &mut disk).unwrap();
        let bytes = disk.bytes;
        let mut resumed = Catalogue::decode(&mut &bytes[..]).unwrap();
        log[position..].iter().for_each(|stored| resumed.apply(stored));
        let rebuilt = folded(&log);
        prop_assert_eq!(dump(&resumed.folded().read()), dump(&rebuilt.folded().read()));
    }

    #[test]
    fn no_bytes_make_a_snapshot_panic(
        steps in prop::collection::vec(any_step(), 1..60),
        spoilt in any::<prop::sample::Index>(),
        by in 1u8..,
    ) {
        let mut shell = Shell::default();
        steps.iter().for_each(|step| shell.step(step));
        let mut bytes = Vec::new();
        Catalogue::encode(folded(&shell.log).folded(), &mut bytes).unwrap();
        prop_assert!(Catalogue::decode(&mut &bytes[..bytes.len() - 1]).is_err());
        let at = spoilt.index(bytes.len());
        bytes[at] ^= by;
        // The host's checksum would find this first.
        let _ = Catalogue::decode(&mut &bytes[..]);
    }
}
