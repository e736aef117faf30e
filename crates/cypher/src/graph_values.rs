//! Values as names and properties of the graph.

use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::{Value, to_property};
use std::sync::Arc;
use wellspring_graph::{Name, Value as Property};

/// The labels or types that a value names: a text or a list of texts.
pub(crate) fn label_texts(value: &Value, context: &mut Context<'_>) -> Result<Vec<Arc<str>>> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(Arc::clone(text)),
        other => {
            let message = format!(
                "A label or a type is a String or a List of Strings, not {}.",
                other.type_name()
            );
            Err(Error::type_error(Detail::InvalidArgumentType, message))
        }
    };
    match value {
        Value::List(items) => {
            context.budget.charge_steps(items.len() as u64)?;
            items.iter().map(text).collect()
        }
        one => Ok(vec![text(one)?]),
    }
}

/// Adds the labels that a value names, each once.
pub(crate) fn add_labels(
    value: &Value,
    labels: &mut Vec<Name>,
    context: &mut Context<'_>,
) -> Result<()> {
    for text in label_texts(value, context)? {
        let label = label_name(&text, context)?;
        if !labels.contains(&label) {
            context.budget.charge_steps(labels.len() as u64)?;
            labels.push(label);
        }
    }
    Ok(())
}

/// The only type that a value names.
pub(crate) fn one_type(value: &Value, context: &mut Context<'_>) -> Result<Name> {
    let types = label_texts(value, context)?;
    let [text] = types.as_slice() else {
        let message =
            format!("A relationship is created with exactly one type, not with {}.", types.len());
        return Err(Error::argument(Detail::NoSingleRelationshipType, message));
    };
    label_name(text, context)
}

/// The graph's name for a label or type, if it is valid.
fn label_name(text: &str, context: &Context<'_>) -> Result<Name> {
    match context.transaction.name(text) {
        Name::UNKNOWN => {
            let mut error = Error::from(context.transaction.refused_name(text));
            let shown: String = text.chars().take(40).collect();
            error.message = format!("'{shown}' cannot be a label or type: {}", error.message);
            Err(error)
        }
        name => Ok(name),
    }
}

/// Converts a value to a property, which copies a list; charged by its length.
pub(crate) fn property_of(value: &Value, context: &mut Context<'_>) -> Result<Option<Property>> {
    context.budget.charge_steps(value.steps())?;
    to_property(value)
}

/// The graph's name for a key, if it is valid.
pub(crate) fn key_name(key: &str, context: &Context<'_>) -> Result<Name> {
    match context.transaction.name(key) {
        Name::UNKNOWN => {
            let mut error = Error::from(context.transaction.refused_name(key));
            let shown: String = key.chars().take(40).collect();
            error.message = format!("'{shown}' cannot be a property key: {}", error.message);
            Err(error)
        }
        name => Ok(name),
    }
}
