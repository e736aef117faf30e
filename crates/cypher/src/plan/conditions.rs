//! Conditions taken apart, so that each is asked as soon as all that it reads is bound.

use std::collections::HashSet;
use std::sync::Arc;

use super::operator::SoughtValue;
use crate::ir::{BinaryOperator, Comparison, Expression, Quantity, Slot, for_each_slot};

/// A condition that is to be asked somewhere.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) expression: Expression,
    /// The slots of this clause that it reads.
    reads: Vec<Slot>,
    /// It has a subquery, which may read anything.
    last: bool,
}

impl Condition {
    fn new(expression: Expression) -> Self {
        let (mut reads, mut last) = (Vec::new(), false);
        for_each_slot(&expression, &mut |slot| reads.push(slot), &mut |_| last = true);
        Self { expression, reads, last }
    }

    /// The slots that it reads, each as often as it does.
    pub(super) fn reads(&self) -> &[Slot] {
        &self.reads
    }

    /// Whether all of this clause that it reads is bound. What the clause does not introduce is
    /// bound from before.
    pub(super) fn is_ready(&self, open: &HashSet<Slot>) -> bool {
        if self.last { open.is_empty() } else { !self.reads.iter().any(|slot| open.contains(slot)) }
    }

    /// Whether it reads one of these slots, and nothing else that is open.
    pub(super) fn is_about(&self, slots: &[Slot], open: &HashSet<Slot>) -> bool {
        let ready = |slot: &Slot| !open.contains(slot) || slots.contains(slot);
        self.reads.iter().any(|slot| slots.contains(slot))
            && self.reads.iter().all(ready)
            && (!self.last || open.iter().all(|slot| slots.contains(slot)))
    }

    /// Whether it is asked of every element of the path or list in one of these slots: `all(x IN
    /// nodes(p) WHERE …)` or `none(…)`, with a predicate that does not read the whole.
    pub(super) fn is_about_each(&self, slots: &[Slot]) -> bool {
        let Expression::Quantifier(quantifier) = &self.expression else { return false };
        let is_whole =
            |it: &Expression| matches!(it, Expression::Variable(it) if slots.contains(it));
        let of_elements = match &quantifier.list {
            Expression::Function(name, arguments) => {
                matches!(&**name, "nodes" | "relationships" | "rels")
                    && arguments.iter().all(is_whole)
            }
            list => is_whole(list),
        };
        let open = slots.iter().copied().collect();
        let each = matches!(quantifier.quantity, Quantity::All | Quantity::None);
        each && of_elements && is_closed(&quantifier.predicate, &open)
    }

    /// `slot.key = value`, `slot.key IN list` with a value that reads nothing open: the key and the
    /// value.
    pub(super) fn property(
        &self,
        slot: Slot,
        open: &HashSet<Slot>,
    ) -> Option<(Arc<str>, SoughtValue)> {
        let key = |side: &Expression| match side {
            Expression::Property(subject, key) if **subject == Expression::Variable(slot) => {
                Some(key.clone())
            }
            _ => None,
        };
        self.wanted(&key, open)
    }

    /// `id(slot) = value`, `elementId(slot) IN list` and the like.
    pub(super) fn id(&self, slot: Slot, open: &HashSet<Slot>) -> Option<SoughtValue> {
        let is_id = |side: &Expression| match side {
            Expression::Function(name, arguments) => {
                let subject = [Expression::Variable(slot)];
                let of_it = arguments.as_slice() == subject;
                (of_it && matches!(&**name, "id" | "elementId")).then_some(())
            }
            _ => None,
        };
        self.wanted(&is_id, open).map(|found| found.1)
    }

    /// The values that what `is_it` knows must be equal to.
    fn wanted<T>(
        &self,
        is_it: &dyn Fn(&Expression) -> Option<T>,
        open: &HashSet<Slot>,
    ) -> Option<(T, SoughtValue)> {
        let closed = |value: &Expression| is_closed(value, open).then(|| value.clone());
        match &self.expression {
            Expression::Comparison(left, rest) => {
                let [(Comparison::Equal, right)] = rest.as_slice() else { return None };
                let (found, value) = match is_it(left) {
                    Some(found) => (found, right),
                    None => (is_it(right)?, &**left),
                };
                Some((found, SoughtValue::One(closed(value)?)))
            }
            Expression::Binary(BinaryOperator::In, left, right) => {
                Some((is_it(left)?, SoughtValue::AnyOf(closed(right)?)))
            }
            _ => None,
        }
    }
}

/// Whether an expression reads nothing that is open, and has no subquery.
fn is_closed(expression: &Expression, open: &HashSet<Slot>) -> bool {
    let mut closed = true;
    let mut subquery = false;
    for_each_slot(expression, &mut |slot| closed &= !open.contains(&slot), &mut |_| {
        subquery = true
    });
    closed && !subquery
}

/// The parts of a condition that must all be true.
pub(super) fn split(expression: Expression, into: &mut Vec<Condition>) {
    match expression {
        Expression::Binary(BinaryOperator::And, left, right) => {
            split(*left, into);
            split(*right, into);
        }
        other => into.push(Condition::new(other)),
    }
}

/// `slot.key = value`
pub(super) fn property_is(slot: Slot, key: &Arc<str>, value: &Expression) -> Expression {
    let property = Expression::Property(Box::new(Expression::Variable(slot)), key.clone());
    Expression::Comparison(Box::new(property), vec![(Comparison::Equal, value.clone())])
}
