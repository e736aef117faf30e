//! What is stored of secrets: hashes, which are themselves never shown.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use wellspring_types::hex;

/// Maximum length of a [`PasswordHash`], in bytes.
const MAX_HASH_BYTES: usize = 512;

/// A slow hash of a password as a PHC string (`$argon2id$…`). Opaque here. It would allow guessing
/// a weak password, so it is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Accepts visible ASCII beginning with `$`, up to 512 bytes; otherwise `None`.
    #[must_use]
    pub fn new(text: &str) -> Option<PasswordHash> {
        let fits = text.starts_with('$')
            && text.len() <= MAX_HASH_BYTES
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| PasswordHash(text.to_owned()))
    }

    /// The PHC string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PasswordHash {
    type Error = &'static str;
    fn try_from(text: String) -> Result<PasswordHash, &'static str> {
        PasswordHash::new(&text).ok_or("not a password's hash")
    }
}

impl From<PasswordHash> for String {
    fn from(hash: PasswordHash) -> String {
        hash.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// SHA-256 of an API key's secret. The secret is 256 random bits, so a fast hash suffices: it
/// cannot be guessed.
#[derive(Clone, Copy, Eq)]
pub struct SecretDigest(pub [u8; 32]);

impl SecretDigest {
    /// The first eight bytes, used to find candidates.
    pub(super) fn head(&self) -> u64 {
        u64::from_le_bytes(*self.0.first_chunk().expect("32 bytes"))
    }
}

/// Compares every byte, wherever they differ. Safety does not depend on the compiler keeping it
/// constant-time: the compared values are hashes, whose bytes no attacker can choose.
impl PartialEq for SecretDigest {
    fn eq(&self, other: &SecretDigest) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretDigest(…)")
    }
}

impl Serialize for SecretDigest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::digits(&self.0))
    }
}

impl<'de> Deserialize<'de> for SecretDigest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SecretDigest, D::Error> {
        let digest = hex::read(&String::deserialize(from)?).map(SecretDigest);
        digest.ok_or_else(|| de::Error::custom("not 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_shown() {
        let hash = PasswordHash::new("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA").unwrap();
        assert!(!format!("{hash:?}").contains("argon2id"));
        assert!(!format!("{:?}", SecretDigest([0xab; 32])).contains("ab"));
        for text in ["", "plain", "$a b", "$ä", &format!("${}", "a".repeat(512))] {
            assert!(PasswordHash::new(text).is_none());
        }
    }

    #[test]
    fn digests_are_read_and_written() {
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(0u8..).for_each(|(byte, n)| *byte = n.wrapping_mul(37));
        let digest = SecretDigest(bytes);
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<SecretDigest>(&json).unwrap(), digest);
        for at in 0..32 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_ne!(SecretDigest(other), digest);
        }
        for bad in ["\"\"", "\"ab\"", &format!("\"{}\"", "+1".repeat(32)), "7"] {
            assert!(serde_json::from_str::<SecretDigest>(bad).is_err());
        }
    }
}
