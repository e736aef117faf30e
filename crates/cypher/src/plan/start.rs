//! The start of matching a pattern without bound elements: where the fewest candidates are
//! expected.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::conditions::Condition;
use super::matching::Planner;
use super::operator::{
    Join, JoinKey, Operator, RelationshipScan, RelationshipSource, Scan, ScanSource, Seek,
    SoughtValue,
};
use crate::ir::{Expression, NodePattern, RelationshipPattern, Slot};

/// Conditions by the slots that they read.
type BySlot<'p> = HashMap<Slot, Vec<&'p Condition>>;

fn by_slot(conditions: &[Condition]) -> BySlot<'_> {
    let mut by_slot = BySlot::new();
    for condition in conditions {
        for slot in condition.reads() {
            let of_slot: &mut Vec<&Condition> = by_slot.entry(*slot).or_default();
            // Lists a condition once even if it reads the slot twice.
            if of_slot.last().is_none_or(|last| !std::ptr::eq(*last, condition)) {
                of_slot.push(condition);
            }
        }
    }
    by_slot
}

/// Binds a node, or a relationship with both of its ends.
pub(super) fn begin(planner: &mut Planner<'_, '_>) {
    let conditions = by_slot(&planner.conditions);
    let of = |slot: Slot| conditions.get(&slot).map_or(&[][..], Vec::as_slice);
    let open = planner.nodes.iter().filter(|node| planner.open.contains(&node.slot));
    let promising = open.map(|node| (promise(of(node.slot), node.slot, &planner.open), *node));
    let best = promising.max_by_key(|(promise, node)| (*promise, Reverse(node.slot)));
    let expected = best.map_or(0, |(promise, _)| promise);
    let edge = edge(planner, &conditions, expected).and_then(|at| {
        let relationship = planner.edges.get(at)?.relationship;
        let slot = relationship.slot;
        let source = match id_of(of(slot), slot, &planner.open) {
            Some(wanted) => RelationshipSource::Ids(wanted),
            None => match equal_relationships(relationship, of(slot), &planner.open) {
                Some(seek) => seek,
                None if relationship.types.is_empty() => RelationshipSource::All,
                None => RelationshipSource::Types(relationship.types.clone()),
            },
        };
        Some((at, source))
    });
    if let Some((at, source)) = edge {
        let edge = planner.edges.remove(at);
        let slot = edge.relationship.slot;
        planner.open.remove(&slot);
        planner.compiler.push(Operator::ScanRelationships(RelationshipScan { slot, source }));
        planner.walk(&edge);
        return;
    }
    match best {
        Some((_, node)) => scan(planner, node),
        // Nothing to scan: the remaining edges have no open slots either.
        None if planner.edges.is_empty() => {}
        None => {
            let edge = planner.edges.remove(0);
            planner.walk(&edge);
        }
    }
}

/// A score for the conditions on a node: the higher, the fewer candidates.
fn promise(conditions: &[&Condition], slot: Slot, open: &HashSet<Slot>) -> u8 {
    let labelled = labels_of(conditions, slot).next().is_some();
    let joins = |it: &Condition| it.join(slot, open).is_some_and(|key| key.varies());
    let equal = conditions.iter().any(|it| it.property(slot, open).is_some() || joins(it));
    match (id_of(conditions, slot, open).is_some(), labelled, equal) {
        (true, ..) => 4,
        (false, true, true) => 3,
        (false, true, false) => 2,
        (false, false, true) => 1,
        (false, false, false) => 0,
    }
}

/// The lookup of a pattern's relationships by one type and a property with a known value.
fn equal_relationships(
    relationship: &RelationshipPattern,
    conditions: &[&Condition],
    open: &HashSet<Slot>,
) -> Option<RelationshipSource> {
    let [kind] = &relationship.types[..] else { return None };
    let equal = conditions.iter().filter_map(|it| it.property(relationship.slot, open));
    let mut single = equal.filter_map(|(key, wanted)| match wanted {
        SoughtValue::One(wanted) => Some((key, wanted)),
        SoughtValue::AnyOf(_) => None,
    });
    let (key, wanted) = single.next()?;
    Some(RelationshipSource::Seek { kind: kind.clone(), key, wanted })
}

