//! An issuer for tests: an RSA key that is not secret, and an Ed25519 key with a known seed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};

const RSA: &[u8] = include_bytes!("../../tests/keys/rsa-2048-TEST-KEY-not-a-secret.pk8");

/// Base64url without padding.
pub(super) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rsa() -> RsaKeyPair {
    RsaKeyPair::from_pkcs8(RSA).unwrap()
}

fn ed25519(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

/// Modulus and exponent of the RSA key.
pub(super) fn rsa_numbers() -> (Vec<u8>, Vec<u8>) {
    let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::from(rsa().public());
    (n, e)
}

/// The members of the RSA key, without braces.
pub(super) fn rsa_jwk(more: &str) -> String {
    let (n, e) = rsa_numbers();
    format!(r#""kty":"RSA","n":"{}","e":"{}"{more}"#, encode(n), encode(e))
}

/// The members of the Ed25519 key of a seed, without braces.
pub(super) fn ed_jwk(seed: u8, more: &str) -> String {
    let point = encode(ed25519(seed).public_key());
    format!(r#""kty":"OKP","crv":"Ed25519","x":"{point}"{more}"#)
}

/// A document of these keys.
pub(super) fn jwks(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("{{{key}}}")).collect();
    format!(r#"{{"keys":[{}]}}"#, keys.join(","))
}

fn message(header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
    format!("{}.{}", encode(header), encode(claims))
}

/// A token that the RSA key has signed, whatever its header says.
pub(super) fn by_rsa(header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
    let (key, message) = (rsa(), message(header, claims));
    let mut signature = vec![0; key.public().modulus_len()];
    let random = SystemRandom::new();
    key.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
    format!("{message}.{}", encode(signature))
}

/// A token that the Ed25519 key of a seed has signed, whatever its header says.
pub(super) fn by_ed(seed: u8, header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
    let message = message(header, claims);
    let signature = encode(ed25519(seed).sign(message.as_bytes()));
    format!("{message}.{signature}")
}
