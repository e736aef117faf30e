//! The intermediate representation: a query whose names are resolved to slots of a row.
//!
//! `syntax` lowers text to it, `plan` turns it into a plan, `evaluate` computes its expressions. It knows neither the
//! parser nor the graph.

mod expression;

pub use expression::{
    BinaryOperator, Case, Comparison, Expression, ListComprehension, MapProjectionItem, Quantifier,
    Quantity, Reduce, Slot, UnaryOperator,
};
