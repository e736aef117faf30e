//! A process that lives answers definitely: appended, or not. "Unknown" is for those that die.

use super::{Invariant, News, World};
use wellspring_log::AppendError;

#[derive(Default)]
pub(super) struct Definite;

impl Invariant for Definite {
    fn name(&self) -> &'static str {
        "a living node answers definitely"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        match news {
            News::Answered {
                node,
                attempt,
                answer: Err(error @ (AppendError::Unknown { .. } | AppendError::Closed { .. })),
                ..
            } => Err(format!("n{node}: attempt {attempt}: {error}")),
            _ => Ok(()),
        }
    }
}
