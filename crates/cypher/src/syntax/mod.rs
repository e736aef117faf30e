//! Parses text to a statement of the intermediate representation.
//!
//! This module encapsulates the parser `decypher`, which no other room uses. The parser checks
//! names, types and structure; lowering its AST is our code. Guards (the parser recurses) and
//! rewriting of unsupported syntax come first.

mod columns;
mod dynamic_labels;
mod guard;
mod judge;
mod lower;
mod lower_expression;
mod lower_operators;
mod lower_pattern;
mod lower_projection;
mod lower_update;
mod names;
mod precedence;
mod removal;
mod rewrite;
mod scan;
mod schema;
mod shape;
mod show;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use decypher::ast::query::QueryBody;
use decypher::{CypherError, ErrorKind as Kind};

use crate::error::{Detail, Error, ErrorKind, Result, TextPlace};
use crate::ir::{Statement, StatementBody};
use crate::procedure::Procedures;

/// Nesting of expressions up to which the ordinary stack suffices.
const SHALLOW: usize = 60;

/// The stack for deeper nesting, guards included.
const DEEP_STACK: usize = 64 << 20;

/// A statement, and whether its expressions are so deep that walks need [`with_stack`].
pub(crate) struct ParsedStatement {
    pub(crate) statement: Statement,
    /// The parameters it reads.
    pub(crate) parameters: Vec<Arc<str>>,
    /// Whether it is deep.
    pub(crate) deep: bool,
}

/// Runs on a separate stack if the statement is deep.
pub(crate) fn with_stack<R>(deep: bool, run: impl FnOnce() -> R) -> R {
    if deep { stacker::grow(DEEP_STACK, run) } else { run() }
}

pub(crate) fn parse(text: &str, procedures: &dyn Procedures) -> Result<ParsedStatement> {
    guard::check_length(text)?;
    let tokens = scan::tokens(text);
    if let Some((at, what)) = scan::unclosed(text, &tokens) {
        let message = format!("Invalid input: the {what} that begins here is never closed");
        let error = Error::compile(ErrorKind::SyntaxError, Detail::UnexpectedSyntax, message);
        return Err(Source::of(text).at_original(error, at));
    }
    if tokens.is_empty() {
        let message = "Unexpected end of input: expected a statement";
        let error = Error::compile(ErrorKind::SyntaxError, Detail::UnexpectedSyntax, message);
        return Err(Source::of(text).at_original(error, 0));
    }
    let depth = guard::check(text, &tokens)
        .map_err(|(error, at)| Source::of(text).at_original(error, at))?;
    let rewritten = rewrite::rewrite(text, &tokens);
    let source = Source { text: &rewritten.text, written: text, rewritten: Some(&rewritten) };
    let command = match tokens.first() {
        Some(first) if first.is_word(text, "EXPLAIN") || first.is_word(text, "PROFILE") => {
            tokens.get(1..).unwrap_or_default()
        }
        _ => tokens.as_slice(),
    };
    let explain = rewritten.explain;
    if let Some(change) = schema::schema_change(&Source::of(text), command)? {
        let parameters = schema::parameters(&change);
        let body = StatementBody::Schema(change);
        let statement = Statement { explain, body, width: 0, subqueries: Vec::new() };
        return Ok(ParsedStatement { statement, parameters, deep: false });
    }
    let lower::LoweredStatement { statement, parameters, .. } = stacker::grow(DEEP_STACK, || {
        // The parser is young. A text that makes it panic is refused without affecting other
        // requests.
        catch_unwind(AssertUnwindSafe(|| read(&source, explain, procedures))).unwrap_or_else(|_| {
            let message = "Invalid input: this text triggers a defect in the parser";
            Err(Error::compile(ErrorKind::SyntaxError, Detail::UnexpectedSyntax, message))
        })
    })?;
    Ok(ParsedStatement { statement, parameters, deep: depth > SHALLOW })
}

