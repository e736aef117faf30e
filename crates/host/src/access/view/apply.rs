//! The fold: how each event changes the state. The state remembers the last event it applied, so
//! applying one again changes nothing.

use super::event::{Fact, KeyData, Tokens};
use super::state::{Access, Account, Key, State};
use super::{AccountName, KeyId};
use crate::view::contract::LogEvent;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a revoked token is remembered after its expiry: the node that verifies it may have a
/// clock behind the log's.
const REMEMBERED_US: u64 = 86_400_000_000;

/// Whether a revoked token that expires at `until_us` must still be remembered (both µs since 1970
/// UTC).
pub(super) fn is_remembered(until_us: u64, now_us: u64) -> bool {
    until_us.saturating_add(REMEMBERED_US) >= now_us
}

impl Access {
    pub(super) fn fold(&mut self, event: &impl LogEvent) {
        let fact = Fact::of(event.event_type(), event.tags(), event.data());
        let (position, at_us) = (event.position(), event.recorded_at_us());
        self.update(|state| {
            if position > state.applied {
                state.applied = position;
                fact.into_iter().for_each(|fact| state.change(fact, at_us));
            }
        });
    }
}

impl State {
    /// Applies a fact recorded at a time (µs since 1970 UTC).
    pub(super) fn change(&mut self, fact: Fact, at_us: u64) {
        match fact {
            Fact::Added(name, added) => {
                let since_us = at_us.max(self.deleted_until_us);
                let new = Account {
                    name: name.clone(),
                    password: added.password,
                    grants: Arc::new(added.roles),
                    disabled: false,
                    added_at: self.applied,
                    added_at_us: at_us,
                    tokens_valid_from_us: since_us,
                    revoked: BTreeMap::new(),
                };
                self.accounts.entry(name).or_insert_with(|| Arc::new(new));
            }
            Fact::PasswordSet(name, password) => self.change_account(&name, |account| {
                account.password = Some(password);
                account.end_tokens(at_us);
            }),
            Fact::RolesSet(name, roles) => self.change_account(&name, |account| {
                account.grants = Arc::new(roles);
            }),
            Fact::Disabled(name) => self.change_account(&name, |account| {
                account.disabled = true;
                account.end_tokens(at_us);
            }),
            Fact::Enabled(name) => self.change_account(&name, |account| account.disabled = false),
            Fact::Deleted(name) => self.delete_account(&name, at_us),
            Fact::KeyAdded(id, owner, data) => self.add_key(id, owner, data, at_us),
            Fact::KeyExpirySet(id, _, expires_at_us) => self.end_key(&id, expires_at_us, at_us),
            Fact::KeyRevoked(id, _) => self.revoke_key(&id, at_us),
            Fact::TokenSecretRotated(generation) => self.token_generations.rotate(generation),
            Fact::TokenSecretRetired(generation) => self.token_generations.retire(generation),
            Fact::TokensRevoked(name, Tokens::All) => {
                self.change_account(&name, |account| account.end_tokens(at_us));
            }
            Fact::TokensRevoked(name, Tokens::One { id, expires_at_us }) => {
                self.change_account(&name, |account| {
                    account.revoked.retain(|_, until_us| is_remembered(*until_us, at_us));
                    let until_us = account.revoked.entry(id).or_default();
                    *until_us = expires_at_us.max(*until_us);
                });
            }
        }
    }

    fn change_account(&mut self, name: &AccountName, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.accounts.get_mut(name) {
            change(Arc::make_mut(account));
        }
    }

    /// The last account is disabled instead: without any account, every request is allowed.
    fn delete_account(&mut self, name: &AccountName, at_us: u64) {
        self.change_account(name, |account| {
            account.disabled = true;
            account.end_tokens(at_us);
        });
        self.revoke_keys_of(name, at_us);
        if self.accounts.len() > 1
            && let Some(account) = self.accounts.remove(name)
        {
            let later_us = account.tokens_valid_from_us.saturating_add(1);
            self.deleted_until_us = self.deleted_until_us.max(later_us);
        }
    }

    fn add_key(&mut self, id: KeyId, owner: AccountName, data: KeyData, at_us: u64) {
        let KeyData { label, sha256, grant, expires_at_us } = data;
        let there = self.keys.contains_key(&id) || self.key_of(&sha256).is_some();
        let fits = grant.log.as_deref().is_none_or(crate::names::is_name);
        if !there && fits && self.accounts.contains_key(&owner) {
            let name = owner.clone();
            self.insert_key(Key {
                id,
                label,
                owner,
                digest: sha256,
                grant,
                added_at_us: at_us,
                made_until_us: expires_at_us,
                expires_at_us,
                revoked_at_us: None,
            });
            self.forget_keys_of(&name, at_us);
        }
    }
}

impl Account {
    /// Ends all existing tokens of the account, so no single revocation needs remembering.
    fn end_tokens(&mut self, at_us: u64) {
        let later_us = self.tokens_valid_from_us.saturating_add(1);
        self.tokens_valid_from_us = at_us.max(later_us);
        self.revoked.clear();
    }
}
