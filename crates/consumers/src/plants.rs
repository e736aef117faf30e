//! Deliberately planted bugs, to show that the model test would find them. Outside of this crate's
//! tests [`planted`] is the constant `false`.

#![cfg_attr(not(test), allow(dead_code))]

macro_rules! plants {
    ($($(#[$what:meta])* $plant:ident,)*) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Plant {
            $($(#[$what])* $plant,)*
        }

        impl Plant {
            /// All bugs.
            pub(crate) const ALL: &[Plant] = &[$(Plant::$plant),*];
        }
    };
}

plants! {
    /// A settled key is closed, whatever follows.
    ForgetsMore,
    /// A delivery expires while an append that settles it is staged.
    ExpiresStaged,
    /// The nonce and the generation of a delivery are not compared.
    OldDeliveries,
    /// Any worker settles any delivery.
    AnyWorker,
    /// A sign of its worker begins the longest hold of a delivery again.
    RenewsHold,
    /// An event is ready as soon as it is the next one of one of its keys.
    OneKeyOnly,
    /// A repeated turn is a new one.
    RepeatsTurn,
    /// A call takes although the worker has called again.
    AnyCall,
    /// A part of a run settles the whole run.
    SettlesWholeRun,
    /// A look-up is taken, whatever happened since it was asked for.
    LateLookUp,
    /// A delta does not name the keys that were closed.
    ForgetsClosed,
    /// A delta adds its tries to those before.
    AddsTries,
    /// A checkpoint whose `scanned` is within a run that an append has settled does not name the
    /// run's first event.
    CutsRuns,
    /// A checkpoint names the head, although settlements before it are still to be looked up.
    NamesLateHead,
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
