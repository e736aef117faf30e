//! Faults that were found, each by example.

use super::history::{Fate, Step};

/// A history with something of everything.
pub(crate) fn varied() -> Vec<Step> {
    let mut steps = Vec::new();
    for n in 0..12u8 {
        let fate = Fate::Appended;
        steps.push(Step::Create { naming: n % 5, pick: n * 7, url: n, expires: n, tags: n * 9, fate });
        steps.push(Step::Fold(15));
        steps.push(Step::Clicks { pick: n * 4, count: if n == 7 { 250 } else { n }, style: n * 31 });
        steps.push(Step::Change { pick: n * 4, members: 0xff, url: n, expires: n, tags: n, fate });
    }
    steps
}
