//! What an event says of one entity, cut where it is too long for one.

use super::value::{put_json, put_text};
use super::{MAX_PROPERTY_BYTES, PART_BYTES};
use crate::fault::Violation;
use crate::graph::Graph;
use crate::id::Entity;
use crate::names::Name;
use crate::value::Value;
use std::fmt::Write;

/// Fragments of one entity. Each is an object of its own and names the id.
pub(super) struct Fragments<'a> {
    names: &'a Graph,
    entity: Entity,
    /// What of the fragment is written besides properties: the braces are open.
    head: String,
    set: String,
    unset: String,
    pub(super) finished: Vec<String>,
}

impl<'a> Fragments<'a> {
    pub(super) fn new(names: &'a Graph, entity: Entity) -> Fragments<'a> {
        let (set, unset) = (String::new(), String::new());
        let mut fragments =
            Fragments { names, entity, head: String::new(), set, unset, finished: Vec::new() };
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

    /// Ends the fragment; what follows is in another.
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
        _ = write!(self.head, ",\"{field}\":");
        put_text(&mut self.head, &self.names.text(name));
    }

    pub(super) fn names(&mut self, field: &str, names: &[Name]) {
        _ = write!(self.head, ",\"{field}\":[");
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                self.head.push(',');
            }
            put_text(&mut self.head, &self.names.text(*name));
        }
        self.head.push(']');
    }

    fn room_for(&mut self, bytes: usize) {
        let written = self.set.len() + self.unset.len();
        if written > 0 && self.head.len() + written + bytes > PART_BYTES {
            self.cut();
        }
    }

    pub(super) fn set(&mut self, properties: &[(Name, Value)]) -> Result<(), Violation> {
        for (key, value) in properties {
            let mut json = String::new();
            let text = self.names.text(*key);
            put_text(&mut json, &text);
            json.push(':');
            put_json(&mut json, value);
            if json.len() > MAX_PROPERTY_BYTES {
                return Err(Violation::PropertyTooLarge { entity: self.entity, key: text });
            }
            self.room_for(json.len());
            if !self.set.is_empty() {
                self.set.push(',');
            }
            self.set.push_str(&json);
        }
        Ok(())
    }

    pub(super) fn unset(&mut self, keys: &[Name]) {
        for key in keys {
            let text = self.names.text(*key);
            self.room_for(2 * text.len());
            if !self.unset.is_empty() {
                self.unset.push(',');
            }
            put_text(&mut self.unset, &text);
        }
    }
}
