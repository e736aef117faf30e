//! `WITH` and `RETURN`.

use std::sync::Arc;

use super::{Expression, Slot};

/// `WITH …`, `RETURN …`: first the items (grouped if there are aggregations), then `DISTINCT`,
/// `ORDER BY`, `SKIP`, `LIMIT`, `WHERE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// The items. With aggregations, those before them are the grouping keys.
    pub items: Vec<ProjectionItem>,
    /// The aggregations. If there are any, or `grouped` is set, rows are grouped.
    pub aggregates: Vec<Aggregate>,
    /// Items computed from grouping keys and aggregations, after them.
    pub after: Vec<ProjectionItem>,
    /// Equivalent rows pass once.
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
    /// Slots that are read after sorting though they are no column.
    pub also_read: Vec<Slot>,
}

/// An expression and where its value goes.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectionItem {
    /// Where.
    pub slot: Slot,
    /// What.
    pub expression: Expression,
}

/// An aggregation and where its result goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Where.
    pub slot: Slot,
    /// The name as in the catalogue of functions; `count` without arguments is `count(*)`.
    pub function: Arc<str>,
    /// Equivalent values count once.
    pub distinct: bool,
    /// The arguments.
    pub arguments: Vec<Expression>,
}

/// A key of `ORDER BY`.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// What is compared.
    pub expression: Expression,
    /// Largest first.
    pub descending: bool,
}
