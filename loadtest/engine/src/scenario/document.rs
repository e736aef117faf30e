//! A TOML document that knows its lines and the order of its keys, and refuses
//! keys that nobody asked for.

use super::error::ScenarioError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wellspring_readable::nearest::nearest;

/// A value and the line it stands on.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: u32,
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A TOML date or time, as written.
    Time(String),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<(String, Node)>),
}

impl Kind {
    /// For messages: "found …".
    pub(crate) fn what(&self) -> String {
        match self {
            Kind::Text(text) => format!("the text {text:?}"),
            Kind::Integer(number) => format!("the number {number}"),
            Kind::Float(number) => format!("the number {number}"),
            Kind::Bool(truth) => format!("{truth}"),
            Kind::Time(time) => format!("the date or time {time}"),
            Kind::List(_) => "a list".into(),
            Kind::Table(_) => "a table".into(),
        }
    }
}

/// Reads a document.
pub(crate) fn parse(text: &str) -> Result<Node, ScenarioError> {
    let lines = Lines::of(text);
    match DeTable::parse(text) {
        Ok(table) => Ok(Node { line: 1, kind: lines.table(table.get_ref())? }),
        Err(error) => {
            let line = error.span().map_or(1, |span| lines.at(span.start));
            Err(ScenarioError::at(line, "", format!("not valid TOML: {}", error.message())))
        }
    }
}

struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines { starts: breaks.map(|(at, _)| at + 1).collect() }
    }

    fn at(&self, offset: usize) -> u32 {
        let before = self.starts.partition_point(|start| *start <= offset);
        u32::try_from(before + 1).unwrap_or(u32::MAX)
    }

    fn table(&self, table: &DeTable<'_>) -> Result<Kind, ScenarioError> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let read = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let line = self.at(key.span().start);
            Ok((
                String::clone(&AsRef::<str>::as_ref(key.get_ref()).to_owned()),
                Node { line, kind: self.kind(value, line)? },
            ))
        };
        Ok(Kind::Table(entries.into_iter().map(read).collect::<Result<_, ScenarioError>>()?))
    }

    fn kind(&self, value: &Spanned<DeValue<'_>>, line: u32) -> Result<Kind, ScenarioError> {
        Ok(match value.get_ref() {
            DeValue::String(text) => Kind::Text(text.to_string()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                Kind::Integer(parsed.map_err(|_| {
                    ScenarioError::at(line, "", format!("{number} does not fit into 64 bits"))
                })?)
            }
            DeValue::Float(number) => {
                Kind::Float(number.as_str().parse().map_err(|_| {
                    ScenarioError::at(line, "", format!("{number} is not a number"))
                })?)
            }
            DeValue::Boolean(truth) => Kind::Bool(*truth),
            DeValue::Datetime(time) => Kind::Time(time.to_string()),
            DeValue::Array(items) => Kind::List(
                items
                    .iter()
                    .map(|item| {
                        let line = self.at(item.span().start);
                        Ok(Node { line, kind: self.kind(item, line)? })
                    })
                    .collect::<Result<_, ScenarioError>>()?,
            ),
            DeValue::Table(table) => self.table(table)?,
        })
    }
}

/// The keys of one table, taken one by one. What is left at the end is an error.
pub(crate) struct Fields<'d> {
    /// The part of the scenario, for messages, e.g. `step "create"`.
    pub(crate) place: String,
    /// Where the table begins.
    pub(crate) line: u32,
    entries: &'d [(String, Node)],
    known: Vec<&'static str>,
}

impl<'d> Fields<'d> {
    /// The keys of `node`, which must be a table.
    pub(crate) fn of(node: &'d Node, place: impl Into<String>) -> Result<Self, ScenarioError> {
        let place = place.into();
        match &node.kind {
            Kind::Table(entries) => {
                Ok(Fields { place, line: node.line, entries, known: Vec::new() })
            }
            other => Err(ScenarioError::at(
                node.line,
                place,
                format!("expected a table, found {}", other.what()),
            )),
        }
    }

