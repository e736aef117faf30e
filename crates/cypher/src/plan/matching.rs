//! The order of matching a pattern: outwards from bound elements, otherwise from where the fewest
//! nodes are expected.

use std::collections::HashSet;

use super::compile::Compiler;
use super::conditions::{Condition, property_is, split};
use super::operator::{Connection, Expand, ExpandVariable, Operator, PathAssembly, ShortestPath};
use super::start;
use crate::ir::{
    Expression, Length, Match, NodePattern, PathPattern, RelationshipPattern, Shortest, Slot,
    UnaryOperator,
};

/// A relationship of the pattern that is not planned yet.
pub(super) struct Edge<'p> {
    pub(super) relationship: &'p RelationshipPattern,
    pub(super) left: &'p NodePattern,
    pub(super) right: &'p NodePattern,
    pub(super) shortest: Option<Shortest>,
}

/// The state of planning one `MATCH`.
pub(super) struct Planner<'p, 'c> {
    pub(super) compiler: &'c mut Compiler,
    /// Slots of this clause that are not bound yet.
    pub(super) open: HashSet<Slot>,
    /// Conditions that are not placed yet.
    pub(super) conditions: Vec<Condition>,
    /// Relationships that are not planned yet.
    pub(super) edges: Vec<Edge<'p>>,
    pub(super) nodes: Vec<&'p NodePattern>,
    /// Planned relationships, which later ones must differ from.
    walked: Vec<&'p RelationshipPattern>,
    paths: Vec<PathAssembly>,
}

/// The operators of a `MATCH`.
pub(super) fn plan(compiler: &mut Compiler, clause: &Match) {
    let mut planner = Planner {
        compiler,
        open: clause.introduced.iter().copied().collect(),
        conditions: Vec::new(),
        edges: Vec::new(),
        nodes: Vec::new(),
        walked: Vec::new(),
        paths: Vec::new(),
    };
    for pattern in &clause.patterns {
        planner.add(pattern);
    }
    if let Some(predicate) = &clause.predicate {
        split(predicate.clone(), &mut planner.conditions);
    }
    planner.run();
}

