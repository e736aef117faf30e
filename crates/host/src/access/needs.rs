//! The access a route requires.

use crate::identity::Role;
use std::fmt;

/// The access a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// None.
    Public,
    /// Any valid credential; the handler decides what it may see.
    Account,
    /// This role on the route's log, or on everything if the route concerns no log.
    Role(Role),
    /// A signed request of a node of this cluster, regardless of the original sender.
    Node,
}

impl Needs {
    /// Whether accounts decide; not for public routes or those for nodes.
    pub fn are_of_accounts(self) -> bool {
        match self {
            Needs::Public | Needs::Node => false,
            Needs::Account | Needs::Role(_) => true,
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Needs::Public => f.write_str("nothing"),
            Needs::Account => f.write_str("an account"),
            Needs::Role(role) => role.fmt(f),
            Needs::Node => f.write_str("a node"),
        }
    }
}
