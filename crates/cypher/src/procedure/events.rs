//! `wellspring.events`: the events of the database's log as rows.

use super::built_in::BuiltInProcedure;
use super::signature::{Parameter, column};
use super::{ArgumentType, Mode, Rows};
use crate::context::{Budget, Context};
use crate::error::{Detail, Error, Result};
use crate::server::{EventSink, EventsWanted, LogEvent, STEPS_BEFORE_READING};
use crate::temporal;
use crate::value::Value;
use std::sync::Arc;

pub(super) static TABLE: &[BuiltInProcedure] = &[BuiltInProcedure {
    name: "wellspring.events",
    description: "The events of the database's log that have one of the types and all of the \
                  tags, after a position and up to one.",
    mode: Mode::Read,
    parameters: &[Parameter::optional("config", ArgumentType::Map)],
    columns: &[
        column("position", "INTEGER"),
        column("type", "STRING"),
        column("tags", "LIST<STRING>"),
        column("data", "ANY"),
        column("recordedAt", "ZONED DATETIME"),
    ],
    call: |arguments, context| {
        let wanted = wanted(arguments.first().unwrap_or(&Value::Null), context)?;
        // A serving thread must not read a disk, and a statement that takes this much does not run
        // on one, nor in the room for work of some ms.
        context.budget.charge_steps(STEPS_BEFORE_READING)?;
        let mut sink = RowSink { rows: Rows::new(), budget: context.budget };
        context.server.events(&wanted, &mut sink)?;
        Ok(sink.rows)
    },
}];

/// Events returned where the caller says nothing, and at most.
const DEFAULT_LIMIT: u64 = 1_000;
const MOST_LIMIT: u64 = 10_000;
/// Bytes of a row apart from its values.
const ROW_BYTES: u64 = 64;

/// Takes the events as rows.
struct RowSink<'b> {
    rows: Rows,
    budget: &'b mut Budget,
}

impl EventSink for RowSink<'_> {
    fn searched(&mut self, steps: u64) -> Result<()> {
        self.budget.charge_steps(steps)
    }

    fn parsing(&mut self, bytes: u64) -> Result<()> {
        self.budget.charge_steps(bytes / 64)?;
        self.budget.charge_bytes(bytes)?;
        self.budget.return_bytes(bytes);
        Ok(())
    }

    fn event(&mut self, event: LogEvent) -> Result<()> {
        let recorded_us = i64::try_from(event.recorded_us).unwrap_or(i64::MAX);
        let nanoseconds = recorded_us % 1_000_000 * 1_000;
        let row = vec![
            Value::Integer(i64::try_from(event.position).unwrap_or(i64::MAX)),
            Value::String(event.kind),
            Value::list(event.tags.into_iter().map(Value::String).collect()),
            event.data,
            temporal::instant(recorded_us / 1_000_000, nanoseconds)?,
        ];
        let bytes: u64 = row.iter().map(Value::bytes).sum();
        self.budget.charge_steps(1 + bytes / 64)?;
        self.budget.charge_bytes(ROW_BYTES + bytes)?;
        self.rows.push(row);
        Ok(())
    }
}

/// What the configuration asks for.
fn wanted(configuration: &Value, context: &mut Context<'_>) -> Result<EventsWanted> {
    let mut wanted = EventsWanted {
        database: context.database.into(),
        types: Vec::new(),
        tags: Vec::new(),
        after: 0,
        until: None,
        limit: DEFAULT_LIMIT,
    };
    let entries = match configuration {
        Value::Null => return Ok(wanted),
        Value::Map(entries) => entries,
        other => return Err(unfit("config", other, "a Map")),
    };
    context.budget.charge_steps(configuration.steps())?;
    for (name, value) in entries.iter() {
        match (&**name, value) {
            (_, Value::Null) => {}
            ("types", value) => wanted.types = texts("types", value)?,
            ("tags", value) => wanted.tags = texts("tags", value)?,
            ("after", value) => wanted.after = number("after", value)?,
            ("until", value) => wanted.until = Some(number("until", value)?),
            ("limit", value) => wanted.limit = number("limit", value)?,
            (other, _) => {
                let message = format!(
                    "wellspring.events has no setting '{other}'; it has types, tags, after, \
                     until and limit."
                );
                return Err(Error::argument(Detail::InvalidArgumentValue, message));
            }
        }
    }
    if wanted.limit > MOST_LIMIT {
        let message = format!("'limit' is at most {MOST_LIMIT}, not {}.", wanted.limit);
        return Err(Error::argument(Detail::NumberOutOfRange, message));
    }
    Ok(wanted)
}

fn unfit(name: &str, value: &Value, wanted: &str) -> Error {
    let message = format!("'{name}' must be {wanted}, not {}.", value.type_name());
    Error::type_error(Detail::InvalidArgumentType, message)
}

fn number(name: &str, value: &Value) -> Result<u64> {
    let number = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    number.ok_or_else(|| unfit(name, value, "an Integer that is not negative"))
}

fn texts(name: &str, value: &Value) -> Result<Vec<Arc<str>>> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(Arc::clone(text)),
        other => Err(unfit(name, other, "a List of Strings")),
    };
    match value {
        Value::List(items) => items.iter().map(one).collect(),
        single => Ok(vec![one(single)?]),
    }
}
