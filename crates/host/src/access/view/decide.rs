//! The decision: which events a command results in. Accounts are few, so pending decisions are
//! simply applied to a copy of the folded state.

use super::apply::is_remembered;
use super::event::{
    ACCOUNT_ADDED, ACCOUNT_DELETED, ACCOUNT_DISABLED, ACCOUNT_ENABLED, ACCOUNT_TAG, AddedData,
    Fact, KEY_ADDED, KEY_REVOKED, KEY_TAG, KeyData, ROLES_SET, Tokens,
};
use super::generations::{decide_retirement, decide_rotation};
use super::state::{Account, Folded, Key, State};
use super::{
    AccountName, Grant, Grants, KeyId, Label, MAX_ACCOUNTS, MAX_KEYS, MAX_KEYS_OF_ACCOUNT,
    MAX_REVOKED, PasswordHash, SecretDigest, TokenId,
};
use crate::names::is_name;
use crate::view::contract::{Decision, LogEvent, Ticket};
use std::fmt;
use std::sync::Arc;
use wellspring_types::moment::MAX_TIME_US;
use wellspring_types::{Event, QueryItem};

/// A change requested by a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Adds an account.
    AddAccount {
        /// Its name.
        name: AccountName,
        /// The hash of its password, if it has one.
        password: Option<PasswordHash>,
        /// Its roles.
        roles: Grants,
    },
    /// Adds the very first account; refused once an account exists. For callers who are authorized
    /// only because there is no account.
    AddFirstAccount {
        /// Its name.
        name: AccountName,
        /// The hash of its password.
        password: PasswordHash,
        /// Its roles.
        roles: Grants,
    },
    /// Changes an account's password and ends its tokens.
    SetPassword {
        /// The account.
        name: AccountName,
        /// The hash of the new password.
        password: PasswordHash,
    },
    /// Replaces an account's roles.
    SetRoles {
        /// The account.
        name: AccountName,
        /// All its roles from now on.
        roles: Grants,
    },
    /// Disables an account and ends its tokens.
    Disable {
        /// The account.
        name: AccountName,
    },
    /// Enables a disabled account.
    Enable {
        /// The account.
        name: AccountName,
    },
    /// Deletes an account with its tokens and keys. Its name can be used again.
    Delete {
        /// The account.
        name: AccountName,
    },
    /// Adds an API key.
    AddKey {
        /// The key's id. A random id reveals nothing; any other may reveal how many keys exist.
        id: KeyId,
        /// The owner's label for the key.
        label: Label,
        /// Digest of the key's secret.
        digest: SecretDigest,
        /// The key's grant, which its owner must hold too.
        grant: Grant,
        /// Expiry, µs since 1970 UTC.
        expires_at_us: Option<u64>,
        /// The owning account.
        owner: AccountName,
        /// A key of the same account that ends when this one is added. The new key then fits even
        /// at the limit.
        in_place_of: Option<KeyId>,
        /// Time of the request, µs since 1970 UTC. Keys that expired before it do not count against
        /// the limits.
        now_us: u64,
    },
    /// Brings a key's expiry forward; it cannot be postponed.
    EndKey {
        /// The key.
        id: KeyId,
        /// The new expiry, µs since 1970 UTC.
        expires_at_us: u64,
    },
    /// Revokes a key permanently.
    RevokeKey {
        /// The key.
        id: KeyId,
    },
    /// Revokes one token.
    RevokeToken {
        /// The account.
        name: AccountName,
        /// The token.
        id: TokenId,
        /// The token's expiry, µs since 1970 UTC: until then the revocation is remembered.
        expires_at_us: u64,
        /// Time of the request, µs since 1970 UTC. Revocations of tokens that expired before it do
        /// not count against the limit.
        now_us: u64,
    },
    /// Revokes all tokens an account has.
    RevokeAllTokens {
        /// The account.
        name: AccountName,
    },
    /// Makes the next generation of the secret sign tokens; the previous one still verifies. For
    /// nodes that derive the secret.
    RotateTokenSecret,
    /// Makes the signing secret the only one that verifies.
    RetireTokenSecret,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessOutcome {
    /// The account was added.
    AccountAdded(AccountName),
    /// The account is as the command wants it; it may have been so before.
    AccountChanged(AccountName),
    /// The account was deleted.
    AccountDeleted(AccountName),
    /// The key was added.
    KeyAdded(KeyId),
    /// The key ends when the command wants it to, or earlier.
    KeyChanged(KeyId),
    /// The key is revoked.
    KeyRevoked(KeyId),
    /// The tokens are revoked.
    TokensRevoked(AccountName),
    /// This generation signs.
    TokenSecretRotated(u64),
    /// This generation is the only one that verifies.
    TokenSecretRetired(u64),
}

