//! Which requests are audited.

use crate::access::Needs;
use crate::identity::Role;
use crate::settings::section;
use serde::{Deserialize, Serialize};

/// The level of the audit.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Deserialize, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing.
    Off,
    /// Requests that need the role operator or admin, logins, changes of accounts and keys,
    /// refusals.
    Changes,
    /// Also requests that need the role writer.
    Writes,
    /// Also every read.
    All,
}

section! {
    /// Settings of the audit.
    AuditConfig from AuditConfigArgs under "Access and audit":
    /// What the audit records in the log system: off; changes (what requires operator or admin,
    /// logins, changes of accounts and keys, refusals); writes (also what requires writer); all
    /// (also reads).
    audit: Level = "WELLSPRING_AUDIT", Level::Changes;
}

/// The audit's classification of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// No concern: the route is public and changes nothing. Clicks have their own record.
    Never,
    /// A login, with credentials in the body.
    Login,
    /// A change that needs a high role.
    Change,
    /// Appending and similar writes.
    Write,
    /// Reading.
    Read,
}

impl Concern {
    /// The classification of a route with these requirements, which may only read.
    pub fn of(reads: bool, needs: Needs) -> Concern {
        match needs {
            // The node that received the client's request has recorded it.
            Needs::Node => Concern::Never,
            Needs::Public if reads => Concern::Never,
            Needs::Public => Concern::Login,
            Needs::Role(Role::Admin) => Concern::Change,
            // Metrics are scraped four times a minute.
            Needs::Role(Role::Operator) if !reads => Concern::Change,
            Needs::Account if !reads => Concern::Change,
            Needs::Role(Role::Writer) => Concern::Write,
            Needs::Role(Role::Reader | Role::Operator) | Needs::Account => Concern::Read,
        }
    }
}

impl Level {
    /// Whether a successful request of this concern is recorded.
    pub(super) fn keeps(self, concern: Concern) -> bool {
        let least = match concern {
            Concern::Never => return false,
            Concern::Login | Concern::Change => Level::Changes,
            Concern::Write => Level::Writes,
            Concern::Read => Level::All,
        };
        self >= least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_contain_each_other() {
        use Concern::{Change, Login, Never, Read, Write};
        let kept = |level: Level| {
            [Never, Login, Change, Write, Read].map(|concern| u8::from(level.keeps(concern)))
        };
        assert_eq!(kept(Level::Off), [0; 5]);
        assert_eq!(kept(Level::Changes), [0, 1, 1, 0, 0]);
        assert_eq!(kept(Level::Writes), [0, 1, 1, 1, 0]);
        assert_eq!(kept(Level::All), [0, 1, 1, 1, 1]);
    }
}
