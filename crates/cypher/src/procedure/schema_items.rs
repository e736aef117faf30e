//! Procedures that list indexes and constraints, and wait for indexes.

use super::built_in::BuiltInProcedure;
use super::signature::{Column, Parameter, column};
use super::{ArgumentType, Mode, Rows};
use crate::context::Context;
use crate::error::Result;
use crate::value::Value;
use std::sync::Arc;
use wellspring_graph::{
    SchemaDefinition, SchemaKind, SchemaSubject, Similarity, Transaction, VectorSettings,
};

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "db.indexes",
        description: "The indexes, including those of constraints.",
        mode: Mode::Read,
        parameters: &[],
        columns: INDEX_COLUMNS,
        call: |_, context| indexes(&Value::Null, context),
    },
    BuiltInProcedure {
        name: "db.constraints",
        description: "The constraints.",
        mode: Mode::Read,
        parameters: &[],
        columns: CONSTRAINT_COLUMNS,
        call: |_, context| constraints(&Value::Null, context),
    },
    // An index is complete as soon as it exists: these procedures return at once.
    BuiltInProcedure {
        name: "db.awaitIndex",
        description: "Waits until an index is complete, which it always is.",
        mode: Mode::Read,
        parameters: &[
            Parameter::required("indexName", ArgumentType::String),
            Parameter::optional("timeOutSeconds", ArgumentType::Integer),
        ],
        columns: &[],
        call: |_, _| Ok(Rows::new()),
    },
    BuiltInProcedure {
        name: "db.awaitIndexes",
        description: "Waits until all indexes are complete, which they always are.",
        mode: Mode::Read,
        parameters: &[Parameter::optional("timeOutSeconds", ArgumentType::Integer)],
        columns: &[],
        call: |_, _| Ok(Rows::new()),
    },
];

/// The columns of an index, in Neo4j's words.
pub(super) const INDEX_COLUMNS: &[Column] = &[
    column("id", "INTEGER"),
    column("name", "STRING"),
    column("state", "STRING"),
    column("populationPercent", "FLOAT"),
    column("type", "STRING"),
    column("entityType", "STRING"),
    column("labelsOrTypes", "LIST<STRING>"),
    column("properties", "LIST<STRING>"),
    column("indexProvider", "STRING"),
    column("owningConstraint", "STRING"),
    column("lastRead", "ZONED DATETIME"),
    column("readCount", "INTEGER"),
    column("trackedSince", "ZONED DATETIME"),
    column("options", "MAP"),
    column("failureMessage", "STRING"),
    column("createStatement", "STRING"),
];

/// The columns of a constraint, in Neo4j's words.
pub(super) const CONSTRAINT_COLUMNS: &[Column] = &[
    column("id", "INTEGER"),
    column("name", "STRING"),
    column("type", "STRING"),
    column("entityType", "STRING"),
    column("labelsOrTypes", "LIST<STRING>"),
    column("properties", "LIST<STRING>"),
    column("ownedIndex", "STRING"),
    column("propertyType", "STRING"),
    column("options", "MAP"),
    column("createStatement", "STRING"),
];

/// The indexes of this type, or all of them.
pub(super) fn indexes(kind: &Value, context: &mut Context<'_>) -> Result<Rows> {
    listed(kind, context, index_row)
}

/// The constraints of these types, or all of them.
pub(super) fn constraints(kinds: &Value, context: &mut Context<'_>) -> Result<Rows> {
    listed(kinds, context, constraint_row)
}

/// A row of a schema item with this number, and its type; `None` if it is no item of the list.
type ItemRow = fn(&ShownItem<'_>) -> Option<(&'static str, Vec<Value>)>;

fn listed(wanted: &Value, context: &mut Context<'_>, row: ItemRow) -> Result<Rows> {
    let wanted: Option<Vec<&str>> = match wanted {
        Value::List(kinds) => Some(kinds.iter().filter_map(text).collect()),
        _ => None,
    };
    let is_wanted = |kind| wanted.as_ref().is_none_or(|wanted| wanted.contains(&kind));
    let transaction = &*context.transaction;
    let mut rows = Rows::new();
    for (number, definition) in transaction.schema().enumerate() {
        context.budget.charge_steps(4)?;
        let item = ShownItem { number, definition, transaction };
        rows.extend(row(&item).filter(|(kind, _)| is_wanted(*kind)).map(|(_, row)| row));
    }
    Ok(rows)
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// A schema item and what its row is made from.
struct ShownItem<'a> {
    /// Its number in the order of names.
    number: usize,
    definition: &'a SchemaDefinition,
    transaction: &'a Transaction,
}

