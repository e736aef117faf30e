//! Procedures that describe the graph as it is: tools read them as its schema.

use super::built_in::BuiltInProcedure;
use super::signature::{Column, Parameter, column};
use super::survey::{Extent, NameFilter, PropertyKind, SeenEntities, Survey, survey};
use super::{ArgumentType, Mode, Rows};
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::Value;
use std::sync::Arc;
use wellspring_graph::{SchemaKind, SchemaSubject};

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "apoc.meta.data",
        description: "The properties and relationships of labels and types, from a sample.",
        mode: Mode::Read,
        parameters: &[Parameter::optional("config", ArgumentType::Map)],
        columns: DATA_COLUMNS,
        call: |arguments, context| {
            let extent = extent(arguments, context)?;
            let survey = survey(&extent, context)?;
            data(&survey, context)
        },
    },
    BuiltInProcedure {
        name: "apoc.meta.graph",
        description: "The labels and the types between them, with counts, as maps.",
        mode: Mode::Read,
        parameters: &[Parameter::optional("config", ArgumentType::Map)],
        columns: &[column("nodes", "LIST<MAP>"), column("relationships", "LIST<MAP>")],
        call: |arguments, context| {
            let extent = extent(arguments, context)?;
            let survey = survey(&extent, context)?;
            graph(&survey, context)
        },
    },
    BuiltInProcedure {
        name: "db.schema.visualization",
        description: "The labels and the types between them, with indexes, as maps.",
        mode: Mode::Read,
        parameters: &[],
        columns: &[column("nodes", "LIST<MAP>"), column("relationships", "LIST<MAP>")],
        call: |_, context| {
            let survey = survey(&Extent::large(), context)?;
            graph(&survey, context)
        },
    },
    BuiltInProcedure {
        name: "db.schema.nodeTypeProperties",
        description: "The properties of combinations of labels and their types, from a sample.",
        mode: Mode::Read,
        parameters: &[],
        columns: &[
            column("nodeType", "STRING"),
            column("nodeLabels", "LIST<STRING>"),
            column("propertyName", "STRING"),
            column("propertyTypes", "LIST<STRING>"),
            column("mandatory", "BOOLEAN"),
        ],
        call: |_, context| {
            let survey = survey(&Extent::large(), context)?;
            let combinations = survey.combinations.iter().flat_map(|(labels, seen)| {
                let node_type: String = labels.iter().map(|label| colon(label)).collect();
                let labels = Value::list(labels.iter().cloned().map(Value::String).collect());
                type_rows(&[Value::string(node_type), labels], seen)
            });
            charged(combinations.collect(), context)
        },
    },
    BuiltInProcedure {
        name: "db.schema.relTypeProperties",
        description: "The properties of types of relationships and their types, from a sample.",
        mode: Mode::Read,
        parameters: &[],
        columns: &[
            column("relType", "STRING"),
            column("propertyName", "STRING"),
            column("propertyTypes", "LIST<STRING>"),
            column("mandatory", "BOOLEAN"),
        ],
        call: |_, context| {
            let survey = survey(&Extent::large(), context)?;
            let types = survey.types.iter();
            let rows =
                types.flat_map(|(kind, seen)| type_rows(&[Value::string(colon(kind))], seen));
            charged(rows.collect(), context)
        },
    },
];

const DATA_COLUMNS: &[Column] = &[
    column("label", "STRING"),
    column("property", "STRING"),
    column("count", "INTEGER"),
    column("unique", "BOOLEAN"),
    column("index", "BOOLEAN"),
    column("existence", "BOOLEAN"),
    column("type", "STRING"),
    column("array", "BOOLEAN"),
    column("sample", "LIST<ANY>"),
    column("left", "INTEGER"),
    column("right", "INTEGER"),
    column("other", "LIST<STRING>"),
    column("otherLabels", "LIST<STRING>"),
    column("elementType", "STRING"),
];

/// Entities of a label or of a type examined where the caller says nothing.
const DEFAULT_SAMPLE: u64 = 1_000;
/// The same for procedures without a choice.
pub(super) const LARGE_SAMPLE: u64 = 10_000;
/// Relationships of a node examined where the caller says nothing.
const DEFAULT_RELATIONSHIPS: usize = 100;

impl Extent {
    fn large() -> Self {
        Self {
            sample: Some(LARGE_SAMPLE),
            relationships: 0,
            labels: NameFilter::default(),
            types: NameFilter::default(),
        }
    }
}

