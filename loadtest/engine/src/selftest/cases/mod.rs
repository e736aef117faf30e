//! The cases of the self-test: loads against servers of known behaviour, each with what its report
//! must say.

mod ending;
mod faults;
mod framing;
mod latency;
mod pace;
mod places;
mod stall;

use super::Case;

/// All cases, in the order in which they are run.
pub(super) fn all() -> Vec<Case> {
    let families = [
        latency::CASES,
        stall::CASES,
        pace::CASES,
        framing::CASES,
        faults::CASES,
        ending::CASES,
        places::CASES,
    ];
    families.into_iter().flatten().copied().collect()
}
