//! Templates for event types and tags, rendered from the parts of a record.

use super::parts::RecordParts;
use super::reject_reason::RejectReason;
use crate::definition_error::DefinitionError;
use std::fmt;
use wellspring_json::{Pointer, PointerFault, PointerSet};
use wellspring_types::limits::MAX_TAG_BYTES;
use wellspring_types::valid::check_text;

/// Maximum number of steps of a pointer; resolving one recurses once per step.
const MAX_POINTER_STEPS: usize = 128;

/// A text with placeholders for parts of a record: `{key}`, `{topic}`, `{partition}`, `{offset}`,
/// `{timestamp}` (RFC 3339), `{header:NAME}` (the last header of that name),
/// `{value:/json/pointer}` (RFC 6901, a scalar). `{{` and `}}` stand for braces. A `?` at the end
/// of a placeholder (`{key?}`) makes it optional: if it has no value, the whole text is omitted.
/// Names and pointers cannot contain braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place { source: PlaceSource, is_optional: bool },
}

/// The part of a record that fills a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PlaceSource {
    Key,
    Topic,
    Partition,
    Offset,
    Timestamp,
    Header(String),
    /// The pointer as written, and as it is looked for.
    Value(Pointer, PointerSet),
}

impl fmt::Display for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceSource::Key => f.write_str("key"),
            PlaceSource::Topic => f.write_str("topic"),
            PlaceSource::Partition => f.write_str("partition"),
            PlaceSource::Offset => f.write_str("offset"),
            PlaceSource::Timestamp => f.write_str("timestamp"),
            PlaceSource::Header(name) => write!(f, "header:{name}"),
            PlaceSource::Value(pointer, _) => write!(f, "value:{pointer}"),
        }
    }
}

/// The result of rendering a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendering {
    /// Every placeholder was filled.
    Complete,
    /// An optional placeholder has no value: omit the text.
    Omitted,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// What is wrong and at which byte, as a sentence without its full stop. A retry fails again.
    pub fn parse(text: &str) -> Result<Template, DefinitionError> {
        if text.is_empty() {
            return Err("a template must not be empty".into());
        }
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(found) = text[at..].find(['{', '}']) {
            literal.push_str(&text[at..at + found]);
            at += found;
            let rest = &text[at..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                literal.push_str(&rest[..1]);
                at += 2;
                continue;
            }
            if rest.starts_with('}') {
                return Err(format!(
                    "`}}` at byte {at} has no opening brace; write a literal brace as `}}}}`"
                )
                .into());
            }
            let Some(end) =
                rest[1..].find(['{', '}']).filter(|end| rest[1 + end..].starts_with('}'))
            else {
                return Err(format!(
                    "the placeholder at byte {at} is not closed; write a literal brace as `{{{{`"
                )
                .into());
            };
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(place(&rest[1..=end], at + 1)?);
            at += end + 2;
        }
        literal.push_str(&text[at..]);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        let literals = pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Place { .. } => None,
        });
        let literals: String = literals.collect();
        if !literals.is_empty() {
            check_text(&literals, MAX_TAG_BYTES)
                .map_err(|reason| format!("the template's text without placeholders {reason}"))?;
        }
        Ok(Template { text: text.to_owned(), pieces })
    }

    /// The template's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Fills the placeholders and appends the text to `out`, without checking that it is a valid
    /// type or tag. Unless the result is complete, `out` holds a part of it.
    ///
    /// # Errors
    /// Why a placeholder cannot be filled, as a sentence without its full stop. It always fails for
    /// this record.
    pub fn render(
        &self,
        record: &RecordParts<'_>,
        out: &mut String,
    ) -> Result<Rendering, RejectReason> {
        let mut rendering = Rendering::Complete;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Place { source, is_optional } => {
                    if fill(source, record, out)? {
                        continue;
                    }
                    if !is_optional {
                        return Err(format!("the record has no value for {{{source}}}").into());
                    }
                    rendering = Rendering::Omitted;
                }
            }
        }
        Ok(rendering)
    }
}

