//! Writing JSON by hand: answers are assembled from stored bytes, so only strings and numbers need
//! serialising.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as a JSON string, quotes included.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain_from = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        // Almost every byte is plain; runs of them are copied at once.
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[plain_from..i]);
        plain_from = i + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
        }
    }
    out.extend_from_slice(&bytes[plain_from..]);
    out.push(b'"');
}

/// Appends a JSON array of what `push` appends for each item.
pub fn push_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push(out, item);
    }
    out.push(b']');
}

/// Appends bytes as a JSON string; invalid UTF-8 becomes U+FFFD.
pub fn push_lossy(out: &mut Vec<u8>, bytes: &[u8]) {
    push_string(out, &String::from_utf8_lossy(bytes));
}

/// Appends a number in decimal.
pub fn push_u64(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `,"tags":[…]`.
pub fn push_tags<'a>(out: &mut Vec<u8>, tags: impl Iterator<Item = &'a str>) {
    out.extend_from_slice(b",\"tags\":");
    push_list(out, tags, push_string);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_are_written_as_serde_json_writes_them(text in any::<String>()) {
            let mut out = Vec::new();
            push_string(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn numbers_are_written_in_decimal(number in any::<u64>()) {
            let mut out = Vec::new();
            push_u64(&mut out, number);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn every_control_character_is_escaped_as_serde_json_does() {
        let text: String = (0u8..0x80).map(char::from).collect();
        let mut out = Vec::new();
        push_string(&mut out, &text);
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
    }
}
