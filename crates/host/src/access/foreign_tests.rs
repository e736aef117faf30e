//! Every reason to refuse an external token.

use super::super::test_issuer::{by_ed, by_rsa, ed_jwk, encode, jwks, rsa_jwk, rsa_numbers};
use super::super::token::{MAX_BYTES, Tokens, VerifiedToken};
use super::super::token_secret::Secrets;
use super::*;
use crate::identity::MAX_SUBJECT_BYTES;
use crate::identity::{MAX_GRANTS, Role};
use proptest::prelude::*;
use ring::hmac;

const NOW_S: u64 = 1_795_224_656;
const NOW_US: u64 = NOW_S * SECOND_US + 123_456;
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const EDDSA: &str = r#"{"alg":"EdDSA","typ":"JWT","kid":"e"}"#;
const RS256: &str = r#"{"alg":"RS256","typ":"at+jwt","kid":"r"}"#;

fn issuer() -> Issuer {
    Issuer {
        name: "https://issuer.example/".to_owned(),
        audience: "wellspring".to_owned(),
        roles_claim: "roles".to_owned(),
        account_claim: "sub".to_owned(),
    }
}

fn keys() -> KeySet {
    let keys = [ed_jwk(1, r#","kid":"e""#), rsa_jwk(r#","kid":"r""#)];
    KeySet::read(jwks(&keys).as_bytes()).unwrap()
}

fn tokens_of(issuer: Issuer) -> Tokens {
    let own = Tokens::new(Secrets::known(SECRET, None));
    own.trusting(ForeignIssuer::new(issuer, keys()))
}

fn verify(token: &str) -> Result<ForeignClaims, TokenFault> {
    match tokens_of(issuer()).verify(token.as_bytes(), NOW_US)? {
        VerifiedToken::Foreign(claims) => Ok(claims),
        VerifiedToken::Own(_) => panic!("no token of ours"),
    }
}

fn fault(token: &str) -> TokenFault {
    verify(token).expect_err(token)
}

/// Valid claims, except for these.
fn claims(change: &[(&str, &str)]) -> String {
    let exp = (NOW_S + 60).to_string();
    let iat = NOW_S.to_string();
    let mut members = vec![
        ("iss", r#""https://issuer.example/""#),
        ("aud", r#""wellspring""#),
        ("sub", r#""ann""#),
        ("roles", r#"["reader","writer:orders"]"#),
        ("iat", &iat),
        ("exp", &exp),
    ];
    for (name, value) in change {
        members.retain(|(known, _)| known != name);
        if !value.is_empty() {
            members.push((name, value));
        }
    }
    let members: Vec<String> = members.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect();
    format!("{{{}}}", members.join(","))
}

fn signed(change: &[(&str, &str)]) -> String {
    by_ed(1, EDDSA, claims(change))
}

fn grants(words: &[&str]) -> Arc<Grants> {
    Arc::new(Grants::new(words.iter().map(|w| Grant::parse(w).unwrap()).collect()).unwrap())
}

#[test]
fn what_the_issuer_has_signed_is_accepted() {
    let wanted = ForeignClaims {
        subject: Subject::parse("ann").unwrap(),
        grants: grants(&["reader", "writer:orders"]),
        expires_at_us: (NOW_S + 60) * SECOND_US,
    };
    assert_eq!(verify(&by_ed(1, EDDSA, claims(&[]))), Ok(wanted.clone()));
    assert_eq!(verify(&by_rsa(RS256, claims(&[]))), Ok(wanted.clone()));
    // Without a key id the only key of the algorithm is used.
    assert_eq!(verify(&by_rsa(r#"{"alg":"RS256"}"#, claims(&[]))), Ok(wanted.clone()));
    assert_eq!(verify(&signed(&[("azp", "[[1]]"), ("iat", "")])), Ok(wanted));
    assert_eq!(Subject::parse("ann").unwrap().as_str(), "jwt:ann");
}

#[test]
fn the_algorithm_is_the_keys() {
    // HS256 signed with the issuer's public keys is checked against our own secret, and fails.
    let (n, _) = rsa_numbers();
    let message = format!("{}.{}", encode(r#"{"alg":"HS256","kid":"r"}"#), encode(claims(&[])));
    for secret in [n, jwks(&[rsa_jwk("")]).into_bytes(), Vec::new()] {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message.as_bytes());
        assert_eq!(fault(&format!("{message}.{}", encode(tag))), TokenFault::Signature);
    }
    for alg in ["none", "None", "", "HS384", "RS384", "RS512", "PS256", "ES256", "eddsa", "Ed25519"]
    {
        let header = format!(r#"{{"alg":"{alg}","kid":"e"}}"#);
        assert_eq!(fault(&by_ed(1, header, claims(&[]))), TokenFault::Algorithm, "{alg}");
    }
    for (header, wanted) in [
        // The key of one algorithm used for the other.
        (r#"{"alg":"EdDSA","kid":"r"}"#, TokenFault::Key),
        (r#"{"alg":"RS256","kid":"e"}"#, TokenFault::Key),
        (r#"{"alg":"EdDSA","kid":"E"}"#, TokenFault::Key),
        (r#"{"alg":"EdDSA","kid":"../e"}"#, TokenFault::Key),
        (r#"{"alg":"RS256","kid":"r"}"#, TokenFault::Signature),
        (r#"{"alg":"EdDSA","kid":"e","crit":[]}"#, TokenFault::Algorithm),
        (r#"{"alg":"EdDSA","kid":"e","crit":["b64"],"b64":false}"#, TokenFault::Algorithm),
        (r#"{"alg":"EdDSA","kid":"e","typ":"dpop+jwt"}"#, TokenFault::Algorithm),
        (r#"{"alg":"EdDSA","kid":7}"#, TokenFault::Form),
        (r#"{"alg":"EdDSA","kid":"e","kid":"r"}"#, TokenFault::Form),
        (r#"["EdDSA"]"#, TokenFault::Form),
    ] {
        assert_eq!(fault(&by_ed(1, header, claims(&[]))), wanted, "{header}");
    }
    // A key embedded in the token is ignored.
    let own_key = format!(r#"{{"alg":"EdDSA","kid":"e","jwk":{{{}}}}}"#, ed_jwk(9, ""));
    assert_eq!(fault(&by_ed(9, own_key, claims(&[]))), TokenFault::Signature);
    assert_eq!(fault(&by_ed(2, EDDSA, claims(&[]))), TokenFault::Signature);
}

#[test]
fn without_another_issuer_none_is_accepted_and_ours_stay_ours() {
    let own = Tokens::new(Secrets::known(SECRET, None));
    let verified = own.verify(by_ed(1, EDDSA, claims(&[])).as_bytes(), NOW_US);
    assert_eq!(verified, Err(TokenFault::Algorithm));
    // The issuer's claims signed with our secret: a token of ours with foreign claims.
    let message = format!("{}.{}", encode(r#"{"alg":"HS256"}"#), encode(claims(&[])));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), message.as_bytes());
    assert_eq!(fault(&format!("{message}.{}", encode(tag))), TokenFault::Audience);
}

#[test]
fn it_is_of_the_issuer_and_for_us() {
    for iss in ["", r#""https://issuer.example""#, r#""HTTPS://issuer.example/""#, r#""""#] {
        assert_eq!(fault(&signed(&[("iss", iss)])), TokenFault::Issuer, "{iss}");
    }
    for aud in ["", "[]", r#""""#, r#""Wellspring""#, r#""wellspring other""#, r#"["a","b"]"#] {
        assert_eq!(fault(&signed(&[("aud", aud)])), TokenFault::Audience, "{aud}");
    }
    assert!(verify(&signed(&[("aud", r#"["other","wellspring"]"#)])).is_ok());
    for bad in [
        ("iss", "7"),
        ("iss", "null"),
        ("iss", r#"["https://issuer.example/"]"#),
        ("aud", "7"),
        ("aud", "[7]"),
    ] {
        assert_eq!(fault(&signed(&[bad])), TokenFault::Claims, "{bad:?}");
    }
}

#[test]
fn it_has_its_time() {
    let at = |s: u64| {
        let verified = tokens_of(issuer()).verify(signed(&[]).as_bytes(), s * SECOND_US + 500_000);
        verified.map(|_| ())
    };
    let end_s = NOW_S + 60;
    assert_eq!(at(end_s + SKEW_S - 1), Ok(()));
    assert_eq!(at(end_s + SKEW_S), Err(TokenFault::Expired));
    assert_eq!(at(NOW_S - SKEW_S), Ok(()));
    assert_eq!(at(NOW_S - SKEW_S - 1), Err(TokenFault::NotYet));
    assert_eq!(verify(&signed(&[])).unwrap().until_us(), (end_s + SKEW_S) * SECOND_US);
    let soon = (NOW_S + SKEW_S).to_string();
    assert!(verify(&signed(&[("nbf", &soon)])).is_ok());
    let later = (NOW_S + SKEW_S + 1).to_string();
    assert_eq!(fault(&signed(&[("nbf", &later)])), TokenFault::NotYet);
    assert_eq!(fault(&signed(&[("iat", &later)])), TokenFault::NotYet);
    let longest = (NOW_S + SKEW_S + MAX_LIFE_S).to_string();
    assert!(verify(&signed(&[("exp", &longest)])).is_ok());
    let longer = (NOW_S + SKEW_S + MAX_LIFE_S + 1).to_string();
    let (huge, now) = (u64::MAX.to_string(), NOW_S.to_string());
    for exp in ["", "null", r#""1""#, "1.5", "-1", &longer, &huge, &now, "1e12"] {
        assert_eq!(fault(&signed(&[("exp", exp)])), TokenFault::Claims, "{exp}");
    }
}

#[test]
fn claims_stand_once_and_have_types() {
    let twice = |name: &str, value: &str| {
        let claims = claims(&[]);
        by_ed(1, EDDSA, format!("{},\"{name}\":{value}}}", &claims[..claims.len() - 1]))
    };
    for (name, value) in [
        ("iss", r#""https://issuer.example/""#),
        ("aud", r#""wellspring""#),
        ("exp", "99999999999"),
        ("iat", "1"),
        ("sub", r#""eve""#),
        ("roles", r#"["admin"]"#),
    ] {
        assert_eq!(fault(&twice(name, value)), TokenFault::Claims, "{name}");
        assert_eq!(fault(&signed(&[(name, "{}")])), TokenFault::Claims, "{name}");
        assert_eq!(fault(&signed(&[(name, "true")])), TokenFault::Claims, "{name}");
    }
    let long = format!("\"{}\"", "x".repeat(MAX_SUBJECT_BYTES + 1));
    let (split, turned) = ("\"a\u{2028}b\"", "\"a\u{202e}b\"");
    for sub in ["", r#""""#, "7", "null", r#""a\nb""#, r#""a\u0000""#, split, turned, &long] {
        assert_eq!(fault(&signed(&[("sub", sub)])), TokenFault::Claims, "{sub}");
    }
    let sub = format!("\"{}\"", "x".repeat(MAX_SUBJECT_BYTES));
    assert!(verify(&signed(&[("sub", &sub)])).is_ok());
    assert_eq!(
        verify(&signed(&[("sub", r#""Zoë | 7""#)])).unwrap().subject.as_str(),
        "jwt:Zoë | 7"
    );
    for (claims, wanted) in [
        ("[]".to_owned(), TokenFault::Form),
        (format!(" {}", claims(&[])), TokenFault::Form),
        (format!("{}x", claims(&[])), TokenFault::Claims),
        (format!("{}{}", claims(&[]), claims(&[])), TokenFault::Claims),
        (format!(r#"{{"x":{}"#, "[".repeat(4_000)), TokenFault::Claims),
    ] {
        assert_eq!(fault(&by_ed(1, EDDSA, &claims)), wanted, "{claims}");
    }
    let mut not_text = claims(&[("other", r#""?""#)]).into_bytes();
    let at = not_text.iter().position(|&byte| byte == b'?').unwrap();
    not_text[at] = 0xd6;
    assert_eq!(fault(&by_ed(1, EDDSA, not_text)), TokenFault::Form, "not UTF-8");
    let huge = format!("\"{}\"", "x".repeat(MAX_BYTES));
    assert_eq!(fault(&signed(&[("x", &huge)])), TokenFault::TooLong);
}

#[test]
fn roles_are_what_can_be_read_of_them() {
    let roles = |roles: &str| verify(&signed(&[("roles", roles)])).unwrap().grants;
    assert_eq!(roles(r#"["writer","Admin","admin:","root",""," admin"]"#), grants(&["writer"]));
    assert_eq!(roles(r#""openid writer:orders  reader""#), grants(&["reader", "writer:orders"]));
    assert_eq!(roles(r#"["reader","admin","writer","reader"]"#), grants(&["admin"]));
    assert_eq!(roles(r#"["reader:a","writer:a","writer:b"]"#), grants(&["writer:a", "writer:b"]));
    for none in ["", "[]", r#""""#, r#""openid profile""#] {
        assert_eq!(roles(none), grants(&[]), "{none}");
    }
    assert_eq!(fault(&signed(&[("roles", r#"["reader",7]"#)])), TokenFault::Claims);
    let many = |count: usize| {
        let words: Vec<String> = (0..count).map(|n| format!("\"reader:l{n}\"")).collect();
        verify(&signed(&[("roles", &format!("[{}]", words.join(",")))])).map(|_| ())
    };
    assert_eq!(many(MAX_GRANTS), Ok(()));
    assert_eq!(many(MAX_GRANTS + 1), Err(TokenFault::Claims));
}

#[test]
fn the_claims_that_are_read_can_be_chosen() {
    let chosen = Issuer {
        roles_claim: "https://issuer.example/roles".to_owned(),
        account_claim: "email".to_owned(),
        ..issuer()
    };
    let token = signed(&[
        ("https://issuer.example/roles", r#""operator""#),
        ("email", r#""ann@example.com""#),
        ("roles", "7"),
        ("sub", "7"),
    ]);
    let verified = tokens_of(chosen).verify(token.as_bytes(), NOW_US).unwrap();
    let VerifiedToken::Foreign(claims) = verified else { panic!("not one of ours") };
    assert_eq!(claims.subject.as_str(), "jwt:ann@example.com");
    assert_eq!(claims.grants.role_on(None), Some(Role::Operator));
}

#[tokio::test]
async fn an_unknown_key_is_asked_for_and_new_ones_count_at_once() {
    let foreign = ForeignIssuer::new(issuer(), keys());
    let tokens = Tokens::new(Secrets::known(SECRET, None)).trusting(foreign);
    let token = by_ed(2, r#"{"alg":"EdDSA","kid":"new"}"#, claims(&[]));
    let before = tokens.generation();
    assert_eq!(tokens.verify(token.as_bytes(), NOW_US), Err(TokenFault::Key));
    let foreign = tokens.foreign().unwrap();
    // The keys have been requested, or this would wait for ever.
    foreign.keys_wanted().await;
    assert_eq!(foreign.replace(keys()), KeyReplacement::Same);
    assert_eq!(tokens.generation(), before);
    let new = KeySet::read(jwks(&[ed_jwk(2, r#","kid":"new""#)]).as_bytes()).unwrap();
    assert_eq!(foreign.replace(new), KeyReplacement::Changed);
    assert_ne!(tokens.generation(), before);
    assert!(tokens.verify(token.as_bytes(), NOW_US).is_ok());
    let old = tokens.verify(signed(&[]).as_bytes(), NOW_US);
    assert_eq!(old, Err(TokenFault::Key), "the old keys are gone");
}

proptest! {
    /// Only the exact signed text is accepted: not one bit may differ, nor another encoding.
    #[test]
    fn no_changed_token_is_accepted(at in any::<prop::sample::Index>(), byte: u8, is_rsa: bool) {
        let token = if is_rsa { by_rsa(RS256, claims(&[])) } else { signed(&[]) }.into_bytes();
        let mut changed = token.clone();
        changed[at.index(token.len())] = byte;
        let verified = tokens_of(issuer()).verify(&changed, NOW_US);
        prop_assert_eq!(verified.is_ok(), changed == token);
    }
}
