//! Ids of nodes and relationships: 48 bits, assigned from a counter and never reused.

use crate::limits::MAX_ID;
use std::fmt;

/// A node's id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u64);

/// A relationship's id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationshipId(u64);

/// A node or a relationship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entity {
    /// A node.
    Node(NodeId),
    /// A relationship.
    Relationship(RelationshipId),
}

macro_rules! id {
    ($name:ident) => {
        impl $name {
            /// The id with this number; `None` from 2^48 on.
            #[must_use]
            pub fn new(number: u64) -> Option<$name> {
                (number < MAX_ID).then_some($name(number))
            }

            /// The number, below 2^48.
            #[must_use]
            pub fn number(self) -> u64 {
                self.0
            }

            /// The number as part of a key.
            pub(crate) fn bytes(self) -> [u8; 6] {
                let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
                [a, b, c, d, e, f]
            }

            /// Reads six bytes of a key.
            pub(crate) fn from_bytes(bytes: [u8; 6]) -> $name {
                let [a, b, c, d, e, f] = bytes;
                $name(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

id!(NodeId);
id!(RelationshipId);
