//! The intermediate representation: a query whose names are resolved to slots of a row.
//!
//! `syntax` lowers text to it, `plan` turns it into a plan, `evaluate` computes its expressions. It
//! depends on neither the parser nor the graph.

mod clause;
mod expression;
mod pattern;
mod projection;
mod query;
mod schema;
mod slots;
mod value_type;

pub use clause::{
    CallProcedure, CallSubquery, Clause, Delete, Foreach, LoadCsv, Match, Merge, Mode, RemoveItem,
    SetItem, Unwind,
};
pub use expression::{
    BinaryOperator, Case, Comparison, DynamicLabels, Expression, ListComprehension,
    MapProjectionItem, Quantifier, Quantity, Reduce, Slot, UnaryOperator,
};
pub use pattern::{
    Direction, Length, NodePattern, PathPattern, Properties, RelationshipPattern, Shortest,
};
pub use projection::{Aggregate, Projection, ProjectionItem, SortKey};
pub use query::{Query, SingleQuery, Statement, StatementBody, Subquery, SubqueryKind};
pub use schema::{SchemaChange, SchemaCreation, SchemaKind, SchemaTarget, SchemaValue};
pub use slots::{for_each_child, for_each_slot, replace_all};
pub use value_type::{BaseType, TypeAlternative, ValueType};
