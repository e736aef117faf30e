//! Arbitrary bytes as what the client of a WebSocket sends, in one piece and in several: the same
//! content, no more than was sent, a few frames in answer, and never a panic.
use wellspring_server::parsers::websocket;

pub fn run(bytes: &[u8]) {
    let Some((lengths, input)) = bytes.split_first_chunk::<8>() else { return };
    let whole = websocket(input, &[]);
    assert_eq!(whole, websocket(input, lengths));
    // A header has six bytes at least.
    assert!(whole.content.is_none_or(|content| content.len() + 6 <= input.len().max(6)));
    assert!(whole.replies.len() <= 127 + 4);
}
