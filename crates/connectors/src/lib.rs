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

#![forbid(unsafe_code)]

mod backoff;
mod connection;
mod control;
mod cursor;
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
