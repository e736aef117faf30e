//! A second evaluator of Cypher, as simple as possible, and Wellspring's: they agree.
//!
//! Random queries run over random graphs, with new seeds in every run. Three ways find what
//! is wrong: the second evaluator (only over small graphs, it tries everything everywhere), ternary
//! partitions (the rows where a predicate holds, where it does not, and where it is unknown, are
//! all rows: Rigger and Su 2020), and queries rewritten so that their rows stay the same.
//!
//! `ORACLE_SEEDS=17..18` tries those seeds alone.

mod evaluate;
mod expression;
mod faults;
mod generate;
mod model;
mod product;
mod query;
mod random;
mod rewrite;
mod seeds;
mod value;
