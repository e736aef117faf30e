//! How keys end and are forgotten. Forgetting bounds what an account can leave behind; a forgotten
//! key is as invalid as one that never existed.

use super::state::{Key, State};
use super::{AccountName, KeyId, MAX_ENDED_OF_ACCOUNT, MAX_KEYS_OF_ACCOUNT, SecretDigest};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How long a key is remembered after its end, unless many later ones of its account have ended.
const REMEMBERED_US: u64 = 30 * 86_400_000_000;
/// Up to this many keys of an account, every change checks all of them; beyond it, only a change
/// that makes their number a multiple of the constant below does.
const LOOKED_AT_ALWAYS: usize = 2 * (MAX_KEYS_OF_ACCOUNT + MAX_ENDED_OF_ACCOUNT);
const LOOKED_AT_EVERY: usize = 128;

impl Key {
    /// When the key ended or will end, µs since 1970 UTC; `None` if it never ends by itself.
    pub(super) fn ends_at_us(&self) -> Option<u64> {
        // Revoking an expired key does not move its end.
        match (self.revoked_at_us, self.expires_at_us) {
            (Some(revoked_at_us), Some(expires_at_us)) => Some(revoked_at_us.min(expires_at_us)),
            (ends_at_us, None) | (None, ends_at_us) => ends_at_us,
        }
    }

    /// Whether the key is valid at a time, µs since 1970 UTC.
    pub(super) fn is_live(&self, now_us: u64) -> bool {
        self.revoked_at_us.is_none() && self.expires_at_us.is_none_or(|us| us > now_us)
    }
}

impl State {
    /// How many keys of an account are valid at a time, µs since 1970 UTC.
    pub(super) fn live_keys_of(&self, owner: &AccountName, now_us: u64) -> usize {
        self.keys_of(owner).filter(|key| key.is_live(now_us)).count()
    }

    /// Whether at least `most` keys are valid at a time, µs since 1970 UTC.
    pub(super) fn has_live_keys(&self, most: usize, now_us: u64) -> bool {
        // Expired keys are counted only if the answer can depend on them.
        self.unrevoked >= most
            && self.keys().filter(|key| key.is_live(now_us)).take(most).count() == most
    }

    fn keys_of(&self, owner: &AccountName) -> impl Iterator<Item = &Arc<Key>> {
        self.by_owner.get(owner).into_iter().flatten().filter_map(|id| self.keys.get(id))
    }

    /// Adds a key whose id and digest are new.
    pub(super) fn insert_key(&mut self, key: Key) {
        self.by_head.entry(key.digest.head()).or_default().push(key.id.clone());
        self.by_owner.entry(key.owner.clone()).or_default().insert(key.id.clone());
        self.unrevoked += usize::from(key.revoked_at_us.is_none());
        self.keys.insert(key.id.clone(), Arc::new(key));
    }

    /// Brings a key's expiry forward (both times µs since 1970 UTC). It is never postponed: the
    /// expiry shown at its creation remains an upper bound.
    pub(super) fn end_key(&mut self, id: &KeyId, expires_at_us: u64, at_us: u64) {
        let Some(key) = self.keys.get_mut(id) else { return };
        let key = Arc::make_mut(key);
        key.expires_at_us =
            Some(key.expires_at_us.map_or(expires_at_us, |us| us.min(expires_at_us)));
        let owner = key.owner.clone();
        self.forget_keys_of(&owner, at_us);
    }

    /// Revokes a key.
    pub(super) fn revoke_key(&mut self, id: &KeyId, at_us: u64) {
        let key = self.keys.get_mut(id).filter(|key| key.revoked_at_us.is_none());
        let Some(key) = key else { return };
        let key = Arc::make_mut(key);
        key.revoked_at_us = Some(at_us);
        let owner = key.owner.clone();
        self.unrevoked -= 1;
        self.forget_keys_of(&owner, at_us);
    }

    /// Revokes every key of an account.
    pub(super) fn revoke_keys_of(&mut self, owner: &AccountName, at_us: u64) {
        let ids: Vec<KeyId> = self.keys_of(owner).map(|key| key.id.clone()).collect();
        ids.iter().for_each(|id| self.revoke_key(id, at_us));
    }

    /// Forgets an account's keys that ended long before a time (µs since 1970 UTC) or exceed the
    /// number remembered. Depends only on folded state, so every fold forgets the same keys.
    pub(super) fn forget_keys_of(&mut self, owner: &AccountName, at_us: u64) {
        let keys = self.by_owner.get(owner).map_or(0, BTreeSet::len);
        // Accounts from before the quota may have thousands of keys; not every change scans them.
        if keys > LOOKED_AT_ALWAYS && !keys.is_multiple_of(LOOKED_AT_EVERY) {
            return;
        }
        let ended = self.keys_of(owner).filter(|key| !key.is_live(at_us));
        let mut ended: Vec<(u64, KeyId)> =
            ended.map(|key| (key.ends_at_us().unwrap_or(at_us), key.id.clone())).collect();
        ended.sort_unstable();
        let surplus = ended.len().saturating_sub(MAX_ENDED_OF_ACCOUNT);
        for (n, (ended_at_us, id)) in ended.iter().enumerate() {
            if n < surplus || ended_at_us.saturating_add(REMEMBERED_US) < at_us {
                self.forget_key(id);
            }
        }
        assert!(
            self.keys_of(owner).filter(|key| !key.is_live(at_us)).count() <= MAX_ENDED_OF_ACCOUNT
        );
    }

    fn forget_key(&mut self, id: &KeyId) {
        let Some(key) = self.keys.remove(id) else { return };
        self.unrevoked -= usize::from(key.revoked_at_us.is_none());
        let head = key.digest.head();
        if let Some(ids) = self.by_head.get_mut(&head) {
            ids.retain(|other| other != id);
            if ids.is_empty() {
                self.by_head.remove(&head);
            }
        }
        if let Some(ids) = self.by_owner.get_mut(&key.owner) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_owner.remove(&key.owner);
            }
        }
    }

    /// The key with this secret.
    #[must_use]
    pub fn key_of(&self, digest: &SecretDigest) -> Option<&Arc<Key>> {
        let heads = self.by_head.get(&digest.head())?;
        heads.iter().filter_map(|id| self.keys.get(id)).find(|key| key.digest == *digest)
    }
}