impl<'p> Planner<'p, '_> {
    fn add(&mut self, pattern: &'p PathPattern) {
        self.add_node(&pattern.start);
        let mut left = &pattern.start;
        for (relationship, right) in &pattern.steps {
            self.add_node(right);
            if relationship.length.is_none() && pattern.shortest.is_none() {
                for (key, value) in relationship.properties.entries() {
                    split(property_is(relationship.slot, key, value), &mut self.conditions);
                }
            }
            self.edges.push(Edge { relationship, left, right, shortest: pattern.shortest });
            left = right;
        }
        if let Some(slot) = pattern.variable {
            let steps = pattern.steps.iter().map(|(step, node)| (step.slot, node.slot)).collect();
            self.paths.push(PathAssembly { slot, start: pattern.start.slot, steps });
        }
    }

    fn add_node(&mut self, node: &'p NodePattern) {
        if !node.labels.is_empty() {
            let subject = Box::new(Expression::Variable(node.slot));
            split(Expression::HasLabels(subject, node.labels.clone()), &mut self.conditions);
        }
        for (key, value) in node.properties.entries() {
            split(property_is(node.slot, key, value), &mut self.conditions);
        }
        self.nodes.push(node);
    }

    fn run(&mut self) {
        self.check_bound();
        self.place_conditions();
        while !self.edges.is_empty() {
            match self.next_edge() {
                Some(at) => {
                    let edge = self.edges.remove(at);
                    self.walk(&edge);
                }
                None => start::begin(self),
            }
            self.place_conditions();
        }
        while self.nodes.iter().any(|node| self.open.contains(&node.slot)) {
            start::begin(self);
            self.place_conditions();
        }
        for path in std::mem::take(&mut self.paths) {
            self.open.remove(&path.slot);
            self.compiler.push(Operator::Path(path));
            self.place_conditions();
        }
        // Slots that are still open occur in no pattern, so they cannot delay anything.
        self.open.clear();
        self.place_conditions();
    }

    /// A bound node may be null after `OPTIONAL MATCH`, and then matches no pattern.
    fn check_bound(&mut self) {
        for node in &self.nodes {
            let walked = self
                .edges
                .iter()
                .any(|edge| edge.left.slot == node.slot || edge.right.slot == node.slot);
            if !self.open.contains(&node.slot) && !walked {
                let subject = Box::new(Expression::Variable(node.slot));
                let there = Expression::Unary(UnaryOperator::IsNotNull, subject);
                self.compiler.push(Operator::Filter(there));
            }
        }
    }

    /// Places every condition whose slots are all bound.
    fn place_conditions(&mut self) {
        let conditions = std::mem::take(&mut self.conditions);
        for condition in conditions {
            if condition.is_ready(&self.open) {
                self.compiler.push(Operator::Filter(condition.expression));
            } else {
                self.conditions.push(condition);
            }
        }
    }

    /// The next edge: preferably with both ends bound, then with one, then with none.
    fn next_edge(&self) -> Option<usize> {
        let bound = |node: &NodePattern| !self.open.contains(&node.slot);
        let ends = |edge: &Edge<'_>| {
            let count = usize::from(bound(edge.left)) + usize::from(bound(edge.right));
            // A bound relationship determines both of its ends; a shortest path needs both.
            let relationship = &edge.relationship;
            match count {
                2 => 3,
                _ if edge.shortest.is_some() => 0,
                _ if relationship.bound && relationship.length.is_none() => 2,
                count => count,
            }
        };
        let best = (0..self.edges.len()).max_by_key(|at| {
            let score = self.edges.get(*at).map_or(0, &ends);
            (score, std::cmp::Reverse(*at))
        })?;
        self.edges.get(best).filter(|edge| ends(edge) > 0).map(|_| best)
    }

    /// The shortest path that an edge stands for, and the conditions evaluated during its search
    /// rather than afterwards.
    fn asked_of_path(
        &mut self,
        edge: &Edge<'p>,
    ) -> (Option<PathAssembly>, Vec<Expression>, Vec<Expression>) {
        let only = vec![(edge.relationship.slot, edge.right.slot)];
        let path = self.paths.iter().find(|path| path.steps == only);
        let path =
            path.map(|path| PathAssembly { slot: path.slot, start: path.start, steps: only });
        let slots: Vec<Slot> = path.iter().map(|path| path.slot).collect();
        let slots = [slots, vec![edge.relationship.slot]].concat();
        let (mut asked, mut asked_of_each) = (Vec::new(), Vec::new());
        for condition in std::mem::take(&mut self.conditions) {
            if !condition.is_about(&slots, &self.open) {
                self.conditions.push(condition);
                continue;
            }
            if edge.relationship.length.is_some() && condition.is_about_each(&slots) {
                asked_of_each.push(condition.expression.clone());
            }
            asked.push(condition.expression);
        }
        (path, asked, asked_of_each)
    }

    /// Plans the step along a relationship, from a bound end or, if the relationship is bound, from
    /// either.
    pub(super) fn walk(&mut self, edge: &Edge<'p>) {
        let relationship = edge.relationship;
        let forward = !self.open.contains(&edge.left.slot);
        let (from, to) = if forward { (edge.left, edge.right) } else { (edge.right, edge.left) };
        let direction =
            if forward { relationship.direction } else { relationship.direction.reversed() };
        let bound = relationship.bound || !self.open.contains(&relationship.slot);
        let unlike = self.walked.iter().filter(|it| may_be_one(it, relationship));
        let unlike = unlike.map(|it| it.slot).collect();
        let connection = Connection {
            from: from.slot,
            from_bound: !self.open.contains(&from.slot),
            relationship: relationship.slot,
            to: to.slot,
            to_bound: !self.open.contains(&to.slot),
            direction,
            types: relationship.types.clone(),
            unlike,
        };
        self.walked.push(relationship);
        self.open.remove(&from.slot);
        self.open.remove(&to.slot);
        self.open.remove(&relationship.slot);
        let properties = || relationship.properties.entries().to_vec();
        let length = relationship.length.unwrap_or(Length { from: 1, to: Some(1) });
        let operator = match (edge.shortest, relationship.length) {
            (Some(which), _) => {
                let (path, asked, asked_of_each) = self.asked_of_path(edge);
                Operator::Shortest(ShortestPath {
                    connection,
                    which,
                    length,
                    single: relationship.length.is_none(),
                    properties: properties(),
                    path,
                    asked,
                    asked_of_each,
                })
            }
            (None, None) => Operator::Expand(Expand { connection, bound }),
            (None, Some(length)) => Operator::ExpandVariable(ExpandVariable {
                connection,
                bound,
                length,
                properties: properties(),
                reversed: !forward,
                has_name: relationship.has_name,
                ends_only: false,
            }),
        };
        self.compiler.push(operator);
    }
}

/// Whether two elements of a pattern could match the same relationship.
fn may_be_one(one: &RelationshipPattern, other: &RelationshipPattern) -> bool {
    let apart = !one.types.is_empty()
        && !other.types.is_empty()
        && !one.types.iter().any(|name| other.types.contains(name));
    one.slot != other.slot && !apart
}
