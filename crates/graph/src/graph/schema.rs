//! Indexes and constraints.

use crate::names::Name;
use std::sync::Arc;

/// The kind of a schema item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaKind {
    /// An index for equality lookups.
    Range,
    /// No two entities have the same values; entities that lack a key are exempt.
    Unique,
    /// Every entity has all keys.
    Exists,
    /// Every entity has all keys, and no two have the same values.
    Key,
    /// Lists of numbers, for searches by likeness. It has no entries: searches compare all.
    Vector(VectorSettings),
    /// Words, for searches by text. It has no entries: searches read all.
    Fulltext,
}

/// The settings of an index of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VectorSettings {
    /// The length of its vectors; any if 0.
    pub dimensions: u16,
    /// What makes two vectors alike.
    pub similarity: Similarity,
}

/// What makes two vectors alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Similarity {
    /// A small angle between them.
    Cosine,
    /// A small distance between them.
    Euclidean,
}

impl SchemaKind {
    /// Whether it is a constraint.
    #[must_use]
    pub fn is_constraint(self) -> bool {
        matches!(self, SchemaKind::Unique | SchemaKind::Exists | SchemaKind::Key)
    }

    /// Whether it maintains entries for look-ups of equal values.
    #[must_use]
    pub fn is_indexed(self) -> bool {
        matches!(self, SchemaKind::Range | SchemaKind::Unique | SchemaKind::Key)
    }

    pub(crate) fn is_unique(self) -> bool {
        matches!(self, SchemaKind::Unique | SchemaKind::Key)
    }

    pub(crate) fn is_required(self) -> bool {
        matches!(self, SchemaKind::Exists | SchemaKind::Key)
    }
}

/// The entities that a schema item applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaSubject {
    /// Nodes with this label.
    Label(Name),
    /// Relationships of this type.
    Type(Name),
}

/// The definition of a schema item, independent of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaDefinition {
    /// Its name, unique in the graph.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: SchemaKind,
    /// The entities it applies to.
    pub subject: SchemaSubject,
    /// Further labels or types, which only an index of words can have.
    pub others: Vec<Name>,
    /// The property keys, in order.
    pub keys: Vec<Name>,
}

impl SchemaDefinition {
    /// Replaces the names that it applies to.
    pub(crate) fn rename(&mut self, rename: impl Fn(&mut Name)) {
        let (SchemaSubject::Label(subject) | SchemaSubject::Type(subject)) = &mut self.subject;
        rename(subject);
        self.others.iter_mut().for_each(&rename);
        self.keys.iter_mut().for_each(rename);
    }

    /// Whether both have the same effect, regardless of their names and settings.
    #[must_use]
    pub fn is_equivalent(&self, other: &SchemaDefinition) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
            && (self.subject, &self.others, &self.keys)
                == (other.subject, &other.others, &other.keys)
    }

    /// Its labels or types, in order.
    pub fn subjects(&self) -> impl Iterator<Item = Name> {
        let (SchemaSubject::Label(first) | SchemaSubject::Type(first)) = self.subject;
        std::iter::once(first).chain(self.others.iter().copied())
    }
}

/// A schema item with the number of its index in this version.
#[derive(Debug, Clone)]
pub(crate) struct SchemaItem {
    pub(crate) number: u32,
    pub(crate) definition: SchemaDefinition,
}

/// All indexes and constraints of a version, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    items: Vec<SchemaItem>,
}

impl Schema {
    pub(crate) fn items(&self) -> &[SchemaItem] {
        &self.items
    }

    /// The items that apply to nodes with these labels.
    pub(crate) fn of_labels(&self, labels: &[Name]) -> impl Iterator<Item = &SchemaItem> {
        self.items.iter().filter(|item| match item.definition.subject {
            SchemaSubject::Label(label) => labels.binary_search(&label).is_ok(),
            SchemaSubject::Type(_) => false,
        })
    }

    /// The items that apply to relationships of this type.
    pub(crate) fn of_type(&self, name: Name) -> impl Iterator<Item = &SchemaItem> {
        self.items.iter().filter(move |item| item.definition.subject == SchemaSubject::Type(name))
    }

    /// An item whose index supports equality lookups of one key.
    pub(crate) fn index(&self, subject: SchemaSubject, key: Name) -> Option<&SchemaItem> {
        self.items.iter().find(|SchemaItem { definition, .. }| {
            definition.kind.is_indexed()
                && definition.subject == subject
                && definition.keys == [key]
        })
    }

    /// The item with the most keys, at least two, whose index supports equality lookups of some or
    /// all of these keys.
    pub(crate) fn composite(&self, subject: SchemaSubject, keys: &[Name]) -> Option<&SchemaItem> {
        let fits = |item: &&SchemaItem| {
            let definition = &item.definition;
            definition.kind.is_indexed()
                && definition.subject == subject
                && definition.keys.len() > 1
                && definition.keys.iter().all(|key| keys.contains(key))
        };
        self.items.iter().filter(fits).max_by_key(|item| item.definition.keys.len())
    }

    pub(crate) fn add(&mut self, definition: SchemaDefinition) -> SchemaItem {
        let number = self.items.iter().map(|item| item.number + 1).max().unwrap_or(0);
        let item = SchemaItem { number, definition };
        self.restore(item.clone());
        item
    }

    /// Adds an item that already has its number.
    pub(crate) fn restore(&mut self, item: SchemaItem) {
        let at = self.items.partition_point(|known| known.definition.name < item.definition.name);
        self.items.insert(at, item);
    }

    /// Replaces items by those with the same names.
    pub(crate) fn redefine(&mut self, definitions: &[SchemaDefinition]) {
        for definition in definitions {
            let item = self.items.iter_mut().find(|item| item.definition.name == definition.name);
            if let Some(item) = item {
                item.definition = definition.clone();
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<SchemaItem> {
        let at = self.items.iter().position(|item| &*item.definition.name == name)?;
        Some(self.items.remove(at))
    }
}