/// Why a command is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessRefusal {
    /// An account of this name exists.
    NameTaken(AccountName),
    /// No account of this name exists.
    UnknownAccount(AccountName),
    /// The first account must be an admin of everything: once it exists, every request needs an
    /// account.
    FirstIsAdmin,
    /// The first account must have a password: without one, no client could log in as it.
    FirstHasPassword,
    /// An account exists by now.
    NotFirst,
    /// No other enabled account is an admin of everything.
    LastAdmin(AccountName),
    /// The account is disabled.
    Disabled(AccountName),
    /// A key with this id exists or existed.
    KeyTaken(KeyId),
    /// A key with this secret exists.
    SecretTaken,
    /// No key has this id.
    UnknownKey(KeyId),
    /// The key's grant exceeds its owner's.
    MoreThanOwner(Grant),
    /// A role names a log by an invalid name.
    Log,
    /// The expiry is later than the year 9999.
    TooLate,
    /// The limit of [`MAX_ACCOUNTS`] is reached.
    TooManyAccounts,
    /// The limit of [`MAX_KEYS`] is reached.
    TooManyKeys,
    /// The account's limit of [`MAX_KEYS_OF_ACCOUNT`] is reached.
    TooManyKeysOf(AccountName),
    /// The key has ended, so it cannot be replaced.
    KeyEnded(KeyId),
    /// The limit of [`MAX_REVOKED`] individually revoked tokens of the account is reached.
    TooManyRevoked(AccountName),
}

impl fmt::Display for AccessRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessRefusal::NameTaken(name) => write!(f, "the account {name} exists already"),
            AccessRefusal::UnknownAccount(name) => write!(f, "no account is named {name}"),
            AccessRefusal::FirstIsAdmin => {
                f.write_str("the first account must be an admin of all logs")
            }
            AccessRefusal::FirstHasPassword => {
                f.write_str("the first account must have a password")
            }
            AccessRefusal::NotFirst => f.write_str("accounts exist by now; log in with one"),
            AccessRefusal::LastAdmin(name) => {
                write!(
                    f,
                    "{name} is the last enabled admin of all logs with a password; create another one first"
                )
            }
            AccessRefusal::Disabled(name) => write!(f, "the account {name} is disabled"),
            AccessRefusal::KeyTaken(id) => {
                write!(f, "a key {id} exists or existed; choose another id")
            }
            AccessRefusal::SecretTaken => {
                f.write_str("a key with this secret exists; generate another")
            }
            AccessRefusal::UnknownKey(id) => write!(f, "no key has the id {id}"),
            AccessRefusal::MoreThanOwner(grant) => {
                write!(f, "a key cannot be granted {grant}, which its owner lacks")
            }
            AccessRefusal::Log => f.write_str("a role names a log by an invalid name"),
            AccessRefusal::TooLate => f.write_str("it must end before the year 10000, or never"),
            AccessRefusal::TooManyAccounts => {
                write!(f, "the limit of {MAX_ACCOUNTS} accounts is reached")
            }
            AccessRefusal::TooManyKeys => {
                write!(f, "the limit of {MAX_KEYS} keys is reached; revoke unused keys")
            }
            AccessRefusal::TooManyKeysOf(name) => write!(
                f,
                "{name} has reached the limit of {MAX_KEYS_OF_ACCOUNT} keys; revoke unused keys, or rotate one \
                 without overlap"
            ),
            AccessRefusal::KeyEnded(id) => write!(f, "the key {id} has ended"),
            AccessRefusal::TooManyRevoked(name) => write!(
                f,
                "the limit of {MAX_REVOKED} revoked tokens of {name} is reached; revoke all its tokens at once"
            ),
        }
    }
}

impl std::error::Error for AccessRefusal {}

