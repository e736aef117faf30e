//! What ends a request about an open consumer before its answer.

use super::open::{Closed, NotSaved};
use wellspring_host::wire::problem::Problem;
use wellspring_log::AppendError;

/// See the module.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// The consumer was closed meanwhile: open it again, or find out that this node does not lead.
    Closed,
    /// The log has not taken a checkpoint.
    NotSaved(AppendError),
    Problem(Box<Problem>),
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
