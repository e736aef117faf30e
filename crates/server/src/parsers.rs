//! The parsers of clients' input, for the fuzz targets in `fuzz/`.

pub use wellspring_host::access::fuzzed::{PresentedCredential, TokenContent};
#[cfg(target_os = "linux")]
pub use wellspring_host::lean::ReplayedConnection;
pub use wellspring_host::socket::ReadWebSocket;

use wellspring_face_events::event_json::{Style, read_append};
use wellspring_face_events::sealing::EventSealer;
use wellspring_host::kept_types::KeptInLog;

/// Parses the body of an append, in the native style and in the dialects'; returns how many events
/// each accepted.
#[must_use]
pub fn append_body(body: &[u8]) -> [Option<usize>; 2] {
    [Style::Native, Style::Dialect].map(|style| {
        read_append(body, style, KeptInLog::default(), &mut EventSealer::refusing())
            .ok()
            .map(|body| body.append.events.len())
    })
}

/// Parses a body as a new link and as a change of one; tells which succeed.
#[must_use]
pub fn link_body(body: &[u8]) -> [bool; 2] {
    wellspring_face_links::fuzzed::body(body)
}

/// Parses a body as an item, a change of one or of a stock, an order, and a topic's name; tells
/// which succeed.
#[must_use]
pub fn catalogue_body(body: &[u8]) -> [bool; 5] {
    wellspring_face_catalogue::fuzzed::body(body)
}

/// Folds events of every type of the catalogue, each line the data of one.
pub fn catalogue_events(lines: &[u8]) {
    wellspring_face_catalogue::fuzzed::events(lines);
}

/// Reads a snapshot of a catalogue and writes it again; `None` if it is invalid.
#[must_use]
pub fn catalogue_snapshot(bytes: &[u8]) -> Option<Vec<u8>> {
    wellspring_face_catalogue::fuzzed::snapshot(bytes)
}

/// Parses text of the catalogue's search box; returns the number of words and of those in phrases,
/// `None` if it is refused.
#[must_use]
pub fn catalogue_search(text: &str) -> Option<(Vec<String>, usize)> {
    wellspring_face_catalogue::fuzzed::search(text)
}

/// Parses a body as every request of access: a login as JSON and as a form, a logout, a new secret,
/// an account, a change of one, a password, a key, a rotation; tells which succeed.
#[must_use]
pub fn access_body(body: &[u8]) -> [bool; 9] {
    wellspring_face_accounts::fuzzed::body(body)
}

/// Reads a WebSocket whose client sends `input` in pieces of these lengths.
#[must_use]
pub fn websocket(input: &[u8], lengths: &[u8]) -> ReadWebSocket {
    wellspring_host::socket::websocket(pieces(input, lengths))
}

/// Whether a text is accepted as the `Host` of short URLs.
#[must_use]
pub fn is_authority(text: &str) -> bool {
    wellspring_host::wire::authority::is_authority(text)
}

/// Parses all values of `Authorization` and of `X-API-Key`.
#[must_use]
pub fn credentials(authorization: &[&[u8]], api_key: &[&[u8]]) -> PresentedCredential {
    wellspring_host::access::fuzzed::credentials(authorization, api_key)
}

/// Parses a value of `Wellspring-Node`, without verifying it: the node, the time in ms since 1970
/// UTC, and the client.
#[must_use]
pub fn node_header(value: &[u8]) -> Option<(String, u64, Option<std::net::IpAddr>)> {
    let (node, at_ms, client) = wellspring_host::cluster::node_auth::unverified(value)?;
    Some((node.to_string(), at_ms, client))
}

/// Verifies two tokens with this header and these claims: one signed by us and one signed by an
/// issuer `i` for the audience `a` with its key `k`. `now_s` in seconds since 1970 UTC.
#[must_use]
pub fn signed_tokens(header: &[u8], claims: &[u8], now_s: u64) -> [Option<TokenContent>; 2] {
    wellspring_host::access::fuzzed::signed(header, claims, now_s)
}

/// Verifies a token as it is.
#[must_use]
pub fn token(token: &[u8], now_s: u64) -> Option<TokenContent> {
    wellspring_host::access::fuzzed::presented(token, now_s)
}

/// Parses a JWK Set; returns the number of usable keys.
#[must_use]
pub fn key_set(document: &[u8]) -> Option<usize> {
    wellspring_host::access::fuzzed::keys(document)
}

/// Whether `wellspring top` accepts a text as a server's `/metrics`.
#[cfg(target_os = "linux")]
#[must_use]
pub fn metrics_page(text: &str) -> bool {
    wellspring_cli::top::is_metrics_page(text)
}

/// `input` in pieces whose lengths cycle through `lengths` (0 counts as 1; empty: in one piece).
fn pieces<'a>(input: &'a [u8], lengths: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = input;
    let mut lengths = lengths.iter().cycle();
    std::iter::from_fn(move || {
        let length = lengths.next().map_or(rest.len(), |&length| usize::from(length.max(1)));
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Serves `input` as a connection of the lean loop that sends it in pieces of these lengths.
#[cfg(target_os = "linux")]
#[must_use]
pub fn ingest_connection(input: &[u8], lengths: &[u8]) -> ReplayedConnection {
    wellspring_host::lean::ingest_connection(pieces(input, lengths))
}