/// Decided facts that are not folded yet, in order.
#[derive(Debug, Default)]
pub struct StagedAccess(Vec<(Ticket, Fact)>);

impl StagedAccess {
    pub(super) fn stage(&mut self, decision: &Decision<AccessOutcome>, ticket: Ticket) {
        self.0.extend(decision.events.iter().filter_map(fact).map(|fact| (ticket, fact)));
    }

    pub(super) fn settle(&mut self, ticket: Ticket) {
        self.0.retain(|(staged, _)| *staged != ticket);
    }

    /// The state once every pending fact is folded.
    fn ahead(&self, folded: &Folded) -> Arc<State> {
        let mut state = folded.now();
        if !self.0.is_empty() {
            let ahead = Arc::make_mut(&mut state);
            // No decision depends on recording times.
            self.0.iter().for_each(|(_, fact)| ahead.change(fact.clone(), 0));
        }
        state
    }
}

fn fact(event: &Event) -> Option<Fact> {
    Fact::of(&event.event_type, event.tags.iter().map(String::as_str), &event.data)
}

/// The outcome that an event records.
pub(super) fn outcome(event: &impl LogEvent) -> Option<AccessOutcome> {
    match Fact::of(event.event_type(), event.tags(), event.data())? {
        Fact::Added(name, _) => Some(AccessOutcome::AccountAdded(name)),
        Fact::PasswordSet(name, _)
        | Fact::RolesSet(name, _)
        | Fact::Disabled(name)
        | Fact::Enabled(name) => Some(AccessOutcome::AccountChanged(name)),
        Fact::Deleted(name) => Some(AccessOutcome::AccountDeleted(name)),
        Fact::KeyAdded(id, ..) => Some(AccessOutcome::KeyAdded(id)),
        Fact::KeyExpirySet(id, ..) => Some(AccessOutcome::KeyChanged(id)),
        Fact::KeyRevoked(id, _) => Some(AccessOutcome::KeyRevoked(id)),
        Fact::TokensRevoked(name, _) => Some(AccessOutcome::TokensRevoked(name)),
        Fact::TokenSecretRotated(generation) => Some(AccessOutcome::TokenSecretRotated(generation)),
        Fact::TokenSecretRetired(generation) => Some(AccessOutcome::TokenSecretRetired(generation)),
    }
}

