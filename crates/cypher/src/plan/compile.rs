//! Compiles clauses to operators, with barriers between them.

use super::access::writes;
use super::operator::{Operator, Pipeline, ProcedureCall, QueryPlan, SubqueryPlan};
use super::{matching, projecting, writing};
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::ir::{
    CallProcedure, Clause, Expression, Mode, Query, SingleQuery, Slot, Statement, StatementBody,
    Subquery, SubqueryKind,
};
use crate::procedure::Procedures;

/// Compiles a statement's query and its subqueries; `None` for a schema command.
pub(crate) fn compile(
    statement: &Statement,
    procedures: &dyn Procedures,
) -> Result<(Option<QueryPlan>, Vec<SubqueryPlan>)> {
    let subqueries = statement.subqueries.iter().map(|Subquery { kind, query }| {
        let query = compile_query(query, *kind == SubqueryKind::Exists, procedures)?;
        Ok(SubqueryPlan { kind: *kind, query })
    });
    let query = match &statement.body {
        StatementBody::Query(query) => Some(compile_query(query, false, procedures)?),
        StatementBody::Schema(_) => None,
    };
    Ok((query, subqueries.collect::<Result<_>>()?))
}

/// The plan of a query; `once`: whether repeated rows do not matter.
fn compile_query(query: &Query, once: bool, procedures: &dyn Procedures) -> Result<QueryPlan> {
    let distinct = !query.all && query.branches.len() > 1;
    let branches = query.branches.iter().map(|branch| {
        let mut pipeline = compile_single(branch, procedures)?;
        super::ends::use_ends(&mut pipeline, once || distinct, branch.result.as_deref());
        Ok((pipeline, branch.result.clone()))
    });
    Ok(QueryPlan { branches: branches.collect::<Result<_>>()?, distinct })
}

fn compile_single(query: &SingleQuery, procedures: &dyn Procedures) -> Result<Pipeline> {
    let mut compiler = Compiler { single: true, ..Compiler::default() };
    let mut visible: &[Slot] = &[];
    let visibles = query.visible.iter().map(Vec::as_slice);
    for (clause, after) in query.clauses.iter().zip(visibles) {
        check_size(clause)?;
        compiler.clause(clause, visible, procedures)?;
        visible = after;
    }
    super::counts::use_stored(&mut compiler.pipeline);
    Ok(compiler.pipeline)
}

/// Maximum number of nodes and relationships in the patterns of one matching clause: ordering them
/// takes quadratic time.
const MOST_MATCHED: usize = 250;

fn check_size(clause: &Clause) -> Result<()> {
    let patterns = match clause {
        Clause::Match(clause) => &clause.patterns[..],
        Clause::Merge(merge) => std::slice::from_ref(&merge.pattern),
        _ => return Ok(()),
    };
    let size: usize = patterns.iter().map(|pattern| 1 + 2 * pattern.steps.len()).sum();
    if size <= MOST_MATCHED {
        return Ok(());
    }
    let message = format!(
        "A pattern to match can have at most {MOST_MATCHED} nodes and relationships, not {size}; match it in several clauses"
    );
    Err(Error::compile(ErrorKind::SyntaxError, Detail::LimitExceeded, message))
}

/// Builds a pipeline.
#[derive(Default)]
pub(super) struct Compiler {
    pipeline: Pipeline,
    /// Whether the graph was read since the last barrier.
    reads: bool,
    /// The kind of clause that wrote the graph since the last barrier, if any.
    writes: Option<WriteKind>,
    /// Whether at most one row passes here, so that a clause is complete once it has passed.
    pub(super) single: bool,
}

/// The kind of a writing clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteKind {
    /// `CREATE` only, whose effects do not influence another `CREATE`.
    Created,
    /// Any other.
    Changed,
}

impl Compiler {
    /// A compiler for a pipeline that runs within one row.
    pub(super) fn inner() -> Self {
        Self::default()
    }

    pub(super) fn finish(self) -> Pipeline {
        self.pipeline
    }

    pub(super) fn push(&mut self, operator: Operator) {
        self.pipeline.operators.push(operator);
    }

    /// A new state number for an operator.
    pub(super) fn state(&mut self) -> usize {
        self.pipeline.states += 1;
        self.pipeline.states - 1
    }

    fn barrier(&mut self, keep: &[Slot]) {
        if !self.single {
            let state = self.state();
            self.push(Operator::Eager { keep: keep.to_vec(), state });
        }
        self.reads = false;
        self.writes = None;
    }

    /// Prepares for a clause that reads the graph.
    fn before_reading(&mut self, visible: &[Slot]) {
        if self.writes.is_some() {
            self.barrier(visible);
        }
        self.reads = true;
    }

