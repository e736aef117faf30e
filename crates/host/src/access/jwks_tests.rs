//! Which keys are accepted or ignored, and which documents are refused.

use super::super::test_issuer::{ed_jwk, encode, jwks, rsa_jwk, rsa_numbers};
use super::*;
use proptest::prelude::*;

fn read(keys: &[String]) -> Result<KeySet, KeysFault> {
    KeySet::read(jwks(keys).as_bytes())
}

fn rsa(n: &[u8], e: &[u8]) -> String {
    format!(r#""kty":"RSA","n":"{}","e":"{}""#, encode(n), encode(e))
}

#[test]
fn a_key_is_for_what_it_says_and_known_by_its_id() {
    let set = read(&[
        rsa_jwk(r#","kid":"r","use":"sig","alg":"RS256","key_ops":["verify"],"x5t":"abc""#),
        ed_jwk(1, r#","kid":"e","alg":"EdDSA""#),
    ])
    .unwrap();
    let find = |algorithm, id| set.find(algorithm, id).map(Key::algorithm);
    let (rs256, eddsa) = (Algorithm::Rs256, Algorithm::EdDsa);
    assert_eq!(find(rs256, Some("r")), Some(rs256));
    assert_eq!(find(eddsa, Some("e")), Some(eddsa));
    assert_eq!(find(rs256, None), Some(rs256), "the only one");
    for (algorithm, id) in [(eddsa, "r"), (rs256, "e"), (rs256, "R"), (rs256, ""), (rs256, "x")] {
        assert_eq!(find(algorithm, Some(id)), None, "{algorithm:?} {id}");
    }
    let two = read(&[ed_jwk(1, r#","kid":"1""#), ed_jwk(2, r#","kid":"2""#), rsa_jwk("")]).unwrap();
    assert!(two.find(eddsa, None).is_none(), "which of them?");
    assert!(two.find(rs256, None).is_some());
    assert!(two.find(rs256, Some("1")).is_none());
    assert_eq!((two.len(), two.passed_over()), (3, 0));
    assert!(two.find(eddsa, Some("1")) != two.find(eddsa, Some("2")));
}

/// The example of RFC 8037, appendix A: keys and signatures made by others.
#[test]
fn the_signature_is_that_of_the_standard() {
    let set =
        read(&[r#""kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#
            .to_owned()]);
    let set = set.unwrap();
    let key = set.find(Algorithm::EdDsa, None).unwrap();
    let message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let signature =
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    assert!(key.verifies(message.as_bytes(), &signature));
    assert!(!key.verifies(&message.as_bytes()[1..], &signature));
    for end in [0, 32, 63] {
        assert!(!key.verifies(message.as_bytes(), &signature[..end]));
    }
}

#[test]
fn keys_for_anything_else_are_passed_over() {
    let good = ed_jwk(1, r#","kid":"good""#);
    let (n, e) = rsa_numbers();
    let (mut padded, mut even) = (n.clone(), n.clone());
    padded.insert(0, 0);
    *even.last_mut().unwrap() ^= 1;
    for other in [
        String::new(),
        r#""kty":"EC","crv":"P-256","x":"AA","y":"AA""#.to_owned(),
        r#""kty":"oct","k":"c2VjcmV0""#.to_owned(),
        r#""kty":"RSA""#.to_owned(),
        r#""kty":"rsa""#.to_owned(),
        r#""kty":7"#.to_owned(),
        rsa_jwk(r#","use":"enc""#),
        rsa_jwk(r#","alg":"RS512""#),
        rsa_jwk(r#","alg":"PS256""#),
        rsa_jwk(r#","alg":"HS256""#),
        rsa_jwk(r#","alg":"EdDSA""#),
        rsa_jwk(r#","key_ops":["sign"]"#),
        rsa_jwk(r#","key_ops":[]"#),
        rsa_jwk(r#","kid":"""#),
        rsa_jwk(&format!(r#","kid":"{}""#, "k".repeat(MAX_ID_BYTES + 1))),
        rsa_jwk(r#","kid":7"#),
        rsa_jwk(r#","kid":"a","kid":"b""#),
        rsa_jwk(r#","n":"AQ""#),
        // One bit too short, and one too long.
        rsa(&[&[0x7f], &vec![0xff; 255][..]].concat(), &e),
        rsa(&[&[0x01], &vec![0xff; 1024][..]].concat(), &e),
        rsa(&[0xff; 128], &e),
        rsa(&padded, &e),
        rsa(&even, &e),
        rsa(&[], &e),
        rsa(&n, &[]),
        rsa(&n, &[1]),
        rsa(&n, &[2]),
        rsa(&n, &[0, 3]),
        rsa(&n, &[1, 0, 0, 0, 1]),
        ed_jwk(2, r#","alg":"RS256""#),
        ed_jwk(2, r#","use":"enc""#),
        r#""kty":"OKP","crv":"Ed448","x":"AA""#.to_owned(),
        r#""kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#
            .to_owned(),
        r#""kty":"OKP","crv":"Ed25519","x":"AAAA""#.to_owned(),
        r#""kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#.to_owned(),
    ] {
        let set = read(&[other.clone(), good.clone()]).unwrap();
        assert_eq!((set.len(), set.passed_over()), (1, 1), "{other}");
        assert_eq!(read(std::slice::from_ref(&other)), Err(KeysFault::NoneUsable), "{other}");
    }
    // The bounds themselves.
    for bytes in [256, 1024] {
        assert!(read(&[rsa(&vec![0xff; bytes], &[3])]).is_ok(), "{bytes}");
    }
}

#[test]
fn documents_that_are_none_are_refused() {
    let ed = ed_jwk(1, "");
    let good = jwks(std::slice::from_ref(&ed));
    for bad in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"keys":null}"#,
        r#"{"keys":{}}"#,
        r#"[[]]"#,
        "rubbish",
        &format!(r#"{{"keys":[],"keys":[{{{ed}}}]}}"#),
        &format!("{} x", good),
        &good[1..],
        // A single key is not a set.
        &format!("{{{ed}}}"),
    ] {
        assert_eq!(KeySet::read(bad.as_bytes()), Err(KeysFault::Form), "{bad}");
    }
    let not_text = [br#"{"x":""#, &[0xd6][..], br#"","#, &good.as_bytes()[1..]].concat();
    assert_eq!(KeySet::read(&not_text), Err(KeysFault::Form), "not UTF-8");
    assert_eq!(read(&[]), Err(KeysFault::NoneUsable));
    assert!(KeySet::read(format!("\n {}\n", good).as_bytes()).is_ok());
    let twice = [ed_jwk(1, r#","kid":"a""#), rsa_jwk(r#","kid":"a""#)];
    assert_eq!(read(&twice), Err(KeysFault::Twice("a".to_owned())));
    assert!(read(&[ed_jwk(1, ""), ed_jwk(1, "")]).is_ok(), "no ids to mix up");
    for private in [ed_jwk(1, r#","d":"AA""#), r#""kty":"EC","d":"AA""#.to_owned()] {
        assert_eq!(read(&[ed.clone(), private]), Err(KeysFault::Private));
    }
    let huge = format!(r#"{{"keys":[{{{ed}}}],"x":"{}"}}"#, "x".repeat(MAX_BYTES));
    assert_eq!(KeySet::read(huge.as_bytes()), Err(KeysFault::TooLarge));
    let many: Vec<String> =
        (0..=MAX_KEYS).map(|n| ed_jwk(1, &format!(r#","kid":"{n}""#))).collect();
    assert_eq!(read(&many), Err(KeysFault::TooLarge));
    assert_eq!(read(&many[1..]).unwrap().len(), MAX_KEYS);
    let deep = "[".repeat(100_000);
    assert_eq!(KeySet::read(format!(r#"{{"x":{deep}"#).as_bytes()), Err(KeysFault::Form));
    assert_eq!(format!("{:?}", read(&[ed]).unwrap()), "KeySet(1 + 0)");
}

proptest! {
    #[test]
    fn rubbish_is_refused(rubbish: Vec<u8>) {
        prop_assert!(KeySet::read(&rubbish).is_err());
    }
}
