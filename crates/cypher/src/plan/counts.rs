//! `MATCH (n) RETURN count(n)` and `MATCH (n:L) RETURN count(*)` are answered without a scan: the graph counts along.

use super::operator::{Operator, Pipeline, ScanSource};
use crate::functions::Aggregate;
use crate::ir::Expression;

/// Replaces a scan and the counting of all of it.
pub(super) fn use_stored(pipeline: &mut Pipeline) {
    let [Operator::Scan(scan), Operator::Aggregate(aggregation), ..] =
        pipeline.operators.as_slice()
    else {
        return;
    };
    let label = match &scan.source {
        ScanSource::All => None,
        ScanSource::Label(label) => Some(label.clone()),
        ScanSource::Equal { .. } => return,
    };
    let node = Expression::Variable(scan.slot);
    let [only] = aggregation.aggregates.as_slice() else { return };
    let all = match &only.value {
        None => only.aggregate == Aggregate::CountRows,
        // Each node passes once, so that counting distinct ones is the same.
        Some(value) => only.aggregate == Aggregate::Count && *value == node,
    };
    if all && aggregation.keys.is_empty() {
        let count = Operator::StoredCount { slot: only.slot, label };
        pipeline.operators.splice(0..2, [count]);
    }
}
