//! Bugs planted on purpose, so that the simulator and the tests show that they would find them.
//!
//! They are compiled into this crate's own tests and into the simulator's own copy of this source
//! (`sim/planted-log`, whose build script sets `wellspring_plants`). It is a `cfg` and not a
//! feature, because a feature that one package of a build asks for is switched on in all of them.
//! Everywhere else [`planted`] is `false` to the compiler.

#![cfg_attr(not(wellspring_plants), allow(dead_code, unreachable_pub))] // public to the simulator

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
    /// Batches and beats count whatever their epoch is.
    NoEpoch = "no-epoch",
    /// Batches count wherever they begin, and whatever lies before them.
    NoDense = "no-dense",
    /// A leader that is in doubt about a batch gives its positions to others.
    ReusePosition = "reuse-position",
    /// A leader judges as soon as its claim is on its way.
    EagerLeader = "eager-leader",
    /// A leader answers as soon as a batch is offered.
    AckBeforeDelivery = "ack-before-delivery",
    /// The end is confirmed by a look at the node's own head.
    StaleEnd = "stale-end",
    /// A follower shows a batch before the last of its events.
    HalfRequest = "half-request",
    /// A retry is not looked for.
    LostRetry = "lost-retry",
    /// Who asks for the end is given the answer to a question that was put before.
    OldAnswer = "old-answer",
    /// A leader that steps down refuses what may still arrive.
    HastyRefusal = "hasty-refusal",
    /// A refusal that rests on what is staged does not wait for it.
    EarlyConflict = "early-conflict",
    /// A follower cuts its segments where it likes.
    OtherCut = "other-cut",
    /// Time goes back with the wall clock.
    TimeGoesBack = "time-goes-back",
    /// A copy goes on one place too late.
    ResumesLate = "resumes-late",
    /// A leader does not mind another's claim.
    KeepsLead = "keeps-lead",
    /// Tokens of leases go on where this node's last ones ended, whatever others have granted
    /// since.
    OldTokens = "old-tokens",
    /// What an append was decided on may have come to nothing.
    ForgetsBasis = "forgets-basis",
    /// A subscription passes over an event now and then.
    SkipsNews = "skips-news",
    /// A log that is closed leaves those that wait without an answer.
    LeavesUnanswered = "leaves-unanswered",
    /// Damage of a copy that is open is left as it is.
    NeverMends = "never-mends",
    /// What is in doubt is not offered again.
    ForgetsDoubt = "forgets-doubt",
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
