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

/// Defines a walk over the expressions directly in one, by reference or by mutable reference.
macro_rules! child_walk {
    ($(#[$what:meta])* $visibility:vis fn $name:ident, $iter:ident $(, $mutable:tt)?) => {
        $(#[$what])*
        $visibility fn $name(
            expression: &$($mutable)? Expression,
            visit: &mut dyn FnMut(&$($mutable)? Expression),
        ) {
            match expression {
                Expression::Property(a, _)
                | Expression::Unary(_, a)
                | Expression::HasLabels(a, _)
                | Expression::HasType(a, _) => {
                    visit(a);
                }
                Expression::Index(a, b)
                | Expression::Binary(_, a, b)
                | Expression::HasDynamicLabels(a, b, _) => {
                    visit(a);
                    visit(b);
                }
                Expression::Slice(list, from, to) => {
                    visit(list);
                    from.$iter().chain(to).for_each(|bound| visit(bound));
                }
                Expression::List(items) | Expression::Function(_, items) => {
                    items.$iter().for_each(visit);
                }
                Expression::Map(entries) => entries.$iter().for_each(|(_, value)| visit(value)),
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
                    rest.$iter().for_each(|(_, next)| visit(next));
                }
                Expression::Case(case) => {
                    case.subject.$iter().for_each(&mut *visit);
                    for (when, then) in case.alternatives.$iter() {
                        visit(when);
                        visit(then);
                    }
                    case.otherwise.$iter().for_each(visit);
                }
                Expression::ListComprehension(comprehension) => {
                    visit(&$($mutable)? comprehension.list);
                    let parts = comprehension.predicate.$iter().chain(comprehension.result.$iter());
                    parts.for_each(visit);
                }
                Expression::Quantifier(quantifier) => {
                    visit(&$($mutable)? quantifier.list);
                    visit(&$($mutable)? quantifier.predicate);
                }
                Expression::Reduce(reduce) => {
                    visit(&$($mutable)? reduce.initial);
                    visit(&$($mutable)? reduce.list);
                    visit(&$($mutable)? reduce.step);
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
    };
}

child_walk! {
    /// Calls `visit` for every expression directly in this one.
    pub fn for_each_child, iter
}

child_walk! {
    fn for_each_child_mut, iter_mut, mut
}