impl ShownItem<'_> {
    fn id(&self) -> Value {
        Value::Integer(i64::try_from(self.number + 1).unwrap_or(i64::MAX))
    }

    fn name(&self) -> Value {
        Value::String(Arc::clone(&self.definition.name))
    }

    /// `NODE` or `RELATIONSHIP`, the label or type, and the keys.
    fn about(&self) -> [Value; 3] {
        let entity = match self.definition.subject {
            SchemaSubject::Label(_) => "NODE",
            SchemaSubject::Type(_) => "RELATIONSHIP",
        };
        let text = |name| Value::String(self.transaction.text(name));
        let subjects = self.definition.subjects().map(text);
        let keys = self.definition.keys.iter().copied().map(text);
        [Value::string(entity), Value::list(subjects.collect()), Value::list(keys.collect())]
    }

    /// A statement that creates the item again.
    fn statement(&self) -> Value {
        let quoted = |text: &str| format!("`{}`", text.replace('`', "``"));
        let name = quoted(&self.definition.name);
        let subjects = self.definition.subjects().map(|name| quoted(&self.transaction.text(name)));
        let subjects = subjects.collect::<Vec<_>>().join("|");
        let (entity, pattern) = match self.definition.subject {
            SchemaSubject::Label(_) => ("n", format!("(n:{subjects})")),
            SchemaSubject::Type(_) => ("r", format!("()-[r:{subjects}]-()")),
        };
        let keys = self.definition.keys.iter();
        let keys = keys.map(|key| format!("{entity}.{}", quoted(&self.transaction.text(*key))));
        let keys = keys.collect::<Vec<_>>().join(", ");
        let constraint = |required| {
            format!("CREATE CONSTRAINT {name} FOR {pattern} REQUIRE ({keys}) IS {required}")
        };
        Value::string(match (self.definition.kind, self.definition.subject) {
            (SchemaKind::Range, _) => {
                format!("CREATE RANGE INDEX {name} FOR {pattern} ON ({keys})")
            }
            (SchemaKind::Fulltext, _) => {
                format!("CREATE FULLTEXT INDEX {name} FOR {pattern} ON EACH [{keys}]")
            }
            (SchemaKind::Vector(settings), _) => {
                let settings = vector_settings(settings);
                let settings = settings.iter().map(|(name, value)| format!("`{name}`: {value}"));
                let settings = settings.collect::<Vec<_>>().join(", ");
                format!(
                    "CREATE VECTOR INDEX {name} FOR {pattern} ON ({keys}) \
                     OPTIONS {{indexConfig: {{{settings}}}}}"
                )
            }
            (SchemaKind::Unique, _) => constraint("UNIQUE"),
            (SchemaKind::Exists, _) => constraint("NOT NULL"),
            (SchemaKind::Key, SchemaSubject::Label(_)) => constraint("NODE KEY"),
            (SchemaKind::Key, SchemaSubject::Type(_)) => constraint("RELATIONSHIP KEY"),
        })
    }
}

/// The settings of an index of vectors, with values as in a statement.
fn vector_settings(settings: VectorSettings) -> Vec<(&'static str, String)> {
    let similarity = match settings.similarity {
        Similarity::Cosine => "'COSINE'",
        Similarity::Euclidean => "'EUCLIDEAN'",
    };
    let mut all = vec![("vector.similarity_function", similarity.to_owned())];
    if settings.dimensions > 0 {
        all.push(("vector.dimensions", settings.dimensions.to_string()));
    }
    all
}

/// The type, the provider and the settings of an index.
fn index_type(kind: SchemaKind) -> (&'static str, &'static str, Value) {
    match kind {
        SchemaKind::Vector(settings) => {
            let entries = vector_settings(settings).into_iter().map(|(name, value)| {
                let number = value.parse().map(Value::Integer);
                (name.into(), number.unwrap_or_else(|_| Value::string(value.trim_matches('\''))))
            });
            ("VECTOR", "vector-2.0", Value::map(entries))
        }
        SchemaKind::Fulltext => {
            let analyzer = Value::string("standard-no-stop-words");
            let settings = Value::map([("fulltext.analyzer".into(), analyzer)]);
            ("FULLTEXT", "fulltext-1.0", settings)
        }
        _ => ("RANGE", "range-1.0", Value::map([])),
    }
}

/// The options of an index.
fn options(provider: &str, settings: Value) -> Value {
    Value::map([
        ("indexConfig".into(), settings),
        ("indexProvider".into(), Value::string(provider)),
    ])
}

/// A row of [`INDEX_COLUMNS`], if the item is or has an index. Uses are not counted.
fn index_row(item: &ShownItem<'_>) -> Option<(&'static str, Vec<Value>)> {
    if item.definition.kind == SchemaKind::Exists {
        return None;
    }
    let owner = if item.definition.kind.is_constraint() { item.name() } else { Value::Null };
    let [entity, subject, keys] = item.about();
    let (kind, provider, settings) = index_type(item.definition.kind);
    let row = vec![
        item.id(),
        item.name(),
        Value::string("ONLINE"),
        Value::Float(100.0),
        Value::string(kind),
        entity,
        subject,
        keys,
        Value::string(provider),
        owner,
        Value::Null,
        Value::Null,
        Value::Null,
        options(provider, settings),
        Value::string(""),
        item.statement(),
    ];
    Some((kind, row))
}

/// A row of [`CONSTRAINT_COLUMNS`], if the item is a constraint.
fn constraint_row(item: &ShownItem<'_>) -> Option<(&'static str, Vec<Value>)> {
    let kind = match (item.definition.kind, item.definition.subject) {
        (SchemaKind::Range | SchemaKind::Vector(_) | SchemaKind::Fulltext, _) => return None,
        (SchemaKind::Unique, SchemaSubject::Label(_)) => "UNIQUENESS",
        (SchemaKind::Unique, SchemaSubject::Type(_)) => "RELATIONSHIP_UNIQUENESS",
        (SchemaKind::Exists, SchemaSubject::Label(_)) => "NODE_PROPERTY_EXISTENCE",
        (SchemaKind::Exists, SchemaSubject::Type(_)) => "RELATIONSHIP_PROPERTY_EXISTENCE",
        (SchemaKind::Key, SchemaSubject::Label(_)) => "NODE_KEY",
        (SchemaKind::Key, SchemaSubject::Type(_)) => "RELATIONSHIP_KEY",
    };
    let is_indexed = item.definition.kind.is_indexed();
    let [entity, subject, keys] = item.about();
    let row = vec![
        item.id(),
        item.name(),
        Value::string(kind),
        entity,
        subject,
        keys,
        if is_indexed { item.name() } else { Value::Null },
        Value::Null,
        if is_indexed { options("range-1.0", Value::map([])) } else { Value::Null },
        item.statement(),
    ];
    Some((kind, row))
}