/// Parses a placeholder without its braces; it starts at byte `at` of its template.
fn place(written: &str, at: usize) -> Result<Piece, DefinitionError> {
    let (name, is_optional) = match written.strip_suffix('?') {
        Some(name) => (name, true),
        None => (written, false),
    };
    let source = match (name, name.split_once(':')) {
        ("key", _) => PlaceSource::Key,
        ("topic", _) => PlaceSource::Topic,
        ("partition", _) => PlaceSource::Partition,
        ("offset", _) => PlaceSource::Offset,
        ("timestamp", _) => PlaceSource::Timestamp,
        (_, Some(("header", ""))) => {
            return Err(format!("the header at byte {at} has no name").into());
        }
        (_, Some(("header", header))) => PlaceSource::Header(header.to_owned()),
        (_, Some(("value", pointer))) => {
            let pointer = Pointer::parse(pointer, MAX_POINTER_STEPS).map_err(|fault| {
                let (inside, words) = match fault {
                    PointerFault::Start => (0, "a JSON pointer begins with `/`"),
                    PointerFault::Escape { at } => {
                        (at, "in a JSON pointer `~` stands only in `~0` and `~1`")
                    }
                    PointerFault::Steps => (0, "the JSON pointer has too many steps"),
                };
                format!("{words} (byte {})", at + "value:".len() + inside)
            })?;
            let set = PointerSet::from(&pointer);
            PlaceSource::Value(pointer, set)
        }
        _ => {
            return Err(format!(
                "there is no place `{{{name}}}` (byte {at}); there are key, topic, partition, offset, timestamp, \
                 header:NAME and value:/json/pointer"
            ).into());
        }
    };
    Ok(Piece::Place { source, is_optional })
}

/// Appends the placeholder's value; returns whether there is one.
fn fill(
    source: &PlaceSource,
    record: &RecordParts<'_>,
    out: &mut String,
) -> Result<bool, RejectReason> {
    use std::fmt::Write as _;
    match source {
        PlaceSource::Key => match &record.record().key {
            None => return Ok(false),
            Some(key) => out.push_str(text_of(key, source)?),
        },
        PlaceSource::Topic => out.push_str(record.topic()),
        PlaceSource::Partition => {
            let _ = write!(out, "{}", record.record().partition);
        }
        PlaceSource::Offset => {
            let _ = write!(out, "{}", record.record().offset);
        }
        PlaceSource::Timestamp => match record.timestamp() {
            None => return Ok(false),
            Some(timestamp) => out.push_str(&timestamp),
        },
        PlaceSource::Header(name) => {
            let named = record.record().headers.iter().rev().find(|(header, _)| header == name);
            match named {
                None | Some((_, None)) => return Ok(false),
                Some((_, Some(value))) => out.push_str(text_of(value, source)?),
            }
        }
        PlaceSource::Value(_, set) => {
            let scalar = record.json()?.and_then(|json| set.find(json)[0]);
            match scalar.map(|scalar| (scalar, scalar.as_bytes().first())) {
                None | Some((_, None | Some(b'{' | b'[' | b'n'))) => return Ok(false),
                Some((written, Some(b'"'))) => match serde_json::from_str::<String>(written) {
                    Ok(text) => out.push_str(&text),
                    Err(_) => {
                        return Err(format!("the text for {{{source}}} is not Unicode").into());
                    }
                },
                Some((written, Some(_))) => out.push_str(written),
            }
        }
    }
    Ok(true)
}

fn text_of<'a>(bytes: &'a [u8], source: &PlaceSource) -> Result<&'a str, RejectReason> {
    let fault = |_| RejectReason::new(format!("the bytes for {{{source}}} are not UTF-8"));
    std::str::from_utf8(bytes).map_err(fault)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
