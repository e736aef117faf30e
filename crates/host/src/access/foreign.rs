//! Tokens of an external issuer: JWTs signed with RS256 or EdDSA by keys that the issuer publishes.
//!
//! Their claims alone determine their rights. No account is looked up: the external issuer's
//! `admin` is not the account `admin` here.

use super::foreign_claims::{Names, WrittenClaims};
use super::jwks::{Algorithm, KeySet};
use super::token::{MAX_LIFE_S, MAX_TIME_S, SECOND_US, SKEW_S, TokenFault};
use crate::identity::Subject;
use crate::identity::{Grant, Grants};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Notify;

/// Which tokens are accepted, and which claims are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issuer {
    /// What `iss` must be.
    pub(crate) name: String,
    /// What `aud` must name.
    pub(crate) audience: String,
    /// The claim that holds the roles.
    pub(crate) roles_claim: String,
    /// The claim that names the subject.
    pub(crate) account_claim: String,
}

/// The content of a genuine external token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignClaims {
    /// The subject.
    pub(crate) subject: Subject,
    /// The granted roles.
    pub(crate) grants: Arc<Grants>,
    /// When it expires (`exp`), in µs since 1970 UTC.
    pub(crate) expires_at_us: u64,
}

impl ForeignClaims {
    /// When it is no longer accepted here, in µs since 1970 UTC.
    pub(crate) fn until_us(&self) -> u64 {
        self.expires_at_us + SKEW_S * SECOND_US
    }
}

/// A token split into its parts, none of them verified yet.
#[derive(Clone, Copy)]
pub(super) struct TokenParts<'a> {
    /// The key id from the header.
    pub(super) key_id: Option<&'a str>,
    /// The signed part: the first two parts with the dot between them.
    pub(super) signed: &'a [u8],
    /// The second part, decoded.
    pub(super) claims: &'a [u8],
    /// The third part, decoded.
    pub(super) signature: &'a [u8],
}

/// Verifies the tokens of one external issuer.
pub(crate) struct ForeignIssuer {
    issuer: Issuer,
    keys: RwLock<Arc<KeySet>>,
    generation: AtomicU64,
    wanted: Notify,
}

impl fmt::Debug for ForeignIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({:?}, {:?})", self.issuer.name, self.keys())
    }
}

impl ForeignIssuer {
    /// Accepts tokens of this issuer signed by one of these keys.
    pub(crate) fn new(issuer: Issuer, keys: KeySet) -> ForeignIssuer {
        let keys = RwLock::new(Arc::new(keys));
        ForeignIssuer { issuer, keys, generation: AtomicU64::new(0), wanted: Notify::new() }
    }

    fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are any keys.
    pub(crate) fn has_keys(&self) -> bool {
        self.keys().len() > 0
    }

    /// Replaces the keys, and tells whether they differ from the previous ones.
    pub(crate) fn replace(&self, keys: KeySet) -> KeyReplacement {
        let mut held = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if **held == keys {
            return KeyReplacement::Same;
        }
        *held = Arc::new(keys);
        // Set after the keys: a verification under the new number uses the new keys.
        self.generation.fetch_add(1, Ordering::Release);
        KeyReplacement::Changed
    }

    /// Counts the changes of the keys.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Waits until a token names an unknown key: the issuer may have published new ones.
    pub(crate) async fn keys_wanted(&self) {
        self.wanted.notified().await;
    }

    /// The content of a token that is genuine, for this audience and within its validity (now in µs
    /// since 1970 UTC). No claim is read before the signature is verified.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        token: &TokenParts<'_>,
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

/// The result of replacing keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyReplacement {
    /// The keys are the same.
    Same,
    /// The keys have changed.
    Changed,
}

/// The roles among these words. Other words are ignored, as they may mean something to other
/// services. Of two roles on the same log the greater counts. `None`: more roles than an account
/// may have.
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
