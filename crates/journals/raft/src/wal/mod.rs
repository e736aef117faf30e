//! The write-ahead log (WAL) of a node: the entries of the group's log that the node has
//! acknowledged, its vote, and who it is.
//!
//! ```text
//! data/raft/
//!   LOCK
//!   identity    who the node is; without it, the folder belongs to no node
//!   state       the vote, the last purged entry, the newest file: two sectors, written in turns
//!   checkpoint  what stands for purged entries
//!   wal-7       entries and cuts, oldest file first
//!   wal-8
//!   spare       a purged file that waits to be used again
//! ```
//!
//! A write has any number of records and one barrier. The caller is answered when the
//! barrier has passed; so completions are told in the order of the calls. A write or a barrier that
//! fails ends the WAL in this process. Nothing is overwritten: a conflicting tail is ended by a
//! record, the cut, and every opening begins a new file.
//!
//! # Torn or rotten
//!
//! After a crash, the last write may be there in part: it was never acknowledged, and is cut off.
//! Everything before it was acknowledged. If that has changed (rot) and recovery took it for a torn
//! write, the node would keep its vote and forget entries that a majority counts on. So recovery
//! has to tell one from the other, for every byte. It does so by sectors, which a disk
//! writes as a whole or not at all. Each has a checksum, the number of the file, and the number of
//! the write in that file. Numbers of files only grow, also when a file is used again. So a sector
//! is one of three:
//!
//! - *damaged*: it fails its checksum. No crash does that. It is rot.
//! - *unwritten* in this life of the file: all zero, or valid with the number of an earlier file.
//!   No record of an earlier life can count, whatever the client put into it.
//! - *written*, by a write whose number is known.
//!
//! In a file that has a successor everything was durable before the successor was made: its header
//! says where the records end and what the last link is, so whatever is missing or different is
//! rot. In the newest file, records are read until one is damaged, which is rot, or an unwritten
//! place is reached. If all records of the last write are there (its last record says so), the
//! place belongs to the write after it, else to that write: this is the one that may be torn. A
//! write begins only after the barrier of the one before, so sectors behind the place are from the
//! torn write, and the place was never acknowledged; or one is from a later write, and then a
//! barrier had covered the place, and it is rot. A torn write can leave complete records before the
//! place. They are kept, which is as good as if the crash had come later. No later write can mix
//! with its remains, because it goes to another file.
//!
//! What recovery has found is put behind a barrier before it counts, as a killed process leaves
//! what it wrote in the page cache; and it is read from the device, because the page cache shows
//! what a failed barrier has lost.
//!
//! **What cannot be detected**: that the device has lost whole sectors of the last write although
//! it reported the barrier, or that the newest file was cut short there: both look like a write
//! that never began or was torn. Nor that the whole folder is an older copy. A missing file is
//! detected.

mod checkpoint_file;
mod entry_table;
mod fault;
mod identity;
#[cfg(test)]
mod model_tests;
mod node_state;
mod record;
mod record_reader;
mod recovery;
mod sector;
#[cfg(test)]
mod tests;
mod writer;

pub use entry_table::WalReader;
pub(crate) use fault::REPLACE;
pub use fault::WalFault;
pub use identity::Identity;
pub use node_state::Vote;
pub use record::{Entry, EntryId, MAX_ENTRY_BYTES};
pub use writer::{Wal, WalOptions};
