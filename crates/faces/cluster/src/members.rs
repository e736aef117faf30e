//! The known nodes and their URLs.

use super::problems::NODE_NOT_FOUND;
use std::collections::BTreeMap;
use wellspring_host::wire::problem::Problem;

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

    /// The URL of a node that a request names as `to`.
    ///
    /// # Errors
    /// 404: there is none.
    pub(super) fn known_url(&self, node: &str) -> Result<&str, Box<Problem>> {
        self.url(node).ok_or_else(|| self.lack(node).field("to"))
    }

    /// There is no node of this name.
    pub(super) fn lack(&self, node: &str) -> Box<Problem> {
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let detail = format!("no node {node:?} has joined; known nodes: {}", known.join(", "));
        NODE_NOT_FOUND.because(detail)
    }

    /// Names and URLs, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(node, url)| (node.as_str(), url.as_str()))
    }
}