    /// Prepares for a clause that writes.
    fn before_writing(&mut self, visible: &[Slot], written: WriteKind) {
        let meets = self
            .writes
            .is_some_and(|before| before == WriteKind::Changed || written == WriteKind::Changed);
        if self.reads || meets {
            self.barrier(visible);
        }
        self.writes = Some(written);
    }

    fn clause(
        &mut self,
        clause: &Clause,
        visible: &[Slot],
        procedures: &dyn Procedures,
    ) -> Result<()> {
        match clause {
            Clause::Match(clause) => {
                self.before_reading(visible);
                self.matched(clause);
                self.single = false;
            }
            Clause::Unwind(clause) => {
                self.before_reading(visible);
                let (list, variable) = (clause.list.clone(), clause.variable);
                self.push(Operator::Unwind { list, variable });
                self.single = false;
            }
            Clause::LoadCsv(load) => {
                // One row reads nothing of the graph beside what comes after it.
                if !self.single || self.writes.is_some() {
                    self.before_reading(visible);
                }
                self.push(Operator::LoadCsv(load.clone()));
                self.single = false;
            }
            Clause::CallProcedure(call) => {
                self.before_reading(visible);
                if call.mode == Mode::Write {
                    self.before_writing(visible, WriteKind::Changed);
                }
                self.push(Operator::Procedure(procedure(call, procedures)?));
                self.filter(call.predicate.clone());
                self.single &= call.yields.is_empty();
            }
            Clause::CallSubquery(call) => {
                self.before_reading(visible);
                if writes(&call.query) {
                    self.before_writing(visible, WriteKind::Changed);
                }
                let (query, introduced) =
                    (compile_query(&call.query, false, procedures)?, call.introduced.clone());
                self.single &= introduced.is_empty();
                self.push(Operator::Call { query, introduced });
            }
            Clause::Project(projection) => {
                self.before_reading(visible);
                projecting::plan(self, projection);
            }
            Clause::Create(patterns) => {
                self.before_writing(visible, WriteKind::Created);
                self.push(Operator::Create(writing::creation(patterns)));
            }
            _ => {
                self.before_writing(visible, WriteKind::Changed);
                self.update(clause);
            }
        }
        Ok(())
    }

    /// Compiles clauses that change existing data.
    pub(super) fn update(&mut self, clause: &Clause) {
        match clause {
            Clause::Create(patterns) => self.push(Operator::Create(writing::creation(patterns))),
            Clause::Merge(merge) => {
                self.push(writing::merge(merge));
                self.single = false;
            }
            Clause::Set(items) => self.push(Operator::Set(items.clone())),
            Clause::Remove(items) => self.push(Operator::Remove(items.clone())),
            Clause::Delete(delete) => self.push(Operator::Delete(delete.clone())),
            Clause::Foreach(foreach) => {
                let mut inner = Self::inner();
                for update in &foreach.updates {
                    inner.update(update);
                }
                let (variable, list) = (foreach.variable, foreach.list.clone());
                self.push(Operator::Foreach { variable, list, updates: inner.finish() });
            }
            Clause::Match(_)
            | Clause::Unwind(_)
            | Clause::LoadCsv(_)
            | Clause::CallProcedure(_)
            | Clause::CallSubquery(_)
            | Clause::Project(_) => {}
        }
    }

    fn matched(&mut self, clause: &crate::ir::Match) {
        if clause.optional {
            let mut inner = Self::inner();
            matching::plan(&mut inner, clause);
            let introduced = clause.introduced.clone();
            self.push(Operator::Optional { inner: inner.finish(), introduced });
        } else {
            matching::plan(self, clause);
        }
    }

    pub(super) fn filter(&mut self, predicate: Option<Expression>) {
        if let Some(predicate) = predicate {
            self.push(Operator::Filter(predicate));
        }
    }
}

/// The procedure of a call, and the numbers of the columns that it yields.
fn procedure(call: &CallProcedure, procedures: &dyn Procedures) -> Result<ProcedureCall> {
    let missing = || {
        let message = format!("There is no procedure with the name `{}` registered", call.name);
        Error::compile(ErrorKind::ProcedureError, Detail::ProcedureNotFound, message)
    };
    let procedure = procedures.find(&call.name).ok_or_else(missing)?;
    let columns = procedure.yields();
    let yields = call.yields.iter().filter_map(|(field, slot)| {
        Some((columns.iter().position(|column| **column == **field)?, *slot))
    });
    let yields = yields.collect();
    Ok(ProcedureCall { procedure, arguments: call.arguments.clone(), yields })
}
