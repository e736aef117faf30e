//! Lowers queries and clauses from the parser's AST to the IR.

use std::collections::HashSet;
use std::sync::Arc;

use decypher::Span;
use decypher::ast::clause;
use decypher::ast::procedure as call;
use decypher::ast::query as ast;

use super::Source;
use super::columns::Columns;
use super::names::Names;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::ir::{
    Aggregate, CallProcedure, CallSubquery, Clause, Expression, LoadCsv, Match, Query, SingleQuery,
    Slot, Statement, StatementBody, Subquery, Unwind,
};
use crate::procedure::{Argument, ArgumentType, Procedures};

/// Maximum number of cells that lowering a statement copies or compares: a slot in scope after a
/// clause is one, of 4 bytes. What the planner copies is in proportion.
const MOST_CELLS: usize = 4_000_000;

pub(super) struct LoweredStatement {
    pub(super) statement: Statement,
    /// The parameters it reads.
    pub(super) parameters: Vec<Arc<str>>,
    /// Names that subqueries return with `*`.
    pub(super) exported: Vec<Arc<str>>,
}

/// Lowers one statement.
pub(super) struct Lowering<'l> {
    pub(super) source: &'l Source<'l>,
    pub(super) columns: &'l Columns,
    pub(super) procedures: &'l dyn Procedures,
    pub(super) names: Names,
    /// The aggregations of the projection being lowered; `None` outside of one.
    pub(super) aggregates: Option<Vec<Aggregate>>,
    pub(super) subqueries: Vec<Subquery>,
    /// Names that subqueries return with `*` and that `LOAD CSV` declares, which the parser's
    /// analysis does not know.
    exported: Vec<Arc<str>>,
    parameters: Vec<Arc<str>>,
    known_parameters: HashSet<Arc<str>>,
    width: u32,
    /// Cells that may still be copied or compared.
    pub(super) cells: usize,
}

impl<'l> Lowering<'l> {
    pub(super) fn new(
        source: &'l Source<'l>,
        columns: &'l Columns,
        procedures: &'l dyn Procedures,
    ) -> Self {
        Self {
            source,
            columns,
            procedures,
            names: Names::default(),
            aggregates: None,
            subqueries: Vec::new(),
            exported: Vec::new(),
            parameters: Vec::new(),
            known_parameters: HashSet::new(),
            width: 0,
            cells: MOST_CELLS,
        }
    }

    /// The statement, what it reads, and the names that the parser's analysis does not know.
    pub(super) fn finish(self, explain: bool, query: Query) -> LoweredStatement {
        let statement = Statement {
            explain,
            body: StatementBody::Query(query),
            width: self.width as usize,
            subqueries: self.subqueries,
        };
        LoweredStatement { statement, parameters: self.parameters, exported: self.exported }
    }

    /// A parameter, which is recorded.
    pub(super) fn parameter(&mut self, name: &str) -> Expression {
        let name: Arc<str> = name.into();
        if self.known_parameters.insert(name.clone()) {
            self.parameters.push(name.clone());
        }
        Expression::Parameter(name)
    }

    /// Counts cells before they are copied or compared.
    ///
    /// # Errors
    /// The statement takes too many.
    pub(super) fn take_cells(&mut self, cells: usize) -> Result<()> {
        self.cells = self.cells.saturating_sub(cells);
        if self.cells > 0 {
            return Ok(());
        }
        let message = "The statement is too large: too many names in scope of too many clauses. Pass data as parameters, or split it into several statements.";
        Err(Error::compile(ErrorKind::SyntaxError, Detail::LimitExceeded, message))
    }

    /// Counts what the analysis copies for a subquery, enclosing names included.
    pub(super) fn take_cells_of_subquery(&mut self) -> Result<()> {
        self.take_cells(self.width as usize)
    }

    /// A new slot.
    pub(super) fn fresh(&mut self) -> Slot {
        self.width += 1;
        Slot(self.width - 1)
    }

    /// A new slot for a name.
    pub(super) fn declare(&mut self, name: &str) -> Slot {
        let slot = self.fresh();
        self.names.push(name, slot);
        slot
    }

    /// An error in the text.
    pub(super) fn fail(&self, detail: Detail, message: impl Into<String>, span: Span) -> Error {
        self.source.at(Error::compile(ErrorKind::SyntaxError, detail, message), span.start)
    }

