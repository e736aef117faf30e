//! Schema changes.

use crate::context::Parameters;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::ir::{self, SchemaChange, SchemaCreation, SchemaTarget, SchemaValue};
use crate::value::Value;
use std::sync::Arc;
use wellspring_graph::limits::MAX_DIMENSIONS;
use wellspring_graph::{
    GraphError, SchemaDefinition, SchemaKind, SchemaSubject, Similarity, Transaction,
    VectorSettings,
};

pub(crate) fn change_schema(
    change: &SchemaChange,
    parameters: &Parameters,
    transaction: &mut Transaction,
) -> Result<()> {
    match change {
        SchemaChange::Create(creation) => {
            let definition = definition(creation, parameters, transaction)?;
            match transaction.create_schema_item(definition) {
                Err(GraphError::NameTaken(_) | GraphError::Equivalent(_))
                    if creation.if_not_exists =>
                {
                    Ok(())
                }
                other => Ok(other?),
            }
        }
        SchemaChange::Drop { name, constraint, if_exists } => {
            let name = text(name, parameters)?;
            let is_it = |item: &SchemaDefinition| {
                item.name == name && item.kind.is_constraint() == *constraint
            };
            let there = transaction.schema().any(is_it);
            match there {
                true => Ok(transaction.drop_schema_item(&name)?),
                false if *if_exists => Ok(()),
                false => Err(Error::from(GraphError::NoSuchItem(name))),
            }
        }
    }
}

fn definition(
    creation: &SchemaCreation,
    parameters: &Parameters,
    transaction: &Transaction,
) -> Result<SchemaDefinition> {
    let kind = match creation.kind {
        ir::SchemaKind::Range => SchemaKind::Range,
        ir::SchemaKind::Unique => SchemaKind::Unique,
        ir::SchemaKind::Exists => SchemaKind::Exists,
        ir::SchemaKind::Key => SchemaKind::Key,
        ir::SchemaKind::Vector => SchemaKind::Vector(vector_settings(creation, parameters)?),
        ir::SchemaKind::Fulltext => SchemaKind::Fulltext,
    };
    let name = match &creation.name {
        Some(name) => text(name, parameters)?,
        None => made_up(kind, creation),
    };
    let mut labels = creation.labels.iter().map(|label| transaction.name(label));
    let first = labels.next().ok_or_else(|| Error::defect("a schema item without a label"))?;
    let subject = match creation.on {
        SchemaTarget::Nodes => SchemaSubject::Label(first),
        SchemaTarget::Relationships => SchemaSubject::Type(first),
    };
    let others = labels.collect();
    let keys = creation.keys.iter().map(|key| transaction.name(key)).collect();
    Ok(SchemaDefinition { name, kind, subject, others, keys })
}

fn text(value: &SchemaValue, parameters: &Parameters) -> Result<Arc<str>> {
    match value {
        SchemaValue::Text(text) => Ok(Arc::clone(text)),
        SchemaValue::Parameter(name) => match parameters.get(name) {
            Some(Value::String(text)) => Ok(Arc::clone(text)),
            _ => Err(unfit(&format!("${name}"), "a String")),
        },
        SchemaValue::Integer(_) | SchemaValue::Other => Err(unfit("The value", "a String")),
    }
}

fn unfit(what: &str, wanted: &str) -> Error {
    let message = format!("{what} must be {wanted} in a schema command.");
    Error::runtime(ErrorKind::TypeError, Detail::InvalidArgumentType, message)
}

/// The settings of an index of vectors; others than these have no effect here.
fn vector_settings(creation: &SchemaCreation, parameters: &Parameters) -> Result<VectorSettings> {
    let option = |name: &str| creation.options.iter().rfind(|(known, _)| **known == *name);
    let dimensions = match option("vector.dimensions") {
        None => 0,
        Some((_, value)) => {
            let number = match value {
                SchemaValue::Integer(number) => Some(*number),
                SchemaValue::Parameter(name) => match parameters.get(name) {
                    Some(Value::Integer(number)) => Some(*number),
                    _ => None,
                },
                SchemaValue::Text(_) | SchemaValue::Other => None,
            };
            let number = number.and_then(|number| u16::try_from(number).ok());
            number.filter(|number| (1..=MAX_DIMENSIONS).contains(number)).ok_or_else(|| {
                let message = format!("'vector.dimensions' must be 1 to {MAX_DIMENSIONS}.");
                Error::argument(Detail::NumberOutOfRange, message)
            })?
        }
    };
    let similarity = match option("vector.similarity_function") {
        None => Similarity::Cosine,
        Some((_, value)) => match text(value, parameters)?.to_ascii_lowercase().as_str() {
            "cosine" => Similarity::Cosine,
            "euclidean" => Similarity::Euclidean,
            _ => {
                let message = "'vector.similarity_function' must be 'cosine' or 'euclidean'.";
                return Err(Error::argument(Detail::InvalidArgumentValue, message));
            }
        },
    };
    Ok(VectorSettings { dimensions, similarity })
}

/// A generated name for an item without one; equal definitions get equal names.
fn made_up(kind: SchemaKind, creation: &SchemaCreation) -> Arc<str> {
    let kind = match kind {
        SchemaKind::Vector(_) => "vector_index",
        SchemaKind::Fulltext => "fulltext_index",
        kind if kind.is_constraint() => "constraint",
        _ => "index",
    };
    let on = match creation.on {
        SchemaTarget::Nodes => "node",
        SchemaTarget::Relationships => "relationship",
    };
    // FNV-1a keeps names short, whatever the label and the keys.
    let parts = creation.labels.iter().chain(&creation.keys);
    let bytes = parts.flat_map(|part| part.bytes().chain(std::iter::once(0)));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{kind}_{on}_{hash:016x}").into()
}
