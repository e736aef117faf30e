//! The body of a request of the Query API: one statement, or none.

use crate::body::{RefusedBody, StatementText, invalid, refused};
use crate::object::{Object, ObjectKind};
use crate::parameters::ParameterRoom;
use crate::render::{QueryForm, ResultForm, ValueForm};
use crate::transactions::AccessMode;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use wellspring_cypher::context::Parameters;
use wellspring_host::wire::json::{is_wide, without_mark};

/// A request of the Query API.
#[derive(Debug)]
pub(super) struct QueryBody {
    /// The statement, if there is one.
    pub(super) statement: Option<StatementText>,
    pub(super) mode: AccessMode,
    pub(super) bookmarks: Vec<String>,
    pub(super) includes_counters: bool,
    /// Whether it names a user to act as.
    pub(super) impersonates: bool,
}

/// Members that mean nothing here are ignored, as by Neo4j.
#[derive(Default, Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    statement: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "accessMode")]
    mode: Option<Cow<'a, str>>,
    #[serde(default)]
    bookmarks: Option<Vec<String>>,
    #[serde(default, rename = "includeCounters")]
    includes_counters: Option<bool>,
    #[serde(borrow, default, rename = "impersonatedUser")]
    impersonated: Option<Cow<'a, str>>,
}

impl ObjectKind for Body<'_> {
    const EXPECTED: &'static str = "an object with `statement`";
}

/// How a request is written, and how its answer is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestForms {
    pub(super) parameters: ValueForm,
    pub(super) answer: QueryForm,
}

/// Parses a body, whose parameters may take this many bytes. An empty one has no statement.
///
/// # Errors
/// It is malformed, or its parameters are too large.
pub(super) fn read(
    body: &[u8],
    forms: RequestForms,
    most_bytes: usize,
) -> Result<QueryBody, RefusedBody> {
    let body = without_mark(body);
    if is_wide(body) {
        let what = "Unable to deserialize request: it must be UTF-8, not UTF-16 or UTF-32";
        return Err(RefusedBody::Invalid(what.to_owned()));
    }
    let read = if body.iter().all(u8::is_ascii_whitespace) {
        Body::default()
    } else {
        serde_json::from_slice::<Object<Body<'_>>>(body).map_err(invalid)?.0
    };
    let mode = match read.mode.as_deref() {
        None => AccessMode::Write,
        Some(word) if word.eq_ignore_ascii_case("write") => AccessMode::Write,
        Some(word) if word.eq_ignore_ascii_case("read") => AccessMode::Read,
        Some(_) => {
            return Err(RefusedBody::Invalid("accessMode must be Read or Write".to_owned()));
        }
    };
    let room = ParameterRoom::new(most_bytes).of(forms.parameters);
    let parameters = match read.parameters {
        None => Parameters::new(),
        Some(text) => match room.read(text).map_err(|error| refused(error, &room))? {
            Some(parameters) => parameters,
            None if text.get() == "null" => Parameters::new(),
            None => return Err(RefusedBody::Invalid("parameters must be an object".to_owned())),
        },
    };
    Ok(QueryBody {
        statement: read.statement.map(|text| StatementText {
            text: text.into_owned(),
            parameters,
            parameter_bytes: room.taken(),
            form: ResultForm::Rows(forms.answer),
        }),
        mode,
        bookmarks: read.bookmarks.unwrap_or_default(),
        includes_counters: read.includes_counters.unwrap_or(false),
        impersonates: read.impersonated.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Layout;
    use wellspring_cypher::value::Value;

    fn read_as(values: ValueForm, body: &str) -> Result<QueryBody, RefusedBody> {
        let answer = QueryForm { values, layout: Layout::Object };
        read(body.as_bytes(), RequestForms { parameters: values, answer }, 1 << 20)
    }

    #[test]
    fn a_statement_is_read_with_all_that_drivers_send() {
        let body = r#"{"statement":"RETURN $a","parameters":{"a":{"$type":"Integer","_value":"7"},
            "m":{"$type":"Map","_value":{"$type":{"$type":"String","_value":"Integer"},"_value":{"$type":"String","_value":"1"}}},
            "l":{"$type":"List","_value":[{"$type":"Null","_value":null},3]}},
            "accessMode":"Read","bookmarks":["FB:main:3"],"includeCounters":true,"txMetadata":{}}"#;
        let read = read_as(ValueForm::Typed, body).unwrap();
        let parameters = &read.statement.as_ref().unwrap().parameters;
        assert!(matches!(parameters["a"], Value::Integer(7)));
        let Value::Map(map) = &parameters["m"] else { panic!("a map whose keys look like a type") };
        assert!(matches!(&map["$type"], Value::String(text) if &**text == "Integer"));
        let Value::List(list) = &parameters["l"] else { panic!("a list") };
        assert!(matches!(list[..], [Value::Null, Value::Integer(3)]));
        assert_eq!((read.mode, read.bookmarks.len()), (AccessMode::Read, 1));
        assert!(read.includes_counters && !read.impersonates);
    }

    #[test]
    fn plain_parameters_are_not_interpreted() {
        let body = r#"{"statement":"","parameters":{"a":{"$type":"Integer","_value":"7"}}}"#;
        let read = read_as(ValueForm::Plain, body).unwrap();
        assert!(matches!(read.statement.unwrap().parameters["a"], Value::Map(_)));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        assert!(read_as(ValueForm::Plain, " ").unwrap().statement.is_none());
        for (body, word) in [
            ("[]", "expected an object"),
            (r#"{"statement":1}"#, "a string"),
            (r#"{"statement":"","parameters":[]}"#, "object"),
            (r#"{"accessMode":"rw"}"#, "accessMode"),
            (r#"{"parameters":{"a":{"$type":"Date","_value":"x"}}}"#, "Date"),
            (r#"{"parameters":{"a":{"$type":"Dat","_value":"x"}}}"#, "Dat"),
            (r#"{"parameters":{"a":{"$type":"Date"}}}"#, "_value"),
        ] {
            let why = read_as(ValueForm::Typed, body).unwrap_err();
            assert!(why.message().contains(word), "{body}: {why:?}");
        }
    }
}
