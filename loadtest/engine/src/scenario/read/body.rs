//! Bodies, queries and forms written as TOML tables.

use super::super::document::{Kind, Node};
use super::super::template::{self, Escape, Piece, Place};
use crate::invalid::Invalid;

/// A TOML value as the pieces of a JSON text. A text that is nothing but one
/// placeholder with `raw:` stands without quotes, so that it can be a number.
pub(crate) fn json_pieces(node: &Node) -> Result<Vec<Piece>, Invalid> {
    let mut writer = Writer::default();
    writer.value(node)?;
    writer.end();
    Ok(writer.pieces)
}

#[derive(Default)]
struct Writer {
    pieces: Vec<Piece>,
    text: String,
}

impl Writer {
    fn value(&mut self, node: &Node) -> Result<(), Invalid> {
        match &node.kind {
            Kind::Text(text) => self.string(text)?,
            Kind::Integer(number) => self.text.push_str(&number.to_string()),
            Kind::Float(number) if number.is_finite() => {
                self.text.push_str(&serde_json::Value::from(*number).to_string());
            }
            Kind::Float(number) => return Err(format!("JSON has no {number}").into()),
            Kind::Bool(truth) => self.text.push_str(if *truth { "true" } else { "false" }),
            Kind::Time(time) => self.string(time)?,
            Kind::List(items) => {
                self.text.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.text.push(',');
                    }
                    self.value(item)?;
                }
                self.text.push(']');
            }
            Kind::Table(entries) => {
                self.text.push('{');
                for (at, (key, value)) in entries.iter().enumerate() {
                    if at > 0 {
                        self.text.push(',');
                    }
                    self.string(key)?;
                    self.text.push(':');
                    self.value(value)?;
                }
                self.text.push('}');
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), Invalid> {
        let pieces = template::cut(text, Place::Plain)?;
        if let [Piece::Placeholder(name, _)] = pieces.as_slice()
            && name.starts_with("raw:")
        {
            self.placeholder(name.clone(), Escape::None);
            return Ok(());
        }
        self.text.push('"');
        for piece in pieces {
            match piece {
                Piece::Text(text) => template::json(&text, &mut self.text),
                Piece::Placeholder(name, _) => self.placeholder(name, Escape::Json),
            }
        }
        self.text.push('"');
        Ok(())
    }

    fn placeholder(&mut self, name: String, escape: Escape) {
        self.end();
        self.pieces.push(Piece::Placeholder(name, escape));
    }

    fn end(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
        }
    }
}

/// `name=value` pairs of a query or a form. A table or a list of tables goes in as JSON;
/// a list of plain values gives one pair each.
pub(crate) fn pairs(entries: &[(String, Node)], form: bool) -> Result<Vec<Piece>, Invalid> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (key, node) in entries {
        let plain = |item: &Node| !matches!(item.kind, Kind::Table(_) | Kind::List(_));
        let values = match &node.kind {
            Kind::List(items) if items.iter().all(plain) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for value in values {
            let mut text = String::new();
            if !pieces.is_empty() {
                text.push('&');
            }
            template::percent(key, &mut text, form);
            text.push('=');
            pieces.push(Piece::Text(text));
            pieces.extend(pair_value(value, form)?);
        }
    }
    Ok(pieces)
}

fn pair_value(node: &Node, form: bool) -> Result<Vec<Piece>, Invalid> {
    let (cut, nested) = match &node.kind {
        Kind::Text(text) => (template::cut(text, Place::Plain)?, false),
        Kind::Time(time) => (vec![Piece::Text(time.clone())], false),
        _ => (json_pieces(node)?, true),
    };
    let encode = |piece| match piece {
        Piece::Text(text) => {
            let mut encoded = String::new();
            template::percent(&text, &mut encoded, form);
            Piece::Text(encoded)
        }
        Piece::Placeholder(name, Escape::Json) if nested => {
            Piece::Placeholder(name, Escape::JsonPercent)
        }
        Piece::Placeholder(name, _) => {
            let escape = if form { Escape::Form } else { Escape::Percent };
            Piece::Placeholder(name, escape)
        }
    };
    Ok(cut.into_iter().map(encode).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::document;
    use super::*;

    fn shown(pieces: Vec<Piece>) -> String {
        let show = |piece| match piece {
            Piece::Text(text) => text,
            Piece::Placeholder(name, escape) => format!("<{name} {escape:?}>"),
        };
        pieces.into_iter().map(show).collect()
    }

    fn entries(text: &str) -> Vec<(String, Node)> {
        match document::parse(text).unwrap().kind {
            Kind::Table(entries) => entries,
            _ => unreachable!("a document is a table"),
        }
    }

    #[test]
    fn tables_become_json_in_their_own_order() {
        let body = entries(
            "b = {z = 1, a = [1.5, true, \"q\\\"{{x}}\"], n = \"{{raw:counter}}\", t = \"{{'{{'}}\"}",
        );
        assert_eq!(
            shown(json_pieces(&body[0].1).unwrap()),
            r#"{"z":1,"a":[1.5,true,"q\"<x Json>"],"n":<raw:counter None>,"t":"{{"}"#
        );
        assert!(json_pieces(&entries("a = nan")[0].1).is_err());
    }

    #[test]
    fn queries_and_forms_are_encoded_once() {
        let query = entries(
            "'a b' = \"c d{{x}}\"\nn = 5\ntag = [\"1\", \"2\"]\nq = {items = [{t = \"{{x}}\"}]}",
        );
        assert_eq!(
            shown(pairs(&query, false).unwrap()),
            "a%20b=c%20d<x Percent>&n=5&tag=1&tag=2&q=%7B%22items%22%3A%5B%7B%22t%22%3A%22<x JsonPercent>%22%7D%5D%7D"
        );
        assert_eq!(shown(pairs(&query[..1], true).unwrap()), "a+b=c+d<x Form>");
    }
}
