//! API keys: `wsk_` and 256 random bits. The prefix tells a key from a token, and lets secret
//! scanners find keys committed by mistake.

use crate::access::view::SecretDigest;
use crate::identity::KeyId;
use crate::random;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use zeroize::Zeroizing;

/// Prefix of every key.
pub(super) const PREFIX: &[u8] = b"wsk_";

/// A newly generated key: shown once; afterwards only its digest is stored.
pub struct NewKey {
    /// Identifies the key.
    pub id: KeyId,
    /// The secret, sent as `X-API-Key` or as `Bearer`.
    pub secret: Zeroizing<String>,
    /// The digest that is stored.
    pub digest: SecretDigest,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({})", self.id)
    }
}

/// Generates a key.
///
/// # Errors
/// The system provides no random bytes.
pub fn draw() -> io::Result<NewKey> {
    let bits = Zeroizing::new(random::bytes::<32>()?);
    let id = format!("{:016x}", u64::from_be_bytes(random::bytes()?));
    let id = KeyId::parse(&id).map_err(io::Error::other)?;
    let mut secret = Zeroizing::new(String::with_capacity(64));
    secret.push_str("wsk_");
    URL_SAFE_NO_PAD.encode_string(*bits, &mut secret);
    let digest = digest(secret.as_bytes());
    Ok(NewKey { id, secret, digest })
}

/// The stored digest of a key: SHA-256 of its whole text.
pub(crate) fn digest(secret: &[u8]) -> SecretDigest {
    SecretDigest(Sha256::digest(secret).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_are_not_shown() {
        let (one, other) = (draw().unwrap(), draw().unwrap());
        assert_ne!(one.id, other.id);
        assert_ne!(one.digest, other.digest);
        assert_eq!(one.secret.len(), 47);
        assert_eq!(digest(one.secret.as_bytes()), one.digest);
        assert!(!format!("{one:?}").contains(&one.secret[4..]));
    }
}
