//! The parts of access that fuzz targets reach. Tokens are signed here with keys that are not
//! secret; otherwise no fuzzer would get past a signature.

use super::credentials::{self, Credential};
use super::foreign::{ForeignIssuer, Issuer};
use super::jwks::KeySet;
use super::token::{Tokens, VerifiedToken};
use super::token_secret::Secrets;
use crate::identity::{Grant, Grants};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::sync::OnceLock;

/// A key that signs no real token.
const SEED: [u8; 32] = [7; 32];
const SECOND_US: u64 = 1_000_000;

/// The caller that a request's headers name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresentedCredential {
    /// Nothing.
    Nothing,
    /// This token.
    Token(Vec<u8>),
    /// This API key.
    Key(Vec<u8>),
    /// This name and this password.
    Login(String, String),
    /// What is malformed.
    Malformed,
}

/// The content of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenContent {
    /// Whether it is one of ours rather than an external one.
    pub is_own: bool,
    /// The subject; with the prefix `jwt:` for external tokens.
    pub name: String,
    /// The grant: `writer`, or `writer:orders`.
    pub roles: Vec<String>,
    /// When it expires, in seconds since 1970 UTC.
    pub expires_at_s: u64,
}

/// The credential found in the headers.
pub fn credentials(authorization: &[&[u8]], api_key: &[&[u8]]) -> PresentedCredential {
    let found = credentials::presented(authorization.iter().copied(), api_key.iter().copied());
    match found {
        Err(_) => PresentedCredential::Malformed,
        Ok(None) => PresentedCredential::Nothing,
        Ok(Some(Credential::Token(token))) => PresentedCredential::Token(token.to_vec()),
        Ok(Some(Credential::Key(key))) => PresentedCredential::Key(key.to_vec()),
        Ok(Some(Credential::Basic(encoded))) => match credentials::basic(encoded) {
            Ok(login) => PresentedCredential::Login(login.username, login.password.to_string()),
            Err(_) => PresentedCredential::Malformed,
        },
    }
}

/// The number of usable keys in a document; `None`: it is refused.
pub fn keys(document: &[u8]) -> Option<usize> {
    KeySet::read(document).ok().map(|keys| keys.len())
}

/// The verdicts on tokens with this header and these claims, at a time in seconds since 1970 UTC:
/// one with a genuine signature of ours, and one with a genuine signature of the external issuer.
pub fn signed(header: &[u8], claims: &[u8], now_s: u64) -> [Option<TokenContent>; 2] {
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let message = format!("{header}.{claims}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &SEED), message.as_bytes());
    let foreign = issuer().map(|key| key.sign(message.as_bytes()).as_ref().to_vec());
    [tag.as_ref(), &foreign.unwrap_or_default()].map(|signature| {
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
        presented(token.as_bytes(), now_s)
    })
}

/// The verdict on a token.
pub fn presented(token: &[u8], now_s: u64) -> Option<TokenContent> {
    static TOKENS: OnceLock<Tokens> = OnceLock::new();
    let tokens = TOKENS.get_or_init(|| {
        let own = Tokens::new(Secrets::known(&SEED, None));
        match foreign() {
            Some(foreign) => own.trusting(foreign),
            None => own,
        }
    });
    let words = |grants: &Grants| grants.iter().map(Grant::to_string).collect();
    Some(match tokens.verify(token, now_s * SECOND_US).ok()? {
        VerifiedToken::Own(claims) => TokenContent {
            is_own: true,
            name: claims.account.as_str().to_owned(),
            roles: words(&claims.grants),
            expires_at_s: claims.expires_at_us / SECOND_US,
        },
        VerifiedToken::Foreign(claims) => TokenContent {
            is_own: false,
            name: claims.subject.as_str().to_owned(),
            roles: words(&claims.grants),
            expires_at_s: claims.expires_at_us / SECOND_US,
        },
    })
}

fn issuer() -> Option<Ed25519KeyPair> {
    Ed25519KeyPair::from_seed_unchecked(&SEED).ok()
}

fn foreign() -> Option<ForeignIssuer> {
    let point = URL_SAFE_NO_PAD.encode(issuer()?.public_key());
    let document =
        format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{point}","kid":"k"}}]}}"#);
    let issuer = Issuer {
        name: "i".to_owned(),
        audience: "a".to_owned(),
        roles_claim: "roles".to_owned(),
        account_claim: "sub".to_owned(),
    };
    Some(ForeignIssuer::new(issuer, KeySet::read(document.as_bytes()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The properties that the fuzz target checks of accepted tokens hold for some.
    #[test]
    fn there_are_headers_and_claims_that_are_accepted() {
        const NOW_S: u64 = 1_795_224_656;
        let own = br#"{"sub":"ann","roles":["reader"],"iat":1795224656,"exp":1795224756}"#;
        let [found, none] = signed(br#"{"alg":"HS256"}"#, own, NOW_S);
        assert_eq!((found.map(|told| told.name), none), (Some("ann".to_owned()), None));
        let foreign = br#"{"iss":"i","aud":"a","sub":"ann","roles":"reader","exp":1795224756}"#;
        let [none, found] = signed(br#"{"alg":"EdDSA","kid":"k"}"#, foreign, NOW_S);
        let roles = found.map(|told| (told.name, told.roles));
        assert_eq!((none, roles), (None, Some(("jwt:ann".to_owned(), vec!["reader".to_owned()]))));
    }
}
