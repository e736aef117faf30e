//! The public keys of an external issuer: a JWK Set (RFC 7517, RFC 7518 section 6, RFC 8037).
//!
//! A key alone determines what it may verify: an RSA key RS256, an Ed25519 key EdDSA. Keys for
//! anything else are ignored, as the standard requires.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Largest document, in bytes.
pub(crate) const MAX_BYTES: usize = 262_144;
/// Most keys accepted in one document.
pub(crate) const MAX_KEYS: usize = 256;
/// Longest id of a key, in bytes.
pub(crate) const MAX_ID_BYTES: usize = 255;
/// Accepted sizes of an RSA modulus, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// Longest public exponent, in bytes; `ring` accepts up to 33 bits.
const MAX_EXPONENT_BYTES: usize = 4;

/// The signature algorithm of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// The algorithm of a token's `alg`; `None` if unsupported.
    pub(crate) fn parse(alg: &str) -> Option<Algorithm> {
        match alg {
            "RS256" => Some(Algorithm::Rs256),
            "EdDSA" => Some(Algorithm::EdDsa),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::EdDsa => "EdDSA",
        }
    }
}

/// Why a whole document is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeysFault {
    /// Longer than [`MAX_BYTES`], or more than [`MAX_KEYS`] keys.
    TooLarge,
    /// Not a JSON object with a list `keys`.
    Form,
    /// A key includes its private half.
    Private,
    /// Two keys have this id, so it is ambiguous.
    Twice(String),
    /// No key is usable.
    NoneUsable,
}

impl fmt::Display for KeysFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysFault::TooLarge => {
                write!(f, "more than {MAX_BYTES} bytes or {MAX_KEYS} keys")
            }
            KeysFault::Form => f.write_str("not a JWK Set: a JSON object with a list `keys`"),
            KeysFault::Private => f.write_str(
                "it contains a private key, which only the issuer may have; create new keys, \
                 and publish only the public ones",
            ),
            KeysFault::Twice(id) => write!(f, "two keys have the id {id:?}"),
            KeysFault::NoneUsable => f.write_str(
                "no signature key for RS256 (RSA, 2048 to 8192 bits) or EdDSA (Ed25519)",
            ),
        }
    }
}

impl std::error::Error for KeysFault {}

/// A key with its id.
#[derive(PartialEq, Eq)]
pub(crate) struct Key {
    id: Option<String>,
    public: Public,
}

#[derive(PartialEq, Eq)]
enum Public {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    Ed25519([u8; 32]),
}

impl Key {
    /// The algorithm it verifies.
    pub(crate) fn algorithm(&self) -> Algorithm {
        match &self.public {
            Public::Rsa { .. } => Algorithm::Rs256,
            Public::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Whether a signature matches this message.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.public {
            Public::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            Public::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature).is_ok()
            }
        }
    }
}

/// Usable keys.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct KeySet {
    keys: Vec<Key>,
    /// Number of unusable keys.
    passed_over: usize,
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({} + {})", self.keys.len(), self.passed_over)
    }
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

/// A key as it is written. Each member must have the right type and occur once, or the key is
/// ignored.
#[derive(Deserialize)]
struct WrittenKey<'a> {
    #[serde(borrow)]
    kty: Cow<'a, str>,
    #[serde(borrow, default, rename = "use")]
    used_for: Option<Cow<'a, str>>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(borrow, default)]
    alg: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kid: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    crv: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    n: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    e: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    x: Option<Cow<'a, str>>,
    #[serde(default)]
    d: Option<IgnoredAny>,
}

