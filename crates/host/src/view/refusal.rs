//! Problems of views that are not ready, and of commands that were not executed.

use super::{ExecuteError, NotFresh};
use crate::wire::problem::{self, Problem, Retry};

impl From<NotFresh> for Box<Problem> {
    fn from(error: NotFresh) -> Box<Problem> {
        let detail = error.to_string();
        match error {
            NotFresh::Rebuilding(_) => problem::VIEW_NOT_READY.because(detail),
            NotFresh::NotYet(_) | NotFresh::NotStored => problem::NOT_YET.because(detail),
            NotFresh::Closed => problem::LOG_CLOSED.because(detail),
            NotFresh::Failed(_) => problem::IO.because(detail),
            NotFresh::TooManyWaiters(refused) => refused.into(),
        }
    }
}

impl From<ExecuteError> for Box<Problem> {
    fn from(error: ExecuteError) -> Box<Problem> {
        match error {
            ExecuteError::Append(refused) => refused.into(),
            ExecuteError::Read(error) => error.into(),
            ExecuteError::NotFresh(error) => error.into(),
            ExecuteError::DurableNotShown(appended, error) => problem::NOT_YET
                .because(format!(
                    "the change is durable (positions {} to {}), but the view does not show it \
                     yet: {error}; do not repeat the request",
                    appended.first, appended.last
                ))
                .retry(Retry::No),
        }
    }
}
