//! The events of access: how they are written and read. An event with invalid content yields no
//! fact.

use super::{AccountName, Grant, Grants, KeyId, Label, PasswordHash, SecretDigest, TokenId};
use crate::view::contract::{event, json};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use wellspring_types::Event;

/// An account was added.
pub const ACCOUNT_ADDED: &str = "AccountAdded";
/// An account's password was set; its tokens end.
pub const PASSWORD_SET: &str = "PasswordSet";
/// An account's roles were replaced.
pub const ROLES_SET: &str = "RolesSet";
/// An account was disabled; its tokens end.
pub const ACCOUNT_DISABLED: &str = "AccountDisabled";
/// A disabled account was enabled.
pub const ACCOUNT_ENABLED: &str = "AccountEnabled";
/// An account was deleted with its tokens and keys. Its name can be used again.
pub const ACCOUNT_DELETED: &str = "AccountDeleted";
/// An API key was added.
pub const KEY_ADDED: &str = "KeyAdded";
/// An API key's expiry was brought forward.
pub const KEY_EXPIRY_SET: &str = "KeyExpirySet";
/// An API key was revoked.
pub const KEY_REVOKED: &str = "KeyRevoked";
/// One token of an account, or all of them, were revoked.
pub const TOKENS_REVOKED: &str = "TokensRevoked";
/// The next generation of the secret signs tokens. For clusters whose nodes derive the secret.
pub const TOKEN_SECRET_ROTATED: &str = "TokenSecretRotated";
/// Only the signing generation of the secret is valid from now on.
pub const TOKEN_SECRET_RETIRED: &str = "TokenSecretRetired";
/// All event types.
pub const TYPES: [&str; 12] = [
    ACCOUNT_ADDED,
    PASSWORD_SET,
    ROLES_SET,
    ACCOUNT_DISABLED,
    ACCOUNT_ENABLED,
    ACCOUNT_DELETED,
    KEY_ADDED,
    KEY_EXPIRY_SET,
    KEY_REVOKED,
    TOKENS_REVOKED,
    TOKEN_SECRET_ROTATED,
    TOKEN_SECRET_RETIRED,
];
/// Prefix of an account's tag.
pub const ACCOUNT_TAG: &str = "account:";
/// Prefix of a key's tag.
pub const KEY_TAG: &str = "key:";

/// The data member that holds a hash, for each event type that has one.
const HASHES: [(&str, &str); 3] =
    [(ACCOUNT_ADDED, "password"), (PASSWORD_SET, "password"), (KEY_ADDED, "sha256")];

/// An event's data without the hashes of passwords and keys, as it may be shown to readers of the
/// log `system`. Unreadable data of an event type that holds a hash is not shown at all.
#[must_use]
pub fn without_hashes<'a>(event_type: &str, data: &'a [u8]) -> Cow<'a, [u8]> {
    let Some((_, hash)) = HASHES.iter().find(|(known, _)| *known == event_type) else {
        return Cow::Borrowed(data);
    };
    let members: Option<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_slice(data).ok();
    let mut members = members.unwrap_or_default();
    members.remove(*hash);
    Cow::Owned(json(&members))
}

/// Data of [`ACCOUNT_ADDED`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AddedData {
    /// `None`: the account has only keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) password: Option<PasswordHash>,
    pub(super) roles: Grants,
}

#[derive(Serialize, Deserialize)]
struct PasswordData {
    password: PasswordHash,
}

#[derive(Serialize, Deserialize)]
struct RolesData {
    roles: Grants,
}

/// Data of [`KEY_ADDED`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyData {
    pub(super) label: Label,
    pub(super) sha256: SecretDigest,
    #[serde(flatten)]
    pub(super) grant: Grant,
    #[serde(default, rename = "expires_at", skip_serializing_if = "Option::is_none")]
    pub(super) expires_at_us: Option<u64>,
}

/// Data of [`KEY_EXPIRY_SET`].
#[derive(Serialize, Deserialize)]
struct ExpiryData {
    #[serde(rename = "expires_at")]
    expires_at_us: u64,
}

/// Data of [`TOKENS_REVOKED`]. With neither member set, it revokes all tokens.
#[derive(Serialize, Deserialize)]
struct RevokedData {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<TokenId>,
    #[serde(default, rename = "expires_at", skip_serializing_if = "Option::is_none")]
    expires_at_us: Option<u64>,
}

/// Data of [`TOKEN_SECRET_ROTATED`] and [`TOKEN_SECRET_RETIRED`]: the signing generation.
#[derive(Serialize, Deserialize)]
struct GenerationData {
    generation: u64,
}

/// The tokens that an event revokes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tokens {
    All,
    One { id: TokenId, expires_at_us: u64 },
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    Added(AccountName, AddedData),
    PasswordSet(AccountName, PasswordHash),
    RolesSet(AccountName, Grants),
    Disabled(AccountName),
    Enabled(AccountName),
    Deleted(AccountName),
    /// A key and its owner.
    KeyAdded(KeyId, AccountName, KeyData),
    /// A key, its owner and its expiry, µs since 1970 UTC. The owner is informative; the id
    /// identifies the key.
    KeyExpirySet(KeyId, Option<AccountName>, u64),
    /// A key and its owner, which is informative.
    KeyRevoked(KeyId, Option<AccountName>),
    TokensRevoked(AccountName, Tokens),
    /// The generation that signs from now on.
    TokenSecretRotated(u64),
    /// Generations before this one no longer verify.
    TokenSecretRetired(u64),
}