    /// An error of this table.
    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        ScenarioError::at(self.line, self.place.clone(), message)
    }

    /// The place of one of its keys, for messages.
    pub(crate) fn inside(&self, key: &str) -> String {
        match self.place.as_str() {
            "" => key.to_owned(),
            place => format!("{place}, {key}"),
        }
    }

    /// An error of one of its values.
    pub(crate) fn wrong(
        &self,
        key: &str,
        node: &Node,
        message: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError::at(node.line, self.inside(key), message)
    }

    fn expected(&self, key: &str, node: &Node, what: &str) -> ScenarioError {
        self.wrong(key, node, format!("expected {what}, found {}", node.kind.what()))
    }

    /// The value of a key, if it is there.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'d Node> {
        self.known.push(key);
        self.entries.iter().find(|(there, _)| there == key).map(|(_, node)| node)
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<&'d str>, ScenarioError> {
        match self.take(key) {
            None => Ok(None),
            Some(Node { kind: Kind::Text(text), .. }) => Ok(Some(text)),
            Some(other) => Err(self.expected(key, other, "a text in quotes")),
        }
    }

    /// A whole number between two bounds, both allowed.
    pub(crate) fn integer(
        &mut self,
        key: &'static str,
        least: i64,
        most: i64,
    ) -> Result<Option<i64>, ScenarioError> {
        match self.take(key) {
            None => Ok(None),
            Some(Node { kind: Kind::Integer(n), .. }) if (least..=most).contains(n) => Ok(Some(*n)),
            Some(other) => {
                let what = format!("a whole number from {least} to {most}");
                Err(self.expected(key, other, &what))
            }
        }
    }

    /// A number above zero.
    pub(crate) fn positive(&mut self, key: &'static str) -> Result<Option<f64>, ScenarioError> {
        let number = match self.take(key) {
            None => return Ok(None),
            Some(node) => match &node.kind {
                Kind::Integer(n) => (*n as f64, node),
                Kind::Float(n) => (*n, node),
                _ => (f64::NAN, node),
            },
        };
        if number.0.is_finite() && number.0 > 0.0 {
            Ok(Some(number.0))
        } else {
            Err(self.expected(key, number.1, "a number above 0"))
        }
    }

    /// True or false.
    pub(crate) fn boolean(&mut self, key: &'static str) -> Result<Option<bool>, ScenarioError> {
        match self.take(key) {
            None => Ok(None),
            Some(Node { kind: Kind::Bool(truth), .. }) => Ok(Some(*truth)),
            Some(other) => Err(self.expected(key, other, "true or false")),
        }
    }

    /// One text, or a list of texts; each with its line.
    pub(crate) fn texts(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<(&'d str, u32)>, ScenarioError> {
        let Some(node) = self.take(key) else { return Ok(Vec::new()) };
        let items = match &node.kind {
            Kind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        items
            .iter()
            .map(|item| match &item.kind {
                Kind::Text(text) => Ok((text.as_str(), item.line)),
                _ => Err(self.expected(key, item, "a text, or a list of texts")),
            })
            .collect()
    }

    /// A list of tables (`[[key]]`).
    pub(crate) fn tables(&mut self, key: &'static str) -> Result<&'d [Node], ScenarioError> {
        match self.take(key) {
            None => Ok(&[]),
            Some(Node { kind: Kind::List(items), .. }) => Ok(items),
            Some(other) => {
                Err(self.expected(key, other, &format!("a list of tables, written [[{key}]]")))
            }
        }
    }

    /// The entries of a table under a key, whatever their names.
    pub(crate) fn entries(
        &mut self,
        key: &'static str,
    ) -> Result<&'d [(String, Node)], ScenarioError> {
        match self.take(key) {
            None => Ok(&[]),
            Some(Node { kind: Kind::Table(entries), .. }) => Ok(entries),
            Some(other) => Err(self.expected(key, other, "a table")),
        }
    }

    /// Refuses what was not taken.
    pub(crate) fn finish(self) -> Result<(), ScenarioError> {
        let unknown = self.entries.iter().find(|(key, _)| !self.known.contains(&key.as_str()));
        let Some((key, node)) = unknown else { return Ok(()) };
        let meant = match nearest(key, self.known.iter().copied()) {
            Some(near) => format!("; did you mean {near:?}?"),
            None => ".".to_owned(),
        };
        let mut known = self.known.clone();
        known.sort_unstable();
        known.dedup();
        Err(ScenarioError::at(
            node.line,
            self.place,
            format!("unknown key {key:?}{meant} Known here: {}", known.join(", ")),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_lines() {
        let node = parse("b = 1\na = \"x\"\n\n[t]\nz = [1,\n 2.5]\ny = {q = true, p = 0x10}\n");
        let node = node.unwrap();
        let Kind::Table(entries) = &node.kind else { panic!("a table") };
        let keys: Vec<_> = entries.iter().map(|(k, n)| (k.as_str(), n.line)).collect();
        assert_eq!(keys, [("b", 1), ("a", 2), ("t", 4)]);
        let mut fields = Fields::of(&entries[2].1, "t").unwrap();
        let z = fields.take("z").unwrap();
        let Kind::List(items) = &z.kind else { panic!("a list") };
        assert_eq!((items[0].line, items[1].line), (5, 6));
        let inner: Vec<_> = fields.entries("y").unwrap().iter().map(|(k, _)| k.as_str()).collect();
        assert_eq!(inner, ["q", "p"]);
        assert!(fields.finish().is_ok());
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_known_one() {
        let node = parse("name = \"a\"\nwieght = 3\n").unwrap();
        let mut fields = Fields::of(&node, "step 1").unwrap();
        fields.take("name");
        fields.take("weight");
        let error = fields.finish().unwrap_err().to_string();
        assert_eq!(
            error,
            "line 2: step 1: unknown key \"wieght\"; did you mean \"weight\"? Known here: name, weight"
        );
    }

    #[test]
    fn wrong_kinds_and_broken_toml_name_the_line() {
        let node = parse("a = 1\nb = \"x\"\nc = 99999999999\n").unwrap();
        let mut fields = Fields::of(&node, "").unwrap();
        let message = fields.text("a").unwrap_err().to_string();
        assert_eq!(message, "line 1: a: expected a text in quotes, found the number 1");
        assert!(fields.integer("b", 0, 9).unwrap_err().to_string().contains("from 0 to 9"));
        assert!(fields.integer("c", 0, 9).is_err());
        let error = parse("a = 1\nb = \n").unwrap_err();
        assert_eq!(error.line, Some(2));
        assert!(error.message.starts_with("not valid TOML"), "{error}");
        assert_eq!(parse("a = 99999999999999999999\n").unwrap_err().line, Some(1));
    }
}
