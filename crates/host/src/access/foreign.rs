//! Tokens of another issuer: JWT signed with RS256 or EdDSA by keys that the issuer publishes.
//!
//! What they may is what they say. No account is looked up for them: the `admin` of another issuer
//! is not the account `admin` here.

use super::foreign_claims::{Names, WrittenClaims};
use super::jwks::{Algorithm, KeySet};
use super::token::{MAX_LIFE_S, MAX_TIME_S, SECOND_US, SKEW_S, TokenFault};
use crate::identity::Subject;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Notify;
use wellspring_views::access::{Grant, Grants};

/// Whose tokens are accepted, and what is read in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issuer {
    /// What `iss` must be.
    pub(crate) name: String,
    /// What `aud` must name.
    pub(crate) audience: String,
    /// The claim that holds the roles.
    pub(crate) roles_claim: String,
    /// The claim that says whose the token is.
    pub(crate) account_claim: String,
}

/// What a genuine token of another issuer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignClaims {
    /// Whose it is.
    pub(crate) subject: Subject,
    /// The roles that the token grants.
    pub(crate) grants: Arc<Grants>,
    /// When it ends (`exp`), µs since 1970 UTC.
    pub(crate) expires_at_us: u64,
}

impl ForeignClaims {
    /// When it is no longer accepted here, µs since 1970 UTC.
    pub(crate) fn until_us(&self) -> u64 {
        self.expires_at_us + SKEW_S * SECOND_US
    }
}

/// A token cut into its parts, nothing of it believed yet.
#[derive(Clone, Copy)]
pub(super) struct Cut<'a> {
    /// The id of the key, from the header.
    pub(super) key_id: Option<&'a str>,
    /// What is signed: the first two parts with the dot between them.
    pub(super) signed: &'a [u8],
    /// The second part, decoded.
    pub(super) claims: &'a [u8],
    /// The third part, decoded.
    pub(super) signature: &'a [u8],
}

/// Verifies tokens of one other issuer.
pub(crate) struct Foreign {
    issuer: Issuer,
    keys: RwLock<Arc<KeySet>>,
    generation: AtomicU64,
    wanted: Notify,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({:?}, {:?})", self.issuer.name, self.keys())
    }
}

impl Foreign {
    /// Accepts tokens of this issuer that one of these keys has signed.
    pub(crate) fn new(issuer: Issuer, keys: KeySet) -> Foreign {
        let keys = RwLock::new(Arc::new(keys));
        Foreign { issuer, keys, generation: AtomicU64::new(0), wanted: Notify::new() }
    }

    fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are any keys.
    pub(crate) fn has_keys(&self) -> bool {
        self.keys().len() > 0
    }

    /// Verifies with these keys from now on. Whether they are others than before.
    pub(crate) fn replace(&self, keys: KeySet) -> Replaced {
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if **held == keys {
            return Replaced::Same;
        }
        *held = Arc::new(keys);
        // After the keys: what is verified under the new number is verified with them.
        self.generation.fetch_add(1, Ordering::Release);
        Replaced::Changed
    }

    /// Counts how often the keys have changed.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Waits until a token has named a key that is not there: the issuer may have new ones.
    pub(crate) async fn keys_wanted(&self) {
        self.wanted.notified().await;
    }

    /// What a token says, if it is genuine, for us, and in its time (now in µs since 1970 UTC).
    /// Nothing of what it claims is looked at before its signature is.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        token: &Cut<'_>,
        now_us: u64,
    ) -> Result<ForeignClaims, TokenFault> {
        let keys = self.keys();
        let Some(key) = keys.find(algorithm, token.key_id) else {
            self.wanted.notify_one();
            return Err(TokenFault::Key);
        };
        if !key.verifies(token.signed, token.signature) {
            return Err(TokenFault::Signature);
        }
        let names = Names { roles: &self.issuer.roles_claim, account: &self.issuer.account_claim };
        let written = WrittenClaims::read(token.claims, &names)?;
        self.check_claims(&written, now_us)
    }

    fn check_claims(
        &self,
        written: &WrittenClaims,
        now_us: u64,
    ) -> Result<ForeignClaims, TokenFault> {
        if written.issuer.as_deref() != Some(self.issuer.name.as_str()) {
            return Err(TokenFault::Issuer);
        }
        if !written.audience.contains(&self.issuer.audience) {
            return Err(TokenFault::Audience);
        }
        let now_s = now_us / SECOND_US;
        let exp = written.exp.ok_or(TokenFault::Claims)?;
        let lives_sanely = exp <= MAX_TIME_S
            && written.iat.is_none_or(|iat| iat < exp)
            && exp.saturating_sub(now_s) <= MAX_LIFE_S + SKEW_S;
        if !lives_sanely {
            return Err(TokenFault::Claims);
        }
        if now_s >= exp + SKEW_S {
            return Err(TokenFault::Expired);
        }
        if written.iat.max(written.nbf).unwrap_or(0) > now_s + SKEW_S {
            return Err(TokenFault::NotYet);
        }
        let subject = written.account.as_deref().and_then(Subject::parse);
        Ok(ForeignClaims {
            subject: subject.ok_or(TokenFault::Claims)?,
            grants: Arc::new(granted(&written.roles).ok_or(TokenFault::Claims)?),
            expires_at_us: exp * SECOND_US,
        })
    }
}

/// What becomes of keys that are given anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// They are those there were.
    Same,
    /// They are others.
    Changed,
}

/// The roles among these words. Words that are none mean something to others. Of two roles on the
/// same log the greater counts. `None`: more than anybody may have.
fn granted(words: &[String]) -> Option<Grants> {
    let mut roles = BTreeMap::new();
    for Grant { role, log } in words.iter().filter_map(|word| Grant::parse(word)) {
        match roles.entry(log) {
            Entry::Vacant(place) => {
                place.insert(role);
            }
            Entry::Occupied(mut held) => {
                let greater = role.max(*held.get());
                held.insert(greater);
            }
        }
    }
    Grants::new(roles.into_iter().map(|(log, role)| Grant { role, log }).collect()).ok()
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;
