//! The decision: which events a command comes to. Accounts are few, so what is decided and not
//! folded yet is simply applied to a copy of what is folded.

use super::apply::is_remembered;
use super::event::{
    ACCOUNT_ADDED, ACCOUNT_DELETED, ACCOUNT_DISABLED, ACCOUNT_ENABLED, ACCOUNT_TAG, AddedData,
    Fact, KEY_ADDED, KEY_REVOKED, KEY_TAG, KeyData, ROLES_SET, Tokens,
};
use super::generations::{decide_retirement, decide_rotation};
use super::role::is_log_name;
use super::state::{Account, Folded, Key, State};
use super::{
    AccountName, Grant, Grants, KeyId, Label, MAX_ACCOUNTS, MAX_KEYS, MAX_KEYS_OF_ACCOUNT,
    MAX_REVOKED, PasswordHash, SecretDigest, TokenId,
};
use crate::links::MAX_TIME_US;
use crate::view::{Decision, Recorded, Ticket};
use std::fmt;
use std::sync::Arc;
use wellspring_types::{Event, QueryItem};

/// What somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A new account.
    AddAccount {
        /// Its name.
        name: AccountName,
        /// What is kept of its password, if it has one.
        password: Option<PasswordHash>,
        /// What it may do.
        roles: Grants,
    },
    /// The very first account: refused as soon as there is any. For whoever may only because
    /// there is none.
    AddFirstAccount {
        /// Its name.
        name: AccountName,
        /// What is kept of its password.
        password: PasswordHash,
        /// What it may do.
        roles: Grants,
    },
    /// Another password. The account's tokens no longer count.
    SetPassword {
        /// Whose.
        name: AccountName,
        /// What is kept of it.
        password: PasswordHash,
    },
    /// Other roles.
    SetRoles {
        /// Whose.
        name: AccountName,
        /// All of them.
        roles: Grants,
    },
    /// An account may do nothing any more, for now. Its tokens no longer count.
    Disable {
        /// Which.
        name: AccountName,
    },
    /// An account may do again what it may.
    Enable {
        /// Which.
        name: AccountName,
    },
    /// An account is no more, nor are its tokens and keys. Another may be made under its name.
    Delete {
        /// Which.
        name: AccountName,
    },
    /// A new API key.
    AddKey {
        /// What names it: random, or it tells how many there are.
        id: KeyId,
        /// What its owner calls it.
        label: Label,
        /// Of its secret.
        digest: SecretDigest,
        /// What it may do; its owner has to hold as much.
        grant: Grant,
        /// When it ends, µs since 1970 UTC.
        expires_at_us: Option<u64>,
        /// Whose it is.
        owner: AccountName,
        /// The key of the same account that ends with this: then there is room for it, however many
        /// there are.
        in_place_of: Option<KeyId>,
        /// When this is asked, µs since 1970 UTC: keys that have expired by then take no room.
        now_us: u64,
    },
    /// A key ends then, if it does not end before.
    EndKey {
        /// Which.
        id: KeyId,
        /// When, µs since 1970 UTC.
        expires_at_us: u64,
    },
    /// A key no longer counts, for ever.
    RevokeKey {
        /// Which.
        id: KeyId,
    },
    /// A token no longer counts.
    RevokeToken {
        /// Whose.
        name: AccountName,
        /// Which.
        id: TokenId,
        /// When it ends, µs since 1970 UTC: until then it is remembered.
        expires_at_us: u64,
        /// When this is asked, µs since 1970 UTC: what has ended by then makes room.
        now_us: u64,
    },
    /// No token of the account there is counts any more.
    RevokeAllTokens {
        /// Whose.
        name: AccountName,
    },
    /// The secret of the next generation signs tokens; the one before still verifies. Where nodes
    /// derive it.
    RotateTokenSecret,
    /// The secret that signs is the only one that verifies.
    RetireTokenSecret,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is a new account.
    AccountAdded(AccountName),
    /// It is as the command wants it, which it may have been before.
    AccountChanged(AccountName),
    /// It is no more.
    AccountDeleted(AccountName),
    /// There is a new key.
    KeyAdded(KeyId),
    /// It ends as the command wants it, or before.
    KeyChanged(KeyId),
    /// It does not count.
    KeyRevoked(KeyId),
    /// They do not count.
    TokensRevoked(AccountName),
    /// That of this generation signs.
    TokenSecretRotated(u64),
    /// That of this generation alone verifies.
    TokenSecretRetired(u64),
}

