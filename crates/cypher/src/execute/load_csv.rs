//! `LOAD CSV`: a row for each record of a file.

use super::expand::unfit;
use super::pipeline::{Flow, Next, set};
use crate::context::Context;
use crate::error::Result;
use crate::evaluate::evaluate;
use crate::ir::LoadCsv;
use crate::server::STEPS_BEFORE_READING;
use crate::value::{Entries, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of a text that take a step.
const BYTES_PER_STEP: u64 = 64;

pub(super) fn load(
    load: &LoadCsv,
    row: &mut [Value],
    context: &mut Context<'_>,
    next: &mut Next<'_>,
) -> Result<Flow> {
    let source = match evaluate(&load.source, row, context)? {
        Value::String(source) => source,
        other => return Err(unfit(&other, "the address of a file")),
    };
    // A serving thread must not read a disk.
    context.budget.charge_steps(STEPS_BEFORE_READING)?;
    let server = context.server;
    let mut headers: Option<Vec<Arc<str>>> = None;
    let mut flow = Flow::Continue;
    server.csv(&source, load.terminator, &mut |fields| {
        let bytes: usize = fields.iter().map(|field| field.len()).sum();
        context.budget.charge_steps(1 + fields.len() as u64 + bytes as u64 / BYTES_PER_STEP)?;
        if load.with_headers && headers.is_none() {
            headers = Some(fields);
            return Ok(ControlFlow::Continue(()));
        }
        let values = fields.into_iter().map(field);
        let value = match &headers {
            None => Value::list(values.collect()),
            Some(headers) => {
                let values = values.chain(std::iter::repeat(Value::Null));
                let entries: Entries = headers.iter().cloned().zip(values).collect();
                Value::Map(Arc::new(entries.into()))
            }
        };
        set(row, load.variable, value);
        flow = next.push(row, context)?;
        Ok(match flow {
            Flow::Continue => ControlFlow::Continue(()),
            Flow::Stop => ControlFlow::Break(()),
        })
    })?;
    Ok(flow)
}

/// An empty field is null, as in Neo4j.
fn field(text: Arc<str>) -> Value {
    if text.is_empty() { Value::Null } else { Value::String(text) }
}