/// The extent that the configuration asks for.
fn extent(arguments: &[Value], context: &mut Context<'_>) -> Result<Extent> {
    let empty = Value::map([]);
    let configuration = match arguments.first() {
        Some(map @ Value::Map(_)) => map,
        Some(Value::Null) | None => &empty,
        Some(other) => return Err(unfit("config", other, "a Map")),
    };
    context.budget.charge_steps(configuration.steps())?;
    let entry = |name: &str| match configuration {
        Value::Map(entries) => entries.get(name).cloned().unwrap_or_default(),
        _ => Value::Null,
    };
    let number = |name: &str| match entry(name) {
        Value::Null => Ok(None),
        Value::Integer(number) => Ok(Some(number)),
        other => Err(unfit(name, &other, "an Integer")),
    };
    let names = |name: &str| match entry(name) {
        Value::Null => Ok(Vec::new()),
        Value::List(items) => {
            let texts = items.iter().map(|item| match item {
                Value::String(text) => Ok(Arc::clone(text)),
                other => Err(unfit(name, other, "a List of Strings")),
            });
            texts.collect()
        }
        other => Err(unfit(name, &other, "a List of Strings")),
    };
    let sample = match number("sample")? {
        None => Some(DEFAULT_SAMPLE),
        // Minus one means all.
        Some(number) => u64::try_from(number).ok(),
    };
    let relationships = match number("maxRels")? {
        None => DEFAULT_RELATIONSHIPS,
        Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
    };
    Ok(Extent {
        sample,
        relationships,
        labels: NameFilter { included: names("includeLabels")?, excluded: names("excludeLabels")? },
        types: NameFilter { included: names("includeRels")?, excluded: names("excludeRels")? },
    })
}

fn unfit(name: &str, value: &Value, wanted: &str) -> Error {
    let message = format!("'{name}' must be {wanted}, not {}.", value.type_name());
    Error::type_error(Detail::InvalidArgumentType, message)
}

/// Charges for rows.
pub(super) fn charged(rows: Rows, context: &mut Context<'_>) -> Result<Rows> {
    let cells: usize = rows.iter().map(Vec::len).sum();
    context.budget.charge_steps(cells as u64)?;
    context.budget.charge_bytes((cells * size_of::<Value>()) as u64)?;
    Ok(rows)
}

pub(super) fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The rows of [`DATA_COLUMNS`].
fn data(survey: &Survey, context: &mut Context<'_>) -> Result<Rows> {
    let mut rows = Rows::new();
    for (label, seen) in &survey.labels {
        let rules = Rules::of(label, true, context);
        rows.extend(property_rows(label, &seen.nodes, &rules, "node"));
        for (kind, outgoing) in &seen.outgoing {
            let is_repeated = outgoing.count > outgoing.starts;
            let ratio = |nodes: u64| integer(outgoing.count / nodes.max(1));
            let (left, right) = (ratio(outgoing.starts), ratio(outgoing.end_nodes.len() as u64));
            let other = outgoing.labels.iter().cloned().map(Value::String).collect();
            let count = outgoing.count;
            rows.push(relationship_row(
                [label, kind],
                (count, is_repeated),
                [left, right],
                (other, "node"),
            ));
        }
    }
    for (kind, seen) in &survey.types {
        let rules = Rules::of(kind, false, context);
        rows.extend(property_rows(kind, seen, &rules, "relationship"));
        for (start, between) in &seen.ends {
            let other = between.labels.iter().cloned().map(Value::String).collect();
            let (zero, count) = (|| Value::Integer(0), between.count);
            rows.push(relationship_row(
                [kind, start],
                (count, false),
                [zero(), zero()],
                (other, "relationship"),
            ));
        }
    }
    charged(rows, context)
}

/// The rows of the properties of a label or type.
fn property_rows(
    label: &Arc<str>,
    seen: &SeenEntities,
    rules: &Rules,
    element: &'static str,
) -> Rows {
    let row = |(key, property): (&Arc<str>, &super::survey::SeenProperty)| {
        let kind = property.kind();
        let is_list = kind.is_some_and(|kind| kind.is_list);
        let zero = || Value::Integer(0);
        vec![
            Value::String(Arc::clone(label)),
            Value::String(Arc::clone(key)),
            integer(property.count),
            Value::Boolean(rules.unique.contains(key)),
            Value::Boolean(rules.indexed.contains(key)),
            Value::Boolean(rules.required.contains(key)),
            Value::string(kind.map_or("ANY", apoc_type)),
            Value::Boolean(is_list),
            Value::Null,
            zero(),
            zero(),
            Value::list(Vec::new()),
            Value::list(Vec::new()),
            Value::string(element),
        ]
    };
    seen.properties.iter().map(row).collect()
}