/// A relationship that is a better start than the best node.
fn edge(planner: &Planner<'_, '_>, conditions: &BySlot<'_>, expected: u8) -> Option<usize> {
    let promise = |relationship: &RelationshipPattern| {
        let slot = relationship.slot;
        let of_it = conditions.get(&slot).map_or(&[][..], Vec::as_slice);
        let is_equal = || equal_relationships(relationship, of_it, &planner.open).is_some();
        match id_of(of_it, slot, &planner.open) {
            Some(_) => 4,
            // No better than a label: without an index, all relationships of the type are scanned.
            None if is_equal() => 2,
            None => 1,
        }
    };
    planner.edges.iter().position(|edge| {
        let relationship = edge.relationship;
        let open = |slot| planner.open.contains(&slot);
        let scannable = relationship.length.is_none()
            && edge.shortest.is_none()
            && open(relationship.slot)
            && open(edge.left.slot)
            && open(edge.right.slot);
        scannable && promise(relationship) > expected
    })
}

fn scan(planner: &mut Planner<'_, '_>, node: &NodePattern) {
    let conditions = by_slot(&planner.conditions).remove(&node.slot).unwrap_or_default();
    let labels: Vec<Arc<str>> = labels_of(&conditions, node.slot).cloned().collect();
    let equal = conditions.iter().filter_map(|it| it.property(node.slot, &planner.open));
    let equal: Vec<(Arc<str>, SoughtValue)> = equal.collect();
    let seek = |label: &Arc<str>, (key, wanted): &(Arc<str>, SoughtValue)| Seek {
        label: label.clone(),
        key: key.clone(),
        wanted: wanted.clone(),
    };
    let id = id_of(&conditions, node.slot, &planner.open);
    let source = match (id, labels.first()) {
        (Some(wanted), _) => ScanSource::Ids(wanted),
        (None, Some(label)) if equal.is_empty() => ScanSource::Label(label.clone()),
        (None, Some(_)) => {
            let pairs = labels.iter().flat_map(|label| equal.iter().map(move |it| seek(label, it)));
            ScanSource::Seek(pairs.collect())
        }
        (None, None) => ScanSource::All,
    };
    if let ScanSource::Label(label) = &source {
        // The scan has checked this already.
        let subject = Box::new(Expression::Variable(node.slot));
        let asked = Expression::HasLabels(subject, vec![label.clone()]);
        planner.conditions.retain(|condition| condition.expression != asked);
    }
    let join = match source {
        ScanSource::Ids(_) => None,
        _ => join(&planner.conditions, node.slot, labels.first().cloned(), &planner.open),
    };
    planner.open.remove(&node.slot);
    planner.compiler.push(Operator::Scan(Scan { slot: node.slot, source, join }));
}

/// The equalities by which a table finds the nodes. Lookups of properties record what they ask
/// for; other expressions have read every node. So properties are not joined by both.
fn join(
    conditions: &[Condition],
    slot: Slot,
    label: Option<Arc<str>>,
    open: &HashSet<Slot>,
) -> Option<Join> {
    let equal = conditions.iter().filter_map(|condition| condition.join(slot, open));
    let (mut properties, mut others): (Vec<JoinKey>, Vec<JoinKey>) =
        equal.partition(|key| key.property.is_some());
    if label.is_none() {
        others.append(&mut properties);
    }
    let equal = if properties.is_empty() { others } else { properties };
    (!equal.is_empty()).then_some(Join { label, equal })
}

/// The labels that the node must have according to the pattern or a condition.
fn labels_of<'c>(conditions: &[&'c Condition], slot: Slot) -> impl Iterator<Item = &'c Arc<str>> {
    conditions.iter().flat_map(move |condition| match &condition.expression {
        Expression::HasLabels(subject, labels) if **subject == Expression::Variable(slot) => {
            labels.iter()
        }
        _ => [].iter(),
    })
}

fn id_of(conditions: &[&Condition], slot: Slot, open: &HashSet<Slot>) -> Option<SoughtValue> {
    conditions.iter().find_map(|condition| condition.id(slot, open))
}
