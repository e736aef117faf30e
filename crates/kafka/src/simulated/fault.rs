//! Faults that a test plans.

use crate::fault::{Fault, FaultKind};
use std::collections::{HashMap, VecDeque};

/// The calls that can be planned to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Questions about the cluster, topics and offsets, and creating topics.
    Describe,
    /// Making a producer.
    MakeProducer,
    /// Delivering records.
    Deliver,
    /// Making a reader.
    MakeReader,
    /// Reading records.
    Poll,
}

/// How much is delivered all the same when a delivery fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliveredPart {
    /// Nothing.
    #[default]
    Nothing,
    /// The first half, by a producer without transactions. Of a transaction, nothing.
    Half,
    /// Everything.
    Everything,
}

/// A fault to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedFault {
    /// What the call answers.
    pub kind: FaultKind,
    /// What a delivery does before it fails. Other calls do nothing.
    pub delivered: DeliveredPart,
}

impl PlannedFault {
    /// A fault of a call that does nothing.
    #[must_use]
    pub fn new(kind: FaultKind) -> PlannedFault {
        PlannedFault { kind, delivered: DeliveredPart::Nothing }
    }

    /// A delivery whose outcome is in doubt, and how much is delivered in fact.
    #[must_use]
    pub fn in_doubt(delivered: DeliveredPart) -> PlannedFault {
        PlannedFault { kind: FaultKind::InDoubt, delivered }
    }

    pub(super) fn fault(self) -> Fault {
        Fault::new(self.kind, format!("planned: {:?}", self.kind))
    }
}

/// Faults to come, by operation, in order.
#[derive(Default)]
pub(super) struct FaultPlan {
    planned: HashMap<Operation, VecDeque<PlannedFault>>,
}

impl FaultPlan {
    pub(super) fn plan(&mut self, operation: Operation, fault: PlannedFault) {
        self.planned.entry(operation).or_default().push_back(fault);
    }

    pub(super) fn take(&mut self, operation: Operation) -> Option<PlannedFault> {
        self.planned.get_mut(&operation)?.pop_front()
    }

    /// Fails if a fault is planned for this call.
    pub(super) fn fail(&mut self, operation: Operation) -> Result<(), Fault> {
        self.take(operation).map_or(Ok(()), |planned| Err(planned.fault()))
    }
}
