//! The second evaluator: every pattern is looked for everywhere, every clause makes a list of rows.

use crate::expression::Expression;
use crate::model::Model;
use crate::query::{
    Chain, Clause, Column, Direction, EdgePattern, NodePattern, Pattern, Projection, Query,
};
use crate::value::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The variables of a row.
pub(crate) type Row = BTreeMap<String, Value>;

/// More rows than this are not compared.
const MOST_ROWS: usize = 3_000;

/// The rows of a query as text, sorted; none if there are too many on the way.
pub(crate) fn evaluate(model: &Model, query: &Query) -> Option<Vec<String>> {
    let mut rows = vec![Row::new()];
    for clause in &query.clauses {
        rows = match clause {
            Clause::Match(pattern) => {
                rows.iter().flat_map(|row| matches(model, row, pattern)).collect()
            }
            Clause::OptionalMatch(pattern) => rows
                .iter()
                .flat_map(|row| {
                    let found = matches(model, row, pattern);
                    if found.is_empty() { vec![with_nulls(row, pattern)] } else { found }
                })
                .collect(),
            Clause::Unwind(list, name) => rows
                .iter()
                .flat_map(|row| {
                    let Value::List(items) = list.value(model, row) else { return Vec::new() };
                    items.into_iter().map(|item| bound(row, Some(name), item)).collect()
                })
                .collect(),
            Clause::With(projection, condition) => {
                filter(model, project(model, &rows, projection), condition.as_ref())
            }
            Clause::Filter(condition) => filter(model, rows, condition.as_ref()),
        };
        if rows.len() > MOST_ROWS {
            return None;
        }
    }
    let names = query.result.columns.iter().map(|(_, name)| name);
    let rows = project(model, &rows, &query.result);
    let mut texts: Vec<String> = rows
        .iter()
        .map(|row| names.clone().map(|name| row[name].text()).collect::<Vec<_>>().join(" "))
        .collect();
    texts.sort_unstable();
    Some(texts)
}

/// The row with the variables of each match of a pattern.
pub(crate) fn matches(model: &Model, row: &Row, pattern: &Pattern) -> Vec<Row> {
    let mut found = vec![(row.clone(), BTreeSet::new())];
    for chain in &pattern.chains {
        found = found
            .into_iter()
            .flat_map(|(row, used)| chain_matches(model, &row, &used, chain))
            .collect();
    }
    // Properties are compared here, because they may name variables of other chains.
    let maps = |row: &Row| pattern.chains.iter().all(|chain| has_properties(model, row, chain));
    let rows = found.into_iter().map(|(row, _)| row).filter(maps).collect();
    filter(model, rows, pattern.condition.as_deref())
}

/// The rows for which a condition is true.
fn filter(model: &Model, mut rows: Vec<Row>, condition: Option<&Expression>) -> Vec<Row> {
    if let Some(condition) = condition {
        rows.retain(|row| condition.truth(model, row) == Some(true));
    }
    rows
}

type Used = BTreeSet<usize>;

fn chain_matches(model: &Model, row: &Row, used: &Used, chain: &Chain) -> Vec<(Row, Used)> {
    // Each with the node that it ends at, and the edges of the path so far.
    let mut found: Vec<(Row, Used, usize, Vec<Value>)> = (0..model.nodes.len())
        .filter_map(|node| {
            let row = node_match(model, row, &chain.start, node)?;
            Some((row, used.clone(), node, Vec::new()))
        })
        .collect();
    for (edge, node) in &chain.steps {
        let mut next = Vec::new();
        for (row, used, at, path) in found {
            for (edges, end) in trails(model, &used, edge, at) {
                let values: Vec<Value> = edges.iter().map(|edge| Value::Edge(*edge)).collect();
                let value = match edge.lengths {
                    Some(_) => Value::List(values.clone()),
                    None => values[0].clone(),
                };
                let row = bound(&row, edge.name.as_ref(), value);
                let Some(row) = node_match(model, &row, node, end) else { continue };
                if !trail_has_properties(model, &row, edge, &edges) {
                    continue;
                }
                let used = used.iter().chain(&edges).copied().collect();
                next.push((row, used, end, [path.clone(), values].concat()));
            }
        }
        found = next;
    }
    found
        .into_iter()
        .map(|(row, used, _, path)| (bound(&row, chain.name.as_ref(), Value::List(path)), used))
        .collect()
}

/// The row with the node, if its labels fit and the variable is free or the same node.
fn node_match(model: &Model, row: &Row, pattern: &NodePattern, node: usize) -> Option<Row> {
    let labels = &model.nodes[node].labels;
    if !pattern.labels.iter().all(|label| labels.contains(label)) {
        return None;
    }
    if let Some(known) = pattern.name.as_ref().and_then(|name| row.get(name)) {
        return (*known == Value::Node(node)).then(|| row.clone());
    }
    Some(bound(row, pattern.name.as_ref(), Value::Node(node)))
}

/// Every way along edges that are not used yet, and its end.
fn trails(
    model: &Model,
    used: &Used,
    pattern: &EdgePattern,
    at: usize,
) -> Vec<(Vec<usize>, usize)> {
    let (least, most) = pattern.lengths.unwrap_or((1, 1));
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), at)];
    for length in 0..=most {
        if length >= least {
            found.extend(open.iter().cloned());
        }
        let mut longer = Vec::new();
        for (edges, at) in &open {
            for (place, edge) in model.edges.iter().enumerate() {
                let is_free = !used.contains(&place) && !edges.contains(&place);
                if !is_free || !(pattern.kinds.is_empty() || pattern.kinds.contains(&edge.kind)) {
                    continue;
                }
                let with = || edges.iter().copied().chain([place]).collect::<Vec<_>>();
                if pattern.direction != Direction::Left && edge.from == *at {
                    longer.push((with(), edge.to));
                }
                let is_loop_again = pattern.direction == Direction::Either && edge.from == edge.to;
                if pattern.direction != Direction::Right && edge.to == *at && !is_loop_again {
                    longer.push((with(), edge.from));
                }
            }
        }
        open = longer;
    }
    found
}

