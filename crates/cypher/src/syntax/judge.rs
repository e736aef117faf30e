//! Translates the objections of the parser and its analysis to our errors.

use std::sync::Arc;

use decypher::{CypherError, ErrorKind as Kind, Expected, ValueTypes};

use super::scan::{Token, TokenKind};
use super::{Source, guard, scan};
use crate::error::{Detail, Error, ErrorKind};
use crate::functions;

/// The error for an objection of the parser or its analysis.
pub(super) fn error(found: &CypherError, source: &Source<'_>) -> Error {
    let (kind, detail) = in_place(found, source).unwrap_or_else(|| classify(&found.kind));
    let message = match &found.kind {
        Kind::Internal { .. } => stumbled(source.text, found.span.start),
        kind => message(kind),
    };
    source.at(Error::compile(kind, detail, message), found.span.start)
}

/// The message for an internal production of the parser that failed: it names the position but no
/// internals.
fn stumbled(text: &str, at: usize) -> String {
    let rest = text.get(at..).unwrap_or_default();
    let first = scan::tokens(rest).into_iter().next().and_then(|token| rest.get(token.span));
    match first {
        Some(word) => format!("Invalid input '{word}': something is missing or incomplete here"),
        None => "Unexpected end of input: something is missing or incomplete here".to_owned(),
    }
}

/// Objections whose detail depends on their position.
fn in_place(found: &CypherError, source: &Source<'_>) -> Option<(ErrorKind, Detail)> {
    let before = source.text.get(..found.span.start).unwrap_or_default();
    let tokens = scan::tokens(before);
    let detail = match &found.kind {
        Kind::RedeclaredVariable { .. } if is_in_projection(before, &tokens) => {
            Detail::ColumnNameConflict
        }
        Kind::AggregateNotAllowed { .. } if is_in_aggregate(before, &tokens) => {
            Detail::NestedAggregation
        }
        Kind::UnexpectedToken { expected, found } => {
            let is = |symbol: &str| matches!(expected.as_slice(), [Expected::Symbol(it)] if it == symbol);
            let first = found.chars().next()?;
            if is("(") && found.to_ascii_uppercase().starts_with("YIELD") {
                Detail::InvalidArgumentPassingMode
            } else if is("]") && matches!(found.as_str(), ".." | "-") {
                Detail::InvalidRelationshipPattern
            } else if before.ends_with(|it: char| it.is_ascii_digit()) && first.is_alphanumeric() {
                Detail::InvalidNumberLiteral
            } else if !first.is_ascii() && !first.is_alphanumeric() {
                Detail::InvalidUnicodeCharacter
            } else {
                return None;
            }
        }
        _ => return None,
    };
    Some((ErrorKind::SyntaxError, detail))
}

/// Whether the text after this belongs to `WITH` or `RETURN`.
fn is_in_projection(text: &str, tokens: &[Token]) -> bool {
    let is_clause = |at: &usize| {
        let follows_part = at
            .checked_sub(1)
            .and_then(|at| tokens.get(at))
            .is_some_and(|token| token.is_word(text, "STARTS") || token.is_word(text, "ENDS"));
        let token = tokens.get(*at);
        let is = |word: &str| token.is_some_and(|token| token.is_word(text, word));
        !follows_part && guard::CLAUSES.iter().any(|word| is(word))
    };
    let clause = (0..tokens.len()).rev().find(is_clause).and_then(|at| tokens.get(at));
    clause.is_some_and(|token| token.is_word(text, "WITH") || token.is_word(text, "RETURN"))
}

