//! Walks over expressions.

use super::{Expression, MapProjectionItem, Slot};

/// Calls `visit` for every slot that the expression reads or binds, and `subquery` for every
/// subquery in it.
pub fn for_each_slot(
    expression: &Expression,
    visit: &mut dyn FnMut(Slot),
    subquery: &mut dyn FnMut(usize),
) {
    match expression {
        Expression::Variable(slot) => visit(*slot),
        Expression::Subquery(number) => subquery(*number),
        Expression::ListComprehension(comprehension) => visit(comprehension.variable),
        Expression::Quantifier(quantifier) => visit(quantifier.variable),
        Expression::Reduce(reduce) => {
            visit(reduce.variable);
            visit(reduce.accumulator);
        }
        _ => {}
    }
    for_each_child(expression, &mut |child| for_each_slot(child, visit, subquery));
}

/// Replaces every subexpression for which `replacement` returns something; does not descend into
/// replacements.
pub fn replace_all(
    expression: &mut Expression,
    replacement: &mut dyn FnMut(&Expression) -> Option<Expression>,
) {
    if let Some(new) = replacement(expression) {
        *expression = new;
        return;
    }
    for_each_child_mut(expression, &mut |child| replace_all(child, replacement));
}

/// Calls `visit` for every expression directly in this one.
pub fn for_each_child(expression: &Expression, visit: &mut dyn FnMut(&Expression)) {
    // Both walks visit the same children; this one only reads.
    match expression {
        Expression::Property(a, _)
        | Expression::Unary(_, a)
        | Expression::HasLabels(a, _)
        | Expression::HasType(a, _) => {
            visit(a);
        }
        Expression::Index(a, b) | Expression::Binary(_, a, b) => {
            visit(a);
            visit(b);
        }
        Expression::Slice(list, from, to) => {
            visit(list);
            from.iter().chain(to).for_each(|bound| visit(bound));
        }
        Expression::List(items) | Expression::Function(_, items) => items.iter().for_each(visit),
        Expression::Map(entries) => entries.iter().for_each(|(_, value)| visit(value)),
        Expression::MapProjection(subject, items) => {
            visit(subject);
            for item in items {
                if let MapProjectionItem::Entry(_, value) = item {
                    visit(value);
                }
            }
        }
        Expression::Comparison(first, rest) => {
            visit(first);
            rest.iter().for_each(|(_, next)| visit(next));
        }
        Expression::Case(case) => {
            case.subject.iter().for_each(&mut *visit);
            for (when, then) in &case.alternatives {
                visit(when);
                visit(then);
            }
            case.otherwise.iter().for_each(visit);
        }
        Expression::ListComprehension(comprehension) => {
            visit(&comprehension.list);
            let parts = comprehension.predicate.iter().chain(&comprehension.result);
            parts.for_each(visit);
        }
        Expression::Quantifier(quantifier) => {
            visit(&quantifier.list);
            visit(&quantifier.predicate);
        }
        Expression::Reduce(reduce) => {
            visit(&reduce.initial);
            visit(&reduce.list);
            visit(&reduce.step);
        }
        Expression::Null
        | Expression::Boolean(_)
        | Expression::Integer(_)
        | Expression::Float(_)
        | Expression::String(_)
        | Expression::Parameter(_)
        | Expression::Variable(_)
        | Expression::Subquery(_) => {}
    }
}

fn for_each_child_mut(expression: &mut Expression, visit: &mut dyn FnMut(&mut Expression)) {
    match expression {
        Expression::Property(a, _)
        | Expression::Unary(_, a)
        | Expression::HasLabels(a, _)
        | Expression::HasType(a, _) => {
            visit(a);
        }
        Expression::Index(a, b) | Expression::Binary(_, a, b) => {
            visit(a);
            visit(b);
        }
        Expression::Slice(list, from, to) => {
            visit(list);
            from.iter_mut().chain(to).for_each(|bound| visit(bound));
        }
        Expression::List(items) | Expression::Function(_, items) => {
            items.iter_mut().for_each(visit);
        }
        Expression::Map(entries) => entries.iter_mut().for_each(|(_, value)| visit(value)),
        Expression::MapProjection(subject, items) => {
            visit(subject);
            for item in items {
                if let MapProjectionItem::Entry(_, value) = item {
                    visit(value);
                }
            }
        }
        Expression::Comparison(first, rest) => {
            visit(first);
            rest.iter_mut().for_each(|(_, next)| visit(next));
        }
        Expression::Case(case) => {
            case.subject.iter_mut().for_each(&mut *visit);
            for (when, then) in &mut case.alternatives {
                visit(when);
                visit(then);
            }
            case.otherwise.iter_mut().for_each(visit);
        }
        Expression::ListComprehension(comprehension) => {
            visit(&mut comprehension.list);
            let parts = comprehension.predicate.iter_mut().chain(&mut comprehension.result);
            parts.for_each(visit);
        }
        Expression::Quantifier(quantifier) => {
            visit(&mut quantifier.list);
            visit(&mut quantifier.predicate);
        }
        Expression::Reduce(reduce) => {
            visit(&mut reduce.initial);
            visit(&mut reduce.list);
            visit(&mut reduce.step);
        }
        Expression::Null
        | Expression::Boolean(_)
        | Expression::Integer(_)
        | Expression::Float(_)
        | Expression::String(_)
        | Expression::Parameter(_)
        | Expression::Variable(_)
        | Expression::Subquery(_) => {}
    }
}
