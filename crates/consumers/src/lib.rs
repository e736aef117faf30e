//! Consumers: which events of a log a worker is given, in which order, and what is remembered.
//!
//! A consumer decides; it reads no log, no clock and no socket. The host reads what
//! [`Consumer::scan_need`] and [`Consumer::wanted_look_ups`] ask for, keeps the pulls that wait,
//! appends checkpoints, and brings times (microseconds of a monotonic clock) and nonces.
//!
//! ```text
//! scanned(events) ──► a key opens ──► ready ──► take ──► held ── settle ──► the key's next event:
//! found(look-up)  ──►    ▲                        ▲       │                  known │ looked up │
//!                        │                        │       │                  none: the key closes
//!                        └── expiry, give_back ───┼───────┤
//!                             retry when due ─────┘ ◄─fail┤
//!                             replay ◄── parked ◄─────────┘  after the last try
//! ```
//!
//! **State.** Within a key, delivery follows the log, so what is settled of a key is a prefix. The
//! state is `scanned`, the position up to which the log was looked at, and an entry for each key
//! that has an unsettled event up to there: an *open* key. Memory and checkpoints follow the open
//! keys, never the backlog: of a key that lags behind only the next few positions are known, and
//! the host finds further ones by the tag index. An event without order is a key of its own.
//!
//! **Promises.**
//! - Of a key at most one delivery is held, in the order of the log. An event of several keys is
//!   ready when it is the next event of all of them; as all keys follow the log, the first open
//!   event is always ready, held, retrying or parked.
//! - Every matching event up to `scanned` is settled, or open under each of its keys. Parking
//!   and replay are flags of a key, and have an effect when a checkpoint that says so is durable.
//! - A call about a delivery has an effect only if its worker still holds it: worker, number,
//!   generation and nonce must agree. While an append that settles it is staged, a delivery does
//!   not expire.
//! - The same turn of a worker again has the same deliveries, as far as they are still held.
//! - Without a worker that holds something, and without a retry, nothing is due.
//!
//! **Invariants**, asserted after each step of random histories (`tests/invariants.rs`):
//! - All keys of an event that is ready, held, retrying or parked are in the same state, and one of
//!   them stands for the event in the line, the delivery, the tree of retries.
//! - Deliveries are numbered in the order in which they were taken, so the longest hold is first.
//! - `shared` has the keys of every known event with several; those keys are open, and none is
//!   beyond the event.
//! - `last` of a key is not below the position of any of its scanned events.
//!
//! **After a crash**, [`Consumer::restore`] takes the checkpoints. All open keys are looked up
//! again, and until [`Consumer::recovery`] is over the host leaves out the events that an append
//! has settled since. What was settled without an append since the last checkpoint comes again. Of
//! a run that one append has settled the host finds the first event alone, so as long as a
//! checkpoint's `scanned` is within the run, its key stays open in checkpoints, from that event on.
//! The same call serves a changed query: positions found by the former one are forgotten.
#![forbid(unsafe_code)]

mod checkpoint;
mod consumer;
mod definition;
mod delivery;
mod expiry;
mod key;
mod operator;
mod plants;
mod scan;
mod settle;
mod status;
mod table;
mod take;
#[cfg(test)]
mod tests;
mod worker;

pub use checkpoint::{ChainFault, Checkpoint, OpenKey};
pub use consumer::{Consumer, Counters, Recovery, RunState, SettledRun};
pub use definition::{Backoff, Definition, DefinitionFault, FailureRule, OrderKey};
pub use delivery::{Delivery, DeliveryId, DeliveryRefusal};
pub use key::KeyName;
pub use operator::ParkedSelection;
pub use scan::{KeyedEvent, LookUp, LookUpVerdict, ScanFrom, ScanNeed, ScanVerdict};
pub use status::{HeldStatus, KeyPlace, KeyStatus, Status};
pub use take::{TakeRefusal, TurnVerdict};
