//! Entity tags: the position of the last event that changed what an answer shows, and the history
//! it belongs to (RFC 9110, 8.8.3 and 13.1): `"c17@4f1c09d2a87b4e6f"`. The same position of another
//! history, after a restore, say, is another tag.

use wellspring_host::http::history::ResumePoint;
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::Log;
use wellspring_types::Position;

/// The entity tag for a last change at this position of a log.
pub(crate) fn etag(log: &Log, changed_at: Position) -> String {
    format!("\"c{}\"", ResumePoint { position: changed_at, history: log.history() })
}

/// Appends the entity tag for a last change at this position of this history, whose text this is.
pub(crate) fn push_etag(out: &mut Vec<u8>, changed_at: Position, history: Option<&[u8]>) {
    out.extend_from_slice(b"\"c");
    push_u64(out, changed_at);
    if let Some(history) = history {
        out.push(b'@');
        out.extend_from_slice(history);
    }
    out.push(b'"');
}

/// The version in `If-Match`; none if any is acceptable.
///
/// # Errors
/// It is not an entity tag of this catalogue, or several.
pub(crate) fn if_match(value: &str) -> Result<Option<ResumePoint>, Box<Problem>> {
    let value = value.trim();
    if value == "*" {
        return Ok(None);
    }
    let text = value.strip_prefix("\"c").and_then(|value| value.strip_suffix('"'));
    text.and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| {
        let detail = format!(
            "If-Match must be one ETag of the item, such as \"c17@4f1c09d2a87b4e6f\", not {value}"
        );
        problem::BAD_REQUEST.because(detail).field("If-Match")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::http::content::names_etag as names;
    use wellspring_types::HistoryId;

    #[test]
    fn entity_tags_are_compared_as_http_does() {
        let mut etag = Vec::new();
        push_etag(&mut etag, 17, Some(b"4f1c09d2a87b4e6f"));
        let etag = String::from_utf8(etag).unwrap();
        let history = Some(HistoryId(0x4f1c_09d2_a87b_4e6f));
        let point = ResumePoint { position: 17, history };
        assert_eq!(etag, format!("\"c{point}\""), "both stacks write the same");
        for yes in [&etag, &format!("W/{etag}"), "*", &format!("\"a\", {etag}")] {
            assert!(names(yes.as_bytes(), etag.as_bytes()), "{yes}");
        }
        let other = etag.replace('f', "e");
        for no in ["", "\"c17\"", "c17@4f1c09d2a87b4e6f", &other, &etag[..etag.len() - 1]] {
            assert!(!names(no.as_bytes(), etag.as_bytes()), "{no}");
        }
        assert_eq!(if_match(&format!(" {etag}")).unwrap(), Some(point));
        let older = ResumePoint { history: None, ..point };
        assert_eq!(if_match("\"c17\"").unwrap(), Some(older), "of a version without histories");
        assert_eq!(if_match("*").unwrap(), None);
        for bad in
            ["", "\"c\"", "W/\"c17\"", "\"c17\", \"c18\"", "\"c+7\"", "\"c99999999999999999999\""]
        {
            assert_eq!(if_match(bad).unwrap_err().kind.status, 400, "{bad}");
        }
    }
}
