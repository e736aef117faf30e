//! A thread's cache of verified credentials. A hit costs one SHA-256 and one look-up: no signature,
//! no JSON, no lock. When the view has moved, only the cached proof is judged again, so a logout
//! elsewhere does not force every password to be verified again.

use super::credentials::Credential;
use super::principal::{Principal, Proof};
use crate::access::view::Folded;
use crate::generations::Generations;
use crate::random;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::sync::Arc;
use wellspring_types::Position;

/// Longest time a proof is cached, in µs.
const REMEMBERED_US: u64 = 300_000_000;

/// SHA-256 of the cache's own random salt, the kind of credential and the credential. The salt
/// makes precomputed tables of weak passwords useless.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; 32]);

/// The credentials that one thread has seen, in bounded memory: the least recently seen are
/// evicted.
pub(crate) struct Cache {
    salt: [u8; 32],
    entries: Generations<Fingerprint, Entry>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({:?})", self.entries.sizes())
    }
}

struct Entry {
    proof: Proof,
    principal: Arc<Principal>,
    /// Position of the state in which the proof was judged.
    position: Position,
    /// Generation of the tokens under which the proof was verified.
    tokens: u64,
    /// When the entry expires, in µs since 1970 UTC.
    until_us: u64,
    /// When the entry was added: setting a clock back does not lengthen its life.
    since_us: u64,
}

impl Entry {
    fn is_alive(&self, now_us: u64) -> bool {
        (self.since_us..self.until_us).contains(&now_us)
    }
}

