//! The folded state of access: immutable once a reader holds it. The writer derives the next one
//! from it, in place when no reader does.

use super::{
    AccountName, Grant, Grants, KeyId, Label, PasswordHash, SecretDigest, TokenGenerations, TokenId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use wellspring_types::Position;

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub(super) name: AccountName,
    pub(super) password: Option<PasswordHash>,
    pub(super) grants: Arc<Grants>,
    pub(super) disabled: bool,
    /// Position of the event that added the account.
    pub(super) added_at: Position,
    pub(super) added_at_us: u64,
    pub(super) tokens_valid_from_us: u64,
    /// Individually revoked tokens and their expiry, µs since 1970 UTC.
    pub(super) revoked: BTreeMap<TokenId, u64>,
}

impl Account {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &AccountName {
        &self.name
    }

    /// The hash of its password; `None` if it cannot log in with one.
    #[must_use]
    pub fn password(&self) -> Option<&PasswordHash> {
        self.password.as_ref()
    }

    /// Its roles, which apply while the account is enabled.
    #[must_use]
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// Whether the account is disabled.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// Position of the event that added the account; distinguishes it from a later account of the
    /// same name.
    #[must_use]
    pub fn added_at(&self) -> Position {
        self.added_at
    }

    /// When it was added, µs since 1970 UTC.
    #[must_use]
    pub fn added_at_us(&self) -> u64 {
        self.added_at_us
    }

    /// Tokens issued before this time (µs since 1970 UTC) are invalid. Each password change,
    /// disabling and revocation of all tokens increases it strictly, so a token that carries it
    /// says exactly which of these it has seen.
    #[must_use]
    pub fn tokens_valid_from_us(&self) -> u64 {
        self.tokens_valid_from_us
    }

    /// Whether it is an enabled admin of everything who can log in with a password. Keys alone do
    /// not suffice: they expire.
    pub(super) fn is_admin(&self) -> bool {
        !self.disabled && self.grants.are_admins() && self.password.is_some()
    }
}

/// An API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub(super) id: KeyId,
    pub(super) label: Label,
    pub(super) owner: AccountName,
    pub(super) digest: SecretDigest,
    pub(super) grant: Grant,
    pub(super) added_at_us: u64,
    /// The expiry set at creation, µs since 1970 UTC; `None`: never.
    pub(super) made_until_us: Option<u64>,
    /// The current expiry: never later than the original one.
    pub(super) expires_at_us: Option<u64>,
    /// When it was revoked, if it was, µs since 1970 UTC.
    pub(super) revoked_at_us: Option<u64>,
}

impl Key {
    /// Its public identifier.
    #[must_use]
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// The owner's label.
    #[must_use]
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The owning account. The key is allowed what both its grant and its owner's roles allow.
    #[must_use]
    pub fn owner(&self) -> &AccountName {
        &self.owner
    }

    /// The most that the key is allowed.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// When it was added, µs since 1970 UTC.
    #[must_use]
    pub fn added_at_us(&self) -> u64 {
        self.added_at_us
    }

    /// When it expires, µs since 1970 UTC; `None`: never.
    #[must_use]
    pub fn expires_at_us(&self) -> Option<u64> {
        self.expires_at_us
    }

    /// The lifetime set at creation, in µs; `None`: unlimited. A rotation with overlap brings the
    /// expiry forward but leaves this unchanged, so each successor gets the same lifetime.
    #[must_use]
    pub fn life_us(&self) -> Option<u64> {
        self.made_until_us.map(|until_us| until_us.saturating_sub(self.added_at_us))
    }

    /// Whether it was revoked.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.revoked_at_us.is_some()
    }
}

/// Accounts and keys after an event.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(super) applied: Position,
    pub(super) accounts: BTreeMap<AccountName, Arc<Account>>,
    /// Includes recently ended keys, also of deleted accounts.
    pub(super) keys: BTreeMap<KeyId, Arc<Key>>,
    /// From the first bytes of a digest to the keys with that prefix: practically always one.
    pub(super) by_head: HashMap<u64, Vec<KeyId>>,
    /// The keys of each account that has any.
    pub(super) by_owner: BTreeMap<AccountName, BTreeSet<KeyId>>,
    /// Number of keys that are not revoked.
    pub(super) unrevoked: usize,
    /// Later than any `tokens_valid_from_us` of a deleted account, µs since 1970 UTC. A new
    /// account's tokens count from no earlier time, so a token of a former account of the same name
    /// is invalid for it.
    pub(super) deleted_until_us: u64,
    /// Generations of the secret that a cluster's nodes derive.
    pub(super) token_generations: TokenGenerations,
}

impl State {
    /// Position of the last event applied.
    #[must_use]
    pub fn applied(&self) -> Position {
        self.applied
    }

    /// Whether no account exists: then no credentials are required.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Which generations of the derived token secret are valid.
    #[must_use]
    pub fn token_generations(&self) -> TokenGenerations {
        self.token_generations
    }

    /// An account by its name.
    #[must_use]
    pub fn account(&self, name: &str) -> Option<&Arc<Account>> {
        self.accounts.get(name)
    }

    /// All accounts, by name.
    pub fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.values()
    }

    /// Accounts whose names sort after this one, by name.
    pub fn accounts_after(&self, name: &str) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.range::<str, _>((Excluded(name), Unbounded)).map(|(_, account)| account)
    }

    /// A key by its id.
    #[must_use]
    pub fn key(&self, id: &str) -> Option<&Arc<Key>> {
        self.keys.get(id)
    }

    /// All keys by id, including ended ones that are not forgotten yet.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values()
    }

    /// Keys whose ids sort after this one, by id.
    pub fn keys_after(&self, id: &str) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.range::<str, _>((Excluded(id), Unbounded)).map(|(_, key)| key)
    }

    /// Whether this account is the only enabled admin of everything with a password.
    pub(super) fn is_last_admin(&self, name: &AccountName) -> bool {
        let is_admin = |account: &Arc<Account>| account.is_admin();
        self.accounts.get(name).is_some_and(is_admin)
            && !self.accounts.values().any(|other| other.name != *name && other.is_admin())
    }
}

/// The indexes are derived from the keys, so they are not compared.
impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        let parts =
            |state: &State| (state.applied, state.deleted_until_us, state.token_generations);
        parts(self) == parts(other) && self.accounts == other.accounts && self.keys == other.keys
    }
}

/// The readers' side of the view.
#[derive(Debug, Default)]
pub struct Folded {
    state: RwLock<Arc<State>>,
    /// The state's position; set after the state.
    position: AtomicU64,
}

impl Folded {
    /// The current folded state. Waits at most while one event is folded, in the worst case for a
    /// copy of the accounts.
    #[must_use]
    pub fn now(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Position of the last event of access. While it is unchanged, so is [`now`](Self::now). Takes
    /// no lock.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position.load(Ordering::Acquire)
    }
}

/// The writer's side of the view.
#[derive(Debug, Default)]
pub struct Access {
    pub(super) folded: Arc<Folded>,
}

impl Access {
    pub(super) fn of(state: State) -> Access {
        let position = AtomicU64::new(state.applied);
        Access { folded: Arc::new(Folded { state: RwLock::new(Arc::new(state)), position }) }
    }

    /// Changes the state that readers will see. A reader that holds the old state keeps it.
    pub(super) fn update(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.folded.state.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut state));
        self.folded.position.store(state.applied, Ordering::Release);
    }
}
