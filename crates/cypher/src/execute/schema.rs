//! Schema changes.

use crate::error::{Error, Result};
use crate::ir::{self, SchemaChange, SchemaTarget};
use std::sync::Arc;
use wellspring_graph::{GraphError, SchemaDefinition, SchemaKind, SchemaSubject, Transaction};

pub(crate) fn change_schema(change: &SchemaChange, transaction: &mut Transaction) -> Result<()> {
    match change {
        SchemaChange::Create { name, kind, on, label, keys, if_not_exists } => {
            let kind = match kind {
                ir::SchemaKind::Range => SchemaKind::Range,
                ir::SchemaKind::Unique => SchemaKind::Unique,
                ir::SchemaKind::Exists => SchemaKind::Exists,
                ir::SchemaKind::Key => SchemaKind::Key,
            };
            let name = name.clone().unwrap_or_else(|| made_up(kind, *on, label, keys));
            let subject = match on {
                SchemaTarget::Nodes => SchemaSubject::Label(transaction.name(label)),
                SchemaTarget::Relationships => SchemaSubject::Type(transaction.name(label)),
            };
            let keys = keys.iter().map(|key| transaction.name(key)).collect();
            match transaction.create_schema_item(SchemaDefinition { name, kind, subject, keys }) {
                Err(GraphError::NameTaken(_) | GraphError::Equivalent(_)) if *if_not_exists => {
                    Ok(())
                }
                other => Ok(other?),
            }
        }
        SchemaChange::Drop { name, constraint, if_exists } => {
            let is_it = |item: &SchemaDefinition| {
                item.name == *name && item.kind.is_constraint() == *constraint
            };
            let there = transaction.schema().any(is_it);
            match there {
                true => Ok(transaction.drop_schema_item(name)?),
                false if *if_exists => Ok(()),
                false => Err(Error::from(GraphError::NoSuchItem(name.clone()))),
            }
        }
    }
}

/// A generated name for an item without one; equal definitions get equal names.
fn made_up(kind: SchemaKind, on: SchemaTarget, label: &str, keys: &[Arc<str>]) -> Arc<str> {
    let kind = if kind.is_constraint() { "constraint" } else { "index" };
    let on = match on {
        SchemaTarget::Nodes => "node",
        SchemaTarget::Relationships => "relationship",
    };
    // FNV-1a keeps names short, whatever the label and the keys.
    let parts = std::iter::once(label).chain(keys.iter().map(|key| &**key));
    let bytes = parts.flat_map(|part| part.bytes().chain(std::iter::once(0)));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{kind}_{on}_{hash:016x}").into()
}
