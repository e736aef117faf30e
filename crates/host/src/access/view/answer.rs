//! Queries: whether the account or key behind a verified credential is still valid.

use super::state::{Account, Key, State};
use super::{SecretDigest, TokenId};
use std::sync::Arc;

/// Why a credential that used to be valid no longer is. Clients only learn that it is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invalidation {
    /// There is no such account or key.
    Unknown,
    /// The account is disabled.
    Disabled,
    /// This token or key has been revoked.
    Revoked,
    /// The password changed, all tokens were revoked or the signing secret was retired since the
    /// credential was issued.
    Superseded,
    /// The credential has expired.
    Expired,
}

impl State {
    /// The account that a genuine token belongs to: the account with this name and id, if its
    /// tokens counted from `since_us` on when this one was issued. A token without an id cannot be
    /// revoked individually.
    ///
    /// # Errors
    /// Why the token is no longer valid.
    pub fn account_of_token(
        &self,
        name: &str,
        id: Option<&TokenId>,
        since_us: u64,
    ) -> Result<&Arc<Account>, Invalidation> {
        let account = self.enabled(name)?;
        if since_us < account.tokens_valid_from_us {
            return Err(Invalidation::Superseded);
        }
        if id.is_some_and(|id| account.revoked.contains_key(id)) {
            return Err(Invalidation::Revoked);
        }
        Ok(account)
    }

    /// The key with this secret, and its owner, at a time (µs since 1970 UTC).
    ///
    /// # Errors
    /// Why the key is no longer valid.
    pub fn key_and_owner(
        &self,
        digest: &SecretDigest,
        now_us: u64,
    ) -> Result<(&Arc<Key>, &Arc<Account>), Invalidation> {
        let key = self.key_of(digest).ok_or(Invalidation::Unknown)?;
        if key.is_revoked() {
            return Err(Invalidation::Revoked);
        }
        if key.expires_at_us.is_some_and(|expires_at_us| expires_at_us <= now_us) {
            return Err(Invalidation::Expired);
        }
        Ok((key, self.enabled(key.owner.as_str())?))
    }

    /// The account whose password was verified, if its tokens counted from `since_us` on at that
    /// time.
    ///
    /// # Errors
    /// Why the proof is no longer valid.
    pub fn account_of_password(
        &self,
        name: &str,
        since_us: u64,
    ) -> Result<&Arc<Account>, Invalidation> {
        self.account_of_token(name, None, since_us)
    }

    fn enabled(&self, name: &str) -> Result<&Arc<Account>, Invalidation> {
        let account = self.account(name).ok_or(Invalidation::Unknown)?;
        if account.disabled { Err(Invalidation::Disabled) } else { Ok(account) }
    }
}
