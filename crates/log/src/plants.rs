//! Deliberately planted bugs, to show that the simulator and the tests would find them.
//!
//! They are compiled into this crate's tests and into the simulator's copy of this source
//! (`sim/planted-log`, whose build script sets `wellspring_plants`). This is a `cfg` rather than a
//! feature, because a feature requested by one package is enabled for the whole build. Everywhere
//! else [`planted`] is the constant `false`.

#![cfg_attr(not(wellspring_plants), allow(dead_code, unreachable_pub))] // public to the simulator

/// Declares the bugs, each with its command-line name.
macro_rules! plants {
    ($($(#[$what:meta])* $plant:ident = $name:literal,)*) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Plant {
            $($(#[$what])* $plant,)*
        }

        impl Plant {
            /// All bugs.
            pub const ALL: &[Plant] = &[$(Plant::$plant),*];

            /// Its command-line name.
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
    /// Batches and heartbeats are accepted in any epoch.
    NoEpoch = "no-epoch",
    /// Batches are accepted at any position, whatever precedes them.
    NoDense = "no-dense",
    /// A leader assigns the positions of a batch in doubt to others.
    ReusePosition = "reuse-position",
    /// A leader judges appends as soon as it has offered its claim.
    EagerLeader = "eager-leader",
    /// A leader answers as soon as a batch is offered.
    AckBeforeDelivery = "ack-before-delivery",
    /// The end is confirmed from the node's own head.
    StaleEnd = "stale-end",
    /// A follower publishes a batch before its last event.
    HalfRequest = "half-request",
    /// Retries are not detected.
    LostRetry = "lost-retry",
    /// A request for the end gets the answer to an earlier one.
    OldAnswer = "old-answer",
    /// A leader that steps down refuses appends that may still arrive.
    HastyRefusal = "hasty-refusal",
    /// A refusal based on a staged event does not wait for its outcome.
    EarlyConflict = "early-conflict",
    /// A follower chooses its own segment boundaries.
    OtherCut = "other-cut",
    /// Recording times follow the wall clock backwards.
    TimeGoesBack = "time-goes-back",
    /// A copy resumes one place too late.
    ResumesLate = "resumes-late",
    /// A leader ignores another node's claim.
    KeepsLead = "keeps-lead",
    /// Lease tokens continue after this node's last ones, regardless of grants by other nodes.
    OldTokens = "old-tokens",
    /// A fence is passed before its request is judged, not where it is staged.
    EarlyFence = "early-fence",
    /// The basis of an append is not checked for setbacks.
    ForgetsBasis = "forgets-basis",
    /// A subscription occasionally skips an event.
    SkipsNews = "skips-news",
    /// A closed log leaves waiting requests unanswered.
    LeavesUnanswered = "leaves-unanswered",
    /// Damage in an open copy is not repaired.
    NeverMends = "never-mends",
    /// Appends in doubt are not offered again.
    ForgetsDoubt = "forgets-doubt",
    /// A copy is told to be durable without a barrier.
    TrimsEarly = "trims-early",
    /// A copy goes on behind dropped entries without the claim that is in force there.
    StateWithoutClaim = "state-without-claim",
    /// The beginning of a log is removed before the floor is durable.
    ForgetsFloor = "forgets-floor",
    /// A condition is judged by what a cut has left.
    JudgesTheRest = "judges-the-rest",
}

/// Declares how a bug is planted: `plant` for the thread, and `planted`, which asks. Both look at
/// the `cfg` of the crate that they are in.
#[doc(hidden)]
#[macro_export]
macro_rules! plant_switch {
    ($plant:ident) => {
        #[cfg(any(test, wellspring_plants))]
        thread_local! {
            static CHOSEN: std::cell::Cell<Option<$plant>> = const { std::cell::Cell::new(None) };
        }

        /// Plants a bug, or none, for everything that runs on this thread.
        #[cfg(any(test, wellspring_plants))]
        pub fn plant(plant: Option<$plant>) {
            CHOSEN.with(|chosen| chosen.set(plant));
        }

        /// Whether this bug is planted.
        #[cfg(any(test, wellspring_plants))]
        pub fn planted(plant: $plant) -> bool {
            CHOSEN.with(|chosen| chosen.get() == Some(plant))
        }

        /// Whether this bug is planted: never.
        #[cfg(not(any(test, wellspring_plants)))]
        #[inline(always)]
        pub(crate) const fn planted(_: $plant) -> bool {
            false
        }
    };
}

plant_switch!(Plant);
