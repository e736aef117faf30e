//! An append passes its fence once, in the epoch in which it gets its positions, and only if it
//! then becomes durable, is set back or stays in doubt.

use super::{Invariant, News, World};
use wellspring_log::AppendError;

#[derive(Default)]
pub(super) struct RightsArePassedLast;

impl Invariant for RightsArePassedLast {
    fn name(&self) -> &'static str {
        "a fence is passed by what is staged, and by nothing else"
    }

    fn hear(&mut self, news: &News, world: &World) -> Result<(), String> {
        let News::Answered { attempt, answer, .. } = news else { return Ok(()) };
        let Some(right) = &world.clients.attempts[*attempt].right else { return Ok(()) };
        let used = right.used();
        if let Some(epoch) = used.placed_late {
            return Err(format!("attempt {attempt} was staged in epoch {epoch}, without a right"));
        }
        let may_be = match (answer, &used.passed[..]) {
            (Ok(appended), []) => appended.replayed,
            (Ok(appended), [first]) => !appended.replayed && appended.first == *first,
            (Err(_), []) => true,
            (Err(error), [_]) => matches!(
                error,
                AppendError::StorageFull
                    | AppendError::Unavailable { .. }
                    | AppendError::NotLeading { .. }
                    | AppendError::Closed { .. }
                    | AppendError::Unknown { .. }
            ),
            _ => false,
        };
        let passed = used.passed;
        may_be.then_some(()).ok_or_else(|| {
            format!("attempt {attempt} passed its fence at {passed:?}, and was told {answer:?}")
        })
    }
}