/// A row of [`DATA_COLUMNS`] about relationships.
fn relationship_row(
    [label, property]: [&Arc<str>; 2],
    (count, is_repeated): (u64, bool),
    [left, right]: [Value; 2],
    (other, element): (Vec<Value>, &'static str),
) -> Vec<Value> {
    let no = || Value::Boolean(false);
    vec![
        Value::String(Arc::clone(label)),
        Value::String(Arc::clone(property)),
        integer(count),
        no(),
        no(),
        no(),
        Value::string("RELATIONSHIP"),
        Value::Boolean(is_repeated),
        Value::Null,
        left,
        right,
        Value::list(other),
        Value::list(Vec::new()),
        Value::string(element),
    ]
}

/// One row: maps of the labels, and of the types between two labels. They are maps because no node
/// or relationship of the graph is meant.
fn graph(survey: &Survey, context: &mut Context<'_>) -> Result<Rows> {
    let text = |text: &str| Value::string(text);
    let mut nodes = Vec::new();
    for label in survey.labels.keys() {
        let name = context.transaction.known_name(label);
        let rules = Rules::of(label, true, context);
        let strings =
            |keys: Vec<Arc<str>>| Value::list(keys.into_iter().map(Value::String).collect());
        nodes.push(Value::map([
            ("name".into(), text(label)),
            ("count".into(), integer(context.transaction.label_count(name))),
            ("labels".into(), Value::list(vec![text(label)])),
            ("indexes".into(), strings(rules.indexed)),
            ("constraints".into(), strings(rules.required)),
        ]));
    }
    let mut relationships = Vec::new();
    for (kind, seen) in &survey.types {
        let name = context.transaction.known_name(kind);
        let count = context.transaction.type_count(name);
        for (start, between) in &seen.ends {
            context.budget.charge_steps(between.labels.len() as u64)?;
            relationships.extend(between.labels.iter().map(|end| {
                Value::map([
                    ("type".into(), text(kind)),
                    ("name".into(), text(kind)),
                    ("count".into(), integer(count)),
                    ("start".into(), text(start)),
                    ("end".into(), text(end)),
                ])
            }));
        }
    }
    let row = vec![Value::list(nodes), Value::list(relationships)];
    let bytes: u64 = row.iter().map(Value::bytes).sum();
    context.budget.charge_steps(bytes / 64)?;
    context.budget.charge_bytes(bytes)?;
    Ok(vec![row])
}

/// The keys of a label or type with indexes and constraints of their own.
#[derive(Default)]
struct Rules {
    unique: Vec<Arc<str>>,
    indexed: Vec<Arc<str>>,
    required: Vec<Arc<str>>,
}

impl Rules {
    fn of(text: &Arc<str>, is_label: bool, context: &Context<'_>) -> Self {
        let transaction = &*context.transaction;
        let name = transaction.known_name(text);
        let subject = if is_label { SchemaSubject::Label(name) } else { SchemaSubject::Type(name) };
        let mut rules = Self::default();
        for item in transaction.schema().filter(|item| item.subject == subject) {
            let keys = || item.keys.iter().map(|key| transaction.text(*key));
            if item.kind.is_indexed() {
                rules.indexed.extend(keys());
            }
            if matches!(item.kind, SchemaKind::Unique | SchemaKind::Key) && item.keys.len() == 1 {
                rules.unique.extend(keys());
            }
            if matches!(item.kind, SchemaKind::Exists | SchemaKind::Key) {
                rules.required.extend(keys());
            }
        }
        rules
    }
}

/// A type in APOC's words.
fn apoc_type(kind: PropertyKind) -> &'static str {
    if kind.is_list { "LIST" } else { crate::functions::apoc_type(kind.element) }
}

/// A type in the words of `db.schema`.
fn java_type(kind: PropertyKind) -> String {
    let element = match kind.element {
        "Integer" => "Long",
        "Float" => "Double",
        "DateTime" => "ZonedDateTime",
        "Time" => "OffsetTime",
        "ByteArray" => "ByteArray",
        other => other,
    };
    if kind.is_list { format!("{element}Array") } else { element.to_owned() }
}

/// `` :`Name` ``
fn colon(name: &str) -> String {
    format!(":`{}`", name.replace('`', "``"))
}

/// The rows of the properties of entities: what precedes them, the property, its types, and
/// whether all have it. Entities without properties have one row.
fn type_rows(before: &[Value], seen: &SeenEntities) -> Rows {
    let mut rows: Rows = Vec::new();
    for (key, property) in &seen.properties {
        let kinds = property.kinds.keys().map(|kind| Value::string(java_type(*kind)));
        let mut row = before.to_vec();
        row.push(Value::String(Arc::clone(key)));
        row.push(Value::list(kinds.collect()));
        row.push(Value::Boolean(property.count == seen.count));
        rows.push(row);
    }
    if rows.is_empty() {
        let mut row = before.to_vec();
        row.extend([Value::Null, Value::Null, Value::Boolean(false)]);
        rows.push(row);
    }
    rows
}