impl Cache {
    /// An empty cache of at most `most` credentials.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(crate) fn new(most: usize) -> io::Result<Cache> {
        Ok(Cache { salt: random::bytes()?, entries: Generations::new(most / 2) })
    }

    /// The cache key of a credential.
    pub(crate) fn fingerprint(&self, presented: &Credential<'_>) -> Fingerprint {
        let (kind, text): (&[u8], &[u8]) = match presented {
            Credential::Token(text) => (b"t", text),
            Credential::Key(text) => (b"k", text),
            Credential::Basic(text) => (b"b", text),
        };
        let hash = Sha256::new_with_prefix(self.salt).chain_update(kind).chain_update(text);
        Fingerprint(hash.finalize().into())
    }

    /// The cache key of a name and a password, however they were sent.
    pub(crate) fn fingerprint_of_login(&self, name: &str, password: &str) -> Fingerprint {
        let hash = Sha256::new_with_prefix(self.salt).chain_update(b"l");
        let hash = hash.chain_update((name.len() as u64).to_be_bytes()).chain_update(name);
        Fingerprint(hash.chain_update(password).finalize().into())
    }

    /// The principal of a cached credential that is still valid (now in µs since 1970 UTC; `tokens`
    /// is the current generation of tokens, which invalidates entries verified under another).
    /// `None`: verify the credential itself.
    pub(crate) fn find(
        &mut self,
        fingerprint: &Fingerprint,
        folded: &Folded,
        tokens: u64,
        now_us: u64,
    ) -> Option<&Arc<Principal>> {
        let fresh = self.entries.renew(fingerprint).is_some_and(|entry| {
            entry.is_alive(now_us)
                && (entry.tokens == tokens || !entry.proof.is_of_token())
                && (entry.position == folded.position() || {
                    let state = folded.now();
                    entry.proof.judge(&state, now_us).is_ok_and(|principal| {
                        entry.principal = Arc::new(principal);
                        entry.position = state.applied();
                        true
                    })
                })
        });
        if !fresh {
            self.entries.remove(fingerprint);
            return None;
        }
        self.entries.get(fingerprint).map(|entry| &entry.principal)
    }

    /// Caches the principal that a proof gave in the state at a position. `tokens` is the
    /// generation read before the proof was verified.
    pub(crate) fn remember(
        &mut self,
        fingerprint: Fingerprint,
        proof: Proof,
        principal: Arc<Principal>,
        position: Position,
        tokens: u64,
        now_us: u64,
    ) {
        let remembered_us = now_us.saturating_add(REMEMBERED_US);
        let until_us = principal.until_us().unwrap_or(u64::MAX).min(remembered_us);
        let since_us = now_us;
        let entry = Entry { proof, principal, position, tokens, until_us, since_us };
        self.entries.insert(fingerprint, entry);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]
    use super::super::principal::Verdict;
    use super::super::principal::tests::{ann_by_token, fold, with_ann};
    use super::*;
    use crate::access::view::Access;
    use crate::identity::{AccountName, Role};
    use crate::view::contract::View;
    use std::time::Instant;

    const NOW_US: u64 = 1_000_000;

    fn remember(cache: &mut Cache, view: &Access, presented: &Credential<'_>, proof: &Proof) {
        let state = view.folded().now();
        let principal = Arc::new(proof.judge(&state, NOW_US).unwrap());
        let fingerprint = cache.fingerprint(presented);
        cache.remember(fingerprint, proof.clone(), principal, state.applied(), 7, NOW_US);
    }

    fn find(cache: &mut Cache, view: &Access, presented: &Credential<'_>, now_us: u64) -> bool {
        let fingerprint = cache.fingerprint(presented);
        cache.find(&fingerprint, view.folded(), 7, now_us).is_some()
    }

    fn by_password() -> Proof {
        Proof::Password { account: AccountName::parse("ann").unwrap(), since_us: 1_000 }
    }

    #[test]
    fn what_was_seen_is_known_and_nothing_else() {
        let (view, mut cache) = (with_ann(), Cache::new(100).unwrap());
        let token = Credential::Token(b"abc");
        assert!(!find(&mut cache, &view, &token, NOW_US));
        remember(&mut cache, &view, &token, &ann_by_token(1_000));
        assert!(find(&mut cache, &view, &token, NOW_US));
        let others = [
            Credential::Token(b"abd"),
            Credential::Token(b"ab"),
            Credential::Key(b"abc"),
            Credential::Basic(b"abc"),
        ];
        for other in others {
            assert!(!find(&mut cache, &view, &other, NOW_US), "{other:?}");
        }
        let other = Cache::new(1).unwrap();
        assert!(cache.fingerprint(&token) != other.fingerprint(&token), "a salt of its own");
    }

    #[test]
    fn what_ends_is_forgotten() {
        let (view, mut cache) = (with_ann(), Cache::new(100).unwrap());
        // The token is accepted until 80 s, a password remembered for 300.
        let (token, basic) = (Credential::Token(b"t"), Credential::Basic(b"b"));
        for (presented, proof, end_us) in [
            (&token, ann_by_token(1_000), 80_000_000),
            (&basic, by_password(), NOW_US + 300_000_000),
        ] {
            remember(&mut cache, &view, presented, &proof);
            assert!(find(&mut cache, &view, presented, end_us - 1));
            assert!(!find(&mut cache, &view, presented, end_us));
            assert!(!find(&mut cache, &view, presented, NOW_US), "and not known again");
            remember(&mut cache, &view, presented, &proof);
            assert!(!find(&mut cache, &view, presented, NOW_US - 1), "the clock was set back");
        }
    }

    #[test]
    fn when_the_view_moves_the_proof_is_judged_again() {
        let (mut view, mut cache) = (with_ann(), Cache::new(100).unwrap());
        let (token, basic) = (Credential::Token(b"t"), Credential::Basic(b"b"));
        remember(&mut cache, &view, &token, &ann_by_token(1_000));
        remember(&mut cache, &view, &basic, &by_password());
        fold(&mut view, "RolesSet", r#"{"roles":[{"role":"admin"}]}"#);
        let fingerprint = cache.fingerprint(&basic);
        let ann = cache.find(&fingerprint, view.folded(), 7, NOW_US).unwrap();
        assert_eq!(ann.may(Role::Admin, None), Verdict::Allowed, "the roles of now");
        fold(&mut view, "TokensRevoked", "{}");
        assert!(!find(&mut cache, &view, &token, NOW_US));
        assert!(!find(&mut cache, &view, &basic, NOW_US), "to be verified again");
    }

    #[test]
    fn tokens_fall_with_what_they_were_verified_with() {
        let (view, mut cache) = (with_ann(), Cache::new(100).unwrap());
        let (token, basic) = (Credential::Token(b"t"), Credential::Basic(b"b"));
        remember(&mut cache, &view, &token, &ann_by_token(1_000));
        remember(&mut cache, &view, &basic, &by_password());
        let [token, basic] = [token, basic].map(|presented| cache.fingerprint(&presented));
        for (of, known) in [(&token, false), (&basic, true)] {
            assert!(cache.find(of, view.folded(), 7, NOW_US).is_some());
            assert_eq!(cache.find(of, view.folded(), 8, NOW_US).is_some(), known);
            assert_eq!(cache.find(of, view.folded(), 7, NOW_US).is_some(), known, "for good");
        }
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let (view, mut cache) = (with_ann(), Cache::new(100).unwrap());
        let used = Credential::Token(b"used");
        remember(&mut cache, &view, &used, &ann_by_token(1_000));
        for n in 0..10_000u32 {
            let text = n.to_string();
            remember(&mut cache, &view, &Credential::Token(text.as_bytes()), &ann_by_token(1_000));
            assert!(cache.entries.sizes().iter().sum::<usize>() <= 100);
            assert!(find(&mut cache, &view, &used, NOW_US));
        }
        assert!(find(&mut cache, &view, &Credential::Token(b"9999"), NOW_US));
        assert!(!find(&mut cache, &view, &Credential::Token(b"9000"), NOW_US));
    }

    #[test]
    #[ignore = "a measurement: run it with --release --ignored on a quiet machine"]
    fn what_a_hit_costs() {
        let (view, mut cache) = (with_ann(), Cache::new(10_000).unwrap());
        let token = [b'x'; 330];
        let kinds = [("key", Credential::Key(&token[..47])), ("token", Credential::Token(&token))];
        for (what, presented) in kinds {
            remember(&mut cache, &view, &presented, &ann_by_token(1_000));
            for n in 0..4_000u32 {
                let other = n.to_le_bytes();
                remember(&mut cache, &view, &Credential::Key(&other), &ann_by_token(1_000));
            }
            const TIMES: u32 = 200_000;
            let start = Instant::now();
            let hits = (0..TIMES)
                .filter(|_| {
                    let fingerprint = cache.fingerprint(&presented);
                    cache.find(&fingerprint, view.folded(), 7, NOW_US).is_some_and(|principal| {
                        principal.may(Role::Writer, Some("orders")) == Verdict::Allowed
                    })
                })
                .count();
            assert_eq!(hits, TIMES as usize);
            let ns = start.elapsed().as_nanos() / u128::from(TIMES);
            println!("{what}: {ns} ns a hit");
        }
    }
}
