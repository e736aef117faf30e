//! Token secrets where the nodes of a cluster share a key: each generation is derived from the key,
//! so that a token of one node is valid on all. The valid generations are folded from the system
//! log.

use crate::access::view::{Folded, TokenGenerations};
use crate::cluster::ClusterKey;
use ring::hmac;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// The secrets derived from a cluster's key.
pub(crate) struct DerivedSecrets {
    key: Arc<ClusterKey>,
    folded: Arc<Folded>,
    /// The secrets of the last call.
    latest: RwLock<Arc<Generations>>,
}

/// Secrets by generation.
struct Generations {
    counting: TokenGenerations,
    signs: hmac::Key,
    /// All secrets that verify: the signing one, the previous one while it is valid, and the next,
    /// which a node may use whose view of the system log is ahead of this one's.
    verify: Vec<(u64, hmac::Key)>,
}

impl fmt::Debug for DerivedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DerivedSecrets({})", self.key.fingerprint())
    }
}

impl Generations {
    fn of(key: &ClusterKey, counting: TokenGenerations) -> Generations {
        let secret = |generation| hmac::Key::new(hmac::HMAC_SHA256, &*key.token_secret(generation));
        let verify = (counting.oldest()..=counting.signs().saturating_add(1)).rev();
        Generations {
            counting,
            signs: secret(counting.signs()),
            verify: verify.map(|generation| (generation, secret(generation))).collect(),
        }
    }
}

impl DerivedSecrets {
    /// The secrets of this key for the generations folded here.
    pub(crate) fn new(key: Arc<ClusterKey>, folded: Arc<Folded>) -> DerivedSecrets {
        let counting = folded.now().token_generations();
        let latest = RwLock::new(Arc::new(Generations::of(&key, counting)));
        DerivedSecrets { key, folded, latest }
    }

    fn now(&self) -> Arc<Generations> {
        let counting = self.folded.now().token_generations();
        {
            let latest = self.latest.read().unwrap_or_else(PoisonError::into_inner);
            if latest.counting == counting {
                return Arc::clone(&latest);
            }
        }
        let derived = Arc::new(Generations::of(&self.key, counting));
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&derived);
        derived
    }

    /// HMAC-SHA-256 of a message.
    pub(super) fn sign(&self, message: &[u8]) -> hmac::Tag {
        hmac::sign(&self.now().signs, message)
    }

    /// The generation of the secret that made a tag of this message; compares in constant time.
    pub(super) fn signed_by(&self, message: &[u8], tag: &[u8]) -> Option<u64> {
        let by = |(_, key): &&(u64, hmac::Key)| hmac::verify(key, message, tag).is_ok();
        self.now().verify.iter().find(by).map(|(generation, _)| *generation)
    }
}

#[cfg(test)]
mod tests {
    use super::super::principal::Proof;
    use super::super::principal::tests::{fold, with_ann};
    use super::super::token::{TokenFault, Tokens, VerifiedToken};
    use super::*;
    use crate::access::view::Access;
    use crate::identity::{AccountName, Grant, Role};
    use crate::view::contract::View;

    /// Behind the account's `tokens_valid_from_us`.
    const NOW_US: u64 = 1_700_000_000_000_000;

    /// A node of the cluster of this key, with a copy of the log of accounts.
    struct Node {
        view: Access,
        tokens: Tokens,
    }

    impl Node {
        fn new(key: u8) -> Node {
            let view = with_ann();
            let key = Arc::new(ClusterKey::known(key));
            let tokens = Tokens::derived(key, Arc::clone(view.folded()), None);
            Node { view, tokens }
        }

        fn fold(&mut self, event_type: &str, generation: u64) {
            fold(&mut self.view, event_type, &format!("{{\"generation\":{generation}}}"));
        }

        fn token(&self) -> String {
            let ann = AccountName::parse("ann").unwrap();
            let grants = Grant::everywhere(Role::Reader).into();
            let issued = self.tokens.issue(&ann, &grants, NOW_US, 60, NOW_US).unwrap();
            issued.token.to_string()
        }

        fn proof(&self, token: &str) -> Result<Proof, TokenFault> {
            let verified = self.tokens.verify(token.as_bytes(), NOW_US)?;
            assert!(matches!(&verified, VerifiedToken::Own(claims) if claims.generation.is_some()));
            Ok(verified.into())
        }

        fn counts(&self, token: &str) -> bool {
            let state = self.view.folded().now();
            self.proof(token).is_ok_and(|proof| proof.judge(&state, NOW_US).is_ok())
        }
    }

    #[test]
    fn a_token_of_one_node_counts_on_all_of_the_same_key() {
        let (one, other) = (Node::new(7), Node::new(7));
        assert!(one.counts(&one.token()) && other.counts(&one.token()));
        let stranger = Node::new(8);
        assert!(!stranger.counts(&one.token()) && !one.counts(&stranger.token()));
        assert_eq!(stranger.proof(&one.token()).unwrap_err(), TokenFault::Signature);
        assert_eq!(one.tokens.generation(), 0);
    }

    #[test]
    fn a_rotation_takes_effect_where_it_is_folded_and_breaks_no_token_before() {
        let (mut one, mut other) = (Node::new(7), Node::new(7));
        let first = one.token();
        one.fold("TokenSecretRotated", 1);
        let second = one.token();
        for node in [&one, &other] {
            assert!(node.counts(&first) && node.counts(&second));
        }
        assert!(one.counts(&other.token()), "a node that is behind still signs with the first");
        // A recognised token is invalidated when its secret is retired.
        let proof = one.proof(&first).unwrap();
        one.fold("TokenSecretRetired", 1);
        assert!(proof.judge(&one.view.folded().now(), NOW_US).is_err());
        assert!(!one.counts(&first) && one.counts(&second) && other.counts(&first));
        other.fold("TokenSecretRotated", 1);
        other.fold("TokenSecretRetired", 1);
        assert!(!other.counts(&first) && other.counts(&second) && other.counts(&other.token()));
        one.fold("TokenSecretRotated", 2);
        one.fold("TokenSecretRotated", 3);
        assert!(!one.counts(&second), "two rotations end what was before them");
        assert!(!other.counts(&one.token()), "nor does a node know one that is so far ahead");
    }

    #[test]
    fn a_file_is_neither_there_nor_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let node = Node::new(7);
        assert!(node.tokens.rotate(dir.path()).is_err() && node.tokens.retire(dir.path()).is_err());
        assert!(node.tokens.reread(dir.path()).is_ok());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(format!("{:?}", node.tokens).matches("07070707").count(), 0);
    }
}
