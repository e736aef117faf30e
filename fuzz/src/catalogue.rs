//! Arbitrary bytes as the body of an item, a change, a stock, an order and a topic, as the data of
//! each of the catalogue's events, and as its snapshot: read or refused, never a panic; what is
//! read of a snapshot says the same when it is written and read again.
use wellspring_server::parsers::{catalogue_body, catalogue_events, catalogue_snapshot};

pub fn run(bytes: &[u8]) {
    if catalogue_body(bytes).contains(&true) {
        assert!(serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(crate::without_mark(bytes)).is_ok());
    }
    catalogue_events(bytes);
    if let Some(written) = catalogue_snapshot(bytes) {
        assert_eq!(catalogue_snapshot(&written), Some(written.clone()), "one catalogue, one snapshot");
    }
}
