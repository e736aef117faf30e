//! Roles and grants.

use crate::names::is_name;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// Maximum number of grants of an account.
pub const MAX_GRANTS: usize = 64;

/// What a principal is allowed to do. Each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads events and queries views.
    Reader,
    /// Appends events.
    Writer,
    /// Sees the server's state; verifies and backs up logs.
    Operator,
    /// Everything, including accounts.
    Admin,
}

impl Role {
    /// All roles, from the least to the greatest.
    pub const ALL: [Role; 4] = [Role::Reader, Role::Writer, Role::Operator, Role::Admin];

    /// The role's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Reader => "reader",
            Role::Writer => "writer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// The role with this name; `None` if there is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A role on one log, or on all present and future logs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// The log. `None`: all logs, and whatever belongs to no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl Grant {
    /// A role on everything.
    #[must_use]
    pub fn everywhere(role: Role) -> Grant {
        Grant { role, log: None }
    }

    /// A role on one log.
    #[must_use]
    pub fn on(role: Role, log: &str) -> Grant {
        Grant { role, log: Some(log.to_owned()) }
    }

    /// Parses `writer` or `writer:orders`; `None` if the text has neither form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Grant> {
        let (role, log) = match text.split_once(':') {
            Some((role, log)) => (role, Some(log)),
            None => (text, None),
        };
        let fits = log.is_none_or(is_name);
        Some(Grant { role: Role::parse(role).filter(|_| fits)?, log: log.map(str::to_owned) })
    }

    /// The role that this grants on a log (`None`: on what belongs to no log).
    #[must_use]
    pub fn role_on(&self, log: Option<&str>) -> Option<Role> {
        (self.log.is_none() || self.log.as_deref() == log).then_some(self.role)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.log {
            Some(log) => write!(f, "{}:{log}", self.role),
            None => self.role.fmt(f),
        }
    }
}

/// What is wrong with a list of grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantsFault {
    /// More than [`MAX_GRANTS`].
    TooMany,
    /// Two grants for the same log, or two for all logs.
    Twice,
    /// An invalid log name.
    Log,
}

impl fmt::Display for GrantsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantsFault::TooMany => write!(f, "an account has at most {MAX_GRANTS} roles"),
            GrantsFault::Twice => {
                f.write_str("give at most one role for each log, and one for all logs")
            }
            GrantsFault::Log => f.write_str("a role names a log by an invalid name"),
        }
    }
}

impl std::error::Error for GrantsFault {}

/// An account's grants: at most one role for each log, and one for all. On a log the greater one
/// applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Grant>", into = "Vec<Grant>")]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// Builds the list, sorted by log.
    ///
    /// # Errors
    /// [`GrantsFault`].
    pub fn new(mut grants: Vec<Grant>) -> Result<Grants, GrantsFault> {
        if grants.len() > MAX_GRANTS {
            return Err(GrantsFault::TooMany);
        }
        if !grants.iter().filter_map(|grant| grant.log.as_deref()).all(is_name) {
            return Err(GrantsFault::Log);
        }
        grants.sort_by(|a, b| a.log.cmp(&b.log));
        if grants.windows(2).any(|two| two[0].log.cmp(&two[1].log) == Ordering::Equal) {
            return Err(GrantsFault::Twice);
        }
        Ok(Grants(grants))
    }

    /// The greatest role on a log (`None`: on what belongs to no log).
    #[must_use]
    pub fn role_on(&self, log: Option<&str>) -> Option<Role> {
        self.0.iter().filter_map(|grant| grant.role_on(log)).max()
    }

    /// Whether they include admin of everything.
    #[must_use]
    pub fn are_admins(&self) -> bool {
        self.role_on(None) == Some(Role::Admin)
    }

    /// Each grant: first the one for all logs, then by log name.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }
}

impl From<Grant> for Grants {
    fn from(grant: Grant) -> Grants {
        Grants(vec![grant])
    }
}

impl TryFrom<Vec<Grant>> for Grants {
    type Error = GrantsFault;
    fn try_from(grants: Vec<Grant>) -> Result<Grants, GrantsFault> {
        Grants::new(grants)
    }
}

impl From<Grants> for Vec<Grant> {
    fn from(grants: Grants) -> Vec<Grant> {
        grants.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_role_counts() {
        let grants = Grants::new(vec![
            Grant::on(Role::Admin, "orders"),
            Grant::everywhere(Role::Reader),
            Grant::on(Role::Writer, "clicks"),
        ])
        .unwrap();
        assert_eq!(grants.role_on(Some("orders")), Some(Role::Admin));
        assert_eq!(grants.role_on(Some("clicks")), Some(Role::Writer));
        assert_eq!(grants.role_on(Some("other")), Some(Role::Reader));
        assert_eq!(grants.role_on(None), Some(Role::Reader));
        assert!(!grants.are_admins());
        assert_eq!(Grants::default().role_on(Some("orders")), None);
        let narrow = Grants::from(Grant::on(Role::Admin, "orders"));
        assert_eq!(narrow.role_on(None), None);
        assert_eq!(narrow.role_on(Some("order")), None);
    }

    #[test]
    fn lists_have_rules() {
        let twice = vec![Grant::on(Role::Reader, "a"), Grant::on(Role::Writer, "a")];
        assert_eq!(Grants::new(twice), Err(GrantsFault::Twice));
        let many = (0..65).map(|n| Grant::on(Role::Reader, &format!("l{n}"))).collect();
        assert_eq!(Grants::new(many), Err(GrantsFault::TooMany));
        for log in ["", "A", "../x", "-a"] {
            assert_eq!(Grants::new(vec![Grant::on(Role::Reader, log)]), Err(GrantsFault::Log));
        }
    }

    #[test]
    fn grants_are_read_and_written() {
        for text in ["reader", "writer:orders", "operator:a_b-1", "admin"] {
            assert_eq!(Grant::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "root", "Admin", "admin:", "admin:A", "admin:a:b", " admin"] {
            assert_eq!(Grant::parse(text), None, "{text:?}");
        }
        assert!(Role::ALL.is_sorted());
    }
}
