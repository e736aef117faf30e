//! `MERGE`: matches the pattern or creates it.

use super::pipeline::{Flow, Next, get, run};
use super::{change, create, keep};
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::evaluate::evaluate;
use crate::plan::MergeOperator;
use crate::value::Value;

pub(super) fn merge(
    merge: &MergeOperator,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    check(merge, row, context)?;
    // All matches are found before anything is set, so that the search cannot see the changes.
    let mut found = Vec::new();
    run(&merge.matching, row, context, &mut |row, context| {
        found.push(keep::copy(&merge.introduced, row, context)?);
        Ok(Flow::Continue)
    })?;
    if found.is_empty() {
        create::create(&merge.creation, row, context)?;
        change::set_all(&merge.on_create, row, context)?;
        return next.push(row, context);
    }
    for values in found {
        keep::restore(&merge.introduced, values, row, context);
        change::set_all(&merge.on_match, row, context)?;
        if next.push(row, context)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// A pattern with null would never match and so be created every time.
fn check(merge: &MergeOperator, row: &mut [Value], context: &mut Context<'_>) -> Result<()> {
    for slot in &merge.bound {
        if get(row, *slot).is_null() {
            return Err(unmergeable("a node that is null"));
        }
    }
    for (key, value) in &merge.values {
        if evaluate(value, row, context)?.is_null() {
            return Err(unmergeable(&format!("null for the property '{key}'")));
        }
    }
    Ok(())
}

fn unmergeable(what: &str) -> Error {
    let message = format!("Cannot merge the pattern because of {what}");
    Error::runtime(ErrorKind::SemanticError, Detail::MergeReadOwnWrites, message)
}
