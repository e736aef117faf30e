//! Arbitrary bytes as a body of access: read or refused, never a panic; what is read as one of the
//! JSON bodies is a JSON object.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wellspring_server::parsers::access_body;

fuzz_target!(|bytes: &[u8]| {
    let [login, _form, json @ ..] = access_body(bytes);
    if login || json.contains(&true) {
        assert!(serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes).is_ok());
    }
});
