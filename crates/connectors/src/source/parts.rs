//! The parts of a record. Its value is parsed as JSON on first use.

use super::reject_reason::RejectReason;
use std::cell::OnceCell;
use wellspring_kafka::Record;
use wellspring_types::moment::push_rfc3339;

/// Maximum nesting of arrays and objects in an event's data, as in the server's API.
const MAX_DEPTH: usize = 512;
/// The last millisecond that RFC 3339 can represent, in the year 9999.
const LAST_MOMENT_MS: u64 = 253_402_300_799_999;

/// A record of a topic. Its value is parsed as JSON on first use.
#[derive(Debug)]
pub struct RecordParts<'a> {
    topic: &'a str,
    record: &'a Record,
    json: OnceCell<Result<Option<&'a str>, RejectReason>>,
}

impl<'a> RecordParts<'a> {
    /// A record of this topic.
    #[must_use]
    pub fn new(topic: &'a str, record: &'a Record) -> RecordParts<'a> {
        RecordParts { topic, record, json: OnceCell::new() }
    }

    pub(super) fn topic(&self) -> &'a str {
        self.topic
    }

    pub(super) fn record(&self) -> &'a Record {
        self.record
    }

    /// The value as JSON text without surrounding white space; `None` for a tombstone.
    ///
    /// # Errors
    /// Why it is not JSON, as a sentence without its full stop.
    pub(super) fn json(&self) -> Result<Option<&'a str>, RejectReason> {
        self.json.get_or_init(|| self.record.value.as_deref().map(read_json).transpose()).clone()
    }

    /// The record's creation time in RFC 3339; `None` if it has no representable time.
    pub(super) fn timestamp(&self) -> Option<String> {
        let ms = u64::try_from(self.record.timestamp_ms).ok().filter(|ms| *ms <= LAST_MOMENT_MS)?;
        let mut out = Vec::with_capacity(27);
        push_rfc3339(&mut out, ms * 1000);
        String::from_utf8(out).ok()
    }
}

fn read_json(value: &[u8]) -> Result<&str, RejectReason> {
    let text = std::str::from_utf8(value)
        .map_err(|error| format!("the value is not UTF-8, at byte {}", error.valid_up_to()))?;
    let raw: &serde_json::value::RawValue =
        serde_json::from_str(text).map_err(|error| format!("the value is not JSON: {error}"))?;
    let json = raw.get();
    if is_too_deep(json) {
        return Err(format!("the value is nested deeper than {MAX_DEPTH} levels").into());
    }
    Ok(json)
}

/// Whether valid JSON is nested deeper than [`MAX_DEPTH`].
fn is_too_deep(json: &str) -> bool {
    let openings = json.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if openings <= MAX_DEPTH {
        return false;
    }
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest > MAX_DEPTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_bounded_as_in_the_api_and_brackets_in_texts_do_not_count() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(read_json(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(read_json(nested(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(read_json(nested(1_000_000).as_bytes()).is_err());
        let text = format!("[\"\\\"{}\"]", "[".repeat(2_000));
        assert!(read_json(text.as_bytes()).is_ok());
        let wide = format!("[{}[]]", "[],".repeat(2_000));
        assert!(read_json(wide.as_bytes()).is_ok());
    }

    #[test]
    fn what_is_not_json_says_why() {
        for (value, word) in
            [(&b"\xff"[..], "UTF-8"), (b"{", "JSON"), (b"", "JSON"), (b"1 2", "JSON")]
        {
            let fault = read_json(value).unwrap_err().to_string();
            assert!(fault.contains(word), "{fault}");
        }
        assert_eq!(read_json(b" {\"a\": 1}\n"), Ok("{\"a\": 1}"));
    }
}