fn trail_has_properties(model: &Model, row: &Row, pattern: &EdgePattern, edges: &[usize]) -> bool {
    edges.iter().all(|edge| equal_properties(model, row, &Value::Edge(*edge), &pattern.properties))
}

fn has_properties(model: &Model, row: &Row, chain: &Chain) -> bool {
    let nodes = chain.steps.iter().map(|(_, node)| node).chain([&chain.start]);
    nodes.filter(|node| !node.properties.is_empty()).all(|node| {
        let name = node.name.as_ref().expect("a node with properties has a name");
        equal_properties(model, row, &row[name], &node.properties)
    })
}

fn equal_properties(
    model: &Model,
    row: &Row,
    owner: &Value,
    properties: &[(&'static str, Expression)],
) -> bool {
    properties.iter().all(|(key, value)| {
        model.property(owner, key).equals(&value.value(model, row)) == Some(true)
    })
}

fn bound(row: &Row, name: Option<&String>, value: Value) -> Row {
    let mut row = row.clone();
    if let Some(name) = name {
        row.insert(name.clone(), value);
    }
    row
}

/// The row with null for each variable that the pattern would have bound.
fn with_nulls(row: &Row, pattern: &Pattern) -> Row {
    let mut row = row.clone();
    for name in pattern.names() {
        row.entry(name).or_insert(Value::Null);
    }
    row
}

fn project(model: &Model, rows: &[Row], projection: &Projection) -> Vec<Row> {
    let columns = &projection.columns;
    let is_plain = |column: &Column| matches!(column, Column::Plain(_));
    let mut projected: Vec<Row> = Vec::new();
    if columns.iter().all(|(column, _)| is_plain(column)) {
        for row in rows {
            let values = columns.iter().map(|(column, name)| match column {
                Column::Plain(expression) => (name.clone(), expression.value(model, row)),
                _ => unreachable!("all are plain"),
            });
            projected.push(values.collect());
        }
    } else {
        let mut groups: BTreeMap<Vec<String>, Vec<&Row>> = BTreeMap::new();
        if columns.iter().all(|(column, _)| !is_plain(column)) {
            groups.insert(Vec::new(), Vec::new());
        }
        for row in rows {
            let key = columns.iter().filter_map(|(column, _)| match column {
                Column::Plain(expression) => Some(expression.value(model, row).text()),
                _ => None,
            });
            groups.entry(key.collect()).or_default().push(row);
        }
        for members in groups.values() {
            let values =
                columns.iter().map(|(column, name)| (name.clone(), folded(model, members, column)));
            projected.push(values.collect());
        }
    }
    if projection.is_distinct {
        let mut seen = BTreeSet::new();
        projected.retain(|row| seen.insert(row.values().map(Value::text).collect::<Vec<_>>()));
    }
    if let Some((is_ascending, limit)) = projection.first {
        projected.sort_by(|left, right| {
            let orders = columns.iter().map(|(_, name)| order(&left[name], &right[name]));
            let order = orders.fold(Ordering::Equal, Ordering::then);
            if is_ascending { order } else { order.reverse() }
        });
        projected.truncate(limit);
    }
    projected
}

/// The value of a column for a group of rows.
fn folded(model: &Model, rows: &[&Row], column: &Column) -> Value {
    let (function, is_distinct, argument) = match column {
        Column::Plain(expression) => return expression.value(model, rows[0]),
        Column::CountRows => return Value::Integer(rows.len() as i64),
        Column::Aggregate(function, is_distinct, argument) => (*function, *is_distinct, argument),
    };
    let mut values: Vec<Value> = rows.iter().map(|row| argument.value(model, row)).collect();
    values.retain(|value| *value != Value::Null);
    if is_distinct {
        let mut seen = BTreeSet::new();
        values.retain(|value| seen.insert(value.text()));
    }
    let integers = || {
        values.iter().map(|value| match value {
            Value::Integer(number) => *number,
            other => panic!("{other:?} is no integer"),
        })
    };
    match function {
        "count" => Value::Integer(values.len() as i64),
        "sum" => Value::Integer(integers().sum()),
        "avg" if values.is_empty() => Value::Null,
        "avg" => Value::Float(integers().sum::<i64>() as f64 / values.len() as f64),
        "min" => values.into_iter().min_by(order).unwrap_or(Value::Null),
        "max" => values.into_iter().max_by(order).unwrap_or(Value::Null),
        "collect" => {
            // In no order that anybody promises.
            values.sort_by_key(Value::text);
            Value::List(values)
        }
        other => panic!("{other} is no aggregate function"),
    }
}

/// The order of ORDER BY: nodes, edges, lists, texts, truth values, numbers, null.
pub(crate) fn order(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Node(_) => 0,
        Value::Edge(_) => 1,
        Value::List(_) => 2,
        Value::Text(_) => 3,
        Value::Boolean(_) => 4,
        Value::Integer(_) | Value::Float(_) => 5,
        Value::Null => 6,
    };
    match (left, right) {
        (Value::Node(left), Value::Node(right)) | (Value::Edge(left), Value::Edge(right)) => {
            left.cmp(right)
        }
        (Value::List(left), Value::List(right)) => {
            let orders = left.iter().zip(right).map(|(left, right)| order(left, right));
            orders.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        _ => left.compare(right).unwrap_or_else(|| rank(left).cmp(&rank(right))),
    }
}
