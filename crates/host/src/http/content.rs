//! Content negotiation: `Accept`, `Content-Type` and content encoding.

use super::{JSON, NDJSON, Request};
use crate::wire::ndjson::is_ndjson;
use crate::wire::problem::{self, Problem};
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH, ORIGIN};

/// The client's preferred representation of those the route offers; the first if it has no
/// preference.
pub(super) fn negotiate(request: &Request) -> Result<&'static str, Box<Problem>> {
    let offered = request.contract.offered();
    // An answer without content is always acceptable.
    let Some(&first) = offered.first() else { return Ok("") };
    let Some(accept) = request.header(ACCEPT) else { return Ok(first) };
    match best(accept, &offered) {
        Some(chosen) => Ok(chosen),
        None => Err(problem::NOT_ACCEPTABLE.because(format!(
            "none of the available formats matches Accept: {accept}; available: {}",
            offered.join(", ")
        ))),
    }
}

fn best(accept: &str, offered: &[&'static str]) -> Option<&'static str> {
    if accept == "*/*" {
        return Some(offered[0]);
    }
    // The most specific range that covers an offer decides its quality.
    let quality_of = |offer: &str| {
        let ranges = accept.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts.next()?.to_ascii_lowercase();
            // A route may offer lines under the very name that its clients know.
            let media = if offered.contains(&&*named) { named } else { named_alike(&named) };
            let quality =
                parts.find_map(|p| p.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok())?;
            let specific = match media.strip_suffix("/*") {
                Some("*") => 1,
                Some(major) if offer.split('/').next() == Some(major) => 2,
                None if media == offer => 3,
                _ => return None,
            };
            Some((specific, quality))
        });
        ranges.max_by_key(|&(specific, _)| specific).map_or(0.0, |(_, quality): (_, f32)| quality)
    };
    let mut chosen = None;
    let mut highest = 0.0;
    for &offer in offered {
        let quality = quality_of(offer);
        if quality > highest {
            (chosen, highest) = (Some(offer), quality);
        }
    }
    chosen
}

/// The media type of the body, lower case, without parameters; JSON if none is given.
pub fn content_type(request: &Request) -> String {
    let Some(value) = request.headers.get(CONTENT_TYPE) else { return JSON.to_owned() };
    // A value that is not text matches none of the known types.
    named_alike(value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim())
}

/// A media type in lower case, [`NDJSON`] under any of its names.
fn named_alike(media: &str) -> String {
    if is_ndjson(media.as_bytes()) { NDJSON.to_owned() } else { media.to_ascii_lowercase() }
}

/// Whether the client of a request has the version with this entity tag.
pub fn has_version(request: &Request, etag: &str) -> bool {
    request.header(IF_NONE_MATCH).is_some_and(|known| names_etag(known.as_bytes(), etag.as_bytes()))
}

/// Whether `If-None-Match` names an entity tag, strong or weak (RFC 9110, 13.1.2).
pub fn names_etag(if_none_match: &[u8], etag: &[u8]) -> bool {
    if_none_match
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .any(|known| known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == etag)
}

/// The body must be JSON without further encoding. A page in a browser (`Origin`) must declare it,
/// which makes the browser ask first (CORS). Undeclared content would be sent for any page, to a
/// server without accounts, or with a password that the user once typed.
pub fn expect_json(request: &Request) -> Result<(), Box<Problem>> {
    let is_json = |media: &str| {
        media == JSON || (media.starts_with("application/") && media.ends_with("+json"))
    };
    expect_media(request, is_json).map(drop)
}

/// The same for a route that accepts other media types beside JSON; returns the one of the body.
pub fn expect_media(
    request: &Request,
    is_accepted: impl Fn(&str) -> bool,
) -> Result<String, Box<Problem>> {
    if request.headers.contains_key(ORIGIN) && !request.headers.contains_key(CONTENT_TYPE) {
        return Err(problem::UNSUPPORTED_MEDIA.because(format!(
            "a browser page must declare the content type: send the header Content-Type: {JSON}"
        )));
    }
    let media = content_type(request);
    if !is_accepted(&media) {
        return Err(problem::UNSUPPORTED_MEDIA.because(format!(
            "the body is {media:?}; this route accepts JSON: send the header Content-Type: {JSON}"
        )));
    }
    if let Some(charset) = other_charset(request.header(CONTENT_TYPE).unwrap_or_default()) {
        let detail = format!("the body is in {charset:?}; JSON must be UTF-8");
        return Err(problem::UNSUPPORTED_MEDIA.because(detail).field("Content-Type"));
    }
    expect_identity(request)?;
    Ok(media)
}

/// The character set of a `Content-Type`, if UTF-8 would be misread in it.
fn other_charset(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|one| one.split_once('='));
    let is_charset = |name: &str| name.trim().eq_ignore_ascii_case("charset");
    let (_, charset) = parameters.find(|(name, _)| is_charset(name))?;
    let charset = charset.trim().trim_matches('"');
    let is_read = ["utf-8", "utf8", "us-ascii"].iter().any(|it| charset.eq_ignore_ascii_case(it));
    (!is_read).then_some(charset)
}

/// As [`expect_json`] for a page in a browser; other clients may send anything, or nothing.
pub fn expect_json_of_pages(request: &Request) -> Result<(), Box<Problem>> {
    if request.headers.contains_key(ORIGIN) { expect_json(request) } else { Ok(()) }
}

/// The body must not be compressed.
pub fn expect_identity(request: &Request) -> Result<(), Box<Problem>> {
    let Some(coding) = request.headers.get(CONTENT_ENCODING) else { return Ok(()) };
    if coding.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let detail = format!("the body is encoded as {coding:?}; send it without Content-Encoding");
    Err(problem::UNSUPPORTED_MEDIA.because(detail).field("Content-Encoding"))
}

#[cfg(test)]
mod tests {
    use super::super::{NDJSON, SSE};
    use super::*;

    #[test]
    fn other_character_sets_than_utf_8_are_seen() {
        for read in ["", "application/json", "a/b; charset=UTF-8", "a/b;x=1; Charset=\"utf8\""] {
            assert_eq!(other_charset(read), None, "{read}");
        }
        assert_eq!(other_charset("application/json; charset=utf-16"), Some("utf-16"));
        assert_eq!(other_charset("a/b; q=1; CHARSET = \"ISO-8859-1\""), Some("ISO-8859-1"));
    }

    #[test]
    fn the_best_representation_is_chosen() {
        let offered = [JSON, NDJSON, SSE];
        assert_eq!(best("*/*", &offered), Some(JSON));
        assert_eq!(best("text/event-stream", &offered), Some(SSE));
        assert_eq!(best("text/html, application/*;q=0.5", &offered), Some(JSON));
        assert_eq!(best("application/json;q=0.2, application/x-ndjson", &offered), Some(NDJSON));
        assert_eq!(best("application/json;q=0, */*;q=0.1", &offered), Some(NDJSON));
        assert_eq!(best("application/JSONL", &offered), Some(NDJSON));
        assert_eq!(
            best("application/JSONL", &[JSON, "application/jsonl"]),
            Some("application/jsonl")
        );
        assert_eq!(best("image/png", &offered), None);
        assert_eq!(best("", &offered), None);
    }
}
