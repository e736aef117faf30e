//! Answers that are rendered once and served until an event changes their content, by the fast path
//! of both stacks.
//!
//! Rendered answers are stored with the data they show (`view/state.rs`). A serving thread also
//! caches its last answers while nothing at all has changed: then an answer takes no lock.

mod memo;
mod path;

pub(crate) use path::{CachedAnswer, fast_path};
