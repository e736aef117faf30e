//! Plans `CREATE` and `MERGE`.

use super::compile::Compiler;
use super::matching;
use super::operator::{
    CreateNode, CreateRelationship, Creation, MergeOperator, Operator, PathAssembly,
};
use crate::ir::{Direction, Match, Merge, NodePattern, PathPattern};

/// The creation for these patterns.
pub(super) fn creation(patterns: &[PathPattern]) -> Creation {
    let mut creation = Creation::default();
    for pattern in patterns {
        add(&mut creation, pattern);
    }
    creation
}

fn add(creation: &mut Creation, pattern: &PathPattern) {
    add_node(creation, &pattern.start);
    let mut left = &pattern.start;
    for (relationship, right) in &pattern.steps {
        add_node(creation, right);
        let (from, to) = match relationship.direction {
            // Only `MERGE` can leave the direction open; it creates from left to right.
            Direction::Outgoing | Direction::Either => (left.slot, right.slot),
            Direction::Incoming => (right.slot, left.slot),
        };
        creation.relationships.push(CreateRelationship {
            slot: relationship.slot,
            kind: relationship.types.first().cloned().unwrap_or_default(),
            dynamic_kind: relationship.dynamic_type.clone(),
            from,
            to,
            properties: relationship.properties.clone(),
        });
        left = right;
    }
    if let Some(slot) = pattern.variable {
        let steps = pattern.steps.iter().map(|(step, node)| (step.slot, node.slot)).collect();
        creation.paths.push(PathAssembly { slot, start: pattern.start.slot, steps });
    }
}

fn add_node(creation: &mut Creation, node: &NodePattern) {
    if !node.bound {
        creation.nodes.push(CreateNode {
            slot: node.slot,
            labels: node.labels.clone(),
            dynamic_labels: node.dynamic_labels.clone(),
            properties: node.properties.clone(),
        });
    }
}

/// The operator for a `MERGE`.
pub(super) fn merge(merge: &Merge) -> Operator {
    let mut matching = Compiler::inner();
    let clause = Match {
        optional: false,
        patterns: vec![merge.pattern.clone()],
        predicate: merge.predicate.clone(),
        introduced: merge.introduced.clone(),
    };
    matching::plan(&mut matching, &clause);
    let nodes =
        || std::iter::once(&merge.pattern.start).chain(merge.pattern.steps.iter().map(|it| &it.1));
    let bound = nodes().filter(|node| node.bound && !merge.introduced.contains(&node.slot));
    let relationships = merge.pattern.steps.iter().map(|(step, _)| &step.properties);
    let properties = nodes().map(|node| &node.properties).chain(relationships);
    Operator::Merge(Box::new(MergeOperator {
        matching: matching.finish(),
        creation: creation(std::slice::from_ref(&merge.pattern)),
        on_create: merge.on_create.clone(),
        on_match: merge.on_match.clone(),
        introduced: merge.introduced.clone(),
        bound: bound.map(|node| node.slot).collect(),
        values: properties.flat_map(|properties| properties.entries().to_vec()).collect(),
    }))
}
