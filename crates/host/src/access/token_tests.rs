//! Every reason to refuse a token.

use super::*;
use crate::identity::Role;
use proptest::prelude::*;

const NOW_S: u64 = 1_795_224_656;
const NOW_US: u64 = NOW_S * SECOND_US + 123_456;
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

fn tokens() -> Tokens {
    Tokens::new(Secrets::known(SECRET, None))
}

fn ann() -> AccountName {
    AccountName::parse("ann").unwrap()
}

fn grants() -> Grants {
    Grants::new(vec![Grant::everywhere(Role::Reader), Grant::on(Role::Writer, "orders")]).unwrap()
}

fn issue(tokens: &Tokens) -> String {
    tokens.issue(&ann(), &grants(), 77, 3600, NOW_US).unwrap().token.to_string()
}

fn own(verified: VerifiedToken) -> Claims {
    match verified {
        VerifiedToken::Own(claims) => claims,
        VerifiedToken::Foreign(_) => panic!("there is no other issuer"),
    }
}

fn verify(token: &str) -> Result<Claims, TokenFault> {
    tokens().verify(token.as_bytes(), NOW_US).map(own)
}

fn part(json: &str) -> String {
    URL_SAFE_NO_PAD.encode(json)
}

/// A token with this header and these claims, signed with our secret.
fn signed(header: &str, claims: &str) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let tag = tokens().sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
}

fn claims(more: &str) -> String {
    format!(r#"{{"sub":"ann","roles":["reader"],"iat":{NOW_S},"exp":{}{more}}}"#, NOW_S + 60)
}

fn fault(token: &str) -> TokenFault {
    verify(token).expect_err(token)
}

#[test]
fn what_is_issued_is_accepted() {
    let issued = tokens().issue(&ann(), &grants(), 77, 3600, NOW_US).unwrap();
    let found = verify(&issued.token).unwrap();
    let expires_at_us = (NOW_S + 3600) * SECOND_US;
    let id = Some(issued.id.clone());
    let account = ann();
    let wanted =
        Claims { account, grants: grants(), id, since_us: 77, expires_at_us, generation: None };
    assert_eq!(found, wanted);
    assert_ne!(tokens().issue(&ann(), &grants(), 77, 3600, NOW_US).unwrap().id, issued.id);
    // The claims that clients read (WIRE §5).
    let middle = issued.token.split('.').nth(1).unwrap();
    let json: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(middle).unwrap()).unwrap();
    assert_eq!(json["username"], "ann");
    assert_eq!(json["roles"], serde_json::json!(["reader", "writer:orders"]));
    assert_eq!(json["exp"].as_u64().unwrap() - json["iat"].as_u64().unwrap(), 3600);
    assert!(!format!("{issued:?}").contains(middle));
    let longest = tokens().issue(&ann(), &grants(), 0, u64::MAX, NOW_US).unwrap();
    assert_eq!(longest.expires_in_s, MAX_LIFE_S);
    assert!(verify(&longest.token).is_ok());
}

#[test]
fn the_most_roles_with_the_longest_names_fit() {
    let roles = (0..MAX_GRANTS).map(|n| Grant::on(Role::Operator, &format!("{n:0>63}")));
    let roles = Grants::new(roles.collect()).unwrap();
    let name = AccountName::parse(&"a".repeat(64)).unwrap();
    let token = tokens().issue(&name, &roles, 0, 60, NOW_US).unwrap().token;
    assert_eq!(verify(&token).unwrap().grants, roles);
}

/// The example of RFC 7515, A.1: a signature made by others verifies, so that tokens refused here
/// are refused for their claims.
#[test]
fn the_signature_is_that_of_the_standard() {
    let key =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    let key = URL_SAFE_NO_PAD.decode(key).unwrap();
    let tokens = Tokens::new(Secrets::known(&key, None));
    let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
                 eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
                 dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    assert_eq!(tokens.verify(token.as_bytes(), NOW_US), Err(TokenFault::Claims));
    assert_eq!(verify(token), Err(TokenFault::Signature));
}