pub(super) fn decide(
    folded: &Folded,
    staged: &StagedAccess,
    command: &Command,
) -> Result<Decision<AccessOutcome>, AccessRefusal> {
    let state = &staged.ahead(folded);
    let (fact, unless, outcome) = match command {
        Command::AddAccount { name, password, roles } => {
            may_add(state, name, password.as_ref(), roles)?;
            let added = AddedData { password: password.clone(), roles: roles.clone() };
            let unless = vec![of_account(ACCOUNT_ADDED, name)];
            (
                Some(Fact::Added(name.clone(), added)),
                unless,
                AccessOutcome::AccountAdded(name.clone()),
            )
        }
        Command::AddFirstAccount { name, password, roles } => {
            if !state.is_open() {
                return Err(AccessRefusal::NotFirst);
            }
            may_add(state, name, Some(password), roles)?;
            let added = AddedData { password: Some(password.clone()), roles: roles.clone() };
            let unless = vec![QueryItem::new(&[ACCOUNT_ADDED], &[])];
            (
                Some(Fact::Added(name.clone(), added)),
                unless,
                AccessOutcome::AccountAdded(name.clone()),
            )
        }
        Command::SetPassword { name, password } => {
            // The last password set wins, but never for a later account of the same name.
            account(state, name)?;
            let fact = Fact::PasswordSet(name.clone(), password.clone());
            (Some(fact), vec![of_account(ACCOUNT_DELETED, name)], changed(name))
        }
        Command::SetRoles { name, roles } => {
            let was = account(state, name)?;
            let unless = if roles.are_admins() {
                vec![of_account(ACCOUNT_DELETED, name)]
            } else {
                admin_without(state, name)?
            };
            let fact = Fact::RolesSet(name.clone(), roles.clone());
            (Some(fact).filter(|_| *was.grants != *roles), unless, changed(name))
        }
        Command::Disable { name } => {
            let was = account(state, name)?;
            let unless = admin_without(state, name)?;
            (Some(Fact::Disabled(name.clone())).filter(|_| !was.disabled), unless, changed(name))
        }
        Command::Enable { name } => {
            let was = account(state, name)?;
            let unless = vec![of_account(ACCOUNT_DELETED, name)];
            (Some(Fact::Enabled(name.clone())).filter(|_| was.disabled), unless, changed(name))
        }
        Command::Delete { name } => {
            account(state, name)?;
            let unless = admin_without(state, name)?;
            (Some(Fact::Deleted(name.clone())), unless, AccessOutcome::AccountDeleted(name.clone()))
        }
        Command::AddKey { id, label, digest, grant, expires_at_us, owner, in_place_of, now_us } => {
            let (label, sha256, grant) = (label.clone(), *digest, grant.clone());
            let data = KeyData { label, sha256, grant, expires_at_us: *expires_at_us };
            return decide_key(state, (id, owner, data), in_place_of.as_ref(), *now_us);
        }
        Command::EndKey { id, expires_at_us } => {
            let key = key(state, id)?;
            if *expires_at_us > MAX_TIME_US {
                return Err(AccessRefusal::TooLate);
            }
            let later = !key.is_revoked() && key.expires_at_us.is_none_or(|us| us > *expires_at_us);
            let fact = Fact::KeyExpirySet(id.clone(), Some(key.owner.clone()), *expires_at_us);
            (Some(fact).filter(|_| later), Vec::new(), AccessOutcome::KeyChanged(id.clone()))
        }
        Command::RevokeKey { id } => {
            let key = key(state, id)?;
            let fact = Fact::KeyRevoked(id.clone(), Some(key.owner.clone()));
            (
                Some(fact).filter(|_| !key.is_revoked()),
                Vec::new(),
                AccessOutcome::KeyRevoked(id.clone()),
            )
        }
        Command::RevokeToken { name, id, expires_at_us, now_us } => {
            return decide_revoke(account(state, name)?, id, *expires_at_us, *now_us);
        }
        Command::RevokeAllTokens { name } => {
            account(state, name)?;
            let fact = Fact::TokensRevoked(name.clone(), Tokens::All);
            (Some(fact), Vec::new(), AccessOutcome::TokensRevoked(name.clone()))
        }
        Command::RotateTokenSecret => return Ok(decide_rotation(state.token_generations)),
        Command::RetireTokenSecret => return Ok(decide_retirement(state.token_generations)),
    };
    Ok(decision(fact, unless, outcome))
}

/// A decision that appends nothing needs no condition.
pub(super) fn decision(
    fact: Option<Fact>,
    unless: Vec<QueryItem>,
    outcome: AccessOutcome,
) -> Decision<AccessOutcome> {
    match fact {
        Some(fact) => Decision { events: vec![fact.to_event()], unless, outcome },
        None => Decision { events: Vec::new(), unless: Vec::new(), outcome },
    }
}

fn changed(name: &AccountName) -> AccessOutcome {
    AccessOutcome::AccountChanged(name.clone())
}

fn of_account(event_type: &str, name: &AccountName) -> QueryItem {
    QueryItem::new(&[event_type], &[&format!("{ACCOUNT_TAG}{name}")])
}

fn account<'a>(state: &'a State, name: &AccountName) -> Result<&'a Account, AccessRefusal> {
    let found = state.account(name.as_str());
    found.map(|account| &**account).ok_or_else(|| AccessRefusal::UnknownAccount(name.clone()))
}

fn key<'a>(state: &'a State, id: &KeyId) -> Result<&'a Key, AccessRefusal> {
    let found = state.key(id.as_str());
    found.map(|key| &**key).ok_or_else(|| AccessRefusal::UnknownKey(id.clone()))
}

fn may_add(
    state: &State,
    name: &AccountName,
    password: Option<&PasswordHash>,
    roles: &Grants,
) -> Result<(), AccessRefusal> {
    if state.account(name.as_str()).is_some() {
        return Err(AccessRefusal::NameTaken(name.clone()));
    }
    if state.is_open() && !roles.are_admins() {
        return Err(AccessRefusal::FirstIsAdmin);
    }
    if state.is_open() && password.is_none() {
        return Err(AccessRefusal::FirstHasPassword);
    }
    if state.accounts.len() >= MAX_ACCOUNTS {
        return Err(AccessRefusal::TooManyAccounts);
    }
    Ok(())
}

