//! Answers that are rendered once and served until an event changes what they show, by the fast
//! path of both stacks.
//!
//! What was rendered hangs beside what it shows (`view/state.rs`). A serving thread keeps what it
//! answered last, too, for as long as nothing at all has changed: then an answer takes no lock.

mod memo;
mod path;

pub(crate) use path::{CachedAnswer, fast_path};
