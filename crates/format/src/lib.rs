//! The bytes of a log on disk (`docs/format.md` draws them): events as records, records in batches,
//! batches in segments, each written, read and verified. The crate knows neither files
//! nor logs: its callers (the log, backups, tools) bring the bytes.

#![forbid(unsafe_code)]

pub mod batch;
mod damage;
mod history;
mod place;
pub mod record;
pub mod sealed_parts;
pub mod segment;
pub mod segment_copy;
pub mod segment_reader;
mod verified_batch;

pub use damage::Corruption;
pub use history::{history_of_cluster, history_of_salt};
pub use place::{BatchId, Place};
pub use record::{EncodedEvents, RecordView, RequestKey, SERVER_KEYS, Savepoint};
