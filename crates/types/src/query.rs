//! Queries over types and tags, as the DCB specification defines them
//! (<https://dcb.events/specification/>): items are OR'ed; an event matches an
//! item if its type is one of the item's types and it carries all of its tags.

use crate::limits;
use crate::valid::{Invalid, Reason, check_tags, check_text};

/// A set of events: the union of its items, or every event if it has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Query {
    /// OR'ed; empty = all events.
    pub items: Vec<QueryItem>,
}

/// One alternative of a [`Query`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct QueryItem {
    /// The event's type is one of these; empty = any type.
    pub types: Vec<String>,
    /// The event carries all of these; empty = any tags.
    pub tags: Vec<String>,
}

impl QueryItem {
    /// An item from borrowed texts.
    #[must_use]
    pub fn new(types: &[&str], tags: &[&str]) -> QueryItem {
        let own = |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect();
        QueryItem { types: own(types), tags: own(tags) }
    }

    /// Whether the item asks for nothing in particular and so matches every event.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.types.is_empty() && self.tags.is_empty()
    }

    /// The definition of a match. Index and reader must agree with it; tests hold them to it.
    pub fn matches<'t>(
        &self,
        event_type: &str,
        tags: impl Iterator<Item = &'t str> + Clone,
    ) -> bool {
        (self.types.is_empty() || self.types.iter().any(|t| t == event_type))
            && self.tags.iter().all(|wanted| tags.clone().any(|tag| tag == wanted))
    }

    /// Checks lengths, counts and characters.
    ///
    /// # Errors
    /// [`Invalid`] with a path that starts at `types` or `tags`.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.types.len() > limits::MAX_QUERY_TYPES {
            let reason =
                Reason::TooManyAsked { count: self.types.len(), limit: limits::MAX_QUERY_TYPES };
            return Err(Invalid { field: "types".into(), reason });
        }
        for (i, event_type) in self.types.iter().enumerate() {
            check_text(event_type, limits::MAX_TYPE_BYTES)
                .map_err(|reason| Invalid { field: format!("types[{i}]"), reason })?;
        }
        check_tags(&self.tags).map_err(|invalid| match invalid.reason {
            Reason::TooMany { count, limit } => {
                Invalid { reason: Reason::TooManyAsked { count, limit }, ..invalid }
            }
            _ => invalid,
        })
    }
}

impl Query {
    /// Every event.
    #[must_use]
    pub fn all() -> Query {
        Query::default()
    }

    /// A query of one item.
    #[must_use]
    pub fn item(types: &[&str], tags: &[&str]) -> Query {
        Query { items: vec![QueryItem::new(types, tags)] }
    }

    /// Whether the query matches every event.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.items.is_empty() || self.items.iter().any(QueryItem::is_all)
    }

    /// Types and tags it names, each counted as often as it is named.
    #[must_use]
    pub fn term_count(&self) -> usize {
        self.items.iter().map(|item| item.types.len() + item.tags.len()).sum()
    }

    /// About what it takes in memory, in bytes, without itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let texts = self.items.iter().flat_map(|item| item.types.iter().chain(&item.tags));
        // A short text takes a block of its own.
        let texts = texts.map(|text| size_of::<String>() + text.len().next_multiple_of(16));
        texts.sum::<usize>() + self.items.len() * size_of::<QueryItem>()
    }

    /// The lowest-numbered item that matches, if any; for the query of all events, item 0.
    pub fn matching_item<'t>(
        &self,
        event_type: &str,
        tags: impl Iterator<Item = &'t str> + Clone,
    ) -> Option<usize> {
        if self.items.is_empty() {
            return Some(0);
        }
        self.items.iter().position(|item| item.matches(event_type, tags.clone()))
    }

    /// Checks lengths, counts and characters.
    ///
    /// # Errors
    /// [`Invalid`] with a path that starts at `items`.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.items.len() > limits::MAX_QUERY_ITEMS {
            let reason =
                Reason::TooManyAsked { count: self.items.len(), limit: limits::MAX_QUERY_ITEMS };
            return Err(Invalid { field: "items".into(), reason });
        }
        for (i, item) in self.items.iter().enumerate() {
            item.check().map_err(|fault| fault.within(&format!("items[{i}]")))?;
        }
        let count = self.term_count();
        if count > limits::MAX_QUERY_TERMS {
            let reason = Reason::TooManyTerms { count, limit: limits::MAX_QUERY_TERMS };
            return Err(Invalid { field: "items".into(), reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_that_of_texts_and_items() {
        let tags: Vec<String> = (0..1_000).map(|n| format!("{n:040}")).collect();
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        assert_eq!(Query::item(&[], &tags).memory_bytes(), 1_000 * (48 + 24) + 48);
        assert_eq!(Query::all().memory_bytes(), 0);
    }

    #[test]
    fn types_are_alternatives_and_tags_are_all_required() {
        let item = QueryItem::new(&["A", "B"], &["x", "y"]);
        assert!(item.matches("B", ["y", "z", "x"].into_iter()));
        assert!(!item.matches("C", ["x", "y"].into_iter()));
        assert!(!item.matches("A", ["x"].into_iter()));
    }

    #[test]
    fn no_items_and_an_empty_item_both_match_everything() {
        assert_eq!(Query::all().matching_item("T", [].into_iter()), Some(0));
        assert!(Query::item(&[], &[]).is_all());
        assert_eq!(Query::item(&["T"], &[]).matching_item("U", [].into_iter()), None);
    }

    #[test]
    fn faults_name_the_path() {
        let query =
            Query { items: vec![QueryItem::new(&["T"], &["a"]), QueryItem::new(&[""], &[])] };
        assert_eq!(query.check().unwrap_err().field, "items[1].types[0]");
        let types: Vec<String> = (0..256).map(|i| format!("T{i}")).collect();
        let tags: Vec<String> = (0..64).map(|i| format!("t:{i}")).collect();
        let mut costly = Query { items: vec![QueryItem { types, tags }; 12] };
        assert_eq!(costly.check(), Ok(()));
        costly.items.push(costly.items[0].clone());
        let fault = costly.check().unwrap_err();
        assert_eq!((fault.field.as_str(), fault.reason.is_size()), ("items", false));
        assert_eq!(fault.reason.limit(), Some(limits::MAX_QUERY_TERMS));
        let many = Query { items: vec![QueryItem::default(); 257] };
        assert_eq!(many.check().unwrap_err().field, "items");
        let texts = |count| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let types = QueryItem { types: texts(257), tags: Vec::new() };
        let tags = QueryItem { types: Vec::new(), tags: texts(65) };
        for (item, field, limit) in [(types, "items[0].types", 256), (tags, "items[0].tags", 64)] {
            let fault = Query { items: vec![item] }.check().unwrap_err();
            assert_eq!((fault.field.as_str(), fault.reason.limit()), (field, Some(limit)));
            assert!(!fault.reason.is_size(), "{fault}");
        }
    }
}
