//! A token issuer independent of the server's code: only `ring` signs.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const RSA: &[u8] = include_bytes!("../../../host/tests/keys/rsa-2048-TEST-KEY-not-a-secret.pk8");
pub const NAME: &str = "https://issuer.example";
pub const AUDIENCE: &str = "wellspring-test";

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn ed25519(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

/// The published Ed25519 key for a seed.
pub fn ed_jwk(seed: u8, id: &str) -> Value {
    let point = encode(ed25519(seed).public_key());
    json!({"kty": "OKP", "crv": "Ed25519", "x": point, "kid": id, "use": "sig", "alg": "EdDSA"})
}

/// The published RSA key.
pub fn rsa_jwk(id: &str) -> Value {
    let key = RsaKeyPair::from_pkcs8(RSA).unwrap();
    let public: RsaPublicKeyComponents<Vec<u8>> = key.public().into();
    json!({"kty": "RSA", "n": encode(public.n), "e": encode(public.e), "kid": id, "use": "sig"})
}

pub fn jwks(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// Claims of a token by this issuer for this server, valid for a minute.
pub fn claims(subject: &str, roles: Value) -> Value {
    let now_s = now_s();
    json!({"iss": NAME, "aud": AUDIENCE, "sub": subject, "roles": roles, "iat": now_s, "exp": now_s + 60})
}

fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode(header.to_string()), encode(claims.to_string()))
}

/// A token with this header, even an invalid one, signed with the Ed25519 key of a seed.
pub fn by_ed_under(seed: u8, header: &Value, claims: &Value) -> String {
    let message = message(header, claims);
    let signature = ed25519(seed).sign(message.as_bytes());
    format!("{message}.{}", encode(signature))
}

pub fn by_ed(seed: u8, id: &str, claims: &Value) -> String {
    by_ed_under(seed, &json!({"alg": "EdDSA", "typ": "JWT", "kid": id}), claims)
}

pub fn by_rsa(id: &str, claims: &Value) -> String {
    let message = message(&json!({"alg": "RS256", "kid": id}), claims);
    let key = RsaKeyPair::from_pkcs8(RSA).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
    format!("{message}.{}", encode(signature))
}

/// A token signed with HS256 and this secret.
pub fn by_hmac(secret: &[u8], claims: &Value) -> String {
    let message = message(&json!({"alg": "HS256", "typ": "JWT"}), claims);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
    format!("{message}.{}", encode(tag))
}

/// An unsigned token.
pub fn unsigned(claims: &Value) -> String {
    format!("{}.AA", message(&json!({"alg": "none", "typ": "JWT"}), claims))
}
