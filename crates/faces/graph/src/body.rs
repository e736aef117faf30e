//! Parsing the body of a request: statements, each with its parameters and the wanted result forms.

use crate::object::{Object, ObjectKind};
use crate::parameters::ParameterRoom;
use crate::render::ResultForm;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use wellspring_cypher::context::Parameters;
use wellspring_host::wire::json::{is_wide, without_mark};

/// A statement as a client sends it.
#[derive(Debug)]
pub(crate) struct StatementText {
    pub(crate) text: String,
    /// Parameters by name.
    pub(crate) parameters: Parameters,
    /// Their approximate size in bytes.
    pub(crate) parameter_bytes: usize,
    /// How its result is written.
    pub(crate) form: ResultForm,
}

/// The forms in which each row is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultForms {
    /// `row`: values with `meta`.
    pub(crate) row: bool,
    /// `graph`: the nodes and relationships of the row.
    pub(crate) graph: bool,
    /// `REST`: like `row` under another name, without `meta`.
    pub(crate) rest: bool,
}

/// Most statements of a request: each is parsed, and has a result.
const MOST_STATEMENTS: usize = 10_000;

/// Why a body is refused, in a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RefusedBody {
    /// It is malformed.
    Invalid(String),
    /// Its parameters exceed their memory limit.
    TooLarge(String),
}

impl RefusedBody {
    /// For people.
    pub(crate) fn message(&self) -> &str {
        let (RefusedBody::Invalid(why) | RefusedBody::TooLarge(why)) = self;
        why
    }
}

/// Members beside the statements are ignored, as by Neo4j: clients send some, such as `bookmarks`.
#[derive(Default)]
struct Body<'a> {
    statements: Vec<Object<Statement<'a>>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BodyVisitor(PhantomData))
    }
}

struct BodyVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for BodyVisitor<'a> {
    type Value = Body<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Body::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut statements, mut other) = (None, None);
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            if name == "statements" {
                if statements.is_some() {
                    return Err(A::Error::duplicate_field("statements"));
                }
                statements = Some(members.next_value::<Statements<'a>>()?.0);
            } else {
                members.next_value::<IgnoredAny>()?;
                other.get_or_insert(name);
            }
        }
        match (statements, other) {
            (Some(statements), _) => Ok(Body { statements }),
            // Most likely a misspelt name.
            (None, Some(name)) => Err(A::Error::unknown_field(&name, &["statements"])),
            (None, None) => Ok(Body::default()),
        }
    }
}

impl ObjectKind for Body<'_> {
    const EXPECTED: &'static str = "an object with `statements`";
}

#[derive(Deserialize)]
struct Statement<'a> {
    #[serde(borrow)]
    statement: Cow<'a, str>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(default, rename = "resultDataContents")]
    forms: Option<ResultForms>,
    #[serde(default, rename = "includeStats")]
    statistics: bool,
}

impl ObjectKind for Statement<'_> {
    const EXPECTED: &'static str = "an object with `statement`";
}

/// Statements, read as long as there are not too many.
struct Statements<'a>(Vec<Object<Statement<'a>>>);

impl<'de: 'a, 'a> Deserialize<'de> for Statements<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(CountedVisitor(PhantomData)).map(Statements)
    }
}

struct CountedVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for CountedVisitor<'a> {
    type Value = Vec<Object<Statement<'a>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of statements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut statements = Vec::new();
        while let Some(statement) = items.next_element()? {
            if statements.len() == MOST_STATEMENTS {
                let why = format!("statements: at most {MOST_STATEMENTS} in one request");
                return Err(A::Error::custom(why));
            }
            statements.push(statement);
        }
        Ok(statements)
    }
}

impl<'de> Deserialize<'de> for ResultForms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ResultForms, D::Error> {
        deserializer.deserialize_seq(FormsVisitor)
    }
}

struct FormsVisitor;

