//! Texts with placeholders, cut into segments once so that filling them in is
//! copying.

use super::names::{Names, Resolved, Scope};
use super::value::Value;
use crate::invalid::Invalid;

/// Where the text goes, which decides how values are written into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Path and query: values are percent-encoded.
    Path,
    /// The value of a header field: values must not contain control characters.
    Header,
    /// JSON: within quotes values are escaped; outside they stand as they are.
    Json,
    /// Anything else: values stand as they are.
    Plain,
}

/// How one value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// As it is.
    None,
    /// As it is; what may not stand in a path makes the request fail.
    PathRaw,
    /// As it is; what may not stand in a header makes the request fail.
    Header,
    /// Percent-encoded but for letters, digits and `-._~`.
    Percent,
    /// The same with `+` for a space.
    Form,
    /// As the inside of a JSON string.
    Json,
    /// As the inside of a JSON string that is then percent-encoded.
    JsonPercent,
}

/// A piece of a text before its placeholders are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// What stands as it is.
    Text(String),
    /// A name in braces, and how its value is written.
    Placeholder(String, Escape),
}

/// A text with placeholders, ready to be filled in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    pub(crate) segments: Vec<Segment>,
}

/// A part of a [`Template`].
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    Text(String),
    Value(Value, Escape),
}

/// Cuts a text at its placeholders.
///
/// # Errors
/// If a placeholder is not closed.
pub fn cut(text: &str, place: Place) -> Result<Vec<Piece>, Invalid> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut json = JsonState::default();
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        if let Some(quoted) = rest.strip_prefix('\'') {
            let end = quoted.find("'}}").ok_or("\"{{'\" is never closed by \"'}}\"")?;
            plain.push_str(&quoted[..end]);
            rest = &quoted[end + 3..];
            continue;
        }
        let end = rest.find("}}").ok_or_else(|| {
            "\"{{\" is never closed by \"}}\"; for two braces as they are write {{'{{'}}".to_owned()
        })?;
        let name = rest[..end].trim().to_owned();
        rest = &rest[end + 2..];
        json.read(&plain);
        let escape = match place {
            Place::Path => Escape::Percent,
            Place::Header => Escape::Header,
            Place::Json if json.quoted => Escape::Json,
            Place::Json | Place::Plain => Escape::None,
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Placeholder(name, escape));
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// Whether a place in a JSON text is within quotes.
#[derive(Default)]
struct JsonState {
    quoted: bool,
    escaped: bool,
}

impl JsonState {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                _ => {}
            }
        }
    }
}

impl Template {
    /// Looks up the placeholders of a text.
    pub(crate) fn compile(
        text: &str,
        place: Place,
        names: &mut Names,
        scope: Scope,
    ) -> Result<Self, Invalid> {
        Self::of_pieces(cut(text, place)?, names, scope)
    }

    /// The same for a text that has been cut.
    pub(crate) fn of_pieces(
        pieces: Vec<Piece>,
        names: &mut Names,
        scope: Scope,
    ) -> Result<Self, Invalid> {
        let mut template = Template::default();
        for piece in pieces {
            match piece {
                Piece::Text(text) => template.push_text(&text),
                Piece::Placeholder(name, escape) => {
                    let (name, escape) = match (name.strip_prefix("raw:"), escape) {
                        (None, escape) => (name.as_str(), escape),
                        (Some(name), Escape::Percent | Escape::PathRaw) => (name, Escape::PathRaw),
                        (Some(name), Escape::Header) => (name, Escape::Header),
                        (Some(name), _) => (name, Escape::None),
                    };
                    match names.resolve(name.trim(), scope)? {
                        Resolved::Text(text) => {
                            let mut escaped = String::new();
                            escape
                                .write(&text, &mut escaped)
                                .map_err(|why| format!("the value of {{{{{name}}}}} {why}"))?;
                            template.push_text(&escaped);
                        }
                        Resolved::Value(value) => {
                            template.segments.push(Segment::Value(value, escape));
                        }
                    }
                }
            }
        }
        Ok(template)
    }

    /// Appends text as it is.
    pub(crate) fn push_text(&mut self, text: &str) {
        match self.segments.last_mut() {
            Some(Segment::Text(there)) => there.push_str(text),
            _ if text.is_empty() => {}
            _ => self.segments.push(Segment::Text(text.to_owned())),
        }
    }

    /// Appends another template.
    pub(crate) fn push(&mut self, other: Template) {
        for segment in other.segments {
            match segment {
                Segment::Text(text) => self.push_text(&text),
                value @ Segment::Value(..) => self.segments.push(value),
            }
        }
    }