/// Number of words and signs of a text, on which the parser's time depends.
pub fn count_tokens(text: &str) -> usize {
    scan::tokens(text).len()
}

/// A text for the parser, mapped to the text as written.
pub(super) struct Source<'t> {
    /// The text for the parser.
    text: &'t str,
    /// The text as written.
    written: &'t str,
    rewritten: Option<&'t rewrite::RewrittenText<'t>>,
}

impl<'t> Source<'t> {
    /// A text that is parsed as written.
    fn of(text: &'t str) -> Self {
        Source { text, written: text, rewritten: None }
    }

    /// Adds the position of a byte of the parser's text.
    fn at(&self, error: Error, byte: usize) -> Error {
        self.at_original(error, self.original(byte))
    }

    /// The byte of the text as written that corresponds to a byte of the parser's text.
    fn original(&self, byte: usize) -> usize {
        self.rewritten.map_or(byte, |rewritten| rewritten.original(byte))
    }

    /// Adds the position of a byte of the text as written.
    fn at_original(&self, error: Error, byte: usize) -> Error {
        error.at(TextPlace::at(self.written, byte))
    }
}

/// Parses, checks and lowers. Everything that recurses is in here, including dropping the tree.
fn read(
    source: &Source<'_>,
    explain: bool,
    procedures: &dyn Procedures,
) -> Result<lower::LoweredStatement> {
    let mut parse = decypher::Parse::from(source.text);
    if let Some(objection) = shape::objection(&parse, source) {
        return Err(objection);
    }
    if let Some(text) = shape::without_idle_finish(&parse, source.text) {
        parse = decypher::Parse::from(text);
    }
    let columns = columns::Columns::of(&parse, source);
    let query = match decypher::parse(parse) {
        // A call can be the last clause, but the parser requires another after it.
        Err(CypherError { kind: Kind::MissingClause { after: "CALL", .. }, .. }) => {
            decypher::parse(format!("{}\nFINISH", source.text).as_str())
        }
        read => read,
    };
    let mut query = query.map_err(|error| judge::error(&error, source))?;
    precedence::mend(&mut query);
    // Lowered before it is analyzed, because only lowering has a limit on names in scope, which the
    // analysis copies too.
    let lowered = lower(&query.statements, explain, source, &columns, procedures);
    if lowered.as_ref().is_err_and(|error| error.detail == Detail::LimitExceeded) {
        return lowered;
    }
    let exported = lowered.as_ref().map_or(&[][..], |lowered| &lowered.exported);
    if let Err(found) = decypher::sema::analyze(&query)
        && let Some(first) =
            found.errors.iter().find(|error| judge::is_for_the_text(error, source.text, exported))
    {
        return Err(judge::error(first, source));
    }
    lowered
}

fn lower(
    bodies: &[QueryBody],
    explain: bool,
    source: &Source<'_>,
    columns: &columns::Columns,
    procedures: &dyn Procedures,
) -> Result<lower::LoweredStatement> {
    let [body] = bodies else {
        let message = "Expected exactly one statement per query";
        return Err(Error::compile(ErrorKind::SyntaxError, Detail::UnexpectedSyntax, message));
    };
    let mut lowering = lower::Lowering::new(source, columns, procedures);
    let query = match body {
        QueryBody::SingleQuery(single) => lowering.single(single, 0)?,
        QueryBody::Regular(regular) => lowering.regular(regular)?,
        QueryBody::Standalone(call) => lowering.standalone_call(call)?,
        QueryBody::SchemaCommand(_) | QueryBody::Show(_) | QueryBody::Use(_) => {
            let message = "This command is not supported";
            let error = Error::compile(ErrorKind::SyntaxError, Detail::Unsupported, message);
            return Err(source.at(error, 0));
        }
    };
    Ok(lowering.finish(explain, query))
}

#[cfg(test)]
mod tests;
