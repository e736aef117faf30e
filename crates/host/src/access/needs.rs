//! What a route asks of who calls it.

use std::fmt;
use wellspring_views::access::Role;

/// What a route asks of who calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Nothing.
    Public,
    /// Any credential that counts; what it may see is the handler's to say.
    Account,
    /// This role on the log that the route is about, or on everything if it is about none.
    Role(Role),
    /// That the request is of a node of this cluster, whoever it came from first.
    Node,
}

impl Needs {
    /// Whether accounts tell who may; not if everybody may, or nodes alone.
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
