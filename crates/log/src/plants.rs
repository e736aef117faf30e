//! Bugs planted on purpose, so that the simulator and the tests show that they would find them.
//!
//! They are compiled into this crate's own tests and into the simulator's own copy of this source
//! (`sim/planted-log`, whose build script sets `wellspring_plants`). It is a `cfg` and not a
//! feature, because a feature that one package of a build asks for is switched on in all of them.
//! Everywhere else [`planted`] is `false` to the compiler.

#![cfg_attr(not(wellspring_plants), allow(dead_code, unreachable_pub))] // it is public to the simulator alone

/// Declares the bugs, each with its name on the command line.
macro_rules! plants {
    ($($(#[$what:meta])* $plant:ident = $name:literal,)*) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Plant {
            $($(#[$what])* $plant,)*
        }

        impl Plant {
            /// All of them.
            pub const ALL: &[Plant] = &[$(Plant::$plant),*];

            /// Its name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Plant::$plant => $name,)*
                }
            }
        }
    };
}

plants! {
    /// Batches count whatever their epoch is, and a claim whether or not its epoch is new.
    NoEpoch = "no-epoch",
    /// Batches count wherever they begin, and whatever lies before them.
    NoDense = "no-dense",
}

#[cfg(any(test, wellspring_plants))]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in everything that runs on this thread, or none.
#[cfg(any(test, wellspring_plants))]
pub fn plant(plant: Option<Plant>) {
    CHOSEN.with(|chosen| chosen.set(plant));
}

/// Whether this bug is planted.
#[cfg(any(test, wellspring_plants))]
pub(crate) fn planted(plant: Plant) -> bool {
    CHOSEN.with(|chosen| chosen.get() == Some(plant))
}

/// Whether this bug is planted: never.
#[cfg(not(any(test, wellspring_plants)))]
#[inline(always)]
pub(crate) const fn planted(_: Plant) -> bool {
    false
}
