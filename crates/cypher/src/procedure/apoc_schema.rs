//! Procedures that list indexes and constraints in the words of Neo4j's library APOC.

use super::built_in::BuiltInProcedure;
use super::meta::{LARGE_SAMPLE, charged, integer};
use super::scans::each_found;
use super::signature::{Parameter, column};
use super::{ArgumentType, Mode, Rows};
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::{Distinct, DistinctSet, Value, from_property, steps_of};
use std::sync::Arc;
use wellspring_graph::{EntityScan, Name, SchemaDefinition, SchemaKind, SchemaSubject};

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "apoc.schema.nodes",
        description: "The indexes and constraints of nodes.",
        mode: Mode::Read,
        parameters: &[Parameter::optional("config", ArgumentType::Map)],
        columns: &[
            column("name", "STRING"),
            column("label", "ANY"),
            column("properties", "LIST<STRING>"),
            column("status", "STRING"),
            column("type", "STRING"),
            column("failure", "STRING"),
            column("populationProgress", "FLOAT"),
            column("size", "INTEGER"),
            column("valuesSelectivity", "FLOAT"),
            column("userDescription", "STRING"),
        ],
        call: |_, context| schema_of_nodes(context),
    },
    BuiltInProcedure {
        name: "apoc.schema.relationships",
        description: "The indexes and constraints of relationships.",
        mode: Mode::Read,
        parameters: &[Parameter::optional("config", ArgumentType::Map)],
        columns: &[
            column("name", "STRING"),
            column("type", "STRING"),
            column("properties", "LIST<STRING>"),
            column("status", "STRING"),
            column("relationshipType", "ANY"),
        ],
        call: |_, context| schema_of_relationships(context),
    },
    BuiltInProcedure {
        name: "apoc.schema.properties.distinct",
        description: "The different values of a property of the nodes with a label.",
        mode: Mode::Read,
        parameters: &[
            Parameter::required("label", ArgumentType::String),
            Parameter::required("key", ArgumentType::String),
        ],
        columns: &[column("value", "LIST<ANY>")],
        call: |arguments, context| match arguments {
            [Value::String(label), Value::String(key)] => distinct_values(label, key, context),
            _ => {
                let message = "apoc.schema.properties.distinct takes two Strings.";
                Err(Error::type_error(Detail::InvalidArgumentType, message))
            }
        },
    },
];

/// A schema item with the texts of its names.
struct NamedItem {
    definition: SchemaDefinition,
    subject: Arc<str>,
    keys: Vec<Arc<str>>,
}

fn items(is_label: bool, context: &mut Context<'_>) -> Result<Vec<NamedItem>> {
    let transaction = &*context.transaction;
    let items = transaction.schema().filter_map(|item| {
        let subject = match (item.subject, is_label) {
            (SchemaSubject::Label(name), true) | (SchemaSubject::Type(name), false) => name,
            _ => return None,
        };
        Some(NamedItem {
            definition: item.clone(),
            subject: transaction.text(subject),
            keys: item.keys.iter().map(|key| transaction.text(*key)).collect(),
        })
    });
    let items: Vec<NamedItem> = items.collect();
    context.budget.charge_steps(items.len() as u64 * 8)?;
    Ok(items)
}

/// `:Label(a,b)`
fn item_name(item: &NamedItem) -> String {
    format!(":{}({})", item.subject, item.keys.join(","))
}

fn key_list(item: &NamedItem) -> Value {
    Value::list(item.keys.iter().cloned().map(Value::String).collect())
}

