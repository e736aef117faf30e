//! Answers that are rendered once and served until an event changes their content, by the fast path
//! of both stacks.
//!
//! Rendered answers are stored with the data they show (`view/state.rs`). A serving thread also
//! caches its last answers while nothing at all has changed: then an answer takes no lock.
//!
//! ```text
//! look-up ──► lean loop ──► this thread's last answers, if nothing changed since ─ hit ──► bytes, ETag, position
//!                                   └ miss ──► readers' lock ──► what hangs beside the item, or is rendered now ──► (304 if the client has it)
//! ```

mod memo;
mod path;

pub(crate) use path::{CachedAnswer, fast_path};