    pub(super) fn regular(&mut self, query: &ast::RegularQuery) -> Result<Query> {
        let mut whole = self.single(&query.single_query, 0)?;
        for union in &query.unions {
            self.take_cells(self.names.mark())?;
            let next = self.single(&union.single_query, 0)?;
            if next.columns != whole.columns {
                let message = "All sub queries in an UNION must have the same return column names";
                return Err(self.fail(Detail::DifferentColumnsInUnion, message, union.span));
            }
            whole.all = union.all;
            whole.branches.extend(next.branches);
        }
        Ok(whole)
    }

    /// A query without `UNION`, from a part on. Its names go out of scope after it.
    pub(super) fn single(&mut self, query: &ast::SingleQuery, first: usize) -> Result<Query> {
        if query.use_clause.is_some() {
            let message =
                "USE is not supported: the database is chosen by the address of the request";
            return Err(self.fail(Detail::Unsupported, message, Span::new(0, 0)));
        }
        let before = self.names.enter();
        let mut chain = Chain::default();
        let last = match &query.kind {
            ast::SingleQueryKind::SinglePart(part) => part,
            ast::SingleQueryKind::MultiPart(parts) => {
                for part in parts.parts.iter().skip(first) {
                    self.part(&part.reading_clauses, &part.updating_clauses, &mut chain)?;
                    self.with(&part.with, &mut chain)?;
                }
                &parts.final_part
            }
        };
        let (updates, result): (&[_], _) = match &last.body {
            ast::SinglePartBody::Return(result) => (&[], Some(result)),
            ast::SinglePartBody::Updating { updating, return_clause } => {
                (updating, return_clause.as_ref())
            }
            ast::SinglePartBody::Finish(_) => (&[], None),
        };
        self.part(&last.reading_clauses, updates, &mut chain)?;
        let (columns, result) = match result {
            Some(result) => {
                let columns = self.result(result, &mut chain)?;
                let (names, slots) = columns.into_iter().unzip();
                (names, Some(slots))
            }
            None => (Vec::new(), None),
        };
        self.names.leave(before);
        let branch = SingleQuery { clauses: chain.clauses, result, visible: chain.visible };
        Ok(Query { branches: vec![branch], all: true, columns })
    }

    fn part(
        &mut self,
        reading: &[ast::ReadingClause],
        updating: &[ast::UpdatingClause],
        chain: &mut Chain,
    ) -> Result<()> {
        let first_update = updating.first().map(update_span);
        for clause in reading {
            let span = reading_span(clause);
            // The parser's AST separates the two kinds and so loses their order.
            if first_update.is_some_and(|update| update.start < span.start) {
                let message = "WITH is required between an updating clause and a reading clause";
                return Err(self.fail(Detail::InvalidClauseComposition, message, span));
            }
            let clause = self.reading(clause)?;
            self.push(chain, clause)?;
        }
        for clause in updating {
            let clause = self.updating(clause)?;
            self.push(chain, clause)?;
        }
        Ok(())
    }

    /// Adds a clause to the chain, with the names in scope after it.
    pub(super) fn push(&mut self, chain: &mut Chain, clause: Clause) -> Result<()> {
        let own = self.names.own();
        let visible = match (chain.clauses.last(), &clause, chain.visible.last_mut()) {
            // The planner needs nothing between two `CREATE`, and names are only added there.
            (Some(Clause::Create(_)), Clause::Create(_), Some(visible)) => {
                let new = own.get(chain.names..).unwrap_or_default();
                let mut visible = std::mem::take(visible);
                visible.extend(new.iter().map(|(_, slot)| *slot));
                visible
            }
            _ => {
                self.take_cells(self.names.own().len())?;
                self.names.own_slots()
            }
        };
        chain.names = self.names.own().len();
        chain.clauses.push(clause);
        chain.visible.push(visible);
        Ok(())
    }

