//! The fields of an entity in an event, split where they are too long for one event.

use super::value::{put_json, put_text};
use super::{MAX_PROPERTY_BYTES, PART_BYTES};
use crate::fault::Violation;
use crate::graph::Graph;
use crate::id::Entity;
use crate::names::Name;
use crate::value::Value;
use std::fmt::Write;

/// Fragments of one entity. Each is a separate object with the id.
pub(super) struct Fragments<'a> {
    names: &'a Graph,
    entity: Entity,
    /// The fragment's fields other than properties; the braces are still open.
    head: String,
    set: String,
    unset: String,
    pub(super) finished: Vec<String>,
}

impl<'a> Fragments<'a> {
    pub(super) fn new(names: &'a Graph, entity: Entity) -> Fragments<'a> {
        // Most entities have few fields.
        let (head, set) = (String::with_capacity(160), String::with_capacity(96));
        let (unset, finished) = (String::new(), Vec::with_capacity(1));
        let mut fragments = Fragments { names, entity, head, set, unset, finished };
        fragments.begin();
        fragments
    }

    fn begin(&mut self) {
        let number = match self.entity {
            Entity::Node(id) => id.number(),
            Entity::Relationship(id) => id.number(),
        };
        _ = write!(self.head, "{{\"id\":{number}");
    }

    /// Ends the fragment; the rest goes to the next one.
    pub(super) fn cut(&mut self) {
        self.end();
        self.begin();
    }

    fn end(&mut self) {
        let mut json = std::mem::take(&mut self.head);
        for (field, [open, close], part) in
            [("set", ['{', '}'], &mut self.set), ("unset", ['[', ']'], &mut self.unset)]
        {
            if !part.is_empty() {
                json.extend([",\"", field, "\":"]);
                json.push(open);
                json.push_str(part);
                json.push(close);
                part.clear();
            }
        }
        json.push('}');
        self.finished.push(json);
    }

    pub(super) fn finish(mut self) -> Vec<String> {
        self.end();
        self.finished
    }

    pub(super) fn field(&mut self, field: &str, json: impl std::fmt::Display) {
        _ = write!(self.head, ",\"{field}\":{json}");
    }

    pub(super) fn name(&mut self, field: &str, name: Name) {
        self.head.extend([",\"", field, "\":"]);
        put_text(&mut self.head, &self.names.text(name));
    }

    pub(super) fn names(&mut self, field: &str, names: &[Name]) {
        self.head.extend([",\"", field, "\":["]);
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                self.head.push(',');
            }
            put_text(&mut self.head, &self.names.text(*name));
        }
        self.head.push(']');
    }

    /// Whether `bytes` more bytes, after `written` ones, require another fragment.
    fn is_full(&self, written: usize, bytes: usize) -> bool {
        written > 0 && self.head.len() + written + bytes > PART_BYTES
    }

    pub(super) fn set(&mut self, properties: &[(Name, Value)]) -> Result<(), Violation> {
        for (key, value) in properties {
            let text = self.names.text(*key);
            let end = self.set.len();
            if end > 0 {
                self.set.push(',');
            }
            let begin = self.set.len();
            put_text(&mut self.set, &text);
            self.set.push(':');
            put_json(&mut self.set, value);
            let bytes = self.set.len() - begin;
            if bytes > MAX_PROPERTY_BYTES {
                return Err(Violation::PropertyTooLarge { entity: self.entity, key: text });
            }
            if self.is_full(end + self.unset.len(), bytes) {
                let json = self.set.split_off(begin);
                self.set.truncate(end);
                self.cut();
                self.set.push_str(&json);
            }
        }
        Ok(())
    }

    pub(super) fn unset(&mut self, keys: &[Name]) {
        for key in keys {
            let text = self.names.text(*key);
            if self.is_full(self.set.len() + self.unset.len(), 2 * text.len()) {
                self.cut();
            }
            if !self.unset.is_empty() {
                self.unset.push(',');
            }
            put_text(&mut self.unset, &text);
        }
    }
}
