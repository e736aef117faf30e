//! Splits conditions, so that each is evaluated as soon as its inputs are bound.

use std::collections::HashSet;
use std::sync::Arc;

use super::operator::{JoinKey, SoughtValue};
use crate::functions::lookup;
use crate::ir::{
    BinaryOperator, Comparison, Expression, Quantity, Slot, for_each_child, for_each_slot,
};

/// A condition still to be placed.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) expression: Expression,
    /// The slots of this clause that it reads.
    reads: Vec<Slot>,
    /// Whether it has a subquery, which may read anything.
    last: bool,
}

impl Condition {
    fn new(expression: Expression) -> Self {
        let (mut reads, mut last) = (Vec::new(), false);
        for_each_slot(&expression, &mut |slot| reads.push(slot), &mut |_| last = true);
        Self { expression, reads, last }
    }

    /// The slots that it reads, with repetitions.
    pub(super) fn reads(&self) -> &[Slot] {
        &self.reads
    }

    /// Whether all slots that it reads are bound. Slots that the clause does not introduce are
    /// bound already.
    pub(super) fn is_ready(&self, open: &HashSet<Slot>) -> bool {
        if self.last { open.is_empty() } else { !self.reads.iter().any(|slot| open.contains(slot)) }
    }

    /// Whether it reads one of these slots and no other open one.
    pub(super) fn is_about(&self, slots: &[Slot], open: &HashSet<Slot>) -> bool {
        let ready = |slot: &Slot| !open.contains(slot) || slots.contains(slot);
        self.reads.iter().any(|slot| slots.contains(slot))
            && self.reads.iter().all(ready)
            && (!self.last || open.iter().all(|slot| slots.contains(slot)))
    }

    /// Whether it constrains every element of the path or list in one of these slots: `all(x IN
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

    /// The key and value of `slot.key = value` or `slot.key IN list`, if the value reads nothing
    /// open.
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

    /// The value of `id(slot) = value`, `elementId(slot) IN list` and the like.
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

    /// The equality of an expression over the slot alone and a value that reads nothing open.
    pub(super) fn join(&self, slot: Slot, open: &HashSet<Slot>) -> Option<JoinKey> {
        let Expression::Comparison(left, rest) = &self.expression else { return None };
        let [(Comparison::Equal, right)] = rest.as_slice() else { return None };
        let is_key = |side: &Expression| reads_only(side, slot);
        let (key, wanted) = match (is_key(left), is_key(right)) {
            (true, _) => (&**left, right),
            (_, true) => (right, &**left),
            _ => return None,
        };
        let property = match key {
            Expression::Property(subject, key) if **subject == Expression::Variable(slot) => {
                Some(key.clone())
            }
            _ => None,
        };
        let usable = is_closed(wanted, open) && is_repeatable(wanted);
        usable.then(|| JoinKey { key: key.clone(), property, wanted: wanted.clone() })
    }

    /// The values that the expression recognized by `is_it` must equal.
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

/// Whether an expression reads no open slot and has no subquery.
fn is_closed(expression: &Expression, open: &HashSet<Slot>) -> bool {
    let mut closed = true;
    let mut subquery = false;
    for_each_slot(expression, &mut |slot| closed &= !open.contains(&slot), &mut |_| {
        subquery = true
    });
    closed && !subquery
}

/// Whether an expression reads this slot and nothing else of the row, and always has the same
/// value for the same node.
fn reads_only(expression: &Expression, slot: Slot) -> bool {
    let (mut reads, mut others, mut subquery) = (false, false, false);
    for_each_slot(
        expression,
        &mut |read| if read == slot { reads = true } else { others = true },
        &mut |_| subquery = true,
    );
    reads && !others && !subquery && is_repeatable(expression)
}

/// Whether it calls no function such as `rand()`.
pub(crate) fn is_repeatable(expression: &Expression) -> bool {
    let own = match expression {
        Expression::Function(name, _) => lookup(name).is_some_and(|function| function.repeatable),
        _ => true,
    };
    let mut all = own;
    for_each_child(expression, &mut |child| all &= is_repeatable(child));
    all
}

/// Splits a conjunction into its parts.
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
