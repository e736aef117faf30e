//! Whatever a crash or rot has left of a copy, a node can open it: the missing part can be fetched.

use super::{Invariant, News, World};

#[derive(Default)]
pub(super) struct Opens;

impl Invariant for Opens {
    fn name(&self) -> &'static str {
        "a copy opens, whatever is left of it"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        match news {
            News::NotOpened { node, why } => Err(format!("n{node}: {why}")),
            _ => Ok(()),
        }
    }
}
