//! `WITH` and `RETURN`.

use std::sync::Arc;

use super::{Expression, Slot};

/// `WITH …`, `RETURN …`: evaluates the items (grouped if there are aggregations), then `DISTINCT`,
/// `ORDER BY`, `SKIP`, `LIMIT`, `WHERE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// The items. With aggregations, these are the grouping keys.
    pub items: Vec<ProjectionItem>,
    /// The aggregations. If there are any, or `grouped` is set, rows are grouped.
    pub aggregates: Vec<Aggregate>,
    /// Items computed from grouping keys and aggregations.
    pub after: Vec<ProjectionItem>,
    /// Whether equivalent rows pass only once.
    pub distinct: bool,
    /// `ORDER BY`
    pub order: Vec<SortKey>,
    /// `SKIP`
    pub skip: Option<Expression>,
    /// `LIMIT`
    pub limit: Option<Expression>,
    /// `WHERE` after `WITH`
    pub predicate: Option<Expression>,
    /// The slots of the columns, in order.
    pub columns: Vec<Slot>,
    /// Slots read after sorting that are not columns.
    pub also_read: Vec<Slot>,
}

/// An expression and the slot of its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectionItem {
    /// The slot.
    pub slot: Slot,
    /// The expression.
    pub expression: Expression,
}

/// An aggregation and the slot of its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The slot.
    pub slot: Slot,
    /// The name as in the catalogue of functions; `count` without arguments is `count(*)`.
    pub function: Arc<str>,
    /// Whether equivalent values count once.
    pub distinct: bool,
    /// The arguments.
    pub arguments: Vec<Expression>,
}

/// A key of `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// The expression to compare.
    pub expression: Expression,
    /// Whether the largest comes first.
    pub descending: bool,
}
