//! The words of Wellspring: event, tag, query, append condition, position and
//! the limits they obey; and what is read in the same way everywhere: moments and URLs. No
//! I/O, no async, no serialisation format: every other crate speaks in these terms and this one
//! depends on none of them.

#![forbid(unsafe_code)]

pub mod condition;
pub mod event;
pub mod hex;
pub mod history;
pub mod limits;
pub mod moment;
pub mod position;
pub mod query;
pub mod random;
pub mod url;
pub mod valid;

pub use condition::{AppendCondition, Clause, Conflict};
pub use event::{DataKind, Event, EventId, EventRef, only_tag_of};
pub use history::HistoryId;
pub use position::Position;
pub use query::{Query, QueryItem};
pub use valid::{Invalid, Reason};