impl Fact {
    /// The fact recorded by an event with this type, tags and data; `None` if it records none.
    pub(super) fn of<'t>(
        event_type: &str,
        tags: impl Iterator<Item = &'t str>,
        data: &[u8],
    ) -> Option<Fact> {
        let (mut name, mut id) = (None, None);
        for tag in tags {
            if let Some(text) = tag.strip_prefix(ACCOUNT_TAG) {
                name = name.or(AccountName::parse(text).ok());
            } else if let Some(text) = tag.strip_prefix(KEY_TAG) {
                id = id.or(KeyId::parse(text).ok());
            }
        }
        match event_type {
            ACCOUNT_ADDED => Some(Fact::Added(name?, serde_json::from_slice(data).ok()?)),
            PASSWORD_SET => {
                let PasswordData { password } = serde_json::from_slice(data).ok()?;
                Some(Fact::PasswordSet(name?, password))
            }
            ROLES_SET => {
                let RolesData { roles } = serde_json::from_slice(data).ok()?;
                Some(Fact::RolesSet(name?, roles))
            }
            ACCOUNT_DISABLED => Some(Fact::Disabled(name?)),
            ACCOUNT_ENABLED => Some(Fact::Enabled(name?)),
            ACCOUNT_DELETED => Some(Fact::Deleted(name?)),
            KEY_ADDED => Some(Fact::KeyAdded(id?, name?, serde_json::from_slice(data).ok()?)),
            KEY_EXPIRY_SET => {
                let ExpiryData { expires_at_us } = serde_json::from_slice(data).ok()?;
                Some(Fact::KeyExpirySet(id?, name, expires_at_us))
            }
            KEY_REVOKED => Some(Fact::KeyRevoked(id?, name)),
            TOKENS_REVOKED => {
                // Unreadable data revokes all tokens: revoking too few would be worse.
                let which = match serde_json::from_slice(data) {
                    Ok(RevokedData { id: Some(id), expires_at_us: Some(expires_at_us) }) => {
                        Tokens::One { id, expires_at_us }
                    }
                    _ => Tokens::All,
                };
                Some(Fact::TokensRevoked(name?, which))
            }
            TOKEN_SECRET_ROTATED => {
                let GenerationData { generation } = serde_json::from_slice(data).ok()?;
                Some(Fact::TokenSecretRotated(generation))
            }
            TOKEN_SECRET_RETIRED => {
                let GenerationData { generation } = serde_json::from_slice(data).ok()?;
                Some(Fact::TokenSecretRetired(generation))
            }
            _ => None,
        }
    }

    /// The event that records the fact.
    pub(super) fn to_event(&self) -> Event {
        let account = |name: &AccountName| vec![format!("{ACCOUNT_TAG}{name}")];
        let key = |id: &KeyId| format!("{KEY_TAG}{id}");
        let nothing = || b"{}".to_vec();
        let (event_type, tags, data) = match self {
            Fact::Added(name, added) => (ACCOUNT_ADDED, account(name), json(added)),
            Fact::PasswordSet(name, password) => {
                let password = password.clone();
                (PASSWORD_SET, account(name), json(&PasswordData { password }))
            }
            Fact::RolesSet(name, roles) => {
                (ROLES_SET, account(name), json(&RolesData { roles: roles.clone() }))
            }
            Fact::Disabled(name) => (ACCOUNT_DISABLED, account(name), nothing()),
            Fact::Enabled(name) => (ACCOUNT_ENABLED, account(name), nothing()),
            Fact::Deleted(name) => (ACCOUNT_DELETED, account(name), nothing()),
            Fact::KeyAdded(id, owner, data) => {
                let tags = account(owner).into_iter().chain([key(id)]).collect();
                (KEY_ADDED, tags, json(data))
            }
            Fact::KeyExpirySet(id, owner, expires_at_us) => {
                let tags = owner.iter().flat_map(account).chain([key(id)]).collect();
                (KEY_EXPIRY_SET, tags, json(&ExpiryData { expires_at_us: *expires_at_us }))
            }
            Fact::KeyRevoked(id, owner) => {
                let owner = owner.iter().flat_map(account);
                (KEY_REVOKED, owner.chain([key(id)]).collect(), nothing())
            }
            Fact::TokensRevoked(name, which) => {
                let data = match which {
                    Tokens::All => RevokedData { id: None, expires_at_us: None },
                    Tokens::One { id, expires_at_us } => {
                        RevokedData { id: Some(id.clone()), expires_at_us: Some(*expires_at_us) }
                    }
                };
                (TOKENS_REVOKED, account(name), json(&data))
            }
            Fact::TokenSecretRotated(generation) => {
                let data = GenerationData { generation: *generation };
                (TOKEN_SECRET_ROTATED, Vec::new(), json(&data))
            }
            Fact::TokenSecretRetired(generation) => {
                let data = GenerationData { generation: *generation };
                (TOKEN_SECRET_RETIRED, Vec::new(), json(&data))
            }
        };
        event(event_type, tags, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Role;

    #[test]
    fn facts_are_written_and_read() {
        let ann = AccountName::parse("ann").unwrap();
        let id = KeyId::parse("k1").unwrap();
        let hash = PasswordHash::new("$argon2id$x").unwrap();
        let roles = Grants::new(vec![Grant::everywhere(Role::Reader), Grant::on(Role::Admin, "a")]);
        let roles = roles.unwrap();
        let mut facts = vec![
            Fact::Added(ann.clone(), AddedData { password: None, roles: roles.clone() }),
            Fact::Added(
                ann.clone(),
                AddedData { password: Some(hash.clone()), roles: roles.clone() },
            ),
            Fact::PasswordSet(ann.clone(), hash),
            Fact::RolesSet(ann.clone(), roles),
            Fact::Disabled(ann.clone()),
            Fact::Enabled(ann.clone()),
            Fact::Deleted(ann.clone()),
            Fact::KeyExpirySet(id.clone(), Some(ann.clone()), 9),
            Fact::KeyRevoked(id.clone(), Some(ann.clone())),
            Fact::TokensRevoked(ann.clone(), Tokens::All),
            Fact::TokenSecretRotated(3),
            Fact::TokenSecretRetired(3),
            Fact::TokensRevoked(
                ann.clone(),
                Tokens::One { id: TokenId::parse("T-1").unwrap(), expires_at_us: 7 },
            ),
        ];
        for (log, expires_at_us) in [(None, Some(9)), (Some("orders".to_owned()), None)] {
            let data = KeyData {
                label: Label::parse("ü \"x\"").unwrap(),
                sha256: SecretDigest([7; 32]),
                grant: Grant { role: Role::Writer, log },
                expires_at_us,
            };
            facts.push(Fact::KeyAdded(id.clone(), ann.clone(), data));
        }
        for fact in facts {
            let event = fact.to_event();
            event.as_ref().check().unwrap();
            assert!(TYPES.contains(&event.event_type.as_str()));
            let tags = event.tags.iter().map(String::as_str);
            assert_eq!(Fact::of(&event.event_type, tags, &event.data), Some(fact));
        }
    }

    #[test]
    fn hashes_are_left_out_and_nothing_else_is() {
        let shown = |event_type: &str, data: &'static str| {
            String::from_utf8(without_hashes(event_type, data.as_bytes()).into_owned()).unwrap()
        };
        let added = shown(ACCOUNT_ADDED, r#"{"password":"$argon2id$x","roles":[]}"#);
        assert_eq!(added, r#"{"roles":[]}"#);
        assert_eq!(shown(PASSWORD_SET, r#"{"password":"$argon2id$x"}"#), "{}");
        let key = shown(KEY_ADDED, r#"{"label":"x","sha256":"07","role":"reader"}"#);
        assert_eq!(key, r#"{"label":"x","role":"reader"}"#);
        for rubbish in ["", "[]", r#""$argon2id$x""#, r#"{"password":"$argon2id$x""#] {
            assert_eq!(shown(PASSWORD_SET, rubbish), "{}");
        }
        assert_eq!(shown("Accessed", r#"{ "password":1 }"#), r#"{ "password":1 }"#);
    }

    #[test]
    fn what_makes_no_sense_is_no_fact() {
        let of = |event_type, tag: &'static str, data: &'static str| {
            Fact::of(event_type, [tag].into_iter(), data.as_bytes())
        };
        assert_eq!(of(ACCOUNT_ADDED, "account:Ann", r#"{"roles":[]}"#), None);
        assert_eq!(of(ACCOUNT_ADDED, "account:ann", "{}"), None);
        assert_eq!(of(ACCOUNT_ADDED, "account:ann", r#"{"roles":[{"role":"root"}]}"#), None);
        assert_eq!(of(ACCOUNT_ADDED, "account:ann", r#"{"roles":[],"password":"pw"}"#), None);
        assert_eq!(of(KEY_REVOKED, "account:ann", "{}"), None);
        assert_eq!(of(KEY_EXPIRY_SET, "key:k1", "{}"), None);
        assert_eq!(of(KEY_EXPIRY_SET, "key:k1", r#"{"expires_at":-1}"#), None);
        assert_eq!(of(TOKEN_SECRET_ROTATED, "x", "{}"), None);
        assert_eq!(of(TOKEN_SECRET_ROTATED, "x", r#"{"generation":-1}"#), None);
        assert_eq!(of("Other", "account:ann", "{}"), None);
        assert!(of(ACCOUNT_DISABLED, "account:ann", "rubbish").is_some());
        let all = Some(Fact::TokensRevoked(AccountName::parse("ann").unwrap(), Tokens::All));
        assert_eq!(of(TOKENS_REVOKED, "account:ann", "rubbish"), all);
        assert_eq!(of(TOKENS_REVOKED, "account:ann", r#"{"id":"a"}"#), all);
    }
}
