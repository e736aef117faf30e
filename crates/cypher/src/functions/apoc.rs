//! The functions of Neo4j's library APOC that other tools call.

use super::arguments::{at, list, text, unfit};
use super::catalogue::Function;
use super::entity::properties;
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::value::{Value, float_text};

pub(super) static TABLE: &[Function] = &[
    Function::new("apoc.any.properties", 1, 2, |arguments, context| {
        let all = properties(at(arguments, 0), context)?;
        let Value::List(keys) = at(arguments, 1) else { return Ok(Value::map(all)) };
        let is_wanted = |key: &str| {
            keys.iter().any(|wanted| matches!(wanted, Value::String(text) if **text == *key))
        };
        context.budget.charge_steps((all.len() * keys.len()) as u64)?;
        Ok(Value::map(all.into_iter().filter(|(key, _)| is_wanted(key))))
    }),
    Function::new("apoc.any.property", 2, 2, |arguments, context| {
        let key = text("apoc.any.property", at(arguments, 1))?;
        let all = properties(at(arguments, 0), context)?;
        let found = all.into_iter().find(|(name, _)| name == key);
        Ok(found.map_or(Value::Null, |(_, value)| value))
    }),
    Function::new("apoc.date.convertFormat", 2, 3, |arguments, _| convert_format(arguments)),
    Function::new("apoc.meta.cypher.isType", 2, 2, |arguments, _| {
        let wanted = text("apoc.meta.cypher.isType", at(arguments, 1))?;
        Ok(Value::Boolean(type_of(at(arguments, 0)).eq_ignore_ascii_case(wanted)))
    })
    .regarding_nulls(),
    Function::new("apoc.meta.cypher.type", 1, 1, |arguments, _| {
        Ok(Value::string(type_of(at(arguments, 0))))
    })
    .regarding_nulls(),
    Function::new("apoc.meta.cypher.types", 1, 1, |arguments, context| {
        let all = properties(at(arguments, 0), context)?;
        Ok(Value::map(all.into_iter().map(|(key, value)| (key, Value::string(type_of(&value))))))
    }),
    Function::new("apoc.util.validatePredicate", 3, 3, |arguments, context| {
        match at(arguments, 0) {
            Value::Boolean(true) => Err(refusal(at(arguments, 1), at(arguments, 2), context)?),
            _ => Ok(Value::Boolean(true)),
        }
    })
    .regarding_nulls(),
];

/// A date and time in another of the forms that Java names.
fn convert_format(arguments: &[Value]) -> Result<Value> {
    const NAME: &str = "apoc.date.convertFormat";
    let written = text(NAME, at(arguments, 0))?;
    let from = text(NAME, at(arguments, 1))?;
    let to = match arguments.get(2) {
        None => "yyyy-MM-dd",
        Some(to) => text(NAME, to)?,
    };
    let is_known = |form: &str| {
        matches!(form, "iso_zoned_date_time" | "iso_offset_date_time" | "iso_date_time")
    };
    // The zone in brackets is what the forms differ in.
    let without_zone = || written.split('[').next().unwrap_or_default();
    match (is_known(from), to) {
        (true, "iso_zoned_date_time" | "iso_date_time") => Ok(Value::String(written.clone())),
        (true, "iso_offset_date_time") => Ok(Value::string(without_zone())),
        (true, "iso_local_date" | "yyyy-MM-dd" | "date") => {
            Ok(Value::string(written.split('T').next().unwrap_or_default()))
        }
        _ => {
            let message = format!("{NAME}() has no form to convert '{from}' to '{to}'.");
            Err(Error::argument(Detail::InvalidArgumentValue, message))
        }
    }
}

/// The type of a value in APOC's words: `INTEGER`, `LIST OF STRING`.
fn type_of(value: &Value) -> String {
    let Value::List(items) = value else { return apoc_type(value.type_name()).to_owned() };
    let mut types = items.iter().map(|item| apoc_type(item.type_name()));
    match types.next() {
        Some(first) if types.all(|other| other == first) => format!("LIST OF {first}"),
        _ => "LIST OF ANY".to_owned(),
    }
}

/// A type in APOC's words.
pub(crate) fn apoc_type(name: &'static str) -> &'static str {
    match name {
        "Null" => "NULL",
        "Boolean" => "BOOLEAN",
        "Integer" => "INTEGER",
        "Float" => "FLOAT",
        "String" => "STRING",
        "List" => "LIST",
        "Map" => "MAP",
        "Node" => "NODE",
        "Relationship" => "RELATIONSHIP",
        "Path" => "PATH",
        "Date" => "DATE",
        "LocalTime" => "LOCAL_TIME",
        "Time" => "TIME",
        "LocalDateTime" => "LOCAL_DATE_TIME",
        "DateTime" => "DATE_TIME",
        "Duration" => "DURATION",
        "Point" => "POINT",
        _ => "ANY",
    }
}

/// The error with which a statement refuses to go on: the message, with values for `%s` and `%d`.
///
/// # Errors
/// A message that is no text; an exhausted budget.
pub(crate) fn refusal(message: &Value, values: &Value, context: &mut Context<'_>) -> Result<Error> {
    const MOST_CHARACTERS: usize = 4_096;
    let message = text("apoc.util.validate", message)?;
    let values = match values {
        Value::Null => &[],
        values => list("apoc.util.validate", values)?,
    };
    context.budget.charge_steps(message.len() as u64 / 64 + values.len() as u64)?;
    let mut values = values.iter();
    let mut parts = message.split('%');
    let mut shown: String = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match (part.chars().next(), values.as_slice().first()) {
            (Some('s' | 'd'), Some(value)) => {
                values.next();
                shown.push_str(&shown_value(value));
                shown.push_str(part.get(1..).unwrap_or_default());
            }
            _ => {
                shown.push('%');
                shown.push_str(part);
            }
        }
    }
    let shown: String = shown.chars().take(MOST_CHARACTERS).collect();
    Ok(Error::runtime(ErrorKind::ProcedureError, Detail::Refused, shown))
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => float_text(*number),
        Value::Boolean(truth) => truth.to_string(),
        Value::Null => "null".to_owned(),
        other => unfit("apoc.util.validate", other, "a plain value").message,
    }
}
