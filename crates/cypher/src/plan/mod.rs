//! Plans: the order and the operators of a query's execution.
//!
//! Each branch of a query becomes a pipeline of operators. Rows are pushed through it one by one,
//! in place; only some operators keep them ([`Operator::keeps`]). A barrier separates clauses where
//! one must be complete before the next begins: reads must not see later writes of their own
//! statement, and must see all earlier ones.

mod access;
mod compile;
mod conditions;
mod counts;
mod describe;
mod ends;
mod matching;
mod operator;
mod projecting;
mod start;
mod writing;

pub(crate) use access::{needs_graph, writes};
pub(crate) use compile::compile;
pub use describe::PlanStep;
pub(crate) use describe::describe;
pub(crate) use operator::{
    Aggregation, Connection, Creation, Expand, ExpandVariable, Join, MergeOperator, Operator,
    PathAssembly, Pipeline, ProcedureCall, QueryPlan, RelationshipScan, RelationshipSource, Scan,
    ScanSource, Seek, ShortestPath, SortOperator, SoughtValue, StoredCount, SubqueryPlan,
};
