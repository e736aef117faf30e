//! Faults planned by tests.

use crate::fault::{Fault, FaultKind};
use std::collections::{HashMap, VecDeque};

/// The calls that can fail as planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Queries of the cluster, topics and offsets, and creation of topics.
    Describe,
    /// Creation of a producer.
    MakeProducer,
    /// Delivering records.
    Deliver,
    /// Creation of a reader.
    MakeReader,
    /// Reading records.
    Poll,
}

/// How much is delivered even though a delivery fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliveredPart {
    /// Nothing.
    #[default]
    Nothing,
    /// The first half, by a non-transactional producer. Nothing of a transaction.
    Half,
    /// Everything.
    Everything,
}

/// A planned fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedFault {
    /// The fault that the call returns.
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

    /// A delivery with an outcome in doubt, and how much is actually delivered.
    #[must_use]
    pub fn in_doubt(delivered: DeliveredPart) -> PlannedFault {
        PlannedFault { kind: FaultKind::InDoubt, delivered }
    }

    pub(super) fn fault(self) -> Fault {
        Fault::new(self.kind, format!("planned: {:?}", self.kind))
    }
}

/// Planned faults by operation, in order.
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
