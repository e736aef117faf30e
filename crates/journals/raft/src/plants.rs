//! Deliberately planted bugs, to show that the model test would find them. Outside of this crate's
//! tests [`planted`] is the constant `false`.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Entries are acknowledged before their barrier.
    AckBeforeBarrier,
    /// A vote is answered before its barrier.
    VoteNotDurable,
    /// A cut is not written.
    ForgetsCut,
    /// Damage at the end is cut off like a torn end.
    TakesRotForTorn,
    /// A sector of the file's former life counts.
    TakesFormerLife,
    /// A file is given back before the purge is durable.
    ReusesEarly,
}

#[cfg(test)]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug, or none, for everything that runs on this thread.
#[cfg(test)]
pub(crate) fn plant(plant: Option<Plant>) {
    CHOSEN.with(|chosen| chosen.set(plant));
}

/// Whether this bug is planted.
#[cfg(test)]
pub(crate) fn planted(plant: Plant) -> bool {
    CHOSEN.with(|chosen| chosen.get() == Some(plant))
}

/// Whether this bug is planted: never.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn planted(_: Plant) -> bool {
    false
}