    fn reading(&mut self, clause: &ast::ReadingClause) -> Result<Clause> {
        match clause {
            ast::ReadingClause::Match(clause) => self.lower_match(clause).map(Clause::Match),
            ast::ReadingClause::Unwind(clause) => {
                let list = self.expression(&clause.expression)?;
                let variable = self.declare(&clause.variable.name.name);
                Ok(Clause::Unwind(Unwind { list, variable }))
            }
            ast::ReadingClause::InQueryCall(clause) => {
                let items = clause.yield_items.as_ref();
                self.call(&clause.call, items, false).map(|(call, _)| Clause::CallProcedure(call))
            }
            ast::ReadingClause::CallSubquery(clause) => {
                self.call_subquery(clause).map(Clause::CallSubquery)
            }
            ast::ReadingClause::LoadCsv(clause) => self.load_csv(clause).map(Clause::LoadCsv),
        }
    }

    fn load_csv(&mut self, clause: &clause::LoadCsv) -> Result<LoadCsv> {
        let terminator = match &clause.field_terminator {
            None => b',',
            Some(text) => match text.value.as_bytes() {
                [one] if one.is_ascii() && !matches!(one, b'"' | b'\n' | b'\r' | b'\\') => *one,
                _ => {
                    let message = "FIELDTERMINATOR must be one ASCII character, and no quotation \
                                   mark, backslash or line break";
                    return Err(self.fail(Detail::InvalidArgumentValue, message, clause.span));
                }
            },
        };
        let source = self.expression(&clause.source)?;
        let name = &clause.variable.name.name;
        if self.names.own().iter().any(|(known, _)| **known == **name) {
            let message = format!("Variable `{name}` already declared");
            return Err(self.fail(Detail::VariableAlreadyBound, message, clause.span));
        }
        // The parser's analysis takes the name for one that is read.
        self.exported.push(name.as_str().into());
        let variable = self.declare(name);
        Ok(LoadCsv { source, with_headers: clause.with_headers, terminator, variable })
    }

    fn lower_match(&mut self, clause: &clause::Match) -> Result<Match> {
        let mut conditions = Vec::new();
        let (patterns, introduced) = self.patterns(&clause.pattern, &mut conditions)?;
        if let Some(predicate) = &clause.where_clause {
            conditions.push(self.expression(predicate)?);
        }
        let predicate = super::lower_operators::all_of(conditions);
        Ok(Match { optional: clause.optional, patterns, predicate, introduced })
    }

    fn call_subquery(&mut self, clause: &ast::CallSubquery) -> Result<CallSubquery> {
        // `IN TRANSACTIONS` is the transaction of the whole statement: all of its rows or none.
        self.take_cells_of_subquery()?;
        // Only imported names are visible inside; the import is a WITH of plain names.
        let hidden = std::mem::take(&mut self.names);
        let mut whole: Option<Query> = None;
        let unions = clause.query.unions.iter();
        let branches = std::iter::once((&clause.query.single_query, true))
            .chain(unions.map(|union| (&union.single_query, union.all)));
        for (branch, all) in branches {
            self.take_cells(hidden.mark())?;
            let imports = Imports::of(branch);
            let first = usize::from(!matches!(&imports, Imports::Names(names) if names.is_empty()));
            let mark = self.names.mark();
            match imports {
                Imports::All => {
                    for (name, slot) in hidden.all() {
                        self.names.push(name, *slot);
                    }
                }
                Imports::Names(names) => {
                    for name in names {
                        let slot = hidden
                            .get(&name.name)
                            .ok_or_else(|| self.undefined(&name.name, name.span))?;
                        self.names.push(&name.name, slot);
                    }
                }
            }
            let query = self.single(branch, first)?;
            self.names.forget(mark);
            match &mut whole {
                None => whole = Some(query),
                Some(whole) => {
                    whole.all = all;
                    whole.branches.extend(query.branches);
                }
            }
        }
        self.names = hidden;
        let query = whole.unwrap_or(Query { branches: Vec::new(), all: true, columns: Vec::new() });
        self.note_exported(clause, &query)?;
        let introduced = query.columns.clone().iter().map(|name| self.declare(name)).collect();
        Ok(CallSubquery { query, introduced })
    }

    /// Notes the columns of a subquery that ends in `RETURN *`: the analysis, which does not know
    /// them, cannot tell that one is declared already.
    fn note_exported(&mut self, clause: &ast::CallSubquery, query: &Query) -> Result<()> {
        if !returns_all(&clause.query.single_query) {
            return Ok(());
        }
        for name in &query.columns {
            if self.names.own().iter().any(|(known, _)| known == name) {
                let message = format!("Variable `{name}` already declared");
                return Err(self.fail(Detail::VariableAlreadyBound, message, clause.span));
            }
        }
        self.exported.extend(query.columns.iter().cloned());
        Ok(())
    }