fn schema_of_nodes(context: &mut Context<'_>) -> Result<Rows> {
    let mut rows = Rows::new();
    for item in items(true, context)? {
        let kind = match item.definition.kind {
            SchemaKind::Range => "RANGE",
            SchemaKind::Unique => "UNIQUENESS",
            SchemaKind::Exists => "NODE_PROPERTY_EXISTENCE",
            SchemaKind::Key => "NODE_KEY",
            SchemaKind::Vector(_) => "VECTOR",
            SchemaKind::Fulltext => "FULLTEXT",
        };
        let label = Value::String(Arc::clone(&item.subject));
        let (size, selectivity) = match item.definition.kind {
            SchemaKind::Exists | SchemaKind::Vector(_) | SchemaKind::Fulltext => (0, 0.0),
            _ => selectivity(&item.definition, context)?,
        };
        let name = item_name(&item);
        rows.push(vec![
            Value::string(&name),
            label,
            key_list(&item),
            Value::string("ONLINE"),
            Value::string(kind),
            Value::string("NO FAILURE"),
            Value::Float(100.0),
            integer(size),
            Value::Float(selectivity),
            Value::string(name),
        ]);
    }
    charged(rows, context)
}

/// The number of nodes with the label, and the part of the values among a sample that are
/// different.
fn selectivity(item: &SchemaDefinition, context: &mut Context<'_>) -> Result<(u64, f64)> {
    let SchemaSubject::Label(label) = item.subject else { return Ok((0, 0.0)) };
    let size = context.transaction.label_count(label);
    if item.kind != SchemaKind::Range {
        return Ok((size, 1.0));
    }
    let (mut scan, mut nodes, mut is_finished) =
        (context.transaction.scan_label(label), Vec::new(), false);
    while !is_finished && nodes.len() < LARGE_SAMPLE as usize {
        let progress = scan.fill(context.transaction, &mut nodes);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        is_finished = progress.is_finished;
    }
    let mut seen = DistinctSet::default();
    let (mut count, mut different) = (0_u64, 0_u64);
    for id in nodes {
        let keys: &[Name] = &item.keys;
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            let value = context.transaction.node_property(id, *key)?;
            values.push(value.map_or(Value::Null, from_property));
        }
        context.budget.charge_steps(1 + steps_of(&values))?;
        if values.iter().all(Value::is_null) {
            continue;
        }
        count += 1;
        let bytes: u64 = values.iter().map(Value::bytes).sum();
        if seen.insert(Distinct::of(values)) {
            context.budget.charge_bytes(bytes)?;
            different += 1;
        }
    }
    let part = if count == 0 { 0.0 } else { different as f64 / count as f64 };
    Ok((size, part))
}

fn schema_of_relationships(context: &mut Context<'_>) -> Result<Rows> {
    let mut rows = Rows::new();
    for item in items(false, context)? {
        let kind = match item.definition.kind {
            SchemaKind::Range => "RANGE",
            SchemaKind::Unique => "RELATIONSHIP_UNIQUENESS",
            SchemaKind::Exists => "RELATIONSHIP_PROPERTY_EXISTENCE",
            SchemaKind::Key => "RELATIONSHIP_KEY",
            SchemaKind::Vector(_) => "VECTOR",
            SchemaKind::Fulltext => "FULLTEXT",
        };
        rows.push(vec![
            Value::string(item_name(&item)),
            Value::string(kind),
            key_list(&item),
            Value::string("ONLINE"),
            Value::String(Arc::clone(&item.subject)),
        ]);
    }
    charged(rows, context)
}

fn distinct_values(label: &str, key: &str, context: &mut Context<'_>) -> Result<Rows> {
    let transaction = &*context.transaction;
    let (label, key) = (transaction.known_name(label), transaction.known_name(key));
    let scan = transaction.scan_label(label);
    let (mut seen, mut values) = (DistinctSet::default(), Vec::new());
    each_found(scan, context, |id, context| {
        let Some(value) = context.transaction.node_property(id, key)? else { return Ok(()) };
        let value = from_property(value);
        context.budget.charge_steps(1 + value.steps())?;
        if seen.insert(Distinct::of([value.clone()])) {
            context.budget.charge_bytes(2 * value.bytes())?;
            values.push(value);
        }
        Ok(())
    })?;
    Ok(vec![vec![Value::list(values)]])
}
