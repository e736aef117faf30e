//! Arbitrary bytes as the body of a link or of a change, as a code, a URL, a host, a user agent
//! and a referrer: read or refused, never a panic; what is read says the same when it is
//! written and read again.
use wellspring_server::parsers::{is_authority, link_body};
use wellspring_face_links::view::{Code, MAX_CODE_CHARS, agent, referrer, url};
use wellspring_host::hostname;

pub fn run(bytes: &[u8]) {
    if link_body(bytes).contains(&true) {
        assert!(serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(crate::without_mark(bytes)).is_ok());
    }
    let code = Code::parse(bytes);
    assert_eq!(code.is_some(), Code::check(bytes).is_ok());
    let plain = (1..=MAX_CODE_CHARS).contains(&bytes.len())
        && bytes.iter().all(u8::is_ascii_alphanumeric);
    assert_eq!(code.is_some(), plain);
    if let Some(code) = code {
        assert_eq!(code.to_string().as_bytes(), bytes, "codes and texts are one to one");
        assert_eq!(Code::from_number(code.number()), Some(code));
    }
    let _ = (agent::family(bytes), referrer::host(bytes));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(target) = url::check(text) {
        let location = target.location();
        assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{location:?}");
        assert!(hostname::check(target.host()).is_ok());
    }
    if is_authority(text) {
        let short = format!("http://{text}/a");
        let target = url::check(&short).expect("a short URL is a URL");
        assert!(text.starts_with(target.host()), "{short}");
    }
}