impl<'de> Visitor<'de> for FormsVisitor {
    type Value = ResultForms;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of row, graph or REST")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ResultForms, A::Error> {
        let mut forms = ResultForms { row: false, graph: false, rest: false };
        while let Some(form) = items.next_element::<Cow<'de, str>>()? {
            match form.to_ascii_lowercase().as_str() {
                "row" => forms.row = true,
                "graph" => forms.graph = true,
                "rest" => forms.rest = true,
                _ => {
                    let shown: String = form.chars().take(40).collect();
                    return Err(A::Error::custom(format!(
                        "resultDataContents: there is no form {shown:?}; use row, graph or REST"
                    )));
                }
            }
        }
        Ok(forms)
    }
}

/// Parses all statements, whose parameters may take this many bytes together. An empty body has
/// none.
pub(crate) fn read(body: &[u8], most_bytes: usize) -> Result<Vec<StatementText>, RefusedBody> {
    let body = without_mark(body);
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    if is_wide(body) {
        let what = "Unable to deserialize request: it must be UTF-8, not UTF-16 or UTF-32";
        return Err(RefusedBody::Invalid(what.to_owned()));
    }
    let Object(read): Object<Body<'_>> = serde_json::from_slice(body).map_err(invalid)?;
    let room = ParameterRoom::new(most_bytes);
    read.statements.into_iter().map(|Object(given)| statement(given, &room)).collect()
}

pub(crate) fn invalid(error: serde_json::Error) -> RefusedBody {
    RefusedBody::Invalid(match error.classify() {
        serde_json::error::Category::Data => format!("Unable to deserialize request: {error}"),
        _ => format!("Could not parse the incoming JSON: {error}"),
    })
}

fn statement(given: Statement<'_>, room: &ParameterRoom) -> Result<StatementText, RefusedBody> {
    let rows = ResultForms { row: true, graph: false, rest: false };
    let forms = given.forms.unwrap_or(rows);
    let before = room.taken();
    let parameters = match given.parameters {
        None => Parameters::new(),
        Some(text) => match room.read(text).map_err(|error| refused(error, room))? {
            Some(parameters) => parameters,
            None if text.get() == "null" => Parameters::new(),
            None => return Err(RefusedBody::Invalid("parameters must be an object".to_owned())),
        },
    };
    Ok(StatementText {
        text: given.statement.into_owned(),
        parameters,
        parameter_bytes: room.taken() - before,
        form: ResultForm::Statement { forms, wants_statistics: given.statistics },
    })
}

