//! A shared log without another server: the nodes agree on its order by Raft.
//!
//! All logs of all nodes share one group: what they offer at the same time goes into one entry of
//! its log, a *frame*, behind one barrier a node. The node that leads the group is the
//! *orderer*; who leads a log is decided by claims, as over any engine.
//!
//! ```text
//! log ─ offer ─► orderer: frame ─► WAL, barrier ─► followers: WAL, barrier
//!                                                     └─► delivery ─► each log's rule
//! ```
//!
//! - [`wal`]: what a node has acknowledged, on its disk.
//! - `group`: the consensus library and nothing beside it.
//! - `runtime`: what the library runs in, turned by hand.
//! - `elector`: when a node stands for election. Pure. `election`: who orders.
//! - `node`: a node as its process sees it; `node_thread`: what its thread does; `shared_node`:
//!   what that shares with the logs.
//! - `members`: who belongs to the group; `membership`: whether a node does.
//! - `by_hand`: a node without threads, for the simulator.
//! - `message`: what nodes tell each other; `wire`: the same as bytes.
//! - `frame`, `delivery`, `shared_log`: what logs offer, and what they are told.
//! - [`recover`]: how a node goes on alone when the majority is lost.
//! - `checkpoint`, `trim`: what stands for entries that copies hold, and when these are dropped;
//!   `copy_source`: where a node gets their events that lacks them.

#![forbid(unsafe_code)]

#[cfg(feature = "simulated")]
pub mod by_hand;
mod checkpoint;
mod copy_source;
mod delivery;
mod election;
mod elector;
mod frame;
mod group;
mod members;
mod membership;
mod message;
mod node;
mod node_thread;
#[cfg(wellspring_plants)]
pub mod plants;
#[cfg(not(wellspring_plants))]
mod plants;
pub mod recover;
mod runtime;
mod shared_log;
mod shared_node;
mod trim;
pub mod wal;
mod wire;

pub use copy_source::CopySource;
pub use group::{FoundError, Links, StartError};
pub use members::{Admission, MemberAddress, MembersChange, MembersError};
pub use message::{Answer, AppendOutcome, Message, Offer, Question};
pub use node::{GroupReport, RaftNode};
pub use node_thread::RaftOptions;
pub use shared_log::{LeadChoice, RaftLog};
pub use wire::{HEADER_BYTES, MAX_BODY_BYTES, WireFault};
