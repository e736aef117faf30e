//! What goes wrong with a statement: for people a message, for clients Neo4j's code, for the
//! openCypher Technology Compatibility Kit (TCK) a type, a phase and a detail.

use std::fmt;
use wellspring_graph::{GraphError, Violation};

/// The result of anything that a statement may fail at.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The type, in the words of the TCK.
    pub kind: ErrorKind,
    /// Whether it was seen before the first row or while executing.
    pub phase: Phase,
    /// What exactly, in the words of the TCK.
    pub detail: Detail,
    /// For people.
    pub message: String,
    /// Where in the text that is which is at fault, if it is known.
    pub place: Option<Box<TextPlace>>,
}

/// A place in the text of a statement. Its words are those of Neo4j.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPlace {
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
    /// How many characters stand before it in the text.
    pub offset: u32,
    /// As much of the line as a person wants to see.
    pub excerpt: String,
    /// How many characters of the excerpt stand before the place.
    pub before: usize,
}

impl TextPlace {
    /// Most characters of a line that are shown on either side.
    const MOST_SHOWN: usize = 60;

    /// The place at a byte of a text, or at its end.
    pub fn at(text: &str, byte: usize) -> Self {
        let byte = text.floor_char_boundary(byte.min(text.len()));
        let (before, behind) = text.split_at(byte);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let left = before.rsplit('\n').next().unwrap_or_default();
        let right = behind.split(['\n', '\r']).next().unwrap_or_default();
        let column = left.chars().count();
        let skipped = column.saturating_sub(Self::MOST_SHOWN);
        let shown = left.chars().skip(skipped).chain(right.chars().take(Self::MOST_SHOWN));
        Self {
            line: number(before.matches('\n').count() + 1),
            column: number(column + 1),
            offset: number(before.chars().count()),
            excerpt: shown.collect(),
            before: column - skipped,
        }
    }
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, offset, excerpt, before } = self;
        let indent = " ".repeat(before + 1);
        write!(f, "(line {line}, column {column} (offset: {offset}))\n\"{excerpt}\"\n{indent}^")
    }
}

/// When an error is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// From the text alone (and the parameters' names).
    Compile,
    /// While executing.
    Runtime,
}

/// The type of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is no Cypher, or its names and types do not go together.
    SyntaxError,
    /// The text is Cypher, but cannot be executed sensibly.
    SemanticError,
    /// A parameter that the statement names is not given.
    ParameterMissing,
    /// A value of a type that an operator, function or property cannot take.
    TypeError,
    /// A value of the right type, but out of bounds or malformed.
    ArgumentError,
    /// A number too large for 64 bits, or a division of an integer by zero.
    ArithmeticError,
    /// A node or relationship that is not or no longer there.
    EntityNotFound,
    /// A constraint of the graph would not hold.
    ConstraintVerificationFailed,
    /// A schema command that cannot be: an index or constraint of this name is there, or is not.
    SchemaError,
    /// A procedure that is not there or refused.
    ProcedureError,
    /// A write in a transaction that only reads.
    AccessMode,
    /// More steps, rows or bytes than a statement may take.
    ResourceExhausted,
    /// The deadline passed or the client went away.
    Terminated,
    /// What the transaction read was changed by another before it could be committed.
    Outdated,
    /// A defect of this program.
    Internal,
}

