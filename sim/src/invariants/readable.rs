//! Everything that a node shows is readable, without gaps, and was written by a client.

use super::{Invariant, News, World};

#[derive(Default)]
pub(super) struct Readable;

impl Invariant for Readable {
    fn name(&self) -> &'static str {
        "what a node shows can be read"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        match news {
            News::Unreadable { node, what } => Err(format!("n{node}: {what}")),
            _ => Ok(()),
        }
    }
}
