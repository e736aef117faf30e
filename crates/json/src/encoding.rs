//! How a text is encoded: marks before it, other encodings than UTF-8, and Base64 within it.

use base64::DecodeError;

/// The byte-order mark of UTF-8, which some programs write before a text, and which joined files
/// have in the middle. It is part of no text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes without a byte-order mark before them.
#[must_use]
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// Whether these bytes begin a text in UTF-16 or UTF-32: with its mark, or with an ASCII character
/// of it.
#[must_use]
pub fn is_wide(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..])
}

/// What is wrong with a text that is not Base64.
#[must_use]
pub fn base64_fault(error: DecodeError) -> String {
    match error {
        DecodeError::InvalidByte(at, b'\r' | b'\n') => {
            format!("a line break at offset {at}; write it without")
        }
        DecodeError::InvalidByte(at, byte @ (b'-' | b'_')) => {
            let symbol = char::from(byte);
            format!(
                "symbol '{symbol}' at offset {at} is of Base64 for URLs; + and / are meant here"
            )
        }
        DecodeError::InvalidByte(at, b'=') => format!("padding at offset {at}, before its end"),
        DecodeError::InvalidByte(at, byte) if byte.is_ascii() => {
            format!("symbol {:?} at offset {at}", char::from(byte))
        }
        DecodeError::InvalidByte(at, _) => format!("a symbol beyond ASCII at offset {at}"),
        DecodeError::InvalidLastSymbol(at, byte) => {
            let symbol = char::from(byte);
            format!(
                "symbol {symbol:?} at offset {at} says more than the last byte; is the end missing?"
            )
        }
        DecodeError::InvalidLength(symbols) => {
            format!("{symbols} symbols are no whole number of bytes; is the end missing?")
        }
        DecodeError::InvalidPadding => "the = at its end are missing, or too many".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn what_is_wrong_with_base64_is_told_in_words() {
        for (text, word) in [
            ("_-8=", "symbol '_' at offset 0 is of Base64 for URLs"),
            ("AAAA\nAAAA", "a line break at offset 4"),
            ("A*AA", "symbol '*' at offset 1"),
            ("AA\tA", "symbol '\\t' at offset 2"),
            ("AA=A", "padding at offset 2"),
            ("AAäA", "beyond ASCII at offset 2"),
            ("AAAAA", "5 symbols"),
            ("AAA", "="),
            ("AP9=", "symbol '9' at offset 2"),
        ] {
            let told = base64_fault(STANDARD.decode(text).unwrap_err());
            assert!(told.contains(word), "{text:?}: {told}");
        }
    }

    #[test]
    fn wide_texts_are_known() {
        for text in [&b"\xff\xfe{\0"[..], b"\xfe\xff\0{", b"{\0\"\0", b"\0{\0\"", b"{\0\0\0"] {
            assert!(is_wide(text), "{text:?}");
        }
        for text in [&b""[..], b"{", b"{}", b"\xef\xbb\xbf{}", "é".as_bytes()] {
            assert!(!is_wide(text), "{text:?}");
        }
    }
}
