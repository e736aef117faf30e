//! Arbitrary bytes as an ingest connection, in one piece and in several: the same
//! requests are taken, in the same order, the same statuses answered, the same bytes
//! handed over, and never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wellspring_server::parsers::ingest_connection;

fuzz_target!(|bytes: &[u8]| {
    let Some((lengths, input)) = bytes.split_at_checked(4) else { return };
    // Beyond the limits of a head, what is refused for one of two reasons may differ.
    if input.len() > 4_000 {
        return;
    }
    let whole = ingest_connection(input, &[]);
    let cut = ingest_connection(input, lengths);
    assert_eq!(whole, cut);
    let statuses = whole.statuses.expect("answers and nothing else");
    assert!(whole.taken.len() <= statuses.len());
    let posts = input.windows(5).filter(|window| window == b"POST ").count();
    assert!(whole.taken.len() <= posts, "more was taken than was sent");
});
