//! Expressions with resolved names.

use super::ValueType;
use std::sync::Arc;

/// The place of a variable in a row.
///
/// A row is one `&mut [Value]` as wide as the whole statement: `syntax` gives every declaration its
/// own slot, including those of comprehensions, quantifiers, `reduce` and subqueries. The evaluator
/// thus binds such a variable by writing to its slot in the same row; a slot is never read outside
/// the scope of its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// An expression. Evaluation reads a row, the parameters and the graph, and changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// An integer literal.
    Integer(i64),
    /// A float literal.
    Float(f64),
    /// A string literal with resolved escapes.
    String(Arc<str>),
    /// `$name`
    Parameter(Arc<str>),
    /// A variable.
    Variable(Slot),
    /// `subject.key`, of a node, relationship, map, temporal value or point.
    Property(Box<Expression>, Arc<str>),
    /// `subject[index]`, of a list, map, node or relationship.
    Index(Box<Expression>, Box<Expression>),
    /// `list[from..to]`
    Slice(Box<Expression>, Option<Box<Expression>>, Option<Box<Expression>>),
    /// `[a, b]`
    List(Vec<Expression>),
    /// `{key: value}`; the last value of a repeated key wins.
    Map(Vec<(Arc<str>, Expression)>),
    /// `subject{.key, .*, key: value, variable}`
    MapProjection(Box<Expression>, Vec<MapProjectionItem>),
    /// `-a`, `NOT a`, `a IS NULL` …
    Unary(UnaryOperator, Box<Expression>),
    /// `a + b`, `a AND b`, `a IN b` …; left-associative chains are nested to the left.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// `a < b <= c`: true if every neighbouring pair compares so.
    Comparison(Box<Expression>, Vec<(Comparison, Expression)>),
    /// `subject:A:B`, of a node (labels) or relationship (type).
    HasLabels(Box<Expression>, Vec<Arc<str>>),
    /// `subject:$(labels)`, `subject:$any(labels)`: a label or a list of labels.
    HasDynamicLabels(Box<Expression>, Box<Expression>, DynamicLabels),
    /// `subject IS :: TYPE`: true or false, even for null.
    HasType(Box<Expression>, Box<ValueType>),
    /// `CASE …`
    Case(Box<Case>),
    /// `name(a, b)`: a function that is not an aggregation. The name is as in the catalogue of
    /// functions.
    Function(Arc<str>, Vec<Expression>),
    /// `[x IN list WHERE p | e]`
    ListComprehension(Box<ListComprehension>),
    /// `all|any|none|single(x IN list WHERE p)`
    Quantifier(Box<Quantifier>),
    /// `reduce(acc = init, x IN list | e)`
    Reduce(Box<Reduce>),
    /// A pattern comprehension, pattern predicate, `EXISTS {}` or `COUNT {}`, evaluated by the
    /// executor, which knows it by this number within the query.
    Subquery(usize),
}

/// How many labels of a list must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicLabels {
    /// All of them.
    All,
    /// At least one.
    Any,
}

/// An operator on one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `NOT a`
    Not,
    /// `+a`
    Plus,
    /// `-a`
    Minus,
    /// `a IS NULL`
    IsNull,
    /// `a IS NOT NULL`
    IsNotNull,
}

/// An operator on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `a OR b`
    Or,
    /// `a XOR b`
    Xor,
    /// `a AND b`
    And,
    /// `a + b`: also of strings, lists and temporal values.
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`
    Divide,
    /// `a % b`
    Modulo,
    /// `a ^ b`
    Power,
    /// `a IN list`
    In,
    /// `a STARTS WITH b`
    StartsWith,
    /// `a ENDS WITH b`
    EndsWith,
    /// `a CONTAINS b`
    Contains,
    /// `a =~ regex`
    Matches,
}

/// A comparison of two neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// `CASE [subject] WHEN … THEN … ELSE … END`
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The value to compare the alternatives with; without it they are predicates.
    pub subject: Option<Expression>,
    /// The alternatives and their results, in order.
    pub alternatives: Vec<(Expression, Expression)>,
    /// The result if no alternative matches; without it, null.
    pub otherwise: Option<Expression>,
}

/// `[variable IN list WHERE predicate | result]`
#[derive(Debug, Clone, PartialEq)]
pub struct ListComprehension {
    /// The slot of the element.
    pub variable: Slot,
    /// The list.
    pub list: Expression,
    /// Elements for which it is not true are omitted.
    pub predicate: Option<Expression>,
    /// The result for an element; without it, the element.
    pub result: Option<Expression>,
}

/// The kind of quantifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// `all(…)`
    All,
    /// `any(…)`
    Any,
    /// `none(…)`
    None,
    /// `single(…)`
    Single,
}

/// `all(variable IN list WHERE predicate)`
#[derive(Debug, Clone, PartialEq)]
pub struct Quantifier {
    /// The kind.
    pub quantity: Quantity,
    /// The slot of the element.
    pub variable: Slot,
    /// The list.
    pub list: Expression,
    /// The predicate.
    pub predicate: Expression,
}

/// `reduce(accumulator = initial, variable IN list | step)`
#[derive(Debug, Clone, PartialEq)]
pub struct Reduce {
    /// The slot of the accumulator.
    pub accumulator: Slot,
    /// Its initial value.
    pub initial: Expression,
    /// The slot of the element.
    pub variable: Slot,
    /// The list.
    pub list: Expression,
    /// The next accumulator.
    pub step: Expression,
}

/// A part of a map projection.
#[derive(Debug, Clone, PartialEq)]
pub enum MapProjectionItem {
    /// `.key`
    Property(Arc<str>),
    /// `.*`
    AllProperties,
    /// `key: value`, and `variable` as `variable: variable`.
    Entry(Arc<str>, Expression),
}