    /// The error for an undefined name.
    pub(super) fn undefined(&self, name: &str, span: Span) -> Error {
        self.fail(Detail::UndefinedVariable, format!("Variable `{name}` not defined"), span)
    }

    /// A standalone `CALL name …`: its yielded columns are the result.
    pub(super) fn standalone_call(&mut self, clause: &call::StandaloneCall) -> Result<Query> {
        let items = match &clause.yield_items {
            Some(call::YieldSpec::Items(items)) => Some(items),
            Some(call::YieldSpec::Star { .. }) | None => None,
        };
        let (call, columns) = self.call(&clause.call, items, true)?;
        let mut chain = Chain::default();
        self.push(&mut chain, Clause::CallProcedure(call))?;
        let (columns, slots): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let result = if slots.is_empty() { None } else { Some(slots) };
        let branch = SingleQuery { clauses: chain.clauses, result, visible: chain.visible };
        Ok(Query { branches: vec![branch], all: true, columns })
    }

    fn call(
        &mut self,
        invocation: &call::ProcedureInvocation,
        items: Option<&call::YieldItems>,
        standalone: bool,
    ) -> Result<(CallProcedure, NamedSlots)> {
        let name = super::lower_expression::dotted(&invocation.name.name);
        let Some(procedure) = self.procedures.find(&name) else {
            let message = format!(
                "There is no procedure with the name `{name}` registered for this database instance."
            );
            let error =
                Error::compile(ErrorKind::ProcedureError, Detail::ProcedureNotFound, message);
            return Err(self.source.at(error, invocation.span.start));
        };
        let arguments = self.arguments(invocation, &procedure.arguments(), standalone)?;
        let shape = procedure.yields();
        let mut yields = Vec::new();
        let fields: Vec<(String, String, Span)> = match items {
            Some(items) => (items.items.iter())
                .map(|item| {
                    let alias =
                        item.alias.as_ref().map_or(&item.procedure_field, |alias| &alias.name);
                    (item.procedure_field.name.clone(), alias.name.clone(), alias.span)
                })
                .collect(),
            None if standalone => (shape.iter())
                .map(|field| (field.clone(), field.clone(), invocation.span))
                .collect(),
            None => Vec::new(),
        };
        let mut columns = Vec::new();
        for (field, alias, span) in fields {
            if !shape.contains(&field) {
                return Err(self.undefined(&field, span));
            }
            self.take_cells(self.names.own().len())?;
            if self.names.own().iter().any(|(known, _)| **known == *alias) {
                let message = format!("Variable `{alias}` already declared");
                return Err(self.fail(Detail::VariableAlreadyBound, message, span));
            }
            let slot = self.declare(&alias);
            yields.push((field.into(), slot));
            columns.push((alias.into(), slot));
        }
        let predicate = items.and_then(|items| items.where_clause.as_ref());
        let predicate = predicate.map(|predicate| self.expression(predicate)).transpose()?;
        let mode = procedure.mode();
        Ok((CallProcedure { name: name.into(), mode, arguments, yields, predicate }, columns))
    }

    fn arguments(
        &mut self,
        invocation: &call::ProcedureInvocation,
        wanted: &[Argument],
        standalone: bool,
    ) -> Result<Vec<Expression>> {
        if invocation.implicit_arguments {
            let required = wanted.iter().filter(|argument| !argument.is_optional);
            let required: Vec<_> = required.collect();
            if !standalone && !required.is_empty() {
                let message =
                    "Procedure call inside a query does not support passing arguments implicitly";
                return Err(self.fail(
                    Detail::InvalidArgumentPassingMode,
                    message,
                    invocation.span,
                ));
            }
            let mut given: Vec<_> =
                required.iter().map(|argument| self.parameter(&argument.name)).collect();
            given.resize(wanted.len(), Expression::Null);
            return Ok(given);
        }
        let given = &invocation.name.arguments;
        let least = wanted.iter().filter(|argument| !argument.is_optional).count();
        if given.len() < least || given.len() > wanted.len() {
            let message = format!(
                "Procedure call provides {} arguments, but {least} are required",
                given.len()
            );
            return Err(self.fail(Detail::InvalidNumberOfArguments, message, invocation.span));
        }
        let mut arguments = Vec::with_capacity(given.len());
        for (given, wanted) in given.iter().zip(wanted) {
            let argument = self.expression(given)?;
            if !is_taken(&argument, wanted.kind) {
                let message = format!("The argument '{}' has the wrong type", wanted.name);
                return Err(self.fail(Detail::InvalidArgumentType, message, invocation.span));
            }
            arguments.push(argument);
        }
        arguments.resize(wanted.len(), Expression::Null);
        Ok(arguments)
    }
}

