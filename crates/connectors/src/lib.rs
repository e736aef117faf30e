//! Connectors: **sinks** deliver the events of a log to another system (Kafka, webhooks),
//! **sources** append the records of a Kafka topic to a log. Each runs on its own thread and never
//! delays an append.
//!
//! ```text
//! log ─► subscription ─► Pump ─► Destination (Kafka, webhook)        the cursor moves after delivery,
//!                          └───► cursor                              or in the same transaction
//! Kafka topic ─► SourceReader ─► records as events + SourceAdvanced ─► one conditional append
//! ```
//!
//! This crate has no HTTP server and no settings: its caller provides definitions and logs and
//! observes the progress ([`Status`]).
//!
//! A sink is a `Pump`: it reads its subscription, fills a batch, has the destination
//! deliver it, and moves its cursor. A destination is opened first: Kafka's takes its transactional
//! id, which fences earlier owners, and then reads its cursor up to a probe of its own. A cursor
//! names position, checksum of the record there, id of the topic and generation, so it fits one
//! history only; a mismatch stops the sink until an operator decides. A fault is either temporary,
//! and the pump starts again from the cursor, or it stops the connector with a code (`fault`). A
//! source stages one append on top of the other, each on the condition that the cursor of its
//! partition is the newest (decision 0035).

#![forbid(unsafe_code)]

mod backoff;
mod connection;
mod control;
mod cursor;
pub mod definition_error;
mod fault;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzed;
pub mod kafka;
pub mod sink;
pub mod source;
mod status;
pub mod webhook;

pub use backoff::Backoff;
pub use connection::{KafkaConnection, SaslUser};
pub use control::Control;
pub use cursor::{Cursor, CursorMismatch, CursorStore};
pub use fault::{Fault, StopCode};
pub use status::{ConnectorState, Counters, Status};
