//! Procedures that change the graph, and those that refuse to go on.

use super::built_in::BuiltInProcedure;
use super::scans::each_found;
use super::signature::{Parameter, column};
use super::{ArgumentType, Mode, Rows};
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::functions::{refusal, vector};
use crate::graph_values::{add_labels, key_name, one_type, property_of};
use crate::value::{NodeId, RelationshipId, Value, equals, from_property};
use wellspring_graph::{Direction, Name, Value as Property};

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "apoc.create.addLabels",
        description: "Adds labels to nodes.",
        mode: Mode::Write,
        parameters: &[
            Parameter::required("nodes", ArgumentType::Any),
            Parameter::required("labels", ArgumentType::List),
        ],
        columns: &[column("node", "NODE")],
        call: |arguments, context| {
            let [nodes, labels] = parts(arguments)?;
            add_labels_to(nodes, labels, context)
        },
    },
    BuiltInProcedure {
        name: "apoc.merge.node",
        description: "Finds a node by labels and properties, or creates it.",
        mode: Mode::Write,
        parameters: &[
            Parameter::required("labels", ArgumentType::List),
            Parameter::required("identProps", ArgumentType::Map),
            Parameter::optional("onCreateProps", ArgumentType::Map),
            Parameter::optional("onMatchProps", ArgumentType::Map),
        ],
        columns: &[column("node", "NODE")],
        call: |arguments, context| {
            let [labels, identity, on_create, on_match] = parts(arguments)?;
            merge_node(labels, identity, [on_create, on_match], context)
        },
    },
    BuiltInProcedure {
        name: "apoc.merge.relationship",
        description: "Finds a relationship by its ends, type and properties, or creates it.",
        mode: Mode::Write,
        parameters: &[
            Parameter::required("startNode", ArgumentType::Node),
            Parameter::required("relType", ArgumentType::String),
            Parameter::required("identProps", ArgumentType::Map),
            Parameter::required("onCreateProps", ArgumentType::Map),
            Parameter::required("endNode", ArgumentType::Node),
            Parameter::optional("onMatchProps", ArgumentType::Map),
        ],
        columns: &[column("rel", "RELATIONSHIP")],
        call: |arguments, context| {
            let [from, kind, identity, on_create, to, on_match] = parts(arguments)?;
            let ends = [node("startNode", from)?, node("endNode", to)?];
            merge_relationship(ends, kind, identity, [on_create, on_match], context)
        },
    },
    BuiltInProcedure {
        name: "apoc.util.validate",
        description: "Fails the statement with a message if the predicate is true.",
        mode: Mode::Server,
        parameters: &[
            Parameter::required("predicate", ArgumentType::Boolean),
            Parameter::required("message", ArgumentType::String),
            Parameter::required("params", ArgumentType::List),
        ],
        columns: &[],
        call: |arguments, context| {
            let [predicate, message, values] = parts(arguments)?;
            match predicate {
                Value::Boolean(true) => Err(refusal(message, values, context)?),
                _ => Ok(Rows::new()),
            }
        },
    },
    BuiltInProcedure {
        name: "db.create.setNodeVectorProperty",
        description: "Sets a property of a node to a list of numbers.",
        mode: Mode::Write,
        parameters: &[
            Parameter::required("node", ArgumentType::Node),
            Parameter::required("key", ArgumentType::String),
            Parameter::required("vector", ArgumentType::Any),
        ],
        columns: &[],
        call: |arguments, context| {
            let [subject, key, value] = parts(arguments)?;
            let id = node("node", subject)?;
            let (key, value) = vector_property(key, value, context)?;
            context.transaction.set_node_property(id, key, value)?;
            context.charge_written()?;
            Ok(Rows::new())
        },
    },
    BuiltInProcedure {
        name: "db.create.setRelationshipVectorProperty",
        description: "Sets a property of a relationship to a list of numbers.",
        mode: Mode::Write,
        parameters: &[
            Parameter::required("relationship", ArgumentType::Relationship),
            Parameter::required("key", ArgumentType::String),
            Parameter::required("vector", ArgumentType::Any),
        ],
        columns: &[],
        call: |arguments, context| {
            let [subject, key, value] = parts(arguments)?;
            let Value::Relationship(id) = subject else {
                return Err(unfit("relationship", subject, "a Relationship"));
            };
            let (key, value) = vector_property(key, value, context)?;
            context.transaction.set_relationship_property(*id, key, value)?;
            context.charge_written()?;
            Ok(Rows::new())
        },
    },
];

