//! A subscriber to all events receives every event once and in order, whatever roles the node has
//! meanwhile.

use super::{Invariant, News, World};

#[derive(Default)]
pub(super) struct ToldOfEverything;

impl Invariant for ToldOfEverything {
    fn name(&self) -> &'static str {
        "a subscription tells of every event, in order"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        match news {
            News::Told { node, position, expected } => {
                Err(format!("n{node} told of {position}, where {expected} was next"))
            }
            _ => Ok(()),
        }
    }
}
