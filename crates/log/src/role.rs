//! A node's role in a log: whether it accepts appends, and if not, which node does.

use crate::shared::Place;
use std::fmt;

/// A node that leads a log, as it described itself in its claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leader {
    /// Its name.
    pub node: String,
    /// The URL for its clients.
    pub url: String,
    /// The epoch in which it leads.
    pub epoch: u64,
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}), in epoch {}", self.node, self.url, self.epoch)
    }
}

/// This process's role in a log. Reads, subscriptions and views work in every role.
///
/// ```text
/// CatchingUp ──► Following ◄──► Claiming ──► Leading
///                    ▲                          │
///                    └──────────────────────────┘     any ──► Detached
/// ```
/// From any of them it goes back to `CatchingUp` when the shared log has dropped entries that it
/// has not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The copy is behind the end of the shared log as found at the opening. Appends are refused.
    CatchingUp {
        /// Everything up to this place is in the copy.
        place: Place,
        /// Where the shared log ended, once known.
        end: Option<Place>,
    },
    /// Another node leads, or none. Appends are refused.
    Following {
        /// The leader, as far as this node knows; `None` if no leader has been heard of for some
        /// time.
        leader: Option<Leader>,
    },
    /// This node has offered a claim whose outcome is not known yet. Appends are refused.
    Claiming {
        /// The claimed epoch.
        epoch: u64,
    },
    /// This node judges and appends. A log of files is always led by the process that opened it.
    Leading {
        /// Its epoch.
        epoch: u64,
    },
    /// The copy and the shared log have different histories, or the shared log is no longer usable.
    /// Appends are refused until an operator decides which is right; the copy can be read.
    Detached {
        /// The finding.
        reason: String,
    },
}

impl Role {
    /// Whether it accepts appends.
    #[must_use]
    pub fn leads(&self) -> bool {
        matches!(self, Role::Leading { .. })
    }

    /// Its name in figures and messages.
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
