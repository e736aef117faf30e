//! Consumers: a worker is given each event of a query once at a time, in the order of its key.
//!
//! ```text
//! PUT  ─► registry ─► ConsumerDefined, ConsumerCheckpoint ─► the log
//! next ─► registry ─► OpenConsumer ─► Pull ─► Scanner ─► the log
//!                          │ checkpoints, once a second while something is settled
//!                          └─► the log
//! append with `settles` ─► Settlement ─► DeliveryFence ─► the log
//! ```
//!
//! What is to be delivered is decided by `wellspring_consumers`; here are its reads, its waiting
//! pulls, its checkpoints and its routes. Nothing runs for a consumer but requests: the first pull
//! in line reads and watches the clock.

mod definition;
mod deliveries;
mod fence;
mod figures;
mod interrupted;
mod open;
pub(crate) mod operator;
pub(crate) mod pull;
mod registry;
mod scan;
mod settled_since;
mod settlement;
mod status;
mod stored;
mod turn;

pub(crate) use figures::families;
pub(crate) use registry::{Consumers, LogConsumers};
pub(crate) use settlement::{Settlement, SettlingAppend, read_settlement};
pub(crate) use status::PlaceName;
pub(crate) use stored::{KEPT, is_of_consumers};
