//! Values in the kit's notation: `(:A {x: 1})`, `[:T]`, `<(:A)-[:T]->()>`, lists, maps, numbers,
//! strings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// An expected or actual value, with entities in full.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TckValue {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    /// Strings, and temporal values as text.
    String(String),
    List(Vec<TckValue>),
    Map(BTreeMap<String, TckValue>),
    Node(TckNode),
    Relationship(TckRelationship),
    /// A node, and steps: whether forward, the relationship, the node it leads to.
    Path(TckNode, Vec<(bool, TckRelationship, TckNode)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TckNode {
    /// Sorted.
    pub(crate) labels: Vec<String>,
    pub(crate) properties: BTreeMap<String, TckValue>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TckRelationship {
    pub(crate) name: String,
    pub(crate) properties: BTreeMap<String, TckValue>,
}

/// Whether the order within lists is significant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListOrder {
    Regarded,
    Ignored,
}

impl TckValue {
    /// Equal values have equal text. NaN equals itself, `1` differs from `1.0`.
    pub(crate) fn text(&self, order: ListOrder) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(truth) => truth.to_string(),
            Self::Integer(integer) => integer.to_string(),
            Self::Float(float) if float.is_nan() => "NaN".to_owned(),
            // Negative zero is zero.
            Self::Float(float) => format!("{:?}", float + 0.0),
            Self::String(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
            Self::List(items) => {
                let mut texts: Vec<String> = items.iter().map(|item| item.text(order)).collect();
                if order == ListOrder::Ignored {
                    texts.sort();
                }
                format!("[{}]", texts.join(", "))
            }
            Self::Map(entries) => map_text(entries, order),
            Self::Node(node) => node_text(node, order),
            Self::Relationship(relationship) => relationship_text(relationship, order),
            Self::Path(start, steps) => {
                let mut text = format!("<{}", node_text(start, order));
                for (forward, relationship, node) in steps {
                    let (left, right) = if *forward { ("-", "->") } else { ("<-", "-") };
                    let relationship = relationship_text(relationship, order);
                    // Writing to a string cannot fail.
                    _ = write!(text, "{left}{relationship}{right}{}", node_text(node, order));
                }
                text + ">"
            }
        }
    }
}

fn map_text(entries: &BTreeMap<String, TckValue>, order: ListOrder) -> String {
    let texts: Vec<String> =
        entries.iter().map(|(key, value)| format!("{key}: {}", value.text(order))).collect();
    format!("{{{}}}", texts.join(", "))
}

fn properties_text(entries: &BTreeMap<String, TckValue>, order: ListOrder) -> String {
    if entries.is_empty() { String::new() } else { format!(" {}", map_text(entries, order)) }
}

fn node_text(node: &TckNode, order: ListOrder) -> String {
    let labels: String = node.labels.iter().map(|label| format!(":{label}")).collect();
    format!("({labels}{})", properties_text(&node.properties, order))
}

fn relationship_text(relationship: &TckRelationship, order: ListOrder) -> String {
    format!("[:{}{}]", relationship.name, properties_text(&relationship.properties, order))
}