/// Why a command is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is an account of this name.
    NameTaken(AccountName),
    /// There is no account of this name.
    UnknownAccount(AccountName),
    /// The first account has to be an admin of everything: as soon as there is one, everything
    /// needs one.
    FirstIsAdmin,
    /// The first account has to have a password: without one no client could prove to be it.
    FirstHasPassword,
    /// There are accounts by now.
    NotFirst,
    /// Nobody else who is enabled is an admin of everything.
    LastAdmin(AccountName),
    /// The account is disabled.
    Disabled(AccountName),
    /// There is, or was, a key of this id.
    KeyTaken(KeyId),
    /// There is a key of this secret.
    SecretTaken,
    /// There is no key of this id.
    UnknownKey(KeyId),
    /// The key is to do more than its owner may.
    MoreThanOwner(Grant),
    /// A role is for something that is no log's name.
    Log,
    /// It would end later than the year 9999.
    TooLate,
    /// There are [`MAX_ACCOUNTS`].
    TooManyAccounts,
    /// There are [`MAX_KEYS`].
    TooManyKeys,
    /// The account has [`MAX_KEYS_OF_ACCOUNT`].
    TooManyKeysOf(AccountName),
    /// The key has ended, and nothing takes its place.
    KeyEnded(KeyId),
    /// [`MAX_REVOKED`] tokens of the account are revoked one by one.
    TooManyRevoked(AccountName),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NameTaken(name) => write!(f, "there is an account {name} already"),
            Refusal::UnknownAccount(name) => write!(f, "there is no account {name}"),
            Refusal::FirstIsAdmin => f.write_str("the first account must be an admin of all logs"),
            Refusal::FirstHasPassword => f.write_str("the first account must have a password"),
            Refusal::NotFirst => f.write_str("there are accounts by now; log in with one"),
            Refusal::LastAdmin(name) => {
                write!(
                    f,
                    "{name} is the last enabled admin of all logs with a password; make another one first"
                )
            }
            Refusal::Disabled(name) => write!(f, "the account {name} is disabled"),
            Refusal::KeyTaken(id) => write!(f, "there is, or was, a key {id}; choose another id"),
            Refusal::SecretTaken => f.write_str("there is a key of this secret; draw another"),
            Refusal::UnknownKey(id) => write!(f, "there is no key {id}"),
            Refusal::MoreThanOwner(grant) => {
                write!(f, "a key cannot be {grant} if its owner is not")
            }
            Refusal::Log => f.write_str("a role is for a log that is no log's name"),
            Refusal::TooLate => f.write_str("it must end before the year 10000, or never"),
            Refusal::TooManyAccounts => write!(f, "there are {MAX_ACCOUNTS} accounts, the most"),
            Refusal::TooManyKeys => {
                write!(f, "there are {MAX_KEYS} keys, the most; revoke those of no use")
            }
            Refusal::TooManyKeysOf(name) => write!(
                f,
                "{name} has {MAX_KEYS_OF_ACCOUNT} keys, the most; revoke those of no use, or rotate one \
                 without overlap"
            ),
            Refusal::KeyEnded(id) => write!(f, "the key {id} has ended"),
            Refusal::TooManyRevoked(name) => write!(
                f,
                "{MAX_REVOKED} tokens of {name} are revoked, the most; revoke all of them at once"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// What has been decided and is not folded yet, in order.
#[derive(Debug, Default)]
pub struct Staged(Vec<(Ticket, Fact)>);

impl Staged {
    pub(super) fn stage(&mut self, decision: &Decision<Outcome>, ticket: Ticket) {
        self.0.extend(decision.events.iter().filter_map(fact).map(|fact| (ticket, fact)));
    }

    pub(super) fn settle(&mut self, ticket: Ticket) {
        self.0.retain(|(staged, _)| *staged != ticket);
    }

    /// What will be, if all that is staged comes to be.
    fn ahead(&self, folded: &Folded) -> Arc<State> {
        let mut state = folded.now();
        if !self.0.is_empty() {
            let ahead = Arc::make_mut(&mut state);
            // No decision looks at when something was recorded.
            self.0.iter().for_each(|(_, fact)| ahead.change(fact.clone(), 0));
        }
        state
    }
}

fn fact(event: &Event) -> Option<Fact> {
    Fact::of(&event.event_type, event.tags.iter().map(String::as_str), &event.data)
}

/// The outcome that an event tells of.
pub(super) fn outcome(event: &impl Recorded) -> Option<Outcome> {
    match Fact::of(event.event_type(), event.tags(), event.data())? {
        Fact::Added(name, _) => Some(Outcome::AccountAdded(name)),
        Fact::PasswordSet(name, _)
        | Fact::RolesSet(name, _)
        | Fact::Disabled(name)
        | Fact::Enabled(name) => Some(Outcome::AccountChanged(name)),
        Fact::Deleted(name) => Some(Outcome::AccountDeleted(name)),
        Fact::KeyAdded(id, ..) => Some(Outcome::KeyAdded(id)),
        Fact::KeyExpirySet(id, ..) => Some(Outcome::KeyChanged(id)),
        Fact::KeyRevoked(id, _) => Some(Outcome::KeyRevoked(id)),
        Fact::TokensRevoked(name, _) => Some(Outcome::TokensRevoked(name)),
        Fact::TokenSecretRotated(generation) => Some(Outcome::TokenSecretRotated(generation)),
        Fact::TokenSecretRetired(generation) => Some(Outcome::TokenSecretRetired(generation)),
    }
}

pub(super) fn decide(
    folded: &Folded,
    staged: &Staged,
    command: &Command,
) -> Result<Decision<Outcome>, Refusal> {
    let state = &staged.ahead(folded);
    let (fact, unless, outcome) = match command {
        Command::AddAccount { name, password, roles } => {
            may_add(state, name, password.as_ref(), roles)?;
            let added = AddedData { password: password.clone(), roles: roles.clone() };
            let unless = vec![of_account(ACCOUNT_ADDED, name)];
            (Some(Fact::Added(name.clone(), added)), unless, Outcome::AccountAdded(name.clone()))
        }
        Command::AddFirstAccount { name, password, roles } => {
            if !state.is_open() {
                return Err(Refusal::NotFirst);
            }
            may_add(state, name, Some(password), roles)?;
            let added = AddedData { password: Some(password.clone()), roles: roles.clone() };
            let unless = vec![QueryItem::new(&[ACCOUNT_ADDED], &[])];
            (Some(Fact::Added(name.clone(), added)), unless, Outcome::AccountAdded(name.clone()))
        }
        Command::SetPassword { name, password } => {
            // The last password counts, but never for another account of the same name.
            account(state, name)?;
            let fact = Fact::PasswordSet(name.clone(), password.clone());
            (Some(fact), vec![of_account(ACCOUNT_DELETED, name)], changed(name))
        }
        Command::SetRoles { name, roles } => {
            let was = account(state, name)?;
            let unless = match roles.are_admins() {
                true => vec![of_account(ACCOUNT_DELETED, name)],
                false => admin_without(state, name)?,
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
            (Some(Fact::Deleted(name.clone())), unless, Outcome::AccountDeleted(name.clone()))
        }
        Command::AddKey { id, label, digest, grant, expires_at_us, owner, in_place_of, now_us } => {
            let (label, sha256, grant) = (label.clone(), *digest, grant.clone());
            let data = KeyData { label, sha256, grant, expires_at_us: *expires_at_us };
            return decide_key(state, (id, owner, data), in_place_of.as_ref(), *now_us);
        }
        Command::EndKey { id, expires_at_us } => {
            let key = key(state, id)?;
            if *expires_at_us > MAX_TIME_US {
                return Err(Refusal::TooLate);
            }
            let later = !key.is_revoked() && key.expires_at_us.is_none_or(|us| us > *expires_at_us);
            let fact = Fact::KeyExpirySet(id.clone(), Some(key.owner.clone()), *expires_at_us);
            (Some(fact).filter(|_| later), Vec::new(), Outcome::KeyChanged(id.clone()))
        }
        Command::RevokeKey { id } => {
            let key = key(state, id)?;
            let fact = Fact::KeyRevoked(id.clone(), Some(key.owner.clone()));
            (Some(fact).filter(|_| !key.is_revoked()), Vec::new(), Outcome::KeyRevoked(id.clone()))
        }
        Command::RevokeToken { name, id, expires_at_us, now_us } => {
            return decide_revoke(account(state, name)?, id, *expires_at_us, *now_us);
        }
        Command::RevokeAllTokens { name } => {
            account(state, name)?;
            let fact = Fact::TokensRevoked(name.clone(), Tokens::All);
            (Some(fact), Vec::new(), Outcome::TokensRevoked(name.clone()))
        }
        Command::RotateTokenSecret => return Ok(decide_rotation(state.token_generations)),
        Command::RetireTokenSecret => return Ok(decide_retirement(state.token_generations)),
    };
    Ok(decision(fact, unless, outcome))
}

/// What appends nothing needs no condition.
pub(super) fn decision(
    fact: Option<Fact>,
    unless: Vec<QueryItem>,
    outcome: Outcome,
) -> Decision<Outcome> {
    match fact {
        Some(fact) => Decision { events: vec![fact.to_event()], unless, outcome },
        None => Decision { events: Vec::new(), unless: Vec::new(), outcome },
    }
}

fn changed(name: &AccountName) -> Outcome {
    Outcome::AccountChanged(name.clone())
}

fn of_account(event_type: &str, name: &AccountName) -> QueryItem {
    QueryItem::new(&[event_type], &[&format!("{ACCOUNT_TAG}{name}")])
}

fn account<'a>(state: &'a State, name: &AccountName) -> Result<&'a Account, Refusal> {
    let found = state.account(name.as_str());
    found.map(|account| &**account).ok_or_else(|| Refusal::UnknownAccount(name.clone()))
}

