//! Errors of a projection request: an invalid body or an answer that cannot be given.

use std::fmt;
use wellspring_types::valid::join_path;
use wellspring_types::{Invalid, Reason};

/// Maximum number of characters of a client's own name that an error repeats, so that a path stays
/// short.
const MAX_ECHO: usize = 64;

/// A projection that cannot be computed, and the field to fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectError {
    /// Path of the offending field, e.g. `projections.seats.reduce.sum`; empty for the body itself.
    pub field: String,
    /// What is wrong and what is expected.
    pub detail: String,
    /// The kind of error.
    pub kind: ProjectErrorKind,
}

/// The kind of a [`ProjectError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectErrorKind {
    /// The body is not JSON.
    MalformedJson {
        /// Line of the body, from 1.
        line: usize,
        /// Column in that line, in bytes, as `serde_json` counts it.
        column: usize,
    },
    /// The value has the wrong JSON type.
    WrongType,
    /// The field is unknown.
    UnknownField,
    /// A required field is missing.
    Missing,
    /// Something is larger or more numerous than allowed.
    Limit {
        /// The limit, in the unit that the detail names.
        limit: usize,
    },
    /// A query is larger than allowed.
    QueryLimit {
        /// The limit, in the unit that the detail names.
        limit: usize,
    },
    /// Well formed but violates a rule.
    Rule,
}

impl ProjectError {
    pub(super) fn wrong_type(field: &str, wanted: &str, found: &str) -> ProjectError {
        let detail = format!("must be {wanted}, not {found}");
        ProjectError { field: field.to_owned(), detail, kind: ProjectErrorKind::WrongType }
    }

    pub(super) fn unknown_field(field: String, known: &[&str]) -> ProjectError {
        let detail = format!("is unknown; known fields are {}", known.join(", "));
        ProjectError { field, detail, kind: ProjectErrorKind::UnknownField }
    }

    pub(super) fn missing(field: String, detail: &str) -> ProjectError {
        ProjectError { field, detail: detail.to_owned(), kind: ProjectErrorKind::Missing }
    }

    pub(super) fn limit(field: &str, limit: usize, detail: String) -> ProjectError {
        ProjectError { field: field.to_owned(), detail, kind: ProjectErrorKind::Limit { limit } }
    }

    /// Turns this limit into a query's limit.
    pub(super) fn in_query(self) -> ProjectError {
        match self.kind {
            ProjectErrorKind::Limit { limit } => {
                ProjectError { kind: ProjectErrorKind::QueryLimit { limit }, ..self }
            }
            _ => self,
        }
    }

    pub(super) fn rule(field: &str, detail: impl Into<String>) -> ProjectError {
        ProjectError {
            field: field.to_owned(),
            detail: detail.into(),
            kind: ProjectErrorKind::Rule,
        }
    }

    pub(super) fn reason(field: String, reason: Reason) -> ProjectError {
        let kind = match reason.limit() {
            Some(limit) if reason.is_size() => ProjectErrorKind::Limit { limit },
            Some(limit) => ProjectErrorKind::QueryLimit { limit },
            None => ProjectErrorKind::Rule,
        };
        ProjectError { field, detail: reason.to_string(), kind }
    }

    pub(super) fn invalid(field: &str, invalid: Invalid) -> ProjectError {
        let invalid = invalid.within(field);
        ProjectError::reason(invalid.field, invalid.reason)
    }
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "the body {}", self.detail)
        } else {
            write!(f, "{} {}", self.field, self.detail)
        }
    }
}

impl std::error::Error for ProjectError {}

/// The path of a member of `parent`.
pub(super) fn join(parent: &str, name: &str) -> String {
    match name.char_indices().nth(MAX_ECHO) {
        Some((end, _)) => join_path(parent, &format!("{}…", &name[..end])),
        None => join_path(parent, name),
    }
}
