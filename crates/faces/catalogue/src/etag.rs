//! Entity tags: the position of the last event that changed what an answer shows (RFC 9110, 8.8.3
//! and 13.1).

use wellspring_host::http::Request;
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_types::Position;

/// The entity tag for a last change at this position.
pub(crate) fn etag(changed_at: Position) -> String {
    let mut out = Vec::new();
    push_etag(&mut out, changed_at);
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether the client of a request has the version last changed at this position.
pub(crate) fn is_known(request: &Request, changed_at: Position) -> bool {
    request
        .header("if-none-match")
        .is_some_and(|known| names(known.as_bytes(), etag(changed_at).as_bytes()))
}

/// Appends the entity tag for a last change at this position.
pub(crate) fn push_etag(out: &mut Vec<u8>, changed_at: Position) {
    out.extend_from_slice(b"\"c");
    push_u64(out, changed_at);
    out.push(b'"');
}

/// Whether `If-None-Match` names an entity tag, strong or weak.
pub(crate) fn names(if_none_match: &[u8], etag: &[u8]) -> bool {
    if_none_match
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .any(|known| known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == etag)
}

/// The position in `If-Match`; none if any is acceptable.
///
/// # Errors
/// It is not an entity tag of this catalogue, or several.
pub(crate) fn if_match(value: &str) -> Result<Option<Position>, Box<Problem>> {
    let value = value.trim();
    if value == "*" {
        return Ok(None);
    }
    let digits = value.strip_prefix("\"c").and_then(|value| value.strip_suffix('"'));
    let position = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    position.and_then(|digits| digits.parse().ok()).map(Some).ok_or_else(|| {
        problem::BAD_REQUEST
            .because(format!("If-Match must be one ETag of the item, such as \"c17\", not {value}"))
            .field("If-Match")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entity_tags_are_compared_as_http_does() {
        let mut etag = Vec::new();
        push_etag(&mut etag, 17);
        assert_eq!(etag, super::etag(17).as_bytes());
        for yes in ["\"c17\"", "W/\"c17\"", "*", "\"a\", \"c17\"", "\"a\",W/\"c17\" "] {
            assert!(names(yes.as_bytes(), &etag), "{yes}");
        }
        for no in ["", "\"c1\"", "c17", "\"c170\"", "\"c17", "w/\"c17\""] {
            assert!(!names(no.as_bytes(), &etag), "{no}");
        }
        assert_eq!(if_match(" \"c17\"").unwrap(), Some(17));
        assert_eq!(if_match("*").unwrap(), None);
        for bad in
            ["", "\"c\"", "W/\"c17\"", "\"c17\", \"c18\"", "\"c+7\"", "\"c99999999999999999999\""]
        {
            assert_eq!(if_match(bad).unwrap_err().kind.status, 400, "{bad}");
        }
    }
}
