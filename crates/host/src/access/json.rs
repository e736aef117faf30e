//! Accounts and keys as JSON, without any secret or digest.

use crate::access::view::{Account, Key};
use crate::identity::{Grant, Grants};
use crate::wire::json::Rfc3339;
use serde::Serialize;

/// The label of a key created without one.
pub const NO_LABEL: &str = "no label";

/// An account.
#[derive(Debug, Serialize)]
pub struct AccountDocument<'a> {
    name: &'a str,
    roles: Vec<String>,
    enabled: bool,
    has_password: bool,
    added_at: Rfc3339,
}

impl<'a> AccountDocument<'a> {
    /// That of an account.
    pub fn of(account: &'a Account) -> AccountDocument<'a> {
        AccountDocument {
            name: account.name().as_str(),
            roles: roles_of(account.grants().iter()),
            enabled: !account.is_disabled(),
            has_password: account.password().is_some(),
            added_at: Rfc3339(account.added_at_us()),
        }
    }
}

/// A key.
#[derive(Debug, Serialize)]
pub struct KeyDocument<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
    label: &'a str,
    account: &'a str,
    role: &'a str,
    log: Option<&'a str>,
    added_at: Rfc3339,
    expires_at: Option<Rfc3339>,
    state: &'static str,
}

impl<'a> KeyDocument<'a> {
    /// That of a key at a time (µs since 1970 UTC), with the secret if it is to be shown.
    pub fn of(key: &'a Key, now_us: u64, secret: Option<&'a str>) -> KeyDocument<'a> {
        KeyDocument {
            id: key.id().as_str(),
            secret,
            label: key.label().as_str(),
            account: key.owner().as_str(),
            role: key.grant().role.as_str(),
            log: key.grant().log.as_deref(),
            added_at: Rfc3339(key.added_at_us()),
            expires_at: key.expires_at_us().map(Rfc3339),
            state: state_of(key, now_us),
        }
    }
}

/// The state of a key: `live`, `expired` or `revoked`.
fn state_of(key: &Key, now_us: u64) -> &'static str {
    let ended = |end_us| end_us <= now_us;
    match key.expires_at_us() {
        _ if key.is_revoked() => "revoked",
        Some(end_us) if ended(end_us) => "expired",
        _ => "live",
    }
}

/// Roles as strings: `["reader","writer:orders"]`.
pub fn roles_of<'a>(grants: impl Iterator<Item = &'a Grant>) -> Vec<String> {
    grants.map(Grant::to_string).collect()
}

/// Roles as an OAuth scope: `reader writer:orders`.
pub fn scope_of(grants: &Grants) -> String {
    roles_of(grants.iter()).join(" ")
}