/// The arguments one by one; optional ones were filled up with null.
pub(super) fn parts<const N: usize>(arguments: &[Value]) -> Result<&[Value; N]> {
    arguments.first_chunk().ok_or_else(|| Error::defect("an argument is missing"))
}

fn unfit(name: &str, value: &Value, wanted: &str) -> Error {
    let message = format!("'{name}' must be {wanted}, not {}.", value.type_name());
    Error::type_error(Detail::InvalidArgumentType, message)
}

fn node(name: &str, value: &Value) -> Result<NodeId> {
    match value {
        Value::Node(id) => Ok(*id),
        other => Err(unfit(name, other, "a Node")),
    }
}

fn vector_property(
    key: &Value,
    value: &Value,
    context: &mut Context<'_>,
) -> Result<(Name, Option<Property>)> {
    let Value::String(key) = key else { return Err(unfit("key", key, "a String")) };
    let numbers = vector("vector", value, context)?;
    let numbers = numbers.into_iter().map(Property::Float).collect();
    Ok((key_name(key, context)?, Some(Property::List(numbers))))
}

fn add_labels_to(nodes: &Value, labels: &Value, context: &mut Context<'_>) -> Result<Rows> {
    let mut names = Vec::new();
    add_labels(labels, &mut names, context)?;
    let nodes = match nodes {
        Value::List(items) => items.iter().cloned().collect(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let mut rows = Rows::new();
    for subject in nodes {
        context.budget.charge_steps(1)?;
        let id = match subject {
            Value::Integer(number) => {
                let id = u64::try_from(number).ok().and_then(NodeId::new);
                id.ok_or_else(|| unfit("nodes", &subject, "a Node or the id of one"))?
            }
            subject => node("nodes", &subject)?,
        };
        context.transaction.add_labels(id, &names)?;
        context.charge_written()?;
        rows.push(vec![Value::Node(id)]);
    }
    Ok(rows)
}

/// The entries of a map as properties; none for null.
fn properties(
    name: &str,
    map: &Value,
    context: &mut Context<'_>,
) -> Result<Vec<(Name, Option<Property>)>> {
    let entries = match map {
        Value::Map(entries) => entries,
        Value::Null => return Ok(Vec::new()),
        other => return Err(unfit(name, other, "a Map")),
    };
    let mut all = Vec::with_capacity(entries.len());
    for (key, value) in entries.iter() {
        all.push((key_name(key, context)?, property_of(value, context)?));
    }
    context.budget.charge_steps(all.len() as u64)?;
    Ok(all)
}

/// The properties by which an entity is known: null would never be found, and so be created every
/// time.
fn identity(map: &Value, context: &mut Context<'_>) -> Result<Vec<(Name, Property)>> {
    let all = properties("identProps", map, context)?;
    let known = all.into_iter().map(|(key, value)| Some((key, value?)));
    known.collect::<Option<_>>().ok_or_else(|| {
        let message = "Cannot merge by properties of which one is null";
        Error::runtime(ErrorKind::SemanticError, Detail::MergeReadOwnWrites, message)
    })
}

/// What a new entity has: what it is known by and more, of which the last counts.
fn all_of(
    known: Vec<(Name, Property)>,
    more: Vec<(Name, Option<Property>)>,
) -> Vec<(Name, Property)> {
    let is_new = |key: &Name| !more.iter().any(|(other, _)| other == key);
    let mut all: Vec<_> = known.into_iter().filter(|(key, _)| is_new(key)).collect();
    all.extend(more.into_iter().filter_map(|(key, value)| Some((key, value?))));
    all
}

/// Whether a stored property equals a wanted one.
fn is_same(stored: Option<Property>, wanted: &Property) -> bool {
    let wanted = from_property(wanted.clone());
    stored.is_some_and(|stored| equals(&from_property(stored), &wanted) == Some(true))
}

fn merge_node(
    labels: &Value,
    known: &Value,
    [on_create, on_match]: [&Value; 2],
    context: &mut Context<'_>,
) -> Result<Rows> {
    let mut names = Vec::new();
    add_labels(labels, &mut names, context)?;
    let known = identity(known, context)?;
    if known.is_empty() {
        let message = "apoc.merge.node needs at least one property in 'identProps'";
        return Err(Error::argument(Detail::InvalidArgumentValue, message));
    }
    let found = find_nodes(&names, &known, context)?;
    if found.is_empty() {
        let more = properties("onCreateProps", on_create, context)?;
        let id = context.transaction.create_node(&names, all_of(known, more))?;
        context.charge_written()?;
        return Ok(vec![vec![Value::Node(id)]]);
    }
    let changes = properties("onMatchProps", on_match, context)?;
    for id in &found {
        context.transaction.change_node(*id, changes.clone())?;
        context.charge_written()?;
    }
    Ok(found.into_iter().map(|id| vec![Value::Node(id)]).collect())
}

/// The nodes that have all labels and properties: by an index if there is one.
fn find_nodes(
    labels: &[Name],
    known: &[(Name, Property)],
    context: &mut Context<'_>,
) -> Result<Vec<NodeId>> {
    let pairs = || labels.iter().flat_map(|label| known.iter().map(move |it| (*label, it)));
    let has_index =
        |(label, (key, _)): &(Name, &(Name, Property))| context.transaction.has_index(*label, *key);
    let scan = match pairs().find(has_index).or_else(|| pairs().next()) {
        Some((label, (key, value))) => context.transaction.seek_nodes(label, *key, value),
        None => context.transaction.scan_nodes(),
    };
    let mut found = Vec::new();
    each_found(scan, context, |id, context| {
        if is_it(id, labels, known, context)? {
            context.budget.charge_bytes(size_of::<NodeId>() as u64)?;
            found.push(id);
        }
        Ok(())
    })?;
    Ok(found)
}

fn is_it(
    id: NodeId,
    labels: &[Name],
    known: &[(Name, Property)],
    context: &mut Context<'_>,
) -> Result<bool> {
    context.budget.charge_steps((labels.len() + known.len()) as u64)?;
    for label in labels {
        if !context.transaction.has_label(id, *label)? {
            return Ok(false);
        }
    }
    for (key, wanted) in known {
        if !is_same(context.transaction.node_property(id, *key)?, wanted) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn merge_relationship(
    [from, to]: [NodeId; 2],
    kind: &Value,
    known: &Value,
    [on_create, on_match]: [&Value; 2],
    context: &mut Context<'_>,
) -> Result<Rows> {
    let kind = one_type(kind, context)?;
    let known = identity(known, context)?;
    let found = find_relationships([from, to], kind, &known, context)?;
    if found.is_empty() {
        let more = properties("onCreateProps", on_create, context)?;
        let id = context.transaction.create_relationship(kind, from, to, all_of(known, more))?;
        context.charge_written()?;
        return Ok(vec![vec![Value::Relationship(id)]]);
    }
    let changes = properties("onMatchProps", on_match, context)?;
    for id in &found {
        context.transaction.change_relationship(*id, changes.clone())?;
        context.charge_written()?;
    }
    Ok(found.into_iter().map(|id| vec![Value::Relationship(id)]).collect())
}

fn find_relationships(
    [from, to]: [NodeId; 2],
    kind: Name,
    known: &[(Name, Property)],
    context: &mut Context<'_>,
) -> Result<Vec<RelationshipId>> {
    let scan = context.transaction.adjacent(from, Direction::Outgoing, &[kind], Some(to));
    let mut found = Vec::new();
    each_found(scan, context, |adjacent, context| {
        let id = adjacent.relationship;
        let mut is_it = true;
        for (key, wanted) in known {
            context.budget.charge_steps(1)?;
            is_it &= is_same(context.transaction.relationship_property(id, *key)?, wanted);
        }
        if is_it {
            context.budget.charge_bytes(size_of::<RelationshipId>() as u64)?;
            found.push(id);
        }
        Ok(())
    })?;
    Ok(found)
}
