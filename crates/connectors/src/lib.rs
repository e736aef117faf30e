//! Connectors: **sinks** carry the events of a log to another system (Kafka, webhooks), **sources**
//! carry the records of a Kafka topic into a log. Each runs on a thread of its own beside the log
//! and never in the way of an append.
//!
//! ```text
//! log ─► subscription ─► Pump ─► Destination (Kafka, webhook)        the cursor moves after delivery,
//!                          └───► cursor                              or in the same transaction
//! Kafka topic ─► SourceReader ─► records as events + SourceAdvanced ─► one conditional append
//! ```
//!
//! This crate knows no HTTP server and no settings: its caller says what to run (a definition),
//! gives it the logs and is told how it goes ([`Status`]).

#![forbid(unsafe_code)]

mod backoff;
mod connection;
mod control;
mod cursor;
mod fault;
pub mod fuzzed;
pub mod kafka;
pub mod sink;
pub mod source;
mod status;
pub mod webhook;

pub use backoff::Backoff;
pub use connection::{KafkaConnection, SaslUser};
pub use control::Control;
pub use cursor::{Cursor, CursorStore, Misfit};
pub use fault::{Fault, StopCode};
pub use status::{ConnectorState, Counters, Status};
