//! Recognizes input that is not text by its first bytes.

use crate::exit::Failure;
use crate::import::Format;

/// Beginnings of files that are no text, and what those are.
const SIGNATURES: [(&[u8], &str); 14] = [
    (b"PK\x03\x04", "a zip archive (as .xlsx and .ods are); save the sheet as CSV, or unpack it"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "compressed with gzip twice; decompress it once"),
    (b"BZh", "compressed with bzip2; decompress it first"),
    (b"\xfd7zXZ", "compressed with xz; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"),
    (b"\xd0\xcf\x11\xe0", "an old Office file (as .xls is); save the sheet as CSV"),
    (b"%PDF-", "a PDF"),
    (b"PAR1", "a Parquet file; convert it, for example with duckdb"),
    (b"SQLite format 3", "a SQLite database; export the table as CSV"),
    (b"\x89PNG", "an image"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it"),
    (b"Obj\x01", "an Avro file; convert it first"),
    (b"ORC", "an ORC file; convert it first"),
];

/// Refuses an input that begins like this if it is of another kind than its format.
///
/// # Errors
/// Data: what it is, and what to do.
pub(crate) fn refuse_other_kinds(file: &str, start: &[u8], format: Format) -> Result<(), Failure> {
    let refused = |what: String| Err(Failure::data(format!("{file}: {what}")));
    if let Some(encoding) = encoding(start) {
        return refused(format!(
            "this is {encoding}, and must be UTF-8; convert it, for example with iconv -f {encoding} \
             -t UTF-8, or save it as UTF-8"
        ));
    }
    // A header of a table may begin with these letters.
    let is_binary = start.iter().take(512).any(|&byte| byte == 0 || byte >= 0x80);
    let mut signatures = SIGNATURES.iter().filter(|(bytes, _)| {
        start.starts_with(bytes) && (is_binary || !bytes.iter().all(u8::is_ascii_alphanumeric))
    });
    if let Some((_, what)) = signatures.next() {
        return refused(format!("this is not text, but {what}"));
    }
    if first_line(start).contains(&0) {
        return refused("this is not text: its first line holds bytes 0".to_owned());
    }
    let text = start.trim_ascii_start();
    if is_markup(text) {
        return refused("this is HTML or XML, and not data; was an error page saved?".to_owned());
    }
    if format == Format::Csv && is_json(text) {
        return refused("these are not CSV but JSON; use --format ndjson".to_owned());
    }
    Ok(())
}

/// The encoding, if it is not one whose ASCII characters are bytes.
fn encoding(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [a, 0, 0, 0, b, 0, 0, 0, ..] if *a != 0 && *b != 0 => Some("UTF-32LE"),
        [0, 0, 0, a, 0, 0, 0, b, ..] if *a != 0 && *b != 0 => Some("UTF-32BE"),
        [a, 0, b, 0, ..] if *a != 0 && *b != 0 => Some("UTF-16LE"),
        [0, a, 0, b, ..] if *a != 0 && *b != 0 => Some("UTF-16BE"),
        _ => None,
    }
}

fn first_line(start: &[u8]) -> &[u8] {
    start.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default()
}

fn is_markup(text: &[u8]) -> bool {
    let name = |tag: &[u8]| text.get(..tag.len()).is_some_and(|t| t.eq_ignore_ascii_case(tag));
    [&b"<!doctype"[..], b"<html", b"<head", b"<body", b"<?xml", b"<!--", b"<svg"]
        .into_iter()
        .any(name)
}

/// Whether a text begins as JSON, and not with the name of a column in brackets.
fn is_json(text: &[u8]) -> bool {
    let Some((first, rest)) = text.split_first() else { return false };
    let next = rest.trim_ascii_start().first();
    match first {
        b'{' => matches!(next, None | Some(b'"' | b'}')),
        b'[' => matches!(next, None | Some(b'{' | b'[' | b'"' | b']')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_of_its_format_is_named() {
        let told = |start: &[u8], format| {
            refuse_other_kinds("f", start, format).err().map(|failure| failure.message)
        };
        for (start, word) in [
            (&b"PK\x03\x04\x14\0\0\0"[..], "zip"),
            (b"\x1f\x8b\x08\0", "gzip twice"),
            (b"PAR1\x15\0", "Parquet"),
            (b"\xff\xfei\0d\0", "UTF-16, and must be UTF-8"),
            (b"\xfe\xff\0i\0d", "UTF-16"),
            (b"\xff\xfe\0\0i\0\0\0", "UTF-32"),
            (b"\0\0\xfe\xff\0\0\0i", "UTF-32"),
            (b"i\0d\0,\0a\0", "UTF-16LE"),
            (b"\0i\0d\0,\0a", "UTF-16BE"),
            (b"id,na\0me\n1,2\n", "bytes 0"),
            (b"\n <!DOCTYPE html><html>", "HTML"),
            (b"<?xml version=\"1.0\"?>", "XML"),
        ] {
            for format in [Format::Csv, Format::Ndjson, Format::Cloudevents] {
                let told = told(start, format).unwrap_or_default();
                assert!(told.contains(word), "{start:?}: {told}");
            }
        }
        for start in [&b"{\"type\":1}\n"[..], b"[\n", b" {\n", b"[{\"a\":1}]", b"{}"] {
            let csv = told(start, Format::Csv).unwrap_or_default();
            assert!(csv.contains("--format ndjson"), "{start:?}: {csv}");
            assert_eq!(told(start, Format::Ndjson), None);
        }
        for start in [
            &b""[..],
            b"id,name\n1,Ann\n",
            b"[id],[name]\n",
            b"{id},x\n",
            b"ORC,PAR1\n1,2\n",
            b"BZh,x\n",
            b"<5,>5\n",
            b"id,x\n1,a\0\n",
            "größe;ü\n".as_bytes(),
        ] {
            assert_eq!(told(start, Format::Csv), None, "{start:?}");
        }
    }
}
