//! In which order two sides take turns, and which runs belong together.

use crate::result::Run;
use serde::{Deserialize, Serialize};

/// One of the two things compared. A is the baseline: changes are given from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The baseline.
    A,
    /// What is compared with it.
    B,
}

/// How the runs of both sides lie in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// In turns: each run of A has a neighbour of B, and only neighbours are
    /// compared, so that what drifts slowly hits both alike.
    Paired,
    /// Otherwise, e.g. all of A and then all of B.
    Separate,
}

/// The order of `2 × pairs` runs: A B B A, then its mirror image B A A B, and so on.
///
/// Runs 1 and 2, 3 and 4, … are the pairs. Within each block of four a steady
/// drift cancels, within eight a drift that grows steadily. Pure ABBA would put
/// every pair's B next to the following pair's B, which makes neighbouring
/// differences alike when noise lasts longer than a run, and the interval too
/// narrow; with every second block mirrored these likenesses cancel as well.
/// Use an even number of pairs: only then both sides go first equally often.
#[must_use]
pub fn abba(pairs: usize) -> Vec<Side> {
    use Side::{A, B};
    (0..pairs).flat_map(|pair| if matches!(pair % 4, 0 | 3) { [A, B] } else { [B, A] }).collect()
}

/// Which run of `a` belongs to which run of `b` (indexes), in order of time, if
/// the times at which they began show that the sides took turns: as many runs of
/// each, at least two, and each two neighbours one of each side. `None` otherwise.
#[must_use]
pub(crate) fn pairs_by_time(a: &[Run], b: &[Run]) -> Option<Vec<(usize, usize)>> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let of = |runs: &[Run], side| {
        let starts = runs.iter().map(|run| run.started_unix_us);
        starts.enumerate().map(|(at, start)| (start, side, at)).collect::<Vec<_>>()
    };
    let mut all = of(a, Side::A);
    all.extend(of(b, Side::B));
    all.sort_by_key(|&(start, ..)| start);
    // Without times, or with the same run on both sides, nothing is known of the order.
    if all[0].0 == 0 || all.windows(2).any(|two| two[0].0 == two[1].0) {
        return None;
    }
    all.chunks(2)
        .map(|two| match (two[0], two[1]) {
            ((_, Side::A, a), (_, Side::B, b)) | ((_, Side::B, b), (_, Side::A, a)) => Some((a, b)),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_four_and_every_eight_runs_cancel_drift() {
        use Side::{A, B};
        assert_eq!(abba(2), [A, B, B, A]);
        assert_eq!(abba(4), [A, B, B, A, B, A, A, B]);
        assert_eq!(abba(0), []);
        let order = abba(40);
        for power in [0, 1, 2] {
            // The sums of t^power over both sides agree: constant, steady, and growing drift.
            let block = if power < 2 { 4 } else { 8 };
            for from in (0..order.len()).step_by(block) {
                let sum = |side| {
                    (from..from + block)
                        .filter(|&at| order[at] == side)
                        .map(|at| (at as u64).pow(power))
                        .sum::<u64>()
                };
                assert_eq!(sum(A), sum(B), "power {power} from {from}");
            }
        }
        // Neighbouring pairs go in the same order as often as in opposite ones.
        let first: Vec<Side> = order.iter().step_by(2).copied().collect();
        let same = first.windows(2).filter(|two| two[0] == two[1]).count();
        assert!((19..=20).contains(&same), "{same} of 39");
    }
}
