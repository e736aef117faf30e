//! Where the matching of a pattern begins, if nothing of it is bound: where the fewest candidates are expected.

use std::cmp::Reverse;
use std::sync::Arc;

use super::matching::Planner;
use super::operator::{
    Operator, RelationshipScan, RelationshipSource, Scan, ScanSource, Seek, SoughtValue,
};
use crate::ir::{Expression, NodePattern, Slot};

/// Binds a node, or a relationship with both of its ends.
pub(super) fn begin(planner: &mut Planner<'_, '_>) {
    let open = planner.nodes.iter().filter(|node| planner.open.contains(&node.slot));
    let best = open.copied().max_by_key(|node| (promise(planner, node), Reverse(node.slot)));
    let expected = best.map_or(0, |node| promise(planner, node));
    if let Some(at) = edge(planner, expected) {
        let edge = planner.edges.remove(at);
        let slot = edge.relationship.slot;
        let source = match id_of(planner, slot) {
            Some(wanted) => RelationshipSource::Ids(wanted),
            None if edge.relationship.types.is_empty() => RelationshipSource::All,
            None => RelationshipSource::Types(edge.relationship.types.clone()),
        };
        planner.open.remove(&slot);
        planner.compiler.push(Operator::ScanRelationships(RelationshipScan { slot, source }));
        planner.walk(&edge);
        return;
    }
    match best {
        Some(node) => scan(planner, node),
        // Nothing to scan: what is left to walk has nothing open either.
        None if planner.edges.is_empty() => {}
        None => {
            let edge = planner.edges.remove(0);
            planner.walk(&edge);
        }
    }
}

/// What a condition on a node promises: the more, the fewer candidates.
fn promise(planner: &Planner<'_, '_>, node: &NodePattern) -> u8 {
    let labelled = labels_of(planner, node.slot).next().is_some();
    let equal = planner.conditions.iter().any(|it| it.property(node.slot, &planner.open).is_some());
    match (id_of(planner, node.slot).is_some(), labelled, equal) {
        (true, ..) => 4,
        (false, true, true) => 3,
        (false, true, false) => 2,
        (false, false, true) => 1,
        (false, false, false) => 0,
    }
}

/// A relationship that is better begun with than the best node.
fn edge(planner: &Planner<'_, '_>, expected: u8) -> Option<usize> {
    let promise = |slot: Slot| if id_of(planner, slot).is_some() { 4 } else { 1 };
    planner.edges.iter().position(|edge| {
        let relationship = edge.relationship;
        let open = |slot| planner.open.contains(&slot);
        let scannable = relationship.length.is_none()
            && edge.shortest.is_none()
            && open(relationship.slot)
            && open(edge.left.slot)
            && open(edge.right.slot);
        scannable && promise(relationship.slot) > expected
    })
}

fn scan(planner: &mut Planner<'_, '_>, node: &NodePattern) {
    let labels: Vec<Arc<str>> = labels_of(planner, node.slot).cloned().collect();
    let equal = planner.conditions.iter().filter_map(|it| it.property(node.slot, &planner.open));
    let equal: Vec<(Arc<str>, SoughtValue)> = equal.collect();
    let seek = |label: &Arc<str>, (key, wanted): &(Arc<str>, SoughtValue)| Seek {
        label: label.clone(),
        key: key.clone(),
        wanted: wanted.clone(),
    };
    let source = match (id_of(planner, node.slot), labels.first()) {
        (Some(wanted), _) => ScanSource::Ids(wanted),
        (None, Some(label)) if equal.is_empty() => ScanSource::Label(label.clone()),
        (None, Some(_)) => {
            let pairs = labels.iter().flat_map(|label| equal.iter().map(move |it| seek(label, it)));
            ScanSource::Seek(pairs.collect())
        }
        (None, None) => ScanSource::All,
    };
    if let ScanSource::Label(label) = &source {
        // The scan has asked this already.
        let subject = Box::new(Expression::Variable(node.slot));
        let asked = Expression::HasLabels(subject, vec![label.clone()]);
        planner.conditions.retain(|condition| condition.expression != asked);
    }
    planner.open.remove(&node.slot);
    planner.compiler.push(Operator::Scan(Scan { slot: node.slot, source }));
}

/// The labels that any mention of the node in the pattern, or a condition, demands.
fn labels_of<'s>(
    planner: &'s Planner<'_, '_>,
    slot: Slot,
) -> impl Iterator<Item = &'s Arc<str>> + 's {
    planner.conditions.iter().flat_map(move |condition| match &condition.expression {
        Expression::HasLabels(subject, labels) if **subject == Expression::Variable(slot) => {
            labels.iter()
        }
        _ => [].iter(),
    })
}

fn id_of(planner: &Planner<'_, '_>, slot: Slot) -> Option<SoughtValue> {
    planner.conditions.iter().find_map(|condition| condition.id(slot, &planner.open))
}
