//! What a query touches: known before it runs, from its clauses.

use crate::ir::{Clause, Mode, Query, Statement, StatementBody};

/// Whether a query changes data.
pub(crate) fn writes(query: &Query) -> bool {
    any_clause(query, &mut |clause| match clause {
        Clause::Create(_)
        | Clause::Merge(_)
        | Clause::Set(_)
        | Clause::Remove(_)
        | Clause::Delete(_)
        | Clause::Foreach(_) => true,
        Clause::CallProcedure(call) => call.mode == Mode::Write,
        Clause::Match(_)
        | Clause::Unwind(_)
        | Clause::LoadCsv(_)
        | Clause::CallSubquery(_)
        | Clause::Project(_) => false,
    })
}

/// Whether a statement reads or changes a graph. One that does not can be answered where there is
/// none: expressions alone, and procedures about the server.
pub(crate) fn needs_graph(statement: &Statement) -> bool {
    let StatementBody::Query(query) = &statement.body else { return true };
    let subqueries = statement.subqueries.iter().map(|subquery| &subquery.query);
    std::iter::once(query).chain(subqueries).any(|query| {
        any_clause(query, &mut |clause| match clause {
            Clause::Unwind(_) | Clause::Project(_) | Clause::CallSubquery(_) => false,
            Clause::CallProcedure(call) => call.mode != Mode::Server,
            _ => true,
        })
    })
}

/// Whether any clause of a query, and of the subqueries that are clauses, is so.
fn any_clause(query: &Query, is: &mut impl FnMut(&Clause) -> bool) -> bool {
    let mut clauses = query.branches.iter().flat_map(|branch| &branch.clauses);
    clauses.any(|clause| match clause {
        Clause::CallSubquery(call) => any_clause(&call.query, is),
        clause => is(clause),
    })
}
