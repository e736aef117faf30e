//! The content of a body: one event or many, JSON or opaque.

use super::Media;
use crate::wire::json::{Cursor, Fault, without_mark};
use crate::wire::problem::{self, Problem, of_fault, of_line_fault};
use wellspring_types::DataKind;

/// The data of the events of one body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Data<'a> {
    /// One event: no allocation.
    One(DataKind, [&'a [u8]; 1]),
    /// Several, all JSON.
    Many(Vec<&'a [u8]>),
}

impl<'a> Data<'a> {
    /// Their common kind, and each of them.
    pub(super) fn events(&self) -> (DataKind, &[&'a [u8]]) {
        match self {
            Data::One(kind, one) => (*kind, one),
            Data::Many(lines) => (DataKind::Json, lines),
        }
    }
}

/// Reads a body of at most `most_lines` lines.
pub(super) fn read(media: Media, body: &[u8], most_lines: usize) -> Result<Data<'_>, Box<Problem>> {
    if body.is_empty() {
        return Err(problem::INVALID.because("the body is empty; send the event's data"));
    }
    match media {
        Media::Json => match value(body) {
            Ok(value) => Ok(Data::One(DataKind::Json, [value])),
            Err(fault) => Err(of_fault(&fault, body)),
        },
        // Data that turns out not to be JSON is stored as it is.
        Media::Unspecified => Ok(match value(body) {
            Ok(value) => Data::One(DataKind::Json, [value]),
            Err(fault) if is_wide_json(body) => return Err(of_fault(&fault, body)),
            Err(_) => Data::One(DataKind::Binary, [body]),
        }),
        Media::Opaque => Ok(Data::One(DataKind::Binary, [body])),
        Media::Ndjson => lines(body, most_lines).map(Data::Many),
    }
}

/// The single JSON value of a document, without the space around it.
fn value(document: &[u8]) -> Result<&[u8], Box<Fault>> {
    let mut cursor = Cursor::new(document)?;
    let value = cursor.raw()?;
    cursor.end()?;
    Ok(value)
}

/// Whether a body is JSON in UTF-16, which is refused instead of stored as bytes.
fn is_wide_json(body: &[u8]) -> bool {
    matches!(body, [0xff, 0xfe, b'{' | b'[', 0, ..] | [0xfe, 0xff, 0, b'{' | b'[', ..])
}

fn lines(body: &[u8], most: usize) -> Result<Vec<&[u8]>, Box<Problem>> {
    let mut values = Vec::new();
    for (number, line) in (1u64..).zip(body.split(|&byte| byte == b'\n')) {
        if without_mark(line).iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if values.len() == most {
            // Not parsed to the end: these could not be stored together, however short they are.
            return Err(problem::TOO_LARGE
                .because(format!(
                    "the body has more than {most} lines; split it into several requests"
                ))
                .limit(most as u64));
        }
        values.push(value(line).map_err(|fault| bad_line(number, &fault, line))?);
    }
    if values.is_empty() {
        return Err(problem::INVALID.because("the body contains only empty lines"));
    }
    Ok(values)
}

fn bad_line(number: u64, fault: &Fault, line: &[u8]) -> Box<Problem> {
    let what = of_line_fault(fault, line).detail;
    problem::INVALID
        .because(format!("line {number} of the body: {what}; nothing of the body was stored"))
        .with("line", number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_what_its_media_says() {
        let json = |text: &'static str| Ok(Data::One(DataKind::Json, [text.as_bytes()]));
        let read =
            |media, body: &'static str| read(media, body.as_bytes(), 9).map_err(|p| p.kind.slug);
        assert_eq!(read(Media::Json, " {\"e\":1}\n"), json("{\"e\":1}"));
        assert_eq!(read(Media::Unspecified, "{\"e\":1}"), json("{\"e\":1}"));
        assert_eq!(read(Media::Json, "{\"e\":}"), Err("malformed-json"));
        assert_eq!(read(Media::Json, "{} {}"), Err("malformed-json"));
        assert_eq!(read(Media::Json, ""), Err("invalid"));
        assert_eq!(read(Media::Unspecified, "a=b"), Ok(Data::One(DataKind::Binary, [&b"a=b"[..]])));
        assert_eq!(read(Media::Opaque, "{}"), Ok(Data::One(DataKind::Binary, [&b"{}"[..]])));
    }

    #[test]
    fn a_mark_is_no_part_of_the_data() {
        let marked = "\u{feff}{\"e\":1}".as_bytes();
        for media in [Media::Json, Media::Unspecified] {
            let one = Data::One(DataKind::Json, [&b"{\"e\":1}"[..]]);
            assert_eq!(read(media, marked, 9).unwrap(), one, "{media:?}");
        }
        assert_eq!(read(Media::Opaque, marked, 9).unwrap(), Data::One(DataKind::Binary, [marked]));
        let joined = "\u{feff}1\n\u{feff}\n\u{feff}2\n".as_bytes();
        assert_eq!(read(Media::Ndjson, joined, 9).unwrap(), Data::Many(vec![b"1", b"2"]));
        let wide = b"\xff\xfe{\0}\0";
        for media in [Media::Json, Media::Unspecified, Media::Ndjson] {
            let problem = read(media, wide, 9).unwrap_err();
            assert!(problem.detail.contains("UTF-16"), "{media:?}: {}", problem.detail);
        }
    }

    #[test]
    fn lines_are_events_and_a_bad_one_is_numbered() {
        let many = read(Media::Ndjson, b"{}\n\n 1 \r\n\"x\"", 3);
        assert_eq!(many.unwrap(), Data::Many(vec![b"{}", b"1", b"\"x\""]));
        let problem = read(Media::Ndjson, b"{}\n\n{", 3).unwrap_err();
        assert_eq!(problem.more, [("line", "3".to_owned())]);
        assert_eq!(problem.kind.status, 422);
        let problem = read(Media::Ndjson, b"1\n2\n3\n{", 2).unwrap_err();
        assert_eq!((problem.kind.status, problem.limit), (413, Some(2)));
        assert!(read(Media::Ndjson, b"\n \n", 3).is_err());
    }
}
