//! Values as the second evaluator knows them, with the relations of openCypher between them.

use std::cmp::Ordering;

/// A value. Nodes and edges are named by their place in the [`Model`](crate::model::Model).
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Node(usize),
    Edge(usize),
}

impl Value {
    /// A truth value; unknown is null.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Self::Boolean(truth) => Some(*truth),
            Self::Null => None,
            other => panic!("{other:?} is no truth value"),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// `=`: unknown if a null decides.
    pub(crate) fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) => None,
            (Self::List(left), Self::List(right)) => {
                if left.len() != right.len() {
                    return Some(false);
                }
                all(left.iter().zip(right).map(|(a, b)| a.equals(b)))
            }
            _ => match (self.number(), other.number()) {
                (Some(left), Some(right)) => Some(left == right),
                _ => Some(self == other),
            },
        }
    }

    /// `<`, `<=`, `>`, `>=`: unknown for values of different types.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            (Self::Boolean(left), Self::Boolean(right)) => Some(left.cmp(right)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    /// As a literal of Cypher.
    pub(crate) fn literal(&self) -> String {
        match self {
            Self::Float(number) => format!("{number:?}"),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::literal).collect();
                format!("[{}]", items.join(", "))
            }
            other => other.text(),
        }
    }

    /// As text. Equivalent values have the same text, so it serves for grouping too.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Boolean(truth) => truth.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => format!("{:.9}", number + 0.0)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_string(),
            Self::Text(text) => format!("'{text}'"),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::text).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Node(node) => format!("node {node}"),
            Self::Edge(edge) => format!("edge {edge}"),
        }
    }
}

impl From<Option<bool>> for Value {
    fn from(truth: Option<bool>) -> Self {
        truth.map_or(Self::Null, Self::Boolean)
    }
}

/// Kleene's conjunction.
pub(crate) fn all(truths: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for truth in truths {
        match truth {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

/// Kleene's disjunction.
pub(crate) fn any(truths: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    all(truths.into_iter().map(not)).map(|truth| !truth)
}

/// Kleene's negation.
pub(crate) fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}
