//! What ends a request about an open consumer before its answer.

use super::open::{Closed, NotSaved};
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::Problem;
use wellspring_log::{AppendError, LeaseError};

/// See the module.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// The consumer was closed meanwhile: open it again, or find out that this node does not lead.
    Closed,
    /// The log has not taken a checkpoint.
    NotSaved(AppendError),
    Problem(Box<Problem>),
}

impl Interrupted {
    /// The problem of a request that holds the lock on changes of consumers: only a loss of the
    /// lead closes one then.
    pub(crate) fn problem(self, effects: &Effects) -> Box<Problem> {
        match self {
            Interrupted::Closed => effects.refused(LeaseError::NotLeading).into(),
            Interrupted::NotSaved(error) => effects.refused(error).into(),
            Interrupted::Problem(problem) => problem,
        }
    }
}

impl From<Closed> for Interrupted {
    fn from(_: Closed) -> Interrupted {
        Interrupted::Closed
    }
}

impl From<NotSaved> for Interrupted {
    fn from(not_saved: NotSaved) -> Interrupted {
        match not_saved {
            NotSaved::Closed => Interrupted::Closed,
            NotSaved::Refused(error) => Interrupted::NotSaved(error),
        }
    }
}

impl From<Box<Problem>> for Interrupted {
    fn from(problem: Box<Problem>) -> Interrupted {
        Interrupted::Problem(problem)
    }
}