/// Whether the text after this is inside the brackets of an aggregation.
fn is_in_aggregate(text: &str, tokens: &[Token]) -> bool {
    let mut closed = 0_usize;
    for (at, token) in tokens.iter().enumerate().rev() {
        match token.kind {
            TokenKind::Symbol(b')' | b']' | b'}') => closed += 1,
            TokenKind::Symbol(b'(' | b'[' | b'{') if closed > 0 => closed -= 1,
            TokenKind::Symbol(b'(') => {
                let name = at.checked_sub(1).and_then(|at| tokens.get(at));
                let name = name.and_then(|token| text.get(token.span.clone())).unwrap_or_default();
                if functions::aggregate(name).is_some() {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

fn classify(kind: &Kind) -> (ErrorKind, Detail) {
    let detail = match kind {
        Kind::InvalidEscape { .. } => Detail::InvalidUnicodeLiteral,
        Kind::InvalidNumber { raw, reason } => number(raw, reason),
        Kind::UnresolvedVariable { .. } | Kind::InvalidReference { .. } => {
            Detail::UndefinedVariable
        }
        Kind::RedeclaredVariable { .. } => Detail::VariableAlreadyBound,
        Kind::AggregationMix { .. } => Detail::AmbiguousAggregationExpression,
        Kind::DistinctNotAllowed | Kind::AggregateNotAllowed { .. } => Detail::InvalidAggregation,
        Kind::UnionColumnMismatch => Detail::DifferentColumnsInUnion,
        Kind::InvalidClauseComposition { .. } => Detail::InvalidClauseComposition,
        Kind::InvalidRelationshipPattern { reason } => relationship(reason),
        Kind::InvalidDeleteTarget => Detail::InvalidDelete,
        Kind::MissingAlias => Detail::NoExpressionAlias,
        Kind::NoVariablesInScope => Detail::NoVariablesInScope,
        Kind::InvalidSkipLimit { reason } if reason.contains("negative") => {
            Detail::NegativeIntegerArgument
        }
        Kind::InvalidSkipLimit { reason } if reason.contains("integer") => {
            Detail::InvalidArgumentType
        }
        Kind::InvalidSkipLimit { .. } | Kind::NonDeterministicAggregate => {
            Detail::NonConstantExpression
        }
        Kind::InvalidParameterUse => Detail::InvalidParameterUse,
        // The TCK has a syntax error for an expression known to be a path, and a type error for
        // other values.
        Kind::InvalidArgumentType { context, found, .. }
            if context.starts_with("property") && *found != ValueTypes::PATH =>
        {
            return (ErrorKind::TypeError, Detail::InvalidArgumentType);
        }
        Kind::InvalidArgumentType { .. } => Detail::InvalidArgumentType,
        Kind::InvalidNumberOfArguments { .. } => Detail::InvalidNumberOfArguments,
        Kind::UnknownFunction { .. } => Detail::UnknownFunction,
        Kind::ProcedureNotFound { .. } => {
            return (ErrorKind::ProcedureError, Detail::ProcedureNotFound);
        }
        Kind::VariableTypeConflict { .. } => Detail::VariableTypeConflict,
        Kind::Unsupported { .. } => Detail::Unsupported,
        _ => Detail::UnexpectedSyntax,
    };
    (ErrorKind::SyntaxError, detail)
}

fn number(raw: &str, reason: &decypher::error::NumberReason) -> Detail {
    use decypher::error::NumberReason;
    let is_float = !raw.starts_with("0x") && raw.contains(['.', 'e', 'E']);
    match reason {
        NumberReason::Overflow if is_float => Detail::FloatingPointOverflow,
        NumberReason::Overflow => Detail::IntegerOverflow,
        _ => Detail::InvalidNumberLiteral,
    }
}

fn relationship(reason: &str) -> Detail {
    if reason.contains("direction") {
        Detail::RequiresDirectedRelationship
    } else if reason.contains("variable-length") {
        Detail::CreatingVarLength
    } else if reason.contains("twice") {
        Detail::RelationshipUniquenessViolation
    } else {
        Detail::NoSingleRelationshipType
    }
}

fn message(kind: &Kind) -> String {
    match kind {
        Kind::UnresolvedVariable { name } => format!("Variable `{name}` not defined"),
        Kind::RedeclaredVariable { name, .. } => format!("Variable `{name}` already declared"),
        Kind::UnknownFunction { name } => format!("Unknown function '{name}'"),
        Kind::ProcedureNotFound { name } => format!(
            "There is no procedure with the name `{name}` registered for this database instance."
        ),
        Kind::EmptyInput => "Unexpected end of input: expected a statement".to_owned(),
        Kind::Unsupported { production } => format!("Not supported yet: {production}"),
        Kind::UnexpectedToken { found, .. } => {
            let text = kind.to_string();
            let expected = text.strip_prefix(&format!("unexpected token `{found}`, "));
            format!("Invalid input '{found}': {}", expected.unwrap_or(&text))
        }
        Kind::UnexpectedEof { .. } => {
            let text = kind.to_string();
            let expected = text.strip_prefix("unexpected end of input, ");
            format!("Unexpected end of input: {}", expected.unwrap_or(&text))
        }
        other => {
            let text = other.to_string();
            let mut letters = text.chars();
            letters
                .next()
                .map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

/// Whether an objection concerns the text alone. A value of the wrong type in an index or a call is
/// a runtime error in the TCK: the row may never occur. Names that subqueries return with `*` are
/// known to lowering only.
///
/// The analysis does not count types from expressions either, but lowering does.
pub(super) fn is_for_the_text(found: &CypherError, text: &str, exported: &[Arc<str>]) -> bool {
    match &found.kind {
        Kind::InvalidRelationshipPattern { reason }
            if relationship(reason) == Detail::NoSingleRelationshipType =>
        {
            let pattern = text.get(found.span.start..found.span.end);
            !pattern.is_some_and(|pattern| pattern.contains("$("))
        }
        Kind::UnresolvedVariable { name } => !exported.iter().any(|known| **known == *name),
        Kind::NoVariablesInScope => exported.is_empty(),
        Kind::InvalidArgumentType { context, .. } => {
            let context = context.to_ascii_lowercase();
            !(context.contains("index") || context.contains("range()"))
        }
        _ => true,
    }
}
