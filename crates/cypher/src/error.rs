//! Errors of statements: a message for people, Neo4j's code for clients, and a type, a phase and a
//! detail for the openCypher Technology Compatibility Kit (TCK).

use std::fmt;
use wellspring_graph::{GraphError, Violation};

/// The result of an operation that can fail a statement.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The type, in the words of the TCK.
    pub kind: ErrorKind,
    /// Whether it was detected before the first row or during execution.
    pub phase: Phase,
    /// The exact error, in the words of the TCK.
    pub detail: Detail,
    /// The message for people.
    pub message: String,
    /// The position in the text, if known.
    pub place: Option<Box<TextPlace>>,
}

/// A position in a statement's text. The terms are Neo4j's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPlace {
    /// Its line, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
    /// Number of characters before it in the text.
    pub offset: u32,
    /// An excerpt of the line.
    pub excerpt: String,
    /// Number of characters of the excerpt before the position.
    pub before: usize,
}

impl TextPlace {
    /// Maximum number of characters shown on either side.
    const MOST_SHOWN: usize = 60;

    /// The position of a byte of a text, or its end.
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

/// When an error is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// From the text alone (and the names of parameters).
    Compile,
    /// During execution.
    Runtime,
}

/// The type of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not valid Cypher, or its names and types are inconsistent.
    SyntaxError,
    /// The text is valid Cypher but cannot be executed.
    SemanticError,
    /// A parameter of the statement is missing.
    ParameterMissing,
    /// A value has a type that an operator, function or property does not accept.
    TypeError,
    /// A value has the right type but is out of range or malformed.
    ArgumentError,
    /// An integer overflow, or an integer division by zero.
    ArithmeticError,
    /// A node or relationship does not exist, or no longer exists.
    EntityNotFound,
    /// A constraint of the graph is violated.
    ConstraintVerificationFailed,
    /// An impossible schema command: an index or constraint with this name exists, or does not.
    SchemaError,
    /// A procedure does not exist or failed.
    ProcedureError,
    /// A write in a read-only transaction.
    AccessMode,
    /// The statement exceeds a limit of steps, rows or bytes.
    ResourceExhausted,
    /// The deadline has passed or the client has disconnected.
    Terminated,
    /// Another transaction changed what this one had read before it could commit.
    Outdated,
    /// A bug in this program.
    Internal,
}

macro_rules! details {
    ($($name:ident),* $(,)?) => {
        /// The exact error, in the words of the TCK.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the words are the TCK's own and stand for themselves")]
        pub enum Detail { $($name),* }

        impl Detail {
            /// The name in the TCK.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

details! {
    AmbiguousAggregationExpression, Cancelled, ColumnNameConflict, ConstraintViolation, CreatingVarLength, DeleteConnectedNode,
    DeletedEntityAccess, DifferentColumnsInUnion, DivisionByZero, ExternalResource, FloatingPointOverflow, IntegerOverflow,
    InvalidAggregation, InvalidArgumentPassingMode, InvalidArgumentType, InvalidArgumentValue,
    InvalidClauseComposition, InvalidDelete, InvalidNumberLiteral, InvalidNumberOfArguments, InvalidParameterUse,
    InvalidPropertyType, InvalidRelationshipPattern, InvalidUnicodeCharacter, InvalidUnicodeLiteral, LimitExceeded,
    ListElementAccessByNonInteger, MapElementAccessByNonString, MergeReadOwnWrites, MissingParameter,
    NegativeIntegerArgument, NestedAggregation, NoExpressionAlias, NoSingleRelationshipType, NoVariablesInScope,
    NonConstantExpression, NumberOutOfRange, Overtaken, ProcedureNotFound, PropertyAccessOnNonMap, ReadOnly, Refused, RelationshipUniquenessViolation,
    RequiresDirectedRelationship, SchemaRuleExists, SchemaRuleMissing, SchemaWithData, TimeLimit, UndefinedVariable, UnexpectedSyntax,
    UnknownFunction, Unsupported, VariableAlreadyBound, VariableTypeConflict, Defect,
}

impl ErrorKind {
    /// The name in the TCK, for the kinds that it has.
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
    /// An error during execution.
    pub fn runtime(kind: ErrorKind, detail: Detail, message: impl Into<String>) -> Self {
        Self { kind, phase: Phase::Runtime, detail, message: message.into(), place: None }
    }

    /// An error in the text.
    pub fn compile(kind: ErrorKind, detail: Detail, message: impl Into<String>) -> Self {
        Self { kind, phase: Phase::Compile, detail, message: message.into(), place: None }
    }

    /// A value of a type that is not accepted.
    pub fn type_error(detail: Detail, message: impl Into<String>) -> Self {
        Self::runtime(ErrorKind::TypeError, detail, message)
    }

    /// A value of the right type that is out of range or malformed.
    pub fn argument(detail: Detail, message: impl Into<String>) -> Self {
        Self::runtime(ErrorKind::ArgumentError, detail, message)
    }

    /// A bug in this program: a situation that cannot occur.
    pub fn defect(message: impl Into<String>) -> Self {
        Self::runtime(ErrorKind::Internal, Detail::Defect, message)
    }

    /// Adds the position in the text.
    #[must_use]
    pub fn at(mut self, place: TextPlace) -> Self {
        self.place = Some(Box::new(place));
        self
    }

    /// Neo4j's code. A retry can help only for codes of `Neo.TransientError`.
    pub fn code(&self) -> &'static str {
        match (self.kind, self.detail) {
            (ErrorKind::SyntaxError, _) => "Neo.ClientError.Statement.SyntaxError",
            (ErrorKind::SemanticError, Detail::ExternalResource) => {
                "Neo.ClientError.Statement.ExternalResourceFailed"
            }
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
