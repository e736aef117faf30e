//! Arbitrary bytes as the keys of another issuer: keys or a refusal, never a panic, and no more
//! keys than stand there.
use serde::Deserialize;
use serde_json::{Map, Value};
use wellspring_server::parsers::key_set;

/// As another reader reads it, however deep it is.
fn object(json: &[u8]) -> Map<String, Value> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    Map::deserialize(&mut reader).expect("a JSON object")
}

pub fn run(bytes: &[u8]) {
    if let Some(count) = key_set(bytes) {
        let document = object(bytes);
        let keys = document["keys"].as_array().expect("a list");
        assert!((1..=keys.len()).contains(&count));
    }
}
