//! What is folded of access: a value that never changes once a reader has it. The writer makes
//! the next one from it, in place if nobody looks.

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
    /// Position of the event that added it.
    pub(super) added_at: Position,
    pub(super) added_at_us: u64,
    pub(super) tokens_valid_from_us: u64,
    /// Tokens revoked one by one, until they expire, µs since 1970 UTC.
    pub(super) revoked: BTreeMap<TokenId, u64>,
}

impl Account {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &AccountName {
        &self.name
    }

    /// What is kept of its password; `None`: it cannot log in with one.
    #[must_use]
    pub fn password(&self) -> Option<&PasswordHash> {
        self.password.as_ref()
    }

    /// What it may do, if it is not disabled.
    #[must_use]
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// Whether it may do nothing.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// Position of the event that added it: one that gets its name later, when it is no more, has
    /// another.
    #[must_use]
    pub fn added_at(&self) -> Position {
        self.added_at
    }

    /// When it was added, µs since 1970 UTC.
    #[must_use]
    pub fn added_at_us(&self) -> u64 {
        self.added_at_us
    }

    /// Tokens from before it do not count, µs since 1970 UTC. It grows with every change of the
    /// password, when the account is disabled and when all tokens are revoked, and never stays the
    /// same then: a token that carries it says exactly which of these it has seen.
    #[must_use]
    pub fn tokens_valid_from_us(&self) -> u64 {
        self.tokens_valid_from_us
    }

    /// Whether it is enabled and an admin of everything who can log in. Keys alone are not enough:
    /// they end.
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
    /// When it was made to end, µs since 1970 UTC; `None`: never.
    pub(super) made_until_us: Option<u64>,
    /// When it ends: never later than it was made to.
    pub(super) expires_at_us: Option<u64>,
    /// When it was revoked, if it was, µs since 1970 UTC.
    pub(super) revoked_at_us: Option<u64>,
}

impl Key {
    /// What names it.
    #[must_use]
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// What its owner calls it.
    #[must_use]
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Whose it is. It may do what both it and its owner may.
    #[must_use]
    pub fn owner(&self) -> &AccountName {
        &self.owner
    }

    /// What it may do at most.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// When it was added, µs since 1970 UTC.
    #[must_use]
    pub fn added_at_us(&self) -> u64 {
        self.added_at_us
    }

    /// When it ends, µs since 1970 UTC; `None`: never.
    #[must_use]
    pub fn expires_at_us(&self) -> Option<u64> {
        self.expires_at_us
    }

    /// How long it was made to live, in µs; `None`: for ever. A rotation with overlap brings its
    /// end forward and leaves this as it is, so each of its successors lives as long.
    #[must_use]
    pub fn life_us(&self) -> Option<u64> {
        self.made_until_us.map(|until_us| until_us.saturating_sub(self.added_at_us))
    }

    /// Whether it no longer counts.
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
    /// For a while those that have ended, too, also of accounts that are no more.
    pub(super) keys: BTreeMap<KeyId, Arc<Key>>,
    /// From the first bytes of a digest to the keys that have them: one, but for a miracle.
    pub(super) by_head: HashMap<u64, Vec<KeyId>>,
    /// The keys of each account that has any.
    pub(super) by_owner: BTreeMap<AccountName, BTreeSet<KeyId>>,
    /// How many keys are not revoked.
    pub(super) unrevoked: usize,
    /// Later than any `tokens_valid_from_us` of a deleted account, µs since 1970 UTC. An account
    /// that is added begins no earlier, so no token of another that had its name counts for it.
    pub(super) deleted_until_us: u64,
    /// Of the secrets that the nodes of a cluster derive.
    pub(super) token_generations: TokenGenerations,
}

impl State {
    /// Position of the last event it was made of.
    #[must_use]
    pub fn applied(&self) -> Position {
        self.applied
    }

    /// Whether there are no accounts at all: then nobody needs credentials.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Which generations of the secret that signs tokens count, where nodes derive it.
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

    /// Accounts whose names come after this one, by name.
    pub fn accounts_after(&self, name: &str) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.range::<str, _>((Excluded(name), Unbounded)).map(|(_, account)| account)
    }

    /// A key by its id.
    #[must_use]
    pub fn key(&self, id: &str) -> Option<&Arc<Key>> {
        self.keys.get(id)
    }

    /// All keys, those that have ended and are not forgotten too, by id.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values()
    }

    /// Keys whose ids come after this one, by id.
    pub fn keys_after(&self, id: &str) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.range::<str, _>((Excluded(id), Unbounded)).map(|(_, key)| key)
    }

    /// Whether no enabled account but this one is an admin of everything with a password.
    pub(super) fn is_last_admin(&self, name: &AccountName) -> bool {
        let is_admin = |account: &Arc<Account>| account.is_admin();
        self.accounts.get(name).is_some_and(is_admin)
            && !self.accounts.values().any(|other| other.name != *name && other.is_admin())
    }
}

/// The indexes follow from the keys.
impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        let parts =
            |state: &State| (state.applied, state.deleted_until_us, state.token_generations);
        parts(self) == parts(other) && self.accounts == other.accounts && self.keys == other.keys
    }
}

/// The readers' side.
#[derive(Debug, Default)]
pub struct Folded {
    state: RwLock<Arc<State>>,
    /// That of the state; set after it.
    position: AtomicU64,
}

impl Folded {
    /// What is folded by now. Waits for the fold of one event at most, which is a copy of the
    /// accounts at worst.
    #[must_use]
    pub fn now(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Position of the last event of access: as long as it stays, so does [`now`](Self::now). Takes
    /// no lock.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position.load(Ordering::Acquire)
    }
}

/// The writer's side: the view.
#[derive(Debug, Default)]
pub struct Access {
    pub(super) folded: Arc<Folded>,
}

impl Access {
    pub(super) fn of(state: State) -> Access {
        let position = AtomicU64::new(state.applied);
        Access { folded: Arc::new(Folded { state: RwLock::new(Arc::new(state)), position }) }
    }

    /// Changes what readers will see. A reader who has the old state keeps it.
    pub(super) fn update(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.folded.state.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut state));
        self.folded.position.store(state.applied, Ordering::Release);
    }
}
