//! Reading the body of a request: statements, each with its parameters and the forms its results are wanted in.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use wellspring_cypher::context::Parameters;
use wellspring_cypher::value::Value;

/// A statement as a client sends it.
#[derive(Debug)]
pub(crate) struct StatementText {
    /// Its text.
    pub(crate) text: String,
    /// Values by the names of its parameters.
    pub(crate) parameters: Parameters,
    /// The forms in which rows are wanted.
    pub(crate) forms: ResultForms,
    /// Whether it is wanted what the statement changed.
    pub(crate) wants_statistics: bool,
}

/// In which forms each row is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultForms {
    /// `row`: values, and `meta` beside them.
    pub(crate) row: bool,
    /// `graph`: the nodes and relationships of the row.
    pub(crate) graph: bool,
    /// `REST`: as `row` under another name, without `meta`.
    pub(crate) rest: bool,
}

/// Why a body is refused: a sentence for `Neo.ClientError.Request.InvalidFormat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidBody(pub(crate) String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
    #[serde(borrow, default)]
    statements: Vec<Statement<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement<'a> {
    #[serde(borrow)]
    statement: Cow<'a, str>,
    #[serde(default)]
    parameters: Option<ParameterValue>,
    #[serde(borrow, default, rename = "resultDataContents")]
    forms: Option<Vec<Cow<'a, str>>>,
    #[serde(default, rename = "includeStats")]
    statistics: bool,
}

/// Reads all statements. No body at all is none.
pub(crate) fn read(body: &[u8]) -> Result<Vec<StatementText>, InvalidBody> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let read: Body<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            InvalidBody(format!("Unable to deserialize request: {error}"))
        }
        _ => InvalidBody(format!("Could not parse the incoming JSON: {error}")),
    })?;
    read.statements.into_iter().map(statement).collect()
}

fn statement(given: Statement<'_>) -> Result<StatementText, InvalidBody> {
    let mut forms = ResultForms { row: given.forms.is_none(), graph: false, rest: false };
    for form in given.forms.iter().flatten() {
        match form.to_ascii_lowercase().as_str() {
            "row" => forms.row = true,
            "graph" => forms.graph = true,
            "rest" => forms.rest = true,
            _ => {
                return Err(InvalidBody(format!(
                    "resultDataContents: there is no form {form:?}; use row, graph or REST"
                )));
            }
        }
    }
    let parameters = given.parameters.map(|ParameterValue(value)| match value {
        Value::Map(entries) => {
            Ok(entries.iter().map(|(k, v)| (Arc::clone(k), v.clone())).collect())
        }
        Value::Null => Ok(BTreeMap::new()),
        _ => Err(InvalidBody("parameters must be an object".to_owned())),
    });
    Ok(StatementText {
        text: given.statement.into_owned(),
        parameters: parameters.transpose()?.unwrap_or_default(),
        forms,
        wants_statistics: given.statistics,
    })
}

/// A value as JSON has it. Integers are exact to 64 bits.
struct ParameterValue(Value);

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ParameterValue, D::Error> {
        deserializer.deserialize_any(ParameterVisitor)
    }
}

struct ParameterVisitor;

impl<'de> Visitor<'de> for ParameterVisitor {
    type Value = ParameterValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<ParameterValue, E> {
        Ok(ParameterValue(Value::Boolean(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ParameterValue, E> {
        Ok(ParameterValue(Value::Integer(value)))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<ParameterValue, E> {
        let integer = i64::try_from(value);
        let integer = integer.map_err(|_| E::custom(format!("{value} is no integer of 64 bits")));
        integer.map(|integer| ParameterValue(Value::Integer(integer)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<ParameterValue, E> {
        Ok(ParameterValue(Value::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<ParameterValue, E> {
        Ok(ParameterValue(Value::string(value)))
    }

    fn visit_unit<E>(self) -> Result<ParameterValue, E> {
        Ok(ParameterValue(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ParameterValue, A::Error> {
        let mut list = Vec::new();
        while let Some(ParameterValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(ParameterValue(Value::list(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ParameterValue, A::Error> {
        let mut map: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        while let Some((key, ParameterValue(value))) =
            entries.next_entry::<Cow<'de, str>, ParameterValue>()?
        {
            if map.insert(Arc::from(&*key), value).is_some() {
                return Err(A::Error::custom(format!("the name {key:?} stands twice")));
            }
        }
        Ok(ParameterValue(Value::map(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_with_exact_integers() {
        let body = br#"{"statements":[{"statement":"RETURN $a","parameters":{"a":9007199254740993,"b":[1,2.0,null,{"c":"\u00e9"}]}},
            {"statement":"RETURN 1","resultDataContents":["graph","ROW"],"includeStats":true}]}"#;
        let read = read(body).unwrap();
        assert_eq!((read.len(), read[0].text.as_str()), (2, "RETURN $a"));
        assert!(matches!(read[0].parameters["a"], Value::Integer(9_007_199_254_740_993)));
        let Value::List(items) = &read[0].parameters["b"] else { panic!("a list") };
        assert!(matches!(
            items[..],
            [Value::Integer(1), Value::Float(_), Value::Null, Value::Map(_)]
        ));
        assert_eq!(read[0].forms, ResultForms { row: true, graph: false, rest: false });
        assert_eq!(read[1].forms, ResultForms { row: true, graph: true, rest: false });
        assert!(read[1].wants_statistics && !read[0].wants_statistics);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for empty in ["", "  \n", "{}", r#"{"statements":[]}"#] {
            assert!(read(empty.as_bytes()).unwrap().is_empty(), "{empty}");
        }
        for (body, word) in [
            ("{", "parse"),
            ("nope", "parse"),
            (r#"{"foo":1}"#, "foo"),
            (r#"{"statements":[{"parameters":{}}]}"#, "statement"),
            (r#"{"statements":[{"statement":"x","parameters":3}]}"#, "object"),
            (r#"{"statements":[{"statement":"x","resultDataContents":["xml"]}]}"#, "xml"),
            (r#"{"statements":[{"statement":"x","parameters":{"a":1,"a":2}}]}"#, "twice"),
            (
                r#"{"statements":[{"statement":"x","parameters":{"a":18446744073709551615}}]}"#,
                "64 bits",
            ),
        ] {
            let InvalidBody(why) = read(body.as_bytes()).unwrap_err();
            assert!(why.contains(word), "{body}: {why}");
        }
    }
}
