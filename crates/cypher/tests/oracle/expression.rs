//! Expressions: their text, and their value in a row.

use crate::evaluate::{Row, matches};
use crate::model::Model;
use crate::query::Pattern;
use crate::value::{Value, all, any, not};
use std::cmp::Ordering;

/// An expression. What is generated never fails, whatever the graph holds.
#[derive(Debug, Clone)]
pub(crate) enum Expression {
    Literal(Value),
    Variable(String),
    Property(String, &'static str),
    /// `(v:Label)`
    HasLabel(String, &'static str),
    /// Of integers, by `+`, `-` or `*`.
    Arithmetic(&'static str, Box<[Expression; 2]>),
    /// By `=`, `<>`, `<`, `<=`, `>` or `>=`.
    Comparison(&'static str, Box<[Expression; 2]>),
    /// `a < b <= c`
    Between(Box<[Expression; 3]>),
    And(Box<[Expression; 2]>),
    Or(Box<[Expression; 2]>),
    Xor(Box<[Expression; 2]>),
    Not(Box<Expression>),
    IsNull(Box<Expression>),
    IsNotNull(Box<Expression>),
    In(Box<[Expression; 2]>),
    /// `STARTS WITH`, `ENDS WITH` or `CONTAINS`.
    TextSearch(&'static str, Box<[Expression; 2]>),
    /// `any`, `all`, `none` or `single` over a list.
    Quantifier(&'static str, String, Box<[Expression; 2]>),
    /// The variable, then list, condition and item.
    Comprehension(String, Box<[Expression; 3]>),
    Size(Box<Expression>),
    Coalesce(Box<[Expression; 2]>),
    /// Condition, then, else.
    Case(Box<[Expression; 3]>),
    Exists(Pattern),
    Count(Pattern),
    /// `type(r)`
    TypeOf(String),
    /// `length(p)`
    Length(String),
}

use Expression as E;

impl Expression {
    pub(crate) fn not(operand: Self) -> Self {
        E::Not(Box::new(operand))
    }

    pub(crate) fn and(left: Self, right: Self) -> Self {
        E::And(Box::new([left, right]))
    }

    pub(crate) fn or(left: Self, right: Self) -> Self {
        E::Or(Box::new([left, right]))
    }

    pub(crate) fn is_null(operand: Self) -> Self {
        E::IsNull(Box::new(operand))
    }

    pub(crate) fn equal(left: Self, right: Self) -> Self {
        E::Comparison("=", Box::new([left, right]))
    }

    pub(crate) fn boolean(truth: bool) -> Self {
        E::Literal(Value::Boolean(truth))
    }

    /// Its text, in parentheses where anything could be misread.
    pub(crate) fn text(&self) -> String {
        let infix = |operator: &str, operands: &[Self; 2]| {
            format!("({} {operator} {})", operands[0].text(), operands[1].text())
        };
        match self {
            E::Literal(value) => value.literal(),
            E::Variable(name) => name.clone(),
            E::Property(owner, key) => format!("{owner}.{key}"),
            E::HasLabel(owner, label) => format!("({owner}:{label})"),
            E::Arithmetic(operator, operands)
            | E::Comparison(operator, operands)
            | E::TextSearch(operator, operands) => infix(operator, operands),
            E::Between(operands) => {
                let [low, middle, high] = &**operands;
                format!("({} < {} <= {})", low.text(), middle.text(), high.text())
            }
            E::And(operands) => infix("AND", operands),
            E::Or(operands) => infix("OR", operands),
            E::Xor(operands) => infix("XOR", operands),
            E::In(operands) => infix("IN", operands),
            E::Not(operand) => format!("(NOT {})", operand.text()),
            E::IsNull(operand) => format!("({} IS NULL)", operand.text()),
            E::IsNotNull(operand) => format!("({} IS NOT NULL)", operand.text()),
            E::Quantifier(kind, variable, operands) => {
                let [list, condition] = &**operands;
                format!("{kind}({variable} IN {} WHERE {})", list.text(), condition.text())
            }
            E::Comprehension(variable, operands) => {
                let [list, condition, item] = &**operands;
                let (list, condition, item) = (list.text(), condition.text(), item.text());
                format!("[{variable} IN {list} WHERE {condition} | {item}]")
            }
            E::Size(list) => format!("size({})", list.text()),
            E::Coalesce(operands) => {
                format!("coalesce({}, {})", operands[0].text(), operands[1].text())
            }
            E::Case(operands) => {
                let [condition, then, otherwise] = &**operands;
                let (condition, then) = (condition.text(), then.text());
                format!("CASE WHEN {condition} THEN {then} ELSE {} END", otherwise.text())
            }
            E::Exists(pattern) => format!("EXISTS {{ MATCH {} }}", pattern.text()),
            E::Count(pattern) => format!("COUNT {{ MATCH {} }}", pattern.text()),
            E::TypeOf(name) => format!("type({name})"),
            E::Length(name) => format!("length({name})"),
        }
    }

    /// Its value in a row.
    pub(crate) fn value(&self, model: &Model, row: &Row) -> Value {
        let value = |expression: &Self| expression.value(model, row);
        match self {
            E::Literal(value) => value.clone(),
            E::Variable(name) => row[name].clone(),
            E::Property(owner, key) => model.property(&row[owner], key),
            E::Arithmetic(operator, operands) => match (value(&operands[0]), value(&operands[1])) {
                (Value::Integer(left), Value::Integer(right)) => Value::Integer(match *operator {
                    "+" => left + right,
                    "-" => left - right,
                    _ => left * right,
                }),
                _ => Value::Null,
            },
            E::Comprehension(variable, operands) => {
                let Value::List(items) = value(&operands[0]) else { return Value::Null };
                let rows = items.into_iter().map(|item| with(row, variable, item));
                let kept = rows.filter(|row| operands[1].truth(model, row) == Some(true));
                Value::List(kept.map(|row| operands[2].value(model, &row)).collect())
            }
            E::Size(list) => match value(list) {
                Value::List(items) => Value::Integer(items.len() as i64),
                _ => Value::Null,
            },
            E::Coalesce(operands) => match value(&operands[0]) {
                Value::Null => value(&operands[1]),
                first => first,
            },
            E::Case(operands) => match operands[0].truth(model, row) {
                Some(true) => value(&operands[1]),
                _ => value(&operands[2]),
            },
            E::Count(pattern) => Value::Integer(matches(model, row, pattern).len() as i64),
            E::TypeOf(name) => match row[name] {
                Value::Edge(edge) => Value::Text(model.edges[edge].kind.into()),
                _ => Value::Null,
            },
            E::Length(name) => E::Size(Box::new(E::Variable(name.clone()))).value(model, row),
            _ => self.truth(model, row).into(),
        }
    }

    /// Whether it holds in a row; `None` if that is unknown.
    pub(crate) fn truth(&self, model: &Model, row: &Row) -> Option<bool> {
        let value = |expression: &Self| expression.value(model, row);
        let both =
            |operands: &[Self; 2]| [operands[0].truth(model, row), operands[1].truth(model, row)];
        match self {
            E::HasLabel(owner, label) => match row[owner] {
                Value::Node(node) => Some(model.nodes[node].labels.contains(label)),
                _ => None,
            },
            E::Comparison(operator, operands) => {
                compared(operator, &value(&operands[0]), &value(&operands[1]))
            }
            E::Between(operands) => {
                let [low, middle, high] = [0, 1, 2].map(|which| value(&operands[which]));
                all([compared("<", &low, &middle), compared("<=", &middle, &high)])
            }
            E::And(operands) => all(both(operands)),
            E::Or(operands) => any(both(operands)),
            E::Xor(operands) => match both(operands) {
                [Some(left), Some(right)] => Some(left != right),
                _ => None,
            },
            E::Not(operand) => not(operand.truth(model, row)),
            E::IsNull(operand) => Some(value(operand) == Value::Null),
            E::IsNotNull(operand) => Some(value(operand) != Value::Null),
            E::In(operands) => match value(&operands[1]) {
                Value::List(items) => {
                    let sought = value(&operands[0]);
                    any(items.iter().map(|item| sought.equals(item)))
                }
                _ => None,
            },
            E::TextSearch(operator, operands) => match (value(&operands[0]), value(&operands[1])) {
                (Value::Text(text), Value::Text(part)) => Some(match *operator {
                    "STARTS WITH" => text.starts_with(&part),
                    "ENDS WITH" => text.ends_with(&part),
                    _ => text.contains(&part),
                }),
                _ => None,
            },
            E::Quantifier(kind, variable, operands) => {
                let Value::List(items) = value(&operands[0]) else { return None };
                let rows = items.into_iter().map(|item| with(row, variable, item));
                let truths: Vec<_> = rows.map(|row| operands[1].truth(model, &row)).collect();
                quantified(kind, &truths)
            }
            E::Exists(pattern) => Some(!matches(model, row, pattern).is_empty()),
            _ => self.value(model, row).truth(),
        }
    }
}

fn with(row: &Row, variable: &str, value: Value) -> Row {
    let mut row = row.clone();
    row.insert(variable.into(), value);
    row
}

fn compared(operator: &str, left: &Value, right: &Value) -> Option<bool> {
    match operator {
        "=" => left.equals(right),
        "<>" => not(left.equals(right)),
        "<" => left.compare(right).map(Ordering::is_lt),
        "<=" => left.compare(right).map(Ordering::is_le),
        ">" => left.compare(right).map(Ordering::is_gt),
        _ => left.compare(right).map(Ordering::is_ge),
    }
}

fn quantified(kind: &str, truths: &[Option<bool>]) -> Option<bool> {
    match kind {
        "any" => any(truths.iter().copied()),
        "all" => all(truths.iter().copied()),
        "none" => not(any(truths.iter().copied())),
        _ => match truths.iter().filter(|truth| **truth == Some(true)).count() {
            0 | 1 if truths.contains(&None) => None,
            count => Some(count == 1),
        },
    }
}
