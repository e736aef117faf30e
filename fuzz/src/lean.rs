//! Arbitrary bytes as a connection of the lean loop, in one piece and in several: the same requests
//! are taken and the same links followed, in the same order, the same statuses answered, the same
//! bytes handed over, and never a panic.
use wellspring_server::parsers::ingest_connection;

pub fn run(bytes: &[u8]) {
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
    let asked = |begin: &[u8]| input.windows(begin.len()).filter(|window| *window == begin).count();
    let (events, clicks): (Vec<_>, Vec<_>) =
        whole.taken.iter().partition(|(target, _)| target.starts_with('/'));
    assert!(events.len() <= asked(b"POST "), "more was taken than was sent");
    assert!(clicks.len() <= asked(b"GET /"), "more links were followed than were asked for");
    let found = statuses.iter().filter(|&&status| status == 302).count();
    assert_eq!(clicks.len(), found, "a click for each redirect");
    for (code, data) in clicks {
        assert!((1..=10).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert!(data.starts_with(b"{\"visitor\":\"0123456789abcdef\",\"agent\":\""));
    }
}