/// Parses a value; returns what is wrong if it is invalid.
pub(crate) fn parse(text: &str) -> Result<TckValue, String> {
    let mut reader = Reader { rest: text };
    let value = reader.value()?;
    reader.skip();
    if reader.rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("{:?} follows a value", reader.rest))
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Whether a token is next; consumes it if so.
    fn take(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn demand(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            Ok(())
        } else {
            Err(format!("{token} expected before {:?}", self.rest))
        }
    }

    fn word(&mut self) -> &'a str {
        self.skip();
        if let Some(quoted) = self.rest.strip_prefix('`')
            && let Some((word, rest)) = quoted.split_once('`')
        {
            self.rest = rest;
            return word;
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '-');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn value(&mut self) -> Result<TckValue, String> {
        self.skip();
        match self.rest.chars().next() {
            Some('\'') => self.string(),
            Some('[') => {
                if self.rest[1..].trim_start().starts_with(':') {
                    self.relationship().map(TckValue::Relationship)
                } else {
                    self.list()
                }
            }
            Some('{') => self.map().map(TckValue::Map),
            Some('(') => self.node().map(TckValue::Node),
            Some('<') => self.path(),
            _ => scalar(self.word()),
        }
    }

    fn string(&mut self) -> Result<TckValue, String> {
        self.demand("'")?;
        let mut text = String::new();
        let mut characters = self.rest.chars();
        loop {
            match characters.next() {
                Some('\'') => break,
                Some('\\') => match characters.next() {
                    Some(escaped @ ('\'' | '\\')) => text.push(escaped),
                    Some(other) => text.extend(['\\', other]),
                    None => return Err("a string without an end".to_owned()),
                },
                Some(other) => text.push(other),
                None => return Err("a string without an end".to_owned()),
            }
        }
        self.rest = characters.as_str();
        Ok(TckValue::String(text))
    }

    fn list(&mut self) -> Result<TckValue, String> {
        self.demand("[")?;
        let mut items = Vec::new();
        if self.take("]") {
            return Ok(TckValue::List(items));
        }
        loop {
            items.push(self.value()?);
            if !self.take(",") {
                break;
            }
        }
        self.demand("]")?;
        Ok(TckValue::List(items))
    }

    fn map(&mut self) -> Result<BTreeMap<String, TckValue>, String> {
        self.demand("{")?;
        let mut entries = BTreeMap::new();
        if self.take("}") {
            return Ok(entries);
        }
        loop {
            let key = self.word().to_owned();
            self.demand(":")?;
            entries.insert(key, self.value()?);
            if !self.take(",") {
                break;
            }
        }
        self.demand("}")?;
        Ok(entries)
    }

    fn properties(&mut self) -> Result<BTreeMap<String, TckValue>, String> {
        self.skip();
        if self.rest.starts_with('{') { self.map() } else { Ok(BTreeMap::new()) }
    }

    fn node(&mut self) -> Result<TckNode, String> {
        self.demand("(")?;
        let mut labels = Vec::new();
        while self.take(":") {
            labels.push(self.word().to_owned());
        }
        labels.sort();
        let properties = self.properties()?;
        self.demand(")")?;
        Ok(TckNode { labels, properties })
    }

    fn relationship(&mut self) -> Result<TckRelationship, String> {
        self.demand("[")?;
        self.demand(":")?;
        let name = self.word().to_owned();
        let properties = self.properties()?;
        self.demand("]")?;
        Ok(TckRelationship { name, properties })
    }

    fn path(&mut self) -> Result<TckValue, String> {
        self.demand("<")?;
        let start = self.node()?;
        let mut steps = Vec::new();
        while !self.take(">") {
            let forward = !self.take("<-");
            if forward {
                self.demand("-")?;
            }
            let relationship = self.relationship()?;
            self.demand(if forward { "->" } else { "-" })?;
            steps.push((forward, relationship, self.node()?));
        }
        Ok(TckValue::Path(start, steps))
    }
}

fn scalar(word: &str) -> Result<TckValue, String> {
    Ok(match word {
        "null" => TckValue::Null,
        "true" => TckValue::Boolean(true),
        "false" => TckValue::Boolean(false),
        "NaN" => TckValue::Float(f64::NAN),
        "Inf" => TckValue::Float(f64::INFINITY),
        "-Inf" => TckValue::Float(f64::NEG_INFINITY),
        number => match number.parse() {
            Ok(integer) => TckValue::Integer(integer),
            Err(_) => {
                TckValue::Float(number.parse().map_err(|_| format!("{number:?} is no value"))?)
            }
        },
    })
}

/// Called by the kit before the scenarios: it has no test harness.
pub(crate) fn check() {
    for text in [
        "null",
        "[1, 1.0, -3, 'it\\'s', [], {}]",
        "{a: [true, NaN], b: {c: 'x'}}",
        "(:A:B {x: 1})",
        "()",
        "[:T {since: 1}]",
        "<(:A)-[:T]->()<-[:S {x: 'y'}]-(:B)>",
        "<()>",
    ] {
        let value = parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
        assert_eq!(value.text(ListOrder::Regarded), text);
    }
    let (one, other) = (parse("(:B:A)"), parse("(:A:B)"));
    assert_eq!(one, other);
    let mixed = parse("[2, 1]").expect("a list");
    assert_eq!(mixed.text(ListOrder::Ignored), "[1, 2]");
    assert!(parse("[1").is_err() && parse("x").is_err());
}
