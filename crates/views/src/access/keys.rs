//! How keys end, and are forgotten: what an account can leave behind is bounded. A key that is
//! forgotten counts no more than one that was never made.

use super::state::{Key, State};
use super::{AccountName, KeyId, MAX_ENDED_OF_ACCOUNT, MAX_KEYS_OF_ACCOUNT, SecretDigest};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A key is remembered for so long after it has ended, if not many of its account have since.
const REMEMBERED_US: u64 = 30 * 86_400_000_000;
/// So many keys of an account are looked at whenever one of them changes, and more whenever their
/// number is a multiple of the other.
const LOOKED_AT_ALWAYS: usize = 2 * (MAX_KEYS_OF_ACCOUNT + MAX_ENDED_OF_ACCOUNT);
const LOOKED_AT_EVERY: usize = 128;

impl Key {
    /// When it ended or will, µs since 1970 UTC; `None`: it does not by itself.
    pub(super) fn ends_at_us(&self) -> Option<u64> {
        // What has expired is revoked in vain.
        match (self.revoked_at_us, self.expires_at_us) {
            (Some(revoked_at_us), Some(expires_at_us)) => Some(revoked_at_us.min(expires_at_us)),
            (ends_at_us, None) | (None, ends_at_us) => ends_at_us,
        }
    }

    /// Whether it counts at a time, µs since 1970 UTC.
    pub(super) fn is_live(&self, now_us: u64) -> bool {
        self.revoked_at_us.is_none() && self.expires_at_us.is_none_or(|us| us > now_us)
    }
}

impl State {
    /// How many keys of an account count at a time, µs since 1970 UTC.
    pub(super) fn live_keys_of(&self, owner: &AccountName, now_us: u64) -> usize {
        self.keys_of(owner).filter(|key| key.is_live(now_us)).count()
    }

    /// Whether as many keys as `most` count at a time, µs since 1970 UTC.
    pub(super) fn has_live_keys(&self, most: usize, now_us: u64) -> bool {
        // Those that have expired are looked for only if it may depend on them.
        self.unrevoked >= most
            && self.keys().filter(|key| key.is_live(now_us)).take(most).count() == most
    }

    fn keys_of(&self, owner: &AccountName) -> impl Iterator<Item = &Arc<Key>> {
        self.by_owner.get(owner).into_iter().flatten().filter_map(|id| self.keys.get(id))
    }

    /// Adds a key whose id and digest are not there.
    pub(super) fn insert_key(&mut self, key: Key) {
        self.by_head.entry(key.digest.head()).or_default().push(key.id.clone());
        self.by_owner.entry(key.owner.clone()).or_default().insert(key.id.clone());
        self.unrevoked += usize::from(key.revoked_at_us.is_none());
        self.keys.insert(key.id.clone(), Arc::new(key));
    }

    /// A key ends at a time, both µs since 1970 UTC, if it does not end before. It cannot end
    /// later: the end that its maker was told stays true.
    pub(super) fn end_key(&mut self, id: &KeyId, expires_at_us: u64, at_us: u64) {
        let Some(key) = self.keys.get_mut(id) else { return };
        let key = Arc::make_mut(key);
        key.expires_at_us =
            Some(key.expires_at_us.map_or(expires_at_us, |us| us.min(expires_at_us)));
        let owner = key.owner.clone();
        self.forget_keys_of(&owner, at_us);
    }

    /// A key counts no more.
    pub(super) fn revoke_key(&mut self, id: &KeyId, at_us: u64) {
        let key = self.keys.get_mut(id).filter(|key| key.revoked_at_us.is_none());
        let Some(key) = key else { return };
        let key = Arc::make_mut(key);
        key.revoked_at_us = Some(at_us);
        let owner = key.owner.clone();
        self.unrevoked -= 1;
        self.forget_keys_of(&owner, at_us);
    }

    /// No key of an account counts any more.
    pub(super) fn revoke_keys_of(&mut self, owner: &AccountName, at_us: u64) {
        let ids: Vec<KeyId> = self.keys_of(owner).map(|key| key.id.clone()).collect();
        ids.iter().for_each(|id| self.revoke_key(id, at_us));
    }

    /// Forgets keys of an account that have ended long before a time (µs since 1970 UTC), or that
    /// are more than are remembered. It looks at what is folded alone, so every fold forgets the
    /// same.
    pub(super) fn forget_keys_of(&mut self, owner: &AccountName, at_us: u64) {
        let keys = self.by_owner.get(owner).map_or(0, BTreeSet::len);
        // From before there was a quota an account may have thousands: they are not all looked at
        // each time.
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

    /// The key of a secret.
    #[must_use]
    pub fn key_of(&self, digest: &SecretDigest) -> Option<&Arc<Key>> {
        let heads = self.by_head.get(&digest.head())?;
        heads.iter().filter_map(|id| self.keys.get(id)).find(|key| key.digest == *digest)
    }
}
