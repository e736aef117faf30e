//! Why a request failed, as the client's version words it.

use crate::message::tag;
use crate::packstream::Writer;
use crate::version::Version;
use std::borrow::Cow;

/// The code of a request that is malformed, or that the state of its connection does not allow.
pub(crate) const INVALID_REQUEST: &str = "Neo.ClientError.Request.Invalid";
/// The status of a fault of the protocol.
const PROTOCOL: &str = "08N06";
/// The description of [`PROTOCOL`].
const PROTOCOL_ERROR: &str =
    "error: connection exception - protocol error. General network protocol error.";
/// The status of what no other status tells.
const OTHER: &str = "50N42";

/// A failure: a code that drivers decide by, and a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Such as `Neo.ClientError.Statement.SyntaxError`.
    pub code: Cow<'static, str>,
    /// What is wrong, and what to do.
    pub message: String,
    /// The GQL status.
    pub gql_status: Cow<'static, str>,
    /// The condition of the status, and the message behind it.
    pub description: String,
}

impl Failure {
    /// A failure for which there is no GQL status of its own.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Failure {
        let message = message.into();
        let condition = "error: general processing exception - unexpected error.";
        let description = format!("{condition} {message}");
        Failure { code: code.into(), message, gql_status: OTHER.into(), description }
    }

    /// The same failure with its GQL status and the description of that.
    #[must_use]
    pub fn with_status(
        self,
        gql_status: impl Into<Cow<'static, str>>,
        description: impl Into<String>,
    ) -> Failure {
        Failure { gql_status: gql_status.into(), description: description.into(), ..self }
    }

    /// A message that is malformed, or that nothing expects here.
    pub fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(INVALID_REQUEST, message).with_status(PROTOCOL, PROTOCOL_ERROR)
    }

    /// Whose fault it is, by the code.
    fn classification(&self) -> &'static str {
        if self.code.starts_with("Neo.ClientError.") {
            "CLIENT_ERROR"
        } else if self.code.starts_with("Neo.TransientError.") {
            "TRANSIENT_ERROR"
        } else {
            "DATABASE_ERROR"
        }
    }

    /// Writes the message `FAILURE`.
    pub(crate) fn write(&self, version: Version, writer: &mut Writer<'_>) {
        writer.structure(tag::FAILURE, 1);
        if !version.has_gql_errors() {
            writer.map(2);
            return write_texts(writer, &[("code", &self.code), ("message", &self.message)]);
        }
        writer.map(5);
        let texts = [
            ("neo4j_code", &*self.code),
            ("message", &self.message),
            ("gql_status", &self.gql_status),
            ("description", &self.description),
        ];
        write_texts(writer, &texts);
        // Drivers add the members that have their usual values.
        writer.text("diagnostic_record");
        writer.map(1);
        write_texts(writer, &[("_classification", self.classification())]);
    }
}

fn write_texts(writer: &mut Writer<'_>, entries: &[(&str, &str)]) {
    for (key, text) in entries {
        writer.text(key);
        writer.text(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packstream::{Item, Reader};

    fn keys(failure: &Failure, version: Version) -> Vec<(String, String)> {
        let mut out = Vec::new();
        failure.write(version, &mut Writer::new(&mut out));
        let mut reader = Reader::new(&out);
        assert_eq!(reader.item(), Ok(Item::Struct { tag: tag::FAILURE, fields: 1 }));
        let Ok(Item::Map(entries)) = reader.item() else { panic!("no map") };
        let entry = |_| {
            let Ok(Item::Text(key)) = reader.item() else { panic!("no key") };
            let value = reader.value().expect("a value");
            let text = match Reader::new(value).item() {
                Ok(Item::Text(text)) => text.to_owned(),
                _ => String::new(),
            };
            (key.to_owned(), text)
        };
        let entries = (0..entries).map(entry).collect();
        assert!(reader.is_at_end());
        entries
    }

    #[test]
    fn the_names_of_members_change_with_5_7() {
        let failure = Failure::new("Neo.ClientError.Statement.SyntaxError", "no RETURN");
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        let (code, message) = ("Neo.ClientError.Statement.SyntaxError", "no RETURN");
        let old = keys(&failure, Version::new(5, 6).expect("served"));
        assert_eq!(old, [pair("code", code), pair("message", message)]);
        let new = keys(&failure, Version::new(5, 7).expect("served"));
        let description = "error: general processing exception - unexpected error. no RETURN";
        assert_eq!(
            new,
            [
                pair("neo4j_code", code),
                pair("message", message),
                pair("gql_status", "50N42"),
                pair("description", description),
                pair("diagnostic_record", ""),
            ]
        );
    }
}