    /// The text, if nothing in it changes.
    pub(crate) fn constant(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [] => Some(""),
            [Segment::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The values in it.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Value(value, _) => Some(value),
            Segment::Text(_) => None,
        })
    }

    /// The text with something harmless in place of every value, to check its form:
    /// `x` where any text may stand, `0` where JSON wants a number.
    pub(crate) fn probe(&self) -> String {
        let fill = |segment: &Segment| match segment {
            Segment::Text(text) => text.clone(),
            Segment::Value(_, Escape::None) => "0".to_owned(),
            Segment::Value(..) => "x".to_owned(),
        };
        self.segments.iter().map(fill).collect()
    }

    /// The template with what setup captured put in as text.
    pub(crate) fn bind(&self, captured: &[Option<String>]) -> Result<Template, Invalid> {
        let mut bound = Template::default();
        for segment in &self.segments {
            match segment {
                Segment::Text(text) => bound.push_text(text),
                Segment::Value(Value::Setup(index, name), escape) => {
                    let value = captured.get(usize::from(*index)).and_then(Option::as_ref);
                    let value = value.ok_or_else(|| {
                        format!("{{{{{name}}}}} was not captured by the setup requests")
                    })?;
                    let mut text = String::new();
                    escape.write(value, &mut text).map_err(|why| {
                        format!("the value that setup captured for {{{{{name}}}}} {why}")
                    })?;
                    bound.push_text(&text);
                }
                value @ Segment::Value(..) => bound.segments.push(value.clone()),
            }
        }
        Ok(bound)
    }
}

impl std::fmt::Display for Template {
    /// As it was written, with variables filled in: part of a workload's identity.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Text(text) => f.write_str(text)?,
                Segment::Value(value, escape) => write!(f, "{{{{{value} as {escape:?}}}}}")?,
            }
        }
        Ok(())
    }
}

impl Escape {
    /// Appends `text` in this form; what cannot be written is told, beginning with a verb.
    pub(crate) fn write(self, text: &str, out: &mut String) -> Result<(), &'static str> {
        use super::parts::{header_byte, path_byte};
        match self {
            Escape::None => out.push_str(text),
            Escape::PathRaw if !text.bytes().all(path_byte) => {
                return Err("contains spaces or control characters, which a path cannot");
            }
            Escape::Header if !text.bytes().all(header_byte) => {
                return Err("contains control characters, which a header cannot");
            }
            Escape::PathRaw | Escape::Header => out.push_str(text),
            Escape::Percent => percent(text, out, false),
            Escape::Form => percent(text, out, true),
            Escape::Json => json(text, out),
            Escape::JsonPercent => {
                let mut inside = String::new();
                json(text, &mut inside);
                percent(&inside, out, false);
            }
        }
        Ok(())
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Percent-encodes all but the unreserved characters of RFC 3986, section 2.3.
pub fn percent(text: &str, out: &mut String, plus_for_space: bool) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' if plus_for_space => out.push('+'),
            _ => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}

/// The inside of a JSON string (RFC 8259, section 7).
pub fn json(text: &str, out: &mut String) {
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        copied = at + 1;
        if short.is_empty() {
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[copied..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(text: &str, place: Place) -> Vec<Piece> {
        cut(text, place).unwrap()
    }

    #[test]
    fn json_knows_whether_a_placeholder_is_quoted() {
        let found = pieces(r#"{"a\"{{x}}": {{y}}, "b": "{{ z }}"}"#, Place::Json);
        let escapes: Vec<_> = found
            .iter()
            .filter_map(|piece| match piece {
                Piece::Placeholder(name, escape) => Some((name.as_str(), *escape)),
                Piece::Text(_) => None,
            })
            .collect();
        assert_eq!(escapes, [("x", Escape::Json), ("y", Escape::None), ("z", Escape::Json)]);
    }

    #[test]
    fn braces_can_be_quoted_and_must_be_closed() {
        assert_eq!(pieces("a{{'{{b}}'}}c", Place::Plain), [Piece::Text("a{{b}}c".into())]);
        assert_eq!(pieces("", Place::Plain), []);
        assert!(cut("a{{b", Place::Plain).unwrap_err().to_string().contains("never closed"));
        assert!(cut("a{{'b}}", Place::Plain).unwrap_err().to_string().contains("never closed"));
        assert_eq!(pieces("}}a{", Place::Plain), [Piece::Text("}}a{".into())]);
    }

    #[test]
    fn each_place_has_its_escapes() {
        let written = |escape: Escape, text: &str| {
            let mut out = String::new();
            escape.write(text, &mut out).map(|()| out)
        };
        assert_eq!(written(Escape::Percent, "a b/é?").unwrap(), "a%20b%2F%C3%A9%3F");
        assert_eq!(written(Escape::Form, "a b&c=~").unwrap(), "a+b%26c%3D~");
        assert_eq!(written(Escape::Json, "\"\\\n\u{1}é").unwrap(), "\\\"\\\\\\n\\u0001é");
        assert_eq!(written(Escape::PathRaw, "/a?b=c").unwrap(), "/a?b=c");
        assert!(written(Escape::PathRaw, "a b").is_err());
        assert!(written(Escape::Header, "a\r\nb: c").is_err());
        assert_eq!(written(Escape::None, "a\nb").unwrap(), "a\nb");
    }

    proptest! {
        #[test]
        fn cutting_never_panics_and_keeps_plain_text(text in ".*{0,40}") {
            for place in [Place::Path, Place::Json, Place::Plain] {
                if let Ok(found) = cut(&text, place) && !text.contains("{{") {
                    let joined: String = found.iter().map(|piece| match piece {
                        Piece::Text(text) => text.as_str(),
                        Piece::Placeholder(..) => "",
                    }).collect();
                    prop_assert_eq!(joined, text.clone());
                }
            }
        }

        #[test]
        fn json_strings_come_back_as_they_were(text in ".*") {
            let mut inside = String::new();
            json(&text, &mut inside);
            let read: String = serde_json::from_str(&format!("\"{inside}\"")).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}
