//! The items of a list that is traversed once: those of `range()` are made one by one.

use super::nested;
use crate::context::Context;
use crate::error::Result;
use crate::functions::{Range, range_of};
use crate::ir::Expression;
use crate::value::Value;

/// Items still to come.
pub(crate) enum Items {
    /// Of a list, from an index on.
    List(Value, usize),
    Range(Range),
    /// A value that is no list.
    Single(Value),
    /// No more, or of null.
    Nothing,
}

/// The items to traverse, and the bytes charged as long as they are held.
pub(crate) fn held(
    list: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<(Items, u64)> {
    let before = context.budget.bytes_left();
    let items = Items::of(list, row, context);
    let after = context.budget.bytes_left();
    context.budget.return_bytes(before.saturating_sub(after));
    let items = items?;
    let bytes = match &items {
        Items::List(value, _) | Items::Single(value) => value.share_of_outer_bytes(),
        Items::Range(_) | Items::Nothing => 0,
    };
    context.budget.charge_bytes(bytes)?;
    Ok((items, bytes))
}

impl Items {
    /// The items of a list; of another value, the value itself.
    pub(crate) fn of(
        list: &Expression,
        row: &mut [Value],
        context: &mut Context<'_>,
    ) -> Result<Self> {
        if let Expression::Function(name, arguments) = list
            && **name == *"range"
            && (2..=3).contains(&arguments.len())
        {
            let bounds = arguments.iter().map(|argument| nested(argument, row, context));
            let bounds: Vec<Value> = bounds.collect::<Result<_>>()?;
            return if bounds.iter().any(Value::is_null) {
                Ok(Self::Nothing)
            } else {
                Ok(Self::Range(range_of(&bounds)?))
            };
        }
        Ok(match nested(list, row, context)? {
            Value::Null => Self::Nothing,
            list @ Value::List(_) => Self::List(list, 0),
            single => Self::Single(single),
        })
    }
}

impl Iterator for Items {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        match self {
            Self::List(list, at) => {
                let Value::List(items) = list else { return None };
                let item = items.get(*at).cloned();
                *at += 1;
                item
            }
            Self::Range(range) => range.next().map(Value::Integer),
            Self::Single(_) => match std::mem::replace(self, Self::Nothing) {
                Self::Single(value) => Some(value),
                _ => None,
            },
            Self::Nothing => None,
        }
    }
}