pub(crate) fn refused(error: serde_json::Error, room: &ParameterRoom) -> RefusedBody {
    if room.is_exceeded() {
        return RefusedBody::TooLarge(format!(
            "The parameters exceed the memory limit of a query, {} bytes.",
            room.most()
        ));
    }
    invalid(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_cypher::value::Value;

    #[test]
    fn statements_are_read_with_exact_integers() {
        let body = br#"{"statements":[{"statement":"RETURN $a","parameters":{"a":9007199254740993,"b":[1,2.0,null,{"c":"\u00e9"}]}},
            {"statement":"RETURN 1","resultDataContents":["graph","ROW"],"includeStats":true}]}"#;
        let read = read(body, 10_000).unwrap();
        assert_eq!((read.len(), read[0].text.as_str()), (2, "RETURN $a"));
        assert!(matches!(read[0].parameters["a"], Value::Integer(9_007_199_254_740_993)));
        let Value::List(items) = &read[0].parameters["b"] else { panic!("a list") };
        assert!(matches!(
            items[..],
            [Value::Integer(1), Value::Float(_), Value::Null, Value::Map(_)]
        ));
        let form = |graph, wants_statistics| ResultForm::Statement {
            forms: ResultForms { row: true, graph, rest: false },
            wants_statistics,
        };
        assert_eq!([read[0].form, read[1].form], [form(false, false), form(true, true)]);
    }

    #[test]
    fn members_that_mean_nothing_here_are_ignored() {
        let body = br#"{"bookmarks":["a"],"statements":[{"statement":"x","params":{"a":1},"y":[]}],"z":{"q":1}}"#;
        let read = read(body, 10_000).unwrap();
        assert_eq!((read[0].text.as_str(), read[0].parameters.len()), ("x", 0));
    }

    #[test]
    fn floats_may_be_as_large_as_floats_are() {
        let body = br#"{"statements":[{"statement":"x","parameters":{"a":[1e30,-18446744073709551616.0,9E18,"18446744073709551616"],"18446744073709551616":-9223372036854775808}}]}"#;
        let read = read(body, 10_000).unwrap();
        let Value::List(items) = &read[0].parameters["a"] else { panic!("a list") };
        assert!(matches!(
            items[..],
            [Value::Float(_), Value::Float(_), Value::Float(_), Value::String(_)]
        ));
        let least = &read[0].parameters["18446744073709551616"];
        assert!(matches!(least, Value::Integer(i64::MIN)));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for empty in ["", "  \n", "{}", r#"{"statements":[]}"#] {
            assert!(read(empty.as_bytes(), 0).unwrap().is_empty(), "{empty}");
        }
        for (body, word) in [
            ("{", "parse"),
            ("nope", "parse"),
            (r#"{"foo":1}"#, "foo"),
            (r#"{"statements":[],"statements":[]}"#, "duplicate"),
            ("[]", "expected an object with `statements`"),
            ("[[]]", "expected an object with `statements`"),
            ("3", "expected an object with `statements`"),
            ("null", "expected an object with `statements`"),
            (r#"{"statements":["RETURN 1"]}"#, "expected an object with `statement`"),
            (r#"{"statements":[["RETURN 1"]]}"#, "expected an object with `statement`"),
            (r#"{"statements":[{"parameters":{}}]}"#, "statement"),
            (r#"{"statements":[{"statement":"x","parameters":3}]}"#, "object"),
            (r#"{"statements":[{"statement":"x","resultDataContents":["xml"]}]}"#, "xml"),
            (r#"{"statements":[{"statement":"x","parameters":{"a":1,"a":2}}]}"#, "repeated"),
            (
                r#"{"statements":[{"statement":"x","parameters":{"a":18446744073709551615}}]}"#,
                "64-bit",
            ),
            (
                r#"{"statements":[{"statement":"x","parameters":{"1e2\"3":["\\",9223372036854775808]}}]}"#,
                "9223372036854775808 is not a 64-bit integer",
            ),
            (
                r#"{"statements":[{"statement":"x","parameters":{"a":[1e30,18446744073709551616]}}]}"#,
                "18446744073709551616 is not a 64-bit integer",
            ),
            (
                r#"{"statements":[{"statement":"x","parameters":{"a":-9223372036854775809}}]}"#,
                "-9223372036854775809 is not a 64-bit integer",
            ),
        ] {
            let RefusedBody::Invalid(why) = read(body.as_bytes(), 10_000).unwrap_err() else {
                panic!("{body}: large?")
            };
            assert!(why.contains(word), "{body}: {why}");
        }
    }

    #[test]
    fn statements_are_counted_as_they_are_read() {
        let body = |count: usize, end: &str| {
            let statements = vec![r#"{"statement":""}"#; count].join(",");
            format!(r#"{{"statements":[{statements}{end}"#)
        };
        assert_eq!(read(body(10_000, "]}").as_bytes(), 0).unwrap().len(), 10_000);
        // Nothing after the first that is too many is read.
        let refused = read(body(10_001, ",{").as_bytes(), 0).unwrap_err();
        assert!(refused.message().contains("at most 10000"), "{refused:?}");
    }

    #[test]
    fn parameters_are_counted_as_they_are_read() {
        for many in ["{\"a\":1},", "1,", "[[]],", "\"\","] {
            let items = many.repeat(100_000);
            let items = items.trim_end_matches(',');
            let body =
                format!(r#"{{"statements":[{{"statement":"x","parameters":{{"l":[{items}]}}}}]}}"#);
            let refused = read(body.as_bytes(), 2_000_000).unwrap_err();
            assert!(matches!(refused, RefusedBody::TooLarge(_)), "{many}: {refused:?}");
            let read = read(body.as_bytes(), 100_000_000).unwrap();
            assert!(read[0].parameter_bytes > 2_000_000, "{many}");
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let body = format!(r#"{{"statements":[{{"statement":"x","parameters":{{"l":{deep}}}}}]}}"#);
        let refused = read(body.as_bytes(), 1 << 30).unwrap_err();
        assert!(matches!(refused, RefusedBody::Invalid(_)), "{refused:?}");
    }
}
