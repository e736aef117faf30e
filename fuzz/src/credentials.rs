//! Arbitrary headers as credentials: values of `Authorization` and of `X-API-Key`, one a line, the
//! keys behind a NUL. Never a panic; what is read stands in a header as it was read, and nothing is
//! read where two could be meant.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wellspring_server::parsers::{PresentedCredential, credentials};

fn values(lines: &[u8]) -> Vec<&[u8]> {
    if lines.is_empty() { Vec::new() } else { lines.split(|&byte| byte == b'\n').collect() }
}

pub fn run(bytes: &[u8]) {
    let at = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let authorization = values(&bytes[..at]);
    let keys = values(bytes.get(at + 1..).unwrap_or_default());
    let all = authorization.len() + keys.len();
    let ends_with = |value: &[u8], text: &[u8]| value.trim_ascii().ends_with(text);
    match credentials(&authorization, &keys) {
        PresentedCredential::Malformed => assert!(all > 0),
        PresentedCredential::Nothing => assert_eq!(all, 0),
        PresentedCredential::Token(token) => {
            assert_eq!((authorization.len(), keys.len()), (1, 0));
            assert!(!token.is_empty() && token.iter().all(u8::is_ascii_graphic));
            assert!(ends_with(authorization[0], &token) && !token.starts_with(b"wsk_"));
        }
        PresentedCredential::Key(key) => {
            assert_eq!(all, 1);
            assert!(!key.is_empty() && key.iter().all(u8::is_ascii_graphic));
            assert!(ends_with(authorization.first().or(keys.first()).unwrap(), &key));
        }
        PresentedCredential::Login(name, password) => {
            assert_eq!((authorization.len(), keys.len()), (1, 0));
            let text = format!("{name}:{password}");
            assert!(!name.contains(':') && !text.chars().any(char::is_control));
            assert!(ends_with(authorization[0], STANDARD.encode(text).as_bytes()));
        }
    }
}
