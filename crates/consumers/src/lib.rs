//! Consumers.
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
pub use consumer::{Consumer, Counters, Recovery, RunState};
pub use definition::{Backoff, Definition, DefinitionFault, FailureRule, OrderKey};
pub use delivery::{Delivery, DeliveryId, DeliveryRefusal};
pub use key::KeyName;
pub use operator::ParkedSelection;
pub use scan::{KeyedEvent, LookUp, LookUpVerdict, ScanFrom, ScanNeed, ScanVerdict};
pub use status::{HeldStatus, KeyPlace, KeyStatus, Status};
pub use take::{TakeRefusal, TurnVerdict};
