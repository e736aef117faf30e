//! Definitions as documents: a body of `PUT`, or a table of the configuration. Documents are
//! checked here, and faults name their field.

mod kafka;
mod sink;
mod source;

pub(crate) use sink::{SinkDocument, start_of};
pub(crate) use source::SourceDocument;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wellspring_host::wire::json::{document, is_wide, without_mark};
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_json::{push_query, read_query};
use wellspring_types::Query;

/// Longest list in a document: of brokers, headers, tags.
const MAX_LIST: usize = 64;
/// Longest text in a document, in bytes.
const MAX_TEXT_BYTES: usize = 2_048;

/// A field of a document that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldFault {
    /// Path of the field, such as `sasl.mechanism`; empty for the whole document.
    pub(crate) field: String,
    /// The fault, as a sentence about the field.
    pub(crate) detail: String,
}

/// A fault of a field.
pub(crate) fn fault<T>(field: &str, detail: impl Into<String>) -> Result<T, FieldFault> {
    Err(FieldFault { field: field.to_owned(), detail: detail.into() })
}

impl FieldFault {
    /// The fault as an answer.
    pub(crate) fn problem(self) -> Box<Problem> {
        problem::INVALID.because(self.sentence()).field(self.field)
    }

    /// The fault as one sentence.
    pub(crate) fn sentence(&self) -> String {
        match self.field.as_str() {
            "" => format!("the body {}", self.detail),
            field => format!("{field} {}", self.detail),
        }
    }
}

/// Parses a document into a struct of its fields.
fn read<'de, D, S>(source: S) -> Result<D, FieldFault>
where
    D: Deserialize<'de>,
    S: Deserializer<'de>,
    S::Error: std::fmt::Display,
{
    serde_path_to_error::deserialize(source).map_err(|error| {
        let field = error.path().to_string();
        let detail = format!("does not fit: {}", error.inner());
        FieldFault { field: if field == "." { String::new() } else { field }, detail }
    })
}

/// Parses the body of a request.
///
/// # Errors
/// The body is not JSON, or a field is invalid.
pub(crate) fn read_body<D: DeserializeOwned>(body: &[u8]) -> Result<D, Box<Problem>> {
    let body = without_mark(body);
    if is_wide(body) {
        let what = "expected UTF-8, not UTF-16 or UTF-32, at line 1, column 1";
        return Err(problem::MALFORMED_JSON.because(what));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    // Serde would also read a struct from an array.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let read = if is_object { read(&mut reader) } else { fault("", "must be an object") };
    let whole = read.and_then(|document| match reader.end() {
        Ok(()) => Ok(document),
        Err(error) => fault("", error.to_string()),
    });
    whole.map_err(|refused| match serde_json::from_slice::<IgnoredAny>(body) {
        Err(error) => problem::MALFORMED_JSON.because(error.to_string()),
        Ok(_) => refused.problem(),
    })
}

/// Parses a table of the configuration.
pub(crate) fn read_value<D: DeserializeOwned>(value: Value) -> Result<D, FieldFault> {
    read(value)
}

/// The query of a document; by default every event.
fn query_of(value: Option<&Value>) -> Result<Query, FieldFault> {
    let Some(value) = value else { return Ok(Query::all()) };
    let text = value.to_string();
    document(text.as_bytes(), read_query).map_err(|fault| {
        let fault = fault.within("query");
        let problem = of_fault(&fault, text.as_bytes());
        let detail = problem.detail.strip_prefix(&fault.field).unwrap_or(&problem.detail);
        FieldFault { field: fault.field.clone(), detail: detail.trim_start().to_owned() }
    })
}

/// The query as stored and shown.
fn query_document(query: &Query) -> Value {
    let mut out = Vec::new();
    push_query(&mut out, query);
    serde_json::from_slice(&out).unwrap_or_default()
}

fn required(field: &str, text: Option<&String>) -> Result<String, FieldFault> {
    match text {
        None => fault(field, "is missing"),
        Some(text) => checked(field, text),
    }
}

/// A string of reasonable length.
fn checked(field: &str, text: &str) -> Result<String, FieldFault> {
    if text.is_empty() {
        return fault(field, "must not be empty");
    }
    if text.len() > MAX_TEXT_BYTES {
        return fault(field, format!("is longer than {MAX_TEXT_BYTES} bytes"));
    }
    if text.chars().any(char::is_control) {
        return fault(field, "must not contain control characters");
    }
    Ok(text.to_owned())
}

/// The name of a connector, which becomes part of tags, file names and Kafka's transactional ids.
pub(crate) fn check_name(name: &str) -> Result<(), FieldFault> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ok = (1..=48).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-');
    if ok {
        return Ok(());
    }
    fault("name", "must be 1 to 48 characters a-z, 0-9 and -, and must not start with -")
}

/// Refuses fields that cannot be combined with the others.
fn refuse_beside(fields: &[(&str, bool)], why: &str) -> Result<(), FieldFault> {
    match fields.iter().find(|(_, is_there)| *is_there) {
        Some((field, _)) => fault(field, why),
        None => Ok(()),
    }
}
