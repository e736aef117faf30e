//! Answers `MATCH (n:L) RETURN count(n)`, `MATCH ()-[r:T]->() RETURN count(*)` and the like without
//! a scan, from counts that the graph maintains.

use super::operator::{
    Aggregation, Expand, Operator, Pipeline, RelationshipScan, RelationshipSource, Scan,
    ScanSource, StoredCount,
};
use crate::functions::Aggregate;
use crate::ir::{Direction, Expression, Slot};

/// Replaces a scan whose rows are only counted.
pub(super) fn use_stored(pipeline: &mut Pipeline) {
    let (counted, slot, length) = match pipeline.operators.as_slice() {
        [Operator::Scan(scan), Operator::Aggregate(aggregation), ..] => {
            match (nodes(scan), counts(aggregation, scan.slot)) {
                (Some(counted), Some(slot)) => (counted, slot, 2),
                _ => return,
            }
        }
        [
            Operator::ScanRelationships(scan),
            Operator::Expand(expand),
            Operator::Aggregate(aggregation),
            ..,
        ] => match (relationships(scan, expand), counts(aggregation, scan.slot)) {
            (Some(counted), Some(slot)) => (counted, slot, 3),
            _ => return,
        },
        _ => return,
    };
    pipeline.operators.splice(0..length, [Operator::StoredCount { slot, counted }]);
}

fn nodes(scan: &Scan) -> Option<StoredCount> {
    match &scan.source {
        ScanSource::All => Some(StoredCount::Nodes(None)),
        ScanSource::Label(label) => Some(StoredCount::Nodes(Some(label.clone()))),
        ScanSource::Seek(_) | ScanSource::Ids(_) => None,
    }
}

fn relationships(scan: &RelationshipScan, expand: &Expand) -> Option<StoredCount> {
    let connection = &expand.connection;
    // Without a direction every relationship passes twice, and a loop once.
    let each_once = connection.direction != Direction::Either && connection.from != connection.to;
    let free = !connection.from_bound && !connection.to_bound && connection.unlike.is_empty();
    match &scan.source {
        _ if !each_once || !free => None,
        RelationshipSource::All => Some(StoredCount::Relationships(None)),
        RelationshipSource::Types(types) => match types.as_slice() {
            [only] => Some(StoredCount::Relationships(Some(only.clone()))),
            _ => None,
        },
        RelationshipSource::Seek { .. } | RelationshipSource::Ids(_) => None,
    }
}

/// The slot of the count, if only rows, or values of a slot that is never null, are counted.
fn counts(aggregation: &Aggregation, scanned: Slot) -> Option<Slot> {
    let [only] = aggregation.aggregates.as_slice() else { return None };
    let all = match &only.value {
        None => only.aggregate == Aggregate::CountRows,
        // Each value passes once, so DISTINCT makes no difference.
        Some(value) => {
            only.aggregate == Aggregate::Count && *value == Expression::Variable(scanned)
        }
    };
    (all && aggregation.keys.is_empty()).then_some(only.slot)
}
