//! Arbitrary bytes as a body of access: read or refused, never a panic; what is read as one of the
//! JSON bodies is a JSON object.
use wellspring_server::parsers::access_body;

pub fn run(bytes: &[u8]) {
    let [login, _form, json @ ..] = access_body(bytes);
    if login || json.contains(&true) {
        assert!(serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(crate::without_mark(bytes)).is_ok());
    }
}
