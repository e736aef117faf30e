//! What the parser and its analysis object to, in our words.

use decypher::{CypherError, ErrorKind as Kind};

use super::Source;
use crate::error::{Detail, Error, ErrorKind};

/// The error for what the parser or its analysis found.
pub(super) fn error(found: &CypherError, source: &Source<'_>) -> Error {
    let (kind, detail) = classify(&found.kind);
    source.at(Error::compile(kind, detail, message(&found.kind)), found.span.start)
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
        // The parser's last resort, when a production is not there: the reader needs no word of its inside.
        Kind::Internal { .. } => {
            "Invalid input: this is no Cypher that is understood here".to_owned()
        }
        Kind::Unsupported { production } => format!("Not supported yet: {production}"),
        other => {
            let text = other.to_string();
            let mut letters = text.chars();
            letters
                .next()
                .map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

/// Whether an objection can be made from the text alone. A value of the wrong type in an index or in a call is one of
/// execution, as the TCK has it: the row may never come.
pub(super) fn is_for_the_text(found: &CypherError) -> bool {
    match &found.kind {
        Kind::InvalidArgumentType { context, .. } => {
            let context = context.to_ascii_lowercase();
            !(context.contains("index") || context.contains("range()"))
        }
        _ => true,
    }
}
