//! Answers: whether what a credential has proved still counts.

use super::state::{Account, Key, State};
use super::{SecretDigest, TokenId};
use std::sync::Arc;

/// Why a credential that was once good is not. A client is told only that it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fallen {
    /// There is no such account or key.
    Unknown,
    /// The account is disabled.
    Disabled,
    /// This token or key has been revoked.
    Revoked,
    /// The account's password was changed or all its tokens were revoked since, or what it was
    /// signed with was retired.
    Superseded,
    /// Its time is over.
    Expired,
}

impl State {
    /// The account of a token that is genuine: with this name and id, and issued when the account's
    /// tokens counted from `since_us` on. A token without an id cannot have been revoked alone.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn account_of_token(
        &self,
        name: &str,
        id: Option<&TokenId>,
        since_us: u64,
    ) -> Result<&Arc<Account>, Fallen> {
        let account = self.enabled(name)?;
        if since_us < account.tokens_valid_from_us {
            return Err(Fallen::Superseded);
        }
        if id.is_some_and(|id| account.revoked.contains_key(id)) {
            return Err(Fallen::Revoked);
        }
        Ok(account)
    }

    /// The key of a secret, with its owner, at a time (µs since 1970 UTC).
    ///
    /// # Errors
    /// Why it does not count.
    pub fn key_and_owner(
        &self,
        digest: &SecretDigest,
        now_us: u64,
    ) -> Result<(&Arc<Key>, &Arc<Account>), Fallen> {
        let key = self.key_of(digest).ok_or(Fallen::Unknown)?;
        if key.is_revoked() {
            return Err(Fallen::Revoked);
        }
        if key.expires_at_us.is_some_and(|expires_at_us| expires_at_us <= now_us) {
            return Err(Fallen::Expired);
        }
        Ok((key, self.enabled(key.owner.as_str())?))
    }

    /// The account of a password that was right when the account's tokens counted from `since_us`
    /// on.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn account_of_password(&self, name: &str, since_us: u64) -> Result<&Arc<Account>, Fallen> {
        self.account_of_token(name, None, since_us)
    }

    fn enabled(&self, name: &str) -> Result<&Arc<Account>, Fallen> {
        let account = self.account(name).ok_or(Fallen::Unknown)?;
        if account.disabled { Err(Fallen::Disabled) } else { Ok(account) }
    }
}
