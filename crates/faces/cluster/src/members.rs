//! The known nodes and their URLs.

use std::collections::BTreeMap;

/// URLs of nodes by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members(BTreeMap<String, String>);

impl Members {
    /// Adds a node, or updates it.
    pub(super) fn know(&mut self, node: &str, url: &str) {
        self.0.insert(node.to_owned(), url.to_owned());
    }

    /// The URL of a node of this name, if there is one.
    pub(super) fn url(&self, node: &str) -> Option<&str> {
        self.0.get(node).map(String::as_str)
    }

    /// Names and URLs, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(node, url)| (node.as_str(), url.as_str()))
    }
}
