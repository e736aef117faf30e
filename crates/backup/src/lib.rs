//! Backups of a server's logs.
//!
//! A [`Source`] lists everything that is durable at one moment and provides the bytes;
//! [`take`](take::take) verifies them batch by batch and copies them to a [`Store`]: a folder, a
//! tar archive, an object store. A backup exists once its [manifest](Manifest) does, which is
//! written last. [`restore`](restore::restore) creates a data folder from a backup, completely or
//! up to a position or a time; [`verify`](verify::verify) checks a backup; [`mend`](mend::mend)
//! replaces damaged segments of a data folder; [`renew_history`](new_history::renew_history) is for
//! a data folder that was restored from a disk snapshot.
//!
//! ```text
//! store/
//!   backups/20261125T214438Z.json                       the manifest of a finished backup
//!   backups/20261126T214438Z.begun                      an unfinished backup
//!   backups/9f86d081884c7d65.pruning                    old backups are being removed (S3 only)
//!   segments/4f1c09d2a87b4e6f/00000000000000000001-268435393-0badc0de.seg
//!            history          base                 bytes     anchor
//! ```
//!
//! Segments are immutable, so backups share them: each backup adds only new ones. Synchronous; no
//! HTTP.
//!
//! Durable bytes never change, so a backup neither pauses appends nor locks files: a
//! [`plan`](plan::BackupPlan) lists the bytes of all logs at one moment (`log/head_gate.rs`), and
//! they can be read at any later time. Plan and reads are stateless, so a backup can be throttled,
//! interrupted and repeated. Bytes are copied and never hard-linked: a hard link would share the
//! damage that a backup protects from. A log that is deleted meanwhile is left out and reported.
//!
//! A backup does not contain indexes and snapshots of views, because a start rebuilds them; the
//! token secret, because credentials that were revoked meanwhile would be valid again; and the copy
//! of a shared log, because its database must be backed up instead.

#![forbid(unsafe_code)]

pub mod catalog;
mod cut;
mod data_folders;
mod fault;
mod known_ends;
pub mod manifest;
pub mod mend;
mod names;
pub mod new_history;
pub mod plan;
pub mod prune;
mod rate_limit;
pub mod restore;
pub mod retention;
pub mod source;
pub mod store;
pub mod take;
pub mod verify;
mod writer_marks;

pub use cut::Cut;
pub use data_folders::Nesting;
pub use fault::{BackupError, BackupResult, ManifestFault, UnreadableManifest};
pub use known_ends::{KnownEnds, LogEnd};
pub use manifest::{LogBackup, Manifest};
pub use plan::BackupPlan;
pub use rate_limit::RateLimit;
pub use source::Source;
pub use store::Store;
