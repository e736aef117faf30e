//! Which requests are kept.

use crate::access::Needs;
use crate::http::routes::Route;
use serde::{Deserialize, Serialize};
use wellspring_views::access::Role;

/// How much the audit keeps.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Deserialize, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Nothing.
    Off,
    /// What needs the role operator or admin, logins, changes of accounts and keys, refusals.
    Changes,
    /// And what needs the role writer.
    Writes,
    /// And every read.
    All,
}

/// What a route is to the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concern {
    /// Nothing: anybody may ask, and nothing is changed. Clicks are recorded by themselves.
    Never,
    /// Somebody says who he is, in the body.
    Login,
    /// What few may do.
    Change,
    /// Appending and the like.
    Write,
    /// Reading.
    Read,
}

impl Concern {
    /// Of a route.
    pub(super) fn of(route: &Route) -> Concern {
        let reads = route.method == "GET";
        match route.needs {
            Needs::Public if reads => Concern::Never,
            Needs::Public => Concern::Login,
            Needs::Role(Role::Admin) => Concern::Change,
            // Figures are scraped four times a minute.
            Needs::Role(Role::Operator) if !reads => Concern::Change,
            Needs::Account if !reads => Concern::Change,
            Needs::Role(Role::Writer) => Concern::Write,
            Needs::Role(Role::Reader | Role::Operator) | Needs::Account => Concern::Read,
        }
    }
}

impl Level {
    /// Whether a request to a route that concerns it so is kept when nothing is wrong with it.
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
    use crate::http::routes::TABLE;

    fn concern(method: &str, path: &str) -> Concern {
        let route = TABLE.iter().find(|route| (route.method, route.path) == (method, path));
        Concern::of(route.unwrap_or_else(|| panic!("no {method} {path}")))
    }

    #[test]
    fn each_route_concerns_the_audit_as_it_should() {
        for (method, path, expected) in [
            ("GET", "/{code}", Concern::Never),
            ("GET", "/health", Concern::Never),
            ("POST", "/auth/token", Concern::Login),
            ("POST", "/auth/logout", Concern::Change),
            ("GET", "/auth/me", Concern::Read),
            ("GET", "/v1/accounts", Concern::Change),
            ("PUT", "/v1/accounts/{name}/password", Concern::Change),
            ("POST", "/v1/keys", Concern::Change),
            ("GET", "/v1/keys", Concern::Read),
            ("DELETE", "/v1/logs/{log}", Concern::Change),
            ("GET", "/metrics", Concern::Read),
            ("POST", "/e", Concern::Write),
            ("POST", "/v1/append", Concern::Write),
            ("POST", "/api/urls", Concern::Write),
            ("POST", "/v1/query", Concern::Read),
        ] {
            assert_eq!(concern(method, path), expected, "{method} {path}");
        }
        // Whatever is public and changes something is somebody who says who he is.
        let logins = TABLE.iter().filter(|route| Concern::of(route) == Concern::Login);
        assert!(logins.map(|route| route.path).eq(["/auth/token"]));
    }

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
