//! Keys of data subjects. What an event says about a person is sealed with that person's key before
//! it reaches a log. Destroying the key erases it everywhere at once: in the log, its copies and
//! its backups, none of which is ever rewritten.
//!
//! ```text
//! root, generation g      a file or a command; never in a log or a backup
//!  └─ wraps ─ subject key   DATA/keys/store, in slots that can be overwritten
//!              └─ seals ──── parts of events (wellspring_format::sealed_parts)
//! ```
//!
//! - [`SubjectKeys`] has the keys: made when a subject is first named, durable before an event that
//!   needs one is staged, destroyed on request.
//! - A [`Sealer`] seals the parts of one request's events, and holds back an erasure meanwhile.
//! - [`KeyRoots`] wrap keys in the store. A copy of the store is worth nothing without its root.
//!
//! That a key is missing proves nothing: who erased what is said by facts in the log `system`,
//! which the caller keeps, and by the store's own erased slots.

#![forbid(unsafe_code)]

mod fault;
mod key;
mod key_table;
mod keys;
#[cfg(test)]
mod model_tests;
mod roots;
mod sealer;
mod slot;
mod store;
mod subject_names;
#[cfg(test)]
mod tests;

pub use fault::{KeysFault, RootFault, SealRefusal};
pub use key::{MAX_SUBJECT_BYTES, SubjectKey};
pub use key_table::{Closed, KeyState};
pub use keys::{KeysStatus, Persisted, StorageOpener, StoreCopy, SubjectKeys};
pub use roots::{KeyRoots, RootSource};
pub use sealer::{NonceSalt, PlainPart, SealedWith, Sealer};
pub use subject_names::SubjectNames;
pub use wellspring_format::sealed_parts::{KeyId, PartKind};