fn key<'a>(state: &'a State, id: &KeyId) -> Result<&'a Key, Refusal> {
    let found = state.key(id.as_str());
    found.map(|key| &**key).ok_or_else(|| Refusal::UnknownKey(id.clone()))
}

fn may_add(
    state: &State,
    name: &AccountName,
    password: Option<&PasswordHash>,
    roles: &Grants,
) -> Result<(), Refusal> {
    if state.account(name.as_str()).is_some() {
        return Err(Refusal::NameTaken(name.clone()));
    }
    if state.is_open() && !roles.are_admins() {
        return Err(Refusal::FirstIsAdmin);
    }
    if state.is_open() && password.is_none() {
        return Err(Refusal::FirstHasPassword);
    }
    if state.accounts.len() >= MAX_ACCOUNTS {
        return Err(Refusal::TooManyAccounts);
    }
    Ok(())
}

/// That there is an admin without this account, and on which condition there still will be: that
/// nobody has become one or ceased to be one. Also if the account is none: it may have become the
/// only one meanwhile.
fn admin_without(state: &State, name: &AccountName) -> Result<Vec<QueryItem>, Refusal> {
    if state.is_last_admin(name) {
        return Err(Refusal::LastAdmin(name.clone()));
    }
    let types = [ACCOUNT_DISABLED, ACCOUNT_ENABLED, ACCOUNT_DELETED, ROLES_SET];
    Ok(vec![QueryItem::new(&types, &[])])
}

