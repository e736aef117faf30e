//! Problems of logs that cannot be created, opened or dropped, or have no view.

use super::{NoView, NodeError};
use crate::wire::effects::{StepError, StepRefusal};
use crate::wire::problem::{self, Problem};
use std::io;
use wellspring_log::OpenError;

impl StepError for NodeError {
    fn had_no_effect(&self) -> bool {
        match self {
            NodeError::NotFound | NodeError::TooMany(_) => true,
            NodeError::NotRecorded(error) => error.had_no_effect(),
            // The change may be in the log `system` already.
            NodeError::Open { .. }
            | NodeError::View(_)
            | NodeError::Unavailable { .. }
            | NodeError::Io { .. } => false,
        }
    }
}

impl From<StepRefusal<NodeError>> for Box<Problem> {
    fn from(refused: StepRefusal<NodeError>) -> Box<Problem> {
        let StepRefusal { error, nothing_done } = refused;
        let detail = error.to_string();
        match error {
            NodeError::Open { error: OpenError::Io { error, .. }, .. }
            | NodeError::Io { error, .. }
                if error.kind() == io::ErrorKind::StorageFull =>
            {
                problem::STORAGE_FULL.because(detail)
            }
            NodeError::NotFound => problem::LOG_NOT_FOUND.because(detail),
            NodeError::TooMany(limit) => problem::INVALID.because(detail).limit(limit as u64),
            NodeError::Open { .. } | NodeError::Io { .. } | NodeError::View(_) => {
                problem::IO.because(detail)
            }
            NodeError::NotRecorded(error) => StepRefusal { error, nothing_done }.into(),
            NodeError::Unavailable { .. } => problem::STORAGE_UNAVAILABLE.because(detail),
        }
    }
}

impl From<NoView> for Box<Problem> {
    fn from(error: NoView) -> Box<Problem> {
        let detail = error.to_string();
        match error {
            NoView::NoLog => problem::LOG_NOT_FOUND.because(detail),
            NoView::Closing => problem::LOG_CLOSED.because(detail),
            NoView::NotOpened(_) => problem::IO.because(detail),
        }
    }
}
