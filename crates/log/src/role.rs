//! What a node is to a log: whether it takes appends, and if not, who does.

use crate::shared::Place;
use std::fmt;

/// A node that leads a log, as it named itself in its claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leader {
    /// Its name.
    pub node: String,
    /// Where its clients reach it.
    pub url: String,
    /// The epoch in which it leads.
    pub epoch: u64,
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}), in epoch {}", self.node, self.url, self.epoch)
    }
}

/// What this process is to a log. Reads, subscriptions and views go on in every role.
///
/// ```text
/// CatchingUp ──► Following ◄──► Claiming ──► Leading
///                    ▲                          │
///                    └──────────────────────────┘     any ──► Detached
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The copy is behind what the shared log was found to hold when it was opened. Appends are
    /// refused.
    CatchingUp {
        /// Everything up to here is in the copy.
        place: Place,
        /// Where the shared log ended, once that is known.
        end: Option<Place>,
    },
    /// Another node leads, or none. Appends are refused.
    Following {
        /// Who leads, as far as this node knows; `None` if nobody has shown life for some time.
        leader: Option<Leader>,
    },
    /// This node has offered to lead and does not know yet whether it does. Appends are refused.
    Claiming {
        /// The epoch it would lead in.
        epoch: u64,
    },
    /// This node judges and appends. A log of files alone is always led by whoever has opened it.
    Leading {
        /// Its epoch.
        epoch: u64,
    },
    /// The copy and the shared log have different pasts, or the shared log cannot be used any more.
    /// Appends are refused until a person has decided which of the two is right; what is in the
    /// copy can be read.
    Detached {
        /// What was found.
        reason: String,
    },
}

impl Role {
    /// Whether appends are taken.
    #[must_use]
    pub fn leads(&self) -> bool {
        matches!(self, Role::Leading { .. })
    }

    /// A word for figures and messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Role::CatchingUp { .. } => "catching-up",
            Role::Following { .. } => "following",
            Role::Claiming { .. } => "claiming",
            Role::Leading { .. } => "leading",
            Role::Detached { .. } => "detached",
        }
    }
}
