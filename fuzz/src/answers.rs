//! Arbitrary bytes as what a server says: no panic, and the same answers however the bytes are cut.
use wellspring_load::engine::answers_of;
use wellspring_load::plan::Protocol;

pub fn run(input: (u8, Vec<u8>)) {
    let (piece, bytes) = input;
    let piece = usize::from(piece).max(1);
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let whole = answers_of(&bytes, bytes.len().max(1), protocol);
        let cut = answers_of(&bytes, piece, protocol);
        // Bytes beyond the answer make it doubtful, but only when they come together with it.
        if whole.error.is_none() && cut.error.is_none() {
            assert_eq!(whole.statuses, cut.statuses);
        }
        assert!(cut.statuses.iter().all(|status| (100..1000).contains(status)));
    }
}
