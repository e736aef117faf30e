//! Plans: in which order a query is executed, and by what.
//!
//! A query becomes a pipeline of operators for each of its branches. Rows are pushed through it one
//! by one, in place; only some operators keep them ([`Operator::keeps`]). A barrier stands wherever
//! a clause must have ended before the next begins: reading must not meet what its own statement
//! writes later, and what reads must meet all that was written before.

mod compile;
mod conditions;
mod counts;
mod matching;
mod operator;
mod projecting;
mod start;
mod writing;

pub(crate) use compile::{compile, writes};
pub(crate) use operator::{
    Aggregation, Connection, Creation, Expand, ExpandVariable, MergeOperator, Operator,
    PathAssembly, Pipeline, ProcedureCall, QueryPlan, RelationshipScan, RelationshipSource, Scan,
    ScanSource, Seek, ShortestPath, SortOperator, SoughtValue, StoredCount, SubqueryPlan,
};