macro_rules! details {
    ($($name:ident),* $(,)?) => {
        /// What exactly is wrong, in the words of the TCK.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the words are the TCK's own and stand for themselves")]
        pub enum Detail { $($name),* }

        impl Detail {
            /// As the TCK writes it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

details! {
    AmbiguousAggregationExpression, Cancelled, ColumnNameConflict, ConstraintViolation, CreatingVarLength, DeleteConnectedNode,
    DeletedEntityAccess, DifferentColumnsInUnion, DivisionByZero, FloatingPointOverflow, IntegerOverflow,
    InvalidAggregation, InvalidArgumentPassingMode, InvalidArgumentType, InvalidArgumentValue,
    InvalidClauseComposition, InvalidDelete, InvalidNumberLiteral, InvalidNumberOfArguments, InvalidParameterUse,
    InvalidPropertyType, InvalidRelationshipPattern, InvalidUnicodeCharacter, InvalidUnicodeLiteral, LimitExceeded,
    ListElementAccessByNonInteger, MapElementAccessByNonString, MergeReadOwnWrites, MissingParameter,
    NegativeIntegerArgument, NestedAggregation, NoExpressionAlias, NoSingleRelationshipType, NoVariablesInScope,
    NonConstantExpression, NumberOutOfRange, Overtaken, ProcedureNotFound, PropertyAccessOnNonMap, ReadOnly, RelationshipUniquenessViolation,
    RequiresDirectedRelationship, SchemaRuleExists, SchemaRuleMissing, SchemaWithData, TimeLimit, UndefinedVariable, UnexpectedSyntax,
    UnknownFunction, Unsupported, VariableAlreadyBound, VariableTypeConflict, Defect,
}

impl ErrorKind {
    /// As the TCK writes it, for the kinds it knows.
    pub fn name(self) -> &'static str {
        match self {
            Self::SyntaxError => "SyntaxError",
            Self::SemanticError => "SemanticError",
            Self::ParameterMissing => "ParameterMissing",
            Self::TypeError => "TypeError",
            Self::ArgumentError => "ArgumentError",
            Self::ArithmeticError => "ArithmeticError",
            Self::EntityNotFound => "EntityNotFound",
            Self::ConstraintVerificationFailed => "ConstraintVerificationFailed",
            Self::SchemaError => "SchemaError",
            Self::ProcedureError => "ProcedureError",
            Self::AccessMode => "AccessMode",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::Terminated => "Terminated",
            Self::Outdated => "Outdated",
            Self::Internal => "Internal",
        }
    }
}

impl Error {
    /// An error while executing.
    pub fn runtime(kind: ErrorKind, detail: Detail, message: impl Into<String>) -> Self {
        Self { kind, phase: Phase::Runtime, detail, message: message.into(), place: None }
    }

    /// An error in the text.
    pub fn compile(kind: ErrorKind, detail: Detail, message: impl Into<String>) -> Self {
        Self { kind, phase: Phase::Compile, detail, message: message.into(), place: None }
    }

    /// A value of a type that cannot be taken.
    pub fn type_error(detail: Detail, message: impl Into<String>) -> Self {
        Self::runtime(ErrorKind::TypeError, detail, message)
    }

    /// A value of the right type that is out of bounds or malformed.
    pub fn argument(detail: Detail, message: impl Into<String>) -> Self {
        Self::runtime(ErrorKind::ArgumentError, detail, message)
    }

    /// A defect of this program: what was thought impossible.
    pub fn defect(message: impl Into<String>) -> Self {
        Self::runtime(ErrorKind::Internal, Detail::Defect, message)
    }

    /// The same error with the place of what is at fault in the text.
    #[must_use]
    pub fn at(mut self, place: TextPlace) -> Self {
        self.place = Some(Box::new(place));
        self
    }

    /// Neo4j's code. Only those of `Neo.TransientError` are worth a retry.
    pub fn code(&self) -> &'static str {
        match (self.kind, self.detail) {
            (ErrorKind::SyntaxError, _) => "Neo.ClientError.Statement.SyntaxError",
            (ErrorKind::SemanticError, _) => "Neo.ClientError.Statement.SemanticError",
            (ErrorKind::ParameterMissing, _) => "Neo.ClientError.Statement.ParameterMissing",
            (ErrorKind::TypeError, _) => "Neo.ClientError.Statement.TypeError",
            (ErrorKind::ArgumentError, _) => "Neo.ClientError.Statement.ArgumentError",
            (ErrorKind::ArithmeticError, _) => "Neo.ClientError.Statement.ArithmeticError",
            (ErrorKind::EntityNotFound, _) => "Neo.ClientError.Statement.EntityNotFound",
            (ErrorKind::ConstraintVerificationFailed, _) => {
                "Neo.ClientError.Schema.ConstraintValidationFailed"
            }
            (ErrorKind::SchemaError, Detail::SchemaRuleExists) => {
                "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"
            }
            (ErrorKind::SchemaError, Detail::SchemaWithData) => {
                "Neo.ClientError.Transaction.ForbiddenDueToTransactionType"
            }
            (ErrorKind::AccessMode, _) => "Neo.ClientError.Statement.AccessMode",
            (ErrorKind::SchemaError, _) => "Neo.DatabaseError.Schema.SchemaRuleNotFound",
            (ErrorKind::ProcedureError, Detail::ProcedureNotFound) => {
                "Neo.ClientError.Procedure.ProcedureNotFound"
            }
            (ErrorKind::ProcedureError, _) => "Neo.ClientError.Procedure.ProcedureCallFailed",
            (ErrorKind::ResourceExhausted, _) => {
                "Neo.TransientError.General.MemoryPoolOutOfMemoryError"
            }
            (ErrorKind::Terminated, Detail::TimeLimit) => {
                "Neo.ClientError.Transaction.TransactionTimedOut"
            }
            (ErrorKind::Terminated, _) => "Neo.TransientError.Transaction.Terminated",
            (ErrorKind::Outdated, _) => "Neo.TransientError.Transaction.Outdated",
            (ErrorKind::Internal, _) => "Neo.DatabaseError.Statement.ExecutionFailed",
        }
    }
}

impl From<GraphError> for Error {
    fn from(error: GraphError) -> Self {
        let (kind, detail) = match &error {
            GraphError::Deleted(_) => (ErrorKind::EntityNotFound, Detail::DeletedEntityAccess),
            GraphError::NotStorable => (ErrorKind::TypeError, Detail::InvalidPropertyType),
            GraphError::NotAName
            | GraphError::TooManyLabels
            | GraphError::TooManyProperties
            | GraphError::BadSchemaItem => (ErrorKind::ArgumentError, Detail::InvalidArgumentValue),
            GraphError::OutOfIds | GraphError::OutOfNames => {
                (ErrorKind::ResourceExhausted, Detail::LimitExceeded)
            }
            GraphError::ReadOnly => (ErrorKind::AccessMode, Detail::ReadOnly),
            GraphError::NameTaken(_) | GraphError::Equivalent(_) => {
                (ErrorKind::SchemaError, Detail::SchemaRuleExists)
            }
            GraphError::NoSuchItem(_) => (ErrorKind::SchemaError, Detail::SchemaRuleMissing),
            GraphError::Violation(violation) => return violation.clone().into(),
        };
        Self::runtime(kind, detail, error.to_string())
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        let (kind, detail) = match &violation {
            Violation::StillConnected(_) => {
                (ErrorKind::ConstraintVerificationFailed, Detail::DeleteConnectedNode)
            }
            Violation::Duplicate { .. } | Violation::Missing { .. } => {
                (ErrorKind::ConstraintVerificationFailed, Detail::ConstraintViolation)
            }
            Violation::SchemaWithData => (ErrorKind::SchemaError, Detail::SchemaWithData),
            Violation::PropertyTooLarge { .. } | Violation::TransactionTooLarge { .. } => {
                (ErrorKind::ArgumentError, Detail::LimitExceeded)
            }
        };
        Self::runtime(kind, detail, violation.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.place {
            Some(place) => write!(f, " {place}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
