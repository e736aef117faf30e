//! Arbitrary bytes as the header by which a node says that it is one. Never a panic; what is read
//! is one header, in one way, and says the same when it is written again.
use wellspring_server::parsers::node_header;

pub fn run(bytes: &[u8]) {
    let Some((node, at_ms, client)) = node_header(bytes) else { return };
    assert!(bytes.strip_prefix(b"v1 ").expect("a version").iter().all(u8::is_ascii_graphic));
    let client_text = client.map_or_else(|| "-".to_owned(), |client| client.to_string());
    let mac = bytes.rsplit(|byte| *byte == b'=').next().expect("a signature");
    let mac = std::str::from_utf8(mac).expect("digits");
    let again = format!("v1 node={node};at={at_ms};client={client_text};mac={mac}");
    assert_eq!(node_header(again.as_bytes()), Some((node, at_ms, client)));
}