#[test]
fn the_algorithm_is_not_the_tokens_to_choose() {
    assert!(verify(&signed(HEADER, &claims(""))).is_ok());
    assert!(verify(&signed(r#"{"alg":"HS256"}"#, &claims(""))).is_ok());
    assert!(verify(&signed(r#"{"alg":"HS256","typ":"jwt","kid":"1"}"#, &claims(""))).is_ok());
    for alg in ["none", "None", "NONE", "", "hs256", "HS384", "HS512", "RS256", "ES256", "EdDSA"] {
        let header = format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#);
        assert_eq!(fault(&signed(&header, &claims(""))), TokenFault::Algorithm, "{alg}");
    }
    // The usual forgery: without a signature.
    let none = format!("{}.{}", part(r#"{"alg":"none","typ":"JWT"}"#), part(&claims("")));
    assert_eq!(fault(&format!("{none}.")), TokenFault::Form);
    assert_eq!(fault(&none), TokenFault::Form);
    assert_eq!(fault(&format!("{none}.AA")), TokenFault::Algorithm);
    for header in [
        r#"{"alg":"HS256","crit":["exp"]}"#,
        r#"{"alg":"HS256","crit":null}"#,
        r#"{"alg":"HS256","typ":"JWE"}"#,
    ] {
        assert_eq!(fault(&signed(header, &claims(""))), TokenFault::Algorithm, "{header}");
    }
    for header in [
        "{}",
        r#"["HS256"]"#,
        r#""HS256""#,
        r#"{"alg":["HS256"]}"#,
        r#"{"alg":null}"#,
        r#"{"alg":"none","alg":"HS256"}"#,
        r#"{"alg":"HS256"} {}"#,
        "rubbish",
    ] {
        assert_eq!(fault(&signed(header, &claims(""))), TokenFault::Form, "{header}");
    }
}

#[test]
fn other_secrets_sign_nothing_here() {
    for secret in [&b"another secret"[..], b"", &SECRET[..31]] {
        let forged = issue(&Tokens::new(Secrets::known(secret, None)));
        assert_eq!(fault(&forged), TokenFault::Signature);
    }
    let old = Tokens::new(Secrets::known(b"old", None));
    let rotated = Tokens::new(Secrets::known(SECRET, Some(b"old")));
    assert!(rotated.verify(issue(&old).as_bytes(), NOW_US).is_ok());
    assert!(rotated.verify(issue(&tokens()).as_bytes(), NOW_US).is_ok());
    let fresh = issue(&rotated);
    assert_eq!(old.verify(fresh.as_bytes(), NOW_US), Err(TokenFault::Signature));
    assert!(verify(&fresh).is_ok());
}

#[test]
fn a_token_has_its_time() {
    let token = issue(&tokens());
    let at = |s: u64| tokens().verify(token.as_bytes(), s * SECOND_US + SECOND_US / 2);
    let end_s = NOW_S + 3600;
    assert!(at(end_s + SKEW_S - 1).is_ok());
    assert_eq!(at(end_s + SKEW_S), Err(TokenFault::Expired));
    assert_eq!(at(end_s + 1_000_000_000), Err(TokenFault::Expired));
    assert!(at(NOW_S - SKEW_S).is_ok());
    assert_eq!(at(NOW_S - SKEW_S - 1), Err(TokenFault::NotYet));
    assert_eq!(at(0), Err(TokenFault::NotYet));
    let until_us = own(at(NOW_S).unwrap()).until_us();
    assert_eq!(until_us, (end_s + SKEW_S) * SECOND_US, "cached no longer than accepted");
    let later = format!(r#","nbf":{}"#, NOW_S + SKEW_S + 1);
    assert_eq!(fault(&signed(HEADER, &claims(&later))), TokenFault::NotYet);
    let soon = format!(r#","nbf":{}"#, NOW_S + SKEW_S);
    assert!(verify(&signed(HEADER, &claims(&soon))).is_ok());
}

#[test]
fn a_token_that_names_an_audience_is_not_ours() {
    for aud in [r#""here""#, r#"["here"]"#, "[]", "null", "7"] {
        let token = signed(HEADER, &claims(&format!(r#","aud":{aud}"#)));
        assert_eq!(fault(&token), TokenFault::Audience, "{aud}");
    }
}

#[test]
fn claims_have_types_and_ranges() {
    let end = NOW_S + 60;
    for bad in [
        "{}".to_owned(),
        format!(r#"{{"roles":[],"iat":{NOW_S},"exp":{end}}}"#),
        format!(r#"{{"sub":"ann","iat":{NOW_S},"exp":{end}}}"#),
        format!(r#"{{"sub":"ann","roles":[],"exp":{end}}}"#),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S}}}"#),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S},"exp":"{end}"}}"#),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S},"exp":{end}.5}}"#),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S},"exp":-1}}"#),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S},"exp":null}}"#),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S},"exp":{}}}"#, u64::MAX),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S},"exp":{NOW_S}}}"#),
        format!(r#"{{"sub":"ann","roles":[],"iat":{NOW_S},"exp":{}}}"#, NOW_S + MAX_LIFE_S + 1),
        format!(r#"{{"sub":"Ann","roles":[],"iat":{NOW_S},"exp":{end}}}"#),
        format!(r#"{{"sub":"","roles":[],"iat":{NOW_S},"exp":{end}}}"#),
        format!(r#"{{"sub":"ann","roles":["root"],"iat":{NOW_S},"exp":{end}}}"#),
        format!(r#"{{"sub":"ann","roles":"admin","iat":{NOW_S},"exp":{end}}}"#),
        format!(r#"{{"sub":"ann","roles":["admin","reader"],"iat":{NOW_S},"exp":{end}}}"#),
        claims(r#","nbf":"9""#),
        claims(r#","jti":"a b""#),
        claims(r#","jti":7"#),
        claims(r#","exp":99"#),
        claims(r#","sub":"eve""#),
        format!("{}x", claims("")),
    ] {
        assert_eq!(fault(&signed(HEADER, &bad)), TokenFault::Claims, "{bad}");
    }
    assert_eq!(fault(&signed(HEADER, r#"["ann",[],1,2]"#)), TokenFault::Form);
    let plain = verify(&signed(HEADER, &claims(r#","other":{"a":[1]}"#))).unwrap();
    assert_eq!((plain.id, plain.since_us), (None, NOW_S * SECOND_US));
}

#[test]
fn what_is_cut_swapped_or_huge_is_refused() {
    let (token, other) = (issue(&tokens()), signed(HEADER, &claims("")));
    for end in 0..token.len() {
        assert!(verify(&token[..end]).is_err(), "{end}");
    }
    let [a, b]: [Vec<&str>; 2] = [token.split('.').collect(), other.split('.').collect()];
    for (parts, wanted) in [
        ([a[0], b[1], a[2]], TokenFault::Signature),
        ([a[0], a[1], b[2]], TokenFault::Signature),
        ([a[1], a[0], a[2]], TokenFault::Form),
        ([a[0], a[2], a[1]], TokenFault::Signature),
        ([a[0], a[0], a[2]], TokenFault::Signature),
        ([a[2], a[1], a[0]], TokenFault::Form),
    ] {
        assert_eq!(fault(&parts.join(".")), wanted);
    }
    for odd in [
        format!("{token}."),
        format!(".{token}"),
        format!("{token}.{token}"),
        format!("{token}="),
        format!(" {token}"),
        token.replace('.', ".."),
        "..".to_owned(),
        String::new(),
    ] {
        assert_eq!(fault(&odd), TokenFault::Form, "{odd}");
    }
    let huge = claims(&format!(r#","x":"{}""#, "x".repeat(MAX_BYTES)));
    assert_eq!(fault(&signed(HEADER, &huge)), TokenFault::TooLong);
    let deep = format!(r#","x":{}"#, "[".repeat(5_000));
    assert_eq!(fault(&signed(HEADER, &claims(&deep))), TokenFault::Claims);
}

proptest! {
    /// Only the exact issued text is accepted: not one bit may differ, nor another encoding.
    #[test]
    fn no_changed_token_is_accepted(at in any::<prop::sample::Index>(), byte: u8) {
        let token = issue(&tokens()).into_bytes();
        let mut changed = token.clone();
        changed[at.index(token.len())] = byte;
        prop_assert_eq!(tokens().verify(&changed, NOW_US).is_ok(), changed == token);
    }

    #[test]
    fn rubbish_is_refused(rubbish: Vec<u8>) {
        prop_assert!(tokens().verify(&rubbish, NOW_US).is_err());
    }
}