/// Checks that an admin remains without this account, and returns the condition under which one
/// still will: no other account gains or loses that role. Holds also for an account that is no
/// admin in `state`, which may have become the only one meanwhile.
fn admin_without(state: &State, name: &AccountName) -> Result<Vec<QueryItem>, AccessRefusal> {
    if state.is_last_admin(name) {
        return Err(AccessRefusal::LastAdmin(name.clone()));
    }
    let types = [ACCOUNT_DISABLED, ACCOUNT_ENABLED, ACCOUNT_DELETED, ROLES_SET];
    Ok(vec![QueryItem::new(&types, &[])])
}

fn may_add_key(
    state: &State,
    id: &KeyId,
    owner: &AccountName,
    data: &KeyData,
) -> Result<(), AccessRefusal> {
    let owner = account(state, owner)?;
    if owner.disabled {
        return Err(AccessRefusal::Disabled(owner.name.clone()));
    }
    if state.key(id.as_str()).is_some() {
        return Err(AccessRefusal::KeyTaken(id.clone()));
    }
    if state.key_of(&data.sha256).is_some() {
        return Err(AccessRefusal::SecretTaken);
    }
    let log = data.grant.log.as_deref();
    if !log.is_none_or(is_name) {
        return Err(AccessRefusal::Log);
    }
    if owner.grants.role_on(log) < Some(data.grant.role) {
        return Err(AccessRefusal::MoreThanOwner(data.grant.clone()));
    }
    if data.expires_at_us.is_some_and(|us| us > MAX_TIME_US) {
        return Err(AccessRefusal::TooLate);
    }
    Ok(())
}

/// Adds a key, either an additional one or in place of another key of the same account.
fn decide_key(
    state: &State,
    (id, owner, data): (&KeyId, &AccountName, KeyData),
    in_place_of: Option<&KeyId>,
    now_us: u64,
) -> Result<Decision<AccessOutcome>, AccessRefusal> {
    may_add_key(state, id, owner, &data)?;
    let of_key = |event_type, id| QueryItem::new(&[event_type], &[&format!("{KEY_TAG}{id}")]);
    let mut facts = vec![Fact::KeyAdded(id.clone(), owner.clone(), data)];
    let mut unless = vec![
        of_key(KEY_ADDED, id),
        of_account(ACCOUNT_DISABLED, owner),
        of_account(ACCOUNT_DELETED, owner),
    ];
    match in_place_of {
        Some(old) => {
            if !key(state, old)?.is_live(now_us) || key(state, old)?.owner != *owner {
                return Err(AccessRefusal::KeyEnded(old.clone()));
            }
            facts.push(Fact::KeyRevoked(old.clone(), Some(owner.clone())));
            // Without this, two concurrent requests could both replace the old key.
            unless.push(of_key(KEY_REVOKED, old));
        }
        None if state.live_keys_of(owner, now_us) >= MAX_KEYS_OF_ACCOUNT => {
            return Err(AccessRefusal::TooManyKeysOf(owner.clone()));
        }
        None if state.has_live_keys(MAX_KEYS, now_us) => return Err(AccessRefusal::TooManyKeys),
        None => {}
    }
    let events = facts.iter().map(Fact::to_event).collect();
    Ok(Decision { events, unless, outcome: AccessOutcome::KeyAdded(id.clone()) })
}

fn decide_revoke(
    account: &Account,
    id: &TokenId,
    expires_at_us: u64,
    now_us: u64,
) -> Result<Decision<AccessOutcome>, AccessRefusal> {
    if expires_at_us > MAX_TIME_US {
        return Err(AccessRefusal::TooLate);
    }
    let Account { name, revoked, .. } = account;
    let there = revoked.get(id).copied();
    let remembered = || revoked.values().filter(|&&until_us| is_remembered(until_us, now_us));
    if there.is_none() && remembered().count() >= MAX_REVOKED {
        return Err(AccessRefusal::TooManyRevoked(name.clone()));
    }
    let tokens = Tokens::One { id: id.clone(), expires_at_us };
    let fact =
        Some(Fact::TokensRevoked(name.clone(), tokens)).filter(|_| there < Some(expires_at_us));
    Ok(decision(fact, Vec::new(), AccessOutcome::TokensRevoked(name.clone())))
}
