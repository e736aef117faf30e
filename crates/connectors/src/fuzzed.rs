//! Entry points for fuzz targets: templates of sources, rendered from records.

use crate::source::{RecordParts, Template};
use bytes::Bytes;
use wellspring_kafka::Record;

/// Parses the first line as a template and renders it from a record with the second line as its key
/// and the rest as its value. Returns the text or why it cannot be rendered; `None` if the template
/// is invalid.
///
/// # Panics
/// If a template does not keep its text.
#[must_use]
pub fn template(bytes: &[u8]) -> Option<Result<String, String>> {
    let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
    let text = std::str::from_utf8(parts.next()?).ok()?;
    let key = parts.next().map(Bytes::copy_from_slice);
    let value = parts.next().map(Bytes::copy_from_slice);
    let template = Template::parse(text).ok()?;
    assert_eq!(template.as_str(), text, "a template is kept as it was written");
    let headers = vec![("h".to_owned(), key.clone())];
    let timestamp_ms = key.as_ref().map_or(-1, |key| key.len() as i64);
    let record = Record { partition: 0, offset: 1, timestamp_ms, key, value, headers };
    let mut out = String::new();
    let rendering = template.render(&RecordParts::new("topic", &record), &mut out);
    Some(rendering.map(|_| out).map_err(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_from_the_rest() {
        assert_eq!(template(b"{key}-{value:/a}\nk\n{\"a\":1}"), Some(Ok("k-1".into())));
        assert_eq!(template(b"{key"), None);
    }
}
