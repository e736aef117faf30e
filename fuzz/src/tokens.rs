//! Arbitrary bytes as a token, and as header and claims (a NUL between them) of tokens with a
//! genuine signature of ours and of another issuer. Never a panic; no bytes are a token that nobody
//! signed; what is accepted says what another reader of JSON finds in it too.
use serde::Deserialize;
use serde_json::{Map, Value};
use wellspring_server::parsers::{TokenContent, signed_tokens, token};

const NOW_S: u64 = 1_795_224_656;
const SKEW_S: u64 = 30;

/// As another reader reads it, however deep it is.
fn object(json: &[u8]) -> Map<String, Value> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    Map::deserialize(&mut reader).expect("a JSON object")
}

/// Whether `aud` is this, or names it.
fn is_for(claims: &Map<String, Value>, audience: Option<&str>) -> bool {
    match (claims.get("aud"), audience) {
        (None | Some(Value::Null), None) => true,
        (Some(Value::String(name)), Some(audience)) => name == audience,
        (Some(Value::Array(names)), Some(audience)) => names.iter().any(|name| name == audience),
        _ => false,
    }
}

fn check(told: &TokenContent, header: &[u8], claims: &[u8]) {
    let (header, claims) = (object(header), object(claims));
    assert!(!header.contains_key("crit"));
    let alg = if told.is_own { "HS256" } else { "EdDSA" };
    assert_eq!(header["alg"], alg);
    assert_eq!(claims["exp"], told.expires_at_s);
    assert!(told.expires_at_s + SKEW_S > NOW_S);
    for time in ["iat", "nbf"] {
        let time = claims.get(time).filter(|time| !time.is_null());
        assert!(time.is_none_or(|time| time.as_u64().expect("a time") <= NOW_S + SKEW_S));
    }
    let roles: Vec<&str> = match claims.get("roles") {
        Some(Value::Array(roles)) => roles.iter().map(|role| role.as_str().unwrap()).collect(),
        Some(Value::String(roles)) if !told.is_own => roles.split(' ').collect(),
        None if !told.is_own => Vec::new(),
        other => panic!("{other:?}"),
    };
    assert!(told.roles.iter().all(|role| roles.contains(&role.as_str())), "{told:?}");
    if told.is_own {
        assert_eq!(claims["sub"], told.name);
        assert!(is_for(&claims, None));
    } else {
        assert_eq!(claims["sub"], told.name.strip_prefix("jwt:").expect("a subject"));
        assert!(!told.name.chars().any(char::is_control));
        assert!(claims["iss"] == "i" && is_for(&claims, Some("a")));
        assert!(header.get("kid").is_none_or(|kid| kid.is_null() || kid == "k"));
    }
}

pub fn run(bytes: &[u8]) {
    assert_eq!(token(bytes, NOW_S), None);
    let at = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (header, claims) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    let told = signed_tokens(header, claims, NOW_S);
    assert!(told.iter().flatten().count() < 2, "one of the two at most");
    for (told, is_own) in told.iter().zip([true, false]) {
        if let Some(told) = told {
            assert_eq!(told.is_own, is_own);
            check(told, header, claims);
        }
    }
}