fn may_add_key(
    state: &State,
    id: &KeyId,
    owner: &AccountName,
    data: &KeyData,
) -> Result<(), Refusal> {
    let owner = account(state, owner)?;
    if owner.disabled {
        return Err(Refusal::Disabled(owner.name.clone()));
    }
    if state.key(id.as_str()).is_some() {
        return Err(Refusal::KeyTaken(id.clone()));
    }
    if state.key_of(&data.sha256).is_some() {
        return Err(Refusal::SecretTaken);
    }
    let log = data.grant.log.as_deref();
    if !log.is_none_or(is_log_name) {
        return Err(Refusal::Log);
    }
    if owner.grants.role_on(log) < Some(data.grant.role) {
        return Err(Refusal::MoreThanOwner(data.grant.clone()));
    }
    if data.expires_at_us.is_some_and(|us| us > MAX_TIME_US) {
        return Err(Refusal::TooLate);
    }
    Ok(())
}

/// A key that is added, alone or in the place of another of the same account.
fn decide_key(
    state: &State,
    (id, owner, data): (&KeyId, &AccountName, KeyData),
    in_place_of: Option<&KeyId>,
    now_us: u64,
) -> Result<Decision<Outcome>, Refusal> {
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
                return Err(Refusal::KeyEnded(old.clone()));
            }
            facts.push(Fact::KeyRevoked(old.clone(), Some(owner.clone())));
            // Two at once would be two in the place of one.
            unless.push(of_key(KEY_REVOKED, old));
        }
        None if state.live_keys_of(owner, now_us) >= MAX_KEYS_OF_ACCOUNT => {
            return Err(Refusal::TooManyKeysOf(owner.clone()));
        }
        None if state.has_live_keys(MAX_KEYS, now_us) => return Err(Refusal::TooManyKeys),
        None => {}
    }
    let events = facts.iter().map(Fact::to_event).collect();
    Ok(Decision { events, unless, outcome: Outcome::KeyAdded(id.clone()) })
}

fn decide_revoke(
    account: &Account,
    id: &TokenId,
    expires_at_us: u64,
    now_us: u64,
) -> Result<Decision<Outcome>, Refusal> {
    if expires_at_us > MAX_TIME_US {
        return Err(Refusal::TooLate);
    }
    let Account { name, revoked, .. } = account;
    let there = revoked.get(id).copied();
    let remembered = || revoked.values().filter(|&&until_us| is_remembered(until_us, now_us));
    if there.is_none() && remembered().count() >= MAX_REVOKED {
        return Err(Refusal::TooManyRevoked(name.clone()));
    }
    let tokens = Tokens::One { id: id.clone(), expires_at_us };
    let fact =
        Some(Fact::TokensRevoked(name.clone(), tokens)).filter(|_| there < Some(expires_at_us));
    Ok(decision(fact, Vec::new(), Outcome::TokensRevoked(name.clone())))
}
