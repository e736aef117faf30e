//! Queries and their text.

use crate::expression::Expression;

/// A node of a chain.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodePattern {
    pub(crate) name: Option<String>,
    pub(crate) labels: Vec<&'static str>,
    pub(crate) properties: Vec<(&'static str, Expression)>,
}

/// The direction of a step, as written from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Right,
    Left,
    Either,
}

/// A relationship of a chain.
#[derive(Debug, Clone)]
pub(crate) struct EdgePattern {
    pub(crate) name: Option<String>,
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) properties: Vec<(&'static str, Expression)>,
    pub(crate) direction: Direction,
    /// Least and greatest number of relationships, if it is of variable length.
    pub(crate) lengths: Option<(usize, usize)>,
}

/// A path pattern.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The variable of the path.
    pub(crate) name: Option<String>,
    pub(crate) start: NodePattern,
    pub(crate) steps: Vec<(EdgePattern, NodePattern)>,
}

/// Chains that use each relationship at most once together, and a condition.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) chains: Vec<Chain>,
    pub(crate) condition: Option<Box<Expression>>,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    Plain(Expression),
    CountRows,
    /// The function, whether of distinct values only, and its argument.
    Aggregate(&'static str, bool, Expression),
}

/// `WITH` or `RETURN`.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    pub(crate) is_distinct: bool,
    pub(crate) columns: Vec<(Column, String)>,
    /// Sorts by all columns, ascending or not, and keeps so many rows.
    pub(crate) first: Option<(bool, usize)>,
}

/// A clause before the last.
#[derive(Debug, Clone)]
pub(crate) enum Clause {
    Match(Pattern),
    OptionalMatch(Pattern),
    /// The list, and the variable of an item.
    Unwind(Expression, String),
    /// The projection, and the condition after it.
    With(Projection, Option<Expression>),
    /// `WITH *` with a condition or none.
    Filter(Option<Expression>),
}

/// A query.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) clauses: Vec<Clause>,
    pub(crate) result: Projection,
}

fn properties_text(properties: &[(&'static str, Expression)]) -> String {
    if properties.is_empty() {
        return String::new();
    }
    let entries: Vec<String> =
        properties.iter().map(|(key, value)| format!("{key}: {}", value.text())).collect();
    format!(" {{{}}}", entries.join(", "))
}

fn condition_text(condition: Option<&Expression>) -> String {
    condition.map(|condition| format!(" WHERE {}", condition.text())).unwrap_or_default()
}

impl NodePattern {
    fn text(&self) -> String {
        let labels: String = self.labels.iter().map(|label| format!(":{label}")).collect();
        let name = self.name.as_deref().unwrap_or_default();
        format!("({name}{labels}{})", properties_text(&self.properties))
    }
}

impl EdgePattern {
    fn text(&self) -> String {
        let kinds = if self.kinds.is_empty() {
            String::new()
        } else {
            format!(":{}", self.kinds.join("|"))
        };
        let lengths = self.lengths.map(|(least, most)| format!("*{least}..{most}"));
        let inside = format!(
            "[{}{kinds}{}{}]",
            self.name.as_deref().unwrap_or_default(),
            lengths.unwrap_or_default(),
            properties_text(&self.properties)
        );
        match self.direction {
            Direction::Right => format!("-{inside}->"),
            Direction::Left => format!("<-{inside}-"),
            Direction::Either => format!("-{inside}-"),
        }
    }
}

impl Chain {
    fn text(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("{name} = ")).unwrap_or_default();
        let steps: String =
            self.steps.iter().map(|(edge, node)| edge.text() + &node.text()).collect();
        format!("{name}{}{steps}", self.start.text())
    }
}

impl Pattern {
    /// The variables in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for chain in &self.chains {
            names.extend(chain.name.clone());
            names.extend(chain.start.name.clone());
            for (edge, node) in &chain.steps {
                names.extend(edge.name.clone());
                names.extend(node.name.clone());
            }
        }
        names
    }

    pub(crate) fn text(&self) -> String {
        let chains: Vec<String> = self.chains.iter().map(Chain::text).collect();
        chains.join(", ") + &condition_text(self.condition.as_deref())
    }
}

impl Column {
    fn text(&self) -> String {
        match self {
            Self::Plain(expression) => expression.text(),
            Self::CountRows => "count(*)".into(),
            Self::Aggregate(function, is_distinct, argument) => {
                let distinct = if *is_distinct { "DISTINCT " } else { "" };
                format!("{function}({distinct}{})", argument.text())
            }
        }
    }
}

impl Projection {
    pub(crate) fn text(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(column, name)| format!("{} AS {name}", column.text()))
            .collect();
        let distinct = if self.is_distinct { "DISTINCT " } else { "" };
        let mut text = format!("{distinct}{}", columns.join(", "));
        if let Some((is_ascending, limit)) = self.first {
            let order = if is_ascending { "" } else { " DESC" };
            let keys: Vec<String> =
                self.columns.iter().map(|(_, name)| format!("{name}{order}")).collect();
            text += &format!(" ORDER BY {} LIMIT {limit}", keys.join(", "));
        }
        text
    }
}

impl Query {
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for clause in &self.clauses {
            text += &match clause {
                Clause::Match(pattern) => format!("MATCH {} ", pattern.text()),
                Clause::OptionalMatch(pattern) => format!("OPTIONAL MATCH {} ", pattern.text()),
                Clause::Unwind(list, name) => format!("UNWIND {} AS {name} ", list.text()),
                Clause::With(projection, condition) => {
                    format!("WITH {}{} ", projection.text(), condition_text(condition.as_ref()))
                }
                Clause::Filter(condition) => {
                    format!("WITH *{} ", condition_text(condition.as_ref()))
                }
            };
        }
        text + "RETURN " + &self.result.text()
    }
}
