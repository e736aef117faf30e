//! What expressions come to.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::ir::Expression;
use crate::value::Value;

/// What an expression comes to for a row.
///
/// The row has a place for every slot of the expression; those of variables of its own (of a comprehension, say) are
/// written to and hold nothing of meaning afterwards.
///
/// # Errors
/// Whatever the language makes an error at run time, and a budget used up.
pub fn evaluate(
    expression: &Expression,
    row: &mut [Value],
    context: &mut Context<'_>,
) -> Result<Value> {
    match expression {
        Expression::Null => Ok(Value::Null),
        Expression::Subquery(number) => context.subqueries.evaluate(*number, row, context),
        _ => Err(Error::defect("not yet")),
    }
}
