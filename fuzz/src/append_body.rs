//! Arbitrary bytes as the body of an append: read or refused, never a panic; what
//! is read is JSON to serde_json too.

pub fn run(bytes: &[u8]) {
    for accepted in wellspring_server::parsers::append_body(bytes).into_iter().flatten() {
        assert!(accepted <= 1000);
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        reader.disable_recursion_limit();
        let value: Result<&serde_json::value::RawValue, _> = serde::de::Deserialize::deserialize(&mut reader);
        assert!(value.is_ok() && reader.end().is_ok());
    }
}