impl KeySet {
    /// The usable keys of a document.
    ///
    /// # Errors
    /// [`KeysFault`].
    pub(crate) fn read(document: &[u8]) -> Result<KeySet, KeysFault> {
        if document.len() > MAX_BYTES {
            return Err(KeysFault::TooLarge);
        }
        // Serde would accept an array as the members in order.
        if document.trim_ascii_start().first() != Some(&b'{') {
            return Err(KeysFault::Form);
        }
        // Also checks the ignored members, which serde does not examine.
        let document = std::str::from_utf8(document).map_err(|_| KeysFault::Form)?;
        let Document { keys } = serde_json::from_str(document).map_err(|_| KeysFault::Form)?;
        if keys.len() > MAX_KEYS {
            return Err(KeysFault::TooLarge);
        }
        let mut set = KeySet::default();
        for key in keys {
            let written = serde_json::from_str::<WrittenKey<'_>>(key.get());
            match written.ok().filter(|_| key.get().starts_with('{')) {
                Some(written) if written.d.is_some() => return Err(KeysFault::Private),
                written => match written.and_then(|written| usable(&written)) {
                    Some(key) => set.add(key)?,
                    None => set.passed_over += 1,
                },
            }
        }
        if set.keys.is_empty() { Err(KeysFault::NoneUsable) } else { Ok(set) }
    }

    fn add(&mut self, key: Key) -> Result<(), KeysFault> {
        if let Some(id) = key.id.as_ref()
            && self.keys.iter().any(|other| other.id.as_ref() == Some(id))
        {
            return Err(KeysFault::Twice(id.clone()));
        }
        self.keys.push(key);
        Ok(())
    }

    /// The key that a token refers to: the one with its id; without an id, the only one for its
    /// algorithm. `None`: there is no such key, or it is for another algorithm.
    pub(crate) fn find(&self, algorithm: Algorithm, id: Option<&str>) -> Option<&Key> {
        let fitting = |key: &&Key| key.algorithm() == algorithm;
        match id {
            Some(id) => self.keys.iter().find(|key| key.id.as_deref() == Some(id)).filter(fitting),
            None => {
                let mut keys = self.keys.iter().filter(fitting);
                keys.next().filter(|_| keys.next().is_none())
            }
        }
    }

    /// Number of usable keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Number of unusable keys of the document.
    pub(crate) fn passed_over(&self) -> usize {
        self.passed_over
    }
}

/// The key, if it is a signature key we support.
fn usable(written: &WrittenKey<'_>) -> Option<Key> {
    let public = match &*written.kty {
        "RSA" => {
            let modulus = number(written.n.as_deref()?)?;
            let exponent = number(written.e.as_deref()?)?;
            (is_strong(&modulus) && is_exponent(&exponent)).then_some(())?;
            Public::Rsa { modulus, exponent }
        }
        "OKP" if written.crv.as_deref() == Some("Ed25519") => {
            let point = URL_SAFE_NO_PAD.decode(written.x.as_deref()?).ok()?;
            Public::Ed25519(point.try_into().ok()?)
        }
        _ => return None,
    };
    let id = written.kid.as_deref().map(str::to_owned);
    let key = Key { id, public };
    let for_signatures = written.used_for.as_deref().is_none_or(|used_for| used_for == "sig");
    let for_verifying =
        written.key_ops.as_ref().is_none_or(|uses| uses.iter().any(|one| one == "verify"));
    let for_this = written.alg.as_deref().is_none_or(|alg| alg == key.algorithm().as_str());
    let named = key.id.as_ref().is_none_or(|id| (1..=MAX_ID_BYTES).contains(&id.len()));
    (for_signatures && for_verifying && for_this && named).then_some(key)
}

/// A positive number: Base64url of the shortest big-endian encoding.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    (*bytes.first()? != 0).then_some(bytes)
}

/// `number` has no leading zeros.
fn is_strong(modulus: &[u8]) -> bool {
    let bits = 8 * modulus.len() - modulus[0].leading_zeros() as usize;
    RSA_BITS.contains(&bits) && is_odd(modulus)
}

fn is_exponent(exponent: &[u8]) -> bool {
    exponent.len() <= MAX_EXPONENT_BYTES && is_odd(exponent) && exponent != [1]
}

fn is_odd(number: &[u8]) -> bool {
    number.last().is_some_and(|byte| byte & 1 == 1)
}

#[cfg(test)]
#[path = "jwks_tests.rs"]
mod tests;
