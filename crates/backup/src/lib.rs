//! Backups of a server's logs.
//!
//! A [`Source`] says what is durable at one moment and hands out the bytes; [`take`](take::take)
//! verifies them batch by batch on their way into a [`Store`]: a folder, a tar archive, an object
//! store. A backup exists once its [manifest](Manifest) does, which is written last.
//! [`restore`](restore::restore) makes a data folder of one, whole or up to a position or a time;
//! [`verify`](verify::verify) reads one; [`mend`](mend::mend) replaces what is damaged in a data
//! folder; [`renew_history`](renew::renew_history) is for one that a disk snapshot has put back.
//!
//! ```text
//! store/
//!   backups/20261125T214438Z.json                       a manifest: this backup is finished
//!   backups/20261126T214438Z.begun                      this one is not
//!   backups/9f86d081884c7d65.pruning                    old backups are being removed (S3 only)
//!   segments/4f1c09d2a87b4e6f/00000000000000000001-268435393-0badc0de.seg
//!            history          base                 bytes     anchor
//! ```
//!
//! Segments never change, so backups share them: the next one brings only what is new. Synchronous;
//! no HTTP.
//!
//! Durable bytes never change, so a backup needs no pause and no pin: a [`plan`](plan::BackupPlan)
//! lists them, at one moment of all logs (`log/head_gate.rs`), and they can be read whenever. Plan
//! and bytes are stateless, so a backup can be throttled, interrupted and repeated. Bytes are
//! copied and never hard-linked: a hard link on the same file system would share the damage that a
//! backup is for. A log that is deleted meanwhile is left out of the backup and named.
//!
//! Indexes and snapshots of views are not in a backup, because a start rebuilds them; nor is the
//! token secret, because credentials that were revoked meanwhile would be valid again; nor is the
//! copy of a shared log, because its database is what to back up.

#![forbid(unsafe_code)]

pub mod catalog;
mod cut;
mod fault;
mod known_ends;
pub mod manifest;
mod marks;
pub mod mend;
mod names;
mod pace;
mod places;
pub mod plan;
pub mod prune;
pub mod renew;
pub mod restore;
pub mod retention;
pub mod source;
pub mod store;
pub mod take;
pub mod verify;

pub use cut::Cut;
pub use fault::{BackupError, ManifestFault, Outcome, UnreadableManifest};
pub use known_ends::{KnownEnds, LogEnd};
pub use manifest::{LogBackup, Manifest};
pub use pace::Pace;
pub use places::Nesting;
pub use plan::BackupPlan;
pub use source::Source;
pub use store::Store;
