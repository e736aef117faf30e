//! Deliberately planted bugs, to show that the model test and the simulator would find them.
//!
//! They are compiled into this crate's tests and into the simulator's copy of this source
//! (`sim/planted-raft`, whose build script sets `wellspring_plants`). Everywhere else [`planted`]
//! is the constant `false`.

#![cfg_attr(not(wellspring_plants), allow(dead_code, unreachable_pub))] // public to the simulator

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
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
    /// The orderer tells its end without asking a majority.
    EndUnconfirmed,
    /// Questions for the end that came during a round of heartbeats are answered by it.
    EndAfterRound,
    /// A question for the end takes the answer to an earlier one.
    OldRound,
    /// The end of the group's order is told in place of that of a log.
    EndOfGroup,
    /// A node that was the orderer when it stopped is the orderer when it starts.
    RestoresOrderer,
    /// A node whose WAL is lost comes back under the same id. The simulator does it, not the
    /// engine.
    ReusesId,
}

/// The bugs that the simulator looks for, with their names on its command line. Those of reused
/// files are left to the WAL's model test.
pub const SIMULATED: &[(Plant, &str)] = &[
    (Plant::AckBeforeBarrier, "ack-before-barrier"),
    (Plant::VoteNotDurable, "vote-not-durable"),
    (Plant::ForgetsCut, "forgets-cut"),
    (Plant::TakesRotForTorn, "takes-rot-for-torn"),
    (Plant::EndUnconfirmed, "end-unconfirmed"),
    (Plant::EndAfterRound, "end-after-round"),
    (Plant::OldRound, "old-round"),
    (Plant::EndOfGroup, "end-of-group"),
    (Plant::RestoresOrderer, "restores-orderer"),
    (Plant::ReusesId, "reuses-id"),
];

wellspring_log::plant_switch!(Plant);