/// Whether an argument can have a type, as far as the text shows.
fn is_taken(argument: &Expression, kind: ArgumentType) -> bool {
    use ArgumentType::{Any, Boolean, Float, Integer, List, Map, Number, String};
    match argument {
        Expression::Boolean(_) => matches!(kind, Any | Boolean),
        Expression::Integer(_) => matches!(kind, Any | Integer | Float | Number),
        Expression::Float(_) => matches!(kind, Any | Float | Number),
        Expression::String(_) => matches!(kind, Any | String),
        Expression::List(_) => matches!(kind, Any | List),
        Expression::Map(_) => matches!(kind, Any | Map),
        _ => true,
    }
}

/// The lowered clauses, and the slots in scope after each.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) clauses: Vec<Clause>,
    pub(super) visible: Vec<Vec<Slot>>,
    /// Number of names in scope after the last.
    names: usize,
}

/// What the importing `WITH` at the start of a subquery makes visible in it.
enum Imports<'a> {
    /// These names; none without such a clause.
    Names(Vec<&'a decypher::ast::names::SymbolicName>),
    All,
}

impl Imports<'_> {
    fn of(query: &ast::SingleQuery) -> Imports<'_> {
        use decypher::ast::expr::Expression as Tree;
        let none = Imports::Names(Vec::new());
        let ast::SingleQueryKind::MultiPart(parts) = &query.kind else { return none };
        let Some(first) = parts.parts.first() else { return none };
        let with = &first.with;
        let is_plain = first.reading_clauses.is_empty()
            && first.updating_clauses.is_empty()
            && !with.distinct
            && with.order.is_none()
            && with.skip.is_none()
            && with.limit.is_none()
            && with.where_clause.is_none();
        if !is_plain {
            return none;
        }
        if with.star {
            return if with.items.is_empty() { Imports::All } else { none };
        }
        let names = with.items.iter().map(|item| match &item.expression {
            Tree::Variable(variable) if item.alias.is_none() => Some(&variable.name),
            _ => None,
        });
        Imports::Names(names.collect::<Option<Vec<_>>>().unwrap_or_default())
    }
}

fn reading_span(clause: &ast::ReadingClause) -> Span {
    match clause {
        ast::ReadingClause::Match(clause) => clause.span,
        ast::ReadingClause::Unwind(clause) => clause.span,
        ast::ReadingClause::InQueryCall(clause) => clause.span,
        ast::ReadingClause::CallSubquery(clause) => clause.span,
        ast::ReadingClause::LoadCsv(clause) => clause.span,
    }
}

fn update_span(clause: &ast::UpdatingClause) -> Span {
    match clause {
        ast::UpdatingClause::Create(clause) => clause.span,
        ast::UpdatingClause::Merge(clause) => clause.span,
        ast::UpdatingClause::Delete(clause) => clause.span,
        ast::UpdatingClause::Set(clause) => clause.span,
        ast::UpdatingClause::Remove(clause) => clause.span,
        ast::UpdatingClause::Foreach(clause) => clause.span,
    }
}

/// Names and their slots, in order.
pub(super) type NamedSlots = Vec<(std::sync::Arc<str>, Slot)>;

/// Whether a query ends in `RETURN *`.
fn returns_all(query: &ast::SingleQuery) -> bool {
    let last = match &query.kind {
        ast::SingleQueryKind::SinglePart(part) => part,
        ast::SingleQueryKind::MultiPart(parts) => &parts.final_part,
    };
    match &last.body {
        ast::SinglePartBody::Return(result) => result.star,
        ast::SinglePartBody::Updating { return_clause, .. } => {
            return_clause.as_ref().is_some_and(|result| result.star)
        }
        ast::SinglePartBody::Finish(_) => false,
    }
}
